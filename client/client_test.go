package client_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"

	"convls/client"
	"convls/protocol"
	"convls/server"
	"convls/server/frame"

	"github.com/google/go-cmp/cmp"
	"go.lsp.dev/jsonrpc2"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if os.Getenv("CONVLS_TEST_SERVER") != "" {
		conn, err := frame.Stdio()
		if err == nil {
			err = server.Serve(context.Background(), conn, serverOptions())
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "last words:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

type object = map[string]any

// serverOptions are those of a server with methods to test a client with.
func serverOptions() server.Options {
	method := func(fn func(ctx context.Context, c *server.Conn, params []byte) (any, error)) server.Method {
		return server.Method{Handle: fn}
	}
	return server.Options{
		Version: "9",
		Methods: map[string]server.Method{
			"echo": method(func(_ context.Context, _ *server.Conn, params []byte) (any, error) {
				return protocol.Raw(params), nil
			}),
			"refuse": method(func(context.Context, *server.Conn, []byte) (any, error) {
				return nil, &protocol.Error{Code: protocol.CodeStaleHead, Message: "moved", Data: protocol.ErrorData{Head: "n2"}}
			}),
			"hang": method(func(ctx context.Context, c *server.Conn, _ []byte) (any, error) {
				server.Admitted(ctx)
				_ = c.Notify(ctx, "begun", nil)
				<-ctx.Done()
				_ = c.Notify(context.WithoutCancel(ctx), "gone", object{"code": protocol.CodeOf(context.Cause(ctx))})
				return nil, ctx.Err()
			}),
			"notices": method(func(ctx context.Context, c *server.Conn, params []byte) (any, error) {
				var p struct{ N, Bytes int }
				if err := protocol.Unmarshal(params, &p); err != nil {
					return nil, err
				}
				for i := range p.N {
					if err := c.Notify(ctx, protocol.MethodEvent, protocol.Event{Cursor: fmt.Sprint(i), Text: strings.Repeat("x", p.Bytes)}); err != nil {
						return nil, err
					}
					if err := c.Notify(ctx, protocol.MethodDelta, protocol.Delta{Offset: int64(i)}); err != nil {
						return nil, err
					}
				}
				return object{}, nil
			}),
			"others": method(func(ctx context.Context, c *server.Conn, _ []byte) (any, error) {
				return object{}, errors.Join(
					c.Notify(ctx, protocol.MethodReset, protocol.ResetNotification{SessionID: "s", Cursor: "7"}),
					c.Notify(ctx, "window/logMessage", client.LogMessage{Type: 2, Message: "careful"}),
					c.Notify(ctx, "future", object{"a": 1}),
					c.Notify(ctx, protocol.MethodEvent, object{"cursor": 7}))
			}),
			"tool": method(func(ctx context.Context, c *server.Conn, params []byte) (any, error) {
				server.Admitted(ctx)
				return c.CallTool(ctx, protocol.ToolCallParams{Name: "t", Arguments: params})
			}),
			"secret": method(func(ctx context.Context, c *server.Conn, _ []byte) (any, error) {
				key, err := c.Secret(ctx, protocol.SecretGetParams{Provider: "p"})
				return object{"key": key}, err
			}),
			"progress": method(func(ctx context.Context, c *server.Conn, params []byte) (any, error) {
				p := c.Progress(ctx, frame.Member(params, "workDoneToken"), "import")
				p.Report(150, "half")
				p.End("done")
				p.End("again")
				p.Report(1, "late")
				return object{"shown": p != nil}, nil
			}),
		},
	}
}

// connect returns a client of a server in this process.
func connect(t *testing.T, opts client.Options) (*client.Client, *client.Server) {
	t.Helper()
	a, b := net.Pipe()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = server.Serve(context.Background(), a, serverOptions())
	}()
	c := client.New(b, opts)
	t.Cleanup(func() {
		c.Close()
		<-ended
	})
	s, err := c.Initialize(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return c, s
}

func TestHandshakeAndShutdown(t *testing.T) {
	c, s := connect(t, client.Options{})
	if s.Name != "convls" || s.Version != "9" || s.ProtocolVersion != protocol.Version || s.ClientID == "" || s.PositionEncoding != "utf-8" {
		t.Errorf("server %+v", s)
	}
	if err := c.Shutdown(t.Context()); err != nil {
		t.Errorf("shutdown: %v", err)
	}
	if err := c.Call(t.Context(), "echo", nil, nil); !errors.Is(err, client.ErrClosed) {
		t.Errorf("a call after it: %v", err)
	}
	if err := c.Delivered(t.Context()); !errors.Is(err, client.ErrClosed) {
		t.Errorf("Delivered after it: %v", err)
	}
}

func TestCall(t *testing.T) {
	c, _ := connect(t, client.Options{})
	ctx := t.Context()
	got, err := client.Do[object](ctx, c, "echo", object{"text": "é漢😀"})
	if err != nil || got["text"] != "é漢😀" {
		t.Errorf("echo: %v, %v", got, err)
	}
	err = c.Call(ctx, "refuse", nil, nil)
	if e, ok := errors.AsType[*protocol.Error](err); !ok || e.Code != protocol.CodeStaleHead || e.Data.Head != "n2" || e.Message != "moved" {
		t.Errorf("refuse: %#v", err)
	}
	err = c.Call(ctx, "nothing", nil, nil)
	if e, ok := errors.AsType[*jsonrpc2.Error](err); !ok || e.Code != jsonrpc2.MethodNotFound {
		t.Errorf("nothing: %#v", err)
	}
	var wrong struct {
		Text int `json:"text"`
	}
	if err := c.Call(ctx, "echo", object{"text": "x"}, &wrong); err == nil {
		t.Error("a result of the wrong shape was taken")
	}
}

func TestCancelledCall(t *testing.T) {
	told := make(chan string, 2)
	c, _ := connect(t, client.Options{OnOther: func(method string, params []byte) { told <- method + string(params) }})
	ended := make(chan error)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { ended <- c.Call(ctx, "hang", object{}, nil) }()
	if got := <-told; got != "begun" {
		t.Errorf("the server said %s", got)
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("the call returned %v", err)
	}
	if got := <-told; got != `gone{"code":"request_cancelled"}` {
		t.Errorf("the server saw %s", got)
	}
}

func TestConnectionThatEndsFailsCalls(t *testing.T) {
	a, b := net.Pipe()
	peer := frame.New(a, frame.Options{})
	c := client.New(b, client.Options{})
	ended := make(chan error)
	go func() { ended <- c.Call(context.Background(), "initialize", object{}, nil) }()
	if _, _, err := peer.ReadFrame(t.Context()); err != nil {
		t.Fatal(err)
	}
	peer.Close()
	if err := <-ended; !errors.Is(err, client.ErrClosed) {
		t.Errorf("the call returned %v", err)
	}
	<-c.Done()
	<-peer.Done()
}

func TestNotificationsComeInOrder(t *testing.T) {
	var got []string
	c, _ := connect(t, client.Options{
		OnEvent: func(e protocol.Event) { got = append(got, "e"+e.Cursor) },
		OnDelta: func(d protocol.Delta) { got = append(got, fmt.Sprint("d", d.Offset)) },
	})
	if err := c.Call(t.Context(), "notices", object{"N": 500}, nil); err != nil {
		t.Fatal(err)
	}
	if err := c.Delivered(t.Context()); err != nil {
		t.Fatal(err)
	}
	var want []string
	for i := range 500 {
		want = append(want, fmt.Sprint("e", i), fmt.Sprint("d", i))
	}
	if !cmp.Equal(got, want) {
		t.Error(cmp.Diff(want, got))
	}
}

func TestOtherNotifications(t *testing.T) {
	var got []string
	c, _ := connect(t, client.Options{
		OnEvent: func(protocol.Event) { got = append(got, "event") },
		OnReset: func(r protocol.ResetNotification) { got = append(got, "reset "+r.SessionID+r.Cursor) },
		OnLog:   func(m client.LogMessage) { got = append(got, fmt.Sprint("log ", m.Type, " ", m.Message)) },
		OnOther: func(method string, params []byte) { got = append(got, method+string(params)) },
	})
	if err := c.Call(t.Context(), "others", nil, nil); err != nil {
		t.Fatal(err)
	}
	if err := c.Delivered(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(got) != 4 || !strings.HasPrefix(got[3], "log 2 convls/event can not be read") || !cmp.Equal(got[:3], []string{"reset s7", "log 2 careful", `future{"a":1}`}) {
		t.Errorf("got %q", got)
	}
}

// A callback may make calls, however much waits behind it; what waits is bounded
// for deltas, and no event is lost.
func TestCallbackMayCall(t *testing.T) {
	var c *client.Client
	events, deltas := 0, 0
	first := make(chan struct{})
	c, _ = connect(t, client.Options{
		OnEvent: func(protocol.Event) {
			if events++; events == 1 {
				<-first
				if err := c.Call(context.Background(), "echo", object{}, nil); err != nil {
					t.Error(err)
				}
			}
		},
		OnDelta: func(protocol.Delta) { deltas++ },
	})
	// Nothing is delivered before the reply is here, and the reply comes through.
	if err := c.Call(t.Context(), "notices", object{"N": 3000, "Bytes": 4000}, nil); err != nil {
		t.Fatal(err)
	}
	close(first)
	if err := c.Delivered(t.Context()); err != nil {
		t.Fatal(err)
	}
	if events != 3000 || deltas == 0 || deltas >= 3000 {
		t.Errorf("%d events, %d deltas", events, deltas)
	}
}

func TestServerRequests(t *testing.T) {
	c, _ := connect(t, client.Options{
		CallTool: func(_ context.Context, p protocol.ToolCallParams) (protocol.ToolCallResult, error) {
			switch string(p.Arguments) {
			case `{"do":"panic"}`:
				panic("no")
			case `{"do":"fail"}`:
				return protocol.ToolCallResult{}, protocol.Errorf(protocol.CodeNotSupported, "not this one")
			}
			return protocol.ToolCallResult{Content: protocol.SendContent{{Type: protocol.PartText, Text: p.Name + string(p.Arguments)}}}, nil
		},
		Secret: func(_ context.Context, p protocol.SecretGetParams) (protocol.SecretGetResult, error) {
			return protocol.SecretGetResult{Key: "key of " + p.Provider}, nil
		},
	})
	ctx := t.Context()
	result, err := client.Do[protocol.ToolCallResult](ctx, c, "tool", object{"a": 1})
	if err != nil || len(result.Content) != 1 || result.Content[0].Text != `t{"a":1}` {
		t.Errorf("tool: %+v, %v", result, err)
	}
	if err := c.Call(ctx, "tool", object{"do": "fail"}, nil); protocol.CodeOf(err) != protocol.CodeNotSupported {
		t.Errorf("a failing tool: %v", err)
	}
	if err := c.Call(ctx, "tool", object{"do": "panic"}, nil); protocol.CodeOf(err) != protocol.CodeInternal {
		t.Errorf("a panicking tool: %v", err)
	}
	if got, err := client.Do[object](ctx, c, "secret", nil); err != nil || got["key"] != "key of p" {
		t.Errorf("secret: %v, %v", got, err)
	}
	plain, _ := connect(t, client.Options{})
	if got, err := client.Do[object](ctx, plain, "secret", nil); err != nil || got["key"] != "" {
		t.Errorf("secret of a client without: %v, %v", got, err)
	}
	if err := plain.Call(ctx, "tool", object{}, nil); err == nil {
		t.Error("a client without tools carried one out")
	}
}

// The server gives a tool call up: the tool's context ends.
func TestToolCallIsCancelled(t *testing.T) {
	running, stopped := make(chan struct{}), make(chan struct{})
	c, _ := connect(t, client.Options{CallTool: func(ctx context.Context, _ protocol.ToolCallParams) (protocol.ToolCallResult, error) {
		close(running)
		<-ctx.Done()
		close(stopped)
		return protocol.ToolCallResult{}, ctx.Err()
	}})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-running
		cancel()
	}()
	if err := c.Call(ctx, "tool", object{}, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("the call returned %v", err)
	}
	<-stopped
}

// The connection ends while a tool runs: its context ends, and Close returns.
func TestCloseEndsTools(t *testing.T) {
	running := make(chan struct{})
	c, _ := connect(t, client.Options{CallTool: func(ctx context.Context, _ protocol.ToolCallParams) (protocol.ToolCallResult, error) {
		close(running)
		<-ctx.Done()
		return protocol.ToolCallResult{}, ctx.Err()
	}})
	ended := make(chan error)
	go func() { ended <- c.Call(context.Background(), "tool", object{}, nil) }()
	<-running
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if err := <-ended; !errors.Is(err, client.ErrClosed) {
		t.Errorf("the call returned %v", err)
	}
}

func TestProgress(t *testing.T) {
	var got []string
	c, _ := connect(t, client.Options{OnOther: func(_ string, params []byte) { got = append(got, string(params)) }})
	r, err := client.Do[object](t.Context(), c, "progress", object{"workDoneToken": "w1"})
	if err != nil || r["shown"] != true {
		t.Fatalf("%v, %v", r, err)
	}
	if err := c.Delivered(t.Context()); err != nil {
		t.Fatal(err)
	}
	want := []string{
		`{"token":"w1","value":{"kind":"begin","title":"import","percentage":0}}`,
		`{"token":"w1","value":{"kind":"report","percentage":100,"message":"half"}}`,
		`{"token":"w1","value":{"kind":"end","message":"done"}}`,
	}
	if !cmp.Equal(got, want) {
		t.Error(cmp.Diff(want, got))
	}
	if r, err := client.Do[object](t.Context(), c, "progress", nil); err != nil || r["shown"] != false {
		t.Errorf("without a token: %v, %v", r, err)
	}
}

func start(ctx context.Context, t *testing.T) *client.Client {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "CONVLS_TEST_SERVER=1")
	c, err := client.Start(ctx, cmd, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Initialize(ctx); err != nil {
		t.Fatal(err)
	}
	return c
}

func TestStart(t *testing.T) {
	c := start(t.Context(), t)
	big := strings.Repeat("漢", 1_000_000)
	if got, err := client.Do[object](t.Context(), c, "echo", object{"text": big}); err != nil || got["text"] != big {
		t.Errorf("echo: %v", err)
	}
	if err := c.Shutdown(t.Context()); err != nil {
		t.Errorf("shutdown: %v", err)
	}

	// Without shutdown the process exits by itself, and Close is no failure.
	c = start(t.Context(), t)
	if err := c.Close(); err != nil {
		t.Errorf("close: %v", err)
	}

	// An exit that nobody asked for is told with the process's last words.
	c = start(t.Context(), t)
	if err := c.Notify(t.Context(), "exit", nil); err != nil {
		t.Fatal(err)
	}
	<-c.Done()
	if err := c.Err(); err == nil || !strings.Contains(err.Error(), "exit status 1: last words") {
		t.Errorf("ended with %v", err)
	}

	// The context of Start kills it.
	ctx, cancel := context.WithCancel(t.Context())
	c = start(ctx, t)
	cancel()
	<-c.Done()
	if err := c.Err(); err == nil || !strings.Contains(err.Error(), "killed") {
		t.Errorf("ended with %v", err)
	}
	if _, err := client.Start(t.Context(), exec.Command("/no/such/program"), client.Options{}); err == nil {
		t.Error("a program that is not there was started")
	}
}
