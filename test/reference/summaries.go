package reference

import (
	"fmt"
	"slices"

	"convls/protocol"
)

// Covered returns the nodes that a summary covers, in order.
func Covered(summary *Node) []*Node {
	spine := Spine(summary.Last)
	return spine[slices.Index(spine, summary.First):]
}

// Applies reports whether a summary can stand in the view of head: it lost nothing
// that it covers, and all of that is on head's spine.
func Applies(summary, head *Node) bool {
	spine := Spine(head)
	return !summary.Void && !slices.ContainsFunc(Covered(summary), func(n *Node) bool { return !slices.Contains(spine, n) })
}

// Summary returns the summary that stands in the view of head, nil where head
// renders raw. The policy says which summaries are asked: rolling asks the active
// one, per-branch all that nobody took back. Of those that apply, the one that
// covers most stands, of equals the newest.
func (s *Session) Summary(head *Node) *Node {
	var found *Node
	for _, sum := range s.Summaries() {
		asked := sum == s.Active
		if s.Policy == protocol.PolicyPerBranch {
			asked = !sum.Undone
		}
		if asked && Applies(sum, head) && (found == nil || len(Covered(sum)) >= len(Covered(found))) {
			found = sum
		}
	}
	return found
}

// Summaries returns the session's summaries, oldest first.
func (s *Session) Summaries() []*Node {
	var out []*Node
	for _, n := range s.Nodes {
		if n.Kind == protocol.KindSummary {
			out = append(out, n)
		}
	}
	return out
}

// ActiveSummaries returns what views stand on, as they are seen from HEAD.
func (s *Session) ActiveSummaries() []string {
	sum := s.Active
	if s.Policy == protocol.PolicyPerBranch {
		sum = s.Summary(s.Head)
	}
	if sum == nil {
		return []string{}
	}
	return []string{sum.ID}
}

// Live reports whether a summary's row carries what it covers, as it is seen from
// HEAD; the others are void or superseded. Under per-branch a summary of another
// branch is live too.
func (s *Session) Live(summary *Node) bool {
	switch {
	case summary.Void:
		return false
	case s.Policy != protocol.PolicyPerBranch:
		return summary == s.Active
	}
	return !summary.Undone && (!Applies(summary, s.Head) || summary == s.Summary(s.Head))
}

// Undone reports whether a person took a summary back, and no later one took its
// place.
func (s *Session) Undone(summary *Node) bool {
	if s.Policy == protocol.PolicyPerBranch {
		return summary.Undone
	}
	if s.Active == nil {
		return s.TookBack && !summary.Void
	}
	return !summary.Void && slices.Index(s.Nodes, summary) > slices.Index(s.Nodes, s.Active)
}

// Compaction is a summary as the server made it, with what was asked for: From and
// UpTo are ids, or empty.
type Compaction struct {
	ID, Text   string
	Covers     []string
	From, UpTo string
}

// Compact writes the summary of a compaction of HEAD's branch. Where it ends is the
// server's choice: what it covers may not break the rules, and the error says which
// it breaks.
func (s *Session) Compact(c Compaction) error {
	covers, err := s.stretch(c.Covers)
	if err != nil {
		return err
	}
	first, last := covers[0], covers[len(covers)-1]
	spine := Spine(s.Head)
	if !slices.Contains(spine, last) {
		return fmt.Errorf("%s is covered and not on HEAD's branch", last.ID)
	}
	rest := spine[slices.Index(spine, last)+1:]
	if !slices.ContainsFunc(rest, func(n *Node) bool { return n.Status == protocol.StatusOpen || !n.Empty() }) {
		return fmt.Errorf("nothing of the branch stays as it is")
	}
	switch old := s.Summary(s.Head); {
	case old != nil:
		if n := len(Covered(old)); len(covers) <= n || !slices.Equal(covers[:n], Covered(old)) {
			return fmt.Errorf("it does not extend what summary %s covers", old.ID)
		}
	case c.From != "":
		if first != s.owner(c.From) {
			return fmt.Errorf("it begins with %s and not with %s", first.ID, c.From)
		}
	case first.Pred != s.Root():
		return fmt.Errorf("it begins with %s, which does not follow the root", first.ID)
	}
	if c.UpTo != "" {
		end := slices.Index(covers, s.owner(c.UpTo))
		if end < 0 || slices.ContainsFunc(covers[end+1:], func(n *Node) bool { return !n.Empty() }) {
			return fmt.Errorf("it ends with %s and not with %s", last.ID, c.UpTo)
		}
	}
	s.summarise(c, first, last)
	return nil
}

