package store

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/google/go-cmp/cmp"

	"convls/protocol"
)

// clock is a time that tests set.
type clock struct{ at time.Time }

func newClock() *clock { return &clock{time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)} }

func (c *clock) now() time.Time { return c.at }

func openTest(t testing.TB, fs vfs.FS, set ...func(*Options)) *Store {
	t.Helper()
	o := Options{Dir: "ledger", FS: fs, MemTableBytes: 1 << 20}
	for _, f := range set {
		f(&o)
	}
	s, err := Open(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// reopen closes a store and opens it again.
func reopen(t testing.TB, s *Store) *Store {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return openTest(t, s.opts.FS, func(o *Options) { *o = s.opts })
}

// crashed opens what a power cut leaves of a store.
func crashed(t testing.TB, s *Store, unsynced int, set ...func(*Options)) *Store {
	t.Helper()
	mem, ok := s.opts.FS.(*vfs.MemFS)
	if !ok {
		t.Fatal("the store is not on a crashable file system")
	}
	o := s.opts
	o.FS = mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: unsynced, RNG: random()})
	return openTest(t, o.FS, append([]func(*Options){func(x *Options) { *x = o }}, set...)...)
}

func problems(t testing.TB, s *Store) []string {
	t.Helper()
	var all []string
	if err := s.Check(context.Background(), func(p Problem) { all = append(all, p.String()) }); err != nil {
		t.Fatal(err)
	}
	return all
}

func clean(t testing.TB, s *Store) {
	t.Helper()
	for _, p := range problems(t, s) {
		t.Error(p)
	}
}

func mustApply[R any](t testing.TB, s *Session, f func(*Tx) (R, error)) R {
	t.Helper()
	out, err := Apply(context.Background(), s, Request{}, f)
	if err != nil {
		t.Fatal(err)
	}
	return out.Result
}

// do applies a mutation without a result.
func do(t testing.TB, s *Session, f func(*Tx) error) {
	t.Helper()
	mustApply(t, s, func(tx *Tx) (struct{}, error) { return struct{}{}, f(tx) })
}

// refused applies a mutation that must be refused with a code, and must change
// nothing.
func refused(t testing.TB, s *Session, code protocol.Code, f func(*Tx) error) {
	t.Helper()
	before := s.State()
	_, err := Apply(context.Background(), s, Request{}, func(tx *Tx) (struct{}, error) { return struct{}{}, f(tx) })
	if err == nil || protocol.CodeOf(err) != code {
		t.Errorf("refused with %q (%v), want %q", protocol.CodeOf(err), err, code)
	}
	if after := s.State(); after != before {
		t.Errorf("a refused mutation changed the state: %+v to %+v", before, after)
	}
}

func textContent(text string) Content {
	return Content{Parts: []protocol.Part{{Type: protocol.PartText, Text: text}}}
}

// node appends a sealed node.
func node(t testing.TB, s *Session, n NodeSpec) Skeleton {
	t.Helper()
	if n.Status == "" {
		n.Status = protocol.StatusSealed
	}
	return mustApply(t, s, func(tx *Tx) (Skeleton, error) { return tx.Append(n) })
}

func user(t testing.TB, s *Session, after Seq, text string) Skeleton {
	t.Helper()
	return node(t, s, NodeSpec{Kind: protocol.KindUser, Predecessor: after, Content: textContent(text)})
}

func reply(t testing.TB, s *Session, after Seq, text string) Skeleton {
	t.Helper()
	return node(t, s, NodeSpec{Kind: protocol.KindAssistant, Predecessor: after, Content: textContent(text)})
}

// say appends a sealed user node and a sealed reply at HEAD.
func say(t testing.TB, s *Session, message, answer string) (u, a Skeleton) {
	t.Helper()
	both := mustApply(t, s, func(tx *Tx) ([2]Skeleton, error) {
		u, err := tx.Append(NodeSpec{Kind: protocol.KindUser, Predecessor: tx.State.Head, Status: protocol.StatusSealed, Content: textContent(message)})
		if err != nil {
			return [2]Skeleton{}, err
		}
		a, err := tx.Append(NodeSpec{Kind: protocol.KindAssistant, Predecessor: u.Seq, Status: protocol.StatusSealed, Content: textContent(answer)})
		return [2]Skeleton{u, a}, err
	})
	return both[0], both[1]
}

func setHead(t testing.TB, s *Session, to Skeleton, branch string) {
	t.Helper()
	do(t, s, func(tx *Tx) error { return tx.SetHead(to, branch) })
}

func newSession(t testing.TB, s *Store) *Session {
	t.Helper()
	out, err := s.Create(context.Background(), Request{}, Info{Policy: "rolling"}, "be brief")
	if err != nil {
		t.Fatal(err)
	}
	return session(t, s, out.Result)
}

func session(t testing.TB, s *Store, id string) *Session {
	t.Helper()
	sess, err := s.Session(id)
	if err != nil {
		t.Fatal(err)
	}
	return sess
}

// snapshot returns a picture that the test closes itself.
func snapshot(t testing.TB, s *Session) *Reader {
	t.Helper()
	r, err := s.Reader()
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// read asks a question of the session as it is now.
func read[R any](t testing.TB, s *Session, f func(*Reader) (R, error)) R {
	t.Helper()
	r, err := s.Reader()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	got, err := f(r)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func said(t testing.TB, s *Session, seq Seq) string {
	t.Helper()
	return read(t, s, func(r *Reader) (string, error) {
		c, err := r.Content(seq)
		if err != nil {
			return "", err
		}
		return Text(c.Parts), nil
	})
}

func tips(t testing.TB, s *Session) []Seq {
	t.Helper()
	return read(t, s, func(r *Reader) ([]Seq, error) {
		leaves, err := r.Leaves()
		var seqs []Seq
		for _, l := range leaves {
			seqs = append(seqs, l.Seq)
		}
		slices.Sort(seqs)
		return seqs, err
	})
}

// happened returns the types of the events after a cursor, and the next cursor.
func happened(t testing.TB, s *Session, after string) ([]protocol.EventType, string) {
	t.Helper()
	events, next, reset, err := s.Events(context.Background(), after, 1_000)
	if err != nil || reset {
		t.Fatalf("events after %s: reset %v, %v", after, reset, err)
	}
	var types []protocol.EventType
	for _, e := range events {
		types = append(types, e.Type)
	}
	return types, next
}

func want[T any](t testing.TB, what string, got, want T) {
	t.Helper()
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("%s (-want +got):\n%s", what, d)
	}
}

func wantCode(t testing.TB, err error, code protocol.Code) {
	t.Helper()
	if err == nil || protocol.CodeOf(err) != code {
		t.Errorf("error %q (%v), want %q", protocol.CodeOf(err), err, code)
	}
}

func long(n int) string {
	b := make([]byte, 0, n+16)
	for i := 0; len(b) < n; i++ {
		b = fmt.Appendf(b, "%07d ", i)
	}
	return string(b[:n])
}
