package store

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"convls/protocol"
)

// damage flips a bit of the byte at this place of a record; -1 is the middle.
func damage(t testing.TB, s *Store, k []byte, at int) {
	t.Helper()
	b, err := s.get(k)
	if err != nil {
		t.Fatal(err)
	}
	if at < 0 {
		at = len(b) / 2
	}
	b[at] ^= 0x10
	if err := s.db.Set(k, b, pebble.Sync); err != nil {
		t.Fatal(err)
	}
}

// full makes a session that has a record of every family.
func full(t testing.TB, s *Store) *Session {
	t.Helper()
	sess := newSession(t, s)
	u1, a1 := say(t, sess, "one", "first")
	_, a2 := say(t, sess, "two", long(100_000))
	node(t, sess, NodeSpec{Kind: protocol.KindTool, Caller: a2.Seq})
	setHead(t, sess, a1, "")
	_, b2 := say(t, sess, "two again", "other")
	if _, err := Apply(context.Background(), sess, Request{ID: "r1"}, func(tx *Tx) (int, error) {
		if _, err := tx.AppendSummary(SummarySpec{First: u1.Seq, Last: a1.Seq, Content: textContent("summary"), Activate: true}); err != nil {
			return 0, err
		}
		old, err := tx.AppendSummary(SummarySpec{First: u1.Seq, Last: a2.Seq, Content: textContent("void")})
		if err != nil {
			return 0, err
		}
		if err := tx.void(old.Seq, "test"); err != nil {
			return 0, err
		}
		if err := tx.Pin(u1, true); err != nil {
			return 0, err
		}
		if err := tx.Name("main", b2); err != nil {
			return 0, err
		}
		if err := tx.SetHead(b2, "main"); err != nil {
			return 0, err
		}
		_, err = tx.Enqueue(Queued{After: b2.Seq, Content: textContent("waits").Parts})
		return 0, err
	}); err != nil {
		t.Fatal(err)
	}
	return sess
}

// fault 65, rule 8: one bit of any record of one session is flipped. The others
// open, list and read; Check reports it; nothing is deleted.
func TestEveryRecordDamaged(t *testing.T) {
	fs := vfs.NewMem()
	s := openTest(t, fs)
	bad, good := full(t, s), full(t, s)
	clean(t, s)
	// All records of the one session, and how many there are in all.
	var keys [][]byte
	all := 0
	it, err := s.db.NewIter(nil)
	if err != nil {
		t.Fatal(err)
	}
	for ok := it.First(); ok; ok = it.Next() {
		all++
		k := it.Key()
		mine := bytes.IndexByte(sessionFamilies, k[0]) >= 0 && lastNumber(k[:9]) == bad.num || bytes.Equal(k, sessionKey(bad.ID()))
		if mine && len(it.Value()) > 0 {
			keys = append(keys, bytes.Clone(k))
		}
	}
	if err := it.Close(); err != nil {
		t.Fatal(err)
	}
	families := map[byte]bool{}
	for _, k := range keys {
		families[k[0]] = true
	}
	for _, f := range []byte{famHead, famInfo, famSkeleton, famContent, famChunk, famID, famChild, famCallee, famLeaf, famName, famEvent, famSummary, famVoid, famPin, famQueue, famSession} {
		if !families[f] {
			t.Errorf("no record of family %q is tried", f)
		}
	}
	tried := map[byte]int{}
	for _, k := range keys {
		if tried[k[0]]++; tried[k[0]] > max(sized(1_000), 1)/20 {
			continue
		}
		before, err := s.get(k)
		if err != nil {
			t.Fatal(err)
		}
		for _, at := range []int{len(before) / 2, 0, len(before) - 1}[:max(sized(3), 1)] {
			name := fmt.Sprintf("%q %x byte %d", k[0], k[1:], at)
			damage(t, s, k, at)
			s = reopen(t, s)
			found := problems(t, s)
			if len(found) == 0 {
				t.Errorf("%s: Check reports nothing", name)
			}
			for _, p := range found {
				if strings.Contains(p, good.ID()) {
					t.Errorf("%s: the other session is said to have a problem: %s", name, p)
				}
			}
			usable(t, s, name, good.ID())
			survives(t, s, bad.ID(), k[0])
			if err := s.db.Set(k, before, pebble.Sync); err != nil {
				t.Fatal(err)
			}
		}
	}
	left := 0
	it, err = s.db.NewIter(nil)
	if err != nil {
		t.Fatal(err)
	}
	for ok := it.First(); ok; ok = it.Next() {
		left++
	}
	_ = it.Close()
	if left < all {
		t.Errorf("of %d records %d are left", all, left)
	}
}

