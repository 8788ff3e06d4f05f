package projection

import (
	"convls/store"
)

// Substitution is a summary that stands for a stretch of a branch in its views.
type Substitution struct {
	Summary store.Skeleton
	Covers  store.Covers
	// First and Last are the ends of the covered stretch.
	First, Last store.Skeleton
}

// inStretch reports whether a chain node is one of those from first to last, where last
// has first on its spine.
func inStretch(r *store.Reader, first, last, s store.Skeleton) (bool, error) {
	if s.Depth < first.Depth {
		return false, nil
	}
	return r.IsAncestor(s, last)
}

// Applies decides whether a summary stands for its covered stretch when rendering
// from head: it does if it is not void and every covered node is on head's spine.
// The covered nodes are one contiguous stretch of a chain, so that is so exactly
// if the ancestor of head at the last one's depth is the last one
// (spec/compaction, section 3).
func Applies(r *store.Reader, summary store.Seq, head store.Skeleton) (*Substitution, error) {
	void, err := r.Void(summary)
	if err != nil || void {
		return nil, err
	}
	sk, err := r.Skeleton(summary)
	if err != nil {
		return nil, err
	}
	covers, err := r.Covers(summary)
	if err != nil {
		return nil, err
	}
	last, err := r.Skeleton(covers.Last)
	if err != nil {
		return nil, err
	}
	on, err := r.IsAncestor(last, head)
	if err != nil || !on {
		return nil, err
	}
	first, err := r.Skeleton(covers.First)
	if err != nil {
		return nil, err
	}
	return &Substitution{Summary: sk, Covers: covers, First: first, Last: last}, nil
}
