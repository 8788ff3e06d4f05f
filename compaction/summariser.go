package compaction

import (
	"context"
	"time"

	"convls/compaction/manifest"
	"convls/protocol"
)

// Extractive is the name of the summariser that is built in.
const Extractive = "extractive"

// Summariser proposes what a summary should hold of some messages. It can not
// write the summary: its answer is a list of changes to a manifest, and what does
// not hold against the messages is not taken in.
type Summariser interface {
	// Name is recorded with the summary: provider/name, or extractive.
	Name() string
	// Room returns how many tokens of messages one call takes beside a previous
	// manifest; 0 for any number. It is an error if none fit.
	Room(previous *manifest.Manifest, instructions string) (int64, error)
	// Count counts tokens as the summariser does.
	Count(text string) int
	// Summarise asks once. An answer that is none is an [*Refusal], with the answer as
	// it came; the answer counts as used in both cases.
	Summarise(ctx context.Context, q Question) (Answer, error)
	// Record tells, for the summary's provenance, what the summariser was asked with:
	// a digest of its instructions, and its parameters.
	Record() (promptSHA256 string, parameters map[string]any)
}

// Question is what a summariser is asked.
type Question struct {
	// Previous is the manifest so far, nil at first.
	Previous *manifest.Manifest
	// Messages are what it is to take in, in order.
	Messages []manifest.Message
	// Instructions are a person's.
	Instructions string
	// MaxTokens is what the whole summary may have.
	MaxTokens int
	// Repair is set in the second round: what was wrong with the first answer.
	Repair *Repair
}

// Repair asks for a better answer.
type Repair struct {
	Answer  string
	Problem string
}

// Answer is what a summariser says.
type Answer struct {
	// Text is the answer as it came.
	Text    string
	Changes manifest.Changes
	Usage   protocol.Usage
}

// Reason says why a summary was refused; it is the reason in the error's data.
type Reason string

// Why a summary is refused.
const (
	ReasonEmpty          Reason = "empty"           // Nothing, or white space.
	ReasonSkeleton       Reason = "skeleton"        // Headings without content.
	ReasonCut            Reason = "cut"             // The answer reached its length limit.
	ReasonScratch        Reason = "scratch"         // The model's private notes.
	ReasonInvalid        Reason = "invalid_schema"  // Not what the schema asks for.
	ReasonUnknownSources Reason = "unknown_sources" // No change holds against the messages.
	ReasonNotSmaller     Reason = "not_smaller"     // As large as what it replaces.
	ReasonOverBudget     Reason = "over_budget"     // Over the share of the window.
)

// Refusal is a summary that failed a check. Nothing was changed.
type Refusal struct {
	Reason  Reason
	Message string
	// Repairable says that the summariser may be asked again.
	Repairable bool
}

// Error returns the message.
func (e *Refusal) Error() string { return e.Message }

// hint says what a person can do next.
func (e *Refusal) hint() string {
	switch e.Reason {
	case ReasonNotSmaller:
		return "cover more messages, or compact later, when there is more to save"
	case ReasonOverBudget:
		return "" // the message says it
	}
	return "try again, or set compaction.model to another model or to extractive"
}

// extractive summarises by rule: it proposes nothing, because what the rules find
// is merged into every manifest whoever summarises.
type extractive struct{}

// NewExtractive returns the summariser that is built in: offline, deterministic,
// free.
func NewExtractive() Summariser { return extractive{} }

func (extractive) Name() string { return Extractive }

func (extractive) Room(*manifest.Manifest, string) (int64, error) { return 0, nil }

func (extractive) Count(text string) int { return len(text) / 4 }

func (extractive) Summarise(ctx context.Context, _ Question) (Answer, error) {
	return Answer{}, ctx.Err()
}

func (extractive) Record() (string, map[string]any) { return "", nil }

// callTimeout is how long one call of a summariser may take, if no setting says
// otherwise.
const callTimeout = 2 * time.Minute