// usable checks that a session can be listed, read and written.
func usable(t *testing.T, s *Store, name, id string) {
	t.Helper()
	list, _, err := s.Sessions(context.Background(), Filter{})
	if err != nil {
		t.Fatalf("%s: list: %v", name, err)
	}
	listed := false
	for _, l := range list {
		listed = listed || l.Info.ID == id
	}
	if !listed {
		t.Errorf("%s: the other session is not listed", name)
	}
	sess, err := s.Session(id)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	want(t, name+": text", said(t, sess, 2), "one")
	if _, err := Apply(context.Background(), sess, Request{}, func(tx *Tx) (int, error) { return 0, tx.SetHead(Skeleton{Seq: Root}, "") }); err != nil {
		t.Errorf("%s: %v", name, err)
	}
	if _, err := Apply(context.Background(), sess, Request{}, func(tx *Tx) (int, error) { return 0, tx.SetHead(Skeleton{Seq: 8}, "main") }); err != nil {
		t.Errorf("%s: %v", name, err)
	}
}

// survives uses the damaged session: what the damage does not touch goes on.
func survives(t *testing.T, s *Store, id string, family byte) {
	t.Helper()
	sess, err := s.Session(id)
	if err != nil {
		wantCode(t, err, protocol.CodeStoreDamaged)
		if family != famHead && family != famSession {
			t.Errorf("damage to family %q keeps the session from being opened: %v", family, err)
		}
		return
	}
	r, err := sess.Reader()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	// Nothing but a defined error comes of any question; nothing hangs or panics.
	for seq := Root; seq < r.State.Next; seq++ {
		sk, err := r.Skeleton(seq)
		if err != nil {
			wantCode(t, err, protocol.CodeStoreDamaged)
			continue
		}
		if _, err := r.Node(sk); err != nil {
			wantCode(t, err, protocol.CodeStoreDamaged)
		}
		for _, err := range r.Spine(sk) {
			if err != nil && !isDamage(err) {
				t.Error(err)
			}
		}
		if _, err := r.LastTip(sk); err != nil {
			t.Errorf("the last tip below node %d: %v", seq, err)
		}
	}
	if _, err := r.Names(); err != nil {
		t.Error(err)
	}
	if _, err := r.Queue(); err != nil {
		t.Error(err)
	}
	if _, _, _, err := sess.Events(context.Background(), s.cursor(0), 1000); err != nil {
		t.Errorf("events: %v", err)
	}
}

