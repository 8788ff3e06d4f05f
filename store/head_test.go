package store

import (
	"errors"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"convls/protocol"
)

// What design.md says about HEAD, as far as the store decides it.

func TestAppendMovesHeadOnlyWhereTheChainGrowsAtIt(t *testing.T) {
	s := openTest(t, vfs.NewMem())
	sess := newSession(t, s)
	want(t, "HEAD of a new session", sess.State().Head, Root)
	u1, a1 := say(t, sess, "one", "first")
	want(t, "HEAD after a turn", sess.State().Head, a1.Seq)

	// A sibling elsewhere leaves HEAD alone, as do nodes off the chain (fault 62).
	b1 := reply(t, sess, u1.Seq, "other")
	call := node(t, sess, NodeSpec{Kind: protocol.KindCall, Predecessor: a1.Seq, Content: textContent("a call")})
	node(t, sess, NodeSpec{Kind: protocol.KindTool, Caller: a1.Seq})
	node(t, sess, NodeSpec{Kind: protocol.KindNotice, Predecessor: a1.Seq, Content: textContent("note")})
	want(t, "HEAD after writes elsewhere", sess.State().Head, a1.Seq)
	refused(t, sess, protocol.CodeNotAChainNode, func(tx *Tx) error { return tx.SetHead(call, "") })

	// advance_head = false overrides the extension rule.
	spawned := node(t, sess, NodeSpec{Kind: protocol.KindUser, Predecessor: a1.Seq, HeadNeutral: true, Content: textContent("spawned")})
	want(t, "HEAD after a head-neutral append", sess.State().Head, a1.Seq)
	want(t, "tips", tips(t, sess), []Seq{b1.Seq, spawned.Seq})

	// HEAD in the middle: the next message begins a branch there.
	setHead(t, sess, u1, "")
	a3 := reply(t, sess, u1.Seq, "third")
	want(t, "HEAD after a reply at HEAD", sess.State().Head, a3.Seq)
	clean(t, s)
}

func TestSetHead(t *testing.T) {
	s := openTest(t, vfs.NewMem())
	sess := newSession(t, s)
	_, a1 := say(t, sess, "one", "first")
	_, a2 := say(t, sess, "two", "second")
	at := sess.Cursor()

	// fault 51: exactly the node that was named, the root too.
	root := read(t, sess, func(r *Reader) (Skeleton, error) { return r.Skeleton(Root) })
	for _, to := range []Skeleton{a1, root, a2} {
		do(t, sess, func(tx *Tx) error { tx.req.Cause = "checkout"; return tx.SetHead(to, "") })
		want(t, "HEAD", sess.State().Head, to.Seq)
	}
	events, _, _, err := sess.Events(t.Context(), at, 10)
	if err != nil {
		t.Fatal(err)
	}
	last := events[len(events)-1]
	want(t, "the last move", []string{last.Head, last.Previous, last.Cause}, []string{a2.ID, root.ID, "checkout"})

	// Setting HEAD to where it is tells nobody anything.
	at = sess.Cursor()
	setHead(t, sess, a2, "")
	types, _ := happened(t, sess, at)
	want(t, "events", types, nil)

	refused(t, sess, protocol.CodeUnknownNode, func(tx *Tx) error { return tx.SetHead(Skeleton{Seq: 99, Kind: protocol.KindUser}, "") })
	// The kind is the ledger's, not what the caller says.
	note := node(t, sess, NodeSpec{Kind: protocol.KindNotice, Predecessor: a1.Seq})
	note.Kind = protocol.KindUser
	refused(t, sess, protocol.CodeNotAChainNode, func(tx *Tx) error { return tx.SetHead(note, "") })
	refused(t, sess, protocol.CodeUnknownBranch, func(tx *Tx) error { return tx.SetHead(a1, "nowhere") })

	// fault 60: a rewind is undone by a checkout of the old tip; nothing was lost.
	setHead(t, sess, root, "")
	setHead(t, sess, a2, "")
	want(t, "nodes", sess.State().Nodes, 6)
	clean(t, s)
}

