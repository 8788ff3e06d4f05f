package compaction

import (
	"fmt"

	"convls/projection"
	"convls/protocol"
	"convls/store"
)

// unit is a chain node with what it called: no cut divides it, so a call never
// parts from its result.
type unit struct {
	node   store.Skeleton
	tokens int64
	// open says that it, or a call of it, is still being written.
	open bool
}

// plan is what a compaction is about to cover.
type plan struct {
	// head is the tip of the branch that is compacted.
	head store.Skeleton
	// previous is the summary that stands in the branch now; it is chained, and the
	// new one takes its place. nil if the branch renders raw.
	previous *projection.Substitution
	// first and last are the ends of the covered stretch. from is the first node that
	// previous does not cover: what the summariser reads begins there.
	first, last, from store.Skeleton
	// units are the chain nodes after previous, oldest first, or all but the root;
	// those before cut are covered.
	units []unit
	cut   int
	// turn is the user node of the turn that the cut divides, if it divides one: its
	// text is carried on word for word.
	turn store.Skeleton

	// asides are the nodes of exposed calls and spawned turns that were read.
	asides []store.Seq

	budget protocol.Budget
	// before is the tokens of the branch's view, and covered those that the new
	// summary takes out of it, both without a message that waits for its answer.
	before, covered int64
	// replaced is what the summary has to be smaller than: covered, and for a rebuild,
	// where a summary stands in the view already, the messages themselves.
	replaced int64
	// waiting is the tokens of the message that waits for its answer.
	waiting int64
	// active and removals are what the ledger's state was.
	active   store.Seq
	removals uint64
}

// request says what to plan.
type request struct {
	spec protocol.CompactionSpec
	// head is the tip; the session's HEAD if it is zero.
	head store.Skeleton
	// trigger is what asks.
	trigger protocol.Trigger
	// fixed is the tokens of a model call beside its view: tools.
	fixed int64
}

// nothing says why there is nothing to compact.
func nothing(format string, args ...any) error {
	return protocol.Errorf(protocol.CodeNothingToCompact, format, args...)
}

// fewest is how many entries a context has at least that is compacted: the summary
// and the chain nodes count (spec/compaction, section 4).
const fewest = 4

// planRun chooses what to cover. It reads the view that the model reads, so that
// what a summary covers already is never summarised again (spec/compaction,
// section 4.1).
func planRun(r *store.Reader, o projection.Options, budget protocol.Budget, settings protocol.CompactionSettings, req request) (*plan, error) {
	if err := checkSpec(req.spec); err != nil {
		return nil, err
	}
	for _, id := range []string{req.spec.UpToID, req.spec.FromID} {
		if id == "" {
			continue
		}
		if _, err := r.Lookup(id); err != nil {
			return nil, err
		}
	}
	o.Head = req.head
	view, err := projection.Render(r, o)
	if err != nil {
		return nil, err
	}
	p := &plan{head: view.Head, previous: view.Substitution, budget: budget, active: r.State.Active, removals: r.State.Removals}
	before, fixed, err := p.read(r, view, req.fixed)
	if err != nil {
		return nil, err
	}
	entries := before + len(p.units)
	if p.previous != nil {
		entries++
	}
	if entries < fewest {
		return p, nothing("there are %d messages, and %d at least are needed for a summary to save anything", entries, fewest)
	}
	start, err := p.start(r, req.spec)
	if err != nil {
		return p, err
	}
	if err := p.chooseCut(r, settings, req, start, fixed); err != nil {
		return p, err
	}
	for _, u := range p.units[start:p.cut] {
		p.covered += u.tokens
	}
	p.replaced = p.covered
	return p, nil
}

func checkSpec(s protocol.CompactionSpec) error {
	const mostTokens = 100_000_000
	if s.KeepRecentTokens != nil && (*s.KeepRecentTokens < 0 || *s.KeepRecentTokens > mostTokens) {
		return protocol.Errorf(protocol.CodeInvalidParams, "keep_recent_tokens is 0 or more, and %d at most, not %d", mostTokens, *s.KeepRecentTokens)
	}
	if s.KeepRecentTokens != nil && s.UpToID != "" {
		return protocol.Errorf(protocol.CodeInvalidParams, "keep_recent_tokens and up_to_id both say where the summary ends: give one of them")
	}
	const most = 8 << 10
	if len(s.Instructions) > most {
		return protocol.Errorf(protocol.CodeInvalidParams, "instructions have %d bytes and can have %d", len(s.Instructions), most)
	}
	return nil
}

