package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"convls/protocol"

	"github.com/google/go-cmp/cmp"
)

// ledger is an EventSource in memory. Cursors are the numbers of events.
type ledger struct {
	mu      sync.Mutex
	events  map[string][]protocol.Event
	trimmed map[string]int
	fail    error
	reads   int
}

func newLedger() *ledger {
	return &ledger{events: make(map[string][]protocol.Event), trimmed: make(map[string]int)}
}

func (l *ledger) add(session string, e protocol.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e.SessionID, e.Cursor = session, strconv.Itoa(len(l.events[session])+1)
	l.events[session] = append(l.events[session], e)
}

func (l *ledger) Events(_ context.Context, session, after string, limit int) ([]protocol.Event, string, bool, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.reads++
	all, known := l.events[session]
	if l.fail != nil {
		return nil, "", false, l.fail
	}
	if !known {
		return nil, "", false, protocol.Errorf(protocol.CodeUnknownSession, "gone")
	}
	n, _ := strconv.Atoi(after)
	if n < l.trimmed[session] {
		return nil, strconv.Itoa(len(all)), true, nil
	}
	events := all[n:min(len(all), n+limit)]
	return events, strconv.Itoa(n + len(events)), false, nil
}

// methods are what handlers do with subscriptions.
func methods() map[string]Method {
	type params struct {
		SessionID string `json:"session_id"`
		After     string `json:"after"`
		Fail      bool   `json:"fail"`
	}
	with := func(fn func(ctx context.Context, c *Conn, p params)) Method {
		return Method{Handle: func(ctx context.Context, c *Conn, raw []byte) (any, error) {
			var p params
			if err := protocol.Unmarshal(raw, &p); err != nil {
				return nil, err
			}
			fn(ctx, c, p)
			if p.Fail {
				return nil, errors.New("no")
			}
			return object{}, nil
		}}
	}
	return map[string]Method{
		"sub":   with(func(ctx context.Context, c *Conn, p params) { c.Subscribe(ctx, p.SessionID, p.After) }),
		"unsub": with(func(_ context.Context, c *Conn, p params) { c.Unsubscribe(p.SessionID) }),
		"store": with(func(ctx context.Context, c *Conn, _ params) { c.SubscribeStore(ctx) }),
	}
}

// seen returns what comes next as words: "s:3" for an event, "s/node+off" for a
// delta, "reset s:3", or the id of a reply.
func (p *peer) seen() string {
	p.t.Helper()
	m := p.recv()
	var e protocol.Event
	var d protocol.Delta
	switch m.Method {
	case protocol.MethodEvent:
		_ = json.Unmarshal(m.Params, &e)
		if e.Cursor == "" {
			return e.SessionID + ":" + string(e.Type)
		}
		return e.SessionID + ":" + e.Cursor
	case protocol.MethodDelta:
		_ = json.Unmarshal(m.Params, &d)
		return fmt.Sprintf("%s/%s+%d", d.SessionID, d.NodeID, d.Offset)
	case protocol.MethodReset:
		_ = json.Unmarshal(m.Params, &e)
		return "reset " + e.SessionID + ":" + e.Cursor
	case "":
		return "reply " + string(m.ID)
	}
	return m.Method
}

// see checks what comes next, in order.
func (p *peer) see(want ...string) {
	p.t.Helper()
	for i, w := range want {
		if got := p.seen(); got != w {
			p.t.Fatalf("message %d is %q, want %q of %q", i, got, w, want)
		}
	}
}

func TestReplayFollowsTheReplyAndGoesOnLive(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := newLedger()
		for range 40 {
			l.add("s", protocol.Event{})
		}
		h := NewHub(l)
		p := initialized(t, Options{Hub: h, Methods: methods()})
		p.call(1, "sub", `{"session_id":"s","after":"2"}`)
		p.see("reply 1")
		for i := 3; i <= 40; i++ {
			p.see(fmt.Sprintf("s:%d", i))
		}
		l.add("s", protocol.Event{})
		h.Publish("s")
		l.add("other", protocol.Event{})
		h.Publish("other")
		p.see("s:41")
		p.call(2, "unsub", `{"session_id":"s"}`)
		p.see("reply 2")
		l.add("s", protocol.Event{})
		h.Publish("s")
		h.Delta(protocol.Delta{SessionID: "s"})
		p.call(3, "sub", `{"session_id":"other","after":"1"}`)
		p.see("reply 3")
	})
}

