package protocol

import "time"

// SummaryMarker is the first line of a summary's content: it says that what
// follows was synthesised, and is nobody's own words.
const SummaryMarker = "[compacted checkpoint]"

// The compaction policies: rules which summaries a view consults. The summaries
// are stored alike under all, so that a session can change its policy at any time.
const (
	// PolicyRolling has one active summary, which every compaction replaces
	// (spec/compaction, section 1).
	PolicyRolling = "rolling"
	// PolicyPerBranch keeps every branch's own summary: of those that apply and were
	// not taken back, the one that covers most.
	PolicyPerBranch = "per-branch"
)

// Trigger says what began a compaction.
type Trigger string

// The triggers.
const (
	TriggerManual   Trigger = "manual"   // A person asked for it.
	TriggerAuto     Trigger = "auto"     // The context passed the trigger before a model call.
	TriggerReactive Trigger = "reactive" // The provider said that the context does not fit.
	TriggerRebuild  Trigger = "rebuild"  // A summary is made again from the covered nodes themselves.
	TriggerDraft    Trigger = "draft"    // A person committed a draft.
	TriggerImport   Trigger = "import"   // Another program made it, before it was imported.
)

// RunState is where a compaction stands.
type RunState string

// The states of a compaction. All but running are final.
const (
	RunRunning   RunState = "running"
	RunFinished  RunState = "finished"  // The summary is in the ledger.
	RunFailed    RunState = "failed"    // Nothing was changed: see `error`.
	RunCancelled RunState = "cancelled" // Nothing was changed.
	RunDrafted   RunState = "drafted"   // The summary waits as a draft: see `draft`.
)

// CompactionSpec says what to compact. Without any of it a run takes everything
// but the recent messages.
type CompactionSpec struct {
	// KeepRecentTokens stay verbatim, taken as given; 0 keeps the last node alone.
	// Without it the setting, or a share of the window, holds.
	KeepRecentTokens *int64 `json:"keep_recent_tokens,omitzero"`
	// Instructions tell the summariser what matters. They are the person's, and are
	// kept with the summary.
	Instructions string `json:"instructions,omitzero"`
	// UpToID is the last node to cover, FromID the first; both are included.
	UpToID string `json:"up_to_id,omitzero"`
	FromID string `json:"from_id,omitzero"`
}

// CompactionRunParams are the parameters of convls/compaction/run.
type CompactionRunParams struct {
	Mutation
	SessionID string `json:"session_id"`
	CompactionSpec
	// Draft writes nothing: the summary comes back for a person to edit and commit.
	Draft bool `json:"draft,omitzero"`
	// Wait answers when the run has ended; its progress is shown meanwhile.
	Wait          bool `json:"wait,omitzero"`
	WorkDoneToken Raw  `json:"workDoneToken,omitzero"`
}

// CompactionResult is how a compaction stands or ended.
type CompactionResult struct {
	CompactionID string   `json:"compaction_id"`
	State        RunState `json:"state"`
	SummaryID    string   `json:"summary_id,omitzero"`
	// Covered is how many chain nodes the summary stands for.
	Covered int64 `json:"covered,omitzero"`
	// TokensBefore and TokensAfter are those of the run's own branch, rendered with
	// the former summary and with the new one, without a message that waits for its
	// answer.
	TokensBefore int64 `json:"tokens_before,omitzero"`
	TokensAfter  int64 `json:"tokens_after,omitzero"`
	// RawTips are the tips of branches that the former summary stood in and the new
	// one does not: they render raw from now on.
	RawTips []string `json:"raw_tips,omitempty"`
	// Summariser wrote it: provider/name, or extractive, which reads no instructions.
	Summariser string           `json:"summariser,omitzero"`
	Error      *NodeError       `json:"error,omitzero"`
	Draft      *CompactionDraft `json:"draft,omitzero"`
	Cursor     string           `json:"cursor"`
}