// read groups the entries of a view into units. It returns how many chain nodes
// stand before the summary, and the tokens that no cut can save.
func (p *plan) read(r *store.Reader, view *projection.Context, fixed int64) (before int, _ int64, err error) {
	p.before = fixed
	var units []unit
	for _, e := range view.Entries {
		p.before += int64(e.Tokens)
		switch e.Why {
		case protocol.WhySystem:
			fixed += int64(e.Tokens)
		case protocol.WhySummary:
			p.covered += int64(e.Tokens)
			before = len(units)
			for _, u := range units {
				fixed += u.tokens
			}
			units = nil
		case protocol.WhySubtree:
			if len(units) == 0 {
				fixed += int64(e.Tokens) // it hangs off the root, which always stays
				continue
			}
			u := &units[len(units)-1]
			u.tokens += int64(e.Tokens)
			u.open = u.open || e.Node.Status == protocol.StatusOpen
		default:
			units = append(units, unit{node: e.Node, tokens: int64(e.Tokens), open: e.Node.Status == protocol.StatusOpen})
		}
	}
	p.units = units
	// A reply without content has no entry, and is open while it is written.
	if n := len(units); n > 0 && view.Head.Seq != units[n-1].node.Seq && view.Head.Status == protocol.StatusOpen {
		on, err := r.IsAncestor(units[n-1].node, view.Head)
		if err == nil && on {
			p.units = append(p.units, unit{node: view.Head, open: true})
		}
		return before, fixed, err
	}
	if n := len(units); n > 0 && units[n-1].node.Kind == protocol.KindUser {
		p.waiting = units[n-1].tokens
		p.before -= p.waiting
	}
	return before, fixed, nil
}

// start sets the first node to cover and returns its place among the units.
func (p *plan) start(r *store.Reader, s protocol.CompactionSpec) (int, error) {
	if len(p.units) == 0 {
		return 0, nothing("everything but the summary is gone from the context already")
	}
	if p.previous != nil {
		if s.FromID != "" {
			return 0, protocol.Errorf(protocol.CodeInvalidParams, "the branch has the summary %s, which a new one always takes in: leave from_id out, or undo that summary first", p.previous.Summary.ID)
		}
		p.first = p.previous.First
		from, err := r.AncestorAt(p.head, p.previous.Last.Depth+1)
		p.from = from
		return 0, err
	}
	if s.FromID == "" {
		first, err := r.AncestorAt(p.head, 1)
		p.first, p.from = first, first
		return 0, err
	}
	at, err := p.place(r, "from_id", s.FromID)
	if err != nil {
		return 0, err
	}
	p.first, p.from = p.units[at].node, p.units[at].node
	return at, nil
}

// place returns the place of the unit that a node belongs to.
func (p *plan) place(r *store.Reader, param, id string) (int, error) {
	s, err := r.Lookup(id)
	if err != nil {
		return 0, err
	}
	if s, err = r.Owner(s); err != nil {
		return 0, err
	}
	for i, u := range p.units {
		if u.node.Seq == s.Seq {
			return i, nil
		}
	}
	if p.previous != nil {
		if covered, err := r.IsAncestor(s, p.previous.Last); err != nil || covered {
			return 0, protocol.Errorf(protocol.CodeInvalidParams, "%s: node %q is covered already by the summary %s", param, id, p.previous.Summary.ID)
		}
	}
	return 0, protocol.Errorf(protocol.CodeInvalidParams, "%s: node %q is not a message of the branch that ends at %q", param, id, p.head.ID)
}

// chooseCut sets the last node to cover.
func (p *plan) chooseCut(r *store.Reader, settings protocol.CompactionSettings, req request, start int, fixed int64) error {
	if req.spec.UpToID != "" {
		at, err := p.place(r, "up_to_id", req.spec.UpToID)
		if err != nil {
			return err
		}
		switch {
		case at < start:
			return protocol.Errorf(protocol.CodeInvalidParams, "up_to_id comes before from_id")
		case at == len(p.units)-1:
			return protocol.Errorf(protocol.CodeInvalidParams, "up_to_id is the newest message, which always stays: name one before it")
		}
		for _, u := range p.units[start : at+1] {
			if u.open {
				return protocol.Errorf(protocol.CodeTurnRunning, "node %q is still being written: wait for its turn, or end before it", u.node.ID)
			}
		}
		p.cut = at + 1
	} else {
		keep := keepRecent(p.budget, settings)
		switch {
		case req.spec.KeepRecentTokens != nil:
			keep = *req.spec.KeepRecentTokens
		case req.trigger == protocol.TriggerManual:
			// Whoever asks for a summary wants one, also while all would fit.
			keep = min(keep, (p.before-fixed-p.covered)/4)
		default:
			keep = max(min(keep, int64(float64(p.budget.Limit)*target)-fixed-int64(summaryLimit(p.budget))), 0)
		}
		p.cut = findCut(p.units, start, keep)
	}
	if p.cut <= start {
		return nothing("all messages are recent enough to stay as they are: give a smaller keep_recent_tokens, or say with up_to_id where the summary ends")
	}
	kept := p.units[p.cut].node
	last, err := r.Skeleton(kept.Predecessor)
	if err != nil {
		return err
	}
	p.last = last
	if last.Depth < p.from.Depth {
		return fmt.Errorf("the cut before node %q covers nothing", kept.ID)
	}
	return p.divided(r, kept)
}

// divided notes the user's message of the turn that the cut goes through, where kept
// is the first node that stays.
func (p *plan) divided(r *store.Reader, kept store.Skeleton) error {
	if begins(kept.Kind) {
		return nil
	}
	for s, err := range r.Spine(p.last) {
		if err != nil {
			return err
		}
		if s.Kind == protocol.KindUser {
			p.turn = s
			return nil
		}
	}
	return nil
}
