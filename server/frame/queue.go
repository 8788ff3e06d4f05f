package frame

import (
	"context"
	"io"
	"slices"
	"strconv"
	"sync"
)

const (
	// writeChunk is the most that is written in one call, so that room is noticed
	// while a large message is on its way.
	writeChunk = 64 << 10
	// keepQueue is how large an emptied buffer may be to be used again.
	keepQueue = 128 << 10
)

// queue holds framed messages for one writer. It is two byte buffers, one that
// is filled and one that is written, so that a small message costs a copy and no
// allocation, and many of them one write.
type queue struct {
	limit int

	mu      sync.Mutex
	filled  *sync.Cond
	pending []byte
	// depth is the bytes in pending and those being written.
	depth   int
	waiting []*ticket
	// roomy is closed when there is room; nil while nobody asked.
	roomy chan struct{}
	// err is why nothing is taken any more.
	err error
}

// ticket is a message that waits for room.
type ticket struct {
	body []byte
	// done gets nil once the message is queued, and has room for it.
	done chan error
}

func newQueue(limit int) *queue {
	q := &queue{limit: limit}
	q.filled = sync.NewCond(&q.mu)
	return q
}

func (q *queue) send(ctx context.Context, body []byte) error {
	q.mu.Lock()
	if q.err != nil {
		defer q.mu.Unlock()
		return q.err
	}
	if len(q.waiting) == 0 && q.fits(body, q.limit) {
		q.add(body)
		q.mu.Unlock()
		return nil
	}
	t := &ticket{body: body, done: make(chan error, 1)}
	q.waiting = append(q.waiting, t)
	q.mu.Unlock()

	select {
	case err := <-t.done:
		return err
	case <-ctx.Done():
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if i := slices.Index(q.waiting, t); i >= 0 {
		q.waiting = slices.Delete(q.waiting, i, i+1)
		q.advance()
		return context.Cause(ctx)
	}
	// It was queued, or refused, in the same moment.
	return <-t.done
}

func (q *queue) trySend(body []byte) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.err != nil || len(q.waiting) > 0 || !q.fits(body, q.limit/2) {
		return false
	}
	q.add(body)
	return true
}

func (q *queue) queued() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.depth
}

func (q *queue) room(ctx context.Context) error {
	for {
		roomy, err := q.roomSignal()
		if roomy == nil {
			return err
		}
		select {
		case <-roomy:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// roomSignal returns what is closed when there is room, or nil if there is now or
// never will be.
func (q *queue) roomSignal() (<-chan struct{}, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.err != nil || q.hasRoom() {
		return nil, q.err
	}
	if q.roomy == nil {
		q.roomy = make(chan struct{})
	}
	return q.roomy, nil
}

// close makes the queue take nothing more, for the reason err. What is in it
// already is still written.
func (q *queue) close(err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.err == nil {
		q.err = err
	}
	q.advance()
	q.filled.Broadcast()
}

// drain writes what is queued until the queue is closed and empty, or w fails.
func (q *queue) drain(w io.Writer) {
	var batch []byte
	for {
		if cap(batch) > keepQueue {
			batch = nil
		}
		q.mu.Lock()
		for len(q.pending) == 0 && q.err == nil {
			q.filled.Wait()
		}
		batch, q.pending = q.pending, batch[:0]
		q.mu.Unlock()
		if len(batch) == 0 {
			return
		}
		for rest := batch; len(rest) > 0; {
			n := min(len(rest), writeChunk)
			_, err := w.Write(rest[:n])
			rest = rest[n:]
			if !q.wrote(n, err) {
				return
			}
		}
	}
}

// wrote accounts for n bytes that the peer took, and reports whether to go on.
func (q *queue) wrote(n int, err error) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if err != nil {
		q.err, q.pending, q.depth = err, nil, 0
		q.advance()
		return false
	}
	q.depth -= n
	q.advance()
	return true
}

// advance queues the messages that wait and now fit, or refuses them all once
// the queue is closed, and tells who waits for room. q.mu is held.
func (q *queue) advance() {
	for len(q.waiting) > 0 && (q.err != nil || q.fits(q.waiting[0].body, q.limit)) {
		t := q.waiting[0]
		q.waiting = slices.Delete(q.waiting, 0, 1)
		if q.err == nil {
			q.add(t.body)
		}
		t.done <- q.err
	}
	if q.roomy != nil && (q.err != nil || q.hasRoom()) {
		close(q.roomy)
		q.roomy = nil
	}
}

func (q *queue) hasRoom() bool {
	return len(q.waiting) == 0 && q.depth <= q.limit/2
}

// fits reports whether body may be queued under limit: alone it always may.
func (q *queue) fits(body []byte, limit int) bool {
	return q.depth == 0 || q.depth+len(lengthField)+20+len(body) <= limit
}

const lengthField = "Content-Length: "

// add appends body with its header to what is to be written. q.mu is held.
func (q *queue) add(body []byte) {
	before := len(q.pending)
	q.pending = append(q.pending, lengthField...)
	q.pending = strconv.AppendInt(q.pending, int64(len(body)), 10)
	q.pending = append(q.pending, "\r\n\r\n"...)
	q.pending = append(q.pending, body...)
	q.depth += len(q.pending) - before
	q.filled.Signal()
}
