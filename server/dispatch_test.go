package server

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"convls/protocol"

	"github.com/google/go-cmp/cmp"
)

// gate is a method that blocks until it is let through, and tells what it did.
type gate struct {
	began, open chan string
	admit       bool
}

func newGate() *gate {
	return &gate{began: make(chan string, 100), open: make(chan string)}
}

func (g *gate) method() Method {
	return Method{Handle: func(ctx context.Context, _ *Conn, params []byte) (any, error) {
		var p struct {
			Name string `json:"name"`
		}
		if err := protocol.Unmarshal(params, &p); err != nil {
			return nil, err
		}
		g.began <- p.Name
		if g.admit {
			Admitted(ctx)
		}
		select {
		case <-g.open:
			return object{"name": p.Name}, nil
		case <-ctx.Done():
			return nil, fmt.Errorf("append: %w", ctx.Err())
		}
	}}
}

// running returns what has begun so far.
func (g *gate) running() (names []string) {
	synctest.Wait()
	for len(g.began) > 0 {
		names = append(names, <-g.began)
	}
	return names
}

func TestRequestsOfOneSessionRunInOrder(t *testing.T) {
	bubble(t, func(t *testing.T) {
		g := newGate()
		parallel := g.method()
		parallel.Parallel = true
		p := initialized(t, Options{Methods: map[string]Method{"m": g.method(), "p": parallel}})
		p.call(1, "m", `{"session_id":"s","name":"a"}`)
		p.call(2, "m", `{"name":"b","session_id":"s"}`)
		p.call(3, "m", `{"session_id":"s","name":"c"}`)
		if got := g.running(); !cmp.Equal(got, []string{"a"}) {
			t.Errorf("running %v", got)
		}
		// Another session, no session, and a method that may: beside it.
		p.call(4, "m", `{"session_id":"other","name":"d"}`)
		p.call(5, "m", `{"name":"e","nested":{"session_id":"s"}}`)
		p.call(6, "p", `{"session_id":"s","name":"f"}`)
		if got := g.running(); len(got) != 3 {
			t.Errorf("running %v, want d, e and f", got)
		}
		for range 6 {
			synctest.Wait()
			g.open <- ""
		}
		for range 6 {
			p.skipped = append(p.skipped, p.recv())
		}
		if got := g.running(); !cmp.Equal(got, []string{"b", "c"}) {
			t.Errorf("then ran %v", got)
		}
	})
}

func TestAdmittedLetsTheNextGoOn(t *testing.T) {
	bubble(t, func(t *testing.T) {
		g := newGate()
		g.admit = true
		p := initialized(t, Options{Methods: map[string]Method{"m": g.method()}})
		p.call(1, "m", `{"session_id":"s","name":"a"}`)
		p.call(2, "m", `{"session_id":"s","name":"b"}`)
		if got := g.running(); !cmp.Equal(got, []string{"a", "b"}) {
			t.Errorf("running %v", got)
		}
	})
	Admitted(t.Context())
}

func TestCancel(t *testing.T) {
	bubble(t, func(t *testing.T) {
		g := newGate()
		p := initialized(t, Options{Methods: map[string]Method{"m": g.method()}})
		for i, name := range []string{"a", "b", "c"} {
			p.call(i+1, "m", `{"session_id":"s","name":"`+name+`"}`)
		}
		synctest.Wait()
		// b has not begun: it never does, and c still waits for a.
		p.send(`{"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":2}}`)
		p.refused(2, -32800, "request_cancelled")
		if got := g.running(); !cmp.Equal(got, []string{"a"}) {
			t.Errorf("running %v", got)
		}
		p.send(`{"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":1.0}}`)
		p.refused(1, -32800, "request_cancelled")
		if got := g.running(); !cmp.Equal(got, []string{"c"}) {
			t.Errorf("running %v", got)
		}
		// fault 83: a late cancel stops nothing, and nothing else.
		p.send(`{"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":1}}`)
		p.send(`{"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":"3"}}`)
		synctest.Wait()
		g.open <- ""
		if got := p.result(3); got != `{"name":"c"}` {
			t.Errorf("result %s", got)
		}
	})
}

