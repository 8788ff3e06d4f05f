package protocol

import (
	"errors"
	"fmt"
	"time"
)

// Code names why a request was refused, or why a node failed. Clients branch on
// it; the message beside it is for people.
type Code string

// The codes of JSON-RPC errors with code RequestFailed (-32803) and of the
// errors on failed nodes.
const (
	CodeStaleHead          Code = "stale_head"            // HEAD is not where `expected_head` says: read the data, then decide again.
	CodeUnknownSession     Code = "unknown_session"       // No session has this id.
	CodeUnknownNode        Code = "unknown_node"          // The session has no node with this id.
	CodeUnknownBranch      Code = "unknown_branch"        // No branch has this name or tip.
	CodeUnknownSummary     Code = "unknown_summary"       // The session has no summary with this id.
	CodeUnknownDraft       Code = "unknown_draft"         // The draft does not exist, or expired.
	CodeUnknownModel       Code = "unknown_model"         // No provider that is configured has this model.
	CodeNotAChainNode      Code = "not_a_chain_node"      // The node is off the chain (a tool, a call, a summary, a notice) and can not be used so.
	CodeIDConflict         Code = "id_conflict"           // The `request_id` or node id was used before with other content.
	CodeNameConflict       Code = "name_conflict"         // Another branch has this name.
	CodeConfirmRequired    Code = "confirm_required"      // The request destroys `count` nodes: send it again with `confirm`.
	CodeTurnRunning        Code = "turn_running"          // A running turn would lose its ground: cancel it first.
	CodeCompactionRunning  Code = "compaction_running"    // A compaction of this spine is under way.
	CodeNothingToCompact   Code = "nothing_to_compact"    // The context has fewer than four entries.
	CodeSummaryRefused     Code = "summary_refused"       // The summary failed a check (`reason`), and nothing was changed.
	CodeStaleCompaction    Code = "stale_compaction"      // The ledger changed under the compaction, and nothing was changed.
	CodeContextOverflow    Code = "context_overflow"      // The context does not fit the model's window.
	CodeProviderAuth       Code = "provider_auth"         // The key is missing or was rejected: see `reason`.
	CodeProviderRateLimit  Code = "provider_rate_limited" // The provider asks to slow down: see `retry_after_ms`.
	CodeProviderQuota      Code = "provider_quota"        // The account's quota or credit is used up.
	CodeProviderDown       Code = "provider_unavailable"  // The provider could not be reached, or failed on its side.
	CodeProviderRefused    Code = "provider_refused"      // The provider rejected the request for another reason.
	CodeBodyTooLarge       Code = "body_too_large"        // The request has more bytes than the provider takes.
	CodeStreamCut          Code = "stream_cut"            // The reply ended without a finish reason: it is incomplete.
	CodeStoreLocked        Code = "store_locked"          // Another process has the store: see `holder`.
	CodeStoreNewer         Code = "store_newer"           // The store was written by a newer convls: see `needs`.
	CodeStoreUnavailable   Code = "store_unavailable"     // The store can not be opened: the message says why and where.
	CodeStoreDamaged       Code = "store_damaged"         // A record could not be read (`node_id`); the rest of the store is usable.
	CodeDiskFull           Code = "disk_full"             // The disk is full, or nearly: nothing was written.
	CodeTooLarge           Code = "too_large"             // The message or its content passes a limit.
	CodeBusy               Code = "busy"                  // Too much is waiting: try again after `retry_after_ms`.
	CodeServerRestarted    Code = "server_restarted"      // The server was replaced while the request ran: its outcome is told by its `request_id`.
	CodeVersionMismatch    Code = "version_mismatch"      // Client and server have no protocol version in common.
	CodeNotSupported       Code = "not_supported"         // The server can not do this, or the client did not announce it.
	CodeImportRefused      Code = "import_refused"        // The source has a fault (`reason`), and nothing of it was stored.
	CodeToolRoundsExceeded Code = "tool_rounds_exceeded"  // The turn made as many model calls as `turn.max_tool_rounds` allows.
	CodeTurnCancelled      Code = "turn_cancelled"        // The turn was cancelled, or its branch was deleted meanwhile.

	// CodeInvalidParams is sent as JSON-RPC's own -32602: the parameters have a
	// wrong shape or a value out of range.
	CodeInvalidParams Code = "invalid_params"
	// CodeRequestCancelled is sent as LSP's -32800: the client itself cancelled.
	CodeRequestCancelled Code = "request_cancelled"
	// CodeInternal is sent as JSON-RPC's -32603: a defect of convls.
	CodeInternal Code = "internal"
)

