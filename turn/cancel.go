package turn

import (
	"context"

	"convls/protocol"
	"convls/store"
)

// Cancel ends a turn, or takes a queued send out, and returns how it ended. A turn
// that has ended keeps its state.
func (e *Engine) Cancel(ctx context.Context, sess *store.Session, req store.Request, replyID string) (protocol.TurnCancelResult, error) {
	w := e.writer(sess, req.Origin)
	// What runs can always be ended: its seal has disk space kept back for it.
	req.Cause, req.Unreserved = "cancel", true
	out, cursor, err := w.dequeue(ctx, req, replyID)
	if err != nil {
		return protocol.TurnCancelResult{}, err
	}
	if out.Was {
		e.takeEnvironment(sess.ID(), replyID)
		e.changed(sess.ID())
		return protocol.TurnCancelResult{State: protocol.StatusCancelled, Content: out.Content, Cursor: cursor}, nil
	}
	if r := e.find(sess.ID(), replyID); r != nil {
		r.cancel(errCancelled)
		select {
		case <-r.done:
			return protocol.TurnCancelResult{State: r.final, Cursor: sess.Cursor()}, nil
		case <-ctx.Done():
			return protocol.TurnCancelResult{}, ctx.Err()
		}
	}
	n, err := readNode(sess, replyID)
	return protocol.TurnCancelResult{State: n.Status, Cursor: sess.Cursor()}, err
}

// DeleteBranch takes a branch's exclusive part away, told by its tip or its name,
// as [store.DeleteBranch] does; the turns that write there are cancelled first. A
// request that would be refused anyway cancels nothing.
func (e *Engine) DeleteBranch(ctx context.Context, sess *store.Session, req store.Request, tip, branch string) (store.Outcome[store.Removed], error) {
	w := e.writer(sess, req.Origin)
	out, err := w.deleteBranch(ctx, req, tip, branch, false)
	if protocol.CodeOf(err) != protocol.CodeConfirmRequired {
		return out, err
	}
	if err := e.cancelBranch(ctx, sess, tip, branch); err != nil {
		return out, err
	}
	return w.deleteBranch(ctx, req, tip, branch, true)
}

// cancelBranch ends what writes in the part that a branch holds by itself: the turn at
// its tip, and the calls and spawned turns that go with it. It waits until they have
// ended.
func (e *Engine) cancelBranch(ctx context.Context, sess *store.Session, tip, branch string) error {
	e.mu.Lock()
	writing := map[*run]store.Skeleton{}
	for _, r := range e.runs[sess.ID()] {
		writing[r] = r.reply
	}
	e.mu.Unlock()
	for r, reply := range writing {
		on, err := writesIn(sess, tip, branch, reply)
		if err != nil {
			return err
		}
		if !on {
			continue
		}
		r.cancel(errDeleted)
		select {
		case <-r.done:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// writesIn reports whether an open reply or call is in what goes with the branch that
// is told by its tip or its name.
func writesIn(sess *store.Session, tip, branch string, reply store.Skeleton) (bool, error) {
	return read(sess, func(r *store.Reader) (bool, error) {
		at, err := r.Named(branch)
		if tip != "" {
			var s store.Skeleton
			s, err = r.LookupChain(tip)
			at = s.Seq
		}
		if err != nil {
			return false, err
		}
		end, err := r.Skeleton(at)
		if err != nil {
			return false, err
		}
		if isTip, err := r.IsTip(at); err != nil || !isTip {
			return false, err // only the name goes, or the request is refused
		}
		removal, err := r.Exclusive(end)
		if err != nil {
			return false, err
		}
		gone := make(map[store.Seq]bool, len(removal.Chain))
		for _, s := range removal.Chain {
			gone[s.Seq] = true
		}
		return goesWith(r, gone, reply)
	})
}

// goesWith reports whether a node goes when these chain nodes go: it is one of them, or
// was called by what goes, follows a called node that goes, or hangs off what goes.
func goesWith(r *store.Reader, gone map[store.Seq]bool, s store.Skeleton) (bool, error) {
	above := []store.Seq{s.Seq}
	for len(above) > 0 {
		seq := above[len(above)-1]
		above = above[:len(above)-1]
		if gone[seq] {
			return true, nil
		}
		s, err := r.Skeleton(seq)
		if err != nil {
			return false, err
		}
		if s.Caller != 0 {
			above = append(above, s.Caller)
		}
		// What follows a node that goes without being called is another branch.
		if p := s.Predecessor; p != 0 && (!s.Kind.OnChain() || s.Caller != 0 || s.Called && !gone[p]) {
			above = append(above, p)
		}
	}
	return false, nil
}
