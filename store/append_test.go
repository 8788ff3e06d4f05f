package store

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"convls/protocol"
)

// Rule 4: what does not fit the ledger is refused, and nothing is half done.
func TestAppendRefused(t *testing.T) {
	s := openTest(t, vfs.NewMem())
	sess := newSession(t, s)
	u, a := say(t, sess, "one", "first")
	tool := node(t, sess, NodeSpec{Kind: protocol.KindTool, Caller: a.Seq})
	open := mustApply(t, sess, func(tx *Tx) (Skeleton, error) {
		return tx.Append(NodeSpec{Kind: protocol.KindAssistant, Predecessor: u.Seq, Status: protocol.StatusOpen})
	})
	sealed := protocol.StatusSealed
	for _, c := range []struct {
		name string
		n    NodeSpec
		code protocol.Code
	}{
		{"unknown predecessor", NodeSpec{Kind: protocol.KindUser, Predecessor: 99, Status: sealed}, protocol.CodeUnknownNode}, // faults 56, 66
		{"predecessor off the chain", NodeSpec{Kind: protocol.KindUser, Predecessor: tool.Seq, Status: sealed}, protocol.CodeNotAChainNode},
		{"open predecessor", NodeSpec{Kind: protocol.KindUser, Predecessor: open.Seq, Status: sealed}, protocol.CodeTurnRunning},
		{"itself as predecessor", NodeSpec{Kind: protocol.KindUser, Predecessor: open.Seq + 1, Status: sealed}, protocol.CodeUnknownNode}, // fault 67
		{"unknown caller", NodeSpec{Kind: protocol.KindTool, Caller: 99, Status: sealed}, protocol.CodeUnknownNode},
		{"no predecessor", NodeSpec{Kind: protocol.KindUser, Caller: a.Seq, Status: sealed}, protocol.CodeInvalidParams},
		{"no edge", NodeSpec{Kind: protocol.KindTool, Status: sealed}, protocol.CodeInvalidParams},
		{"second root", NodeSpec{Kind: protocol.KindRoot, Status: sealed}, protocol.CodeInvalidParams},
		{"unknown kind", NodeSpec{Kind: "label", Predecessor: a.Seq, Status: sealed}, protocol.CodeInvalidParams},
		{"queued is no status of a node", NodeSpec{Kind: protocol.KindUser, Predecessor: a.Seq, Status: protocol.StatusQueued}, protocol.CodeInvalidParams},
		{"no status", NodeSpec{Kind: protocol.KindUser, Predecessor: a.Seq}, protocol.CodeInvalidParams},
		{"id with a slash", NodeSpec{ID: "a/b", Kind: protocol.KindUser, Predecessor: a.Seq, Status: sealed}, protocol.CodeInvalidParams},
		{"long id", NodeSpec{ID: long(129), Kind: protocol.KindUser, Predecessor: a.Seq, Status: sealed}, protocol.CodeInvalidParams},
		{"text that is no UTF-8", NodeSpec{Kind: protocol.KindUser, Predecessor: a.Seq, Status: sealed, Content: textContent("a\xff")}, protocol.CodeInvalidParams},
		{"a summary that proves nothing", NodeSpec{Kind: protocol.KindSummary, Predecessor: Root, Status: sealed, Content: Content{Covers: &Covers{First: u.Seq, Last: a.Seq}}}, ""},
		{"covers on a message", NodeSpec{Kind: protocol.KindUser, Predecessor: a.Seq, Status: sealed, Content: Content{Covers: &Covers{}}}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			refused(t, sess, c.code, func(tx *Tx) error { _, err := tx.Append(c.n); return err })
		})
	}
	// One refused step undoes the ones before it.
	refused(t, sess, protocol.CodeUnknownNode, func(tx *Tx) error {
		if _, err := tx.Append(NodeSpec{Kind: protocol.KindUser, Predecessor: a.Seq, Status: sealed, Content: textContent(long(200_000))}); err != nil {
			return err
		}
		_, err := tx.Append(NodeSpec{Kind: protocol.KindUser, Predecessor: 99, Status: sealed})
		return err
	})
	want(t, "chunks of what was refused", count(t, s, famChunk)+count(t, s, famWriting), 0)
	clean(t, s)
}

