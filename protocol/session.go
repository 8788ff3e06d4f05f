package protocol

import "time"

// Mutation is embedded in the parameters of every request that changes the
// ledger.
type Mutation struct {
	// RequestID makes a request safe to repeat: the same id with the same
	// parameters, but for wait, gets the outcome of the first, with others
	// id_conflict. The ids in the reply are the first one's; the objects are shown as
	// they are by now. Kept 24 hours.
	RequestID string `json:"request_id,omitzero"`
	// ExpectedHead is where the client believes HEAD to be. If it is elsewhere the
	// request is refused with stale_head; the extension by a running turn that
	// began at ExpectedHead is not stale.
	ExpectedHead string `json:"expected_head,omitzero"`
}

// Session is one conversation: a DAG of nodes, a HEAD and named branches.
type Session struct {
	SessionID string `json:"session_id"`
	Title     string `json:"title"`
	Head      string `json:"head"`
	// Branch is the name that HEAD is attached to, if any: append moves it along.
	Branch    string `json:"branch,omitzero"`
	Model     string `json:"model"`
	Policy    string `json:"policy"`
	Workspace string `json:"workspace,omitzero"`
	// System is the system prompt; sent by create, open and configure.
	System          string    `json:"system,omitzero"`
	ActiveSummaries []string  `json:"active_summaries"`
	CreatedAt       time.Time `json:"created_at"`
	UpdatedAt       time.Time `json:"updated_at"`
	Usage           Usage     `json:"usage"`
	// Nodes is how many nodes the session holds.
	Nodes int64 `json:"nodes"`
	// Budget is sent by open; the others leave it out.
	Budget *Budget `json:"budget,omitzero"`
	// Settings are the session's own settings, which win over all others.
	Settings Raw `json:"settings,omitzero"`
}

// Budget says how full the model's window is.
type Budget struct {
	// Used is the tokens of the rendered context, system prompt and tools included.
	Used          int64 `json:"used"`
	Window        int64 `json:"window"`
	OutputReserve int64 `json:"output_reserve"`
	// Limit is Window - OutputReserve.
	Limit int64 `json:"limit"`
	// TriggerAt is where automatic compaction starts, in tokens.
	TriggerAt int64 `json:"trigger_at"`
	// Percent is Used of Limit.
	Percent float64 `json:"percent"`
	// Source is provider, tokenizer or estimate.
	Source string `json:"source"`
}

// SessionResult is the reply of requests that change a session and return it.
type SessionResult struct {
	Session
	Cursor string `json:"cursor"`
}

// SessionCreateParams are the parameters of convls/session/create.
type SessionCreateParams struct {
	Mutation
	// Title is kept in one line, with single spaces and without control characters; it
	// can have 1,000 bytes.
	Title     string `json:"title,omitzero"`
	Model     string `json:"model,omitzero"`
	System    string `json:"system,omitzero"`
	Workspace string `json:"workspace,omitzero"`
	Policy    string `json:"policy,omitzero"`
	Settings  Raw    `json:"settings,omitzero"`
}

// SessionListParams are the parameters of convls/session/list.
type SessionListParams struct {
	// Query is looked for in titles and workspaces, without regard to case.
	Query     string `json:"query,omitzero"`
	Workspace string `json:"workspace,omitzero"`
	// Limit is 50 if it is left out, 500 at most.
	Limit  int    `json:"limit,omitzero"`
	Cursor string `json:"cursor,omitzero"`
}

// SessionListResult is the reply to convls/session/list: newest activity first.
type SessionListResult struct {
	Sessions []Session `json:"sessions"`
	// Next is the cursor of the next page; empty at the end.
	Next string `json:"next,omitzero"`
}

// SessionParams name a session.
type SessionParams struct {
	SessionID string `json:"session_id"`
}

// SessionOpenParams are the parameters of convls/session/open.
type SessionOpenParams struct {
	SessionID string `json:"session_id"`
	// Tail is how many transcript rows to send, 50 if it is left out.
	Tail      *int `json:"tail,omitzero"`
	Subscribe bool `json:"subscribe,omitzero"`
}

