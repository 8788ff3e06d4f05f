package transfer

import (
	"time"

	"convls/protocol"
	"convls/store"
)

// exportFormat is the version of the JSON Lines that Export writes. Readers
// refuse a greater one, and ignore members that they do not know.
const exportFormat = 1

// The types of lines: a header, the session's record, and for each node, in the
// order of their numbers, the texts that it is the first to name and the node.
const (
	typeHeader  = "convls"
	typeSession = "session"
	typeText    = "text"
	typeNode    = "node"
)

// headerRecord is the first line of an export.
type headerRecord struct {
	Type   string `json:"type"`
	Format int    `json:"format"`
}

// sessionRecord is the second line: all that a session holds beside its nodes.
type sessionRecord struct {
	Type         string       `json:"type"`
	SessionID    string       `json:"session_id"`
	Title        string       `json:"title"`
	TitleFrom    string       `json:"title_from,omitzero"`
	Model        string       `json:"model,omitzero"`
	Policy       string       `json:"policy"`
	Workspace    string       `json:"workspace,omitzero"`
	CreatedAt    time.Time    `json:"created_at"`
	System       string       `json:"system,omitzero"`
	Settings     protocol.Raw `json:"settings,omitzero"`
	ImportedFrom string       `json:"imported_from,omitzero"`
	Head         string       `json:"head"`
	// Branch is the name that HEAD is attached to.
	Branch        string            `json:"branch,omitzero"`
	Branches      map[string]string `json:"branches,omitempty"`
	ActiveSummary string            `json:"active_summary,omitzero"`
	// Tips are the tips in the order of their last use, last used last.
	Tips  []string     `json:"tips"`
	Total totalsRecord `json:"usage"`
	Queue []queueEntry `json:"queue,omitempty"`
	// Nodes is how many follow: fewer mean that the file was cut.
	Nodes uint64 `json:"nodes"`
}

// totalsRecord is the session's usage as the ledger keeps it; money is in whole
// millionths of a dollar, so that no rounding changes it.
type totalsRecord struct {
	InputTokens  uint64 `json:"input_tokens"`
	OutputTokens uint64 `json:"output_tokens"`
	Calls        uint64 `json:"calls"`
	CostMicroUSD uint64 `json:"cost_micro_usd"`
}

// queueEntry is a send that waited; an import holds it, as a restart does.
type queueEntry struct {
	store.Queued
	AfterID string `json:"after_id"`
	Place   uint64 `json:"place"`
}

// textRecord is a text that a call names by its hash, such as a system prompt that
// the session had then.
type textRecord struct {
	Type   string `json:"type"`
	SHA256 string `json:"sha256"`
	Text   string `json:"text"`
}

// nodeRecord is a node in terms of ids. All importers make these, and one writer
// stores them.
type nodeRecord struct {
	Type        string          `json:"type"`
	ID          string          `json:"id"`
	Kind        protocol.Kind   `json:"kind"`
	Predecessor string          `json:"predecessor,omitzero"`
	Caller      string          `json:"caller,omitzero"`
	Status      protocol.Status `json:"status"`
	CreatedAt   time.Time       `json:"created_at,omitzero"`
	// Tokens are the content's, as counted by Tokenizer.
	Tokens     uint64                  `json:"tokens,omitzero"`
	Tokenizer  string                  `json:"tokenizer,omitzero"`
	Pinned     bool                    `json:"pinned,omitzero"`
	Redacted   bool                    `json:"redacted,omitzero"`
	Exposed    bool                    `json:"exposed,omitzero"`
	Content    []protocol.Part         `json:"content"`
	Prompt     []protocol.Part         `json:"prompt,omitempty"`
	Model      string                  `json:"model,omitzero"`
	DurationMS int64                   `json:"duration_ms,omitzero"`
	StopReason string                  `json:"stop_reason,omitzero"`
	Error      *protocol.NodeError     `json:"error,omitzero"`
	Usage      *protocol.Usage         `json:"usage,omitzero"`
	Reads      []runRecord             `json:"reads,omitempty"`
	Call       *protocol.CallRecord    `json:"call,omitzero"`
	Metadata   map[string]protocol.Raw `json:"metadata,omitempty"`
	Source     *store.Source           `json:"source,omitzero"`
	// The rest belongs to summaries.
	Covers     *coversRecord        `json:"covers,omitzero"`
	Void       bool                 `json:"void,omitzero"`
	VoidReason string               `json:"void_reason,omitzero"`
	Undone     bool                 `json:"undone,omitzero"`
	Manifest   protocol.Raw         `json:"manifest,omitzero"`
	Provenance *protocol.Provenance `json:"provenance,omitzero"`

	// line is where the node was in the source, 0 if that says nothing.
	line int64
	// texts are to be kept with it.
	texts []textRecord
}

// runRecord is a stretch of the chain, both ends included, that a call read.
type runRecord struct {
	First string `json:"first"`
	Last  string `json:"last"`
}

// coversRecord names the stretch that a summary stands for. The ids in between
// follow from the predecessors; count and digest prove that they are the same. A
// void summary may name nodes that are gone: their ids are empty.
type coversRecord struct {
	First  string `json:"first"`
	Last   string `json:"last"`
	Count  uint64 `json:"count,omitzero"`
	Digest string `json:"digest,omitzero"`
	Tokens uint64 `json:"tokens,omitzero"`
}

// content returns the parts of the record that need no translation.
func (n *nodeRecord) content() store.Content {
	return store.Content{Parts: n.Content, Prompt: n.Prompt, Model: n.Model, DurationMS: n.DurationMS, StopReason: n.StopReason, Error: n.Error,
		Usage: n.Usage, Call: n.Call, Metadata: n.Metadata, Manifest: n.Manifest, Provenance: n.Provenance, Source: n.Source}
}
