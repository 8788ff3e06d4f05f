package store

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/cockroachdb/pebble/v2"

	"convls/protocol"
)

// Leaf is a tip: a chain node that no chain node follows but those that were called.
type Leaf struct {
	Seq Seq
	// Used is when HEAD was last here, in moves of HEAD: greater is later.
	Used uint64
}

// Leaves returns the session's tips, last used first.
func (v *view) Leaves() ([]Leaf, error) {
	var leaves []Leaf
	for n, err := range v.numbers(key(famLeaf, v.session)) {
		if err != nil {
			return nil, err
		}
		used, err := readNumber(n.Value)
		if err != nil {
			used = 0 // it is a tip all the same
		}
		leaves = append(leaves, Leaf{Seq(n.Number), used})
	}
	slices.SortFunc(leaves, func(a, b Leaf) int { return cmp.Or(cmp.Compare(b.Used, a.Used), cmp.Compare(b.Seq, a.Seq)) })
	return leaves, nil
}

// IsTip reports whether no chain node follows seq, spawned turns left out.
func (v *view) IsTip(seq Seq) (bool, error) { return v.has(key(famLeaf, v.session, uint64(seq))) }

// LastTip returns the tip that was last used below s; s itself if it is one. It
// asks each tip whether it stands below s: O(tips · log n).
func (v *view) LastTip(s Skeleton) (Skeleton, error) {
	leaves, err := v.Leaves()
	if err != nil {
		return s, err
	}
	return v.LastTipOf(leaves, s)
}

// LastTipOf is LastTip with the leaves given, for callers who ask for many nodes.
// Tips that can not be read, or that hang on a node that can not, are passed over.
func (v *view) LastTipOf(leaves []Leaf, s Skeleton) (Skeleton, error) {
	for _, l := range leaves {
		if l.Seq < s.Seq {
			continue // what stands below was written later
		}
		tip, err := v.Skeleton(l.Seq)
		below := false
		if err == nil {
			below, err = v.IsAncestor(s, tip)
		}
		if err != nil && !isDamage(err) {
			return s, err
		}
		if below {
			return tip, nil
		}
	}
	return s, nil
}

// Names returns the branch names and what they refer to. One whose record is
// damaged is left out; Check reports it.
func (v *view) Names() (map[string]Seq, error) {
	names := map[string]Seq{}
	for name, record := range v.nameRecords() {
		if record.err != nil {
			return nil, record.err
		}
		if n, err := readNumber(record.value); err == nil {
			names[name] = Seq(n)
		}
	}
	return names, nil
}

type nameRecord struct {
	value []byte
	err   error
}

// nameRecords yields the branch names with their records, valid until the next
// step.
func (v *view) nameRecords() iter.Seq2[string, nameRecord] {
	return func(yield func(string, nameRecord) bool) {
		prefix := key(famName, v.session)
		it, err := v.r.NewIter(&pebble.IterOptions{LowerBound: prefix, UpperBound: after(prefix)})
		if err != nil {
			yield("", nameRecord{err: fmt.Errorf("read branch names: %w", err)})
			return
		}
		defer it.Close()
		for ok := it.First(); ok; ok = it.Next() {
			value, err := it.ValueAndErr()
			if !yield(string(it.Key()[len(prefix):]), nameRecord{value, err}) {
				return
			}
		}
		if err := it.Error(); err != nil {
			yield("", nameRecord{err: fmt.Errorf("read branch names: %w", err)})
		}
	}
}

// Named returns what a branch name refers to; unknown_branch if there is no such
// name.
func (v *view) Named(name string) (Seq, error) {
	n, err := v.number(keyString(famName, v.session, name))
	switch {
	case errors.Is(err, pebble.ErrNotFound):
		return 0, protocol.Errorf(protocol.CodeUnknownBranch, "session %s has no branch named %q", v.id, name)
	case err != nil:
		return 0, &protocol.Error{Code: protocol.CodeStoreDamaged, Message: fmt.Sprintf("the record of branch %q of session %s is damaged", name, v.id), Cause: err}
	}
	return Seq(n), nil
}

// maxName is the longest branch name, in bytes.
const maxName = 100

// checkName refuses branch names that could not be shown or typed.
func checkName(name string) error {
	switch {
	case name == "" || len(name) > maxName || !utf8.ValidString(name):
		return protocol.Errorf(protocol.CodeInvalidParams, "a branch name has 1 to %d bytes of valid UTF-8", maxName)
	case strings.TrimSpace(name) != name || strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }):
		return protocol.Errorf(protocol.CodeInvalidParams, "branch name %q begins or ends with a space, or has characters that can not be seen", name)
	}
	return nil
}
