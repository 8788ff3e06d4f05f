package projection

import (
	"cmp"

	"convls/protocol"
	"convls/store"
)

// mostNamesSearched is among how many names the branch of a source is looked for where
// none refers to it itself: each costs a question of ancestry.
const mostNamesSearched = 64

// Source describes what an attach node points at, and returns what that says: nothing
// if it was deleted, or can not be read. The source can be in another session of the
// same store.
func Source(r *store.Reader, src store.Source) (*protocol.GraphSource, []protocol.Part, error) {
	out := &protocol.GraphSource{SessionID: src.SessionID, NodeID: src.NodeID}
	if src.SessionID != r.SessionID() {
		other, err := r.Other(src.SessionID)
		if protocol.CodeOf(err) == protocol.CodeUnknownSession {
			out.Deleted = true
			return out, nil, nil
		}
		if isDamage(err) {
			return out, nil, nil
		}
		if err != nil {
			return out, nil, err
		}
		defer other.Close()
		r = other
		info, err := r.Info()
		if err != nil {
			return out, nil, unlessDamage(err)
		}
		out.Title = info.Title
	}
	s, err := r.Lookup(src.NodeID)
	if err != nil {
		out.Deleted = protocol.CodeOf(err) == protocol.CodeUnknownNode
		return out, nil, unlessDamage(err)
	}
	out.Kind = s.Kind
	if s.Kind.OnChain() {
		out.Depth = int64(s.Depth)
		if out.Branch, err = branchOf(r, s); err != nil {
			return out, nil, unlessDamage(err)
		}
	}
	content, err := r.Content(s.Seq)
	if err != nil {
		return out, nil, unlessDamage(err)
	}
	return out, content.Parts, nil
}

// branchOf returns a name that refers to a chain node, or else to one after it: the
// nearest of those, of several as near the first in alphabetical order. "" if there is
// none, or if there are too many names to look for it among them.
func branchOf(r *store.Reader, s store.Skeleton) (string, error) {
	names, err := r.Names()
	if err != nil {
		return "", err
	}
	best, depth := "", uint64(0)
	for name, seq := range names {
		if seq != s.Seq && len(names) > mostNamesSearched {
			continue
		}
		at, err := r.Skeleton(seq)
		if isDamage(err) {
			continue
		}
		if err != nil {
			return "", err
		}
		if best != "" && cmp.Or(cmp.Compare(at.Depth, depth), cmp.Compare(name, best)) > 0 {
			continue
		}
		on, err := r.IsAncestor(s, at)
		if isDamage(err) {
			continue
		}
		if err != nil {
			return "", err
		}
		if on {
			best, depth = name, at.Depth
		}
	}
	return best, nil
}

// unlessDamage is err, but nil for what can not be read.
func unlessDamage(err error) error {
	if isDamage(err) {
		return nil
	}
	return err
}

// sourceOf is [Source] with the beginning of what the source says; own is what the
// attach node says itself, which stands where the source says nothing.
func sourceOf(r *store.Reader, src store.Source, own []protocol.Part) (*protocol.GraphSource, string, error) {
	out, parts, err := Source(r, src)
	if err != nil {
		return out, "", err
	}
	if len(parts) == 0 {
		return out, Preview(own), nil
	}
	return out, PreviewOf(store.Skeleton{Kind: out.Kind}, &store.Content{Parts: parts}), nil
}
