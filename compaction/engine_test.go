package compaction

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"go.uber.org/zap/zaptest"

	"convls/compaction/manifest"
	"convls/model"
	"convls/protocol"
	"convls/store"
)

// fixture is an engine on a ledger in memory, whose summariser does what a test says.
type fixture struct {
	*Engine
	t     *testing.T
	sess  *store.Session
	chain []string
	// begin is the cursor after the messages were written.
	begin string

	mu sync.Mutex
	// summarise is the summariser; room is what one call takes.
	summarise func(ctx context.Context, q Question) (Answer, error)
	room      int64
	ended     int
}

func (f *fixture) Name() string                                   { return "test/scripted" }
func (f *fixture) Room(*manifest.Manifest, string) (int64, error) { return f.room, nil }
func (f *fixture) Count(text string) int                          { return quarter(text) }
func (f *fixture) Record() (string, map[string]any)               { return "", nil }
func (f *fixture) Summarise(ctx context.Context, q Question) (Answer, error) {
	return f.summarise(ctx, q)
}

// said is an answer that holds.
func said(context.Context, Question) (Answer, error) {
	return Answer{Changes: manifest.Changes{Narrative: "They talked about the weather."}}, nil
}

// newFixture makes a session of n messages with their replies.
func newFixture(t *testing.T, n int) *fixture {
	f := &fixture{t: t, summarise: said}
	s, err := store.Open(t.Context(), store.Options{Dir: "ledger", FS: vfs.NewMem()})
	if err != nil {
		t.Fatal(err)
	}
	models := model.NewRegistry()
	f.Engine = New(Config{Store: s, Models: models, Logger: zaptest.NewLogger(t),
		Summarisers: func(string, func() (Summariser, error)) (Summariser, error) { return f, nil },
		Ended: func(*store.Session) {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.ended++
		}})
	t.Cleanup(func() {
		f.Close()
		models.Close()
		if err := s.Check(context.Background(), func(p store.Problem) { t.Error(p) }); err != nil {
			t.Error(err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	created, err := s.Create(t.Context(), store.Request{}, store.Info{Policy: protocol.PolicyRolling}, "Be brief.")
	if err != nil {
		t.Fatal(err)
	}
	if f.sess, err = s.Session(created.Result); err != nil {
		t.Fatal(err)
	}
	f.append(n)
	f.begin = f.sess.Cursor()
	return f
}

// append adds n messages with their replies.
func (f *fixture) append(n int) {
	f.t.Helper()
	_, err := store.Apply(f.t.Context(), f.sess, store.Request{}, func(tx *store.Tx) (struct{}, error) {
		at := tx.State.Head
		for i := range 2 * n {
			spec := store.NodeSpec{Kind: protocol.KindUser, Predecessor: at, Status: protocol.StatusSealed,
				Content: store.Content{Parts: text(fmt.Sprintf("The weather report number %d. %s", i, strings.Repeat("It goes on. ", 20)))}}
			if i%2 == 1 {
				spec.Kind = protocol.KindAssistant
			}
			sk, err := tx.Append(spec)
			if err != nil {
				return struct{}{}, err
			}
			at, f.chain = sk.Seq, append(f.chain, sk.ID)
		}
		return struct{}{}, nil
	})
	if err != nil {
		f.t.Fatal(err)
	}
}

func client() Client { return Client{Model: model.Offline} }

// run runs a compaction to its end.
func (f *fixture) run(ask Request) protocol.CompactionResult {
	f.t.Helper()
	res, err := f.Run(f.t.Context(), f.sess, store.Request{}, ask, client())
	if err != nil {
		f.t.Fatal(err)
	}
	if res, err = f.Wait(f.t.Context(), f.sess, res.CompactionID, nil); err != nil {
		f.t.Fatal(err)
	}
	return res
}

// events are the session's events of compaction.
func (f *fixture) events() (types []protocol.EventType) {
	f.t.Helper()
	events, _, reset, err := f.sess.Events(f.t.Context(), f.begin, 1_000)
	if err != nil || reset {
		f.t.Fatal(reset, err)
	}
	for _, e := range events {
		if strings.HasPrefix(string(e.Type), "compaction_") {
			types = append(types, e.Type)
		}
	}
	return types
}

func (f *fixture) state() store.State {
	f.t.Helper()
	r, err := f.sess.Reader()
	if err != nil {
		f.t.Fatal(err)
	}
	defer r.Close()
	return r.State
}

func some() protocol.CompactionSpec {
	keep := int64(150)
	return protocol.CompactionSpec{KeepRecentTokens: &keep}
}

// TestPanic has the summariser panic: the run ends as failed, nothing is under way
// any more, and the session goes on (fault 69).
func TestPanic(t *testing.T) {
	for _, draft := range []bool{false, true} {
		t.Run(fmt.Sprintf("draft %v", draft), func(t *testing.T) {
			f := newFixture(t, 4)
			f.summarise = func(context.Context, Question) (Answer, error) { panic("a defect") }
			before := f.state()
			res := f.run(Request{Spec: some(), Draft: draft})
			if res.State != protocol.RunFailed || res.Error == nil || res.Error.Code != protocol.CodeInternal || strings.Contains(res.Error.Message, "defect") {
				t.Errorf("the run ended as %s: %+v", res.State, res.Error)
			}
			if running := f.Running(""); len(running) != 0 {
				t.Errorf("still under way: %+v", running)
			}
			if after := f.state(); after.Head != before.Head || after.Active != before.Active {
				t.Errorf("the state was %+v and is %+v", before, after)
			}
			f.summarise = said
			if res := f.run(Request{Spec: some()}); res.State != protocol.RunFinished {
				t.Errorf("the next run ended as %s: %+v", res.State, res.Error)
			}
			want := []protocol.EventType{protocol.EventCompactStarted, protocol.EventCompactFailed, protocol.EventCompactStarted, protocol.EventCompactFinished}
			if draft {
				want = want[2:]
			}
			if got := f.events(); !slices.Equal(got, want) {
				t.Errorf("the events are %v", got)
			}
		})
	}
}

// TestCancelAtEachStep cancels a run at each step that it makes: it is finished or
// cancelled, one event says which, and whoever waits for its end is told (fault 82).
func TestCancelAtEachStep(t *testing.T) {
	for _, row := range []struct {
		name string
		// at is called in each call of the summariser; it may stop the run.
		at   func(stop func(), call int)
		end  func(stop func())
		want protocol.RunState
	}{
		{"in the first call", func(stop func(), call int) {
			if call == 1 {
				stop()
			}
		}, nil, protocol.RunCancelled},
		{"between two calls", func(stop func(), call int) {
			if call == 2 {
				stop()
			}
		}, nil, protocol.RunCancelled},
		{"twice", func(stop func(), _ int) { stop(); stop() }, nil, protocol.RunCancelled},
		{"after the end", func(func(), int) {}, func(stop func()) { stop() }, protocol.RunFinished},
	} {
		t.Run(row.name, func(t *testing.T) {
			f := newFixture(t, 6)
			f.room = 400
			var r *run
			calls := 0
			f.summarise = func(ctx context.Context, q Question) (Answer, error) {
				if calls++; calls == 1 {
					r = f.find(f.sess.ID())
				}
				row.at(func() { r.stop(errCancelled) }, calls)
				if err := ctx.Err(); err != nil {
					return Answer{}, err
				}
				return said(ctx, q)
			}
			res := f.run(Request{Spec: some()})
			if row.end != nil {
				row.end(func() { r.stop(errCancelled) })
			}
			if res.State != row.want || row.want == protocol.RunCancelled && res.Error != nil || calls < 1 {
				t.Errorf("the run ended as %s after %d calls: %+v", res.State, calls, res.Error)
			}
			again, err := f.Cancel(t.Context(), f.sess, res.CompactionID)
			if err != nil || again.State != row.want {
				t.Errorf("it is told as %s, %v", again.State, err)
			}
			if got := f.events(); len(got) != 2 || string(got[1]) != "compaction_"+string(row.want) {
				t.Errorf("the events are %v", got)
			}
			f.wg.Wait()
			if f.ended != 1 {
				t.Errorf("the end was told %d times", f.ended)
			}
		})
	}
}

// TestCommitOrCancel: of commit and stop the first wins.
func TestCommitOrCancel(t *testing.T) {
	begin := func() *run {
		r := &run{}
		r.ctx, r.cancel = context.WithCancelCause(t.Context())
		return r
	}
	r := begin()
	if first, again := r.commit(), r.commit(); !first || !again {
		t.Error("a run that nobody has cancelled can not be committed")
	}
	if r.stop(errCancelled); r.ctx.Err() != nil {
		t.Error("a run was cancelled that is being committed")
	}
	r = begin()
	r.stop(errCancelled)
	if r.commit() || !errors.Is(context.Cause(r.ctx), errCancelled) {
		t.Error("a run was committed that was cancelled")
	}
}

// TestClose ends the engine under a run: it ends as interrupted by the server, and no
// other begins.
func TestClose(t *testing.T) {
	f := newFixture(t, 4)
	called := make(chan struct{})
	f.summarise = func(ctx context.Context, _ Question) (Answer, error) {
		close(called)
		<-ctx.Done()
		return Answer{}, ctx.Err()
	}
	res, err := f.Run(t.Context(), f.sess, store.Request{}, Request{Spec: some()}, client())
	if err != nil {
		t.Fatal(err)
	}
	<-called
	f.Close()
	if res, err = f.Wait(t.Context(), f.sess, res.CompactionID, nil); err != nil || res.State != protocol.RunFailed || res.Error.Code != protocol.CodeServerRestarted {
		t.Errorf("the run ended as %s: %+v, %v", res.State, res.Error, err)
	}
	if _, err := f.Run(t.Context(), f.sess, store.Request{}, Request{Spec: some()}, client()); protocol.CodeOf(err) != protocol.CodeServerRestarted {
		t.Errorf("after the end a run got %v", err)
	}
	if got := f.events(); !slices.Equal(got, []protocol.EventType{protocol.EventCompactStarted, protocol.EventCompactFailed}) {
		t.Errorf("the events are %v", got)
	}
}

// TestExpiredDraft commits and discards a draft whose time is over.
func TestExpiredDraft(t *testing.T) {
	f := newFixture(t, 4)
	res := f.run(Request{Spec: some(), Draft: true})
	if res.State != protocol.RunDrafted {
		t.Fatalf("the draft is %s: %+v", res.State, res.Error)
	}
	id := res.Draft.DraftID
	f.drafts[id].expires = time.Now().Add(-time.Second)
	if _, err := f.Commit(t.Context(), f.sess, store.Request{}, id, nil, nil); protocol.CodeOf(err) != protocol.CodeUnknownDraft {
		t.Errorf("an expired draft got %v", err)
	}
	if err := f.Discard(t.Context(), f.sess, store.Request{}, id); protocol.CodeOf(err) != protocol.CodeUnknownDraft {
		t.Errorf("an expired draft is discarded: %v", err)
	}
	f.run(Request{Spec: some(), Draft: true})
	if f.drafts[id] != nil || len(f.drafts) != 1 {
		t.Errorf("%d drafts are kept", len(f.drafts))
	}
}

// TestTooManyCalls has messages that would take a model more calls than anybody wants:
// the run is refused, and nothing was left out without a word (fault 37).
func TestTooManyCalls(t *testing.T) {
	f := newFixture(t, 200)
	f.room = 60
	calls := 0
	f.summarise = func(ctx context.Context, q Question) (Answer, error) {
		calls++
		return said(ctx, q)
	}
	res := f.run(Request{Spec: some()})
	if res.State != protocol.RunFailed || res.Error.Code != protocol.CodeContextOverflow || calls != maxCalls {
		t.Errorf("the run ended as %s after %d calls: %+v", res.State, calls, res.Error)
	}
}

// TestProgress shows which call of how many is being made.
func TestProgress(t *testing.T) {
	f := newFixture(t, 8)
	f.room = 400
	var seen []protocol.RunningCompaction
	f.summarise = func(ctx context.Context, q Question) (Answer, error) {
		seen = append(seen, f.Running(f.sess.ID())...)
		return said(ctx, q)
	}
	if res := f.run(Request{Spec: some()}); res.State != protocol.RunFinished {
		t.Fatalf("the run ended as %s: %+v", res.State, res.Error)
	}
	if len(seen) < 2 {
		t.Fatalf("%d calls", len(seen))
	}
	for i, r := range seen {
		if r.Call != i+1 || r.Calls < r.Call || r.Head != f.chain[len(f.chain)-1] {
			t.Errorf("call %d is shown as %+v", i+1, r)
		}
	}
}

// TestBothEndsTogether begins many runs at once: one is made, and all get it
// (faults 29 and 34).
func TestBothEndsTogether(t *testing.T) {
	f := newFixture(t, 4)
	gate, begun := make(chan struct{}), make(chan struct{})
	f.summarise = func(ctx context.Context, q Question) (Answer, error) {
		close(begun) // a second call would panic
		<-gate
		return said(ctx, q)
	}
	ids := make(chan string, 8)
	for range cap(ids) {
		go func() {
			res, err := f.Run(context.Background(), f.sess, store.Request{}, Request{Spec: some()}, client())
			if err != nil {
				t.Error(err)
			}
			ids <- res.CompactionID
		}()
	}
	first := <-ids
	for range cap(ids) - 1 {
		if id := <-ids; id != first {
			t.Errorf("a request got the run %s, another %s", id, first)
		}
	}
	<-begun
	close(gate)
	if res, err := f.Wait(t.Context(), f.sess, first, nil); err != nil || res.State != protocol.RunFinished {
		t.Errorf("the run ended as %s: %+v, %v", res.State, res.Error, err)
	}
}

// TestNothingToCompactTogether asks many times at once where there is nothing to do:
// every request is told so, and none is told of a run that never began.
func TestNothingToCompactTogether(t *testing.T) {
	f := newFixture(t, 1)
	errs := make(chan error, 16)
	for range cap(errs) {
		go func() {
			_, err := f.Run(context.Background(), f.sess, store.Request{}, Request{}, client())
			errs <- err
		}()
	}
	for range cap(errs) {
		if err := <-errs; protocol.CodeOf(err) != protocol.CodeNothingToCompact {
			t.Errorf("a request got %v", err)
		}
	}
}
