package handlers

import (
	"context"

	"convls/projection"
	"convls/protocol"
	"convls/store"
	"convls/turn"
)

func (h *Handlers) turnSend(ctx context.Context, c Conn, p *protocol.TurnSendParams, in input) (*protocol.TurnResult, error) {
	sess, err := h.Store.Session(p.SessionID)
	if err != nil {
		return nil, err
	}
	t, err := h.Engine.Send(ctx, sess, request(c, in, p.Mutation), *p, environment(c))
	if err != nil {
		return nil, err
	}
	res := &protocol.TurnResult{UserID: t.UserID, ReplyID: t.ReplyID, State: t.State, Head: t.Head, Cursor: t.Cursor}
	if p.Wait {
		var end ended
		end, err = h.wait(ctx, c, sess, t.ReplyID)
		res.State, res.Node, res.Head, res.Cursor = end.state, end.node, end.head, end.cursor
	}
	return res, err
}

// ended is how a turn ended that a request waited for, and where HEAD is then.
type ended struct {
	state        protocol.Status
	node         *protocol.Node
	head, cursor string
}

// wait returns how a turn ended. A client that cancels its request cancels the
// turn that it waits for; the reply then still tells how that ended.
func (h *Handlers) wait(ctx context.Context, c Conn, sess *store.Session, reply string) (ended, error) {
	c.Admitted(ctx)
	state, n, err := h.Engine.Wait(ctx, sess, reply)
	if protocol.CodeOf(context.Cause(ctx)) == protocol.CodeRequestCancelled {
		// The messages are in the ledger: an error would say that nothing happened.
		ctx = context.WithoutCancel(ctx)
		if _, err = h.Engine.Cancel(ctx, sess, store.Request{Origin: protocol.Origin{ClientID: c.ID()}}, reply); err == nil {
			state, n, err = h.Engine.Wait(ctx, sess, reply)
		}
	}
	if err != nil {
		return ended{}, err
	}
	if n != nil {
		store.TruncateText(n, maxNodeText)
	}
	end := ended{state: state, node: n}
	return end, h.read(sess.ID(), func(_ *store.Session, r *store.Reader) error {
		end.cursor = r.Cursor()
		end.head, err = r.ID(r.State.Head)
		return err
	})
}

func (h *Handlers) turnRetry(ctx context.Context, c Conn, p *protocol.TurnRetryParams, in input) (*protocol.TurnRetryResult, error) {
	sess, err := h.Store.Session(p.SessionID)
	if err != nil {
		return nil, err
	}
	t, err := h.Engine.Retry(ctx, sess, request(c, in, p.Mutation), *p, environment(c))
	if err != nil {
		return nil, err
	}
	res := &protocol.TurnRetryResult{UserID: t.UserID, Head: t.Head, Cursor: t.Cursor}
	for _, id := range t.Candidates {
		res.Candidates = append(res.Candidates, protocol.Candidate{ReplyID: id, State: t.State})
	}
	if !p.Wait {
		return res, nil
	}
	for i := range res.Candidates {
		k := &res.Candidates[i]
		end, err := h.wait(ctx, c, sess, k.ReplyID)
		if err != nil {
			return nil, err
		}
		k.State, k.Node, res.Head, res.Cursor = end.state, end.node, end.head, end.cursor
	}
	return res, nil
}

func (h *Handlers) turnEdit(ctx context.Context, c Conn, p *protocol.TurnEditParams, in input) (*protocol.TurnEditResult, error) {
	sess, err := h.Store.Session(p.SessionID)
	if err != nil {
		return nil, err
	}
	t, err := h.Engine.Edit(ctx, sess, request(c, in, p.Mutation), *p, environment(c))
	if err != nil {
		return nil, err
	}
	return h.edited(ctx, c, sess, p, t)
}

func (h *Handlers) edited(ctx context.Context, c Conn, sess *store.Session, p *protocol.TurnEditParams, t turn.Turn) (*protocol.TurnEditResult, error) {
	res := &protocol.TurnEditResult{State: t.State, Head: t.Head, Cursor: t.Cursor}
	if t.UserID == "" {
		res.NodeID = t.ReplyID
		return res, nil
	}
	res.NodeID, res.UserID, res.ReplyID = t.UserID, t.UserID, t.ReplyID
	if !p.Wait {
		return res, nil
	}
	end, err := h.wait(ctx, c, sess, t.ReplyID)
	res.State, res.Node, res.Head, res.Cursor = end.state, end.node, end.head, end.cursor
	return res, err
}

func (h *Handlers) turnCancel(ctx context.Context, c Conn, p *protocol.TurnCancelParams, in input) (*protocol.TurnCancelResult, error) {
	sess, err := h.Store.Session(p.SessionID)
	if err != nil {
		return nil, err
	}
	if err := h.checkReply(p.SessionID, p.ReplyID); err != nil {
		return nil, err
	}
	res, err := h.Engine.Cancel(ctx, sess, request(c, in, protocol.Mutation{RequestID: p.RequestID}), p.ReplyID)
	return &res, err
}

// checkReply refuses the id of something that is no reply and no call, and names the reply that
// was probably meant. An id that names nothing may be that of a queued send.
func (h *Handlers) checkReply(sessionID, id string) error {
	return h.read(sessionID, func(_ *store.Session, r *store.Reader) error {
		queue, err := projection.Queue(r)
		if err != nil {
			return err
		}
		for _, q := range queue {
			if q.UserID == id {
				return notAReply(id, protocol.KindUser, q.ReplyID)
			}
		}
		s, err := r.Lookup(id)
		if protocol.CodeOf(err) == protocol.CodeUnknownNode || err == nil && (s.Kind == protocol.KindAssistant || s.Kind == protocol.KindCall) {
			return nil
		}
		if err != nil {
			return err
		}
		reply, err := projection.ReplyOf(r, s)
		if err != nil {
			return err
		}
		return notAReply(id, s.Kind, reply)
	})
}

func notAReply(id string, kind protocol.Kind, reply string) error {
	if reply == "" {
		return protocol.Errorf(protocol.CodeInvalidParams, "reply_id %q is a %s node, which nothing writes: pass the reply_id that turn/send, turn/retry or turn/edit gave", id, kind)
	}
	return protocol.Errorf(protocol.CodeInvalidParams, "reply_id %q is a %s node: pass its reply, %q", id, kind, reply)
}
