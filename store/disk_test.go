package store

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"convls/protocol"
)

var (
	roomy  = vfs.DiskUsage{AvailBytes: Reserve, TotalBytes: 1 << 40}
	scarce = vfs.DiskUsage{AvailBytes: Reserve - 1, TotalBytes: 1 << 40}
)

func TestReserve(t *testing.T) {
	fs := vfs.NewMem()
	s := openTest(t, fs)
	sess := newSession(t, s)
	u, _ := say(t, sess, "one", "first")
	open := node(t, sess, NodeSpec{Kind: protocol.KindAssistant, Predecessor: u.Seq, Status: protocol.StatusOpen})
	fs.TestingSetDiskUsage(scarce)
	refused(t, sess, protocol.CodeDiskFull, func(tx *Tx) error { return tx.SetHead(u, "") })
	_, err := s.Create(context.Background(), Request{}, Info{}, "")
	wantCode(t, err, protocol.CodeDiskFull)
	// What runs seals its replies out of the reserve.
	if _, err := Apply(context.Background(), sess, Request{Unreserved: true}, func(tx *Tx) (int, error) {
		_, err := tx.Seal(open.Seq, Final{Status: protocol.StatusSealed, Content: textContent("done")})
		return 0, err
	}); err != nil {
		t.Fatal(err)
	}
	want(t, "sealed text", said(t, sess, open.Seq), "done")
	fs.TestingSetDiskUsage(roomy)
	setHead(t, sess, u, "")
	clean(t, s)
}

// A store whose disk is below the reserve opens read-only, and the first mutation
// that is asked for when there is room again opens it for writing.
func TestOpenBelowTheReserve(t *testing.T) {
	fs := vfs.NewMem()
	s := openTest(t, fs)
	sess := newSession(t, s)
	u, _ := say(t, sess, "one", "first")
	node(t, sess, NodeSpec{Kind: protocol.KindAssistant, Predecessor: u.Seq, Status: protocol.StatusOpen})
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	fs.TestingSetDiskUsage(scarce)
	s = openTest(t, fs)
	want(t, "read-only", s.ReadOnly(), true)
	sess = session(t, s, sess.ID())
	want(t, "text", said(t, sess, u.Seq), "one")
	if list, _, err := s.Sessions(context.Background(), Filter{}); err != nil || len(list) != 1 {
		t.Errorf("%d sessions (%v)", len(list), err)
	}
	refused(t, sess, protocol.CodeDiskFull, func(tx *Tx) error { return tx.SetHead(u, "") })
	wantCode(t, sess.Checkpoint(4, 0, protocol.DeltaText, "x"), protocol.CodeDiskFull)
	want(t, "nothing is recovered", len(s.Recovered()), 0)
	clean(t, s)
	epoch := s.Epoch()
	fs.TestingSetDiskUsage(roomy)
	// Who still reads is not disturbed, and the mutation waits for them to leave.
	r := snapshot(t, sess)
	s.stuckAfter = time.Millisecond
	refused(t, sess, protocol.CodeDiskFull, func(tx *Tx) error { return tx.SetHead(u, "") })
	s.stuckAfter = stuckAfter
	var told []protocol.EventType
	s.OnCommit(func(c Commit) {
		for _, e := range c.Events {
			told = append(told, e.Type)
		}
	})
	moved := make(chan error)
	go func() {
		_, err := Apply(context.Background(), sess, Request{}, func(tx *Tx) (int, error) { return 0, tx.SetHead(u, "") })
		moved <- err
	}()
	c, err := r.Content(u.Seq)
	if err != nil {
		t.Fatal(err)
	}
	want(t, "text while the store waits", Text(c.Parts), "one")
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-moved; err != nil {
		t.Fatal(err)
	}
	want(t, "read-only", s.ReadOnly(), false)
	want(t, "epoch", s.Epoch(), epoch)
	want(t, "HEAD", sess.State().Head, u.Seq)
	want(t, "recovered", len(s.Recovered()), 1)
	want(t, "what was open", string(read(t, sess, func(r *Reader) (Skeleton, error) { return r.Skeleton(4) }).Status), string(protocol.StatusInterrupted))
	want(t, "told first", told[0], protocol.EventNodeSealed)
	other := newSession(t, s)
	want(t, "another session", other.num, sess.num+1)
	clean(t, s)
	s = reopen(t, s)
	want(t, "HEAD", session(t, s, sess.ID()).State().Head, u.Seq)

	// A store that is not there yet is not made, and a store that a person opened
	// read-only says so.
	empty := vfs.NewMem()
	empty.TestingSetDiskUsage(scarce)
	_, err = Open(context.Background(), Options{Dir: "ledger", FS: empty})
	wantCode(t, err, protocol.CodeDiskFull)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = openTest(t, fs, func(o *Options) { o.ReadOnly = true })
	refused(t, session(t, s, sess.ID()), protocol.CodeNotSupported, func(tx *Tx) error { return tx.SetHead(u, "") })
}

