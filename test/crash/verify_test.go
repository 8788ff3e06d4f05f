package crash

import (
	"strings"

	"convls/protocol"
	"convls/test/editor"
)

// node is a line of an export.
type node struct {
	Type        string          `json:"type"`
	ID          string          `json:"id"`
	Kind        protocol.Kind   `json:"kind"`
	Status      protocol.Status `json:"status"`
	Predecessor string          `json:"predecessor"`
	StopReason  string          `json:"stop_reason"`
	Content     []protocol.Part `json:"content"`
	Error       *struct {
		Code protocol.Code `json:"code"`
	} `json:"error"`
	// Head and Branches are the session's.
	Head     string            `json:"head"`
	Title    string            `json:"title"`
	Branches map[string]string `json:"branches"`
}

func (n node) text() string { return text(protocol.Node{Content: n.Content}) }

// ledger is a session as it is exported.
type ledger struct {
	session node
	nodes   map[string]node
}

func (s *session) read() ledger {
	out := editor.Ask[protocol.ExportResult](s.ed, protocol.MethodSessionExport, protocol.ExportParams{SessionID: s.id, Format: "jsonl"})
	l := ledger{nodes: map[string]node{}}
	for _, line := range strings.Split(strings.TrimSpace(out.Text), "\n") {
		var n node
		if err := protocol.Unmarshal([]byte(line), &n); err != nil {
			s.t.Fatal(err)
		}
		switch n.Type {
		case "session":
			l.session = n
		case "node":
			l.nodes[n.ID] = n
		}
	}
	return l
}

// verify checks the session after a kill, with the server that came after it. It
// returns false for one whose server wrote so much before the kill that its events
// can not be compared any more.
func (s *session) verify() bool {
	events, all := s.follow()
	if !all {
		return false
	}
	s.sameEvents(events)
	s.events = events
	l := s.read()
	s.acknowledgedIsThere(l)
	s.textIsThere(l)
	s.nothingIsOpen(l)
	if last := lastHead(events); last != "" && last != l.session.Head {
		s.t.Errorf("HEAD is %s, and the last event says %s", l.session.Head, last)
	}
	return true
}

// sameEvents checks that every event that came is replayed, as it was, in its
// place.
func (s *session) sameEvents(events []protocol.Event) {
	if len(events) < len(s.events) {
		s.t.Fatalf("session %s had told of %d events, and has %d", s.id, len(s.events), len(events))
	}
	for i, was := range s.events {
		is := events[i]
		if is.Cursor != was.Cursor || is.Type != was.Type || is.NodeID != was.NodeID || is.ReplyID != was.ReplyID || is.Head != was.Head ||
			is.Status != was.Status || is.Branch != was.Branch || is.Tip != was.Tip || !is.At.Equal(was.At) {
			s.t.Fatalf("event %d of session %s was %+v, and is %+v", i, s.id, was, is)
		}
	}
	known := map[string]bool{s.first: true}
	for _, e := range events {
		known[e.Cursor] = true
	}
	for _, q := range s.changes {
		if c := q.result.Cursor; c != "" && !known[c] {
			s.t.Errorf("%s was acknowledged with cursor %s, which no event has", q.method, c)
		}
	}
	s.changes = nil
}

// acknowledgedIsThere checks that what was acknowledged is in the ledger, as it
// was.
func (s *session) acknowledgedIsThere(l ledger) {
	for _, id := range s.users {
		if n, ok := l.nodes[id]; !ok && !s.deleted(id) {
			// One that waited in the queue is no node yet.
			if s.begun(id) {
				s.t.Errorf("message %s was acknowledged and is gone", id)
			}
		} else if ok && n.Kind != protocol.KindUser {
			s.t.Errorf("message %s is a %s", id, n.Kind)
		}
	}
	for id, want := range s.said {
		n, ok := l.nodes[id]
		switch {
		case !ok && !s.deleted(id):
			s.t.Errorf("node %s had ended and is gone", id)
		case ok && n.Kind != protocol.KindTool && n.text() != want:
			s.t.Errorf("node %s said %q and says %q", id, want, n.text())
		}
	}
}

// begun reports whether an event told that the node was written.
func (s *session) begun(id string) bool {
	for _, e := range s.events {
		if e.Type == protocol.EventNodeAppended && e.NodeID == id {
			return true
		}
	}
	return false
}

// deleted reports whether a node went with a branch. While the answer to a delete
// is lost that can not be told; it is when the request was sent again.
func (s *session) deleted(id string) bool {
	return s.gone[id] || s.pending != nil && s.pending.method == protocol.MethodBranchDelete
}

