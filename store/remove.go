package store

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"convls/protocol"
)

// Removal is what a delete would take away, or took.
type Removal struct {
	// Chain are the chain nodes, from the tip up.
	Chain []Skeleton
	// Count is all nodes: the chain, what it called, and what hangs off it.
	Count int64
	// ForkPoint is the node that the branch left the rest of the tree at.
	ForkPoint Skeleton
	all       []Skeleton
}

// Exclusive returns what only the branch with this tip holds: from the node after
// the last fork down to the tip, with all that hangs off it. A spawned turn goes with
// the node that it hangs off and is no fork of it; a branch that is one begins where
// it was spawned, and takes nothing away of the conversation that it hangs off.
func (v *view) Exclusive(tip Skeleton) (Removal, error) {
	var r Removal
	isTip, err := v.IsTip(tip.Seq)
	if err != nil {
		return r, err
	}
	if !isTip {
		return r, protocol.Errorf(protocol.CodeInvalidParams, "node %q is not the tip of a branch: later nodes follow it", tip.ID)
	}
	spawned := false
	for s, err := range v.Spine(tip) {
		if err != nil {
			return r, err
		}
		r.ForkPoint = s
		if s.Kind == protocol.KindRoot || spawned {
			break
		}
		spawned = s.Caller != 0
		if s.Seq != tip.Seq {
			forks, err := v.forks(s.Seq)
			if err != nil {
				return r, err
			}
			if forks {
				break
			}
		}
		r.Chain = append(r.Chain, s)
	}
	if err := v.gather(&r); err != nil {
		return r, err
	}
	r.Count = int64(len(r.all))
	return r, nil
}

// forks reports whether more than one chain node follows seq, spawned turns left out.
func (v *view) forks(seq Seq) (bool, error) {
	children := 0
	for child, err := range v.Children(seq) {
		if err != nil {
			return true, err
		}
		if called, err := v.wasCalled(child); err != nil {
			return true, err
		} else if called {
			continue
		}
		if children++; children > 1 {
			return true, nil
		}
	}
	return false, nil
}

// wasCalled reports whether a chain node begins a spawned turn. One that can not be
// read is taken for one that does not.
func (v *view) wasCalled(seq Seq) (bool, error) {
	s, err := v.Skeleton(seq)
	return err == nil && s.Caller != 0, unlessDamage(err)
}

// gather collects the chain and, without recursion, all that it called, the chains
// that those began, and all that hangs off them. Summaries that hang off a node
// cover what follows it, so they go with it; a call goes with the node that it was
// made at, as with the one that made it: no node stays without what it refers to.
func (v *view) gather(r *Removal) error {
	seen := map[Seq]bool{}
	stack := make([]Seq, 0, len(r.Chain))
	onChain := map[Seq]bool{}
	for _, s := range r.Chain {
		stack = append(stack, s.Seq)
		onChain[s.Seq] = true
	}
	for len(stack) > 0 {
		seq := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if seen[seq] {
			continue
		}
		seen[seq] = true
		s, err := v.Skeleton(seq)
		if err != nil {
			return err
		}
		r.all = append(r.all, s)
		below := v.Hanging(seq)
		if s.Kind.OnChain() && !onChain[seq] {
			below = v.linked(famChild, seq, func(protocol.Kind) bool { return true })
		}
		for next, err := range below {
			if err != nil {
				return err
			}
			stack = append(stack, next)
		}
		for next, err := range v.Callees(seq) {
			if err != nil {
				return err
			}
			stack = append(stack, next)
		}
		if !onChain[seq] {
			continue
		}
		for next, err := range v.Children(seq) {
			if err != nil {
				return err
			}
			if called, err := v.wasCalled(next); err != nil {
				return err
			} else if called && !onChain[next] {
				stack = append(stack, next)
			}
		}
	}
	return nil
}

// Delete takes a branch's exclusive part away. Summaries that lose a covered node
// become void; HEAD inside goes to the fork point; names and queued sends inside
// go. Nothing of it may be open. If the branch is not any more what r says, since
// r was taken from an older picture, confirm_required tells its present count.
func (tx *Tx) Delete(r Removal) error {
	if len(r.Chain) == 0 {
		return protocol.Errorf(protocol.CodeInvalidParams, "the root can not be deleted")
	}
	tip, err := tx.Skeleton(r.Chain[0].Seq)
	if err != nil {
		return err
	}
	now, err := tx.Exclusive(tip)
	if err != nil {
		return err
	}
	if now.Count != r.Count || now.ForkPoint.Seq != r.ForkPoint.Seq {
		return &protocol.Error{Code: protocol.CodeConfirmRequired, Data: protocol.ErrorData{Count: now.Count},
			Message: fmt.Sprintf("the branch has changed: it holds %d nodes by itself now, not %d", now.Count, r.Count)}
	}
	r = now
	gone := make(map[Seq]bool, len(r.all))
	for _, s := range r.all {
		if s.Status == protocol.StatusOpen {
			return protocol.Errorf(protocol.CodeTurnRunning, "node %q is being written: cancel its turn first", s.ID)
		}
		gone[s.Seq] = true
	}
	used, err := tx.number(key(famLeaf, tx.session, uint64(tip.Seq)))
	if err != nil {
		used = 0 // the record of its use is damaged
	}
	if err := tx.voidSummaries(gone, "a covered node was deleted with branch "+tip.ID); err != nil {
		return err
	}
	if err := tx.markTips(r.all, gone, used); err != nil {
		return err
	}
	if err := tx.leaveRemoved(r.ForkPoint, gone); err != nil {
		return err
	}
	if err := tx.freeLanes(r.all, gone); err != nil {
		return err
	}
	if err := tx.eraseAll(r.all); err != nil {
		return err
	}
	tx.State.Nodes -= uint64(len(r.all))
	tx.State.Removals++
	tx.Emit(protocol.Event{Type: protocol.EventBranchDeleted, Tip: tip.ID, Count: r.Count})
	tx.Emit(protocol.Event{Type: protocol.EventGraphChanged})
	return nil
}

