package store

import (
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"convls/protocol"
)

func TestSummaries(t *testing.T) {
	s := openTest(t, vfs.NewMem())
	sess := newSession(t, s)
	var chain []Skeleton
	for _, text := range []string{"1", "2", "3", "4"} {
		u, a := say(t, sess, text, text)
		chain = append(chain, u, a)
	}
	head := sess.State().Head
	sum := func(spec SummarySpec) Skeleton {
		t.Helper()
		spec.Content.Parts = textContent("s").Parts
		return mustApply(t, sess, func(tx *Tx) (Skeleton, error) { return tx.AppendSummary(spec) })
	}
	covers := func(sk Skeleton) Covers {
		t.Helper()
		return read(t, sess, func(r *Reader) (Covers, error) { return r.Covers(sk.Seq) })
	}
	s1 := sum(SummarySpec{First: chain[0].Seq, Last: chain[3].Seq, Activate: true})
	want(t, "HEAD does not move", sess.State().Head, head)
	want(t, "active", sess.State().Active, s1.Seq)
	want(t, "it stands before what it covers", s1.Predecessor, Root)
	want(t, "count", covers(s1).Count, 4)
	ids := read(t, sess, func(r *Reader) ([]string, error) { return r.CoveredIDs(covers(s1)) })
	want(t, "ids", ids, []string{chain[0].ID, chain[1].ID, chain[2].ID, chain[3].ID})

	// A digest that goes on is that of the whole.
	s2 := sum(SummarySpec{First: chain[0].Seq, Last: chain[6].Seq, Previous: s1.Seq, Activate: true})
	whole := sum(SummarySpec{First: chain[0].Seq, Last: chain[6].Seq})
	want(t, "continued digest", covers(s2), covers(whole))
	want(t, "active", sess.State().Active, s2.Seq)
	one := sum(SummarySpec{First: chain[2].Seq, Last: chain[2].Seq})
	want(t, "one node", covers(one).Count, 1)
	clean(t, s)

	// Covers do not change with HEAD or with siblings.
	setHead(t, sess, chain[1], "")
	say(t, sess, "sibling", "sibling")
	want(t, "covers", covers(s2), covers(whole))

	// Undo and redo: which one is active.
	do(t, sess, func(tx *Tx) error { return tx.Activate(Skeleton{}) })
	want(t, "active", sess.State().Active, Seq(0))
	at := sess.Cursor()
	do(t, sess, func(tx *Tx) error { return tx.Activate(s1) })
	events, _, _, err := sess.Events(t.Context(), at, 10)
	if err != nil || len(events) != 1 || events[0].SummaryID != s1.ID {
		t.Errorf("events %+v (%v)", events, err)
	}
	s = reopen(t, s)
	sess = session(t, s, sess.ID())
	want(t, "active after a restart", sess.State().Active, s1.Seq)
	var all []Seq
	for seq, err := range snapshotUntilEnd(t, sess).Summaries() {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, seq)
	}
	want(t, "summaries", all, []Seq{s1.Seq, s2.Seq, whole.Seq, one.Seq})
	clean(t, s)
}

// snapshotUntilEnd returns a picture that is closed before the store is.
func snapshotUntilEnd(t testing.TB, s *Session) *Reader {
	t.Helper()
	r := snapshot(t, s)
	t.Cleanup(func() { _ = r.Close() })
	return r
}

// Rule 4: contiguity is proved when a summary is written.
func TestSummariesRefused(t *testing.T) {
	s := openTest(t, vfs.NewMem())
	sess := newSession(t, s)
	u1, a1 := say(t, sess, "one", "first")
	u2, a2 := say(t, sess, "two", "second")
	tool := node(t, sess, NodeSpec{Kind: protocol.KindTool, Caller: a2.Seq})
	setHead(t, sess, a1, "")
	b2 := user(t, sess, a1.Seq, "other")
	open := node(t, sess, NodeSpec{Kind: protocol.KindAssistant, Predecessor: b2.Seq, Status: protocol.StatusOpen})
	sum := mustApply(t, sess, func(tx *Tx) (Skeleton, error) {
		return tx.AppendSummary(SummarySpec{First: u1.Seq, Last: a1.Seq, Content: textContent("s")})
	})
	for name, c := range map[string]struct {
		spec SummarySpec
		code protocol.Code
	}{
		"the root":                   {SummarySpec{First: Root, Last: a1.Seq}, protocol.CodeNotAChainNode},
		"off the chain":              {SummarySpec{First: u1.Seq, Last: tool.Seq}, protocol.CodeNotAChainNode}, // fault 50
		"a summary":                  {SummarySpec{First: u1.Seq, Last: sum.Seq}, protocol.CodeNotAChainNode},
		"backwards":                  {SummarySpec{First: a1.Seq, Last: u1.Seq}, protocol.CodeInvalidParams},
		"across branches":            {SummarySpec{First: u2.Seq, Last: b2.Seq}, protocol.CodeInvalidParams},
		"nothing":                    {SummarySpec{First: 99, Last: a1.Seq}, protocol.CodeUnknownNode},
		"an open node":               {SummarySpec{First: u1.Seq, Last: open.Seq}, protocol.CodeTurnRunning},
		"previous is no summary":     {SummarySpec{First: u1.Seq, Last: a2.Seq, Previous: u1.Seq}, protocol.CodeUnknownSummary},
		"previous begins elsewhere":  {SummarySpec{First: a1.Seq, Last: a2.Seq, Previous: sum.Seq}, ""},
		"previous ends at the end":   {SummarySpec{First: u1.Seq, Last: a1.Seq, Previous: sum.Seq}, ""},
		"previous ends beyond":       {SummarySpec{First: u1.Seq, Last: u1.Seq, Previous: sum.Seq}, ""},
		"id of a node that is there": {SummarySpec{ID: u1.ID, First: u1.Seq, Last: a1.Seq}, protocol.CodeIDConflict},
	} {
		t.Run(name, func(t *testing.T) {
			refused(t, sess, c.code, func(tx *Tx) error { _, err := tx.AppendSummary(c.spec); return err })
		})
	}
	refused(t, sess, protocol.CodeUnknownSummary, func(tx *Tx) error { return tx.Activate(u1) })
	clean(t, s)
}

func TestChecksManySummariesOfOneChain(t *testing.T) {
	s := openTest(t, vfs.NewMem())
	sess := newSession(t, s)
	n := sized(2_000)
	do(t, sess, func(tx *Tx) error {
		var nodes []Seq
		for range n {
			sk, err := tx.Append(NodeSpec{Kind: protocol.KindUser, Predecessor: tx.State.Head, Status: protocol.StatusSealed})
			if err != nil {
				return err
			}
			nodes = append(nodes, sk.Seq)
		}
		previous := Seq(0)
		for i := 9; i < n; i += 10 {
			sk, err := tx.AppendSummary(SummarySpec{First: nodes[0], Last: nodes[i], Previous: previous, Content: textContent("s")})
			if err != nil {
				return err
			}
			previous = sk.Seq
		}
		return nil
	})
	clean(t, s)
	// And one whose record of covers names another stretch.
	seq := Seq(0)
	for x := range snapshotUntilEnd(t, sess).Summaries() {
		seq = x
	}
	do(t, sess, func(tx *Tx) error {
		c, err := tx.Covers(seq)
		if err != nil {
			return err
		}
		c.Count--
		return tx.putCovers(seq, c)
	})
	want(t, "problems", len(problems(t, s)), 1)
}