// Damage to one node: what the neighbours tell of it, and how HEAD leaves it.
func TestDamageStaysLocal(t *testing.T) {
	s := openTest(t, vfs.NewMem())
	sess := newSession(t, s)
	u1, a1 := say(t, sess, "one", "first")
	u2, a2 := say(t, sess, "two", "second")
	setHead(t, sess, u1, "")
	b1 := reply(t, sess, u1.Seq, "other")
	damage(t, s, key(famSkeleton, sess.num, uint64(u2.Seq)), -1)
	r := snapshot(t, sess)
	n, err := r.Node(a2)
	if err != nil {
		t.Fatal(err)
	}
	want(t, "the predecessor of its neighbour", n.Predecessor, u2.Seq.placeholder())
	tip, err := r.LastTip(u1)
	_ = r.Close()
	if err != nil || tip.Seq != b1.Seq {
		t.Errorf("last tip %d (%v), want %d", tip.Seq, err, b1.Seq)
	}
	err = readErr(t, sess, func(r *Reader) error { _, err := r.Skeleton(u2.Seq); return err })
	wantCode(t, err, protocol.CodeStoreDamaged)

	// HEAD on the damaged node can be left, by who knows that it is there.
	setHead(t, sess, a2, "")
	damage(t, s, key(famSkeleton, sess.num, uint64(a2.Seq)), -1)
	if _, err := Apply(context.Background(), sess, Request{ExpectedHead: a2.ID}, func(tx *Tx) (int, error) { return 0, tx.SetHead(a1, "") }); err != nil {
		t.Fatal(err)
	}
	// A redaction and a delete elsewhere are not kept from it.
	do(t, sess, func(tx *Tx) error { return tx.Redact(b1) })
	say(t, sess, "three", "third")
	do(t, sess, func(tx *Tx) error {
		rm, err := tx.Exclusive(b1)
		if err != nil {
			return err
		}
		return tx.Delete(rm)
	})
}

// Damage to a file, as a disk makes it, at many places: the store opens, and what
// is in other blocks is there.
func TestDamagedFile(t *testing.T) {
	for _, sessions := range []int{20, 200}[:max(sized(2), 1)] {
		t.Run(fmt.Sprint(sessions, " sessions"), func(t *testing.T) { damageTables(t, sessions) })
	}
}

func damageTables(t *testing.T, sessions int) {
	fs := vfs.NewCrashableMem()
	s := openTest(t, fs)
	var ids []string
	for range sessions {
		sess := newSession(t, s)
		ids = append(ids, sess.ID())
		say(t, sess, long(500), "answer")
	}
	if err := s.db.Compact(context.Background(), []byte{0}, []byte{0xff}, false); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	damaged, found := 0, 0
	const places = 24
	for place := range places {
		clone := fs.CrashClone(vfs.CrashCloneCfg{})
		corruptTables(t, clone, place, places)
		o := s.opts
		o.FS = clone
		s, err := Open(context.Background(), o)
		if err != nil {
			t.Fatalf("place %d: %v", place, err)
		}
		list, _, err := s.Sessions(context.Background(), Filter{})
		if err != nil {
			t.Errorf("place %d: list: %v", place, err)
		}
		read := 0
		for _, id := range ids {
			if sess, err := s.Session(id); err == nil && text(sess) == long(500) {
				read++
			}
		}
		// A block holds the small records of many sessions.
		if sessions > 100 && (len(list) < sessions/4 || read < sessions/4) {
			t.Errorf("place %d: of %d sessions %d are listed and %d can be read", place, sessions, len(list), read)
		}
		if len(list) < sessions || read < sessions {
			damaged++
			reports := 0
			if err := s.Check(context.Background(), func(Problem) { reports++ }); err != nil || reports > 0 {
				found++
			}
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	if damaged < places/4 {
		t.Errorf("damage at %d of %d places was felt: this test tests nothing", damaged, places)
	}
	want(t, "damage that Check finds", found, damaged)
}

func text(s *Session) string {
	r, err := s.Reader()
	if err != nil {
		return err.Error()
	}
	defer r.Close()
	c, err := r.Content(2)
	if err != nil {
		return err.Error()
	}
	return Text(c.Parts)
}

// corruptTables overwrites some bytes of each table, at one of so many places.
func corruptTables(t *testing.T, fs vfs.FS, place, places int) {
	t.Helper()
	names, err := fs.List("ledger")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if !strings.HasSuffix(name, ".sst") {
			continue
		}
		f, err := fs.OpenReadWrite("ledger/"+name, vfs.WriteCategoryUnspecified)
		if err != nil {
			t.Fatal(err)
		}
		info, err := f.Stat()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteAt([]byte("damaged!"), info.Size()*int64(place)/int64(places)); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
