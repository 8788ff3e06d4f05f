package protocol

//go:generate go run ./gen

// The requests that a client sends.
const (
	MethodSessionCreate      = "convls/session/create"
	MethodSessionList        = "convls/session/list"
	MethodSessionOpen        = "convls/session/open"
	MethodSessionRename      = "convls/session/rename"
	MethodSessionConfigure   = "convls/session/configure"
	MethodSessionDelete      = "convls/session/delete"
	MethodSessionSubscribe   = "convls/session/subscribe"
	MethodSessionUnsubscribe = "convls/session/unsubscribe"
	MethodSessionSearch      = "convls/session/search"
	MethodSessionExport      = "convls/session/export"
	MethodSessionImport      = "convls/session/import"
	MethodStoreSubscribe     = "convls/store/subscribe"
	MethodTranscriptGet      = "convls/transcript/get"
	MethodTurnSend           = "convls/turn/send"
	MethodTurnRetry          = "convls/turn/retry"
	MethodTurnEdit           = "convls/turn/edit"
	MethodTurnCancel         = "convls/turn/cancel"
	MethodBranchList         = "convls/branch/list"
	MethodBranchCheckout     = "convls/branch/checkout"
	MethodBranchFork         = "convls/branch/fork"
	MethodBranchRewind       = "convls/branch/rewind"
	MethodBranchRename       = "convls/branch/rename"
	MethodBranchDelete       = "convls/branch/delete"
	MethodBranchCompare      = "convls/branch/compare"
	MethodBranchAttach       = "convls/branch/attach"
	MethodCompactionRun      = "convls/compaction/run"
	MethodCompactionPreview  = "convls/compaction/preview"
	MethodCompactionCommit   = "convls/compaction/commit"
	MethodCompactionDiscard  = "convls/compaction/discard"
	MethodCompactionCancel   = "convls/compaction/cancel"
	MethodCompactionList     = "convls/compaction/list"
	MethodCompactionActivate = "convls/compaction/activate"
	MethodCompactionVerify   = "convls/compaction/verify"
	MethodCompactionRebuild  = "convls/compaction/rebuild"
	MethodCompactionCovers   = "convls/compaction/covers"
	MethodContextGet         = "convls/context/get"
	MethodGraphGet           = "convls/graph/get"
	MethodExec               = "convls/exec"
	MethodNodeGet            = "convls/node/get"
	MethodNodePin            = "convls/node/pin"
	MethodNodeUnpin          = "convls/node/unpin"
	MethodNodeRedact         = "convls/node/redact"
	MethodModelList          = "convls/model/list"
	MethodStatus             = "convls/status"
)

// MethodTextDocumentContent is the request of LSP by which editors read virtual
// documents.
const MethodTextDocumentContent = "workspace/textDocumentContent"

// MethodSecretChanged is the notification that a client sends.
const MethodSecretChanged = "convls/secret/changed"

// The notifications that the server sends.
const (
	MethodEvent = "convls/event"
	MethodDelta = "convls/delta"
	MethodReset = "convls/reset"
)

// The requests that the server sends.
const (
	MethodToolCall  = "convls/tool/call"
	MethodSecretGet = "convls/secret/get"
)

// Sender says which side sends a message.
type Sender string

// The two sides.
const (
	FromClient Sender = "client"
	FromServer Sender = "server"
)

// Method describes one method of the protocol: what [Methods] lists,
// docs/protocol.md explains and package handlers serves.
type Method struct {
	Name   string
	Sender Sender
	// Doc is one sentence for people, without the full stop.
	Doc string
	// Params and Result are zero values of the types on the wire. The Result of a
	// notification is nil.
	Params, Result any
	// Mutates says that the method changes the ledger: its reply comes after the
	// sync, and the same request_id gets the same reply.
	Mutates bool
}

// Notification reports whether the method has no reply.
func (m Method) Notification() bool { return m.Result == nil }

