package store

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"convls/protocol"
)

// writer keeps a session busy and remembers what was acknowledged.
type writer struct {
	sess *Session
	rng  *rand.Rand

	mu    sync.Mutex
	acked []turnAck
	head  string
	// streamed is the text of the open reply that a later acknowledgement covers.
	streamed string
}

type turnAck struct{ user, reply, text string }

// turn writes a message with its open reply in one mutation, streams, and seals.
func (w *writer) turn(i int) error {
	a := turnAck{fmt.Sprint("u", i), fmt.Sprint("a", i), long(1 + w.rng.IntN(3_000))}
	if w.rng.IntN(8) == 0 {
		a.text = long(chunkSize + w.rng.IntN(3*chunkSize))
	}
	var open Skeleton
	_, err := Apply(context.Background(), w.sess, Request{ID: fmt.Sprint("r", i)}, func(tx *Tx) (string, error) {
		u, err := tx.Append(NodeSpec{ID: a.user, Kind: protocol.KindUser, Predecessor: tx.State.Head, Status: protocol.StatusSealed, Content: textContent(a.text)})
		if err != nil {
			return "", err
		}
		open, err = tx.Append(NodeSpec{ID: a.reply, Kind: protocol.KindAssistant, Predecessor: u.Seq, Status: protocol.StatusOpen})
		return open.ID, err
	})
	if err != nil {
		return err
	}
	w.ack(func() { w.acked, w.head, w.streamed = append(w.acked, a), a.reply, "" })
	for range w.rng.IntN(4) {
		piece := fmt.Sprint("piece ", w.rng.IntN(100), " ")
		if err := w.sess.Checkpoint(open.Seq, 0, protocol.DeltaText, piece); err != nil {
			return err
		}
		// The next mutation's sync covers the pieces before it.
		if _, err := Apply(context.Background(), w.sess, Request{}, func(tx *Tx) (int, error) { return 0, tx.Pin(open, true) }); err != nil {
			return err
		}
		w.ack(func() { w.streamed += piece })
	}
	_, err = Apply(context.Background(), w.sess, Request{}, func(tx *Tx) (int, error) {
		_, err := tx.Seal(open.Seq, Final{Status: protocol.StatusSealed, Content: textContent("answer to " + a.user)})
		return 0, err
	})
	return err
}

func (w *writer) ack(f func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f()
}

// Rule 9, faults 64 and 80: power is cut at random moments under several writers.
// Nothing acknowledged is lost, no batch is there by half, and the store is whole.
func TestPowerLoss(t *testing.T) {
	runs := max(sized(40), 2)
	for seed := range runs {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) { powerLoss(t, uint64(seed)) })
	}
}

func powerLoss(t *testing.T, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 3))
	fs := vfs.NewCrashableMem()
	s := openTest(t, fs, func(o *Options) { o.MemTableBytes = 256 << 10 })
	var wg sync.WaitGroup
	stop := make(chan struct{})
	var writers []*writer
	enough := make(chan struct{}, 1)
	after := 1 + rng.IntN(60)
	for i := range 3 {
		w := &writer{sess: newSession(t, s), rng: rand.New(rand.NewPCG(seed, uint64(i)))}
		writers = append(writers, w)
		wg.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				if err := w.turn(i); err != nil {
					t.Error(err)
					return
				}
				if i == after {
					select {
					case enough <- struct{}{}:
					default:
					}
				}
			}
		})
	}
	<-enough
	type expected struct {
		acked          []turnAck
		head, streamed string
	}
	var all []expected
	for _, w := range writers {
		w.ack(func() { all = append(all, expected{append([]turnAck(nil), w.acked...), w.head, w.streamed}) })
	}
	clone := fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: rng.IntN(101), RNG: rng})
	close(stop)
	wg.Wait()

	after2 := openTest(t, clone, func(o *Options) { o.MemTableBytes = 256 << 10 })
	clean(t, after2)
	for i, w := range writers {
		sess := session(t, after2, w.sess.ID())
		r := snapshot(t, sess)
		for j, a := range all[i].acked {
			u, err := r.Lookup(a.user)
			if err != nil {
				t.Fatalf("message %d of %d was acknowledged: %v", j, len(all[i].acked), err)
			}
			c, err := r.Content(u.Seq)
			if err != nil || Text(c.Parts) != a.text {
				t.Fatalf("message %d was acknowledged and reads otherwise (%v)", j, err)
			}
			reply, err := r.Lookup(a.reply)
			if err != nil || reply.Status == protocol.StatusOpen {
				t.Fatalf("reply %d is %s (%v)", j, reply.Status, err)
			}
		}
		// The batch after the last acknowledged one is there as a whole or not at all.
		for j := len(all[i].acked); ; j++ {
			_, err1 := r.Lookup(fmt.Sprint("u", j))
			_, err2 := r.Lookup(fmt.Sprint("a", j))
			old, err := after2.receipt(sess.num, fmt.Sprint("r", j))
			if err != nil {
				t.Fatal(err)
			}
			if (err1 == nil) != (err2 == nil) || (err1 == nil) != (old != nil) {
				t.Errorf("a batch is there by half: %v, %v, receipt %v", err1, err2, old != nil)
			}
			if err1 != nil {
				break
			}
		}
		// What was streamed and synced is in the interrupted reply, unless the seal
		// came through.
		if last := all[i].head; last != "" {
			sk, err := r.Lookup(last)
			if err != nil {
				t.Fatal(err)
			}
			c, err := r.Content(sk.Seq)
			if err != nil {
				t.Fatal(err)
			}
			if sk.Status == protocol.StatusInterrupted && !strings.HasPrefix(Text(c.Parts), all[i].streamed) {
				t.Errorf("the interrupted reply reads %q, want %q at least", Text(c.Parts), all[i].streamed)
			}
		}
		_ = r.Close()
		// And it goes on.
		if len(all[i].acked) > 0 {
			want(t, "a request sent again", mustRepeat(t, sess), true)
		}
		say(t, sess, "on", "we go")
	}
	clean(t, after2)
}

// mustRepeat sends the first request of a writer again.
func mustRepeat(t *testing.T, sess *Session) bool {
	t.Helper()
	out, err := Apply(context.Background(), sess, Request{ID: "r0"}, func(*Tx) (string, error) { return "", nil })
	if err != nil {
		t.Fatal(err)
	}
	return out.Repeated
}
