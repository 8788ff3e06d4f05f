package compaction

import (
	"convls/projection"
	"convls/protocol"
	"convls/store"
)

// planRebuild plans to make a summary again from the covered nodes themselves, so
// that what went wrong in a chain of summaries ends. The new one covers the same
// nodes, and takes the old one's place.
func (e *Engine) planRebuild(r *store.Reader, rn *run, budget protocol.Budget, id string) (*plan, error) {
	s, covers, err := summaryOf(r, id)
	if err != nil {
		return nil, err
	}
	if why, void, err := r.VoidReason(s.Seq); err != nil {
		return nil, err
	} else if void {
		return nil, protocol.Errorf(protocol.CodeUnknownSummary, "summary %q is void (%s): compact again instead", id, why)
	}
	first, err := r.Skeleton(covers.First)
	if err != nil {
		return nil, err
	}
	last, err := r.Skeleton(covers.Last)
	if err != nil {
		return nil, err
	}
	head, err := r.Skeleton(r.State.Head)
	if err != nil {
		return nil, err
	}
	if on, err := r.IsAncestor(last, head); err != nil {
		return nil, err
	} else if !on {
		return nil, protocol.Errorf(protocol.CodeInvalidParams, "summary %q does not apply to HEAD's branch: check that branch out first", id)
	}
	o := e.options(rn.counter, rn.client)
	o.Head = head
	view, err := projection.Render(r, o)
	if err != nil {
		return nil, err
	}
	p := &plan{head: head, previous: view.Substitution, first: first, last: last, from: first, budget: budget, active: r.State.Active, removals: r.State.Removals}
	if _, _, err := p.read(r, view, 0); err != nil {
		return nil, err
	}
	if err := p.replaces(r, o); err != nil {
		return nil, err
	}
	next, err := r.AncestorAt(head, min(last.Depth+1, head.Depth))
	if err != nil {
		return nil, err
	}
	if next.Seq == last.Seq {
		return p, nil
	}
	err = p.divided(r, next)
	return p, err
}

// replaces counts the tokens of the messages that a rebuilt summary stands for, and
// what it takes out of the present view: all but the messages around them.
func (p *plan) replaces(r *store.Reader, o projection.Options) error {
	o.Raw = true
	raw, err := projection.Render(r, o)
	if err != nil {
		return err
	}
	depth, around := uint64(0), int64(0)
	for _, entry := range raw.Entries {
		if entry.Why != protocol.WhySubtree {
			depth = entry.Node.Depth
		}
		if entry.Why != protocol.WhySystem && depth >= p.first.Depth && depth <= p.last.Depth {
			p.replaced += int64(entry.Tokens)
		} else {
			around += int64(entry.Tokens)
		}
	}
	p.covered = p.before + p.waiting - around
	return nil
}
