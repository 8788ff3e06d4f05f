package store

import (
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"convls/protocol"
)

func TestMoves(t *testing.T) {
	s := openTest(t, vfs.NewMem())
	sess := newSession(t, s)
	u1, a1 := say(t, sess, "one", "first")
	u2, a2 := say(t, sess, "two", "second")
	ctx := t.Context()
	tool := node(t, sess, NodeSpec{Kind: protocol.KindTool, Caller: a1.Seq})

	out, err := Fork(ctx, sess, Request{Cause: "fork"}, a1.ID, "side")
	if err != nil {
		t.Fatal(err)
	}
	want(t, "fork", out.Result, Moved{Head: a1.ID, Branch: "side"})
	u3, a3 := say(t, sess, "three", "third")
	want(t, "side moves along", read(t, sess, func(r *Reader) (Seq, error) { return r.Named("side") }), a3.Seq)

	for _, c := range []struct {
		name       string
		id, branch string
		descend    bool
		want       Moved
		code       protocol.Code
	}{
		{"a node exactly", a1.ID, "", false, Moved{Head: a1.ID}, ""},
		{"a node with a name", a3.ID, "", false, Moved{Head: a3.ID, Branch: "side"}, ""},
		{"a branch", "", "side", false, Moved{Head: a3.ID, Branch: "side"}, ""},
		{"the tip last used below", u1.ID, "", true, Moved{Head: a3.ID, Branch: "side"}, ""},
		{"the tip below, without a name", u2.ID, "", true, Moved{Head: a2.ID}, ""},
		{"off the chain", tool.ID, "", false, Moved{}, protocol.CodeNotAChainNode},
		{"unknown", "nothing", "", false, Moved{}, protocol.CodeUnknownNode},
		{"unknown branch", "", "nothing", false, Moved{}, protocol.CodeUnknownBranch},
		{"both", a1.ID, "side", false, Moved{}, protocol.CodeInvalidParams},
		{"neither", "", "", false, Moved{}, protocol.CodeInvalidParams},
	} {
		t.Run(c.name, func(t *testing.T) {
			before := sess.State().Head
			out, err := Checkout(ctx, sess, Request{}, c.id, c.branch, c.descend)
			if c.code != "" {
				wantCode(t, err, c.code)
				want(t, "HEAD", sess.State().Head, before)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			want(t, "moved", out.Result, c.want)
			want(t, "branch of HEAD", sess.State().Branch, c.want.Branch)
		})
	}

	// fault 61: rewind goes before the message, leaves siblings alone, is undone by
	// a checkout of the tip, and sent again says the same.
	if _, err := Checkout(ctx, sess, Request{}, a3.ID, "", false); err != nil {
		t.Fatal(err)
	}
	req := Request{ID: "rewind"}
	for range 2 {
		out, err := Rewind(ctx, sess, req, u3.ID)
		if err != nil {
			t.Fatal(err)
		}
		want(t, "rewound", []any{out.Result.Head, Text(out.Result.Content)}, []any{a1.ID, "three"})
	}
	want(t, "no text in receipts", holdsText(t, s, famReceipt, "three"), false)
	_, err = Rewind(ctx, sess, Request{}, u2.ID)
	wantCode(t, err, protocol.CodeInvalidParams) // on another branch
	_, err = Rewind(ctx, sess, Request{}, a1.ID)
	wantCode(t, err, protocol.CodeInvalidParams) // no message of the user
	if _, err = Rewind(ctx, sess, Request{}, u1.ID); err != nil {
		t.Fatal(err)
	}
	want(t, "the first message", sess.State().Head, Root)
	want(t, "tips", tips(t, sess), []Seq{a2.Seq, a3.Seq})

	// Rename: by name, by tip, to a name that is taken, to nothing.
	id, err := RenameBranch(ctx, sess, Request{}, "", "side", "aside")
	if err != nil || id.Result != a3.ID {
		t.Fatal(id, err)
	}
	if _, err := RenameBranch(ctx, sess, Request{}, a2.ID, "", "main"); err != nil {
		t.Fatal(err)
	}
	_, err = RenameBranch(ctx, sess, Request{}, "", "aside", "main")
	wantCode(t, err, protocol.CodeNameConflict)
	if _, err := RenameBranch(ctx, sess, Request{}, "", "main", "main"); err != nil {
		t.Error(err)
	}
	if _, err := RenameBranch(ctx, sess, Request{}, "", "aside", ""); err != nil {
		t.Fatal(err)
	}
	names := read(t, sess, func(r *Reader) (map[string]Seq, error) { return r.Names() })
	want(t, "names", names, map[string]Seq{"main": a2.Seq})
	// Renaming what HEAD is attached to keeps it attached.
	if _, err := Checkout(ctx, sess, Request{}, "", "main", false); err != nil {
		t.Fatal(err)
	}
	if _, err := RenameBranch(ctx, sess, Request{}, "", "main", "trunk"); err != nil {
		t.Fatal(err)
	}
	want(t, "branch of HEAD", sess.State().Branch, "trunk")

	// A delete is counted, then confirmed.
	_, err = DeleteBranch(ctx, sess, Request{}, "", "trunk", false)
	wantCode(t, err, protocol.CodeConfirmRequired)
	rm, err := DeleteBranch(ctx, sess, Request{}, "", "trunk", true)
	if err != nil {
		t.Fatal(err)
	}
	want(t, "removed", rm.Result, Removed{Count: 2, IDs: []string{a2.ID, u2.ID}, Head: a1.ID})
	// A name inside a longer branch is all that goes with it.
	if _, err := Fork(ctx, sess, Request{}, u3.ID, "inside"); err != nil {
		t.Fatal(err)
	}
	_, err = DeleteBranch(ctx, sess, Request{}, "", "inside", false)
	wantCode(t, err, protocol.CodeConfirmRequired)
	if names := read(t, sess, func(r *Reader) (map[string]Seq, error) { return r.Names() }); names["inside"] != u3.Seq {
		t.Errorf("a delete that was not confirmed took the name away: %v", names)
	}
	rm, err = DeleteBranch(ctx, sess, Request{}, "", "inside", true)
	if err != nil {
		t.Fatal(err)
	}
	want(t, "removed", rm.Result, Removed{IDs: []string{}, Head: u3.ID})
	clean(t, s)
}

func holdsText(t testing.TB, s *Store, family byte, text string) bool {
	t.Helper()
	it, err := s.db.NewIter(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer it.Close()
	for ok := it.SeekGE([]byte{family}); ok && it.Key()[0] == family; ok = it.Next() {
		if containsText(it.Value(), text) {
			return true
		}
	}
	return false
}

func TestAttach(t *testing.T) {
	s := openTest(t, vfs.NewMem())
	sess := newSession(t, s)
	_, a1 := say(t, sess, "one", "first")
	_, a2 := say(t, sess, "two", "second")
	setHead(t, sess, a1, "")
	ctx := t.Context()
	src := Source{SessionID: sess.ID(), NodeID: a2.ID}
	out, err := Attach(ctx, sess, Request{}, a1.ID, src, true)
	if err != nil {
		t.Fatal(err)
	}
	again, err := Attach(ctx, sess, Request{}, a1.ID, src, true)
	if err != nil {
		t.Fatal(err)
	}
	want(t, "once", again.Result, out.Result)
	sk := read(t, sess, func(r *Reader) (Skeleton, error) { return r.Lookup(out.Result) })
	want(t, "HEAD extends to it", sess.State().Head, sk.Seq)
	c := read(t, sess, func(r *Reader) (*Content, error) { return r.Content(sk.Seq) })
	want(t, "source", *c.Source, src)
	_, err = Attach(ctx, sess, Request{}, a1.ID, Source{SessionID: sess.ID(), NodeID: a1.ID}, true)
	wantCode(t, err, protocol.CodeInvalidParams)
	_, err = Attach(ctx, sess, Request{}, a1.ID, Source{SessionID: sess.ID(), NodeID: "nothing"}, true)
	wantCode(t, err, protocol.CodeUnknownNode)
	clean(t, s)
}
