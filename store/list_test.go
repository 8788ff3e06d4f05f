package store

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"convls/protocol"
)

func TestSessions(t *testing.T) {
	s := openTest(t, vfs.NewMem())
	list := func(f Filter) (ids []string, next string) {
		t.Helper()
		page, next, err := s.Sessions(context.Background(), f)
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range page {
			ids = append(ids, l.Info.ID)
		}
		return ids, next
	}
	ids, next := list(Filter{})
	want(t, "an empty store", len(ids), 0)
	want(t, "next", next, "")
	var all []*Session
	for i := range 7 {
		out, err := s.Create(context.Background(), Request{}, Info{ID: fmt.Sprint("s", i), Title: fmt.Sprint("Title ", i), Workspace: fmt.Sprint("file:///w", i%2)}, "")
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, session(t, s, out.Result))
	}
	say(t, all[2], "one", "first")
	newest := []string{"s2", "s6", "s5", "s4", "s3", "s1", "s0"}
	ids, next = list(Filter{})
	want(t, "newest activity first", ids, newest)
	want(t, "next", next, "")
	n, err := s.Count(context.Background())
	want(t, "count", n, 7)
	if err != nil {
		t.Error(err)
	}

	var paged []string
	for f := (Filter{Limit: 3}); ; {
		page, next := list(f)
		paged = append(paged, page...)
		if next == "" {
			break
		}
		if len(page) != 3 {
			t.Errorf("a page of %d", len(page))
		}
		f.After = next
	}
	want(t, "pages", paged, newest)
	ids, next = list(Filter{Limit: 7})
	want(t, "exactly one page", len(ids), 7)
	want(t, "next", next, "")

	for _, c := range []struct {
		f    Filter
		want []string
	}{
		{Filter{Query: "title 3"}, []string{"s3"}},
		{Filter{Query: "W1", Limit: 2}, []string{"s5", "s3"}},
		{Filter{Workspace: "file:///w0"}, []string{"s2", "s6", "s4", "s0"}},
		{Filter{Workspace: "file:///w0", Query: "4"}, []string{"s4"}},
		{Filter{Query: "nothing"}, nil},
		{Filter{After: "0.0"}, nil},
	} {
		ids, _ := list(c.f)
		want(t, fmt.Sprintf("%+v", c.f), ids, c.want)
	}
	for _, bad := range []string{"x", "1", "1.", ".1", "1.x", "1.-1"} {
		_, _, err := s.Sessions(context.Background(), Filter{After: bad})
		wantCode(t, err, protocol.CodeInvalidParams)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, _, err := s.Sessions(ctx, Filter{}); err == nil {
		t.Error("a cancelled list has no error")
	}
	if _, err := s.DeleteSession(context.Background(), "s2", Request{}); err != nil {
		t.Fatal(err)
	}
	ids, _ = list(Filter{Limit: 1})
	want(t, "after a delete", ids, []string{"s6"})
}

// fault 78: the list does not read messages, and loses no title.
func TestListWithALongFirstMessage(t *testing.T) {
	s := openTest(t, vfs.NewMem())
	sess := newSession(t, s)
	u, _ := say(t, sess, long(100<<10), "ok")
	do(t, sess, func(tx *Tx) error {
		info, err := tx.Info()
		if err != nil {
			return err
		}
		info.Title, info.TitleFrom = "the title", u.Seq
		return tx.SetInfo(info)
	})
	turns := sized(1_000)
	for range turns {
		node(t, sess, NodeSpec{Kind: protocol.KindUser, Predecessor: sess.State().Head})
	}
	do(t, sess, func(tx *Tx) error {
		_, err := tx.AppendSummary(SummarySpec{First: u.Seq, Last: sess.State().Head, Content: textContent("s"), Activate: true})
		return err
	})
	s = reopen(t, s)
	page, _, err := s.Sessions(context.Background(), Filter{Query: "THE TITLE"})
	if err != nil || len(page) != 1 {
		t.Fatal(page, err)
	}
	l := page[0]
	head := read(t, session(t, s, sess.ID()), func(r *Reader) (string, error) { return r.ID(r.State.Head) })
	active := read(t, session(t, s, sess.ID()), func(r *Reader) (string, error) { return r.ID(r.State.Active) })
	want(t, "what is listed", []any{l.Info.Title, l.HeadID, l.Active, l.State.Nodes}, []any{"the title", head, active, uint64(turns + 4)})
	if !strings.HasPrefix(l.Active, "sum_") {
		t.Errorf("the active summary is %q", l.Active)
	}
}