// count returns how many records a family has.
func count(t testing.TB, s *Store, family byte) int {
	t.Helper()
	it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: []byte{family}, UpperBound: []byte{family + 1}})
	if err != nil {
		t.Fatal(err)
	}
	defer it.Close()
	n := 0
	for ok := it.First(); ok; ok = it.Next() {
		n++
	}
	return n
}

func TestSameID(t *testing.T) {
	s := openTest(t, vfs.NewMem())
	sess := newSession(t, s)
	n := NodeSpec{ID: "n1", Kind: protocol.KindUser, Predecessor: Root, Content: textContent("one")}
	first := node(t, sess, n)
	want(t, "the same node again", node(t, sess, n), first)
	want(t, "nodes", sess.State().Nodes, 2)
	// Within one mutation, too.
	do(t, sess, func(tx *Tx) error {
		m := n
		m.ID, m.Status, m.Predecessor = "n2", protocol.StatusSealed, first.Seq
		a, err1 := tx.Append(m)
		b, err2 := tx.Append(m)
		want(t, "the same node in one mutation", b, a)
		return errors.Join(err1, err2)
	})
	for name, change := range map[string]func(*NodeSpec){
		"other text":        func(n *NodeSpec) { n.Content = textContent("two") },
		"other kind":        func(n *NodeSpec) { n.Kind = protocol.KindAssistant },
		"other predecessor": func(n *NodeSpec) { n.Predecessor = first.Seq },
		"other status":      func(n *NodeSpec) { n.Status = protocol.StatusOpen },
	} {
		t.Run(name, func(t *testing.T) {
			m := n
			m.Status = protocol.StatusSealed
			change(&m)
			refused(t, sess, protocol.CodeIDConflict, func(tx *Tx) error { _, err := tx.Append(m); return err })
		})
	}
	clean(t, s)
}

// Rule 3: a sealed node never changes.
func TestSealOnce(t *testing.T) {
	s := openTest(t, vfs.NewMem())
	sess := newSession(t, s)
	u := user(t, sess, Root, "one")
	open := node(t, sess, NodeSpec{Kind: protocol.KindAssistant, Predecessor: u.Seq, Status: protocol.StatusOpen, Content: textContent(long(100_000))})
	want(t, "open nodes", count(t, s, famOpen), 1)
	if err := sess.Checkpoint(open.Seq, 0, protocol.DeltaText, "half"); err != nil {
		t.Fatal(err)
	}
	usage := &protocol.Usage{InputTokens: 7, OutputTokens: 3, CostUSD: 0.5}
	final := Final{Status: protocol.StatusSealed, Tokens: 3, Tokenizer: "t", Content: Content{Parts: textContent(long(70_000)).Parts, Usage: usage}}
	done := mustApply(t, sess, func(tx *Tx) (Skeleton, error) { return tx.Seal(open.Seq, final) })
	want(t, "total", done.Total, Totals{7, 3, 1, 500_000})
	want(t, "text", said(t, sess, open.Seq), long(70_000))
	want(t, "what streaming left", count(t, s, famOpen)+count(t, s, famPiece), 0)
	want(t, "chunks", count(t, s, famChunk), 2)
	for _, status := range []protocol.Status{protocol.StatusSealed, protocol.StatusFailed, protocol.StatusOpen} {
		refused(t, sess, "", func(tx *Tx) error {
			_, err := tx.Seal(open.Seq, Final{Status: status, Content: textContent("other")})
			return err
		})
	}
	refused(t, sess, "", func(tx *Tx) error {
		_, err := tx.Seal(u.Seq, Final{Status: protocol.StatusFailed, Content: textContent("other")})
		return err
	})
	// An open node can not become anything but final.
	open = node(t, sess, NodeSpec{Kind: protocol.KindAssistant, Predecessor: u.Seq, Status: protocol.StatusOpen})
	refused(t, sess, "", func(tx *Tx) error { _, err := tx.Seal(open.Seq, Final{Status: protocol.StatusQueued}); return err })
	// Opened and sealed at once, long both times.
	do(t, sess, func(tx *Tx) error {
		o, err := tx.Append(NodeSpec{ID: "both", Kind: protocol.KindAssistant, Predecessor: u.Seq, Status: protocol.StatusOpen, Content: textContent(long(300_000))})
		if err != nil {
			return err
		}
		_, err = tx.Seal(o.Seq, Final{Status: protocol.StatusFailed, Content: textContent(long(150_000))})
		return err
	})
	both := read(t, sess, func(r *Reader) (Skeleton, error) { return r.Lookup("both") })
	want(t, "text of both", said(t, sess, both.Seq), long(150_000))
	want(t, "status of both", both.Status, protocol.StatusFailed)
	want(t, "chunks", count(t, s, famChunk), 5)
	clean(t, s)
}