func TestFailedSubscribeSubscribesNothing(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := newLedger()
		l.add("s", protocol.Event{})
		h := NewHub(l)
		p := initialized(t, Options{Hub: h, Methods: methods()})
		p.call(1, "sub", `{"session_id":"s","fail":true}`)
		p.call(2, "store", `{"fail":true}`)
		for range 2 {
			if m := p.recv(); m.Error == nil {
				t.Errorf("got %+v", m)
			}
		}
		h.Publish("s")
		h.PublishStore(protocol.Event{SessionID: "s", Type: protocol.EventSessionChanged})
		p.call(3, "unsub", `{}`)
		p.see("reply 3")
	})
}

func TestSubscribeAgainMovesThePosition(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := newLedger()
		l.add("s", protocol.Event{})
		l.add("s", protocol.Event{})
		p := initialized(t, Options{Hub: NewHub(l), Methods: methods()})
		p.call(1, "sub", `{"session_id":"s","after":"1"}`)
		p.see("reply 1", "s:2")
		p.call(2, "sub", `{"session_id":"s","after":"0"}`)
		p.see("reply 2", "s:1", "s:2")
		p.call(3, "sub", `{"session_id":"s","after":"2"}`)
		p.call(4, "unsub", `{"session_id":"x"}`)
		for range 2 {
			if m := p.recv(); m.Method != "" {
				t.Errorf("got %+v", m)
			}
		}
	})
}

func TestTrimmedPositionIsReset(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := newLedger()
		for range 9 {
			l.add("s", protocol.Event{})
		}
		l.trimmed["s"] = 5
		h := NewHub(l)
		p := initialized(t, Options{Hub: h, Methods: methods()})
		p.call(1, "sub", `{"session_id":"s","after":"2"}`)
		p.see("reply 1", "reset s:9")
		l.add("s", protocol.Event{})
		h.Publish("s")
		p.see("s:10")
	})
}

// A delta never overtakes the events before it, and never comes after the end of
// its node.
func TestDeltasKeepTheirPlaceAmongEvents(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := newLedger()
		h := NewHub(l)
		l.add("s", protocol.Event{})
		p := initialized(t, Options{Hub: h, Methods: methods()})
		p.call(1, "sub", `{"session_id":"s","after":"1"}`)
		p.see("reply 1")
		synctest.Wait()
		for node := range 50 {
			id := fmt.Sprint("n", node)
			first := 2 + 2*node
			l.add("s", protocol.Event{Type: protocol.EventNodeAppended, Node: &protocol.Node{ID: id}})
			h.Publish("s")
			h.Delta(protocol.Delta{SessionID: "s", NodeID: id})
			h.Delta(protocol.Delta{SessionID: "s", NodeID: id, Offset: 1})
			l.add("s", protocol.Event{Type: protocol.EventTurnFinished, NodeID: id})
			h.Publish("s")
			p.see(fmt.Sprintf("s:%d", first), "s/"+id+"+0", "s/"+id+"+1", fmt.Sprintf("s:%d", first+1))
		}
	})
}

// What is published between a subscribe's snapshot and its reply is not lost.
func TestDeltasBeforeTheReplyAreKept(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := newLedger()
		l.add("s", protocol.Event{Type: protocol.EventNodeAppended, Node: &protocol.Node{ID: "n"}})
		h := NewHub(l)
		m := methods()
		m["open"] = Method{Handle: func(ctx context.Context, c *Conn, _ []byte) (any, error) {
			c.Subscribe(ctx, "s", "0")
			h.Delta(protocol.Delta{SessionID: "s", NodeID: "n", Offset: 0})
			h.Publish("s")
			h.Delta(protocol.Delta{SessionID: "s", NodeID: "n", Offset: 5})
			return object{}, nil
		}}
		p := initialized(t, Options{Hub: h, Methods: m})
		p.call(1, "open", `{"session_id":"s"}`)
		p.see("reply 1", "s:1", "s/n+0", "s/n+5")
		synctest.Wait()
		h.Delta(protocol.Delta{SessionID: "s", NodeID: "n", Offset: 9})
		p.see("s/n+9")
	})
}

