package compaction

import (
	"context"

	"convls/projection"
	"convls/protocol"
	"convls/store"
)

// Activate chooses which summary views stand on: undo and redo are moves between
// summaries, or to none (""). Nothing is written but the choice, and HEAD stays. A
// void summary is refused.
//
// Under per-branch the choice is that of HEAD's branch: the summaries that cover
// more than the chosen one, and apply there, are taken back; for none, all that
// apply.
//
// Taking one back stops automatic compaction until a person compacts, or takes a
// summary up again.
func (e *Engine) Activate(ctx context.Context, sess *store.Session, req store.Request, id string) (store.Outcome[[]string], error) {
	req.Cause = "activate"
	return store.Apply(ctx, sess, req, func(tx *store.Tx) ([]string, error) {
		info, err := tx.Info()
		if err != nil {
			return nil, err
		}
		chosen := store.Skeleton{}
		if id != "" {
			if chosen, err = tx.Lookup(id); protocol.CodeOf(err) == protocol.CodeUnknownNode {
				return nil, protocol.Errorf(protocol.CodeUnknownSummary, "session %s has no summary %q: compaction/list names them", sess.ID(), id)
			} else if err != nil {
				return nil, err
			}
		}
		before := tx.State.Active
		if info.Policy == protocol.PolicyPerBranch {
			before, err = chooseForBranch(tx, sess, chosen)
		} else {
			err = tx.Activate(chosen)
		}
		if err != nil {
			return nil, err
		}
		back := before != 0 && chosen.Seq < before
		if err := tx.SetBreaker(store.Breaker{Undone: back}); err != nil {
			return nil, err
		}
		if id == "" {
			return []string{}, nil
		}
		return []string{chosen.ID}, nil
	})
}

// chooseForBranch makes a summary the one of HEAD's branch, under per-branch. It
// returns the one that was.
func chooseForBranch(tx *store.Tx, sess *store.Session, chosen store.Skeleton) (store.Seq, error) {
	r, err := sess.Reader()
	if err != nil {
		return 0, err
	}
	defer r.Close()
	head, err := r.Skeleton(r.State.Head)
	if err != nil {
		return 0, err
	}
	var before store.Seq
	if now, _, err := projection.Substituted(r, head); err != nil {
		return 0, err
	} else if now != nil {
		before = now.Summary.Seq
	}
	count := uint64(0)
	if chosen.Seq != 0 {
		if chosen.Kind != protocol.KindSummary {
			return 0, protocol.Errorf(protocol.CodeUnknownSummary, "node %q is a %s, not a summary", chosen.ID, chosen.Kind)
		}
		s, err := projection.Applies(r, chosen.Seq, head)
		if err != nil {
			return 0, err
		}
		if s == nil {
			return 0, protocol.Errorf(protocol.CodeUnknownSummary, "summary %q does not apply to HEAD's branch, or lost a message it covers: under per-branch a choice is of the branch that HEAD is on", chosen.ID)
		}
		count = s.Covers.Count
		if err := tx.Undo(chosen, false); err != nil {
			return 0, err
		}
	}
	for seq, err := range r.Summaries() {
		if err != nil {
			return 0, err
		}
		if seq == chosen.Seq {
			continue
		}
		s, err := projection.Applies(r, seq, head)
		if err != nil {
			return 0, err
		}
		if s != nil && (s.Covers.Count > count || s.Covers.Count == count && seq > chosen.Seq) {
			if err := tx.Undo(s.Summary, true); err != nil {
				return 0, err
			}
		}
	}
	e := protocol.Event{Type: protocol.EventSummaryActive, SummaryID: chosen.ID}
	if chosen.ID != "" {
		e.Summaries = []string{chosen.ID}
	}
	tx.Emit(e)
	return before, nil
}
