package reference

import (
	"fmt"
	"slices"
	"strings"

	"convls/protocol"
)

// GraphRow is what the graph says of a node, without where it is drawn.
type GraphRow struct {
	ID, Predecessor, Caller string
	Kind                    protocol.Kind
	Status                  protocol.Status
	// Fold is state and count of a summary's capsule.
	Fold                            string
	IsHead, OnHead, InContext, Tip  bool
	Spawned, Pinned, Redacted, Void bool
	Superseded                      bool
	Branches                        string
	// Calls is how many nodes it called.
	Calls int
	// Covers are the ids that an active summary stands for, with their calls.
	Covers []string
	// From is what the edge that leads to it comes from.
	From string
}

// Graph returns the rows that the graph shows from head, by their ids: all chain nodes
// but those that the summary of head's view stands for, and all summaries.
func (s *Session) Graph(head *Node) map[string]GraphRow {
	out := map[string]GraphRow{}
	sum := s.Summary(head)
	var covered []*Node
	if sum != nil {
		covered = Covered(sum)
	}
	inContext := map[string]bool{}
	for _, e := range s.Context(head, false) {
		inContext[e.ID] = true
	}
	for _, n := range s.Nodes {
		r := GraphRow{ID: n.ID, Kind: n.Kind, Status: n.Status, InContext: inContext[n.ID], Pinned: n.Pinned, Redacted: n.Redacted}
		if n.Pred != nil {
			r.Predecessor = n.Pred.ID
		}
		if n.Caller != nil {
			r.Caller = n.Caller.ID
		}
		switch {
		case n.Kind == protocol.KindSummary:
			s.capsule(&r, n, head)
		case n.Kind.OnChain() && !slices.Contains(covered, n):
			r.IsHead, r.OnHead, r.Tip, r.Spawned = n == s.Head, On(n, head), slices.Contains(s.Tips(), n), n.Spawned()
			r.Branches, r.Calls = strings.Join(s.namesOf(n), " "), len(s.calls(n))
			r.From = r.Predecessor
			if slices.Contains(covered, n.Pred) {
				r.From = sum.ID
			}
		default:
			continue
		}
		out[n.ID] = r
	}
	return out
}

// capsule fills in the row of a summary.
func (s *Session) capsule(r *GraphRow, n, head *Node) {
	stands := n == s.Summary(head)
	state := "superseded"
	switch {
	case stands:
		state = "folded"
	case n.Void:
		state = "void"
	case s.Policy != protocol.PolicyPerBranch && n == s.Active, s.Policy == protocol.PolicyPerBranch && !n.Undone && !Applies(n, head):
		state = "inert"
	}
	r.Void, r.Superseded = state == "void", state == "superseded"
	if r.Superseded && s.Undone(n) {
		state = "undone"
	}
	r.Fold = state
	if r.Void {
		return // it may name nodes that are gone
	}
	covered := Covered(n)
	r.Fold += fmt.Sprint(" ", len(covered))
	if r.Superseded {
		return
	}
	var names []string
	for _, c := range covered {
		r.Covers = append(r.Covers, c.ID)
		r.Covers = append(r.Covers, IDs(s.calls(c))...)
		if stands {
			names = append(names, s.namesOf(c)...)
			r.IsHead = r.IsHead || c == s.Head
		}
	}
	if stands {
		slices.Sort(names)
		r.OnHead, r.Branches, r.From = true, strings.Join(names, " "), n.First.Pred.ID
	}
}

// calls are the nodes off the chain that a chain node called or that hang off it, each
// followed by what it called.
func (s *Session) calls(n *Node) []*Node {
	var out []*Node
	for _, c := range s.Nodes {
		hangs := n.Kind.OnChain() && c.Pred == n && c.Caller == nil
		if (c.Caller == n || hangs) && !c.Kind.OnChain() && c.Kind != protocol.KindSummary {
			out = append(append(out, c), s.calls(c)...)
		}
	}
	return out
}
