package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"convls/protocol"
	"convls/server/frame"

	"go.lsp.dev/jsonrpc2"
	"go.uber.org/zap"
)

// ErrNoShutdown is returned by [Serve] when the client left without shutdown:
// LSP wants the process to exit with status 1 then.
var ErrNoShutdown = errors.New("the client left without a shutdown request")

// errEnded is the cause by which requests end that outlive their connection.
var errEnded = protocol.Errorf(protocol.CodeServerRestarted, "the connection ended before the request was done")

// Serve speaks with the client at the other end of rwc, which it owns, until the
// client leaves or ctx ends. It returns nil after a clean end, [ErrNoShutdown],
// or what broke the connection. When it returns, all requests have been answered,
// or were cancelled and given [Options.Grace] to return.
func Serve(ctx context.Context, rwc io.ReadWriteCloser, opts Options) error {
	opts = opts.withDefaults()
	c := newConn(ctx, opts)
	c.stream = frame.New(rwc, frame.Options{
		MaxFrame:   opts.MaxFrame,
		QueueBytes: opts.QueueBytes,
		OnReject:   func(err error) { c.log.Warn("message refused", zap.Error(err)) },
	})
	opts.Hub.join(c)
	pumped := make(chan struct{})
	go func() {
		defer close(pumped)
		c.pump.run()
	}()
	rpc := jsonrpc2.NewConn(messages{c.stream, c}, jsonrpc2.WithCodec(codec{}))
	rpc.Go(context.Background(), c.handle) //nolint:contextcheck // requests have theirs from c.root

	select {
	case <-c.readEnd:
	case <-ctx.Done():
		c.drain()
	}
	c.stop(errEnded)
	opts.Hub.leave(c)
	// Answers that were queued are still written; then the reader ends too.
	_ = c.stream.Close()
	<-c.stream.Done()
	<-pumped
	select {
	case <-rpc.Done():
	case <-time.After(opts.Grace):
		c.log.Error("requests outlive their connection", zap.Int("count", c.unanswered()))
	}
	if opts.OnClose != nil {
		opts.OnClose(c)
	}
	return c.end(ctx)
}

// end says how the connection ended.
func (c *Conn) end(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case ctx.Err() != nil:
		return nil
	case c.state == stateShutdown || c.state == stateExited:
		// However it went after that: editors kill what they have shut down.
		return nil
	case c.readErr != nil && !errors.Is(c.readErr, io.EOF):
		return fmt.Errorf("read from the client: %w", c.readErr)
	default:
		return ErrNoShutdown
	}
}

// drain stops taking requests and lets those in flight finish. Those that only
// wait for something are cancelled at once, so that no model call outlives the
// client that pays for it; the others get the time that their reply needs.
func (c *Conn) drain() {
	c.mu.Lock()
	c.ending = true
	for _, k := range c.inFlight {
		if k.admitted {
			k.cancel(errEnded)
		}
	}
	c.checkIdle()
	c.mu.Unlock()
	for range 2 {
		select {
		case <-c.idle:
			return
		case <-time.After(c.opts.Grace):
			c.stop(errEnded)
		}
	}
}

// checkIdle closes c.idle when nothing is left to wait for. c.mu is held.
func (c *Conn) checkIdle() {
	if !c.ending || len(c.replying) > 0 {
		return
	}
	select {
	case <-c.idle:
	default:
		close(c.idle)
	}
}

func (c *Conn) unanswered() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.replying)
}

// messages is the stream as jsonrpc2 sees it: answers to our own calls are taken
// out on the way in, and the way out tells when a reply has been queued.
type messages struct {
	*frame.Stream
	conn *Conn
}

// ReadFrame returns the next request or notification. The end of the input is
// held back until all requests have been answered, because jsonrpc2 writes no
// answer after it.
func (m messages) ReadFrame(ctx context.Context) ([]byte, int64, error) {
	for {
		body, n, err := m.nextFrame(ctx)
		if err != nil {
			m.conn.readEnded(err)
			return nil, 0, err
		}
		if view, err := jsonrpc2.ScanMessageView(body); err == nil && isResponse(view.Kind) {
			m.conn.answered(view)
			continue
		}
		return body, n, nil
	}
}

func (m messages) nextFrame(ctx context.Context) ([]byte, int64, error) {
	if m.conn.left() {
		return nil, 0, io.EOF
	}
	return m.Stream.ReadFrame(ctx)
}

func isResponse(k jsonrpc2.MessageViewKind) bool {
	return k == jsonrpc2.MessageViewResponseResult || k == jsonrpc2.MessageViewResponseError
}

// Write queues a reply of jsonrpc2.
func (m messages) Write(ctx context.Context, msg jsonrpc2.Message) (int64, error) {
	n, err := m.Stream.Write(ctx, msg)
	m.conn.replied(ctx, err)
	return n, err
}

// readEnded waits for the requests in flight and then lets Serve go on. Only the
// reading goroutine calls it, at its end.
func (c *Conn) readEnded(err error) {
	close(c.deaf)
	c.drain()
	c.mu.Lock()
	c.readErr = err
	c.mu.Unlock()
	close(c.readEnd)
}

// codec passes on results, which dispatch has encoded and measured.
type codec struct{}

func (codec) Marshal(v any) ([]byte, error) {
	if raw, ok := v.(jsonrpc2.RawMessage); ok {
		return raw, nil
	}
	return protocol.Marshal(v)
}

func (codec) Unmarshal(data []byte, v any) error { return protocol.Unmarshal(data, v) }
