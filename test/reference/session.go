package reference

import (
	"slices"
	"sort"

	"convls/protocol"
)

// Node is a node. Seal changes it once, Redact once more.
type Node struct {
	ID           string
	Kind         protocol.Kind
	Pred, Caller *Node
	Status       protocol.Status
	// Text is the text of the node's text parts, joined as the ledger's are.
	Text string
	// Calls are the tool nodes that a reply names.
	Calls []*Node
	// Call is what a tool node holds.
	Call Call
	// Prompt is what a call was asked; Text is its answer.
	Prompt string
	// Exposed says that a call, or the turn that a message began, is shown in the
	// context of what it hangs off.
	Exposed bool
	// Source is what an attach node points at, in session From.
	Source *Node
	From   *Session
	// First and Last are the ends of what a summary covers.
	First, Last            *Node
	Void, Pinned, Redacted bool
	// Undone says that a person took a summary back, under per-branch; see
	// [Session.Undone].
	Undone bool
	// Error is the code that a failed reply carries.
	Error protocol.Code

	seq int
}

// Call is a tool call and its result.
type Call struct {
	Name, Arguments, Result string
	Answered, IsError       bool
}

// Queued is a send that waits.
type Queued struct {
	UserID, ReplyID, Text string
	After                 *Node
	Held                  bool
}

// Session is a session.
type Session struct {
	ID, Title, System string
	Head              *Node
	// Branch is the name that HEAD is attached to.
	Branch string
	Names  map[string]*Node
	Nodes  []*Node
	// Policy says which summaries views ask, Active is the one that rolling asks.
	Policy string
	Active *Node
	// TookBack says that the last choice of a summary was for an older one, or for none.
	TookBack bool
	Queue    []*Queued
	Turns    []*Turn
	// Over are the turns that ended, for a test to take out.
	Over []*Turn

	used      map[*Node]int
	uses, seq int
	titleFrom *Node
}

// New makes a session with its root.
func New(id, rootID, title, system string) *Session {
	s := &Session{ID: id, Title: title, System: system, Names: map[string]*Node{}, Policy: protocol.PolicyRolling, used: map[*Node]int{}}
	root := &Node{ID: rootID, Kind: protocol.KindRoot, Status: protocol.StatusSealed}
	s.add(root)
	s.setHead(root, "")
	return s
}

// Root returns the root.
func (s *Session) Root() *Node { return s.Nodes[0] }

// Find returns the node with an id, nil if there is none.
func (s *Session) Find(id string) *Node {
	for _, n := range s.Nodes {
		if n.ID == id {
			return n
		}
	}
	return nil
}

// Here returns the id of a node of the session, "" if it is gone.
func (s *Session) Here(n *Node) string {
	if slices.Contains(s.Nodes, n) {
		return n.ID
	}
	return ""
}

// chain returns the chain node with an id, or why there is none.
func (s *Session) chain(id string) (*Node, protocol.Code) {
	n := s.Find(id)
	switch {
	case n == nil:
		return nil, protocol.CodeUnknownNode
	case !n.Kind.OnChain():
		return nil, protocol.CodeNotAChainNode
	}
	return n, ""
}

func (s *Session) add(n *Node) {
	s.seq++
	n.seq = s.seq
	s.Nodes = append(s.Nodes, n)
}

// Children returns the chain nodes that follow n.
func (s *Session) Children(n *Node) []*Node {
	var out []*Node
	for _, c := range s.Nodes {
		if c.Pred == n && c.Kind.OnChain() {
			out = append(out, c)
		}
	}
	return out
}

// followers returns the chain nodes that follow n, spawned turns left out: a node
// without any is a tip.
func (s *Session) followers(n *Node) []*Node {
	return slices.DeleteFunc(s.Children(n), func(c *Node) bool { return c.Caller != nil })
}

// Spawned reports whether n belongs to a spawned turn: it, or a node before it, was
// called.
func (n *Node) Spawned() bool {
	return slices.ContainsFunc(Spine(n), func(at *Node) bool { return at.Caller != nil })
}

// Tools returns the tool nodes that n called.
func (s *Session) Tools(n *Node) []*Node {
	var out []*Node
	for _, c := range s.Nodes {
		if c.Caller == n && c.Kind == protocol.KindTool {
			out = append(out, c)
		}
	}
	return out
}

// Spine returns the chain from the root to n.
func Spine(n *Node) []*Node {
	var out []*Node
	for ; n != nil; n = n.Pred {
		out = append(out, n)
	}
	slices.Reverse(out)
	return out
}

// On reports whether n is on the spine of head.
func On(n, head *Node) bool { return slices.Contains(Spine(head), n) }

// Tips returns the tips, last used first.
func (s *Session) Tips() []*Node {
	var tips []*Node
	for _, n := range s.Nodes {
		if n.Kind.OnChain() && len(s.followers(n)) == 0 {
			tips = append(tips, n)
		}
	}
	sort.SliceStable(tips, func(i, j int) bool {
		a, b := tips[i], tips[j]
		if s.used[a] != s.used[b] {
			return s.used[a] > s.used[b]
		}
		return a.seq > b.seq
	})
	return tips
}

// LastTip returns the tip that was last used at or below n.
func (s *Session) LastTip(n *Node) *Node {
	for _, tip := range s.Tips() {
		if On(n, tip) {
			return tip
		}
	}
	return n
}

// nameOf returns the first name in alphabetical order that refers to n.
func (s *Session) nameOf(n *Node) string {
	if names := s.namesOf(n); len(names) > 0 {
		return names[0]
	}
	return ""
}

func (s *Session) namesOf(n *Node) []string {
	var names []string
	for name, at := range s.Names {
		if at == n {
			names = append(names, name)
		}
	}
	sort.Strings(names)
	return names
}

// beside writes a chain node of a spawned turn: neither HEAD nor a name goes along.
func (s *Session) beside(n *Node) {
	grown := 0
	if n.Caller == nil && len(s.followers(n.Pred)) == 0 {
		grown = s.used[n.Pred]
	}
	s.add(n)
	s.used[n] = grown
}

// append writes a chain node. The chain's growth at HEAD takes HEAD along, and the
// name that HEAD is attached to; a turn that goes on takes all names of its tip along,
// wherever HEAD is.
func (s *Session) append(n *Node, goesOn bool) {
	grown := 0
	if len(s.followers(n.Pred)) == 0 {
		grown = s.used[n.Pred] // the tip went on by itself
	}
	s.add(n)
	if s.Head == n.Pred {
		s.uses++
		grown = s.uses
		s.Head = n
		if s.Branch != "" {
			s.Names[s.Branch] = n
		}
	}
	s.used[n] = grown
	if goesOn {
		for _, name := range s.namesOf(n.Pred) {
			s.Names[name] = n
		}
	}
}

// setHead moves HEAD because a person asked for it.
func (s *Session) setHead(n *Node, name string) {
	s.Head, s.Branch = n, name
	if len(s.followers(n)) == 0 {
		s.uses++
		s.used[n] = s.uses
	}
}

// Restore writes a node as it was in another ledger; HEAD stays.
func (s *Session) Restore(n *Node) {
	s.add(n)
	if n.Caller != nil && n.Kind == protocol.KindTool {
		n.Caller.Calls = append(n.Caller.Calls, n)
	}
}

// UseTips sets the order in which tips were last used, last used last.
func (s *Session) UseTips(ids []string) {
	for _, id := range ids {
		s.uses++
		s.used[s.Find(id)] = s.uses
	}
}