// A cancel right behind its request is never lost.
func TestCancelRightBehindTheRequest(t *testing.T) {
	bubble(t, func(t *testing.T) {
		g := newGate()
		p := initialized(t, Options{Methods: map[string]Method{"m": g.method()}})
		for id := 1; id <= 100; id++ {
			p.send(`{"jsonrpc":"2.0","id":"x%d","method":"m","params":{}}`, id)
			p.send(`{"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":"x%d"}}`, id)
			if m := p.recv(); m.Error == nil || m.Error.Code != -32800 {
				t.Fatalf("request %d: %+v", id, m)
			}
		}
	})
}

func TestDuplicateIDInFlightIsRefused(t *testing.T) {
	bubble(t, func(t *testing.T) {
		g := newGate()
		p := initialized(t, Options{Methods: map[string]Method{"m": g.method()}})
		p.call(1, "m", `{"name":"first"}`)
		p.call(1, "m", `{"name":"second"}`)
		if m := p.expect(1); m.Error == nil || m.Error.Code != -32600 {
			t.Errorf("the second: %+v", m)
		}
		// "1" is another id, and a used one may be used again.
		p.send(`{"jsonrpc":"2.0","id":"1","method":"m","params":{"name":"third"}}`)
		if got := g.running(); len(got) != 2 || !slices.Contains(got, "first") || !slices.Contains(got, "third") {
			t.Errorf("running %v", got)
		}
		g.open <- ""
		g.open <- ""
		p.recv()
		p.recv()
		p.call(1, "m", `{"name":"fourth"}`)
		synctest.Wait()
		g.open <- ""
		if got := p.result(1); got != `{"name":"fourth"}` {
			t.Errorf("result %s", got)
		}
	})
}

func TestTooManyRequestsAreBusy(t *testing.T) {
	bubble(t, func(t *testing.T) {
		g := newGate()
		p := initialized(t, Options{Methods: map[string]Method{"m": g.method()}, MaxInFlight: 2})
		p.call(1, "m", `{}`)
		p.call(2, "m", `{}`)
		p.call(3, "m", `{}`)
		m := p.refused(3, -32803, "busy")
		if !strings.Contains(string(m.Error.Data), `"retryable":true`) {
			t.Errorf("data %s", m.Error.Data)
		}
		synctest.Wait()
		g.open <- ""
		p.recv()
		p.call(4, "m", `{}`)
		if got := g.running(); len(got) != 3 {
			t.Errorf("%d ran", len(got))
		}
	})
}

func TestPanicEndsItsRequestAlone(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := initialized(t, Options{Methods: map[string]Method{
			"m":     reply(object{}),
			"panic": {Handle: func(context.Context, *Conn, []byte) (any, error) { panic("sk-secret") }},
		}})
		p.call(1, "panic", `{"session_id":"s"}`)
		p.call(2, "panic", `{"session_id":"s"}`)
		for id := 1; id <= 2; id++ {
			if m := p.refused(id, -32603, "internal"); strings.Contains(m.Error.Message, "secret") {
				t.Errorf("message %q", m.Error.Message)
			}
		}
		p.call(3, "m", `{"session_id":"s"}`)
		p.result(3)
	})
}

