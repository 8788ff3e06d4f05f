package server

import (
	"context"
	"sync"

	"convls/protocol"
)

// EventSource is where events are read: the ledger.
type EventSource interface {
	// Events returns up to limit events of a session after the cursor, oldest first,
	// and the cursor to go on from. reset says that the source does not have what
	// comes after the cursor any more; then there are no events, and the cursor is
	// that of the present. A session that is gone is an error with code
	// unknown_session.
	Events(ctx context.Context, sessionID, after string, limit int) (events []protocol.Event, cursor string, reset bool, err error)
}

// Hub tells clients what happens in the ledger. Whoever changes the ledger calls
// it; no call waits for a client.
type Hub struct {
	source EventSource

	mu    sync.RWMutex
	conns map[*Conn]struct{}
	subs  map[string]map[*subscription]struct{}
}

// NewHub makes a hub whose subscribers read from source. Without a source there
// is nothing to subscribe to.
func NewHub(source EventSource) *Hub {
	return &Hub{
		source: source,
		conns:  make(map[*Conn]struct{}),
		subs:   make(map[string]map[*subscription]struct{}),
	}
}

// Publish says that a session has new events, which are durable.
func (h *Hub) Publish(sessionID string) {
	h.mu.RLock()
	defer h.mu.RUnlock()
	for s := range h.subs[sessionID] {
		s.pump.published(s)
	}
}

// Delta brings live text to the subscribers of its session. A client that has no
// room misses it. All deltas of a node reach a client before the event that ends
// the node, and after the one that began it, if Delta is called between the
// publishing of the one and the commit of the other.
func (h *Hub) Delta(d protocol.Delta) {
	h.mu.RLock()
	defer h.mu.RUnlock()
	subs := h.subs[d.SessionID]
	if len(subs) == 0 {
		return
	}
	body, err := notification(protocol.MethodDelta, d)
	if err != nil {
		// Text that is not UTF-8 can not be sent; the node's own text is what counts.
		return
	}
	for s := range subs {
		s.pump.delta(s, d.NodeID, body)
	}
}

// PublishStore brings an event of type session_created, session_changed or
// session_deleted to the clients that follow the store, and the last of these to
// the subscribers of the session too, whose subscription ends with it.
func (h *Hub) PublishStore(e protocol.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	deleted := e.Type == protocol.EventSessionDeleted
	for c := range h.conns {
		c.pump.storeEvent(e, deleted && h.subscription(c, e.SessionID) != nil)
	}
	if deleted {
		for s := range h.subs[e.SessionID] {
			h.remove(s)
		}
	}
}

// Clients returns how many connections there are.
func (h *Hub) Clients() int {
	h.mu.RLock()
	defer h.mu.RUnlock()
	return len(h.conns)
}

// Subscribe brings the events of a session after the cursor to the client, and
// its deltas. It replaces a subscription to the same session. In a request, the
// events come after the reply, and not at all if the reply is an error; deltas in
// between are kept, so a method takes its cursor, subscribes, and then reads what
// it replies with.
func (c *Conn) Subscribe(ctx context.Context, sessionID, after string) {
	h := c.opts.Hub
	s := &subscription{pump: c.pump, session: sessionID, after: after, paused: true}
	h.mu.Lock()
	if _, open := h.conns[c]; !open || h.source == nil {
		h.mu.Unlock()
		return
	}
	if old := h.subscription(c, sessionID); old != nil {
		h.remove(old)
	}
	if h.subs[sessionID] == nil {
		h.subs[sessionID] = make(map[*subscription]struct{})
	}
	h.subs[sessionID][s] = struct{}{}
	h.mu.Unlock()

	afterReply(ctx, func(ok bool) {
		if ok {
			c.pump.resume(s)
			return
		}
		h.mu.Lock()
		defer h.mu.Unlock()
		h.remove(s)
	})
}

// Unsubscribe ends the subscription to a session, if there is one.
func (c *Conn) Unsubscribe(sessionID string) {
	h := c.opts.Hub
	h.mu.Lock()
	defer h.mu.Unlock()
	if s := h.subscription(c, sessionID); s != nil {
		h.remove(s)
	}
}

// SubscribeStore brings the events that tell of sessions to the client, from now
// on. In a request, they come after the reply.
func (c *Conn) SubscribeStore(ctx context.Context) {
	if c.pump.followStore() {
		afterReply(ctx, c.pump.resumeStore)
	}
}

// join makes c known.
func (h *Hub) join(c *Conn) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.conns[c] = struct{}{}
}

// leave ends everything that c has.
func (h *Hub) leave(c *Conn) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.conns, c)
	for _, subs := range h.subs {
		for s := range subs {
			if s.pump == c.pump {
				h.remove(s)
			}
		}
	}
}

// subscription finds what c has for a session. h.mu is held.
func (h *Hub) subscription(c *Conn, sessionID string) *subscription {
	for s := range h.subs[sessionID] {
		if s.pump == c.pump {
			return s
		}
	}
	return nil
}

// remove ends a subscription. h.mu is held.
func (h *Hub) remove(s *subscription) {
	s.pump.end(s)
	delete(h.subs[s.session], s)
	if len(h.subs[s.session]) == 0 {
		delete(h.subs, s.session)
	}
}

// drop ends a subscription from the pump's side.
func (h *Hub) drop(s *subscription) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.remove(s)
}
