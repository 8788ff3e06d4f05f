package reference

import (
	"slices"

	"convls/protocol"
)

// target finds a node by id or by name.
func (s *Session) target(id, name string) (*Node, protocol.Code) {
	switch {
	case (id == "") == (name == ""):
		return nil, protocol.CodeInvalidParams
	case id != "":
		return s.chain(id)
	case s.Names[name] == nil:
		return nil, protocol.CodeUnknownBranch
	}
	return s.Names[name], ""
}

// Checkout moves HEAD.
func (s *Session) Checkout(id, name string, descend bool) protocol.Code {
	to, code := s.target(id, name)
	if code != "" {
		return code
	}
	if descend {
		if tip := s.LastTip(to); tip != to {
			to, name = tip, ""
		}
	}
	if name == "" {
		name = s.nameOf(to)
	}
	s.setHead(to, name)
	return ""
}

// Fork moves HEAD to a node, and names the branch that begins there.
func (s *Session) Fork(id, name string) protocol.Code {
	to, code := s.chain(id)
	switch {
	case code != "":
		return code
	case name != "" && s.Names[name] != nil:
		return protocol.CodeNameConflict
	}
	if name != "" {
		s.Names[name] = to
	}
	s.setHead(to, name)
	return ""
}

// Rewind moves HEAD to before a message.
func (s *Session) Rewind(id string) protocol.Code {
	u, code := s.chain(id)
	switch {
	case code != "":
		return code
	case u.Kind != protocol.KindUser, !On(u, s.Head):
		return protocol.CodeInvalidParams
	}
	s.setHead(u.Pred, s.nameOf(u.Pred))
	return ""
}

// Rename gives a branch another name, or takes its name away.
func (s *Session) Rename(tip, branch, name string) protocol.Code {
	at, code := s.target(tip, branch)
	if code != "" {
		return code
	}
	old := branch
	if old == "" {
		old = s.nameOf(at)
	}
	switch {
	case old == name:
		return ""
	case name != "" && s.Names[name] != nil:
		return protocol.CodeNameConflict
	}
	attached := s.Head == at && (s.Branch == "" || s.Branch == old)
	delete(s.Names, old)
	if s.Branch == old {
		s.Branch = ""
	}
	if name == "" {
		return ""
	}
	s.Names[name] = at
	if attached {
		s.Branch = name
	}
	return ""
}

// exclusive returns what only the branch with this tip holds, the tip first, and
// the node that it left the rest of the tree at. A spawned turn is no fork, and one
// that is deleted begins where it was spawned.
func (s *Session) exclusive(tip *Node) (gone []*Node, fork *Node) {
	n := tip
	for n.Kind != protocol.KindRoot && (n == tip || len(s.followers(n)) == 1) {
		gone = append(gone, n)
		spawned := n.Caller != nil
		if n = n.Pred; spawned {
			break
		}
	}
	return gone, n
}

// hanging adds what goes with chain nodes that go: what they called and what follows
// that, calls and spawned turns that hang off them, and the summaries of what followed
// them.
func (s *Session) hanging(gone []*Node) []*Node {
	out := slices.Clone(gone)
	for i := 0; i < len(out); i++ {
		for _, n := range s.Nodes {
			follows := n.Pred == out[i] && (!n.Kind.OnChain() || n.Caller != nil || i >= len(gone))
			if (n.Caller == out[i] || follows) && !slices.Contains(out, n) {
				out = append(out, n)
			}
		}
	}
	return out
}

// Delete takes a branch's exclusive part away and returns how many nodes that
// are.
func (s *Session) Delete(tip, branch string, confirm, cancel bool, cancelled func(*Turn)) (int, protocol.Code) {
	at, code := s.target(tip, branch)
	if code != "" {
		return 0, code
	}
	if len(s.followers(at)) > 0 {
		if branch == "" {
			return 0, protocol.CodeInvalidParams
		}
		if !confirm {
			return 0, protocol.CodeConfirmRequired // for the name alone, too
		}
		delete(s.Names, branch)
		if s.Branch == branch {
			s.Branch = ""
		}
		return 0, ""
	}
	chain, fork := s.exclusive(at)
	if len(chain) == 0 {
		return 0, protocol.CodeInvalidParams
	}
	if !confirm {
		return len(s.hanging(chain)), protocol.CodeConfirmRequired
	}
	all := s.hanging(chain)
	for _, t := range slices.Clone(s.Turns) {
		if !slices.Contains(all, t.Reply) {
			continue
		}
		if !cancel {
			return 0, protocol.CodeTurnRunning
		}
		cancelled(t)
	}
	all = s.hanging(chain)
	s.remove(at, all, fork)
	return len(all), ""
}

