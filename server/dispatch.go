package server

import (
	"context"
	"fmt"
	"runtime/debug"
	"strconv"
	"strings"

	"convls/protocol"
	"convls/server/frame"

	"github.com/go-json-experiment/json/jsontext"
	"go.lsp.dev/jsonrpc2"
	lsp "go.lsp.dev/protocol"
	"go.uber.org/zap"
)

// errCancelled is the cause by which a request ends that the client cancelled.
var errCancelled = protocol.Errorf(protocol.CodeRequestCancelled, "the client cancelled the request")

// call is a request that has no reply yet.
type call struct {
	conn    *Conn
	id      jsonrpc2.ID
	method  string
	handle  func(context.Context, *Conn, []byte) (any, error)
	session string
	ctx     context.Context
	cancel  context.CancelCauseFunc
	// reply is the context under which jsonrpc2 writes the reply.
	reply context.Context

	// The rest is guarded by conn.mu.
	turn     *ticket
	admitted bool
	returned bool
	// failed says that the reply is an error.
	failed bool
	after  []func(ok bool)
}

type callKey struct{}

// callOf returns the call that ctx belongs to, or nil.
func callOf(ctx context.Context) *call {
	k, _ := ctx.Value(callKey{}).(*call)
	return k
}

// AfterReply has fn run right after the reply to the request of ctx was queued,
// so that what fn sends comes after it. If the reply is an error, fn does not run.
// It must be quick. Outside of a request it runs at once.
func AfterReply(ctx context.Context, fn func()) {
	afterReply(ctx, func(ok bool) {
		if ok {
			fn()
		}
	})
}

// afterReply is AfterReply for those who need to know of a failure too.
func afterReply(ctx context.Context, fn func(ok bool)) {
	k := callOf(ctx)
	if k == nil {
		fn(true)
		return
	}
	k.conn.mu.Lock()
	defer k.conn.mu.Unlock()
	k.after = append(k.after, fn)
}

// handle is the jsonrpc2 handler. It runs on the reading goroutine until a request
// has been admitted, so that requests are admitted in the order they came.
func (c *Conn) handle(ctx context.Context, req *jsonrpc2.Request) (any, error) {
	if !req.IsCall() {
		c.notified(req.Method(), req.Params())
		return nil, nil
	}
	k, err := c.admit(ctx, req)
	if err != nil {
		return nil, c.refusal(nil, req.Method(), err)
	}
	// initialize is answered before anything else is read.
	if k.method != lsp.MethodInitialize {
		jsonrpc2.Async(ctx)
	}
	result, err := c.run(k, req.Params())
	c.leave(k, err)
	return result, err
}

// admit takes a request in, or refuses it.
func (c *Conn) admit(ctx context.Context, req *jsonrpc2.Request) (*call, error) {
	// What jsonrpc2 lends ends with the handler.
	method := strings.Clone(req.Method())
	session := text(frame.Member(req.Params(), "session_id"))
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.allows(method); err != nil {
		return nil, err
	}
	k := &call{conn: c, id: req.ID(), method: method, reply: ctx}
	switch m, known := c.opts.Methods[method]; {
	case method == lsp.MethodInitialize:
		k.handle = c.initialize
	case method == lsp.MethodShutdown:
		k.handle = c.shutdown
	case known:
		k.handle = m.Handle
		if !m.Parallel {
			k.session = session
		}
	default:
		return nil, jsonrpc2.Errorf(jsonrpc2.MethodNotFound, "there is no method %.100q", method)
	}
	if _, twice := c.inFlight[k.id]; twice {
		return nil, jsonrpc2.Errorf(jsonrpc2.InvalidRequest, "a request with id %q is still unanswered", k.id)
	}
	if len(c.replying) >= c.opts.MaxInFlight {
		return nil, protocol.Errorf(protocol.CodeBusy, "%d requests are unanswered: wait for some of them", len(c.replying))
	}
	if method == lsp.MethodShutdown {
		c.state = stateShutdown
	}
	root, cancel := context.WithCancelCause(c.root)
	k.ctx, k.cancel = context.WithValue(root, callKey{}, k), cancel
	c.inFlight[k.id] = k
	c.replying[ctx] = k
	c.enter(k)
	return k, nil
}

