package turn

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"go.uber.org/goleak"
	"go.uber.org/zap/zaptest"

	"convls/model"
	"convls/projection"
	"convls/protocol"
	"convls/store"
)

func TestMain(m *testing.M) {
	// A library of the Gemini adapter starts this goroutine for the process's life.
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("go.opencensus.io/stats/view.(*worker).start"))
}

// script is a provider whose answers are functions, one a call.
type script struct {
	mu    sync.Mutex
	calls []model.Request
	steps []step
}

type step func(ctx context.Context, req model.Request, emit func(model.Delta) error) (*model.Response, error)

func (s *script) Stream(ctx context.Context, req model.Request, emit func(model.Delta) error) (*model.Response, error) {
	s.mu.Lock()
	n := len(s.calls)
	s.calls = append(s.calls, req)
	s.mu.Unlock()
	if n >= len(s.steps) {
		return nil, fmt.Errorf("call %d is not in the script", n+1)
	}
	return s.steps[n](ctx, req, emit)
}

func (s *script) Count(context.Context, model.Request) (int64, bool, error) { return 0, false, nil }
func (s *script) List(context.Context) ([]protocol.Model, error)            { return nil, nil }
func (s *script) Capabilities(string) model.Capabilities {
	return model.Capabilities{Window: 1000, MaxOutput: 100, InputPrice: 1, OutputPrice: 2}
}

// says answers with a text, word by word.
func says(text string) step {
	return func(ctx context.Context, _ model.Request, emit func(model.Delta) error) (*model.Response, error) {
		for _, w := range strings.SplitAfter(text, " ") {
			if err := emit(model.Delta{Kind: protocol.DeltaText, Text: w}); err != nil {
				return nil, err
			}
		}
		return &model.Response{Parts: []protocol.Part{{Type: protocol.PartText, Text: text}}, StopReason: "stop",
			Usage: protocol.Usage{InputTokens: 10, OutputTokens: 5}}, nil
	}
}

// fails breaks off after a text.
func fails(text string, class model.Class) step {
	return func(_ context.Context, _ model.Request, emit func(model.Delta) error) (*model.Response, error) {
		if text != "" {
			if err := emit(model.Delta{Kind: protocol.DeltaText, Text: text}); err != nil {
				return nil, err
			}
		}
		return nil, &model.Error{Class: class, Message: "scripted"}
	}
}

// holds says a text, tells that it has, and waits for the gate.
func holds(text string, said chan<- struct{}, gate <-chan struct{}) step {
	return func(ctx context.Context, req model.Request, emit func(model.Delta) error) (*model.Response, error) {
		if err := emit(model.Delta{Kind: protocol.DeltaText, Text: text}); err != nil {
			return nil, err
		}
		close(said)
		select {
		case <-gate:
			return says(text)(ctx, req, func(model.Delta) error { return nil })
		case <-ctx.Done():
			return nil, &model.Error{Class: model.ClassCancelled, Message: "cancelled", Cause: context.Cause(ctx)}
		}
	}
}

// calls answers with tool calls.
func calls(names ...string) step {
	return func(context.Context, model.Request, func(model.Delta) error) (*model.Response, error) {
		r := &model.Response{StopReason: "tool_calls"}
		for i, n := range names {
			r.Parts = append(r.Parts, protocol.Part{Type: protocol.PartToolCall, CallID: fmt.Sprintf("call%d", i), Name: n, Arguments: protocol.Raw(`{"n":1}`)})
		}
		return r, nil
	}
}

type models struct {
	*model.Registry
	provider model.Provider
}

func (m models) Resolve(_ protocol.Settings, id string, _ model.KeySource) (model.Provider, string, error) {
	if id == "nobody/x" {
		return nil, "", protocol.Errorf(protocol.CodeUnknownModel, "no model %s", id)
	}
	return m.provider, id, nil
}

type client struct {
	tool func(ctx context.Context, c protocol.ToolCallParams) (protocol.ToolCallResult, error)
}

