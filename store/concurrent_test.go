package store

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"convls/protocol"
)

// 32 sessions write while others read them; each reader's picture is whole.
func TestConcurrent(t *testing.T) {
	s := openTest(t, vfs.NewMem())
	var wg, readers sync.WaitGroup
	stop := make(chan struct{})
	var sessions []*Session
	turns := max(sized(30), 5)
	for range 32 {
		sess := newSession(t, s)
		sessions = append(sessions, sess)
		wg.Go(func() {
			for i := range turns {
				if _, err := Apply(context.Background(), sess, Request{ID: fmt.Sprint("r", i)}, func(tx *Tx) (string, error) {
					u, err := tx.Append(NodeSpec{Kind: protocol.KindUser, Predecessor: tx.State.Head, Status: protocol.StatusSealed, Content: textContent("hello")})
					if err != nil {
						return "", err
					}
					a, err := tx.Append(NodeSpec{Kind: protocol.KindAssistant, Predecessor: u.Seq, Status: protocol.StatusSealed, Content: textContent("hi")})
					return a.ID, err
				}); err != nil {
					t.Error(err)
				}
				if err := sess.Checkpoint(Root, 0, protocol.DeltaText, "x"); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for i := range 4 {
		readers.Go(func() {
			for n := i; ; n++ {
				select {
				case <-stop:
					return
				default:
				}
				whole(t, sessions[n%len(sessions)])
				if _, _, err := s.Sessions(context.Background(), Filter{Limit: 10}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	close(stop)
	readers.Wait()
	for _, sess := range sessions {
		want(t, "nodes", sess.State().Nodes, uint64(1+2*turns))
		do(t, sess, func(tx *Tx) error { return tx.dropRange(key(famPiece, tx.session)) })
	}
	clean(t, s)
}

// whole checks that a picture of a session holds full turns, and its own HEAD.
func whole(t *testing.T, sess *Session) {
	r, err := sess.Reader()
	if err != nil {
		t.Error(err)
		return
	}
	defer r.Close()
	head, err := r.Skeleton(r.State.Head)
	if err != nil {
		t.Error(err)
		return
	}
	nodes := uint64(0)
	for _, err := range r.Spine(head) {
		if err != nil {
			t.Error(err)
			return
		}
		nodes++
	}
	if nodes != r.State.Nodes || nodes%2 != 1 {
		t.Errorf("the spine has %d nodes, the state says %d", nodes, r.State.Nodes)
	}
	if _, err := r.Skeleton(r.State.Next); protocol.CodeOf(err) != protocol.CodeUnknownNode {
		t.Errorf("a node of after the picture: %v", err)
	}
}

// One session, many writers: one after the other, and each sees the ones before.
func TestWritersOfOneSession(t *testing.T) {
	s := openTest(t, vfs.NewMem())
	sess := newSession(t, s)
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			for range 20 {
				if _, err := Apply(context.Background(), sess, Request{}, func(tx *Tx) (int, error) {
					_, err := tx.Append(NodeSpec{Kind: protocol.KindUser, Predecessor: tx.State.Head, Status: protocol.StatusSealed})
					return 0, err
				}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	head := read(t, sess, func(r *Reader) (Skeleton, error) { return r.Skeleton(r.State.Head) })
	want(t, "depth of HEAD", head.Depth, 16*20)
	clean(t, s)
}

// A mutation that waits for another can be cancelled, and a handler that panics
// leaves the session usable.
func TestCancelledAndPanicking(t *testing.T) {
	s := openTest(t, vfs.NewMem())
	sess := newSession(t, s)
	inside, leave := make(chan struct{}), make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		do(t, sess, func(tx *Tx) error {
			close(inside)
			<-leave
			return tx.Name("main", Skeleton{Seq: Root})
		})
	})
	<-inside
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Apply(ctx, sess, Request{}, func(*Tx) (int, error) { return 0, nil }); err == nil {
		t.Error("a cancelled mutation was carried out")
	}
	close(leave)
	wg.Wait()
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic is gone")
			}
		}()
		_, _ = Apply(context.Background(), sess, Request{}, func(tx *Tx) (int, error) {
			if _, err := tx.Append(NodeSpec{Kind: protocol.KindUser, Predecessor: Root, Status: protocol.StatusSealed, Content: textContent(long(100_000))}); err != nil {
				t.Error(err)
			}
			panic("a defect")
		})
	}()
	want(t, "chunks", count(t, s, famChunk), 0)
	say(t, sess, "on", "we go")
	clean(t, s)
}
