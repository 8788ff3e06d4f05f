package store

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"convls/protocol"
)

func TestEvents(t *testing.T) {
	s := openTest(t, vfs.NewMem())
	sess := newSession(t, s)
	start := s.cursor(0)
	u, a := say(t, sess, "one", "first")
	events, next, reset, err := sess.Events(context.Background(), start, 100)
	if err != nil || reset {
		t.Fatal(err, reset)
	}
	var got []string
	for i, e := range events {
		got = append(got, string(e.Type)+" "+e.NodeID+e.Head)
		want(t, "cursor", e.Cursor, s.cursor(uint64(i+1)))
		want(t, "session", e.SessionID, sess.ID())
	}
	want(t, "events", got, []string{
		"session_created ",
		"node_appended " + u.ID, "head_moved " + u.ID,
		"node_appended " + a.ID, "head_moved " + a.ID,
	})
	want(t, "text of a replayed node", Text(events[1].Node.Content), "one")
	want(t, "the end", next, sess.Cursor())
	want(t, "the reader's cursor", read(t, sess, func(r *Reader) (string, error) { return r.Cursor(), nil }), next)

	// Page by page gives the same.
	var paged []protocol.Event
	for at := start; ; {
		page, to, reset, err := sess.Events(context.Background(), at, 2)
		if err != nil || reset {
			t.Fatal(err, reset)
		}
		if len(page) == 0 {
			break
		}
		paged, at = append(paged, page...), to
	}
	want(t, "events by pages", paged, events)

	// A replay tells the origin, and after a restart all the same.
	if _, err := Apply(context.Background(), sess, Request{Origin: protocol.Origin{ClientID: "c", RequestID: "r"}, Cause: "checkout"},
		func(tx *Tx) (int, error) { return 0, tx.SetHead(u, "") }); err != nil {
		t.Fatal(err)
	}
	s = reopen(t, s)
	sess = session(t, s, sess.ID())
	events, _, reset, err = sess.Events(context.Background(), next, 100)
	if err != nil || reset || len(events) != 1 {
		t.Fatal(events, reset, err)
	}
	want(t, "origin and cause", []string{events[0].Origin.ClientID, events[0].Origin.RequestID, events[0].Cause}, []string{"c", "r", "checkout"})
	behind, ok := sess.Behind(start)
	want(t, "behind", behind, 6)
	want(t, "behind is known", ok, true)
}

func TestForeignCursors(t *testing.T) {
	s := openTest(t, vfs.NewMem())
	sess := newSession(t, s)
	say(t, sess, "one", "first")
	for _, c := range []string{"", ".", "5", "other.1", s.epoch + ".", s.epoch + ".-1", s.epoch + ".1.2", s.epoch + ".6", s.epoch + ".99999999999999999999999"} {
		events, next, reset, err := sess.Events(context.Background(), c, 10)
		if err != nil || !reset || len(events) != 0 || next != sess.Cursor() {
			t.Errorf("cursor %q: %d events, next %s, reset %v, %v; want a reset", c, len(events), next, reset, err)
		}
		if _, ok := sess.Behind(c); ok {
			t.Errorf("cursor %q is known", c)
		}
	}
	// Nothing new is no reason for a reset.
	events, next, reset, err := sess.Events(context.Background(), sess.Cursor(), 10)
	if err != nil || reset || len(events) != 0 || next != sess.Cursor() {
		t.Errorf("at the end: %d events, next %s, reset %v, %v", len(events), next, reset, err)
	}
}

func TestEventsAreTrimmed(t *testing.T) {
	s := openTest(t, vfs.NewMem())
	sess := newSession(t, s)
	emit := func(n int) {
		t.Helper()
		do(t, sess, func(tx *Tx) error {
			for range n {
				tx.Emit(protocol.Event{Type: protocol.EventGraphChanged})
			}
			return nil
		})
	}
	first := s.cursor(1)
	for range 4 {
		emit(3_500)
	}
	n := sess.State().Events
	want(t, "events", n, 14_001)
	want(t, "the oldest is gone", count(t, s, famEvent) < int(n), true)
	if kept := count(t, s, famEvent); kept < keptEvents || kept > keptEvents+trimEvery+3_500 {
		t.Errorf("%d events are kept", kept)
	}
	_, _, reset, err := sess.Events(context.Background(), first, 10)
	if err != nil || !reset {
		t.Errorf("reset %v (%v) for a cursor whose events were dropped", reset, err)
	}
	at := s.cursor(n - keptEvents)
	events, _, reset, err := sess.Events(context.Background(), at, 1)
	if err != nil || reset || len(events) != 1 || events[0].Cursor != s.cursor(n-keptEvents+1) {
		t.Errorf("the last %d: %v, reset %v (%v)", keptEvents, events, reset, err)
	}
	clean(t, s)
}

