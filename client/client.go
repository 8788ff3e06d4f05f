package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"

	"convls/protocol"
	"convls/server/frame"

	"go.lsp.dev/jsonrpc2"
)

// ErrClosed is the error of calls that the end of the connection left without an
// answer.
var ErrClosed = errors.New("the connection to the server is closed")

// LogMessage is a message of window/logMessage.
type LogMessage struct {
	// Type is 1 error, 2 warning, 3 info, 4 log, 5 debug.
	Type    int    `json:"type"`
	Message string `json:"message"`
}

// Options say who the client is and what it does with what the server sends. All
// of it may be left out.
type Options struct {
	// Name and Version are the clientInfo of initialize. Name is go-client if empty.
	Name, Version string
	// Settings are sent as initializationOptions, in any shape that encodes to them.
	Settings any
	// Folders are the workspace folders.
	Folders []protocol.WorkspaceFolder

	OnEvent func(protocol.Event)
	OnDelta func(protocol.Delta)
	OnReset func(protocol.ResetNotification)
	OnLog   func(LogMessage)
	// OnOther gets every notification that has no callback above. The params are
	// nil or valid JSON, and may be kept.
	OnOther func(method string, params []byte)

	// CallTool carries out a tool call. Its context ends when the server gives up.
	// With it, the feature tools is announced.
	CallTool func(context.Context, protocol.ToolCallParams) (protocol.ToolCallResult, error)
	// Secret looks a key up. With it, the feature secrets is announced.
	Secret func(context.Context, protocol.SecretGetParams) (protocol.SecretGetResult, error)
}

// Client is a connection to a server. Its methods may be used from any goroutine.
type Client struct {
	opts   Options
	stream *frame.Stream
	rpc    jsonrpc2.Conn
	inbox  *inbox
	root   context.Context
	stop   context.CancelFunc

	mu sync.Mutex
	// asked are the server's requests that are being answered.
	asked map[jsonrpc2.ID]context.CancelFunc

	process *process
	closing atomic.Bool
	done    chan struct{}
	err     error
}

// New makes a client over rwc, which it owns. Initialize comes next.
func New(rwc io.ReadWriteCloser, opts Options) *Client {
	c := prepare(rwc, opts)
	c.run()
	return c
}

func prepare(rwc io.ReadWriteCloser, opts Options) *Client {
	c := &Client{
		opts:   opts,
		stream: frame.New(rwc, frame.Options{}),
		inbox:  newInbox(),
		asked:  make(map[jsonrpc2.ID]context.CancelFunc),
		done:   make(chan struct{}),
	}
	c.root, c.stop = context.WithCancel(context.Background())
	c.rpc = jsonrpc2.NewConn(messages{c.stream, c.stop}, jsonrpc2.WithCodec(codec{}))
	return c
}

// messages is the stream as jsonrpc2 sees it. jsonrpc2 is done only when all
// handlers have returned, so the end of the input must end what they do.
type messages struct {
	*frame.Stream
	ended func()
}

func (m messages) ReadFrame(ctx context.Context) ([]byte, int64, error) {
	body, n, err := m.Stream.ReadFrame(ctx)
	if err != nil {
		m.ended()
	}
	return body, n, err
}

// run starts the goroutines: one that reads, and one that delivers and ends the
// rest when there is nothing more to read.
func (c *Client) run() {
	delivered := make(chan struct{})
	go func() {
		defer close(delivered)
		c.inbox.deliver(c.notice)
	}()
	c.rpc.Go(context.Background(), c.handle)
	go func() {
		<-c.rpc.Done()
		_ = c.stream.Close()
		<-c.stream.Done()
		c.inbox.close()
		<-delivered
		c.err = c.rpc.Err()
		if c.process != nil {
			if err := c.process.wait(); err != nil {
				c.err = err
			}
		}
		if c.closing.Load() {
			c.err = nil
		}
		close(c.done)
	}()
}

// Call sends a request and decodes the reply into result, unless that is nil. A
// refusal is a *protocol.Error with the server's code and data, or, where convls
// has no code for it (an unknown method), a *jsonrpc2.Error. When ctx ends the
// server is asked to cancel, and Call returns ctx's error at once.
func (c *Client) Call(ctx context.Context, method string, params, result any) error {
	c.inbox.expect(1)
	id, err := c.rpc.Call(ctx, method, params, result)
	c.inbox.expect(-1)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil && errors.Is(err, ctx.Err()):
		c.cancel(id)
		return err
	case gone(err):
		return fmt.Errorf("%s: %w", method, ErrClosed)
	default:
		return frame.DecodeError(err)
	}
}

// gone reports whether a call failed because the connection has ended. A process
// that was killed ends its pipes in any of these ways, and the RPC library keeps
// some of them as text alone. A refusal is none, whatever it says.
func gone(err error) bool {
	_, refused := errors.AsType[*jsonrpc2.Error](err)
	for _, end := range []error{io.EOF, io.ErrClosedPipe, os.ErrClosed, syscall.EPIPE, frame.ErrClosed, jsonrpc2.ErrClientClosing} {
		if errors.Is(err, end) {
			return true
		}
	}
	return !refused && (strings.HasSuffix(err.Error(), os.ErrClosed.Error()) || strings.HasSuffix(err.Error(), syscall.EPIPE.Error()))
}

// cancel asks the server to stop working on a request. If there is no room to ask,
// it works in vain.
func (c *Client) cancel(id jsonrpc2.ID) {
	params := fmt.Appendf(nil, `{"id":%v}`, id)
	c.stream.TrySend(jsonrpc2.AppendNotification(nil, "$/cancelRequest", params))
}

// Do is Call with the result as a value.
func Do[R any](ctx context.Context, c *Client, method string, params any) (R, error) {
	var result R
	err := c.Call(ctx, method, params, &result)
	return result, err
}

// Notify sends a notification.
func (c *Client) Notify(ctx context.Context, method string, params any) error {
	if err := c.rpc.Notify(ctx, method, params); err != nil {
		return fmt.Errorf("%s: %w", method, err)
	}
	return nil
}

// Delivered waits until the callbacks have handled everything that came from the
// server before: after it, the effects of all notifications that preceded a reply
// can be seen. It must not be used in a callback.
func (c *Client) Delivered(ctx context.Context) error {
	mark := make(chan struct{})
	if !c.inbox.put(notice{mark: mark}) {
		return ErrClosed
	}
	select {
	case <-mark:
		return nil
	case <-c.done:
		return ErrClosed
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Done is closed when the connection has ended, the callbacks have returned, and
// the server's process, if it was started here, is gone.
func (c *Client) Done() <-chan struct{} { return c.done }

// Err says, after Done, why the connection ended; nil after Close, and after an
// end that the server saw as clean.
func (c *Client) Err() error {
	select {
	case <-c.done:
		return c.err
	default:
		return nil
	}
}

// Close ends the connection without LSP's shutdown, and waits for the end. A
// process that was started gets a moment to see the end of its input, and is
// killed after that. Close must not be used in a callback.
func (c *Client) Close() error {
	c.closing.Store(true)
	_ = c.stream.Close()
	<-c.done
	return c.err
}

// codec keeps to convls's JSON rules in both directions.
type codec struct{}

func (codec) Marshal(v any) ([]byte, error) {
	if raw, ok := v.(jsonrpc2.RawMessage); ok {
		return raw, nil
	}
	return protocol.Marshal(v)
}

func (codec) Unmarshal(data []byte, v any) error { return protocol.Unmarshal(data, v) }
