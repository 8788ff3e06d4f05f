package server

import (
	"context"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"convls/protocol"

	"go.uber.org/zap"
)

const (
	// page is how many events are read at once. An event can carry a node with all
	// its text, so a page is what a stalled client costs beside its queue.
	page = 16
	// maxHeld bounds the deltas that wait for the events before them, in bytes a
	// connection.
	maxHeld = 64 << 10
	// maxRetry is the longest pause before a source that failed is asked again.
	maxRetry = 30 * time.Second
)

// subscription is what one client follows of one session. The pump's lock guards
// all but the first two; after and failures are the pump goroutine's alone.
type subscription struct {
	pump    *pump
	session string

	after    string
	failures int

	// paused waits for the reply of the request that subscribed.
	paused bool
	ended  bool
	queued bool
	// news counts what was published, read is the count up to which events have been
	// sent.
	news, read int
	held       []heldDelta
}

// heldDelta is a delta that must not overtake the events published before it.
type heldDelta struct {
	node string
	body []byte
}

// pump moves events to one client, as fast as the client takes them. It is the
// only place where events wait for a client, and they wait in the ledger.
type pump struct {
	conn *Conn
	wake chan struct{}

	mu    sync.Mutex
	due   []*subscription
	held  int
	store storeFeed
}

func newPump(c *Conn) *pump {
	return &pump{conn: c, wake: make(chan struct{}, 1)}
}

func (p *pump) signal() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// published notes that s has news.
func (p *pump) published(s *subscription) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s.news++
	p.enqueue(s)
}

// resume begins a subscription; what came before it is news.
func (p *pump) resume(s *subscription) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s.paused = false
	s.news++
	p.enqueue(s)
}

// enqueue has the pump look at s. p.mu is held.
func (p *pump) enqueue(s *subscription) {
	if s.queued || s.paused || s.ended {
		return
	}
	s.queued = true
	p.due = append(p.due, s)
	p.signal()
}

// end forgets s; what is on its way may still arrive.
func (p *pump) end(s *subscription) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s.ended = true
	for _, d := range s.held {
		p.held -= len(d.body)
	}
	s.held = nil
}

// delta sends a delta if everything published before it was sent, else keeps it
// until then, as far as there is room.
func (p *pump) delta(s *subscription, node string, body []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case s.ended:
	case !s.paused && s.news == s.read:
		p.conn.stream.TrySend(body)
	case p.held+len(body) <= maxHeld:
		s.held = append(s.held, heldDelta{node, body})
		p.held += len(body)
	}
}

// release sends the deltas that s holds, of one node or (node empty) of all.
// p.mu is held.
func (p *pump) release(s *subscription, node string) {
	s.held = slices.DeleteFunc(s.held, func(d heldDelta) bool {
		if node != "" && d.node != node {
			return false
		}
		p.conn.stream.TrySend(d.body)
		p.held -= len(d.body)
		return true
	})
}

// run sends what is due, one page of one subscription after the other, until the
// connection ends.
func (p *pump) run() {
	ctx := p.conn.root
	retry := time.NewTimer(maxRetry)
	retry.Stop()
	defer retry.Stop()
	var failed []*subscription
	for {
		select {
		case <-ctx.Done():
			return
		case <-p.wake:
		case <-retry.C:
			p.mu.Lock()
			for _, s := range failed {
				p.enqueue(s)
			}
			p.mu.Unlock()
			failed = nil
		}
		for {
			if p.conn.stream.Room(ctx) != nil {
				return
			}
			if p.sendStore(ctx) {
				continue
			}
			s := p.next()
			if s == nil {
				break
			}
			if err := p.send(ctx, s); err != nil && ctx.Err() == nil {
				failed = append(failed, s)
				retry.Reset(p.failed(s, err))
			}
		}
	}
}

// next takes the subscription that has waited longest.
func (p *pump) next() *subscription {
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(p.due) > 0 {
		s := p.due[0]
		p.due = slices.Delete(p.due, 0, 1)
		s.queued = false
		if !s.ended {
			return s
		}
	}
	return nil
}

// failed notes that the events of s could not be read, and returns when to try
// again.
func (p *pump) failed(s *subscription, err error) time.Duration {
	s.failures++
	if s.failures == 1 {
		p.conn.log.Warn("events can not be read", zap.String("session", s.session), zap.Error(err))
	}
	return min(maxRetry, 100*time.Millisecond<<min(s.failures, 10))
}

// send moves one page of events.
func (p *pump) send(ctx context.Context, s *subscription) (err error) {
	defer func() {
		if r := recover(); r != nil {
			p.conn.log.Error("panic while reading events", zap.Any("panic", r), zap.ByteString("stack", debug.Stack()))
			err = fmt.Errorf("panic: %v", r)
		}
	}()
	p.mu.Lock()
	news := s.news
	p.mu.Unlock()
	events, cursor, reset, err := p.conn.opts.Hub.source.Events(ctx, s.session, s.after, page)
	if protocol.CodeOf(err) == protocol.CodeUnknownSession {
		p.conn.opts.Hub.drop(s)
		return nil
	}
	if err != nil {
		return err
	}
	s.failures = 0
	if reset {
		if err := p.conn.Notify(ctx, protocol.MethodReset, protocol.ResetNotification{SessionID: s.session, Cursor: cursor}); err != nil {
			return err
		}
	}
	for _, e := range events {
		if err := p.sendEvent(ctx, s, e); err != nil {
			return err
		}
		s.after = e.Cursor
	}
	s.after = cursor

	p.mu.Lock()
	defer p.mu.Unlock()
	if len(events) == page {
		p.enqueue(s)
		return nil
	}
	s.read = news
	if s.news == s.read {
		p.release(s, "")
	} else {
		p.enqueue(s)
	}
	return nil
}

// sendEvent sends one event of a subscription that still stands. The deltas of a
// node go before the event that ends it, even if they have waited for others.
func (p *pump) sendEvent(ctx context.Context, s *subscription, e protocol.Event) error {
	body, err := p.encode(e)
	if err != nil {
		// It would fail every time, and hold up what comes after it.
		p.conn.log.Error("event left out", zap.String("session", s.session), zap.String("cursor", e.Cursor), zap.Error(err))
		return nil
	}
	p.mu.Lock()
	if s.ended {
		p.mu.Unlock()
		return nil
	}
	if node := ends(e); node != "" {
		p.release(s, node)
	}
	p.mu.Unlock()
	return p.conn.stream.Send(ctx, body)
}

// ends returns the node that is final with e, or "".
func ends(e protocol.Event) string {
	switch e.Type {
	case protocol.EventTurnFinished, protocol.EventTurnFailed, protocol.EventTurnCancelled, protocol.EventTurnInterrupted, protocol.EventNodeSealed:
		if e.NodeID == "" && e.Node != nil {
			return e.Node.ID
		}
		return e.NodeID
	}
	return ""
}

// encode makes the notification of e. A node that is longer than a reply may be
// stays out: the client reads it with convls/node/get.
func (p *pump) encode(e protocol.Event) ([]byte, error) {
	body, err := notification(protocol.MethodEvent, e)
	if err == nil && len(body) > p.conn.opts.MaxReply && e.Node != nil {
		e.NodeID, e.Node = e.Node.ID, nil
		body, err = notification(protocol.MethodEvent, e)
	}
	return body, err
}
