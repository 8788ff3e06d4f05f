package protocol

import "time"

// Kind says what a node is; see docs/architecture.md, "Words".
type Kind string

// Chain nodes (root, user, assistant, attach) can be HEAD; the others hang off
// the chain and are never HEAD and never a predecessor.
const (
	KindRoot      Kind = "root"
	KindUser      Kind = "user"
	KindAssistant Kind = "assistant"
	KindAttach    Kind = "attach"
	KindTool      Kind = "tool"
	KindCall      Kind = "call"
	KindSummary   Kind = "summary"
	KindNotice    Kind = "notice"
)

// OnChain reports whether nodes of this kind stand on the conversation chain.
func (k Kind) OnChain() bool {
	switch k {
	case KindRoot, KindUser, KindAssistant, KindAttach:
		return true
	}
	return false
}

// Role returns the side of the conversation that a node of kind k speaks for:
// system, user, assistant or tool.
func (k Kind) Role() string {
	switch k {
	case KindRoot, KindNotice:
		return "system"
	case KindUser, KindAttach:
		return "user"
	case KindTool:
		return "tool"
	default:
		return "assistant"
	}
}

// Status is the state of a node. queued and open can still change; the others
// are final.
type Status string

// The states of a node. A node is written open or sealed; it is sealed once, as
// one of the final states.
const (
	StatusQueued      Status = "queued"
	StatusRunning     Status = "running"
	StatusOpen        Status = "open"
	StatusSealed      Status = "sealed"
	StatusFailed      Status = "failed"
	StatusCancelled   Status = "cancelled"
	StatusInterrupted Status = "interrupted"
)

// Final reports whether a node in this state never changes again.
func (s Status) Final() bool {
	switch s {
	case StatusSealed, StatusFailed, StatusCancelled, StatusInterrupted:
		return true
	}
	return false
}

// PartType says what a [Part] holds.
type PartType string

// The types of parts.
const (
	PartText       PartType = "text"
	PartReasoning  PartType = "reasoning"
	PartImage      PartType = "image"
	PartResource   PartType = "resource"
	PartToolCall   PartType = "tool_call"
	PartToolResult PartType = "tool_result"
)

// Part is a piece of a node's content.
type Part struct {
	Type PartType `json:"type"`
	// Text is the text of text, reasoning, resource and tool_result parts.
	Text string `json:"text,omitzero"`
	// MIMEType and Data (base64 on the wire) belong to images.
	MIMEType string `json:"mime_type,omitzero"`
	Data     []byte `json:"data,omitzero"`
	// URI and Range say where a resource came from. ContextType is the type of
	// the [ContextItem] it was made from.
	URI         string     `json:"uri,omitzero"`
	Range       *TextRange `json:"range,omitzero"`
	ContextType string     `json:"context_type,omitzero"`
	// CallID, Name and Arguments belong to tool_call parts. Arguments is the JSON
	// that the model sent, or a JSON string of its text where it sent no JSON. In
	// an assistant node a tool_call part has NodeID alone, and the call is in that
	// tool node: a call and its result are one node and can not be split.
	CallID    string `json:"call_id,omitzero"`
	Name      string `json:"name,omitzero"`
	Arguments Raw    `json:"arguments,omitzero"`
	NodeID    string `json:"node_id,omitzero"`
	// IsError marks a tool_result that reports a failure.
	IsError bool `json:"is_error,omitzero"`
	// Signature is opaque data that a provider wants back with a reasoning or
	// tool_call part; Provider says whose it is.
	Signature string `json:"signature,omitzero"`
	Provider  string `json:"provider,omitzero"`
}

// TextRange is a range of a document in lines and characters, in the position
// encoding that was negotiated (LSP, section Position).
type TextRange struct {
	Start Position `json:"start"`
	End   Position `json:"end"`
}

// Lines returns the first and the last line of the range, from 1. A range that ends
// before the first character of a line ends with the line before.
func (r TextRange) Lines() (first, last uint32) {
	first, last = r.Start.Line+1, r.End.Line+1
	if r.End.Character == 0 && last > first {
		last--
	}
	return first, last
}

