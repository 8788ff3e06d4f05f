package protocol

import "time"

// EventType says what happened.
type EventType string

// The types of events.
const (
	EventNodeAppended    EventType = "node_appended"          // A node was written; a reply begins open.
	EventNodeSealed      EventType = "node_sealed"            // A node reached its final state.
	EventTurnStarted     EventType = "turn_started"           // A turn was admitted and its first model call begins: `reply_id`, `user_id`.
	EventTurnQueued      EventType = "turn_queued"            // A message waits behind a running turn: `reply_id`, `position`.
	EventTurnRetrying    EventType = "turn_retrying"          // A model call failed before its first byte and is tried again: `after_ms`, `attempt`.
	EventTurnFinished    EventType = "turn_finished"          // A turn ended with a complete reply: `node_id`, `status`, `bytes`, `usage`, `budget`.
	EventTurnFailed      EventType = "turn_failed"            // A turn ended with an error: `node_id`, `error`.
	EventTurnCancelled   EventType = "turn_cancelled"         // A turn was cancelled; the reply keeps the text it had.
	EventTurnInterrupted EventType = "turn_interrupted"       // The process died during a turn; the reply keeps the text it had.
	EventQueueChanged    EventType = "queue_changed"          // A waiting message was taken out, held, or started.
	EventHeadMoved       EventType = "head_moved"             // HEAD is elsewhere: `head`, `previous`, `cause`.
	EventBranchChanged   EventType = "branch_changed"         // A branch was made, named or extended: `branch`, `tip`.
	EventBranchDeleted   EventType = "branch_deleted"         // The exclusive part of a branch is gone: `tip`, `count`.
	EventSessionCreated  EventType = "session_created"        // A session was made.
	EventSessionChanged  EventType = "session_changed"        // Title, workspace, policy or settings of a session changed.
	EventSessionDeleted  EventType = "session_deleted"        // A session is gone.
	EventNodePinned      EventType = "node_pinned"            // A node was pinned: `node_id`.
	EventNodeUnpinned    EventType = "node_unpinned"          // A pin was taken away: `node_id`.
	EventNodeRedacted    EventType = "node_redacted"          // A node's content was replaced by a tombstone: `node_id`.
	EventModelChanged    EventType = "model_changed"          // A session has another model: `model`.
	EventGraphChanged    EventType = "graph_changed"          // What the graph shows changed otherwise: ask for it again.
	EventSummaryActive   EventType = "summary_activated"      // Another summary is active, or none: `active_summaries`.
	EventLocalCommand    EventType = "local_command"          // A command had an outcome that other windows should show: `text`.
	EventCompactStarted  EventType = "compaction_started"     // A compaction began: `compaction_id`, `trigger`, `tokens_before`.
	EventCompactFinished EventType = "compaction_finished"    // A summary was committed: `compaction_id`, `summary_id`, `covered`, `tokens_before`, `tokens_after`.
	EventCompactFailed   EventType = "compaction_failed"      // A compaction ended without a change: `compaction_id`, `error`.
	EventCompactCancel   EventType = "compaction_cancelled"   // A compaction was cancelled, without a change: `compaction_id`.
	EventCompactAdvised  EventType = "compaction_recommended" // The context fills 70 % of the window or more: `percent`, `budget`.
)

// Origin says which client and request caused a change.
type Origin struct {
	ClientID  string `json:"client_id,omitzero"`
	RequestID string `json:"request_id,omitzero"`
}

// Event is the parameters of convls/event: a durable fact about a session, in
// order, replayable from its cursor. Only SessionID, Cursor, Type, At and
// Revision are always there.
type Event struct {
	SessionID string    `json:"session_id"`
	Cursor    string    `json:"cursor"`
	Type      EventType `json:"type"`
	At        time.Time `json:"at"`
	// Revision grows with every change of what the graph shows.
	Revision int64   `json:"revision"`
	Origin   *Origin `json:"origin,omitzero"`

	// Node comes with node_appended and node_sealed, read from the ledger when the
	// event is sent; it is absent if the node was deleted since.
	Node    *Node  `json:"node,omitzero"`
	NodeID  string `json:"node_id,omitzero"`
	UserID  string `json:"user_id,omitzero"`
	ReplyID string `json:"reply_id,omitzero"`
	Status  Status `json:"status,omitzero"`
	// Bytes is how much text a finished reply has.
	Bytes  int64      `json:"bytes,omitzero"`
	Usage  *Usage     `json:"usage,omitzero"`
	Budget *Budget    `json:"budget,omitzero"`
	Error  *NodeError `json:"error,omitzero"`
	// Position is the place in the queue, from 1.
	Position int   `json:"position,omitzero"`
	AfterMS  int64 `json:"after_ms,omitzero"`
	Attempt  int   `json:"attempt,omitzero"`

	// Head, Previous and Cause come with head_moved.
	Head     string `json:"head,omitzero"`
	Previous string `json:"previous,omitzero"`
	Cause    string `json:"cause,omitzero"`
	// Branch and Tip come with branch_changed and branch_deleted.
	Branch string `json:"branch,omitzero"`
	Tip    string `json:"tip,omitzero"`
	Count  int64  `json:"count,omitzero"`
	Model  string `json:"model,omitzero"`
	Text   string `json:"text,omitzero"`

	CompactionID string   `json:"compaction_id,omitzero"`
	SummaryID    string   `json:"summary_id,omitzero"`
	Summaries    []string `json:"active_summaries,omitempty"`
	Trigger      Trigger  `json:"trigger,omitzero"`
	Covered      int64    `json:"covered,omitzero"`
	TokensBefore int64    `json:"tokens_before,omitzero"`
	TokensAfter  int64    `json:"tokens_after,omitzero"`
	DurationMS   int64    `json:"duration_ms,omitzero"`
	UsedPrevious bool     `json:"used_previous_summary,omitzero"`
	FellBack     bool     `json:"fell_back,omitzero"`
	Percent      float64  `json:"percent,omitzero"`
}

// DeltaKind says what a delta adds to.
type DeltaKind string

// The kinds of deltas.
const (
	DeltaText      DeltaKind = "text"
	DeltaReasoning DeltaKind = "reasoning"
	DeltaToolArgs  DeltaKind = "tool_args"
)

// Delta is the parameters of convls/delta: text that arrived, live only. A
// client that misses some sees a gap in Offset and asks convls/node/get.
type Delta struct {
	SessionID string    `json:"session_id"`
	NodeID    string    `json:"node_id"`
	Part      int       `json:"part"`
	Kind      DeltaKind `json:"kind"`
	// Offset is the bytes of the part before this text.
	Offset int64  `json:"offset"`
	Text   string `json:"text"`
}