// Error is a refusal that a client can act on. Every layer returns it, wrapped
// or not; server turns it into a JSON-RPC error with Data as its data member.
type Error struct {
	Code Code
	// Message says what was refused, why, and where it helps what to do next.
	Message string
	Data    ErrorData
	// Cause is kept for logs, never sent.
	Cause error
}

// ErrorData is the data member of a JSON-RPC error. Code and Retryable are
// always there; the rest belongs to single codes.
type ErrorData struct {
	Code      Code `json:"code"`
	Retryable bool `json:"retryable"`

	// Expected, Head, HeadCause and Origin belong to stale_head: what the client
	// believed, what HEAD is, and what moved it there.
	Expected  string  `json:"expected,omitzero"`
	Head      string  `json:"head,omitzero"`
	Cursor    string  `json:"cursor,omitzero"`
	HeadCause string  `json:"cause,omitzero"`
	Origin    *Origin `json:"origin,omitzero"`
	// Count belongs to confirm_required: how many nodes would go. It is left out if none
	// would: of a branch that has none by itself, only the name goes.
	Count int64 `json:"count,omitzero"`
	// RetryAfterMS belongs to provider_rate_limited and busy.
	RetryAfterMS int64 `json:"retry_after_ms,omitzero"`
	// Reason belongs to provider_auth (missing, rejected), import_refused and summary_refused.
	Reason string `json:"reason,omitzero"`
	// Holder belongs to store_locked: the process that has the store.
	Holder string `json:"holder,omitzero"`
	// Needs belongs to store_newer: the oldest program that may open the store.
	Needs string `json:"needs,omitzero"`
	// CompactionID belongs to compaction_running.
	CompactionID string `json:"compaction_id,omitzero"`
	// NodeID belongs to store_damaged and to errors about one node.
	NodeID string `json:"node_id,omitzero"`
	// Retry is false on version_mismatch: initialize must not be sent again.
	Retry *bool `json:"retry,omitzero"`
}

// Error returns the message.
func (e *Error) Error() string {
	if e.Cause != nil {
		return e.Message + ": " + e.Cause.Error()
	}
	return e.Message
}

// Unwrap returns the cause, so that errors.Is sees through an Error.
func (e *Error) Unwrap() error { return e.Cause }

// Errorf makes an [Error] with a formatted message.
func Errorf(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// CodeOf returns the code of the first [Error] in err's chain, or "" if there is
// none.
func CodeOf(err error) Code {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Code
	}
	return ""
}

// NodeError is the error of a node whose model call or tool failed, as it is
// stored and sent.
type NodeError struct {
	Code    Code   `json:"code"`
	Message string `json:"message"`
	// Reason belongs to summary_refused: the check that failed.
	Reason string `json:"reason,omitzero"`
	// Retryable says that the same request may succeed later without a change.
	Retryable    bool  `json:"retryable"`
	RetryAfterMS int64 `json:"retry_after_ms,omitzero"`
	// Hint says what the person can do next.
	Hint string `json:"hint,omitzero"`
}

// RetryAfter returns RetryAfterMS as a duration.
func (e *NodeError) RetryAfter() time.Duration {
	return time.Duration(e.RetryAfterMS) * time.Millisecond
}
