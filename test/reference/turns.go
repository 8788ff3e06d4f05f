package reference

import (
	"slices"

	"convls/protocol"
)

// Reply is what a model answers to a prompt, or how far it gets.
type Reply struct {
	Text string
	// Calls are tool calls, with what the client answers to them.
	Calls []Call
	// Hold says that the model stops after Text until it is let go; Rest is what it
	// says then.
	Hold bool
	Rest string
	// HoldCall says that the client does not answer the first call until it is let go.
	HoldCall bool
	// Error is how the model fails, after Text.
	Error protocol.Code
}

// Model answers prompts: always the same to the same.
type Model func(prompt []Message) Reply

// Turn is a turn that runs.
type Turn struct {
	// First is its first reply, Reply the one that it writes, or wrote last.
	First, Reply *Node
	// said is what the model answers now. With calls, called counts those that are
	// answered.
	said   Reply
	called int
	calls  []*Node
	// spawned says that it moves nothing, exposed that what it says is shown elsewhere.
	spawned, exposed bool
	// goes says that the branch is about to be deleted.
	goes bool
}

// Partial is the text that was streamed so far.
func (t *Turn) Partial() string {
	if t.Reply.Status != protocol.StatusOpen {
		return t.Reply.Text
	}
	return t.said.Text
}

// turnAt returns the running turn whose chain ends at n.
func (s *Session) turnAt(n *Node) *Turn {
	for _, t := range s.Turns {
		if t.Reply == n {
			return t
		}
	}
	return nil
}

// Send admits a message at HEAD, or queues it. The turn runs as far as it gets.
func (s *Session) Send(m Model, text, userID, replyID string) protocol.Code {
	if s.turnAt(s.Head) != nil {
		s.Queue = append(s.Queue, &Queued{UserID: userID, ReplyID: replyID, Text: text, After: s.Head})
		return ""
	}
	s.run(m, s.begin(s.Head, false, text, userID, replyID))
	return ""
}

// begin writes a user node and its open reply, after a turn that it goes on with or
// after a node that it follows.
func (s *Session) begin(at *Node, goesOn bool, text, userID, replyID string) *Turn {
	u := &Node{ID: userID, Kind: protocol.KindUser, Pred: at, Status: protocol.StatusSealed, Text: text}
	s.append(u, goesOn)
	if s.Title == "" {
		s.Title, s.titleFrom = text, u
	}
	t := s.answer(u, true, replyID)
	s.adopt(t)
	return t
}

// answer writes an open reply.
func (s *Session) answer(at *Node, goesOn bool, replyID string) *Turn {
	a := &Node{ID: replyID, Kind: protocol.KindAssistant, Pred: at, Status: protocol.StatusOpen}
	s.append(a, goesOn)
	t := &Turn{First: a, Reply: a}
	s.Turns = append(s.Turns, t)
	return t
}

// Retry answers again. ids are those of the new replies.
func (s *Session) Retry(m Model, id string, ids ...string) protocol.Code {
	at, code := s.chain(id)
	switch {
	case code != "":
		return code
	case at.Kind == protocol.KindAssistant:
		at = at.Pred
	case at.Kind != protocol.KindUser:
		return protocol.CodeInvalidParams
	}
	var turns []*Turn
	for _, reply := range ids {
		turns = append(turns, s.answer(at, false, reply))
	}
	if len(turns) > 0 {
		if s.Head != turns[0].Reply {
			s.setHead(turns[0].Reply, "")
		}
		s.adopt(turns[0])
	}
	for _, t := range turns {
		s.run(m, t)
	}
	return ""
}

// EditUser admits another message beside a message.
func (s *Session) EditUser(m Model, id, text, userID, replyID string) {
	old := s.Find(id)
	u := &Node{ID: userID, Kind: protocol.KindUser, Pred: old.Pred, Status: protocol.StatusSealed, Text: text}
	s.append(u, false)
	if s.Title == "" {
		s.Title, s.titleFrom = text, u
	}
	if s.Head != u {
		s.setHead(u, "")
	}
	t := s.answer(u, true, replyID)
	s.adopt(t)
	s.run(m, t)
}

