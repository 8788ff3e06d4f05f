package server

import (
	"context"
	"slices"

	"convls/protocol"

	"go.uber.org/zap"
)

// maxStoreEvents is how many sessions may have news that a client has not taken.
// Beyond it the client is told to list the sessions anew.
const maxStoreEvents = 1000

// storeFeed is what one client follows of the store: the last news of each
// session, in the order of the first. It is guarded by the pump's lock.
type storeFeed struct {
	on     bool
	paused bool
	order  []string
	news   map[string]protocol.Event
	lost   bool
}

// followStore begins to keep news, without sending any, and reports whether it
// did not before.
func (p *pump) followStore() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.store.on {
		return false
	}
	p.store.on, p.store.paused = true, true
	return true
}

// resumeStore begins to send news, or (ok false) forgets that it was to.
func (p *pump) resumeStore(ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !ok {
		p.store = storeFeed{}
		return
	}
	p.store.paused = false
	p.signal()
}

// storeEvent keeps e for the client, if it follows the store or must know anyway.
func (p *pump) storeEvent(e protocol.Event, anyway bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f := &p.store
	if !f.on && !anyway {
		return
	}
	old, waits := f.news[e.SessionID]
	switch {
	case waits && old.Type == protocol.EventSessionCreated && e.Type == protocol.EventSessionChanged:
		// The client has yet to hear of the session.
		e.Type = old.Type
	case !waits && len(f.order) >= maxStoreEvents:
		f.lost = true
		return
	case !waits:
		f.order = append(f.order, e.SessionID)
	}
	if f.news == nil {
		f.news = make(map[string]protocol.Event)
	}
	f.news[e.SessionID] = e
	p.signal()
}

// sendStore sends one piece of news of the store, if there is any.
func (p *pump) sendStore(ctx context.Context) bool {
	p.mu.Lock()
	f := &p.store
	if f.paused || len(f.order) == 0 && !f.lost {
		p.mu.Unlock()
		return false
	}
	if len(f.order) == 0 {
		f.lost = false
		p.mu.Unlock()
		return p.conn.Notify(ctx, protocol.MethodReset, protocol.ResetNotification{}) == nil
	}
	session := f.order[0]
	e := f.news[session]
	f.order = slices.Delete(f.order, 0, 1)
	delete(f.news, session)
	p.mu.Unlock()
	if err := p.conn.Notify(ctx, protocol.MethodEvent, e); err != nil {
		p.conn.log.Debug("store event not sent", zap.String("session", session), zap.Error(err))
	}
	return true
}