// CompactionDraft is a summary that is not in the ledger yet. Drafts are kept in
// memory: the server's end, or their expiry, ends them.
type CompactionDraft struct {
	DraftID string `json:"draft_id"`
	// Text is the summary as the model would read it, Manifest what it is made from.
	Text     string `json:"text"`
	Manifest Raw    `json:"manifest"`
	// Head is the tip of the branch that it was made on.
	Head         string    `json:"head"`
	Covered      int64     `json:"covered"`
	TokensBefore int64     `json:"tokens_before"`
	TokensAfter  int64     `json:"tokens_after"`
	ExpiresAt    time.Time `json:"expires_at"`
}

// CompactionCommitParams are the parameters of convls/compaction/commit.
type CompactionCommitParams struct {
	Mutation
	SessionID string `json:"session_id"`
	DraftID   string `json:"draft_id"`
	// Manifest replaces the draft's, checked like any other. Text replaces the prose;
	// without it the prose is rendered from the manifest.
	Manifest Raw     `json:"manifest,omitzero"`
	Text     *string `json:"text,omitzero"`
}

// CompactionDiscardParams are the parameters of convls/compaction/discard.
type CompactionDiscardParams struct {
	Mutation
	SessionID string `json:"session_id"`
	DraftID   string `json:"draft_id"`
}

// CompactionDiscardResult is the reply to convls/compaction/discard.
type CompactionDiscardResult struct {
	DraftID string `json:"draft_id"`
}

// CompactionPreviewParams are the parameters of convls/compaction/preview.
type CompactionPreviewParams struct {
	SessionID string `json:"session_id"`
	CompactionSpec
	// Limit is how many covered ids the reply holds: 1,000 if it is left out, 10,000
	// at most.
	Limit int `json:"limit,omitzero"`
	// Cursor goes on with the covered ids of a former reply.
	Cursor string `json:"cursor,omitzero"`
}

// CompactionPreview says what a run would do. No model is called.
type CompactionPreview struct {
	Head string `json:"head"`
	// CoveredIDs are a page of what the summary would stand for, in order; KeptIDs
	// the chain nodes that stay, the newest 1,000 at most.
	CoveredIDs []string `json:"covered_ids"`
	Covered    int64    `json:"covered"`
	// NewlyCovered are those that no earlier summary covers.
	NewlyCovered int64    `json:"newly_covered"`
	KeptIDs      []string `json:"kept_ids"`
	// TokensBefore is measured, TokensAfter an estimate.
	TokensBefore int64 `json:"tokens_before"`
	TokensAfter  int64 `json:"tokens_after"`
	// Summariser is what would write the summary, in how many calls; the built-in one
	// needs none, and what it would write is measured and not estimated.
	Summariser string `json:"summariser"`
	Calls      int    `json:"calls"`
	// PreviousID is the summary that would be chained and retired.
	PreviousID string `json:"previous_id,omitzero"`
	// WhyNot is why a run would change nothing; empty if it would.
	WhyNot string `json:"why_not,omitzero"`
	// Next is the cursor of the next page of covered ids.
	Next string `json:"next,omitzero"`
}

// CompactionCancelParams are the parameters of convls/compaction/cancel.
type CompactionCancelParams struct {
	Mutation
	SessionID string `json:"session_id"`
	// CompactionID is the run to cancel; the session's present one if it is left out.
	CompactionID string `json:"compaction_id,omitzero"`
}

// SummaryInfo describes one summary of a session.
type SummaryInfo struct {
	SummaryID string    `json:"summary_id"`
	CreatedAt time.Time `json:"created_at"`
	// Active says that a view can stand on it now: under rolling the one that the
	// session names, under per-branch every one that a person has not undone.
	Active bool `json:"active"`
	// Applies says that it stands in the view of HEAD.
	Applies bool `json:"applies"`
	Void    bool `json:"void,omitzero"`
	// VoidReason says why.
	VoidReason string `json:"void_reason,omitzero"`
	// Undone says that a person took it back, and that no later one took its place.
	Undone  bool   `json:"undone,omitzero"`
	FirstID string `json:"first_id"`
	LastID  string `json:"last_id"`
	Covered int64  `json:"covered"`
	// Tokens are the summary's own.
	Tokens     int64       `json:"tokens"`
	Preview    string      `json:"preview"`
	Provenance *Provenance `json:"provenance,omitzero"`
}