func (client) ID() string { return "test" }
func (c client) CallTool(ctx context.Context, p protocol.ToolCallParams) (protocol.ToolCallResult, error) {
	return c.tool(ctx, p)
}

type fixture struct {
	t      *testing.T
	store  *store.Store
	sess   *store.Session
	engine *Engine
	script *script
	env    Environment

	mu     sync.Mutex
	deltas []protocol.Delta
}

func start(t *testing.T, steps ...step) *fixture {
	t.Helper()
	f := &fixture{t: t, script: &script{steps: steps}}
	var err error
	if f.store, err = store.Open(t.Context(), store.Options{Dir: "ledger", FS: vfs.NewMem()}); err != nil {
		t.Fatal(err)
	}
	out, err := f.store.Create(t.Context(), store.Request{}, store.Info{Policy: "rolling"}, "be brief")
	if err != nil {
		t.Fatal(err)
	}
	if f.sess, err = f.store.Session(out.Result); err != nil {
		t.Fatal(err)
	}
	registry := model.NewRegistry()
	f.engine = New(Config{Store: f.store, Models: models{registry, f.script}, Logger: zaptest.NewLogger(t),
		Merge: func(c protocol.Settings, _ protocol.Raw) (protocol.Settings, error) { return c, nil },
		Delta: func(d protocol.Delta) {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.deltas = append(f.deltas, d)
		}})
	f.store.OnCommit(f.engine.Committed)
	none := 0
	f.env = Environment{Client: client{}, Settings: protocol.Settings{Model: "offline", Turn: protocol.TurnSettings{MaxRetries: &none}}}
	t.Cleanup(func() {
		f.engine.Close()
		if err := f.store.Check(context.Background(), func(p store.Problem) { t.Error(p) }); err != nil {
			t.Error(err)
		}
		if err := f.store.Close(); err != nil {
			t.Error(err)
		}
	})
	return f
}

func text(s string) protocol.SendContent {
	return protocol.SendContent{{Type: protocol.PartText, Text: s}}
}

func (f *fixture) send(s string, tools ...protocol.ToolDeclaration) Turn {
	f.t.Helper()
	turn, err := f.engine.Send(f.t.Context(), f.sess, store.Request{}, protocol.TurnSendParams{Content: text(s), Tools: tools}, f.env)
	if err != nil {
		f.t.Fatal(err)
	}
	return turn
}

func (f *fixture) wait(t Turn) (protocol.Status, protocol.Node) {
	f.t.Helper()
	status, n, err := f.engine.Wait(f.t.Context(), f.sess, t.ReplyID)
	if err != nil || n == nil {
		f.t.Fatalf("the turn has no reply: %v", err)
	}
	return status, *n
}

func (f *fixture) head() protocol.Node {
	f.t.Helper()
	r, err := f.sess.Reader()
	if err != nil {
		f.t.Fatal(err)
	}
	defer r.Close()
	id, err := r.ID(r.State.Head)
	if err != nil {
		f.t.Fatal(err)
	}
	n, err := projection.Node(r, id, true, true)
	if err != nil {
		f.t.Fatal(err)
	}
	return n
}

