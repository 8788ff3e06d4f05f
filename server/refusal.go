package server

import (
	"context"
	"errors"

	"convls/protocol"
	"convls/server/frame"

	"go.lsp.dev/jsonrpc2"
	"go.uber.org/zap"
)

// refusal returns err as the error member of a reply. k is nil for a request that
// was not admitted.
//
// Whatever a layer below makes of a context that ended, the client is told why it
// ended: only a request that the client itself cancelled is answered with
// RequestCancelled, because editors take that for success.
func (c *Conn) refusal(k *call, method string, err error) error {
	if wire, ok := errors.AsType[*jsonrpc2.Error](err); ok {
		return wire
	}
	code := protocol.CodeOf(err)
	ended := errors.Is(err, context.Canceled) || errors.Is(err, frame.ErrClosed)
	if ended || code == protocol.CodeRequestCancelled {
		e := errEnded
		if k != nil {
			if cause, ok := errors.AsType[*protocol.Error](context.Cause(k.ctx)); ok {
				e = cause
			}
		}
		if k == nil || k.ctx.Err() != nil || code == protocol.CodeRequestCancelled {
			return frame.EncodeError(e)
		}
	}
	if e, ok := errors.AsType[*protocol.Error](err); ok {
		if e.Code == protocol.CodeInternal {
			c.log.Error("request failed", zap.String("method", method), zap.Error(err))
		} else {
			c.log.Debug("request refused", zap.String("method", method), zap.String("code", string(e.Code)), zap.Error(err))
		}
		return frame.EncodeError(e)
	}
	c.log.Error("request failed", zap.String("method", method), zap.Error(err))
	return frame.EncodeError(internal(method))
}

// internal is the error of a defect. It says nothing of the cause, which may name
// what is nobody's business.
func internal(method string) *protocol.Error {
	return protocol.Errorf(protocol.CodeInternal, "%s failed by a defect of the server; its log says more", method)
}
