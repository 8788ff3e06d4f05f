package store

import (
	"iter"

	"convls/protocol"
)

// AncestorAt returns the node at this depth on the spine of s, in O(log n) reads.
// A depth at or below s's own returns s.
func (v *view) AncestorAt(s Skeleton, depth uint64) (Skeleton, error) {
	for s.Depth > depth {
		next := s.Predecessor
		if s.Jump != 0 && jumpDepth(s.Depth) >= depth {
			next = s.Jump
		}
		above, err := v.ancestor(s, next)
		if err != nil {
			return above, err
		}
		s = above
	}
	return s, nil
}

// ancestor reads a node that s's pointers name, and refuses one that is not
// above s: so a damaged pointer ends a walk instead of turning it in a circle.
func (v *view) ancestor(s Skeleton, seq Seq) (Skeleton, error) {
	if s.Seq-seq < skeletonsBehind {
		v.readBehind(seq)
	}
	above, err := v.Skeleton(seq)
	if err != nil {
		return above, err
	}
	if above.Depth >= s.Depth {
		return above, v.damaged(s.Seq, s.ID, "the predecessor", protocol.Errorf(protocol.CodeStoreDamaged,
			"node %d at depth %d is named as an ancestor of node %d at depth %d", seq, above.Depth, s.Seq, s.Depth))
	}
	return above, nil
}

// IsAncestor reports whether a is b or stands before it on b's chain.
func (v *view) IsAncestor(a, b Skeleton) (bool, error) {
	if a.Depth > b.Depth {
		return false, nil
	}
	x, err := v.AncestorAt(b, a.Depth)
	return err == nil && x.Seq == a.Seq, err
}

// CommonAncestor returns the last node that the spines of a and b share, in
// O(log n) reads.
func (v *view) CommonAncestor(a, b Skeleton) (Skeleton, error) {
	var err error
	if a.Depth > b.Depth {
		a, err = v.AncestorAt(a, b.Depth)
	} else {
		b, err = v.AncestorAt(b, a.Depth)
	}
	if err != nil {
		return a, err
	}
	// Nodes of one depth have jumps of one length, so both walk in step.
	for a.Seq != b.Seq {
		na, nb := a.Predecessor, b.Predecessor
		if a.Jump != b.Jump {
			na, nb = a.Jump, b.Jump
		}
		if a, err = v.ancestor(a, na); err != nil {
			return a, err
		}
		if b, err = v.ancestor(b, nb); err != nil {
			return b, err
		}
	}
	return a, nil
}

// Above returns the predecessor of s, which must not be the root.
func (v *view) Above(s Skeleton) (Skeleton, error) { return v.ancestor(s, s.Predecessor) }

// Spine yields s, its predecessor, and so on to the root.
func (v *view) Spine(s Skeleton) iter.Seq2[Skeleton, error] {
	return func(yield func(Skeleton, error) bool) {
		for {
			if !yield(s, nil) || s.Predecessor == 0 {
				return
			}
			above, err := v.ancestor(s, s.Predecessor)
			if err != nil {
				yield(above, err)
				return
			}
			s = above
		}
	}
}

// Path yields the chain nodes from last up to first, first included, newest
// first; the caller must know that first stands on last's spine.
func (v *view) Path(first, last Skeleton) iter.Seq2[Skeleton, error] {
	return func(yield func(Skeleton, error) bool) {
		for s, err := range v.Spine(last) {
			if !yield(s, err) || s.Seq == first.Seq {
				return
			}
		}
	}
}

// Owner returns the chain node that seq hangs off: itself, or the first caller
// above it that stands on the chain.
func (v *view) Owner(s Skeleton) (Skeleton, error) {
	for !s.Kind.OnChain() {
		up := s.Caller
		if up == 0 {
			up = s.Predecessor
		}
		if up == 0 || up >= s.Seq {
			return s, v.damaged(s.Seq, s.ID, "the caller", protocol.Errorf(protocol.CodeStoreDamaged, "it hangs off nothing"))
		}
		above, err := v.Skeleton(up)
		if err != nil {
			return above, err
		}
		s = above
	}
	return s, nil
}

// AncestorBefore returns the last node on the spine of s that was written before
// the number seq, in O(log n) reads; ok is false if there is none.
func (v *view) AncestorBefore(s Skeleton, seq Seq) (before Skeleton, ok bool, err error) {
	for s.Seq >= seq {
		if s.Predecessor == 0 {
			return Skeleton{}, false, nil
		}
		next := s.Predecessor
		// Numbers fall along a spine: a jump that does not reach below seq is safe.
		if s.Jump >= seq {
			next = s.Jump
		}
		if s, err = v.ancestor(s, next); err != nil {
			return s, false, err
		}
	}
	return s, true, nil
}