func (s *Session) remove(tip *Node, all []*Node, fork *Node) {
	used := s.used[tip]
	for _, sum := range s.Nodes {
		if sum.Kind == protocol.KindSummary && !slices.Contains(all, sum) &&
			slices.ContainsFunc(Covered(sum), func(n *Node) bool { return slices.Contains(all, n) }) {
			sum.Void = true
		}
	}
	if s.Active != nil && (s.Active.Void || slices.Contains(all, s.Active)) {
		s.Active = nil
	}
	s.Nodes = slices.DeleteFunc(s.Nodes, func(n *Node) bool { return slices.Contains(all, n) })
	s.Queue = slices.DeleteFunc(s.Queue, func(q *Queued) bool { return slices.Contains(all, q.After) })
	for name, at := range s.Names {
		if slices.Contains(all, at) {
			delete(s.Names, name)
			if s.Branch == name {
				s.Branch = ""
			}
		}
	}
	for _, n := range all {
		if p := n.Pred; p != nil && n.Kind.OnChain() && n.Caller == nil && !slices.Contains(all, p) && len(s.followers(p)) == 0 {
			s.used[p] = used
		}
	}
	if slices.Contains(all, s.Head) {
		s.setHead(fork, "")
	}
}

// Attach writes an attach node after an anchor, or finds the one that is there.
func (s *Session) Attach(id, anchor string, from *Session, source string) (*Node, protocol.Code) {
	src := from.Find(source)
	if src == nil {
		return nil, protocol.CodeUnknownNode
	}
	if src.Kind != protocol.KindSummary {
		if !src.Kind.OnChain() {
			return nil, protocol.CodeNotAChainNode
		}
		for src != nil && src.Kind != protocol.KindAssistant {
			src = src.Pred
		}
		if src == nil {
			return nil, protocol.CodeInvalidParams
		}
		if src.Status == protocol.StatusOpen {
			return nil, protocol.CodeTurnRunning
		}
	}
	at, code := s.chain(anchor)
	if code != "" {
		return nil, code
	}
	if from == s && src.Kind.OnChain() && On(src, at) {
		return nil, protocol.CodeInvalidParams
	}
	for _, c := range s.Children(at) {
		if c.Kind == protocol.KindAttach && c.Source == src {
			return c, ""
		}
	}
	if at.Status == protocol.StatusOpen {
		return nil, protocol.CodeTurnRunning
	}
	n := &Node{ID: id, Kind: protocol.KindAttach, Pred: at, Status: protocol.StatusSealed, Source: src, From: from}
	s.append(n, false)
	return n, ""
}

// RedactedText is what stands in the place of what was taken away.
const RedactedText = "[redacted]"

// Redact replaces a node's content, and that of every summary that covers it.
func (s *Session) Redact(id string, confirm bool) protocol.Code {
	n := s.Find(id)
	switch {
	case n == nil:
		return protocol.CodeUnknownNode
	case !confirm:
		return protocol.CodeConfirmRequired
	case n.Status == protocol.StatusOpen:
		return protocol.CodeTurnRunning
	case n.Kind == protocol.KindRoot:
		return protocol.CodeNotAChainNode
	case n.Redacted:
		return ""
	}
	holders := s.holders(n)
	for _, sum := range s.Nodes {
		held := sum.Kind == protocol.KindSummary && n.Kind != protocol.KindSummary && slices.ContainsFunc(Covered(sum), func(c *Node) bool { return slices.Contains(holders, c) })
		if sum == n && n.Kind == protocol.KindSummary || held {
			sum.Void = true
			sum.tombstone()
		}
	}
	if s.Active != nil && s.Active.Void {
		s.Active = nil
	}
	n.tombstone()
	if s.titleFrom == n {
		s.Title, s.titleFrom = RedactedText, nil
	}
	return ""
}

// holders returns the chain nodes as part of which n can have been read: the one that
// it hangs off, and those of the callers on that one's spine.
func (s *Session) holders(n *Node) []*Node {
	out := []*Node{s.owner(n.ID)}
	for i := 0; i < len(out); i++ {
		for _, above := range Spine(out[i]) {
			if above.Caller == nil {
				continue
			}
			if h := s.owner(above.Caller.ID); !slices.Contains(out, h) {
				out = append(out, h)
			}
		}
	}
	return out
}

func (n *Node) tombstone() {
	n.Redacted = true
	if n.Kind == protocol.KindTool {
		n.Call.Arguments = "{}"
		if n.Call.Answered {
			n.Call.Result = RedactedText
		}
		return
	}
	n.Text, n.Prompt, n.Error, n.Source = RedactedText, "", "", nil
}

// Pin pins a chain node or takes its pin away.
func (s *Session) Pin(id string, pinned bool) protocol.Code {
	n, code := s.chain(id)
	if code != "" {
		return code
	}
	n.Pinned = pinned
	return ""
}

// Retitle gives the session another title.
func (s *Session) Retitle(title string) { s.Title, s.titleFrom = title, nil }