// SessionOpenResult is a snapshot of a session: with the cursor in it, a client
// that subscribes misses nothing.
type SessionOpenResult struct {
	Session    Session      `json:"session"`
	Branches   []Branch     `json:"branches"`
	Transcript Transcript   `json:"transcript"`
	OpenNodes  []OpenNode   `json:"open_nodes"`
	Queue      []QueuedSend `json:"queue"`
	// Compaction is the compaction that is under way.
	Compaction *RunningCompaction `json:"compaction,omitzero"`
	// AutoCompaction says why automatic compaction does not run; empty if it does.
	AutoCompaction string `json:"auto_compaction,omitzero"`
	Cursor         string `json:"cursor"`
}

// OpenNode is a reply that is being written: its text so far is
// convls/node/get's to give.
type OpenNode struct {
	NodeID string `json:"node_id"`
	UserID string `json:"user_id,omitzero"`
	// Bytes is how much text there was when this was written.
	Bytes int64 `json:"bytes"`
}

// QueuedSend is a message that waits for the turn before it.
type QueuedSend struct {
	UserID  string `json:"user_id"`
	ReplyID string `json:"reply_id"`
	// Position counts from 1.
	Position int `json:"position"`
	// Held says that the turn before it failed or that the server was restarted:
	// the message waits until a turn succeeds on its chain, or is taken out.
	Held    bool      `json:"held"`
	Preview string    `json:"preview"`
	At      time.Time `json:"at"`
}

// SessionRenameParams are the parameters of convls/session/rename.
type SessionRenameParams struct {
	Mutation
	SessionID string `json:"session_id"`
	// Title is as in SessionCreateParams, and not blank.
	Title string `json:"title"`
}

// SessionConfigureParams are the parameters of convls/session/configure: only
// the members that are there change.
type SessionConfigureParams struct {
	Mutation
	SessionID string  `json:"session_id"`
	Model     *string `json:"model,omitzero"`
	System    *string `json:"system,omitzero"`
	Workspace *string `json:"workspace,omitzero"`
	Policy    *string `json:"policy,omitzero"`
	Settings  Raw     `json:"settings,omitzero"`
}

// SessionDeleteParams are the parameters of convls/session/delete.
type SessionDeleteParams struct {
	Mutation
	SessionID string `json:"session_id"`
	Confirm   bool   `json:"confirm,omitzero"`
}

// SessionDeleteResult is the reply to convls/session/delete.
type SessionDeleteResult struct {
	SessionID string `json:"session_id"`
	Cursor    string `json:"cursor"`
}

// SubscribeParams are the parameters of convls/session/subscribe.
type SubscribeParams struct {
	SessionID string `json:"session_id"`
	// After is a cursor: the events after it are replayed. Without it only what
	// happens from now on is sent.
	After string `json:"after,omitzero"`
}

// SubscribeResult is the reply to convls/session/subscribe; it precedes the
// replay.
type SubscribeResult struct {
	Cursor    string       `json:"cursor"`
	OpenNodes []OpenNode   `json:"open_nodes"`
	Queue     []QueuedSend `json:"queue"`
	// Reset says that the cursor is foreign, trimmed, or more than 1,000 events
	// behind: nothing is replayed, take a snapshot with convls/session/open.
	Reset bool `json:"reset,omitzero"`
}

// Empty is the reply of requests that have nothing to say.
type Empty struct{}

// SearchParams are the parameters of convls/session/search.
type SearchParams struct {
	// Query is words that must all occur in a node's text, without regard to case.
	Query     string `json:"query"`
	SessionID string `json:"session_id,omitzero"`
	// Limit is 20 if it is left out, 200 at most.
	Limit int `json:"limit,omitzero"`
}

// SearchResult is the reply to convls/session/search.
type SearchResult struct {
	Hits []SearchHit `json:"hits"`
	// Incomplete says that the limit was reached before everything was looked at.
	Incomplete bool `json:"incomplete,omitzero"`
}