// run waits for the call's turn and handles it. A panic is the call's alone.
func (c *Conn) run(k *call, params []byte) (result any, err error) {
	defer func() {
		if r := recover(); r != nil {
			c.log.Error("panic in a request", zap.String("method", k.method), zap.Any("panic", r), zap.ByteString("stack", debug.Stack()))
			result, err = nil, frame.EncodeError(internal(k.method))
		}
	}()
	if err := k.wait(); err != nil {
		return nil, c.refusal(k, k.method, err)
	}
	// A client that does not take its replies gets no more work done.
	if err := c.stream.Room(k.ctx); err != nil {
		return nil, c.refusal(k, k.method, err)
	}
	result, err = k.handle(k.ctx, c, params)
	if err != nil {
		return nil, c.refusal(k, k.method, err)
	}
	raw, err := protocol.Marshal(result)
	if err != nil {
		return nil, c.refusal(k, k.method, fmt.Errorf("encode the result: %w", err))
	}
	if len(raw) > c.opts.MaxReply {
		return nil, c.refusal(k, k.method, protocol.Errorf(protocol.CodeTooLarge,
			"the reply has %d bytes, and at most %d are sent: ask for less at once", len(raw), c.opts.MaxReply))
	}
	return jsonrpc2.RawMessage(raw), nil
}

// leave notes that a call has its result. It can not be cancelled any more, and
// its id may be used again, because the client may see the reply before we know
// that it was queued; it is forgotten when we do.
func (c *Conn) leave(k *call, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.inFlight, k.id)
	k.returned, k.failed = true, err != nil
	if c.mute {
		c.forget(k)
	}
}

// replied is told that jsonrpc2 wrote the reply of ctx, or could not.
func (c *Conn) replied(ctx context.Context, err error) {
	c.mu.Lock()
	k := c.replying[ctx]
	if err != nil && !c.mute {
		// jsonrpc2 gives up on all replies now, so none of them will be heard of.
		c.mute = true
		for _, other := range c.replying {
			if other.returned {
				c.forget(other)
			}
		}
	}
	var after []func(bool)
	if k != nil {
		after = k.after
		k.after = nil
	}
	c.mu.Unlock()
	for _, fn := range after {
		fn(err == nil && !k.failed)
	}
	if k != nil {
		c.mu.Lock()
		c.forget(k)
		c.mu.Unlock()
	}
}

// forget ends a call and lets the next request of its session go on: so replies
// on one session come in the order of the requests. c.mu is held.
func (c *Conn) forget(k *call) {
	k.cancel(nil)
	c.pass(k)
	delete(c.replying, k.reply)
	c.checkIdle()
}

// notified handles a notification; it never fails, because jsonrpc2 would end the
// connection.
func (c *Conn) notified(method string, params []byte) {
	defer func() {
		if r := recover(); r != nil {
			c.log.Error("panic in a notification", zap.String("method", method), zap.Any("panic", r), zap.ByteString("stack", debug.Stack()))
		}
	}()
	c.mu.Lock()
	ready := c.state == stateReady && !c.ending
	c.mu.Unlock()
	n, known := c.opts.Notifications[method]
	switch {
	case method == lsp.MethodExit:
		c.exit()
	case method == lsp.MethodCancelRequest:
		c.cancelRequest(params)
	case !ready, method == lsp.MethodInitialized, strings.HasPrefix(method, "$/"):
	case method == lsp.MethodWorkspaceDidChangeConfiguration && c.opts.OnConfigure != nil:
		if err := c.configure(params); err != nil {
			c.log.Warn("settings refused", zap.Error(err))
		}
	case known:
		if err := n.Handle(c.root, c, params); err != nil {
			c.log.Warn("notification failed", zap.String("method", method), zap.Error(err))
		}
	default:
		c.log.Debug("notification ignored", zap.String("method", method))
	}
}

func (c *Conn) configure(params []byte) error {
	var p struct {
		Settings protocol.Raw `json:"settings"`
	}
	if err := protocol.UnmarshalParams(params, &p); err != nil {
		return err
	}
	if !given(p.Settings) {
		return nil
	}
	return c.opts.OnConfigure(c.root, c, p.Settings)
}

// cancelRequest handles $/cancelRequest. An id that is not in flight is fine: the
// reply and the cancel crossed on the way.
func (c *Conn) cancelRequest(params []byte) {
	span := frame.Member(params, "id")
	if len(span) == 0 {
		return
	}
	id := jsonrpc2.NewStringID(text(span))
	if span[0] != '"' {
		n, err := strconv.ParseFloat(string(span), 64)
		if err != nil || n != float64(int64(n)) {
			return
		}
		id = jsonrpc2.NewNumberID(int64(n))
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if k := c.inFlight[id]; k != nil {
		k.cancel(errCancelled)
	}
}

// text returns the string that a JSON value spells, "" if it is none. The result
// is a copy.
func text(value []byte) string {
	if len(value) == 0 || value[0] != '"' {
		return ""
	}
	b, err := jsontext.AppendUnquote(nil, value)
	if err != nil {
		return ""
	}
	return string(b)
}
