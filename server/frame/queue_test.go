package frame

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// body returns a message of n bytes that begins with name.
func body(name string, n int) []byte {
	return []byte(`"` + name + strings.Repeat("x", n-len(name)-2) + `"`)
}

// next reads one frame of in and returns the first letter in its body.
func next(t *testing.T, in *Stream) byte {
	t.Helper()
	h, err := readHeader(in.in)
	if err != nil {
		t.Fatal(err)
	}
	b, _, err := in.readBody(h)
	if err != nil {
		t.Fatal(err)
	}
	return b[1]
}

// stalled returns a stream whose peer reads only when asked to.
func stalled(t *testing.T, queue int) (s, peer *Stream) {
	a, b := net.Pipe()
	s, peer = New(a, Options{QueueBytes: queue}), New(b, Options{})
	t.Cleanup(func() {
		peer.conn.Close()
		s.Close()
		peer.Close()
		<-s.Done()
		<-peer.Done()
	})
	return s, peer
}

func TestFullQueueHoldsProducersOnlyInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, peer := stalled(t, 1000)
		if err := s.Send(t.Context(), body("a", 600)); err != nil {
			t.Fatal(err)
		}
		// b is too large for what is left; c would fit, but must not overtake.
		sent := make(chan string, 2)
		for _, name := range []string{"b", "c"} {
			go func() {
				size := map[string]int{"b": 900, "c": 50}[name]
				if err := s.Send(t.Context(), body(name, size)); err != nil {
					t.Error(err)
				}
				sent <- name
			}()
			synctest.Wait()
		}
		if len(sent) != 0 {
			t.Fatal("a message was taken beyond the limit")
		}
		if s.TrySend(body("d", 10)) {
			t.Error("TrySend overtook those who wait")
		}
		for _, want := range []byte{'a', 'b', 'c'} {
			if got := next(t, peer); got != want {
				t.Errorf("got %c, want %c", got, want)
			}
		}
		synctest.Wait()
		if len(sent) != 2 || s.Queued() != 0 {
			t.Errorf("%d sent, %d bytes queued", len(sent), s.Queued())
		}
	})
}

func TestMessageLargerThanTheQueueGoesAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, peer := stalled(t, 1000)
		if err := s.Send(t.Context(), body("a", 5000)); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		blocked := make(chan error, 1)
		go func() { blocked <- s.Send(ctx, body("b", 5000)) }()
		synctest.Wait()
		if len(blocked) != 0 {
			t.Fatal("two large messages were queued at once")
		}
		cancel()
		if err := <-blocked; !errors.Is(err, context.Canceled) {
			t.Errorf("a cancelled send returned %v", err)
		}
		if got := next(t, peer); got != 'a' {
			t.Errorf("got %c", got)
		}
		go s.Send(t.Context(), body("c", 10))
		if got := next(t, peer); got != 'c' {
			t.Errorf("got %c: a cancelled message was written", got)
		}
	})
}

// A large message that is given up lets the small one behind it go.
func TestCancelledMessageLetsTheNextGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, peer := stalled(t, 1000)
		if err := s.Send(t.Context(), body("a", 600)); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		large, small := make(chan error, 1), make(chan error, 1)
		go func() { large <- s.Send(ctx, body("b", 900)) }()
		synctest.Wait()
		go func() { small <- s.Send(t.Context(), body("c", 50)) }()
		synctest.Wait()
		cancel()
		synctest.Wait()
		if len(small) != 1 || <-small != nil || !errors.Is(<-large, context.Canceled) {
			t.Error("the small message still waits")
		}
		if first, second := next(t, peer), next(t, peer); first != 'a' || second != 'c' {
			t.Errorf("got %c and %c", first, second)
		}
	})
}

func TestTrySendDropsWhenHalfFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, peer := stalled(t, 100_000)
		taken := 0
		for s.TrySend(body("a", 1000)) {
			taken++
		}
		if taken < 40 || taken > 50 {
			t.Errorf("%d kB taken of a queue of 100", taken)
		}
		if err := s.Send(t.Context(), body("b", 40_000)); err != nil {
			t.Errorf("a reply found no room beside what may be dropped: %v", err)
		}
		waited := make(chan error, 1)
		go func() { waited <- s.Room(t.Context()) }()
		synctest.Wait()
		if len(waited) != 0 {
			t.Error("Room returned with a full queue")
		}
		// All of it: the writer takes what is queued in pieces of its own choice, and
		// counts a piece when the peer has read the last byte of it.
		for range taken + 1 {
			next(t, peer)
		}
		synctest.Wait()
		if len(waited) != 1 || <-waited != nil {
			t.Error("Room did not notice that there is room")
		}
		if !s.TrySend(body("c", 10)) {
			t.Error("TrySend refuses though there is room")
		}
	})
}

func TestCloseWritesWhatIsQueuedAndRefusesWhatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, peer := stalled(t, 1000)
		if err := s.Send(t.Context(), body("a", 900)); err != nil {
			t.Fatal(err)
		}
		waiting := make(chan error, 1)
		go func() { waiting <- s.Send(t.Context(), body("b", 900)) }()
		roomless := make(chan error, 1)
		go func() { roomless <- s.Room(t.Context()) }()
		synctest.Wait()
		s.Close()
		if err := <-waiting; !errors.Is(err, ErrClosed) {
			t.Errorf("a waiting send returned %v", err)
		}
		if err := <-roomless; !errors.Is(err, ErrClosed) {
			t.Errorf("a waiting Room returned %v", err)
		}
		if got := next(t, peer); got != 'a' {
			t.Errorf("got %c", got)
		}
		<-s.Done()
	})
}

// Close gives up on a peer that does not read, in the stream's own time.
func TestCloseGivesUpOnAStalledPeer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := stalled(t, 1000)
		if err := s.Send(t.Context(), body("a", 900)); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		s.Close()
		<-s.Done()
		if took := time.Since(start); took != DefaultFlushTimeout {
			t.Errorf("closed after %v, want %v", took, DefaultFlushTimeout)
		}
	})
}

func TestBrokenPeerFailsSends(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, peer := stalled(t, 1000)
		if err := s.Send(t.Context(), body("a", 900)); err != nil {
			t.Fatal(err)
		}
		waiting := make(chan error, 1)
		go func() { waiting <- s.Send(t.Context(), body("b", 900)) }()
		synctest.Wait()
		peer.conn.Close()
		if err := <-waiting; !errors.Is(err, io.ErrClosedPipe) {
			t.Errorf("a waiting send returned %v", err)
		}
		if err := s.Send(t.Context(), body("c", 9)); err == nil {
			t.Error("a later send returned nil")
		}
		<-s.Done()
	})
}

func TestQueueGivesMemoryBack(t *testing.T) {
	q := newQueue(1 << 20)
	ctx := t.Context()
	for _, n := range []int{8 << 20, 10, 10} {
		if err := q.send(ctx, body("a", n)); err != nil {
			t.Fatal(err)
		}
		q.mu.Lock()
		q.depth = 0
		q.mu.Unlock()
	}
	q.close(ErrClosed)
	q.drain(io.Discard)
	if cap(q.pending) > keepQueue {
		t.Errorf("%d bytes kept", cap(q.pending))
	}
}