// textIsThere checks the replies that the kill interrupted: each is the beginning
// of what was to be said, and holds what had been seen before a change that was
// acknowledged.
func (s *session) textIsThere(l ledger) {
	for id, n := range l.nodes {
		if n.Kind != protocol.KindAssistant || n.Status != protocol.StatusInterrupted {
			continue
		}
		got := n.text()
		if _, known := s.said[id]; !known {
			s.interrupted++
			if got != "" {
				s.partial++
			}
		}
		s.said[id] = got // and so it stays
		if whole := s.whole(id, l); !strings.HasPrefix(whole, got) {
			s.t.Errorf("reply %s was interrupted with %q, which is no beginning of %q", id, got, whole)
		}
		s.mu.Lock()
		want := s.durable[id]
		s.proven += want
		delete(s.durable, id)
		s.mu.Unlock()
		if n.Error == nil || n.Error.Code != protocol.CodeServerRestarted {
			s.t.Errorf("reply %s was interrupted with the error %+v", id, n.Error)
		}
		if len(got) < want {
			s.t.Errorf("of reply %s %d bytes are left; %d had been seen when a change was sent that was acknowledged", id, len(got), want)
		}
	}
}

// whole returns what the offline model answers to the message before a reply.
func (s *session) whole(id string, l ledger) string {
	asked := l.nodes[l.nodes[id].Predecessor].text()
	return spoken(asked)
}

// nothingIsOpen checks that nothing is left as if it still ran.
func (s *session) nothingIsOpen(l ledger) {
	for id, n := range l.nodes {
		if !n.Status.Final() {
			s.t.Errorf("node %s is %s after the crash", id, n.Status)
		}
	}
	tail := 0
	open := editor.Ask[protocol.SessionOpenResult](s.ed, protocol.MethodSessionOpen, protocol.SessionOpenParams{SessionID: s.id, Tail: &tail})
	if len(open.OpenNodes) > 0 {
		s.t.Errorf("%d replies are said to be written after the crash", len(open.OpenNodes))
	}
	for _, q := range open.Queue {
		if !q.Held {
			s.t.Errorf("send %s waits for a turn that does not run", q.ReplyID)
		}
	}
	if status := editor.Ask[protocol.StatusResult](s.ed, protocol.MethodStatus, struct{}{}); len(status.RunningTurns) > 0 {
		s.t.Errorf("turns run after the crash: %+v", status.RunningTurns)
	}
}

// again sends the request whose answer was lost once more, twice: it happens once.
func (s *session) again() {
	q := s.pending
	if q == nil {
		return
	}
	s.pending = nil
	s.resent++
	if s.written(s.read(), q)+s.queued(q) > 0 {
		s.done++
	}
	first := *q
	if !s.send(&first) {
		s.t.Fatalf("the server went away from %s", q.method)
	}
	second := *q
	if !s.send(&second) {
		s.t.Fatalf("the server went away from %s", q.method)
	}
	a, b := first.result, second.result
	// Who waits is told where HEAD is at the end, and that goes on meanwhile.
	moved := a.Head != b.Head && q.params["wait"] == nil
	if first.code != second.code || a.UserID != b.UserID || a.ReplyID != b.ReplyID || moved || a.NodeID != b.NodeID {
		s.t.Errorf("%s sent again was answered %+v (%s) and %+v (%s)", q.method, a, first.code, b, second.code)
	}
	want := 0
	if first.code == "" && strings.HasPrefix(q.method, "convls/turn/") && q.params["content"] != nil {
		want = 1
	}
	after := s.read()
	if n := s.written(after, q) + s.queued(q); n != want {
		s.t.Errorf("%s, sent three times, wrote its text %d times, not %d (refused: %q)", q.method, n, want, first.code)
	}
	s.took(&first)
}

// written counts the nodes that a request's text is in; replies quote it, too.
func (s *session) written(l ledger, q *request) int {
	count := 0
	for _, n := range l.nodes {
		if strings.Contains(n.text(), q.tag) && (n.Kind == protocol.KindUser || n.StopReason == "edited") {
			count++
		}
	}
	return count
}

// queued counts the sends of a request that wait.
func (s *session) queued(q *request) int {
	tail, count := 0, 0
	open := editor.Ask[protocol.SessionOpenResult](s.ed, protocol.MethodSessionOpen, protocol.SessionOpenParams{SessionID: s.id, Tail: &tail})
	for _, w := range open.Queue {
		if strings.Contains(w.Preview, q.tag) {
			count++
		}
	}
	return count
}

// goesOn checks that the session takes a new turn.
func (s *session) goesOn() {
	r := editor.Ask[protocol.TurnResult](s.ed, protocol.MethodTurnSend,
		protocol.TurnSendParams{SessionID: s.id, Content: protocol.SendContent{{Type: protocol.PartText, Text: "repeat: still here"}}, Wait: true})
	if r.State != protocol.StatusSealed || text(*r.Node) != "still here" {
		s.t.Errorf("after the crash a turn ends as %s with %q", r.State, text(*r.Node))
	}
	s.said[r.ReplyID] = "still here"
}

func lastHead(events []protocol.Event) string {
	for i := len(events) - 1; i >= 0; i-- {
		if events[i].Type == protocol.EventHeadMoved {
			return events[i].Head
		}
	}
	return ""
}