// Any mutation brings the store back, whichever comes first, and only one of those
// that come at once.
func TestSpaceReturns(t *testing.T) {
	for name, mutate := range map[string]func(*Store, string) error{
		"create": func(s *Store, _ string) error {
			_, err := s.Create(context.Background(), Request{ID: "r"}, Info{}, "")
			return err
		},
		"delete": func(s *Store, id string) error {
			_, err := s.DeleteSession(context.Background(), id, Request{ID: "r"})
			return err
		},
		"several": func(s *Store, _ string) error {
			results := make(chan error)
			for range 8 {
				go func() {
					_, err := s.Create(context.Background(), Request{}, Info{}, "")
					results <- err
				}()
			}
			var all error
			for range 8 {
				all = errors.Join(all, <-results)
			}
			return all
		},
	} {
		t.Run(name, func(t *testing.T) {
			fs := vfs.NewMem()
			s := openTest(t, fs)
			id := newSession(t, s).ID()
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			fs.TestingSetDiskUsage(scarce)
			s = openTest(t, fs)
			wantCode(t, mutate(s, id), protocol.CodeDiskFull)
			fs.TestingSetDiskUsage(roomy)
			if err := mutate(s, id); err != nil {
				t.Fatal(err)
			}
			want(t, "read-only", s.ReadOnly(), false)
			clean(t, s)
		})
	}
}

