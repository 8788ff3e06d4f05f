package store

import (
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"convls/protocol"
)

// remove deletes the branch with this tip and returns what it took away.
func remove(t testing.TB, s *Session, tip Skeleton) Removal {
	t.Helper()
	return mustApply(t, s, func(tx *Tx) (Removal, error) {
		rm, err := tx.Exclusive(tip)
		if err != nil {
			return rm, err
		}
		return rm, tx.Delete(rm)
	})
}

func TestChatForkDeleteReopen(t *testing.T) {
	s := openTest(t, vfs.NewMem())
	sess := newSession(t, s)
	_, a1 := say(t, sess, "one", "first")
	_, a2 := say(t, sess, "two", "second")
	setHead(t, sess, a1, "")
	_, b2 := say(t, sess, "two again", "other")
	clean(t, s)
	s = reopen(t, s)
	sess = session(t, s, sess.ID())
	want(t, "HEAD after reopening", sess.State().Head, b2.Seq) // fault 58
	lca := read(t, sess, func(r *Reader) (Skeleton, error) { return r.CommonAncestor(a2, b2) })
	want(t, "common ancestor", lca.Seq, a1.Seq)
	rm := remove(t, sess, b2)
	want(t, "count", rm.Count, 2)
	want(t, "fork point", rm.ForkPoint.Seq, a1.Seq)
	want(t, "HEAD after the delete", sess.State().Head, a1.Seq) // fault 61
	want(t, "text of the other branch", said(t, sess, a2.Seq), "second")
	want(t, "tips", tips(t, sess), []Seq{a2.Seq})
	wantCode(t, readErr(t, sess, func(r *Reader) error { _, err := r.Lookup(b2.ID); return err }), protocol.CodeUnknownNode)
	clean(t, s)
}

