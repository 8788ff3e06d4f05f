package projection

import (
	"cmp"
	"slices"

	"convls/protocol"
	"convls/store"
)

// Substituted returns the summary that stands in the views of head, nil if they
// render raw. A policy is nothing but a rule which summaries are asked:
//
//   - rolling asks the one that the session's record names (spec/compaction,
//     section 1);
//   - per-branch asks all that a person has not taken back, and takes the one with
//     the longest covered stretch, of equals the newest.
//
// A summary that can not be read renders raw and says why in damage: damage stays
// local, and never keeps a conversation from going on.
func Substituted(r *store.Reader, head store.Skeleton) (s *Substitution, damage error, err error) {
	policy, err := policyOf(r)
	if err != nil {
		return nil, nil, err
	}
	if policy == protocol.PolicyPerBranch {
		return longest(r, head)
	}
	if r.State.Active == 0 {
		return nil, nil, nil
	}
	s, err = Applies(r, r.State.Active, head)
	if isDamage(err) {
		return nil, err, nil
	}
	return s, nil, err
}

func isDamage(err error) bool {
	switch protocol.CodeOf(err) {
	case protocol.CodeStoreDamaged, protocol.CodeUnknownNode, protocol.CodeUnknownSummary:
		return true
	}
	return false
}

// policyOf returns the session's policy; rolling where the record can not be read,
// or names none.
func policyOf(r *store.Reader) (string, error) {
	info, err := r.Info()
	if err != nil && !isDamage(err) {
		return "", err
	}
	return cmp.Or(info.Policy, protocol.PolicyRolling), nil
}

// longest is the rule of per-branch. It asks the summaries by what they cover, the
// most first, so that it mostly asks one.
func longest(r *store.Reader, head store.Skeleton) (s *Substitution, damage error, err error) {
	type candidate struct {
		seq   store.Seq
		count uint64
	}
	var candidates []candidate
	for seq, err := range r.Summaries() {
		if err != nil {
			return nil, nil, err
		}
		covers, err := r.Covers(seq)
		if isDamage(err) {
			damage = err
			continue
		}
		if err != nil {
			return nil, nil, err
		}
		candidates = append(candidates, candidate{seq, covers.Count})
	}
	slices.SortFunc(candidates, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(b.count, a.count), cmp.Compare(b.seq, a.seq))
	})
	for _, c := range candidates {
		undone, err := r.Undone(c.seq)
		if err != nil {
			return nil, nil, err
		}
		if undone {
			continue
		}
		s, err := Applies(r, c.seq, head)
		if isDamage(err) {
			damage = err
			continue
		}
		if s != nil || err != nil {
			return s, damage, err
		}
	}
	return nil, damage, nil
}

// Active reports whether views can stand on a summary now, as they are seen from
// head: under rolling if the session's record names it, under per-branch if no
// person took it back and no other one takes its place on head's branch.
func Active(r *store.Reader, summary store.Seq, head store.Skeleton) (bool, error) {
	policy, err := policyOf(r)
	if err != nil {
		return false, err
	}
	if policy != protocol.PolicyPerBranch {
		return r.State.Active == summary, nil
	}
	for _, mark := range []func(store.Seq) (bool, error){r.Void, r.Undone} {
		if marked, err := mark(summary); err != nil || marked {
			return false, err
		}
	}
	here, err := Applies(r, summary, head)
	if err != nil || here == nil {
		return err == nil, err
	}
	s, _, err := longest(r, head)
	return s != nil && s.Summary.Seq == summary, err
}

// Undone reports whether a person took a summary back, and no later one took its
// place: it would stand where it applies if they had not. Under per-branch the ledger
// has a mark for that. Under rolling it is one that was written after the summary that
// stands, or any where none does because the last choice was an undo.
func Undone(r *store.Reader, summary store.Seq) (bool, error) {
	policy, err := policyOf(r)
	if err != nil {
		return false, err
	}
	if policy == protocol.PolicyPerBranch {
		return r.Undone(summary)
	}
	if void, err := r.Void(summary); err != nil || void || summary <= r.State.Active {
		return false, err
	}
	if r.State.Active == 0 {
		b, err := r.Breaker()
		return b.Undone, err
	}
	content, err := r.Content(summary)
	if err != nil {
		return false, unlessDamage(err)
	}
	// What was imported for another branch has never stood.
	return content.Provenance == nil || content.Provenance.Trigger != protocol.TriggerImport, nil
}