func TestErrors(t *testing.T) {
	retry := false
	for name, tc := range map[string]struct {
		err     error
		code    int
		data    string
		message string
	}{
		"invalid params": {protocol.Errorf(protocol.CodeInvalidParams, "limit is negative"), -32602, `{"code":"invalid_params","retryable":false}`, "limit is negative"},
		"refused": {&protocol.Error{Code: protocol.CodeStaleHead, Message: "moved", Data: protocol.ErrorData{Head: "n2", Expected: "n1"}}, -32803,
			`{"code":"stale_head","retryable":false,"expected":"n1","head":"n2"}`, "moved"},
		"wrapped":         {fmt.Errorf("send: %w", protocol.Errorf(protocol.CodeUnknownNode, "no node x")), -32803, `{"code":"unknown_node","retryable":false}`, "no node x"},
		"cause stays":     {&protocol.Error{Code: protocol.CodeDiskFull, Message: "full", Cause: errors.New("sk-secret")}, -32803, `{"code":"disk_full","retryable":false}`, "full"},
		"retry":           {&protocol.Error{Code: protocol.CodeVersionMismatch, Message: "old", Data: protocol.ErrorData{Retry: &retry}}, -32803, `{"code":"version_mismatch","retryable":false,"retry":false}`, "old"},
		"rate limit":      {&protocol.Error{Code: protocol.CodeProviderRateLimit, Message: "slow", Data: protocol.ErrorData{RetryAfterMS: 5}}, -32803, `{"code":"provider_rate_limited","retryable":true,"retry_after_ms":5}`, "slow"},
		"unknown":         {errors.New("sk-secret"), -32603, `{"code":"internal","retryable":false}`, "m failed by a defect of the server; its log says more"},
		"internal":        {protocol.Errorf(protocol.CodeInternal, "odd"), -32603, `{"code":"internal","retryable":false}`, "odd"},
		"a stray cancel":  {protocol.Errorf(protocol.CodeRequestCancelled, "cancelled"), -32803, `{"code":"server_restarted","retryable":true}`, errEnded.Message},
		"a stray context": {context.Canceled, -32603, `{"code":"internal","retryable":false}`, "m failed by a defect of the server; its log says more"},
		"invalid UTF-8":   {protocol.Errorf(protocol.CodeImportRefused, "file \xff"), -32803, `{"code":"import_refused","retryable":false}`, "file \ufffd"},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				p := initialized(t, Options{Methods: map[string]Method{"m": {Handle: func(context.Context, *Conn, []byte) (any, error) { return nil, tc.err }}}})
				p.call(1, "m", `{}`)
				m := p.expect(1)
				if m.Error == nil || m.Error.Code != tc.code || string(m.Error.Data) != tc.data || m.Error.Message != tc.message {
					t.Errorf("got %d %q %s", m.Error.Code, m.Error.Message, m.Error.Data)
				}
			})
		})
	}
}

func TestRepliesAreBounded(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := initialized(t, Options{MaxReply: 1000, Methods: map[string]Method{
			"small": reply(object{"a": strings.Repeat("x", 990)}),
			"large": reply(object{"a": strings.Repeat("x", 1000)}),
			"bad":   reply(func() {}),
		}})
		p.call(1, "small", `{}`)
		p.result(1)
		p.call(2, "large", `{}`)
		p.refused(2, -32803, "too_large")
		p.call(3, "bad", `{}`)
		p.refused(3, -32603, "internal")
	})
}

func TestAfterReply(t *testing.T) {
	bubble(t, func(t *testing.T) {
		handle := func(err error) Method {
			return Method{Handle: func(ctx context.Context, c *Conn, _ []byte) (any, error) {
				AfterReply(ctx, func() { _ = c.Notify(ctx, "after", object{}) })
				return object{}, err
			}}
		}
		p := initialized(t, Options{Methods: map[string]Method{"m": handle(nil), "fails": handle(errors.New("no"))}})
		p.call(1, "fails", `{}`)
		p.refused(1, -32603, "internal")
		p.call(2, "m", `{}`)
		if first, second := p.recv(), p.recv(); string(first.ID) != "2" || second.Method != "after" {
			t.Errorf("got %+v, then %+v", first, second)
		}
	})
	ran := false
	AfterReply(t.Context(), func() { ran = true })
	if !ran {
		t.Error("outside of a request it did not run")
	}
}

// When the input ends, short requests are finished and answered; those that wait
// are cancelled, and told that the client did not do it (library trap 4).
func TestEndOfInputAnswersEverything(t *testing.T) {
	for name, tc := range map[string]struct {
		admit bool
		after time.Duration
	}{
		"waiting requests at once":  {admit: true, after: 0},
		"working requests in grace": {admit: false, after: DefaultGrace},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				g := newGate()
				g.admit = tc.admit
				p := initialized(t, Options{Methods: map[string]Method{"m": g.method()}})
				p.call(1, "m", `{}`)
				g.running()
				start := time.Now()
				p.send(`{"jsonrpc":"2.0","method":"exit"}`)
				p.refused(1, -32803, "server_restarted")
				if got := time.Since(start); got != tc.after {
					t.Errorf("cancelled after %v, want %v", got, tc.after)
				}
				if err := p.end(); !errors.Is(err, ErrNoShutdown) {
					t.Errorf("ended with %v", err)
				}
			})
		})
	}
	bubble(t, func(t *testing.T) {
		g := newGate()
		p := initialized(t, Options{Methods: map[string]Method{"m": g.method()}})
		p.call(1, "m", `{"name":"a"}`)
		g.running()
		p.send(`{"jsonrpc":"2.0","method":"exit"}`)
		synctest.Wait()
		g.open <- ""
		if got := p.result(1); got != `{"name":"a"}` {
			t.Errorf("result %s", got)
		}
	})
}

