package store

import (
	"bytes"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"convls/protocol"
)

const secret = "hunter2-hunter2"

// holds reports whether any record holds the secret in plain.
func holds(t testing.TB, s *Store) []string {
	t.Helper()
	it, err := s.db.NewIter(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer it.Close()
	var keys []string
	for ok := it.First(); ok; ok = it.Next() {
		if containsText(it.Value(), secret) {
			keys = append(keys, string(it.Key()[:1]))
		}
	}
	return keys
}

func containsText(b []byte, text string) bool { return bytes.Contains(b, []byte(text)) }

func TestRedact(t *testing.T) {
	s := openTest(t, vfs.NewMem())
	sess := newSession(t, s)
	u1, a1 := say(t, sess, "the password is "+secret, "noted")
	u2, a2 := say(t, sess, "two", "second")
	setHead(t, sess, a1, "")
	_, b2 := say(t, sess, "other", "branch")
	var sums [3]Skeleton
	do(t, sess, func(tx *Tx) error {
		for i, c := range [][2]Seq{{u1.Seq, a2.Seq}, {u2.Seq, a2.Seq}, {u1.Seq, b2.Seq}} {
			var err error
			if sums[i], err = tx.AppendSummary(SummarySpec{First: c[0], Last: c[1], Content: textContent("about " + secret), Activate: i == 0}); err != nil {
				return err
			}
		}
		info, err := tx.Info()
		if err != nil {
			return err
		}
		info.Title, info.TitleFrom = "the password is "+secret, u1.Seq
		if err := tx.SetInfo(info); err != nil {
			return err
		}
		return tx.Pin(u1, true)
	})
	before := sess.State()
	do(t, sess, func(tx *Tx) error { return tx.Redact(u1) })
	want(t, "text", said(t, sess, u1.Seq), RedactedText)
	r := snapshot(t, sess)
	defer r.Close()
	sk, err := r.Skeleton(u1.Seq)
	if err != nil {
		t.Fatal(err)
	}
	want(t, "id and edges", []any{sk.ID, sk.Predecessor, sk.Depth, sk.Redacted}, []any{u1.ID, Root, uint64(1), true})
	for i, void := range []bool{true, false, true} {
		got, err := r.Void(sums[i].Seq)
		if err != nil {
			t.Fatal(err)
		}
		want(t, "void", got, void)
	}
	info, err := r.Info()
	if err != nil {
		t.Fatal(err)
	}
	want(t, "title", info.Title, RedactedText)
	want(t, "HEAD does not move", r.State.Head, before.Head)
	want(t, "the active summary", r.State.Active, Seq(0))
	want(t, "removals", r.State.Removals, before.Removals+1)
	// The one that does not cover the node still says what it said.
	want(t, "left", holds(t, s), []string{"c"})
	clean(t, s)
	// Twice is once.
	do(t, sess, func(tx *Tx) error { return tx.Redact(u1) })
	want(t, "removals", sess.State().Removals, before.Removals+1)

	refused(t, sess, protocol.CodeNotAChainNode, func(tx *Tx) error { return tx.Redact(Skeleton{Seq: Root}) })
	refused(t, sess, protocol.CodeUnknownNode, func(tx *Tx) error { return tx.Redact(Skeleton{Seq: 99}) })
	open := node(t, sess, NodeSpec{Kind: protocol.KindAssistant, Predecessor: u2.Seq, Status: protocol.StatusOpen})
	refused(t, sess, protocol.CodeTurnRunning, func(tx *Tx) error { return tx.Redact(open) })
	// A summary is redacted by itself; what it covers is not touched.
	do(t, sess, func(tx *Tx) error { return tx.Redact(sums[1]) })
	want(t, "left", holds(t, s), nil)
	want(t, "covered text", said(t, sess, u2.Seq), "two")
	clean(t, s)
}

// A call and its result are one node, and the pair stays whole.
func TestRedactTools(t *testing.T) {
	s := openTest(t, vfs.NewMem())
	sess := newSession(t, s)
	u1 := user(t, sess, Root, "one")
	calls := []protocol.Part{{Type: protocol.PartText, Text: secret}, {Type: protocol.PartToolCall, NodeID: "t1"}}
	var a1, tool Skeleton
	do(t, sess, func(tx *Tx) error {
		var err1, err2 error
		a1, err1 = tx.Append(NodeSpec{Kind: protocol.KindAssistant, Predecessor: u1.Seq, Status: protocol.StatusSealed, Content: Content{Parts: calls, Metadata: map[string]protocol.Raw{"m": protocol.Raw(`"` + secret + `"`)}}})
		tool, err2 = tx.Append(NodeSpec{ID: "t1", Kind: protocol.KindTool, Caller: a1.Seq, Status: protocol.StatusSealed, Content: Content{Parts: []protocol.Part{
			{Type: protocol.PartToolCall, CallID: "c1", Name: "read", Arguments: protocol.Raw(`{"path":"` + secret + `"}`)},
			{Type: protocol.PartToolResult, CallID: "c1", Text: secret + long(100_000), IsError: true},
		}}})
		if err1 != nil {
			return err1
		}
		return err2
	})
	sum := mustApply(t, sess, func(tx *Tx) (Skeleton, error) {
		return tx.AppendSummary(SummarySpec{First: u1.Seq, Last: a1.Seq, Content: textContent(secret)})
	})
	do(t, sess, func(tx *Tx) error { return tx.Redact(tool) })
	parts := read(t, sess, func(r *Reader) ([]protocol.Part, error) { c, err := r.Content(tool.Seq); return c.Parts, err })
	want(t, "the tool's parts", parts, []protocol.Part{
		{Type: protocol.PartToolCall, CallID: "c1", Name: "read", Arguments: protocol.Raw(`{}`)},
		{Type: protocol.PartToolResult, CallID: "c1", Text: RedactedText, IsError: true},
	})
	want(t, "void, for it covers what called", read(t, sess, func(r *Reader) (bool, error) { return r.Void(sum.Seq) }), true)
	want(t, "chunks", count(t, s, famChunk), 0)
	do(t, sess, func(tx *Tx) error { return tx.Redact(a1) })
	parts = read(t, sess, func(r *Reader) ([]protocol.Part, error) { c, err := r.Content(a1.Seq); return c.Parts, err })
	want(t, "the reply's parts", parts, []protocol.Part{{Type: protocol.PartText, Text: RedactedText}, {Type: protocol.PartToolCall, NodeID: "t1"}})
	want(t, "left", holds(t, s), nil)
	clean(t, s)
}

// What a spawned turn said can be in a summary of what spawned it.
func TestRedactInSpawnedTurn(t *testing.T) {
	s := openTest(t, vfs.NewMem())
	sess := newSession(t, s)
	u1, a1 := say(t, sess, "one", "first")
	tool := node(t, sess, NodeSpec{Kind: protocol.KindTool, Caller: a1.Seq})
	spawned := node(t, sess, NodeSpec{Kind: protocol.KindUser, Predecessor: Root, Caller: tool.Seq, HeadNeutral: true})
	answer := node(t, sess, NodeSpec{Kind: protocol.KindAssistant, Predecessor: spawned.Seq, Content: textContent(secret)})
	inner := node(t, sess, NodeSpec{Kind: protocol.KindTool, Caller: answer.Seq, Content: textContent(secret)})
	sums := mustApply(t, sess, func(tx *Tx) ([]Skeleton, error) {
		a, err1 := tx.AppendSummary(SummarySpec{First: u1.Seq, Last: a1.Seq, Content: textContent(secret)})
		if err1 != nil {
			return nil, err1
		}
		b, err := tx.AppendSummary(SummarySpec{First: u1.Seq, Last: u1.Seq, Content: textContent("no secret")})
		return []Skeleton{a, b}, err
	})
	do(t, sess, func(tx *Tx) error { return tx.Redact(inner) })
	for i, void := range []bool{true, false} {
		want(t, "void", read(t, sess, func(r *Reader) (bool, error) { return r.Void(sums[i].Seq) }), void)
	}
	do(t, sess, func(tx *Tx) error { return tx.Redact(answer) })
	want(t, "left", holds(t, s), nil)
	clean(t, s)
}
