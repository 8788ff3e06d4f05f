package server

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"sync"

	"convls/protocol"
	"convls/server/frame"

	"go.lsp.dev/jsonrpc2"
	lsp "go.lsp.dev/protocol"
	"go.uber.org/zap"
)

// outgoing are the requests from the server that the client has not answered.
//
// They are not jsonrpc2's own calls because those are numbered from 1 on every
// connection: an answer to the server before this one, passed on late by a process
// between, would be taken for an answer to a new request. Here the numbers begin
// at random. They stay below 2^46, because Lua's encoders write at most 14 digits.
type outgoing struct {
	mu      sync.Mutex
	last    int64
	waiting map[int64]chan<- answer
}

type answer struct {
	result []byte
	err    error
}

func (o *outgoing) init() {
	// Chance is enough: the numbers must differ, and nobody gains by guessing one.
	o.last = rand.Int64N(1<<26) << 20
	o.waiting = make(map[int64]chan<- answer)
}

// Call sends a request to the client and waits for the answer, which is decoded
// into result unless result is nil. An error of the client's is a *protocol.Error
// if it has one of convls's codes, else a *jsonrpc2.Error. When ctx ends, the
// client is asked to stop, and nobody waits. It must not be used in notifications
// and OnInitialize, which hold up the reading of the answer.
func (c *Conn) Call(ctx context.Context, method string, params, result any) error {
	raw, err := protocol.Marshal(params)
	if err != nil {
		return fmt.Errorf("encode %s: %w", method, err)
	}
	done := make(chan answer, 1)
	c.calls.mu.Lock()
	c.calls.last++
	id := c.calls.last
	c.calls.waiting[id] = done
	c.calls.mu.Unlock()
	defer func() {
		c.calls.mu.Lock()
		delete(c.calls.waiting, id)
		c.calls.mu.Unlock()
	}()
	if err := c.stream.Send(ctx, jsonrpc2.AppendCall(nil, jsonrpc2.NewNumberID(id), method, raw)); err != nil {
		return fmt.Errorf("send %s: %w", method, err)
	}
	select {
	case a := <-done:
		if a.err != nil {
			return frame.DecodeError(a.err)
		}
		if result == nil {
			return nil
		}
		if err := protocol.Unmarshal(a.result, result); err != nil {
			return fmt.Errorf("the client's answer to %s: %w", method, err)
		}
		return nil
	case <-ctx.Done():
		if cancel, err := notification(lsp.MethodCancelRequest, map[string]int64{"id": id}); err == nil {
			c.stream.TrySend(cancel)
		}
		return context.Cause(ctx)
	case <-c.deaf:
		return errEnded
	case <-c.root.Done():
		return errEnded
	}
}

// answered takes the client's answer to a request of ours. One that nobody waits
// for any more, or never did, is dropped.
func (c *Conn) answered(view jsonrpc2.MessageView) {
	id, ok := view.ID.Number()
	c.calls.mu.Lock()
	done := c.calls.waiting[id]
	c.calls.mu.Unlock()
	if !ok || done == nil {
		c.log.Debug("answer to no request", zap.ByteString("id", view.IDRaw))
		return
	}
	a := answer{result: bytes.Clone(view.Result)}
	if view.Kind == jsonrpc2.MessageViewResponseError {
		wire, ok := view.Error.Owned()
		if !ok {
			wire = jsonrpc2.NewError(jsonrpc2.InternalError, "the client answered with an error that can not be read")
		}
		a.err = wire
	}
	select {
	case done <- a:
	default:
		// A second answer to the same request.
	}
}