// fault 87's neighbour: a client that stops reading while its session and another
// one stream. It costs its queue and the deltas held, whatever is published; it
// misses deltas and no event; and the other client notices nothing.
func TestClientThatStopsReading(t *testing.T) {
	bubble(t, func(t *testing.T) {
		const queue = 64 << 10
		l := newLedger()
		h := NewHub(l)
		l.add("s", protocol.Event{})
		conns := make(chan *Conn, 2)
		opts := Options{Hub: h, Methods: methods(), QueueBytes: queue, OnInitialize: func(_ context.Context, c *Conn, _ protocol.Raw) error {
			conns <- c
			return nil
		}}
		stalled, reader := initialized(t, opts), initialized(t, opts)
		slow := <-conns
		for _, p := range []*peer{stalled, reader} {
			p.call(1, "sub", `{"session_id":"s","after":"1"}`)
			p.see("reply 1")
		}
		const n = 600
		text := strings.Repeat("x", 1000)
		for i := range n {
			l.add("s", protocol.Event{Text: text})
			h.Publish("s")
			h.Delta(protocol.Delta{SessionID: "s", NodeID: "n", Offset: int64(i), Text: text})
			reader.see(fmt.Sprintf("s:%d", i+2), fmt.Sprintf("s/n+%d", i))
			synctest.Wait()
			if got := slow.Queued(); got > queue {
				t.Fatalf("%d bytes are queued for a client that does not read", got)
			}
			slow.pump.mu.Lock()
			held := slow.pump.held
			slow.pump.mu.Unlock()
			if held > maxHeld {
				t.Fatalf("%d bytes of deltas are held", held)
			}
		}
		if l.reads > n+n/2 {
			t.Errorf("%d reads: the stalled client is read for though it has no room", l.reads)
		}
		// It wakes up: every event, in order, and no delta twice or out of order.
		next, last := 2, -1
		for next < n+2 {
			got := stalled.seen()
			if offset, ok := strings.CutPrefix(got, "s/n+"); ok {
				if o, _ := strconv.Atoi(offset); o > last {
					last = o
				} else {
					t.Fatalf("delta %d after %d", o, last)
				}
				continue
			}
			if got != fmt.Sprintf("s:%d", next) {
				t.Fatalf("got %q, want event %d", got, next)
			}
			next++
		}
	})
}

// While a client has no room nothing is read for it.
func TestNothingIsReadWithoutRoom(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := newLedger()
		l.add("s", protocol.Event{})
		h := NewHub(l)
		m := methods()
		m["fill"] = Method{Handle: func(ctx context.Context, c *Conn, _ []byte) (any, error) {
			return object{}, c.Notify(ctx, "filler", object{"a": strings.Repeat("x", 1500)})
		}}
		p := initialized(t, Options{Hub: h, Methods: m, QueueBytes: 2000})
		p.call(1, "sub", `{"session_id":"s","after":"1"}`)
		p.see("reply 1")
		synctest.Wait()
		p.call(2, "fill", `{}`)
		synctest.Wait()
		before := l.reads
		l.add("s", protocol.Event{})
		for range 5 {
			h.Publish("s")
			synctest.Wait()
		}
		if l.reads != before {
			t.Errorf("%d reads", l.reads-before)
		}
		p.see("filler", "reply 2", "s:2")
	})
}

func TestEventLargerThanAReplyLeavesItsNodeOut(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := newLedger()
		l.add("s", protocol.Event{Type: protocol.EventNodeSealed, Node: &protocol.Node{ID: "n", Content: []protocol.Part{{Type: protocol.PartText, Text: strings.Repeat("x", 5000)}}}})
		p := initialized(t, Options{Hub: NewHub(l), Methods: methods(), MaxReply: 4000})
		p.call(1, "sub", `{"session_id":"s"}`)
		p.see("reply 1")
		var e protocol.Event
		if err := json.Unmarshal(p.recv().Params, &e); err != nil || e.Node != nil || e.NodeID != "n" {
			t.Errorf("event %+v, %v", e, err)
		}
	})
}

