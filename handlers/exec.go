package handlers

import (
	"context"

	"convls/protocol"
)

func (h *Handlers) exec(ctx context.Context, c Conn, p *protocol.ExecParams, in input) (*protocol.ExecResult, error) {
	sess, err := h.Store.Session(p.SessionID)
	if err != nil {
		return nil, err
	}
	t, err := h.Engine.Exec(ctx, sess, request(c, in, p.Mutation), *p, environment(c))
	if err != nil {
		return nil, err
	}
	res := &protocol.ExecResult{NodeID: t.ReplyID, State: t.State, Head: t.Head, Cursor: t.Cursor}
	if p.Wait {
		var end ended
		end, err = h.wait(ctx, c, sess, t.ReplyID)
		res.State, res.Node, res.Head, res.Cursor = end.state, end.node, end.head, end.cursor
	}
	return res, err
}