func TestNamesMoveAlongWithHead(t *testing.T) {
	s := openTest(t, vfs.NewMem())
	sess := newSession(t, s)
	_, a1 := say(t, sess, "one", "first")
	do(t, sess, func(tx *Tx) error {
		if err := tx.Name("main", a1); err != nil {
			return err
		}
		return tx.SetHead(a1, "main")
	})
	at := sess.Cursor()
	u2, a2 := say(t, sess, "two", "second")
	named := func(name string) Seq {
		t.Helper()
		return read(t, sess, func(r *Reader) (Seq, error) { return r.Named(name) })
	}
	want(t, "main after a turn", named("main"), a2.Seq)
	types, _ := happened(t, sess, at)
	want(t, "events of a turn on a named branch", types, []protocol.EventType{
		protocol.EventNodeAppended, protocol.EventHeadMoved, protocol.EventBranchChanged,
		protocol.EventNodeAppended, protocol.EventHeadMoved, protocol.EventBranchChanged,
	})

	// HEAD leaves; the turn that began on main goes on there, two nodes at once, and
	// takes along what its tip is called by now.
	setHead(t, sess, a1, "")
	do(t, sess, func(tx *Tx) error { return errors.Join(tx.Name("second", a2), tx.Name("below", u2)) })
	var a3 Skeleton
	do(t, sess, func(tx *Tx) error {
		u3, err := tx.Append(NodeSpec{Kind: protocol.KindUser, Predecessor: a2.Seq, Status: protocol.StatusSealed, Continues: true})
		if err != nil {
			return err
		}
		a3, err = tx.Append(NodeSpec{Kind: protocol.KindAssistant, Predecessor: u3.Seq, Status: protocol.StatusSealed, Continues: true})
		return err
	})
	want(t, "main after its turn went on", named("main"), a3.Seq)
	want(t, "the other name of its tip", named("second"), a3.Seq)
	want(t, "the name of what stands before its tip", named("below"), u2.Seq)
	want(t, "HEAD", sess.State().Head, a1.Seq)

	// A head-neutral node, and one elsewhere, leave the name where it is.
	node(t, sess, NodeSpec{Kind: protocol.KindUser, Predecessor: a3.Seq, HeadNeutral: true, Continues: true})
	node(t, sess, NodeSpec{Kind: protocol.KindUser, Predecessor: a1.Seq, Continues: true})
	want(t, "main", named("main"), a3.Seq)

	// Detached by its own removal: the next append takes nothing along.
	setHead(t, sess, a3, "main")
	do(t, sess, func(tx *Tx) error { return tx.Unname("main") })
	want(t, "branch of HEAD", sess.State().Branch, "")
	say(t, sess, "three", "third")
	wantCode(t, readErr(t, sess, func(r *Reader) error { _, err := r.Named("main"); return err }), protocol.CodeUnknownBranch)
	clean(t, s)
}

func readErr(t testing.TB, s *Session, f func(*Reader) error) error {
	t.Helper()
	r, err := s.Reader()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	return f(r)
}

func TestNamesRefused(t *testing.T) {
	s := openTest(t, vfs.NewMem())
	sess := newSession(t, s)
	_, a1 := say(t, sess, "one", "first")
	tool := node(t, sess, NodeSpec{Kind: protocol.KindTool, Caller: a1.Seq})
	do(t, sess, func(tx *Tx) error { return tx.Name("main", a1) })
	for _, c := range []struct {
		name string
		to   Skeleton
		code protocol.Code
	}{
		{"main", a1, protocol.CodeNameConflict},
		{"", a1, protocol.CodeInvalidParams},
		{" x", a1, protocol.CodeInvalidParams},
		{"a\x00b", a1, protocol.CodeInvalidParams},
		{"a\xffb", a1, protocol.CodeInvalidParams},
		{long(101), a1, protocol.CodeInvalidParams},
		{"tool", tool, protocol.CodeNotAChainNode},
		{"gone", Skeleton{Seq: 99}, protocol.CodeUnknownNode},
	} {
		refused(t, sess, c.code, func(tx *Tx) error { return tx.Name(c.name, c.to) })
	}
	// Within one mutation, too.
	refused(t, sess, protocol.CodeNameConflict, func(tx *Tx) error {
		if err := tx.Name("twice", a1); err != nil {
			return err
		}
		return tx.Name("twice", a1)
	})
	refused(t, sess, protocol.CodeUnknownBranch, func(tx *Tx) error { return tx.Unname("nowhere") })
	// A name that refers elsewhere can not be attached to.
	say(t, sess, "two", "second")
	refused(t, sess, protocol.CodeUnknownBranch, func(tx *Tx) error { tx.Attach("main"); return nil })
	clean(t, s)
}

// fault 97: the newest messages of a branch are found again after a look at an
// older sibling.
func TestLastTip(t *testing.T) {
	s := openTest(t, vfs.NewMem())
	sess := newSession(t, s)
	_, a := say(t, sess, "a", "a")
	b := user(t, sess, a.Seq, "b")
	c := reply(t, sess, b.Seq, "c")
	setHead(t, sess, a, "")
	b2 := user(t, sess, a.Seq, "b'")
	lastTip := func(of Skeleton) Seq {
		t.Helper()
		return read(t, sess, func(r *Reader) (Seq, error) { sk, err := r.LastTip(of); return sk.Seq, err })
	}
	want(t, "below b", lastTip(b), c.Seq)
	want(t, "below b'", lastTip(b2), b2.Seq)
	want(t, "below a, b' used last", lastTip(a), b2.Seq)
	setHead(t, sess, c, "")
	want(t, "below a, c used last", lastTip(a), c.Seq)

	// A turn that goes on after HEAD has left, two nodes at once, keeps the place of
	// its tip in the order of use.
	setHead(t, sess, b2, "")
	setHead(t, sess, c, "")
	setHead(t, sess, a, "")
	var d Skeleton
	do(t, sess, func(tx *Tx) error {
		u, err := tx.Append(NodeSpec{Kind: protocol.KindUser, Predecessor: c.Seq, Status: protocol.StatusSealed})
		if err != nil {
			return err
		}
		d, err = tx.Append(NodeSpec{Kind: protocol.KindAssistant, Predecessor: u.Seq, Status: protocol.StatusSealed})
		return err
	})
	want(t, "below a, after c's turn went on", lastTip(a), d.Seq)
	s = reopen(t, s)
	sess = session(t, s, sess.ID())
	want(t, "below a, after a restart", lastTip(a), d.Seq)
	clean(t, s)
}