// EditReply writes another reply beside a reply.
func (s *Session) EditReply(id, text, newID string) {
	old := s.Find(id)
	a := &Node{ID: newID, Kind: protocol.KindAssistant, Pred: old.Pred, Status: protocol.StatusSealed, Text: text}
	s.append(a, false)
	if s.Head != a {
		s.setHead(a, "")
	}
}

// run goes on with a turn until it ends or is held.
func (s *Session) run(m Model, t *Turn) {
	for {
		t.said = m(s.Prompt(t.Reply.Pred, nil))
		if t.said.Hold || !s.said(m, t) {
			return
		}
	}
}

// said seals the reply of a turn with what the model said, and has its calls
// carried out. It reports whether the model is asked again.
func (s *Session) said(m Model, t *Turn) bool {
	a := t.Reply
	a.Text = t.said.Text + t.said.Rest
	switch {
	case t.said.Error != "":
		a.Status, a.Error = protocol.StatusFailed, t.said.Error
		s.end(m, t, a.Status)
		return false
	case len(t.said.Calls) == 0:
		a.Status = protocol.StatusSealed
		s.end(m, t, a.Status)
		return false
	}
	a.Status = protocol.StatusSealed
	t.calls, t.called = nil, 0
	for _, c := range t.said.Calls {
		n := &Node{Kind: protocol.KindTool, Caller: a, Status: protocol.StatusOpen, Call: Call{Name: c.Name, Arguments: c.Arguments}}
		s.add(n)
		t.calls = append(t.calls, n)
	}
	a.Calls = t.calls
	if t.said.HoldCall {
		return false
	}
	s.answered(t)
	return true
}

// answered seals the calls of a turn with the client's results, and writes the
// reply that follows.
func (s *Session) answered(t *Turn) {
	for i, n := range t.calls {
		c := t.said.Calls[i]
		n.Call.Answered, n.Call.Result, n.Call.IsError = true, c.Result, c.IsError
		n.Status = protocol.StatusSealed
	}
	next := &Node{Kind: protocol.KindAssistant, Pred: t.Reply, Status: protocol.StatusOpen}
	if t.spawned {
		s.beside(next)
	} else {
		s.append(next, true)
	}
	t.Reply = next
}

// Release lets every turn go on that is held, and all that follows from that.
func (s *Session) Release(m Model) {
	for _, t := range slices.Clone(s.Turns) {
		switch {
		case t.said.Hold:
			t.said.Hold = false
			if s.said(m, t) {
				s.run(m, t)
			}
		case t.said.HoldCall:
			t.said.HoldCall = false
			s.answered(t)
			s.run(m, t)
		}
	}
}

// Cancel ends a turn, or takes a queued send out, and returns the state.
func (s *Session) Cancel(m Model, replyID string) (protocol.Status, protocol.Code) {
	for i, q := range s.Queue {
		if q.UserID == replyID {
			return "", protocol.CodeInvalidParams
		}
		if q.ReplyID == replyID {
			s.Queue = slices.Delete(s.Queue, i, i+1)
			return protocol.StatusCancelled, ""
		}
	}
	for _, t := range s.Turns {
		for n := t.Reply; ; n = n.Pred {
			if n.ID == replyID {
				s.stop(m, t, protocol.StatusCancelled)
				return protocol.StatusCancelled, ""
			}
			if n == t.First {
				break
			}
		}
	}
	n := s.Find(replyID)
	switch {
	case n == nil:
		return "", protocol.CodeUnknownNode
	case n.Kind != protocol.KindAssistant && n.Kind != protocol.KindCall:
		return "", protocol.CodeInvalidParams
	}
	return n.Status, ""
}

// Abandon ends a turn whose branch is about to go: nothing that waits begins.
func (s *Session) Abandon(m Model, t *Turn) {
	t.goes = true
	s.stop(m, t, protocol.StatusCancelled)
}