// leaveRemoved moves HEAD, names and queued sends off what goes.
func (tx *Tx) leaveRemoved(fork Skeleton, gone map[Seq]bool) error {
	names, err := tx.Names()
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if !gone[names[name]] {
			continue
		}
		if err := tx.Unname(name); err != nil {
			return err
		}
	}
	queue, err := tx.Queue()
	if err != nil {
		return err
	}
	for _, q := range queue {
		if gone[q.After] {
			if err := tx.Dequeue(q); err != nil {
				return err
			}
			tx.Emit(protocol.Event{Type: protocol.EventTurnCancelled, ReplyID: q.ReplyID, UserID: q.UserID, NodeID: q.ReplyID, Status: protocol.StatusCancelled})
		}
	}
	if gone[tx.State.Head] {
		return tx.SetHead(fork, "")
	}
	return nil
}

// markTips marks the nodes that become tips because all that follows them goes: the
// fork point, and where calls that go had begun. They were last used when
// the branch was.
func (tx *Tx) markTips(all []Skeleton, gone map[Seq]bool, used uint64) error {
	seen := map[Seq]bool{}
	for _, s := range all {
		p := s.Predecessor
		if !s.Kind.OnChain() || s.Caller != 0 || gone[p] || seen[p] {
			continue
		}
		seen[p] = true
		followed := false
		for child, err := range tx.Children(p) {
			if err != nil {
				return err
			}
			called, err := tx.wasCalled(child)
			if err != nil {
				return err
			}
			if followed = !gone[child] && !called; followed {
				break
			}
		}
		if followed {
			continue
		}
		if err := tx.putLeaf(p, used); err != nil {
			return err
		}
	}
	return nil
}

// eraseAll deletes every record of these nodes.
func (tx *Tx) eraseAll(all []Skeleton) error {
	// Reads first: each read after a range deletion would sort those again.
	var long []Seq
	for _, s := range all {
		if tx.generationOf(s.Seq) != 0 {
			long = append(long, s.Seq)
		}
	}
	for _, s := range all {
		if err := tx.erase(s); err != nil {
			return err
		}
	}
	for _, seq := range long {
		if err := tx.dropRange(key(famChunk, tx.session, uint64(seq))); err != nil {
			return err
		}
	}
	return nil
}

func (tx *Tx) erase(s Skeleton) error {
	seq := uint64(s.Seq)
	delete(tx.kept, s.Seq)
	errs := []error{
		tx.batch.Delete(key(famSkeleton, tx.session, seq), nil),
		tx.batch.Delete(key(famContent, tx.session, seq), nil),
		tx.batch.Delete(keyString(famID, tx.session, s.ID), nil),
		tx.batch.Delete(key(famPin, tx.session, seq), nil),
	}
	if s.Kind.OnChain() {
		errs = append(errs, tx.batch.Delete(key(famLeaf, tx.session, seq), nil))
	}
	if s.Predecessor != 0 {
		errs = append(errs, tx.batch.Delete(key(famChild, tx.session, uint64(s.Predecessor), seq), nil))
	}
	if s.Caller != 0 {
		errs = append(errs, tx.batch.Delete(key(famCallee, tx.session, uint64(s.Caller), seq), nil))
	}
	if s.Kind == protocol.KindSummary {
		errs = append(errs,
			tx.batch.Delete(key(famSummary, tx.session, seq), nil),
			tx.batch.Delete(key(famVoid, tx.session, seq), nil),
			tx.batch.Delete(key(famUndone, tx.session, seq), nil))
		if tx.State.Active == s.Seq {
			errs = append(errs, tx.Activate(Skeleton{}))
		}
	}
	return errors.Join(errs...)
}

// voidSummaries marks the summaries that cover one of these chain nodes. A branch
// loses its end first, so a covered node went exactly if the last one did. What a
// damaged summary covers is not known, and it stands for nothing anyway.
func (tx *Tx) voidSummaries(gone map[Seq]bool, why string) error {
	for seq, err := range tx.Summaries() {
		if err != nil {
			return err
		}
		c, err := tx.Covers(seq)
		if err != nil && !isDamage(err) {
			return err
		}
		if err != nil || !gone[c.Last] || gone[seq] {
			continue
		}
		if err := tx.void(seq, why); err != nil {
			return err
		}
	}
	return nil
}

// void marks a summary as one that lost a covered node; the first reason stays.
func (tx *Tx) void(seq Seq, why string) error {
	void, err := tx.Void(seq)
	if err != nil {
		return err
	}
	if !void {
		if err := tx.putVoid(seq, why); err != nil {
			return err
		}
	}
	if tx.State.Active == seq {
		return tx.Activate(Skeleton{})
	}
	return nil
}
