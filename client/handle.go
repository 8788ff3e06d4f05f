package client

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"convls/protocol"
	"convls/server/frame"

	"go.lsp.dev/jsonrpc2"
)

// handle is the jsonrpc2 handler of what the server sends.
func (c *Client) handle(ctx context.Context, req *jsonrpc2.Request) (any, error) {
	if !req.IsCall() {
		if req.Method() == "$/cancelRequest" {
			c.cancelAsked(req.Params())
			return nil, nil
		}
		// What jsonrpc2 lends ends with this function.
		c.inbox.put(notice{method: strings.Clone(req.Method()), params: bytes.Clone(req.Params())})
		return nil, nil
	}
	// From the client's own context: that of jsonrpc2 outlives the connection.
	asked, cancel := context.WithCancel(c.root)
	id := req.ID()
	c.mu.Lock()
	c.asked[id] = cancel
	c.mu.Unlock()
	defer func() {
		cancel()
		c.mu.Lock()
		delete(c.asked, id)
		c.mu.Unlock()
	}()
	jsonrpc2.Async(ctx)
	result, err := c.answer(asked, req.Method(), req.Params()) //nolint:contextcheck // see asked
	if e, ok := errors.AsType[*protocol.Error](err); ok {
		return nil, frame.EncodeError(e)
	}
	return result, err
}

// answer answers a request of the server's. A panic in a callback is the server's
// error, because a tool must not take the client down.
func (c *Client) answer(ctx context.Context, method string, params []byte) (result any, err error) {
	defer func() {
		if r := recover(); r != nil {
			result, err = nil, protocol.Errorf(protocol.CodeInternal, "the client's %s panicked: %v", method, r)
		}
	}()
	switch {
	case method == protocol.MethodToolCall && c.opts.CallTool != nil:
		return ask(ctx, params, c.opts.CallTool)
	case method == protocol.MethodSecretGet && c.opts.Secret != nil:
		return ask(ctx, params, c.opts.Secret)
	case method == "window/workDoneProgress/create":
		return nil, nil
	}
	return nil, jsonrpc2.Errorf(jsonrpc2.MethodNotFound, "this client has no method %q", method)
}

func ask[P, R any](ctx context.Context, params []byte, fn func(context.Context, P) (R, error)) (any, error) {
	var p P
	if err := protocol.Unmarshal(params, &p); err != nil {
		return nil, protocol.Errorf(protocol.CodeInvalidParams, "the params can not be read: %v", err)
	}
	result, err := fn(ctx, p)
	if err != nil {
		return nil, err
	}
	return result, nil
}

// cancelAsked ends the context of a request that the server gave up.
func (c *Client) cancelAsked(params []byte) {
	n, err := strconv.ParseInt(string(frame.Member(params, "id")), 10, 64)
	if err != nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if cancel := c.asked[jsonrpc2.NewNumberID(n)]; cancel != nil {
		cancel()
	}
}

// notice hands a notification to its callback.
func (c *Client) notice(n notice) {
	var err error
	switch {
	case n.method == protocol.MethodEvent && c.opts.OnEvent != nil:
		err = tell(n.params, c.opts.OnEvent)
	case n.method == protocol.MethodDelta && c.opts.OnDelta != nil:
		err = tell(n.params, c.opts.OnDelta)
	case n.method == protocol.MethodReset && c.opts.OnReset != nil:
		err = tell(n.params, c.opts.OnReset)
	case n.method == "window/logMessage" && c.opts.OnLog != nil:
		err = tell(n.params, c.opts.OnLog)
	case c.opts.OnOther != nil:
		c.opts.OnOther(n.method, n.params)
	}
	if err != nil && c.opts.OnLog != nil {
		c.opts.OnLog(LogMessage{Type: 2, Message: fmt.Sprintf("%s can not be read: %v", n.method, err)})
	}
}

func tell[P any](params []byte, fn func(P)) error {
	var p P
	if err := protocol.Unmarshal(params, &p); err != nil {
		return err
	}
	fn(p)
	return nil
}