// Methods returns every method of convls, in the order of the documentation. Of
// LSP's own it has the one that serves what only convls knows.
func Methods() []Method {
	read := func(name, doc string, params, result any) Method {
		return Method{Name: name, Sender: FromClient, Doc: doc, Params: params, Result: result}
	}
	write := func(name, doc string, params, result any) Method {
		return Method{Name: name, Sender: FromClient, Doc: doc, Params: params, Result: result, Mutates: true}
	}
	notify := func(name, doc string, params any) Method {
		return Method{Name: name, Sender: FromServer, Doc: doc, Params: params}
	}
	ask := func(name, doc string, params, result any) Method {
		return Method{Name: name, Sender: FromServer, Doc: doc, Params: params, Result: result}
	}
	return []Method{
		write(MethodSessionCreate, "Makes a session with a root node that holds the system prompt", SessionCreateParams{}, SessionResult{}),
		read(MethodSessionList, "Lists sessions, the last used first, a page at a time", SessionListParams{}, SessionListResult{}),
		read(MethodSessionOpen, "Takes a snapshot of a session, and with subscribe follows it from there", SessionOpenParams{}, SessionOpenResult{}),
		write(MethodSessionRename, "Gives a session another title", SessionRenameParams{}, SessionResult{}),
		write(MethodSessionConfigure, "Changes a session's model, system prompt, workspace, policy or settings; what is left out stays", SessionConfigureParams{}, SessionResult{}),
		write(MethodSessionDelete, "Deletes a session with everything in it, after confirm", SessionDeleteParams{}, SessionDeleteResult{}),
		read(MethodSessionSubscribe, "Starts the events of a session, with after as a replay from a cursor", SubscribeParams{}, SubscribeResult{}),
		read(MethodSessionUnsubscribe, "Stops the events of a session", SessionParams{}, Empty{}),
		read(MethodSessionSearch, "Finds the nodes whose text holds every word of a query", SearchParams{}, SearchResult{}),
		read(MethodSessionExport, "Writes a session as JSON Lines that import back, or one branch as Markdown", ExportParams{}, ExportResult{}),
		write(MethodSessionImport, "Reads sessions from a file or a text; of each session all or nothing", ImportParams{}, ImportReport{}),
		read(MethodStoreSubscribe, "Starts the events that tell of new, changed and deleted sessions", Empty{}, Empty{}),

		read(MethodTranscriptGet, "Reads a window on one branch, each node with its whole content", TranscriptParams{}, Transcript{}),

		write(MethodTurnSend, "Sends a message at HEAD and starts its answer, or queues it behind the running turn", TurnSendParams{}, TurnResult{}),
		write(MethodTurnRetry, "Answers again beside an old reply, which stays", TurnRetryParams{}, TurnRetryResult{}),
		write(MethodTurnEdit, "Writes another version of a message or a reply beside the old one, which stays", TurnEditParams{}, TurnEditResult{}),
		write(MethodTurnCancel, "Ends a running turn with the text it has, or takes a queued message out", TurnCancelParams{}, TurnCancelResult{}),

		write(MethodExec, "Asks the model once on the context of a branch; prompt and answer become a call node beside the chain, and HEAD stays", ExecParams{}, ExecResult{}),

		read(MethodBranchList, "Lists the branches of a session, the last used first", SessionParams{}, BranchListResult{}),
		write(MethodBranchCheckout, "Moves HEAD to a node or a branch", CheckoutParams{}, HeadResult{}),
		write(MethodBranchFork, "Moves HEAD to a node and names the branch that begins there", ForkParams{}, ForkResult{}),
		write(MethodBranchRewind, "Moves HEAD to before a message and hands back its text; nothing is deleted", RewindParams{}, RewindResult{}),
		write(MethodBranchRename, "Names a branch, names it anew, or takes its name away", BranchRenameParams{}, BranchResult{}),
		write(MethodBranchDelete, "Deletes the part of a branch that no other branch shares, after confirm", BranchDeleteParams{}, BranchDeleteResult{}),
		read(MethodBranchCompare, "Shows what two branches added since they parted", CompareParams{}, CompareResult{}),
		write(MethodBranchAttach, "Brings a reply of another branch or session into this one, as a node of its own", AttachParams{}, NodeResult{}),

		write(MethodCompactionRun, "Replaces the older messages of HEAD's branch by a summary, for the model; the ledger keeps them", CompactionRunParams{}, CompactionResult{}),
		read(MethodCompactionPreview, "Says what a compaction would cover and save, without calling a model", CompactionPreviewParams{}, CompactionPreview{}),
		write(MethodCompactionCommit, "Commits a draft, as it was made or as a person edited it", CompactionCommitParams{}, CompactionResult{}),
		write(MethodCompactionDiscard, "Throws a draft away", CompactionDiscardParams{}, CompactionDiscardResult{}),
		write(MethodCompactionCancel, "Ends a running compaction, which then changes nothing", CompactionCancelParams{}, CompactionResult{}),
		read(MethodCompactionList, "Lists the summaries of a session with their provenance, the newest first", SessionParams{}, CompactionListResult{}),
		write(MethodCompactionActivate, "Chooses which summary views stand on, or none: undo and redo", CompactionActivateParams{}, CompactionActivateResult{}),
		read(MethodCompactionVerify, "Computes a summary's fingerprint anew from the covered messages", SummaryParams{}, CompactionVerifyResult{}),
		write(MethodCompactionRebuild, "Makes a summary again from the covered messages themselves", CompactionRebuildParams{}, CompactionResult{}),
		read(MethodCompactionCovers, "Lists the ids that a summary stands for, a page at a time", CompactionCoversParams{}, CompactionCoversResult{}),

		read(MethodGraphGet, "Shows a window of the graph, laid out: what each node hangs on, and what is folded away", GraphGetParams{}, GraphView{}),

		read(MethodContextGet, "Shows exactly what the model would read, entry by entry, with tokens and reasons", ContextGetParams{}, ContextView{}),

		read(MethodNodeGet, "Reads one node, of an open one the text so far; with part one of its parts, in ranges", NodeGetParams{}, NodeGetResult{}),
		write(MethodNodePin, "Pins a node: compaction carries it on word for word", NodeParams{}, NodeResult{}),
		write(MethodNodeUnpin, "Takes a pin away", NodeParams{}, NodeResult{}),
		write(MethodNodeRedact, "Replaces a node's content by a tombstone for good, after confirm; its place in the tree stays", RedactParams{}, NodeResult{}),

		read(MethodModelList, "Lists the models that can be asked, with windows and prices", Empty{}, ModelListResult{}),
		read(MethodStatus, "Tells version, store, clients and running turns", Empty{}, StatusResult{}),

		read(MethodTextDocumentContent, "Reads a view of a session, or a node, as a Markdown document", TextDocumentContentParams{}, TextDocumentContentResult{}),

		notify(MethodEvent, "Tells a subscriber of something that happened: durable, in order, replayable", Event{}),
		notify(MethodDelta, "Brings text of an open reply as it arrives; live only", Delta{}),
		notify(MethodReset, "Tells a subscriber that events were lost: take a new snapshot", ResetNotification{}),

		ask(MethodToolCall, "Has the client that declared a tool run it", ToolCallParams{}, ToolCallResult{}),
		ask(MethodSecretGet, "Has the client look up the key of a provider; an error or 60 s of silence count as no key", SecretGetParams{}, SecretGetResult{}),
		{Name: MethodSecretChanged, Sender: FromClient, Doc: "Tells the server that the client's key for a provider changed, so that it forgets the old one", Params: SecretChangedParams{}},
	}
}