// A reader that is open when the store closes is waited for, and one that comes later
// refused: no picture is left behind for Pebble to complain of.
func TestCloseWaitsForReaders(t *testing.T) {
	s := openTest(t, vfs.NewMem())
	sess := newSession(t, s)
	u, _ := say(t, sess, "one", "first")
	r := snapshot(t, sess)
	closed := make(chan error)
	go func() { closed <- s.Close() }()
	for { // until it is closing
		late, err := sess.Reader()
		if protocol.CodeOf(err) == protocol.CodeServerRestarted {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := late.Close(); err != nil {
			t.Fatal(err)
		}
	}
	select {
	case err := <-closed:
		t.Fatalf("closed under a reader: %v", err)
	default:
	}
	c, err := r.Content(u.Seq)
	if err != nil {
		t.Fatal(err)
	}
	want(t, "text", Text(c.Parts), "one")
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-closed; err != nil {
		t.Fatal(err)
	}
}

// gate holds up the syncs of the log while it is shut.
type gate struct {
	shut  atomic.Bool
	open  chan struct{}
	asked chan struct{} // gets something for each question about the disk's space
}

func (g *gate) MaybeError(op errorfs.Op) error {
	switch op.Kind {
	case errorfs.OpFileSync, errorfs.OpFileSyncData, errorfs.OpFileSyncTo:
		if g.shut.Load() && strings.HasSuffix(op.Path, ".log") {
			<-g.open
		}
	case errorfs.OpGetDiskUsage:
		select {
		case g.asked <- struct{}{}:
		default:
		}
	}
	return nil
}

func (g *gate) String() string { return "gate" }

func newGate() *gate { return &gate{open: make(chan struct{}), asked: make(chan struct{}, 1)} }

// A commit that is stuck on a full disk answers early; the session is locked until
// it returns, and the receipt tells what became of it.
func TestStuckCommit(t *testing.T) {
	mem, g := vfs.NewMem(), newGate()
	s := openTest(t, errorfs.Wrap(mem, g))
	s.stuckAfter = time.Millisecond
	sess := newSession(t, s)
	u, a := say(t, sess, "one", "first")
	setHead(t, sess, a, "")
	before := sess.State()
	told := make(chan Commit, 10)
	s.OnCommit(func(c Commit) { told <- c })
	req := Request{ID: "r1"}
	move := func(req Request) (Outcome[string], error) {
		return Apply(context.Background(), sess, req, func(tx *Tx) (string, error) { return "moved", tx.SetHead(u, "") })
	}

	g.shut.Store(true)
	result := make(chan error)
	go func() { _, err := move(req); result <- err }()
	// With room on the disk it is only slow: nobody is told anything else.
	<-g.asked
	<-g.asked
	<-g.asked
	select {
	case err := <-result:
		t.Fatalf("answered %v while there is room", err)
	default:
	}
	mem.TestingSetDiskUsage(scarce)
	wantCode(t, <-result, protocol.CodeDiskFull)
	want(t, "the state of before", sess.State(), before)
	_, err := sess.Reader()
	wantCode(t, err, protocol.CodeDiskFull)
	unreserved := req
	unreserved.Unreserved = true
	_, err = move(unreserved) // waits for the one that is stuck, and is told
	wantCode(t, err, protocol.CodeDiskFull)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err = Apply(ctx, sess, unreserved, func(*Tx) (string, error) { return "", nil })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	select {
	case c := <-told:
		t.Errorf("told of %v before it was synced", c.Events)
	default:
	}

	mem.TestingSetDiskUsage(roomy)
	g.shut.Store(false)
	close(g.open)
	<-told
	out, err := move(req)
	if err != nil {
		t.Fatal(err)
	}
	want(t, "sent again", []any{out.Result, out.Repeated}, []any{"moved", true})
	want(t, "HEAD", sess.State().Head, u.Seq)
	say(t, sess, "on", "we go")
	clean(t, s)
}

// A turn that ends waits for its seal, however long it takes.
func TestStuckSealWaits(t *testing.T) {
	mem, g := vfs.NewMem(), newGate()
	s := openTest(t, errorfs.Wrap(mem, g))
	s.stuckAfter = time.Millisecond
	sess := newSession(t, s)
	u, _ := say(t, sess, "one", "first")
	mem.TestingSetDiskUsage(scarce)
	g.shut.Store(true)
	result := make(chan error)
	go func() {
		_, err := Apply(context.Background(), sess, Request{Unreserved: true}, func(tx *Tx) (int, error) { return 0, tx.SetHead(u, "") })
		result <- err
	}()
	<-g.asked
	for {
		// The readers of its session are told meanwhile.
		r, err := sess.Reader()
		if protocol.CodeOf(err) == protocol.CodeDiskFull {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		_ = r.Close()
	}
	g.shut.Store(false)
	close(g.open)
	if err := <-result; err != nil {
		t.Fatal(err)
	}
	want(t, "HEAD", sess.State().Head, u.Seq)
	mem.TestingSetDiskUsage(roomy)
	clean(t, s)
}

// A reader waits for a mutation that is being synced, and is never told of what a
// crash could take back.
func TestReaderWaitsForTheSync(t *testing.T) {
	mem, g := vfs.NewMem(), newGate()
	s := openTest(t, errorfs.Wrap(mem, g))
	sess, other := newSession(t, s), newSession(t, s)
	u, _ := say(t, sess, "one", "first")
	synced := atomic.Bool{}
	g.shut.Store(true)
	result := make(chan error, 1)
	go func() {
		_, err := Apply(context.Background(), sess, Request{}, func(tx *Tx) (int, error) { return 0, tx.SetHead(u, "") })
		result <- err
	}()
	for { // until Pebble shows the batch
		b, err := s.get(key(famHead, sess.num))
		if err != nil {
			t.Fatal(err)
		}
		if state, err := decodeState(b); err != nil {
			t.Fatal(err)
		} else if state.Head == u.Seq {
			break
		}
	}
	// Another session is read at once.
	_ = snapshot(t, other).Close()
	heads := make(chan Seq, 1)
	go func() {
		r, err := sess.Reader()
		if err != nil {
			t.Error(err)
			heads <- 0
			return
		}
		defer r.Close()
		if !synced.Load() {
			t.Error("a reader saw a batch before its sync")
		}
		heads <- r.State.Head
	}()
	listed := make(chan Seq, 1)
	go func() {
		page, _, err := s.Sessions(context.Background(), Filter{})
		if err != nil || !synced.Load() {
			t.Errorf("a list told of a batch before its sync (%v)", err)
		}
		for _, l := range page {
			if l.Info.ID == sess.ID() {
				listed <- l.State.Head
			}
		}
	}()
	synced.Store(true)
	g.shut.Store(false)
	close(g.open)
	if err := <-result; err != nil {
		t.Fatal(err)
	}
	want(t, "HEAD", <-heads, u.Seq)
	want(t, "HEAD in the list", <-listed, u.Seq)
}

// fault 63, fault 70: the disk refuses the nth write of a kind. What was
// acknowledged is there afterwards, who waits gets an error at once and not
// silence, and the next start goes on.
func TestWriteErrors(t *testing.T) {
	log := func(op errorfs.Op) bool { return strings.HasSuffix(op.Path, ".log") }
	for _, c := range []struct {
		name  string
		err   error
		match func(errorfs.Op) bool
		code  protocol.Code
	}{
		{"no space in the log", syscall.ENOSPC, func(op errorfs.Op) bool { return log(op) && op.Kind == errorfs.OpFileWrite }, protocol.CodeDiskFull},
		{"the log can not be synced", syscall.EIO, func(op errorfs.Op) bool {
			return log(op) && (op.Kind == errorfs.OpFileSync || op.Kind == errorfs.OpFileSyncData || op.Kind == errorfs.OpFileSyncTo)
		}, protocol.CodeServerRestarted},
		// Where a new log can not be made Pebble ends the process itself, so that is
		// left to the tests that kill one.
		{"the folder became read-only", syscall.EROFS, func(op errorfs.Op) bool { return op.Kind == errorfs.OpCreate && !log(op) }, ""},
		{"no space in the manifest", syscall.ENOSPC, func(op errorfs.Op) bool {
			return strings.Contains(op.Path, "MANIFEST") && op.Kind == errorfs.OpFileWrite
		}, ""},
	} {
		for _, n := range []int64{1, 5, 40, 2, 3, 8, 13}[:max(sized(7), 2)] {
			t.Run(fmt.Sprintf("%s %d", c.name, n), func(t *testing.T) { failWrites(t, n, c.err, c.code, c.match) })
		}
	}
}

func failWrites(t *testing.T, n int64, fail error, code protocol.Code, match func(errorfs.Op) bool) {
	mem := vfs.NewCrashableMem()
	var on atomic.Bool
	var seen atomic.Int64
	fs := errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if on.Load() && match(op) && seen.Add(1) >= n {
			return fail
		}
		return nil
	}))
	fatal := make(chan error, 1)
	s, err := Open(context.Background(), Options{Dir: "ledger", FS: fs, MemTableBytes: 256 << 10, OnFatal: func(err error) { fatal <- err }})
	if err != nil {
		t.Fatal(err)
	}
	s.stuckAfter = time.Millisecond
	sess := newSession(t, s)
	on.Store(true)
	var acked []string
	var last error
	for i := range 400 {
		id := fmt.Sprint("n", i)
		out, err := Apply(context.Background(), sess, Request{}, func(tx *Tx) (string, error) {
			sk, err := tx.Append(NodeSpec{ID: id, Kind: protocol.KindUser, Predecessor: tx.State.Head, Status: protocol.StatusSealed, Content: textContent(long(4_000))})
			return sk.ID, err
		})
		if err != nil {
			last = err
			break
		}
		acked = append(acked, out.Result)
		if s.failed() != nil {
			break // in the background
		}
	}
	switch {
	case s.failed() != nil:
		if got := <-fatal; !errors.Is(got, fail) {
			t.Errorf("the process is told %v, want %v", got, fail)
		}
		_, err := sess.Reader()
		wantCode(t, err, protocol.CodeOf(s.failed()))
		_, err = Apply(context.Background(), sess, Request{}, func(*Tx) (int, error) { return 0, nil })
		wantCode(t, err, protocol.CodeOf(s.failed()))
		if err := s.Close(); err == nil {
			t.Error("a store that failed closes without an error")
		}
	default:
		// A fault that Pebble tries again is none once it has passed.
		if last != nil {
			wantCode(t, last, protocol.CodeDiskFull)
			_, err := sess.Reader()
			wantCode(t, err, protocol.CodeDiskFull)
		}
		on.Store(false)
		for s.stuck.Load() > 0 { // until Pebble has tried again
			runtime.Gosched()
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	if code != "" {
		wantCode(t, last, code)
	}
	clone := mem.CrashClone(vfs.CrashCloneCfg{})
	s = openTest(t, clone)
	sess = session(t, s, sess.ID())
	for _, id := range acked {
		sk := read(t, sess, func(r *Reader) (Skeleton, error) { return r.Lookup(id) })
		want(t, "text of "+id, said(t, sess, sk.Seq), long(4_000))
	}
	say(t, sess, "on", "we go")
	clean(t, s)
}

func TestLocked(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(context.Background(), Options{Dir: dir, Program: "first program"})
	if err != nil {
		t.Fatal(err)
	}
	_, err = Open(context.Background(), Options{Dir: dir, Program: "second"})
	wantCode(t, err, protocol.CodeStoreLocked) // fault 71
	if e, ok := errors.AsType[*protocol.Error](err); ok && !strings.Contains(e.Data.Holder, "first program, process ") {
		t.Errorf("holder %q", e.Data.Holder)
	}
	_, err = Open(context.Background(), Options{Dir: dir, ReadOnly: true})
	wantCode(t, err, protocol.CodeStoreLocked)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Errorf("closed twice: %v", err)
	}
	s, err = Open(context.Background(), Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// A store that is closed answers, whoever comes late.
func TestUseAfterClose(t *testing.T) {
	s := openTest(t, vfs.NewMem())
	sess := newSession(t, s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	_, err := sess.Reader()
	wantCode(t, err, protocol.CodeServerRestarted)
	_, err = Apply(context.Background(), sess, Request{}, func(*Tx) (int, error) { return 0, nil })
	wantCode(t, err, protocol.CodeServerRestarted)
	_, err = s.Create(context.Background(), Request{ID: "r"}, Info{}, "")
	wantCode(t, err, protocol.CodeServerRestarted)
	_, err = s.Session(sess.ID())
	wantCode(t, err, protocol.CodeServerRestarted)
	_, _, err = s.Sessions(context.Background(), Filter{})
	wantCode(t, err, protocol.CodeServerRestarted)
	wantCode(t, sess.Checkpoint(1, 0, protocol.DeltaText, "x"), protocol.CodeServerRestarted)
	wantCode(t, s.Check(context.Background(), func(Problem) {}), protocol.CodeServerRestarted)
}

func TestNewer(t *testing.T) {
	fs := vfs.NewMem()
	s := openTest(t, fs)
	if err := s.db.Set(metaKey("format"), strconv.AppendInt(nil, Format+1, 10), pebble.Sync); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	_, err := Open(context.Background(), Options{Dir: "ledger", FS: fs})
	wantCode(t, err, protocol.CodeStoreNewer)
	if e, ok := errors.AsType[*protocol.Error](err); !ok || e.Data.Needs != fmt.Sprint("store format ", Format+1) {
		t.Errorf("%v: needs %q", err, e.Data.Needs)
	}
	// Pebble's own format, too: it would open it, and never go back.
	fs = vfs.NewMem()
	db, err := pebble.Open("ledger", &pebble.Options{FS: fs, FormatMajorVersion: pebble.FormatNewest})
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	_, err = Open(context.Background(), Options{Dir: "ledger", FS: fs})
	wantCode(t, err, protocol.CodeStoreNewer)
}

// Sessions share the disk's syncs: what waits while one is under way goes with the
// next.
func TestGroupCommit(t *testing.T) {
	var syncs atomic.Int64
	g := newGate()
	fs := errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind == errorfs.OpFileSync || op.Kind == errorfs.OpFileSyncData || op.Kind == errorfs.OpFileSyncTo {
			if strings.HasSuffix(op.Path, ".log") {
				syncs.Add(1)
			}
		}
		return g.MaybeError(op)
	}))
	s := openTest(t, fs)
	const writers = 32
	var sessions []*Session
	for range writers {
		sessions = append(sessions, newSession(t, s))
	}
	before := syncs.Load()
	g.shut.Store(true)
	results := make(chan error, writers)
	for _, sess := range sessions {
		go func() {
			_, err := Apply(context.Background(), sess, Request{}, func(tx *Tx) (int, error) { return 0, tx.Name("main", Skeleton{Seq: Root}) })
			results <- err
		}()
	}
	for _, sess := range sessions { // until Pebble has them all
		for {
			if _, err := s.get(keyString(famName, sess.num, "main")); err == nil {
				break
			}
			runtime.Gosched()
		}
	}
	g.shut.Store(false)
	close(g.open)
	for range writers {
		if err := <-results; err != nil {
			t.Error(err)
		}
	}
	if n := syncs.Load() - before; n > 4 {
		t.Errorf("%d commits took %d syncs", writers, n)
	}
}
