package client

import (
	"sync"

	"convls/protocol"
)

// maxInbox is how many bytes of notifications may wait for the callbacks.
const maxInbox = 4 << 20

// notice is a notification, or a mark to be closed when it is its turn.
type notice struct {
	method string
	params []byte
	mark   chan struct{}
}

// inbox holds the notifications between the goroutine that reads and the one that
// runs the callbacks.
type inbox struct {
	mu      sync.Mutex
	changed *sync.Cond
	notices []notice
	bytes   int
	// expected counts the calls that wait for a reply.
	expected int
	closed   bool
}

func newInbox() *inbox {
	b := &inbox{}
	b.changed = sync.NewCond(&b.mu)
	return b
}

// expect changes the number of calls that wait for a reply.
func (b *inbox) expect(by int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.expected += by
	b.changed.Broadcast()
}

// put adds a notice, in order. While too much waits, deltas are dropped, and the
// reader is held up: not if somebody waits for a reply, who may be the very
// callback that all wait for. It reports whether the inbox is open.
func (b *inbox) put(n notice) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if n.method == protocol.MethodDelta && b.bytes > maxInbox {
		return !b.closed
	}
	for b.bytes > maxInbox && b.expected == 0 && !b.closed && n.mark == nil {
		b.changed.Wait()
	}
	if b.closed {
		return false
	}
	b.notices = append(b.notices, n)
	b.bytes += len(n.params)
	b.changed.Broadcast()
	return true
}

// close lets deliver return when everything is delivered.
func (b *inbox) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	b.changed.Broadcast()
}

// deliver hands the notices to handle until the inbox is closed.
func (b *inbox) deliver(handle func(notice)) {
	for {
		b.mu.Lock()
		for len(b.notices) == 0 && !b.closed {
			b.changed.Wait()
		}
		batch := b.notices
		b.notices = nil
		b.mu.Unlock()
		if len(batch) == 0 {
			return
		}
		for _, n := range batch {
			if n.mark != nil {
				close(n.mark)
				continue
			}
			handle(n)
			b.mu.Lock()
			b.bytes -= len(n.params)
			b.changed.Broadcast()
			b.mu.Unlock()
		}
	}
}