// SearchHit is a node that matches.
type SearchHit struct {
	SessionID string `json:"session_id"`
	Title     string `json:"title"`
	NodeID    string `json:"node_id"`
	Kind      Kind   `json:"kind"`
	Snippet   string `json:"snippet"`
	// Tips are the branches that hold the node, ten at most.
	Tips []string `json:"tips"`
}

// ExportParams are the parameters of convls/session/export.
type ExportParams struct {
	SessionID string `json:"session_id"`
	// Format is jsonl (everything, can be imported) or markdown (one branch, to read).
	Format string `json:"format"`
	// Path is a file to write; without it the text is in the reply.
	Path string `json:"path,omitzero"`
	// Head chooses the branch of a markdown export; HEAD if it is left out.
	Head string `json:"head,omitzero"`
}

// ExportResult is the reply to convls/session/export.
type ExportResult struct {
	Path  string `json:"path,omitzero"`
	Text  string `json:"text,omitzero"`
	Bytes int64  `json:"bytes"`
}

// ImportParams are the parameters of convls/session/import.
type ImportParams struct {
	// RequestID makes the import safe to repeat; see [Mutation].
	RequestID string `json:"request_id,omitzero"`
	// Path and Text are the source: exactly one of them.
	Path string `json:"path,omitzero"`
	Text string `json:"text,omitzero"`
	// Format is convls, tree or agent; it is detected if it is left out.
	Format        string `json:"format,omitzero"`
	WorkDoneToken Raw    `json:"workDoneToken,omitzero"`
}

// ImportReport is the reply to convls/session/import: of each session in the
// source either all was stored or nothing.
type ImportReport struct {
	Format   string          `json:"format"`
	Sessions []ImportedEntry `json:"sessions"`
	Nodes    int64           `json:"nodes"`
	// Skipped are the sessions and records that were left out, 100 at most;
	// SkippedCount is how many there were.
	Skipped      []SkippedEntry `json:"skipped"`
	SkippedCount int64          `json:"skipped_count"`
}

// ImportedEntry is a session that an import made.
type ImportedEntry struct {
	SessionID string `json:"session_id"`
	// OriginalID is the session's id in the source, where it could not be kept: the
	// store has a session of that id already, or it is no id of ours.
	OriginalID string `json:"original_id,omitzero"`
	Title      string `json:"title"`
	Nodes      int64  `json:"nodes"`
	Branches   int64  `json:"branches"`
	Summaries  int64  `json:"summaries,omitzero"`
}

// SkippedEntry is something that an import left out.
type SkippedEntry struct {
	// Line counts from 1.
	Line   int64  `json:"line,omitzero"`
	ID     string `json:"id,omitzero"`
	Reason string `json:"reason"`
}

// TranscriptParams are the parameters of convls/transcript/get.
type TranscriptParams struct {
	SessionID string `json:"session_id"`
	// Head chooses the branch: any chain node; HEAD if it is left out.
	Head string `json:"head,omitzero"`
	// Before and After are cursors of a former reply; Around is a node id. Without
	// them the rows end at Head.
	Before string `json:"before,omitzero"`
	After  string `json:"after,omitzero"`
	Around string `json:"around,omitzero"`
	// Limit is 50 if it is left out, 500 at most.
	Limit int `json:"limit,omitzero"`
	// Expanded are summaries whose covered turns are shown as ghosts. An id that no node
	// has is passed over: what a client holds may have been deleted, and nothing is left
	// of a deleted node that tells its id from one that never was.
	Expanded []string `json:"expanded,omitzero"`
}

// Transcript is a window on one branch, oldest row first: each chain node with
// its whole content, then the tools it called.
type Transcript struct {
	Head string `json:"head"`
	Rows []Row  `json:"rows"`
	// Before and After are the cursors of the windows next to this one; empty at
	// the ends.
	Before string `json:"before,omitzero"`
	After  string `json:"after,omitzero"`
}