func TestTurnIsAnsweredAndRecorded(t *testing.T) {
	f := start(t, says("hello there"), says("again"))
	first := f.send("hi")
	if status, n := f.wait(first); status != protocol.StatusSealed || store.Text(n.Content) != "hello there" {
		t.Fatalf("first turn: %s %q", status, store.Text(n.Content))
	}
	second := f.send("more")
	f.wait(second)
	n := f.head()
	if n.ID != second.ReplyID {
		t.Fatalf("HEAD is %s, want the second reply %s", n.ID, second.ReplyID)
	}
	// 16 of the earlier program's defects: reads was declared and never filled.
	if want := 4; len(n.Reads) != want || n.Reads[1] != first.UserID || n.Reads[3] != second.UserID {
		t.Errorf("reads are %v, want root, first turn and second message", n.Reads)
	}
	if n.Usage == nil || n.Usage.InputTokens != 10 || n.Usage.CostUSD != (10*1+5*2)/1e6 {
		t.Errorf("usage is %+v", n.Usage)
	}
	if n.Call == nil || n.Call.SystemSHA256 == "" || n.Call.Attempts != 1 {
		t.Errorf("the call's record is %+v", n.Call)
	}
	req := f.script.calls[1]
	if req.System != "be brief" || len(req.Messages) != 3 {
		t.Errorf("the second call had system %q and %d messages", req.System, len(req.Messages))
	}
	var streamed strings.Builder
	for _, d := range f.deltas {
		if d.NodeID == first.ReplyID {
			if int(d.Offset) != streamed.Len() {
				t.Errorf("delta at offset %d, want %d", d.Offset, streamed.Len())
			}
			streamed.WriteString(d.Text)
		}
	}
	if streamed.String() != "hello there" {
		t.Errorf("streamed %q", streamed.String())
	}
}

func TestFailureKeepsTextAndHead(t *testing.T) {
	f := start(t, fails("half", model.ClassStreamCut), says("whole"))
	turn := f.send("hi")
	status, n := f.wait(turn)
	if status != protocol.StatusFailed || n.Error == nil || n.Error.Code != protocol.CodeStreamCut || store.Text(n.Content) != "half" {
		t.Fatalf("%s %+v %q", status, n.Error, store.Text(n.Content))
	}
	if got := f.head().ID; got != turn.ReplyID {
		t.Errorf("HEAD is %s, want the failed reply", got)
	}
	again, err := f.engine.Retry(t.Context(), f.sess, store.Request{}, protocol.TurnRetryParams{NodeID: turn.ReplyID}, f.env)
	if err != nil {
		t.Fatal(err)
	}
	if status, n := f.wait(again); status != protocol.StatusSealed || n.Predecessor != turn.UserID {
		t.Errorf("the retry is %s after %s", status, n.Predecessor)
	}
}

func TestSendWaitsForTheTurnBeforeIt(t *testing.T) {
	said, gate := make(chan struct{}), make(chan struct{})
	f := start(t, holds("one", said, gate), says("two"), says("three"))
	a := f.send("1")
	<-said
	b, c := f.send("2"), f.send("3")
	if b.State != protocol.StatusQueued || c.State != protocol.StatusQueued {
		t.Fatalf("states are %s and %s", b.State, c.State)
	}
	close(gate)
	f.wait(a)
	f.wait(b)
	if _, n := f.wait(c); store.Text(n.Content) != "three" {
		t.Errorf("the last reply is %q", store.Text(n.Content))
	}
	if n := f.head(); n.ID != c.ReplyID || n.Depth != 6 {
		t.Errorf("HEAD is %s at depth %d, want %s at 6", n.ID, n.Depth, c.ReplyID)
	}
}

func TestFailureHoldsTheQueueAndSuccessReleasesIt(t *testing.T) {
	said, gate := make(chan struct{}), make(chan struct{})
	f := start(t, func(ctx context.Context, req model.Request, emit func(model.Delta) error) (*model.Response, error) {
		close(said)
		<-gate
		return nil, &model.Error{Class: model.ClassQuota, Message: "no money"}
	}, says("mended"), says("queued"))
	a := f.send("1")
	<-said
	b := f.send("2")
	close(gate)
	if status, _ := f.wait(a); status != protocol.StatusFailed {
		t.Fatalf("the first turn is %s", status)
	}
	r, err := f.sess.Reader()
	if err != nil {
		t.Fatal(err)
	}
	queue, err := r.Queue()
	if err != nil {
		t.Fatal(err)
	}
	r.Close()
	if len(queue) != 1 || !queue[0].Held {
		t.Fatalf("the queue is %+v", queue)
	}
	again, err := f.engine.Retry(t.Context(), f.sess, store.Request{}, protocol.TurnRetryParams{NodeID: a.UserID}, f.env)
	if err != nil {
		t.Fatal(err)
	}
	f.wait(again)
	if status, n := f.wait(b); status != protocol.StatusSealed || store.Text(n.Content) != "queued" {
		t.Errorf("the queued turn is %s %q", status, store.Text(n.Content))
	}
}