// fault 55: nothing of the branch is left, whatever hung off it, and what the
// others share stays.
func TestDeleteTakesTheSubtree(t *testing.T) {
	s := openTest(t, vfs.NewMem())
	sess := newSession(t, s)
	u1, a1 := say(t, sess, "one", "first")
	_, keep := say(t, sess, "two", "second")
	setHead(t, sess, a1, "")
	u3, a3 := say(t, sess, "three", "third")
	tool := node(t, sess, NodeSpec{Kind: protocol.KindTool, Caller: a3.Seq, Content: textContent(long(100_000))})
	inner := node(t, sess, NodeSpec{Kind: protocol.KindTool, Caller: tool.Seq})
	note := node(t, sess, NodeSpec{Kind: protocol.KindNotice, Predecessor: u3.Seq})
	// A turn that a tool spawned on the other branch, and an exec there: both were
	// called by what goes.
	spawned := node(t, sess, NodeSpec{Kind: protocol.KindUser, Predecessor: keep.Seq, Caller: tool.Seq, HeadNeutral: true})
	answer := node(t, sess, NodeSpec{Kind: protocol.KindAssistant, Predecessor: spawned.Seq, HeadNeutral: true})
	exec := node(t, sess, NodeSpec{Kind: protocol.KindCall, Predecessor: keep.Seq, Caller: tool.Seq})
	// A call that the other branch made at a node that goes.
	callee := node(t, sess, NodeSpec{Kind: protocol.KindCall, Predecessor: a3.Seq, Caller: keep.Seq})
	do(t, sess, func(tx *Tx) error {
		// Covers into what goes, from outside; and a summary that goes itself.
		if _, err := tx.AppendSummary(SummarySpec{ID: "sum1", First: u1.Seq, Last: u3.Seq, Content: textContent("s"), Activate: true}); err != nil {
			return err
		}
		if _, err := tx.AppendSummary(SummarySpec{ID: "sum2", First: a3.Seq, Last: a3.Seq, Content: textContent("s")}); err != nil {
			return err
		}
		if _, err := tx.AppendSummary(SummarySpec{ID: "sum3", First: u1.Seq, Last: a1.Seq, Content: textContent("s")}); err != nil {
			return err
		}
		if err := tx.Name("gone", a3); err != nil {
			return err
		}
		if err := tx.SetHead(a3, "gone"); err != nil {
			return err
		}
		if err := tx.Pin(u3, true); err != nil {
			return err
		}
		if _, err := tx.Enqueue(Queued{After: a3.Seq, ReplyID: "q1"}); err != nil {
			return err
		}
		_, err := tx.Enqueue(Queued{After: keep.Seq, ReplyID: "q2"})
		return err
	})
	want(t, "called", []bool{spawned.Called, answer.Called, u3.Called}, []bool{true, true, false})
	clean(t, s)
	before := sess.State()
	at := sess.Cursor()
	rm := remove(t, sess, a3)
	// u3 a3 tool inner note spawned answer exec callee sum2
	want(t, "count", rm.Count, 10)
	want(t, "chain", []Seq{rm.Chain[0].Seq, rm.Chain[1].Seq}, []Seq{a3.Seq, u3.Seq})
	state := sess.State()
	want(t, "nodes", state.Nodes, before.Nodes-10)
	want(t, "removals", state.Removals, before.Removals+1)
	want(t, "HEAD, its branch, the active summary", []any{state.Head, state.Branch, state.Active}, []any{a1.Seq, "", Seq(0)})
	want(t, "tips", tips(t, sess), []Seq{keep.Seq}) // it was one beside the spawned turn, too
	for _, gone := range []Skeleton{u3, a3, tool, inner, note, spawned, answer, exec, callee} {
		wantCode(t, readErr(t, sess, func(r *Reader) error { _, err := r.Skeleton(gone.Seq); return err }), protocol.CodeUnknownNode)
	}
	for id, void := range map[string]bool{"sum1": true, "sum3": false} {
		got := read(t, sess, func(r *Reader) (bool, error) {
			sk, err := r.Lookup(id)
			if err != nil {
				return false, err
			}
			return r.Void(sk.Seq)
		})
		want(t, id+" is void", got, void)
	}
	want(t, "names", len(read(t, sess, func(r *Reader) (map[string]Seq, error) { return r.Names() })), 0)
	queue := read(t, sess, func(r *Reader) ([]Queued, error) { return r.Queue() })
	want(t, "queue", []string{queue[0].ReplyID}, []string{"q2"})
	want(t, "chunks and pins", count(t, s, famChunk)+count(t, s, famPin), 0)
	types, _ := happened(t, sess, at)
	want(t, "events", types, []protocol.EventType{
		protocol.EventSummaryActive, protocol.EventBranchChanged, protocol.EventQueueChanged, protocol.EventTurnCancelled,
		protocol.EventHeadMoved,
		protocol.EventBranchDeleted, protocol.EventGraphChanged,
	})
	clean(t, s)
	// A void summary can not be active again, and a redaction later finds its way
	// past what it covered.
	refused(t, sess, protocol.CodeUnknownSummary, func(tx *Tx) error {
		sum, err := tx.Lookup("sum1")
		if err != nil {
			return err
		}
		return tx.Activate(sum)
	})
	do(t, sess, func(tx *Tx) error { return tx.Redact(u1) })
	want(t, "the void summary's text", said(t, sess, read(t, sess, func(r *Reader) (Skeleton, error) { return r.Lookup("sum1") }).Seq), RedactedText)
	clean(t, s)
}

func TestDeleteRefused(t *testing.T) {
	s := openTest(t, vfs.NewMem())
	sess := newSession(t, s)
	root := read(t, sess, func(r *Reader) (Skeleton, error) { return r.Skeleton(Root) })
	refused(t, sess, protocol.CodeInvalidParams, func(tx *Tx) error {
		rm, err := tx.Exclusive(root)
		if err != nil {
			return err
		}
		return tx.Delete(rm)
	})
	u1, a1 := say(t, sess, "one", "first")
	refused(t, sess, protocol.CodeInvalidParams, func(tx *Tx) error { _, err := tx.Exclusive(u1); return err })
	rm := read(t, sess, func(r *Reader) (Removal, error) { return r.Exclusive(a1) })
	want(t, "all but the root", rm.Count, 2)
	// What was counted in an older picture is counted again.
	node(t, sess, NodeSpec{Kind: protocol.KindNotice, Predecessor: a1.Seq})
	refused(t, sess, protocol.CodeConfirmRequired, func(tx *Tx) error { return tx.Delete(rm) })
	// A running turn inside: its tool is open.
	tool := node(t, sess, NodeSpec{Kind: protocol.KindTool, Caller: a1.Seq, Status: protocol.StatusOpen})
	refused(t, sess, protocol.CodeTurnRunning, func(tx *Tx) error {
		rm, err := tx.Exclusive(a1)
		if err != nil {
			return err
		}
		return tx.Delete(rm)
	})
	do(t, sess, func(tx *Tx) error { _, err := tx.Seal(tool.Seq, Final{Status: protocol.StatusCancelled}); return err })
	remove(t, sess, a1)
	want(t, "HEAD", sess.State().Head, Root)
	want(t, "tips", tips(t, sess), []Seq{Root})
	clean(t, s)
}