// fault 73, fault 74: long contents go in chunks and come back whole.
func TestLongContent(t *testing.T) {
	s := openTest(t, vfs.NewMem())
	sess := newSession(t, s)
	for _, n := range []int{0, 1, chunkSize - 100, chunkSize, chunkSize + 1, 3 * chunkSize, sized(5 << 20)} {
		text := long(n)
		sk := user(t, sess, Root, text)
		if got := said(t, sess, sk.Seq); got != text {
			t.Errorf("%d bytes came back as %d", n, len(got))
		}
	}
	want(t, "marks", count(t, s, famWriting), 0)
	s = reopen(t, s)
	clean(t, s)
}

// fault 79: numbers order nodes, whatever the clock says.
func TestOrderIsNotTheClocks(t *testing.T) {
	c := newClock()
	s := openTest(t, vfs.NewMem(), func(o *Options) { o.Clock = c.now })
	old := newSession(t, s)
	say(t, old, "before", "before")
	sess := newSession(t, s)
	u1, _ := say(t, sess, "one", "first")
	c.at = c.at.Add(-time.Hour)
	u2, a2 := say(t, sess, "two", "second")
	if u2.Seq <= u1.Seq || !u2.Created.After(u1.Created) {
		t.Errorf("node %d at %s after node %d at %s", u2.Seq, u2.Created, u1.Seq, u1.Created)
	}
	// A thousand nodes in one millisecond.
	last, at := a2.Seq, a2.Created
	ids := map[string]bool{}
	for range sized(1_000) {
		sk := user(t, sess, Root, "x")
		if sk.Seq <= last || !sk.Created.After(at) || ids[sk.ID] {
			t.Fatalf("node %d %s at %s after node %d at %s", sk.Seq, sk.ID, sk.Created, last, at)
		}
		last, at, ids[sk.ID] = sk.Seq, sk.Created, true
	}
	// Restarted with the clock still behind: what is used now is listed first.
	s = reopen(t, s)
	old = session(t, s, old.ID())
	say(t, old, "again", "again")
	list, _, err := s.Sessions(context.Background(), Filter{})
	if err != nil {
		t.Fatal(err)
	}
	want(t, "the newest session", list[0].Info.ID, old.ID())
	clean(t, s)
}

func TestManyAppendsInOneMutation(t *testing.T) {
	s := openTest(t, vfs.NewMem())
	sess := newSession(t, s)
	n := sized(20_000)
	do(t, sess, func(tx *Tx) error {
		for i := range n {
			kind := protocol.KindUser
			if i%2 == 1 {
				kind = protocol.KindAssistant
			}
			if _, err := tx.Append(NodeSpec{Kind: kind, Predecessor: tx.State.Head, Status: protocol.StatusSealed, Content: textContent("x")}); err != nil {
				return err
			}
		}
		return nil
	})
	state := sess.State()
	want(t, "nodes", state.Nodes, uint64(n+1))
	want(t, "events", state.Events, uint64(1+2*n))
	want(t, "events kept", count(t, s, famEvent), min(1+2*n, keptEvents))
	want(t, "depth of HEAD", read(t, sess, func(r *Reader) (Skeleton, error) { return r.Skeleton(state.Head) }).Depth, uint64(n))
	clean(t, s)
}
