package store

import (
	"bytes"
	"context"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"convls/protocol"
)

func TestReceipts(t *testing.T) {
	c := newClock()
	s := openTest(t, vfs.NewMem(), func(o *Options) { o.Clock = c.now })
	sess := newSession(t, s)
	other := newSession(t, s)
	ran := 0
	send := func(sess *Session, id, hash string) (Outcome[string], error) {
		return Apply(context.Background(), sess, Request{ID: id, Hash: []byte(hash)}, func(tx *Tx) (string, error) {
			ran++
			sk, err := tx.Append(NodeSpec{Kind: protocol.KindUser, Predecessor: tx.State.Head, Status: protocol.StatusSealed})
			return sk.ID, err
		})
	}
	must := func(sess *Session, id, hash string) Outcome[string] {
		t.Helper()
		out, err := send(sess, id, hash)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	first := must(sess, "r1", "a")
	say(t, sess, "more", "events")
	again := must(sess, "r1", "a")
	want(t, "the same reply, its cursor too", again, Outcome[string]{first.Result, first.Cursor, true})
	want(t, "runs", ran, 1)

	_, err := send(sess, "r1", "b")
	wantCode(t, err, protocol.CodeIDConflict)
	_, err = send(sess, long(201), "a")
	wantCode(t, err, protocol.CodeInvalidParams)
	if must(other, "r1", "b").Repeated {
		t.Error("another session's request was taken for this one's")
	}

	// A failed request leaves no receipt.
	if _, err := Apply(context.Background(), sess, Request{ID: "r2"}, func(*Tx) (string, error) { return "", protocol.Errorf(protocol.CodeBusy, "no") }); err == nil {
		t.Fatal("no error")
	}
	if must(sess, "r2", "a").Repeated {
		t.Error("a request that failed counts as carried out")
	}

	// After a restart, over midnight, and with the clock set back over midnight.
	for _, at := range []time.Time{c.at, c.at.Add(24 * time.Hour), c.at.Add(-13 * time.Hour)} {
		c.at = at
		s = reopen(t, s)
		sess = session(t, s, sess.ID())
		if out := must(sess, "r1", "a"); !out.Repeated || out.Result != first.Result {
			t.Errorf("at %s: %+v, want the first reply", at, out)
		}
	}
	// Two days later it is forgotten, by a restart as by a process that ran on.
	c.at = newClock().at.Add(48 * time.Hour)
	s = reopen(t, s)
	want(t, "receipts", count(t, s, famReceipt), 0)
	if must(session(t, s, sess.ID()), "r1", "a").Repeated {
		t.Error("a receipt of two days ago counts")
	}
	c.at = c.at.Add(48 * time.Hour)
	if err := s.dropOldReceipts(); err != nil {
		t.Fatal(err)
	}
	want(t, "receipts", count(t, s, famReceipt), 0)
	clean(t, s)
}

func TestCreateTwice(t *testing.T) {
	s := openTest(t, vfs.NewMem())
	req := Request{ID: "create", Hash: []byte("a")}
	var wg sync.WaitGroup
	ids := make([]string, 8)
	for i := range ids {
		wg.Go(func() {
			out, err := s.Create(context.Background(), req, Info{Title: "one"}, "")
			if err != nil {
				t.Error(err)
			}
			ids[i] = out.Result
		})
	}
	wg.Wait()
	for _, id := range ids {
		want(t, "session", id, ids[0])
	}
	n, err := s.Count(context.Background())
	if err != nil || n != 1 {
		t.Errorf("%d sessions (%v), want 1", n, err)
	}
	_, err = s.Create(context.Background(), Request{ID: "create", Hash: []byte("b")}, Info{}, "")
	wantCode(t, err, protocol.CodeIDConflict)
	_, err = s.Create(context.Background(), Request{}, Info{ID: ids[0]}, "")
	wantCode(t, err, protocol.CodeIDConflict)
	_, err = s.Create(context.Background(), Request{}, Info{ID: "../x"}, "")
	wantCode(t, err, protocol.CodeInvalidParams)
	clean(t, s)
}

// A session that is being made is not there for others, and one that could not be
// made leaves nothing.
func TestCreateFails(t *testing.T) {
	s := openTest(t, vfs.NewMem())
	_, err := CreateWith(context.Background(), s, Request{}, Info{ID: "ses"}, "system", NodeSpec{}, func(tx *Tx) (string, error) {
		_, err := s.Session("ses")
		wantCode(t, err, protocol.CodeUnknownSession)
		if _, err := tx.Append(NodeSpec{Kind: protocol.KindUser, Predecessor: Root, Status: protocol.StatusSealed, Content: textContent(long(100_000))}); err != nil {
			return "", err
		}
		return "", protocol.Errorf(protocol.CodeImportRefused, "no")
	})
	wantCode(t, err, protocol.CodeImportRefused)
	_, err = s.Session("ses")
	wantCode(t, err, protocol.CodeUnknownSession)
	want(t, "left behind", count(t, s, famChunk)+count(t, s, famWriting)+count(t, s, famInfo)+count(t, s, famText), 0)
	if _, err := s.Create(context.Background(), Request{}, Info{ID: "ses"}, ""); err != nil {
		t.Fatal(err)
	}
	cancelled, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := s.Create(cancelled, Request{}, Info{ID: "ses2"}, ""); err == nil {
		t.Error("a cancelled request made a session")
	}
	_, err = s.Session("ses2")
	wantCode(t, err, protocol.CodeUnknownSession)
	clean(t, s)
}

func TestDeleteSession(t *testing.T) {
	s := openTest(t, vfs.NewMem())
	keep := newSession(t, s)
	say(t, keep, "keep", "this")
	sess := newSession(t, s)
	u, _ := say(t, sess, "one", long(100_000))
	if _, err := Apply(context.Background(), sess, Request{ID: "r1"}, func(tx *Tx) (int, error) { return 1, tx.Name("main", u) }); err != nil {
		t.Fatal(err)
	}
	open := node(t, sess, NodeSpec{Kind: protocol.KindAssistant, Predecessor: u.Seq, Status: protocol.StatusOpen})
	_, err := s.DeleteSession(context.Background(), sess.ID(), Request{})
	wantCode(t, err, protocol.CodeTurnRunning)
	do(t, sess, func(tx *Tx) error { _, err := tx.Seal(open.Seq, Final{Status: protocol.StatusCancelled}); return err })

	req := Request{ID: "delete"}
	first, err := s.DeleteSession(context.Background(), sess.ID(), req)
	if err != nil {
		t.Fatal(err)
	}
	again, err := s.DeleteSession(context.Background(), sess.ID(), req)
	if err != nil || !again.Repeated || again.Cursor != first.Cursor {
		t.Errorf("sent again: %+v (%v), want %+v", again, err, first)
	}
	_, err = s.DeleteSession(context.Background(), sess.ID(), Request{})
	wantCode(t, err, protocol.CodeUnknownSession)
	_, err = s.Session(sess.ID())
	wantCode(t, err, protocol.CodeUnknownSession)
	_, err = sess.Reader()
	wantCode(t, err, protocol.CodeUnknownSession)
	_, err = Apply(context.Background(), sess, Request{}, func(*Tx) (int, error) { return 0, nil })
	wantCode(t, err, protocol.CodeUnknownSession)
	for _, family := range sessionFamilies {
		k := key(family, sess.num)
		it, err := s.db.NewIter(nil)
		if err != nil {
			t.Fatal(err)
		}
		if it.SeekGE(k) && bytes.HasPrefix(it.Key(), k) {
			t.Errorf("family %q has records left", family)
		}
		_ = it.Close()
	}
	// Its number is not given out again: its receipts would be the new one's.
	s = reopen(t, s)
	next := newSession(t, s)
	if next.num <= sess.num {
		t.Errorf("number %d follows the deleted %d", next.num, sess.num)
	}
	out, err := Apply(context.Background(), next, Request{ID: "r1"}, func(*Tx) (int, error) { return 2, nil })
	if err != nil || out.Repeated {
		t.Errorf("%+v (%v): the receipt of a deleted session counts", out, err)
	}
	want(t, "the other session's text", said(t, session(t, s, keep.ID()), 2), "keep")
	clean(t, s)
}