// The fork point takes the place of the branch in the order of use.
func TestDeleteKeepsTheOrderOfUse(t *testing.T) {
	s := openTest(t, vfs.NewMem())
	sess := newSession(t, s)
	_, a := say(t, sess, "a", "a")
	b := user(t, sess, a.Seq, "b")
	b1 := reply(t, sess, b.Seq, "b1") // used before c
	setHead(t, sess, a, "")
	c := user(t, sess, a.Seq, "c")
	rm := remove(t, sess, b1)
	want(t, "chain", len(rm.Chain), 2)
	last := read(t, sess, func(r *Reader) (Skeleton, error) { return r.LastTip(a) })
	want(t, "last tip", last.Seq, c.Seq)
	clean(t, s)
}

// A spawned turn is no fork of the branch that it hangs off, and goes with it; and a
// spawned branch goes alone, even where nothing else follows the node it hangs off.
func TestDeleteOfAndBesideSpawnedTurns(t *testing.T) {
	s := openTest(t, vfs.NewMem())
	sess := newSession(t, s)
	_, a1 := say(t, sess, "one", "first")
	tool := node(t, sess, NodeSpec{Kind: protocol.KindTool, Caller: a1.Seq})
	s1 := node(t, sess, NodeSpec{Kind: protocol.KindUser, Predecessor: a1.Seq, Caller: tool.Seq, HeadNeutral: true})
	r1 := node(t, sess, NodeSpec{Kind: protocol.KindAssistant, Predecessor: s1.Seq, HeadNeutral: true})
	// Called from elsewhere, but hanging here.
	s2 := node(t, sess, NodeSpec{Kind: protocol.KindUser, Predecessor: a1.Seq, Caller: Root, HeadNeutral: true})
	want(t, "HEAD", sess.State().Head, a1.Seq)
	want(t, "tips beside spawned turns", tips(t, sess), []Seq{a1.Seq, r1.Seq, s2.Seq})
	want(t, "nodes of the spawned branch", remove(t, sess, r1).Count, 2)
	want(t, "HEAD after the delete of a spawned branch", sess.State().Head, a1.Seq)
	clean(t, s)
	s1 = node(t, sess, NodeSpec{Kind: protocol.KindUser, Predecessor: a1.Seq, Caller: tool.Seq, HeadNeutral: true})
	_, a2 := say(t, sess, "two", "second")
	// u1 a1 tool s1 s2 u2 a2
	rm := remove(t, sess, a2)
	want(t, "nodes of the branch", rm.Count, 7)
	want(t, "chain", len(rm.Chain), 4)
	want(t, "tips", tips(t, sess), []Seq{Root})
	for _, gone := range []Skeleton{s1, s2, tool} {
		wantCode(t, readErr(t, sess, func(r *Reader) error { _, err := r.Skeleton(gone.Seq); return err }), protocol.CodeUnknownNode)
	}
	clean(t, s)
}

// A lane that a delete gave back up to a node of another lane still holds what stays in
// it when that node goes, too.
func TestDeleteTwiceKeepsLanes(t *testing.T) {
	s := openTest(t, vfs.NewMem())
	sess := newSession(t, s)
	say(t, sess, "one", "first")
	root := read(t, sess, func(r *Reader) (Skeleton, error) { return r.Skeleton(Root) })
	setHead(t, sess, root, "")
	say(t, sess, "beside", "it")
	setHead(t, sess, read(t, sess, func(r *Reader) (Skeleton, error) { return r.Skeleton(3) }), "")
	_, two := say(t, sess, "two", "second")
	node(t, sess, NodeSpec{Kind: protocol.KindUser, Predecessor: two.Seq, Caller: two.Seq, HeadNeutral: true})
	_, at := say(t, sess, "three", "third")
	_, end := say(t, sess, "four", "fourth")
	setHead(t, sess, at, "")
	_, fork := say(t, sess, "a fork", "in the lane of it")
	remove(t, sess, fork)
	clean(t, s)
	remove(t, sess, end)
	clean(t, s)
}