func TestCancelKeepsThePartialReply(t *testing.T) {
	said, gate := make(chan struct{}), make(chan struct{})
	f := start(t, holds("partial", said, gate))
	turn := f.send("hi")
	<-said
	cancelled, err := f.engine.Cancel(t.Context(), f.sess, store.Request{}, turn.ReplyID)
	if err != nil || cancelled.State != protocol.StatusCancelled {
		t.Fatalf("%s %v", cancelled.State, err)
	}
	if n := f.head(); n.ID != turn.ReplyID || n.Status != protocol.StatusCancelled || store.Text(n.Content) != "partial" {
		t.Errorf("HEAD is %s, %s, %q", n.ID, n.Status, store.Text(n.Content))
	}
	// fault 83: a second cancel finds nothing to stop and changes nothing.
	if again, err := f.engine.Cancel(t.Context(), f.sess, store.Request{}, turn.ReplyID); err != nil || again.State != protocol.StatusCancelled {
		t.Errorf("second cancel: %s %v", again.State, err)
	}
}

func TestToolLoop(t *testing.T) {
	f := start(t, calls("add", "nothere", "add"), says("done"))
	n := 0
	f.env.Client = client{tool: func(_ context.Context, c protocol.ToolCallParams) (protocol.ToolCallResult, error) {
		n++
		if n == 2 {
			return protocol.ToolCallResult{}, errors.New("the client has no time")
		}
		return protocol.ToolCallResult{Content: text("sum is 2")}, nil
	}}
	turn := f.send("add", protocol.ToolDeclaration{Name: "add", Schema: protocol.Raw(`{"type":"object","required":["n"]}`)})
	status, last := f.wait(turn)
	if status != protocol.StatusSealed || store.Text(last.Content) != "done" {
		t.Fatalf("%s %q", status, store.Text(last.Content))
	}
	if last.Predecessor != turn.ReplyID {
		t.Errorf("the last reply follows %s, want the first reply %s", last.Predecessor, turn.ReplyID)
	}
	req := f.script.calls[1]
	results := req.Messages[len(req.Messages)-1]
	if results.Role != "tool" || len(results.Parts) != 3 {
		t.Fatalf("the second call ends with %s of %d parts", results.Role, len(results.Parts))
	}
	for i, want := range []string{"sum is 2", `there is no tool named "nothere"`, "the tool could not be carried out: the client has no time"} {
		if results.Parts[i].Text != want || results.Parts[i].IsError != (i > 0) {
			t.Errorf("result %d is %q (error %v), want %q", i, results.Parts[i].Text, results.Parts[i].IsError, want)
		}
	}
}

// Arguments that are no JSON, or could not be stored, are the tool's error and not
// the end of the conversation.
func TestOddArgumentsAreKeptAsText(t *testing.T) {
	for _, args := range []string{`{"n":1,"n":2}`, `{"n":`, ``, `[1]`} {
		f := start(t, func(context.Context, model.Request, func(model.Delta) error) (*model.Response, error) {
			return &model.Response{StopReason: "tool_calls", Parts: []protocol.Part{{Type: protocol.PartToolCall, CallID: "c", Name: "add", Arguments: protocol.Raw(args)}}}, nil
		}, says("sorry"))
		turn := f.send("add", protocol.ToolDeclaration{Name: "add"})
		if status, _ := f.wait(turn); status != protocol.StatusSealed {
			t.Errorf("arguments %q: the turn is %s", args, status)
		}
		results := f.script.calls[1].Messages[2]
		if len(results.Parts) != 1 || !results.Parts[0].IsError {
			t.Errorf("arguments %q: the model is told %+v", args, results.Parts)
		}
	}
}