// stop ends a turn that is held: the reply keeps what was streamed, a call that
// waits has no result.
func (s *Session) stop(m Model, t *Turn, status protocol.Status) {
	if t.Reply.Status == protocol.StatusOpen {
		t.Reply.Text, t.Reply.Status = t.said.Text, status
	}
	for _, n := range t.calls {
		if n.Status == protocol.StatusOpen {
			n.Status = status
		}
	}
	s.end(m, t, status)
}

// end ends a turn and begins the send that waits for it; the others wait for that one
// then. Failure holds them.
func (s *Session) end(m Model, t *Turn, status protocol.Status) {
	s.Over = append(s.Over, t)
	s.Turns = slices.DeleteFunc(s.Turns, func(o *Turn) bool { return o == t })
	waiting := s.waiting(t)
	if len(waiting) == 0 {
		return
	}
	if status == protocol.StatusFailed || status == protocol.StatusInterrupted || t.goes {
		for _, q := range waiting {
			q.Held = true
		}
		return
	}
	q := waiting[0]
	s.Queue = slices.DeleteFunc(s.Queue, func(o *Queued) bool { return o == q })
	next := s.begin(t.Reply, true, q.Text, q.UserID, q.ReplyID)
	for _, other := range waiting[1:] {
		other.After = next.First
	}
	s.run(m, next)
}

// waiting returns the sends that wait for a turn: those that were queued at one of its
// replies.
func (s *Session) waiting(t *Turn) []*Queued {
	var out []*Queued
	for _, q := range s.Queue {
		if t.wrote(q.After) {
			out = append(out, q)
		}
	}
	return out
}

// wrote reports whether n is a reply of the turn.
func (t *Turn) wrote(n *Node) bool {
	for r := t.Reply; r != t.First; r = r.Pred {
		if r == n {
			return true
		}
	}
	return t.First == n
}

// adopt makes what is held, and waits for no turn that runs, wait for a turn that
// begins on its chain or answers its message anew.
func (s *Session) adopt(t *Turn) {
	for _, q := range s.Queue {
		runs := slices.ContainsFunc(s.Turns, func(o *Turn) bool { return o.wrote(q.After) })
		if q.Held && !runs && On(q.message(), t.First) {
			q.After = t.First
		}
	}
}

// message returns the node whose answer a send waits for.
func (q *Queued) message() *Node {
	if q.After.Kind == protocol.KindAssistant {
		return q.After.Pred
	}
	return q.After
}

// Race returns a running turn that is one of several of which nobody can tell which
// is the first to end, where that matters: another send may begin where one may be
// held by then, or their tips have no other order than that in which they were
// written.
func (s *Session) Race() *Turn {
	for i, t := range s.Turns {
		if t.exposed && len(s.Turns) > 1 {
			return t // the others may be asked before or after it can be read
		}
		for _, other := range s.Turns[:i] {
			if t.Reply.Kind.OnChain() && other.Reply.Kind.OnChain() && s.used[t.Reply] == s.used[other.Reply] {
				return t
			}
		}
	}
	for _, q := range s.Queue {
		for _, t := range s.Turns {
			if !t.wrote(q.After) && On(q.message(), t.Reply) && len(s.waiting(t)) > 0 {
				return t
			}
		}
	}
	return nil
}

// Stop ends everything as the end of the process does: what is open is
// interrupted and keeps what was streamed, what waits is held.
func (s *Session) Stop() {
	for _, q := range s.Queue {
		q.Held = true
	}
	for _, t := range slices.Clone(s.Turns) {
		s.stop(nil, t, protocol.StatusInterrupted)
	}
}

// Unbound returns the nodes whose ids only the server knows yet.
func (s *Session) Unbound() []*Node {
	var out []*Node
	for _, n := range s.Nodes {
		if n.ID == "" {
			out = append(out, n)
		}
	}
	return out
}
