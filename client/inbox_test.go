package client

import (
	"testing"
	"testing/synctest"

	"convls/protocol"
)

// The reader is held up by slow callbacks, unless a call waits for its reply.
func TestFullInboxHoldsTheReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newInbox()
		big := notice{method: protocol.MethodEvent, params: make([]byte, maxInbox+1)}
		if !b.put(big) {
			t.Fatal("an open inbox refused")
		}
		put := make(chan bool, 1)
		go func() { put <- b.put(notice{method: protocol.MethodEvent}) }()
		synctest.Wait()
		if len(put) != 0 {
			t.Fatal("the reader was not held up")
		}
		if b.put(notice{method: protocol.MethodDelta, params: []byte("x")}); b.bytes != maxInbox+1 {
			t.Error("a delta was kept")
		}
		b.expect(1)
		if !<-put {
			t.Error("a call that waits did not let the reader go on")
		}
		b.expect(-1)
		go func() { put <- b.put(notice{method: protocol.MethodEvent}) }()
		synctest.Wait()
		if len(put) != 0 {
			t.Fatal("the reader was not held up again")
		}
		handled := 0
		done := make(chan struct{})
		go func() {
			b.deliver(func(notice) { handled++ })
			close(done)
		}()
		if !<-put {
			t.Error("delivery did not let the reader go on")
		}
		b.close()
		<-done
		if handled != 3 || b.bytes != 0 {
			t.Errorf("%d handled, %d bytes left", handled, b.bytes)
		}
		if b.put(big) {
			t.Error("a closed inbox took a notice")
		}
	})
}