func TestInfoAndSystem(t *testing.T) {
	s := openTest(t, vfs.NewMem())
	sess := newSession(t, s)
	at := sess.Cursor()
	do(t, sess, func(tx *Tx) error {
		info, err := tx.Info()
		if err != nil {
			return err
		}
		info.ID, info.SystemSHA256, info.Title = "other", "other", "new"
		if err := tx.SetInfo(info); err != nil {
			return err
		}
		return tx.SetSystem("be long")
	})
	types, _ := happened(t, sess, at)
	want(t, "told once", types, []protocol.EventType{protocol.EventSessionChanged})
	info := read(t, sess, func(r *Reader) (Info, error) { return r.Info() })
	want(t, "the session's own id stays", info.ID, sess.ID())
	want(t, "title", info.Title, "new")
	system := read(t, sess, func(r *Reader) (string, error) { return r.Text(info.SystemSHA256) })
	want(t, "system", system, "be long")
	old := read(t, sess, func(r *Reader) (string, error) { return r.Text(textSum("be brief")) })
	want(t, "the prompt of calls of the past", old, "be brief")
	do(t, sess, func(tx *Tx) error { return tx.SetSystem("") })
	info = read(t, sess, func(r *Reader) (Info, error) { return r.Info() })
	want(t, "no system", info.SystemSHA256, "")
	refused(t, sess, protocol.CodeInvalidParams, func(tx *Tx) error { info.Title = "a\xff"; return tx.SetInfo(info) })
	err := readErr(t, sess, func(r *Reader) error { _, err := r.Text("nothing"); return err })
	wantCode(t, err, protocol.CodeStoreDamaged)
	clean(t, s)
}

func TestPins(t *testing.T) {
	s := openTest(t, vfs.NewMem())
	sess := newSession(t, s)
	u, a := say(t, sess, "one", "first")
	pins := func() []Seq {
		t.Helper()
		return read(t, sess, func(r *Reader) ([]Seq, error) {
			var all []Seq
			for seq, err := range r.Pins() {
				if err != nil {
					return nil, err
				}
				all = append(all, seq)
			}
			return all, nil
		})
	}
	do(t, sess, func(tx *Tx) error { return tx.Pin(a, true) })
	do(t, sess, func(tx *Tx) error { return tx.Pin(u, true) })
	do(t, sess, func(tx *Tx) error { return tx.Pin(u, true) })
	want(t, "pins", pins(), []Seq{u.Seq, a.Seq})
	want(t, "HEAD does not move", sess.State().Head, a.Seq)
	n := read(t, sess, func(r *Reader) (protocol.Node, error) { return r.Node(u) })
	want(t, "the node", n.Pinned, true)
	do(t, sess, func(tx *Tx) error { return tx.Pin(u, false) })
	want(t, "pins", pins(), []Seq{a.Seq})
	refused(t, sess, protocol.CodeUnknownNode, func(tx *Tx) error { return tx.Pin(Skeleton{Seq: 99}, true) })
	clean(t, s)
}

func TestQueue(t *testing.T) {
	s := openTest(t, vfs.NewMem())
	sess := newSession(t, s)
	_, a := say(t, sess, "one", "first")
	enqueue := func(ids ...string) (places []int) {
		t.Helper()
		do(t, sess, func(tx *Tx) error {
			for _, id := range ids {
				place, err := tx.Enqueue(Queued{After: a.Seq, UserID: "u" + id, ReplyID: id, Model: "m", Advance: true, Content: textContent(id).Parts})
				if err != nil {
					return err
				}
				places = append(places, place)
			}
			return nil
		})
		return places
	}
	queue := func() []Queued {
		t.Helper()
		return read(t, sess, func(r *Reader) ([]Queued, error) { return r.Queue() })
	}
	ids := func() (ids []string) {
		for _, q := range queue() {
			ids = append(ids, q.ReplyID)
		}
		return ids
	}
	want(t, "places", enqueue("1", "2"), []int{1, 2})
	want(t, "places", enqueue("3"), []int{3})
	at := sess.Cursor()
	do(t, sess, func(tx *Tx) error { return tx.Dequeue(queue()[0]) })
	want(t, "queue", ids(), []string{"2", "3"})
	want(t, "places", enqueue("4"), []int{3})
	want(t, "queue", ids(), []string{"2", "3", "4"})
	q := queue()[1]
	q.Held = true
	do(t, sess, func(tx *Tx) error { return tx.Requeue(q) })
	do(t, sess, func(tx *Tx) error { return tx.HoldQueue() })
	for _, q := range queue() {
		want(t, "held", []any{q.Held, q.After, q.Model, q.Advance, Text(q.Content)}, []any{true, a.Seq, "m", true, q.ReplyID})
	}
	do(t, sess, func(tx *Tx) error { return tx.HoldQueue() }) // tells nobody
	events, _, _, err := sess.Events(t.Context(), at, 100)
	if err != nil {
		t.Fatal(err)
	}
	want(t, "events", len(events), 4)
	want(t, "the event of the fourth", []any{events[1].Type, events[1].ReplyID, events[1].Position}, []any{protocol.EventTurnQueued, "4", 3})
	refused(t, sess, protocol.CodeInvalidParams, func(tx *Tx) error { _, err := tx.Enqueue(Queued{Content: textContent("\xff").Parts}); return err })
	clean(t, s)
}