func TestPanickingProviderFailsItsTurnAlone(t *testing.T) {
	f := start(t, func(_ context.Context, _ model.Request, emit func(model.Delta) error) (*model.Response, error) {
		if err := emit(model.Delta{Kind: protocol.DeltaText, Text: "be"}); err != nil {
			return nil, err
		}
		panic("scripted")
	}, says("fine"))
	turn := f.send("hi")
	status, n := f.wait(turn)
	if status != protocol.StatusFailed || n.Status != protocol.StatusFailed || n.Error == nil || n.Error.Code != protocol.CodeInternal {
		t.Fatalf("the turn is %s, its reply %s with %+v", status, n.Status, n.Error)
	}
	if status, _ := f.wait(f.send("again")); status != protocol.StatusSealed {
		t.Errorf("the next turn is %s", status)
	}
}

func TestBadRequestsLeaveNothing(t *testing.T) {
	f := start(t)
	before := f.sess.State()
	for name, p := range map[string]protocol.TurnSendParams{
		"empty":         {},
		"blank":         {Content: text(" \n")},
		"wrong part":    {Content: protocol.SendContent{{Type: protocol.PartToolCall}}},
		"unknown model": {Content: text("x"), Model: "nobody/x"},
		"bad schema":    {Content: text("x"), Tools: []protocol.ToolDeclaration{{Name: "t", Schema: protocol.Raw(`{"type":7}`)}}},
		"tool twice":    {Content: text("x"), Tools: []protocol.ToolDeclaration{{Name: "t"}, {Name: "t"}}},
		"remote schema": {Content: text("x"), Tools: []protocol.ToolDeclaration{{Name: "t", Schema: protocol.Raw(`{"$ref":"file:///etc/passwd"}`)}}},
	} {
		if _, err := f.engine.Send(t.Context(), f.sess, store.Request{}, p, f.env); protocol.CodeOf(err) == "" {
			t.Errorf("%s: error %v has no code", name, err)
		}
	}
	if f.sess.State() != before {
		t.Error("a refused send changed the session")
	}
}

// What a queued send keeps of its client goes with it, however it leaves the queue.
func TestEnvironmentsOfQueuedSendsGo(t *testing.T) {
	queue := func(t *testing.T, f *fixture) (first, queued Turn) {
		said := make(chan struct{})
		f.script.steps = []step{holds("hello", said, nil)}
		first = f.send("one")
		<-said
		queued = f.send("two")
		f.engine.mu.Lock()
		defer f.engine.mu.Unlock()
		if n := len(f.engine.environments[f.sess.ID()]); n != 1 {
			t.Fatalf("%d environments of one queued send", n)
		}
		return first, queued
	}
	for name, leave := range map[string]func(*fixture, Turn, Turn) error{
		"cancelled": func(f *fixture, _, queued Turn) error {
			out, err := f.engine.Cancel(t.Context(), f.sess, store.Request{}, queued.ReplyID)
			if len(out.Content) == 0 {
				return errors.New("nobody is told what the message said")
			}
			return err
		},
		"deleted with its branch": func(f *fixture, first, _ Turn) error {
			_, err := f.engine.DeleteBranch(t.Context(), f.sess, store.Request{}, first.ReplyID, "")
			return err
		},
		"deleted with its session": func(f *fixture, first, _ Turn) error {
			f.engine.find(f.sess.ID(), first.ReplyID).cancel(errDeleted)
			f.wait(first)
			_, err := f.store.DeleteSession(t.Context(), f.sess.ID(), store.Request{})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := start(t)
			first, queued := queue(t, f)
			if err := leave(f, first, queued); err != nil {
				t.Fatal(err)
			}
			f.engine.mu.Lock()
			defer f.engine.mu.Unlock()
			if n := len(f.engine.environments); n != 0 {
				t.Errorf("the environments of %d sessions are kept", n)
			}
		})
	}
}
