package editor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"convls/client"
	"convls/protocol"
)

// patience is how long a test waits for what must come. A test that passes never
// waits so long.
const patience = 60 * time.Second

// Editor is a client of one server process.
type Editor struct {
	*client.Client
	// Server is what the server said of itself.
	Server  *client.Server
	process *os.Process
	t       testing.TB

	mu      sync.Mutex
	changed chan struct{} // closed and replaced when something came
	seen    Seen
}

// Seen is what the server has sent so far.
type Seen struct {
	// Events are those of each session, in the order they came.
	Events map[string][]protocol.Event
	Resets []protocol.ResetNotification
	// Texts are the deltas of each node, put together part by part.
	Texts map[string][]Streamed
	// Messages counts events and deltas.
	Messages int
	Logs     []client.LogMessage
	// Faults are violations of the protocol: deltas that overlap or leave a gap, an
	// event twice, a delta after its turn's end, a character that was split.
	Faults  []string
	ended   map[string]bool
	cursors map[[2]string]bool
	heads   map[string]string
}

// Streamed is the text of one part, as far as it was seen.
type Streamed struct {
	Kind protocol.DeltaKind
	// From is the offset at which the editor began to see it.
	From int64
	Text string
	// Former is the text before the last delta: what the server had kept when it sent
	// that.
	Former string
}

func newEditor(t testing.TB) *Editor {
	return &Editor{t: t, changed: make(chan struct{}),
		seen: Seen{Events: map[string][]protocol.Event{}, Texts: map[string][]Streamed{}, ended: map[string]bool{}, cursors: map[[2]string]bool{}, heads: map[string]string{}}}
}

// callbacks adds the editor's own to what a test wants.
func (e *Editor) callbacks(o client.Options) client.Options {
	own := o
	own.OnEvent = func(ev protocol.Event) { e.note(func(s *Seen) { s.event(ev) }); call(o.OnEvent, ev) }
	own.OnDelta = func(d protocol.Delta) { e.note(func(s *Seen) { s.delta(d) }); call(o.OnDelta, d) }
	own.OnReset = func(r protocol.ResetNotification) {
		e.note(func(s *Seen) { s.Resets = append(s.Resets, r) })
		call(o.OnReset, r)
	}
	own.OnLog = func(l client.LogMessage) { e.note(func(s *Seen) { s.Logs = append(s.Logs, l) }); call(o.OnLog, l) }
	return own
}

func call[T any](f func(T), v T) {
	if f != nil {
		f(v)
	}
}

func (e *Editor) note(f func(*Seen)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	f(&e.seen)
	close(e.changed)
	e.changed = make(chan struct{})
}

func (s *Seen) faultf(format string, args ...any) {
	s.Faults = append(s.Faults, fmt.Sprintf(format, args...))
}

func (s *Seen) event(ev protocol.Event) {
	at := [2]string{ev.SessionID, ev.Cursor}
	if s.cursors[at] {
		s.faultf("event %s of session %s came twice", ev.Cursor, ev.SessionID)
		return
	}
	s.cursors[at] = true
	s.Messages++
	if ev.Type == protocol.EventHeadMoved {
		s.heads[ev.SessionID] = ev.Head
	}
	s.Events[ev.SessionID] = append(s.Events[ev.SessionID], ev)
	switch ev.Type {
	case protocol.EventTurnFinished, protocol.EventTurnFailed, protocol.EventTurnCancelled, protocol.EventTurnInterrupted:
		s.ended[ev.NodeID] = true
	}
}

func (s *Seen) delta(d protocol.Delta) {
	s.Messages++
	if s.ended[d.NodeID] {
		s.faultf("a delta of node %s came after its turn had ended", d.NodeID)
	}
	if !utf8.ValidString(d.Text) || strings.ContainsRune(d.Text, utf8.RuneError) {
		s.faultf("a delta of node %s splits a character: %q", d.NodeID, d.Text)
	}
	parts := s.Texts[d.NodeID]
	for d.Part >= len(parts) {
		parts = append(parts, Streamed{Kind: d.Kind, From: -1})
	}
	p := &parts[d.Part]
	if p.From < 0 {
		p.From, p.Kind = d.Offset, d.Kind
	}
	if end := p.From + int64(len(p.Text)); d.Offset != end {
		s.faultf("a delta of node %s begins at %d, the one before ended at %d", d.NodeID, d.Offset, end)
	}
	p.Former = p.Text
	p.Text += d.Text
	s.Texts[d.NodeID] = parts
}

// Look calls f with what has come so far. f must keep nothing of it.
func (e *Editor) Look(f func(*Seen)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	f(&e.seen)
}

// Await waits until f holds of what has come. what says in a failure what was
// waited for.
func (e *Editor) Await(what string, f func(*Seen) bool) {
	e.t.Helper()
	ctx, cancel := context.WithTimeout(e.t.Context(), patience)
	defer cancel()
	for {
		e.mu.Lock()
		ok, changed := f(&e.seen), e.changed
		e.mu.Unlock()
		if ok {
			return
		}
		select {
		case <-changed:
		case <-e.Done():
			e.t.Fatalf("the server ended while the editor waited for %s: %v", what, e.Err())
		case <-ctx.Done():
			e.t.Fatalf("%s did not come; the last events:\n%s", what, e.lastEvents())
		}
	}
}

