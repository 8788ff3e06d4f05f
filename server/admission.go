package server

import (
	"context"
	"slices"
)

// lane is the order of one session's requests on one connection: one is being
// handled, the others wait as they came.
type lane struct {
	holder  *ticket
	waiting []*ticket
}

// ticket is a request's place in its lane.
type ticket struct {
	turn chan struct{}
}

// Admitted says that the request of ctx has done what must be in order, and only
// waits from here: the next request on its session begins. A turn that the client
// waits for calls it as soon as the turn is admitted. When the connection ends,
// such a request is cancelled first. Outside of a request it does nothing.
func Admitted(ctx context.Context) {
	k := callOf(ctx)
	if k == nil {
		return
	}
	k.conn.mu.Lock()
	defer k.conn.mu.Unlock()
	k.admitted = true
	k.conn.pass(k)
	if k.conn.ending {
		k.cancel(errEnded)
	}
}

// Admitted is the function of this name, for those who know a connection only as
// an interface.
func (c *Conn) Admitted(ctx context.Context) { Admitted(ctx) }

// enter puts k at the end of its session's lane. c.mu is held.
func (c *Conn) enter(k *call) {
	if k.session == "" {
		return
	}
	k.turn = &ticket{turn: make(chan struct{})}
	l := c.lanes[k.session]
	if l == nil {
		l = &lane{}
		c.lanes[k.session] = l
	}
	l.waiting = append(l.waiting, k.turn)
	c.next(k.session)
}

// wait returns when it is k's turn, or with the cause of its cancellation.
func (k *call) wait() error {
	if k.turn != nil {
		select {
		case <-k.turn.turn:
		case <-k.ctx.Done():
		}
	}
	return context.Cause(k.ctx)
}

// pass gives k's place up, wherever in the lane it is. c.mu is held.
func (c *Conn) pass(k *call) {
	l := c.lanes[k.session]
	if k.turn == nil || l == nil {
		return
	}
	if l.holder == k.turn {
		l.holder = nil
	} else if i := slices.Index(l.waiting, k.turn); i >= 0 {
		l.waiting = slices.Delete(l.waiting, i, i+1)
	}
	c.next(k.session)
}

// next gives the turn to the first that waits. c.mu is held.
func (c *Conn) next(session string) {
	l := c.lanes[session]
	switch {
	case l.holder != nil:
	case len(l.waiting) == 0:
		delete(c.lanes, session)
	default:
		l.holder = l.waiting[0]
		l.waiting = slices.Delete(l.waiting, 0, 1)
		close(l.holder.turn)
	}
}