// Position is a place in a document, from zero.
type Position struct {
	Line      uint32 `json:"line"`
	Character uint32 `json:"character"`
}

// Usage counts tokens and money. On a node it is what the provider reported for
// the call; on a session or branch it is the sum over its nodes.
type Usage struct {
	InputTokens     int64 `json:"input_tokens"`
	OutputTokens    int64 `json:"output_tokens"`
	CacheReadTokens int64 `json:"cache_read_tokens,omitzero"`
	// CacheWriteTokens, like CacheReadTokens, is part of InputTokens.
	CacheWriteTokens int64 `json:"cache_write_tokens,omitzero"`
	// ReasoningTokens is part of OutputTokens.
	ReasoningTokens int64 `json:"reasoning_tokens,omitzero"`
	// CostUSD is in dollars, by the prices that were configured or known.
	CostUSD float64 `json:"cost_usd,omitzero"`
	// Estimated marks counts that convls estimated because the provider sent none.
	Estimated bool `json:"estimated,omitzero"`
	// Calls is how many model calls are summed up.
	Calls int64 `json:"calls,omitzero"`
}

// Add returns the sum of u and v.
func (u Usage) Add(v Usage) Usage {
	u.InputTokens += v.InputTokens
	u.OutputTokens += v.OutputTokens
	u.CacheReadTokens += v.CacheReadTokens
	u.CacheWriteTokens += v.CacheWriteTokens
	u.ReasoningTokens += v.ReasoningTokens
	u.CostUSD += v.CostUSD
	u.Estimated = u.Estimated || v.Estimated
	u.Calls += v.Calls
	return u
}

// Node is one thing that happened in a conversation. It is written once, sealed,
// and never changes after that, but for redaction.
type Node struct {
	ID string `json:"id"`
	// Seq is the order in which the session's nodes were written.
	Seq  int64  `json:"seq"`
	Kind Kind   `json:"kind"`
	Role string `json:"role"`
	// Predecessor is the node that this one follows on the chain; for a summary,
	// the node that its covered segment follows.
	Predecessor string `json:"predecessor,omitzero"`
	// Caller is the node that invoked this one.
	Caller string `json:"caller,omitzero"`
	// Depth is the number of chain nodes before this one: 0 for the root.
	Depth   int64  `json:"depth"`
	Status  Status `json:"status"`
	Content []Part `json:"content"`
	// Prompt is what a call (convls/exec) was asked; content is its answer.
	Prompt     []Part     `json:"prompt,omitempty"`
	Model      string     `json:"model,omitzero"`
	CreatedAt  time.Time  `json:"created_at"`
	DurationMS int64      `json:"duration_ms,omitzero"`
	StopReason string     `json:"stop_reason,omitzero"`
	Error      *NodeError `json:"error,omitzero"`
	Usage      *Usage     `json:"usage,omitzero"`
	// Reads are the ids whose content entered the model call, in order; sent when
	// asked for.
	Reads []string `json:"reads,omitempty"`
	// Call tells how the model was called; sent when provenance is asked for.
	Call *CallRecord `json:"call,omitzero"`
	// Truncated says that content was cut to max_bytes.
	Truncated bool           `json:"truncated,omitzero"`
	Pinned    bool           `json:"pinned,omitzero"`
	Redacted  bool           `json:"redacted,omitzero"`
	Metadata  map[string]Raw `json:"metadata,omitzero"`

	// The rest belongs to summaries.

	// CoversIDs are the ids of exactly the chain nodes that a summary stands for,
	// in order. CoversCount comes instead where there are more than 1,000.
	CoversIDs   []string `json:"covers_ids,omitzero"`
	CoversCount int64    `json:"covers_count,omitzero"`
	// SupersededSummary marks a summary that is retired: nothing reads it.
	SupersededSummary bool `json:"superseded_summary,omitzero"`
	// Void marks a summary that lost a covered node to a delete or a redaction.
	Void       bool        `json:"void,omitzero"`
	Manifest   Raw         `json:"manifest,omitzero"`
	Provenance *Provenance `json:"provenance,omitzero"`
}