func TestServerEndAnswersEverything(t *testing.T) {
	bubble(t, func(t *testing.T) {
		g := newGate()
		p := initialized(t, Options{Methods: map[string]Method{"m": g.method()}})
		p.call(1, "m", `{"session_id":"s"}`)
		p.call(2, "m", `{"session_id":"s"}`)
		g.running()
		p.stop()
		p.refused(1, -32803, "server_restarted")
		p.refused(2, -32803, "server_restarted")
	})
}

// A method that never returns does not keep Serve from returning.
func TestStuckRequestDoesNotHoldTheEnd(t *testing.T) {
	bubble(t, func(t *testing.T) {
		release := make(chan struct{})
		p := initialized(t, Options{Methods: map[string]Method{"m": {Handle: func(context.Context, *Conn, []byte) (any, error) {
			<-release
			return object{}, nil
		}}}})
		p.call(1, "m", `{}`)
		synctest.Wait()
		p.stop()
		if err := p.end(); err != nil {
			t.Errorf("ended with %v", err)
		}
		close(release)
	})
}

// A client that asks and does not read costs what was begun, not what it asks
// for: with a full queue no request is begun.
func TestClientThatDoesNotReadGetsNoWorkDone(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var began atomic.Int64
		p := initialized(t, Options{QueueBytes: 10_000, Methods: map[string]Method{"m": {Handle: func(context.Context, *Conn, []byte) (any, error) {
			began.Add(1)
			return object{"a": strings.Repeat("x", 6000)}, nil
		}}}})
		for id := 1; id <= 50; id++ {
			p.call(id, "m", `{}`)
			synctest.Wait()
		}
		if n := began.Load(); n > 3 {
			t.Errorf("%d requests were begun", n)
		}
		for id := 1; id <= 50; id++ {
			p.result(id)
		}
		if n := began.Load(); n != 50 {
			t.Errorf("%d requests were handled", n)
		}
	})
}

// Replies that can not be written are given up, and hold up nothing: neither those
// that were ready then nor those that are ready later.
func TestBrokenClientDoesNotHoldTheEnd(t *testing.T) {
	bubble(t, func(t *testing.T) {
		late := func(after time.Duration) Method {
			return Method{Handle: func(ctx context.Context, _ *Conn, _ []byte) (any, error) {
				Admitted(ctx)
				<-ctx.Done()
				<-time.After(after)
				return object{}, nil
			}}
		}
		p := initialized(t, Options{Methods: map[string]Method{
			"now": late(0), "soon": late(500 * time.Millisecond), "later": late(time.Second),
		}})
		p.call(1, "now", `{}`)
		p.call(2, "soon", `{}`)
		p.call(3, "later", `{}`)
		synctest.Wait()
		start := time.Now()
		p.conn.Close()
		if err := p.end(); !errors.Is(err, ErrNoShutdown) {
			t.Errorf("ended with %v", err)
		}
		if took := time.Since(start); took != time.Second {
			t.Errorf("ended after %v", took)
		}
	})
}

func TestLargeParams(t *testing.T) {
	text := strings.Repeat("漢", 2<<20/3)
	p := initialized(t, Options{Methods: map[string]Method{"m": {Handle: func(_ context.Context, _ *Conn, params []byte) (any, error) {
		var v struct {
			Text string `json:"text"`
		}
		err := protocol.Unmarshal(params, &v)
		return object{"same": v.Text == text}, err
	}}}})
	p.send(`{"jsonrpc":"2.0","id":1,"method":"m","params":{"text":"%s"}}`, text)
	if got := p.result(1); got != `{"same":true}` {
		t.Errorf("result %s", got)
	}
}