// lastEvents tells the last events of each session, for a test that fails.
func (e *Editor) lastEvents() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	var b strings.Builder
	for session, events := range e.seen.Events {
		for _, ev := range events[max(0, len(events)-6):] {
			fmt.Fprintf(&b, "%s %s %s node %s reply %s head %s\n", session, ev.Cursor, ev.Type, ev.NodeID, ev.ReplyID, ev.Head)
		}
	}
	return b.String()
}

// AwaitEnd waits for the event that ends the turn with this first reply, and
// returns it.
func (e *Editor) AwaitEnd(sessionID, replyID string) protocol.Event {
	e.t.Helper()
	var end protocol.Event
	e.Await("the end of the turn of "+replyID, func(s *Seen) bool {
		for _, ev := range s.Events[sessionID] {
			if ev.ReplyID != replyID {
				continue
			}
			switch ev.Type {
			case protocol.EventTurnFinished, protocol.EventTurnFailed, protocol.EventTurnCancelled, protocol.EventTurnInterrupted:
				end = ev
				return true
			}
		}
		return false
	})
	return end
}

// AwaitText waits until the deltas of a node make at least this text.
func (e *Editor) AwaitText(nodeID, text string) {
	e.t.Helper()
	e.Await(fmt.Sprintf("%q of node %s", text, nodeID), func(s *Seen) bool {
		for _, p := range s.Texts[nodeID] {
			if p.Kind == protocol.DeltaText && strings.HasPrefix(p.Text, text) {
				return true
			}
		}
		return false
	})
}

// Ask calls a method and fails the test if it is refused.
func Ask[R any](e *Editor, method string, params any) R {
	e.t.Helper()
	r, err := Try[R](e, method, params)
	if err != nil {
		e.t.Fatalf("%s: %v", method, err)
	}
	return r
}

// Try calls a method.
func Try[R any](e *Editor, method string, params any) (R, error) {
	e.t.Helper()
	ctx, cancel := context.WithTimeout(e.t.Context(), patience)
	defer cancel()
	return client.Do[R](ctx, e.Client, method, params)
}

// Refused calls a method that must be refused with this code, and returns the
// error.
func Refused(e *Editor, code protocol.Code, method string, params any) *protocol.Error {
	e.t.Helper()
	r, err := Try[protocol.Raw](e, method, params)
	refusal, ok := errors.AsType[*protocol.Error](err)
	if !ok || refusal.Code != code {
		e.t.Fatalf("%s was answered by %s and %v, not refused with %s", method, r, err, code)
	}
	return refusal
}

// PID is the server's process.
func (e *Editor) PID() int { return e.process.Pid }

// Kill ends the server as kill -9 does, and waits until it is gone.
func (e *Editor) Kill(t testing.TB) {
	t.Helper()
	if err := e.process.Kill(); err != nil {
		t.Fatalf("kill the server: %v", err)
	}
	<-e.Done()
}

// Terminate asks the server to end, as a system does that shuts down, and waits
// until it is gone.
func (e *Editor) Terminate(t testing.TB) {
	t.Helper()
	if err := e.process.Signal(syscall.SIGTERM); err != nil {
		t.Fatalf("terminate the server: %v", err)
	}
	<-e.Done()
}

// Leave ends the server as an editor does that is closed, and waits until it is
// gone.
func (e *Editor) Leave(t testing.TB) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := e.Shutdown(ctx); err != nil {
		t.Fatalf("shut the server down: %v", err)
	}
}

// AwaitHead waits until the last event that tells where HEAD is says this node. A
// session whose HEAD was not told of yet is left alone.
func (e *Editor) AwaitHead(sessionID, nodeID string) {
	e.t.Helper()
	e.Await("the event that HEAD is at "+nodeID, func(s *Seen) bool {
		told := s.heads[sessionID]
		return told == "" || told == nodeID
	})
}

// Cursor returns the cursor of the last event of a session that came.
func (e *Editor) Cursor(sessionID string) string {
	e.mu.Lock()
	defer e.mu.Unlock()
	if events := e.seen.Events[sessionID]; len(events) > 0 {
		return events[len(events)-1].Cursor
	}
	return ""
}

// Forget forgets the events of a session that the server has sent so far.
func (e *Editor) Forget(sessionID string) {
	e.t.Helper()
	if err := e.Delivered(e.t.Context()); err != nil {
		e.t.Fatal(err)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, ev := range e.seen.Events[sessionID] {
		delete(e.seen.cursors, [2]string{sessionID, ev.Cursor})
	}
	delete(e.seen.Events, sessionID)
}

// ForgetText forgets the deltas of a node that came so far.
func (e *Editor) ForgetText(nodeID string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.seen.Texts, nodeID)
}
