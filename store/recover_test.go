package store

import (
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"convls/protocol"
)

// Rule 9, fault 68: what a dead process left open is sealed as interrupted, with
// the text that had reached the disk, and the queue is held.
func TestRecover(t *testing.T) {
	s := openTest(t, vfs.NewCrashableMem())
	sess := newSession(t, s)
	u, _ := say(t, sess, "one", "first")
	open := node(t, sess, NodeSpec{Kind: protocol.KindAssistant, Predecessor: u.Seq, Status: protocol.StatusOpen, Content: Content{Model: "m"}})
	for _, p := range []struct {
		part int
		kind protocol.DeltaKind
		text string
	}{
		{1, protocol.DeltaText, "Hello, "}, {0, protocol.DeltaReasoning, "hmm"}, {1, protocol.DeltaText, "wörld"},
		{2, protocol.DeltaToolArgs, `{"half":`}, {10, protocol.DeltaText, "!\xf0\x9f"},
	} {
		if err := sess.Checkpoint(open.Seq, p.part, p.kind, p.text); err != nil {
			t.Fatal(err)
		}
	}
	if err := sess.Checkpoint(open.Seq, 0, "video", "x"); err == nil {
		t.Error("a kind of text that is none was kept")
	}
	do(t, sess, func(tx *Tx) error {
		for i, id := range []string{"q1", "q2"} {
			place, err := tx.Enqueue(Queued{After: open.Seq, UserID: "u" + id, ReplyID: id, Content: textContent("waits").Parts})
			if err != nil {
				return err
			}
			want(t, "place", place, i+1)
		}
		return nil
	})
	head := sess.State().Head
	at := sess.Cursor()

	s = crashed(t, s, 0) // the mutation above has synced the pieces before it
	sess = session(t, s, sess.ID())
	want(t, "recovered", s.Recovered(), []Recovered{{sess.ID(), open.ID}})
	want(t, "HEAD", sess.State().Head, head)
	r := snapshot(t, sess)
	sk, err := r.Lookup(open.ID)
	if err != nil {
		t.Fatal(err)
	}
	c, err := r.Content(sk.Seq)
	if err != nil {
		t.Fatal(err)
	}
	want(t, "status", sk.Status, protocol.StatusInterrupted)
	want(t, "error", c.Error.Code, protocol.CodeServerRestarted)
	want(t, "model", c.Model, "m")
	want(t, "parts", c.Parts, []protocol.Part{
		{Type: protocol.PartReasoning, Text: "hmm"}, {Type: protocol.PartText, Text: "Hello, wörld"}, {Type: protocol.PartText, Text: "!\uFFFD"},
	})
	queue, err := r.Queue()
	if err != nil {
		t.Fatal(err)
	}
	for i, id := range []string{"q1", "q2"} {
		want(t, "queued", []any{queue[i].ReplyID, queue[i].Held, queue[i].Number}, []any{id, true, uint64(i + 1)})
	}
	_ = r.Close()
	types, _ := happened(t, sess, at)
	want(t, "events", types, []protocol.EventType{protocol.EventNodeSealed, protocol.EventTurnInterrupted, protocol.EventQueueChanged})
	clean(t, s)
	// A new turn is accepted, and the next start finds nothing to do.
	say(t, sess, "on", "we go")
	s = reopen(t, s)
	want(t, "recovered", len(s.Recovered()), 0)
	clean(t, s)
}

// A crash between the chunks of a long content and its batch leaves nothing.
func TestRecoverChunks(t *testing.T) {
	s := openTest(t, vfs.NewCrashableMem())
	sess := newSession(t, s)
	tx := newTx(sess, sess.State(), Request{})
	if _, err := tx.Append(NodeSpec{Kind: protocol.KindUser, Predecessor: Root, Status: protocol.StatusSealed, Content: textContent(long(200_000))}); err != nil {
		t.Fatal(err)
	}
	if err := s.db.LogData(nil, pebble.Sync); err != nil {
		t.Fatal(err)
	}
	want(t, "chunks before the crash", count(t, s, famChunk), 4)
	s = crashed(t, s, 100)
	want(t, "chunks and marks after it", count(t, s, famChunk)+count(t, s, famWriting), 0)
	sess = session(t, s, sess.ID())
	want(t, "text", said(t, sess, user(t, sess, Root, long(100_000)).Seq), long(100_000))
	clean(t, s)
	_ = tx.batch.Close()
}

// fault 65: what is damaged keeps nothing else from being recovered.
func TestRecoverDamaged(t *testing.T) {
	s := openTest(t, vfs.NewMem())
	type left struct{ sess, node string }
	var lefts []left
	broken := []byte{famContent, famSkeleton, famInfo, famHead, 0}
	for _, family := range broken {
		sess := newSession(t, s)
		u, _ := say(t, sess, "one", "first")
		a := node(t, sess, NodeSpec{Kind: protocol.KindAssistant, Predecessor: u.Seq, Status: protocol.StatusOpen})
		b := node(t, sess, NodeSpec{Kind: protocol.KindAssistant, Predecessor: u.Seq, Status: protocol.StatusOpen})
		if err := sess.Checkpoint(a.Seq, 0, protocol.DeltaText, "half"); err != nil {
			t.Fatal(err)
		}
		do(t, sess, func(tx *Tx) error { _, err := tx.Enqueue(Queued{After: a.Seq}); return err })
		lefts = append(lefts, left{sess.ID(), b.ID})
		k := key(family, sess.num, uint64(a.Seq))
		if family == famInfo || family == famHead {
			k = key(family, sess.num)
		}
		if family != 0 {
			damage(t, s, k, -1)
		}
	}
	s = reopen(t, s)
	for i, family := range broken {
		if family == famInfo || family == famHead {
			continue // such a session waits for repair
		}
		sess := session(t, s, lefts[i].sess)
		b := read(t, sess, func(r *Reader) (Skeleton, error) { return r.Lookup(lefts[i].node) })
		want(t, "the open node beside the damaged one", b.Status, protocol.StatusInterrupted)
		queue := read(t, sess, func(r *Reader) ([]Queued, error) { return r.Queue() })
		want(t, "held", queue[0].Held, true)
	}
	// The node whose content is damaged is ended; its record and its text are kept.
	sess := session(t, s, lefts[0].sess)
	a := read(t, sess, func(r *Reader) (Skeleton, error) { return r.Skeleton(4) })
	want(t, "the damaged node", a.Status, protocol.StatusInterrupted)
	wantCode(t, readErr(t, sess, func(r *Reader) error { _, err := r.Content(4); return err }), protocol.CodeStoreDamaged)
	parts := read(t, sess, func(r *Reader) ([]protocol.Part, error) { return r.Partial(4) })
	want(t, "its text", Text(parts), "half")
	// A session whose head record is damaged is refused, and found by Check.
	_, err := s.Session(lefts[3].sess)
	wantCode(t, err, protocol.CodeStoreDamaged)
	if len(problems(t, s)) == 0 {
		t.Error("Check finds no damage")
	}
	// It goes on elsewhere.
	say(t, sess, "on", "we go")
}