// Rebuild writes a summary that stands for what another one stands for.
func (s *Session) Rebuild(id string, c Compaction) error {
	old := s.Find(id)
	covers, err := s.stretch(c.Covers)
	switch {
	case err != nil:
		return err
	case old == nil, !slices.Equal(covers, Covered(old)):
		return fmt.Errorf("it does not cover what %s covers", id)
	}
	s.summarise(c, old.First, old.Last)
	return nil
}

// stretch returns the nodes with these ids, if a summary can cover them: sealed
// nodes of the conversation, each following the one before, with no call of theirs
// open.
func (s *Session) stretch(ids []string) ([]*Node, error) {
	if len(ids) == 0 {
		return nil, fmt.Errorf("it covers nothing")
	}
	var out []*Node
	for i, id := range ids {
		n := s.Find(id)
		switch {
		case n == nil || !n.Kind.OnChain() || n.Kind == protocol.KindRoot:
			return nil, fmt.Errorf("%s is covered and no message", id)
		case n.Status == protocol.StatusOpen || slices.ContainsFunc(s.Tools(n), func(t *Node) bool { return t.Status == protocol.StatusOpen }):
			return nil, fmt.Errorf("%s is covered while it is written", id)
		case i > 0 && n.Pred != out[i-1]:
			return nil, fmt.Errorf("%s is covered after %s, which it does not follow", id, ids[i-1])
		}
		out = append(out, n)
	}
	return out, nil
}

// owner returns the chain node that the node with an id belongs to.
func (s *Session) owner(id string) *Node {
	n := s.Find(id)
	for n != nil && !n.Kind.OnChain() {
		if n.Caller == nil {
			return n.Pred
		}
		n = n.Caller
	}
	return n
}

// summarise writes a summary. Under rolling it takes the place of the active one;
// nothing else changes.
func (s *Session) summarise(c Compaction, first, last *Node) {
	n := &Node{ID: c.ID, Kind: protocol.KindSummary, Pred: first.Pred, Status: protocol.StatusSealed, Text: c.Text, First: first, Last: last}
	s.add(n)
	s.TookBack = false
	if s.Policy != protocol.PolicyPerBranch {
		s.Active = n
	}
}

// Activate chooses the summary that views stand on, "" for none. Under per-branch
// that is a choice of HEAD's branch: what applies there and would stand before the
// chosen one is taken back.
func (s *Session) Activate(id string) protocol.Code {
	chosen := s.Find(id)
	if id != "" && (chosen == nil || chosen.Kind != protocol.KindSummary || chosen.Void) {
		return protocol.CodeUnknownSummary
	}
	took := func(before *Node) bool {
		return before != nil && slices.Index(s.Nodes, chosen) < slices.Index(s.Nodes, before)
	}
	if s.Policy != protocol.PolicyPerBranch {
		s.TookBack = took(s.Active)
		s.Active = chosen
		return ""
	}
	if chosen != nil {
		if !Applies(chosen, s.Head) {
			return protocol.CodeUnknownSummary
		}
		chosen.Undone = false
	}
	s.TookBack = took(s.Summary(s.Head))
	for sum := s.Summary(s.Head); sum != chosen; sum = s.Summary(s.Head) {
		sum.Undone = true
	}
	return ""
}

// RawSince returns the tips that render raw and did not before.
func (s *Session) RawSince(before []Branch) []string {
	was := map[string]bool{}
	for _, b := range before {
		was[b.Tip] = was[b.Tip] || b.Renders == "compacted"
	}
	var out []string
	for _, tip := range s.Tips() {
		if was[tip.ID] && s.Summary(tip) == nil {
			out = append(out, tip.ID)
		}
	}
	slices.Sort(out)
	return out
}