func TestSourceThatFailsIsAskedAgain(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := newLedger()
		l.add("s", protocol.Event{})
		l.fail = errors.New("disk")
		p := initialized(t, Options{Hub: NewHub(l), Methods: methods()})
		p.call(1, "sub", `{"session_id":"s"}`)
		p.see("reply 1")
		synctest.Wait()
		l.mu.Lock()
		l.fail = nil
		l.mu.Unlock()
		p.see("s:1")
	})
}

func TestStoreEvents(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := newLedger()
		l.add("s", protocol.Event{})
		h := NewHub(l)
		p := initialized(t, Options{Hub: h, Methods: methods(), QueueBytes: 2000})
		event := func(session string, typ protocol.EventType) {
			h.PublishStore(protocol.Event{SessionID: session, Type: typ})
		}
		event("early", protocol.EventSessionCreated)
		p.call(1, "store", `{}`)
		p.see("reply 1")
		event("a", protocol.EventSessionCreated)
		p.see("a:session_created")

		// The client does not read: news of one session become one.
		full := strings.Repeat("x", 1500)
		h.PublishStore(protocol.Event{SessionID: "filler", Type: protocol.EventSessionChanged, Text: full})
		synctest.Wait()
		for range 10 {
			event("a", protocol.EventSessionChanged)
			event("b", protocol.EventSessionCreated)
			event("b", protocol.EventSessionChanged)
			event("c", protocol.EventSessionChanged)
		}
		event("c", protocol.EventSessionDeleted)
		p.see("filler:session_changed", "a:session_changed", "b:session_created", "c:session_deleted")

		// More sessions than are kept: list them anew.
		h.PublishStore(protocol.Event{SessionID: "filler", Type: protocol.EventSessionChanged, Text: full})
		synctest.Wait()
		for i := range maxStoreEvents + 5 {
			event(fmt.Sprint("x", i), protocol.EventSessionCreated)
		}
		p.see("filler:session_changed")
		for i := range maxStoreEvents {
			p.see(fmt.Sprintf("x%d:session_created", i))
		}
		p.see("reset :")
	})
}

func TestDeletedSessionEndsItsSubscription(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := newLedger()
		l.add("s", protocol.Event{})
		h := NewHub(l)
		p := initialized(t, Options{Hub: h, Methods: methods()})
		p.call(1, "sub", `{"session_id":"s","after":"1"}`)
		p.see("reply 1")
		h.PublishStore(protocol.Event{SessionID: "t", Type: protocol.EventSessionDeleted})
		h.PublishStore(protocol.Event{SessionID: "s", Type: protocol.EventSessionDeleted})
		p.see("s:session_deleted")
		if len(h.subs) != 0 {
			t.Errorf("subscriptions left: %v", h.subs)
		}
		// One that the source does not know ends too.
		p.call(2, "sub", `{"session_id":"never"}`)
		p.see("reply 2")
		synctest.Wait()
		if len(h.subs) != 0 {
			t.Errorf("subscriptions left: %v", h.subs)
		}
	})
}

// fault 89: a client that comes back uses its ids again and goes on from its
// cursor; nothing of the former connection is left.
func TestReconnect(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := newLedger()
		l.add("s", protocol.Event{})
		l.add("s", protocol.Event{})
		h := NewHub(l)
		g := newGate()
		m := methods()
		m["m"] = g.method()
		opts := Options{Hub: h, Methods: m}
		p := initialized(t, opts)
		p.call(1, "sub", `{"session_id":"s","after":"0"}`)
		p.see("reply 1", "s:1", "s:2")
		p.call(2, "m", `{"session_id":"s","name":"old"}`)
		g.running()
		p.conn.Close()
		if err := p.end(); !errors.Is(err, ErrNoShutdown) {
			t.Errorf("ended with %v", err)
		}
		if h.Clients() != 0 || len(h.subs) != 0 {
			t.Errorf("%d clients, subscriptions %v", h.Clients(), h.subs)
		}
		l.add("s", protocol.Event{})
		h.Publish("s")
		p = initialized(t, opts)
		p.call(1, "sub", `{"session_id":"s","after":"2"}`)
		p.see("reply 1", "s:3")
		p.call(2, "m", `{"session_id":"s","name":"new"}`)
		if got := g.running(); !cmp.Equal(got, []string{"new"}) {
			t.Errorf("running %v", got)
		}
		g.open <- ""
		if got := p.result(2); got != `{"name":"new"}` {
			t.Errorf("result %s", got)
		}
	})
}
