package compaction

import (
	"fmt"
	"strings"

	"convls/projection"
	"convls/protocol"
)

// check refuses a summary that does not hold, and measures it (design.md, rule 6;
// faults 2-5, 11, 15).
func (e *Engine) check(r *run, out *outcome) error {
	p := r.plan
	said := strings.TrimSpace(strings.TrimPrefix(out.text, protocol.SummaryMarker))
	switch {
	case said == "":
		return &Refusal{Reason: ReasonEmpty, Message: "the summary is empty"}
	case out.manifest.Empty() && strings.TrimSpace(out.manifest.Narrative) == "" && len(out.manifest.Pinned) == 0:
		return &Refusal{Reason: ReasonSkeleton, Message: "the summary has headings and nothing under them"}
	}
	out.tokens = int64(r.counter.Parts(projection.FrameSummary(p.count(), text(out.text))))
	after := p.before - p.covered + out.tokens
	switch {
	case out.tokens >= p.replaced:
		return &Refusal{Reason: ReasonNotSmaller, Message: fmt.Sprintf("the summary has %d tokens and would replace %d: nothing would be saved", out.tokens, p.replaced)}
	case r.trigger == protocol.TriggerAuto || r.trigger == protocol.TriggerReactive:
		return p.fits(after)
	}
	return nil
}

// fits refuses a summary that leaves the context at the trigger, where the next
// model call would ask for another one: but not where the context did not fit at
// all before, and does now.
func (p *plan) fits(after int64) error {
	b := p.budget
	if after+p.waiting < b.TriggerAt || p.before+p.waiting > b.Limit && after+p.waiting < b.Limit {
		return nil
	}
	return &Refusal{Reason: ReasonOverBudget, Message: fmt.Sprintf(
		"the context would still have %d tokens of %d: what can not be summarised (the system prompt, tools and the newest messages) is too large. Send a shorter message, take tools or the system prompt away, or use a model with a larger window",
		after+p.waiting, b.Limit)}
}

// count is how many chain nodes the summary will stand for.
func (p *plan) count() uint64 { return p.last.Depth - p.first.Depth + 1 }