// CompactionListResult is the reply to convls/compaction/list: newest first.
type CompactionListResult struct {
	Policy          string        `json:"policy"`
	Summaries       []SummaryInfo `json:"summaries"`
	ActiveSummaries []string      `json:"active_summaries"`
	// Undo and Redo are what convls/compaction/activate takes to go a step back, or
	// forward, from the summary that stands in the view of HEAD. Left out where there
	// is no such step.
	Undo *SummaryStep `json:"undo,omitzero"`
	Redo *SummaryStep `json:"redo,omitzero"`
	// Running is the run that is under way.
	Running *RunningCompaction `json:"running,omitzero"`
}

// SummaryStep is a move from one summary to another.
type SummaryStep struct {
	// SummaryID is what stands after it; empty for none: every message is read again.
	SummaryID string `json:"summary_id,omitzero"`
	// Covered is how many chain nodes the summary stands for that is taken back, or
	// taken up.
	Covered int64 `json:"covered"`
}

// RunningCompaction is a compaction that is under way.
type RunningCompaction struct {
	SessionID    string    `json:"session_id"`
	CompactionID string    `json:"compaction_id"`
	Trigger      Trigger   `json:"trigger"`
	Head         string    `json:"head"`
	StartedAt    time.Time `json:"started_at"`
	ElapsedMS    int64     `json:"elapsed_ms"`
	// Call and Calls are the summariser's progress, from 1.
	Call  int `json:"call"`
	Calls int `json:"calls"`
}

// CompactionActivateParams are the parameters of convls/compaction/activate.
type CompactionActivateParams struct {
	Mutation
	SessionID string `json:"session_id"`
	// SummaryID is null, or left out, for none: the branch renders raw.
	SummaryID string `json:"summary_id,omitzero"`
}

// CompactionActivateResult is the reply to convls/compaction/activate.
type CompactionActivateResult struct {
	ActiveSummaries []string `json:"active_summaries"`
	Cursor          string   `json:"cursor"`
}

// SummaryParams name a summary.
type SummaryParams struct {
	SessionID string `json:"session_id"`
	SummaryID string `json:"summary_id"`
}

// CompactionVerifyResult is the reply to convls/compaction/verify. The fingerprint
// shows which messages a summary was made from; it says nothing of its quality.
type CompactionVerifyResult struct {
	SummaryID string `json:"summary_id"`
	// OK says that the covered messages are those that were summarised.
	OK bool `json:"ok"`
	// Recorded and Computed are SHA-256, hexadecimal.
	Recorded string `json:"recorded"`
	Computed string `json:"computed"`
	// Messages is how many were read.
	Messages int64 `json:"messages"`
	// Problems are what is wrong with it: a source that was redacted or deleted, a
	// manifest that does not hold.
	Problems []string `json:"problems"`
}

// CompactionRebuildParams are the parameters of convls/compaction/rebuild.
type CompactionRebuildParams struct {
	Mutation
	SessionID    string `json:"session_id"`
	SummaryID    string `json:"summary_id"`
	Instructions string `json:"instructions,omitzero"`
	Draft        bool   `json:"draft,omitzero"`
	Wait         bool   `json:"wait,omitzero"`

	WorkDoneToken Raw `json:"workDoneToken,omitzero"`
}

// CompactionCoversParams are the parameters of convls/compaction/covers.
type CompactionCoversParams struct {
	SessionID string `json:"session_id"`
	SummaryID string `json:"summary_id"`
	// Limit is 1,000 if it is left out, 10,000 at most.
	Limit  int    `json:"limit,omitzero"`
	Cursor string `json:"cursor,omitzero"`
}

// CompactionCoversResult is the reply to convls/compaction/covers.
type CompactionCoversResult struct {
	CoversIDs []string `json:"covers_ids"`
	Count     int64    `json:"count"`
	Next      string   `json:"next,omitzero"`
}