func TestReplayedNodes(t *testing.T) {
	s := openTest(t, vfs.NewMem())
	sess := newSession(t, s)
	at := sess.Cursor()
	u, _ := say(t, sess, long(maxEventText+5), "first")
	_, gone := say(t, sess, "two", "second")
	setHead(t, sess, Skeleton{Seq: Root}, "")
	do(t, sess, func(tx *Tx) error {
		rm, err := tx.Exclusive(gone)
		if err != nil {
			return err
		}
		if rm.Count != 4 {
			t.Errorf("the branch holds %d nodes, want 4", rm.Count)
		}
		return nil
	})
	keep := reply(t, sess, u.Seq, "kept") // makes u a fork
	do(t, sess, func(tx *Tx) error {
		rm, err := tx.Exclusive(gone)
		if err != nil {
			return err
		}
		return tx.Delete(rm)
	})
	events, _, _, err := sess.Events(context.Background(), at, 100)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range events {
		switch {
		case e.Type != protocol.EventNodeAppended:
		case e.NodeID == u.ID:
			if !e.Node.Truncated || len(Text(e.Node.Content)) != maxEventText {
				t.Errorf("the long node is replayed with %d bytes, truncated %v", len(Text(e.Node.Content)), e.Node.Truncated)
			}
		case e.NodeID == keep.ID:
			want(t, "the node that is there", Text(e.Node.Content), "kept")
		case e.Node != nil:
			t.Errorf("node %s was deleted and is replayed", e.NodeID)
		}
	}
}

func TestDamagedEventAsksForASnapshot(t *testing.T) {
	s := openTest(t, vfs.NewMem())
	sess := newSession(t, s)
	say(t, sess, "one", "first")
	if err := s.db.Set(key(famEvent, sess.num, 3), []byte("{"), pebble.Sync); err != nil {
		t.Fatal(err)
	}
	_, next, reset, err := sess.Events(context.Background(), s.cursor(0), 10)
	if err != nil || !reset || next != sess.Cursor() {
		t.Errorf("next %s, reset %v (%v), want a reset to %s", next, reset, err, sess.Cursor())
	}
	events, _, reset, err := sess.Events(context.Background(), s.cursor(3), 10)
	if err != nil || reset || len(events) != 2 {
		t.Errorf("after the damage: %d events, reset %v (%v)", len(events), reset, err)
	}
}

// Listeners are told in the order of each session, after the sync, once.
func TestListener(t *testing.T) {
	s := openTest(t, vfs.NewMem())
	var mu sync.Mutex
	told := map[string][]string{}
	s.OnCommit(func(c Commit) {
		mu.Lock()
		defer mu.Unlock()
		for _, e := range c.Events {
			told[c.SessionID] = append(told[c.SessionID], e.Cursor)
		}
	})
	var wg sync.WaitGroup
	var sessions []*Session
	for range 4 {
		sess := newSession(t, s)
		sessions = append(sessions, sess)
		for range 4 {
			wg.Go(func() {
				for range 10 {
					user(t, sess, Root, "x")
				}
			})
		}
	}
	wg.Wait()
	for _, sess := range sessions {
		events, _, _, err := sess.Events(context.Background(), s.cursor(0), 1_000)
		if err != nil {
			t.Fatal(err)
		}
		var cursors []string
		for _, e := range events {
			cursors = append(cursors, e.Cursor)
		}
		if !slices.Equal(cursors, told[sess.ID()]) {
			t.Errorf("told %d events in another order or number than the %d that are kept", len(told[sess.ID()]), len(cursors))
		}
	}
}

func TestExpectedHead(t *testing.T) {
	s := openTest(t, vfs.NewMem())
	sess := newSession(t, s)
	try := func(expected string) error {
		_, err := Apply(context.Background(), sess, Request{ExpectedHead: expected}, func(*Tx) (int, error) { return 0, nil })
		return err
	}
	_, a1 := say(t, sess, "one", "first")
	u2, a2 := say(t, sess, "two", "second")
	a3 := reply(t, sess, a2.Seq, "and on")
	tool := node(t, sess, NodeSpec{Kind: protocol.KindTool, Caller: a3.Seq})
	for name, c := range map[string]struct {
		expected string
		stale    bool
	}{
		"HEAD":                             {a3.ID, false},
		"an earlier reply of the turn":     {a2.ID, false},
		"the message of the turn":          {u2.ID, false},
		"the turn before":                  {a1.ID, true},
		"a node off the chain":             {tool.ID, true},
		"a node that was never there":      {"nothing", true},
		"an id that could not be anything": {"\xff", true},
		"nothing expected":                 {"", false},
	} {
		t.Run(name, func(t *testing.T) {
			if err := try(c.expected); c.stale {
				wantCode(t, err, protocol.CodeStaleHead)
			} else if err != nil {
				t.Error(err)
			}
		})
	}
	// HEAD elsewhere is stale, and tells who moved it.
	if _, err := Apply(context.Background(), sess, Request{Origin: protocol.Origin{ClientID: "other"}, Cause: "checkout"},
		func(tx *Tx) (int, error) { return 0, tx.SetHead(a1, "") }); err != nil {
		t.Fatal(err)
	}
	err := try(a3.ID)
	wantCode(t, err, protocol.CodeStaleHead)
	if e, ok := errors.AsType[*protocol.Error](err); !ok {
		t.Errorf("error %T", err)
	} else {
		want(t, "data", []string{e.Data.Expected, e.Data.Head, e.Data.HeadCause, e.Data.Origin.ClientID, e.Data.Cursor},
			[]string{a3.ID, a1.ID, "checkout", "other", sess.Cursor()})
	}
	// A sibling at the same depth is stale, too.
	b2 := user(t, sess, a1.Seq, "other")
	want(t, "HEAD", sess.State().Head, b2.Seq)
	wantCode(t, try(u2.ID), protocol.CodeStaleHead)
}