// CallRecord tells what a model was asked with, so that a call can be audited
// and replayed: with reads it names everything that entered the prompt.
type CallRecord struct {
	Model        string `json:"model"`
	SystemSHA256 string `json:"system_sha256,omitzero"`
	ToolsSHA256  string `json:"tools_sha256,omitzero"`
	// SummaryID is the summary that applied, if any.
	SummaryID     string `json:"summary_id,omitzero"`
	PolicyVersion string `json:"policy_version,omitzero"`
	Parameters    Raw    `json:"parameters,omitzero"`
	Attempts      int    `json:"attempts,omitzero"`
}

// Provenance tells how a summary came to be.
type Provenance struct {
	CompactionID string  `json:"compaction_id,omitzero"`
	Trigger      Trigger `json:"trigger,omitzero"`
	Policy       string  `json:"policy,omitzero"`
	// PolicyVersion names the rules by which the summary was cut, reduced and checked.
	PolicyVersion string `json:"policy_version,omitzero"`
	// Model wrote the summary: provider/name, or extractive.
	Model string `json:"model,omitzero"`
	// Parameters are the request's and the cut's.
	Parameters Raw `json:"parameters,omitzero"`
	// PromptSHA256 is a digest of the summariser's instructions.
	PromptSHA256 string `json:"prompt_sha256,omitzero"`
	// SourceSHA256 is a digest of the messages that this summary added to the one
	// before it, and of that one's digest; docs/compaction.md has the bytes.
	SourceSHA256 string `json:"source_sha256,omitzero"`
	// PreviousID is the summary that was chained, and FromID the first of the nodes
	// that were read as they are.
	PreviousID string `json:"previous_id,omitzero"`
	FromID     string `json:"from_id,omitzero"`
	// Rejected is how many of the model's changes the reducer did not accept.
	Rejected int `json:"rejected,omitzero"`
	// Edited says that a person edited it before it was committed.
	Edited       bool   `json:"edited,omitzero"`
	TokensBefore int64  `json:"tokens_before,omitzero"`
	TokensAfter  int64  `json:"tokens_after,omitzero"`
	DurationMS   int64  `json:"duration_ms,omitzero"`
	Usage        *Usage `json:"usage,omitzero"`
	FellBack     bool   `json:"fell_back,omitzero"`
}

// Row is a node as a line of the transcript or of the graph.
type Row struct {
	Node
	// Preview is the beginning of the text, 200 characters at most; of an attach node
	// that of its source.
	Preview string `json:"preview"`
	// Source is what an attach node points at.
	Source *GraphSource `json:"source,omitzero"`
	OnHead bool         `json:"on_head"`
	// InContext says that the node's content is in the context view of head.
	InContext bool `json:"in_context"`
	Ghost     bool `json:"ghost,omitzero"`
	// CoveredBy is the summary that stands for this node in the view.
	CoveredBy string    `json:"covered_by,omitzero"`
	Fold      *Fold     `json:"fold,omitzero"`
	Siblings  *Siblings `json:"siblings,omitzero"`
	// Actions are the commands that are allowed on the node now.
	Actions []string `json:"actions"`
	// Branch is the name that refers to this node, if any.
	Branch string `json:"branch,omitzero"`
}

// Fold is the state of a summary's capsule or of a turn's subtree.
type Fold struct {
	// State is none, folded, expanded, inert, superseded, undone or void.
	State string `json:"state"`
	Count int64  `json:"count"`
}

// Siblings says which of several continuations of the same predecessor a node
// is, so that an editor can show 2/3 and step through them.
type Siblings struct {
	// Index counts from 1, in the order they were written.
	Index int      `json:"index"`
	Count int      `json:"count"`
	Prev  *Sibling `json:"prev,omitzero"`
	Next  *Sibling `json:"next,omitzero"`
}

// Sibling is a neighbour and the tip that was last used below it.
type Sibling struct {
	ID  string `json:"id"`
	Tip string `json:"tip"`
}
