package turn

import (
	"context"
	"errors"
	"time"

	"go.uber.org/zap"

	"convls/protocol"
	"convls/store"
)

// prepare resolves everything that a turn needs, before it is admitted: what is
// wrong with the model's name or the settings is the request's error and leaves
// no node behind.
func (e *Engine) prepare(sess *store.Session, env Environment, modelID string, tools []protocol.ToolDeclaration, w *TurnWriter) (*run, error) {
	settings, id, err := e.effective(sess, env, modelID)
	if err != nil {
		return nil, err
	}
	if _, _, err := e.Models.Resolve(settings, id, env.Keys); err != nil {
		return nil, err
	}
	counter, err := e.Models.Counter(settings, id)
	if err != nil {
		return nil, err
	}
	if _, err := compileTools(tools); err != nil {
		return nil, err
	}
	env.Settings = settings
	ctx, cancel := context.WithCancelCause(e.root)
	return &run{engine: e, sess: sess, env: env, tools: tools, model: id, counter: counter, began: time.Now(), writer: w, ctx: ctx, cancel: cancel, done: make(chan struct{})}, nil
}

// effective returns the settings of a turn, and its model: the request's, else the
// session's, else the client's.
func (e *Engine) effective(sess *store.Session, env Environment, modelID string) (protocol.Settings, string, error) {
	r, err := sess.Reader()
	if err != nil {
		return protocol.Settings{}, "", err
	}
	defer r.Close()
	info, err := r.Info()
	if err != nil {
		return protocol.Settings{}, "", err
	}
	settings, err := e.Merge(env.Settings, info.Settings)
	if err != nil {
		return settings, "", err
	}
	for _, id := range []string{modelID, info.Model, settings.Model} {
		if id != "" {
			return settings, id, nil
		}
	}
	return settings, "offline", nil
}

// answer runs a turn to its end.
func (e *Engine) answer(r *run) {
	defer e.unregister(r)
	defer close(r.done)
	defer e.changed(r.sess.ID())
	defer r.cancel(nil)
	defer func() {
		if p := recover(); p != nil {
			// A defect must not end the process, and must not leave the turn open.
			e.Logger.Error("a turn panicked", zap.Any("panic", p), zap.Stack("stack"))
			e.abandon(r, &protocol.NodeError{Code: protocol.CodeInternal, Message: "internal error in the turn: the log has the details",
				Hint: "retry it; if it happens again, report it"})
		}
	}()
	for round := 0; ; round++ {
		c := e.call(r, round)
		r.live.close()
		if len(c.calls) == 0 {
			e.end(r, &c.final, c.final.Status, c.final.Content.Error)
			return
		}
		if err := r.writer.sealCalling(r.reply, c.final, c.calls); err != nil {
			e.fail(r, err)
			return
		}
		if !e.runTools(r, c.calls) {
			status := endOf(r.ctx)
			e.end(r, nil, status, nil)
			return
		}
		err := r.writer.next(r.reply, r.model, func(reply store.Skeleton) { e.advance(r, reply, newLive(r.writer, e.Delta, reply)) })
		if err != nil {
			e.fail(r, err)
			return
		}
	}
}

// fail ends a turn that the ledger would not take a write of.
func (e *Engine) fail(r *run, err error) {
	e.Logger.Error("a turn can not be written", zap.String("session", r.sess.ID()), zap.String("node", r.reply.ID), zap.Error(err))
	code := protocol.CodeOf(err)
	if code == "" {
		code = protocol.CodeInternal
	}
	e.abandon(r, &protocol.NodeError{Code: code, Message: err.Error(), Retryable: true})
}

// abandon ends a turn as failed wherever it stands: a reply that is still open is
// sealed with what was streamed of it.
func (e *Engine) abandon(r *run, nodeErr *protocol.NodeError) {
	var final *store.Final
	if n, err := readNode(r.sess, r.reply.ID); err == nil && n.Status == protocol.StatusOpen {
		final = &store.Final{Status: protocol.StatusFailed, Content: store.Content{Model: r.model, Parts: r.live.kept(), Error: nodeErr}}
	}
	e.end(r, final, protocol.StatusFailed, nodeErr)
}

// end seals the last reply with final, if it is given, tells how the turn ended,
// and starts the send that waits for it.
func (e *Engine) end(r *run, final *store.Final, status protocol.Status, nodeErr *protocol.NodeError) {
	event := protocol.Event{Type: protocol.EventTurnFinished, NodeID: r.reply.ID, ReplyID: r.replies[0], Status: status, Error: nodeErr}
	switch status {
	case protocol.StatusFailed:
		event.Type = protocol.EventTurnFailed
	case protocol.StatusCancelled:
		event.Type = protocol.EventTurnCancelled
	case protocol.StatusInterrupted:
		event.Type = protocol.EventTurnInterrupted
	}
	if final != nil {
		if r.ask != nil {
			final.Content.Prompt = r.ask.prompt
		}
		event.Bytes = int64(len(store.Text(final.Content.Parts)))
		event.Usage = final.Content.Usage
		if r.writer.advance {
			// How full the window of a side branch is says nothing of the conversation.
			event.Budget = r.budget(final)
		}
	}
	events := append([]protocol.Event{event}, e.advice(r.sess.ID(), event.Budget)...)
	r.final, r.last = status, r.reply.ID
	var next *run
	err := r.writer.finish(r.reply, final, events, func(tx *store.Tx) error {
		tip, err := tx.Skeleton(r.reply.Seq)
		if err != nil {
			return err
		}
		queue, err := waiting(tx, r.replies)
		if err != nil {
			return err
		}
		if status == protocol.StatusFailed || status == protocol.StatusInterrupted || errors.Is(context.Cause(r.ctx), errDeleted) {
			err = hold(tx, queue)
		} else if len(queue) > 0 && e.root.Err() == nil {
			next, err = e.goOn(tx, tip, queue, r)
		}
		if err == nil {
			e.release(r)
		}
		return err
	})
	if err != nil {
		e.Logger.Error("a turn can not be ended in the ledger", zap.String("session", r.sess.ID()), zap.String("node", r.reply.ID), zap.Error(err))
		e.release(r)
		if next != nil {
			e.unregister(next)
		}
		r.final = protocol.StatusFailed
		return
	}
	if next != nil {
		go e.answer(next)
	}
}

// release lets the next send of the chain begin.
func (e *Engine) release(r *run) {
	e.mu.Lock()
	defer e.mu.Unlock()
	r.tip = 0
}

// startWaiting begins the first of the sends that waited for a turn, or, if ended is
// nil, for a compaction, at tip. If its model or settings are not good any more all are held.
func (e *Engine) startWaiting(tx *store.Tx, tip store.Skeleton, queue []store.Queued, ended *run) (*run, error) {
	q := queue[0]
	env, ok := e.takeEnvironment(tx.Session().ID(), q.ReplyID)
	switch {
	case ok:
	case ended == nil:
		return nil, hold(tx, queue)
	default:
		// Its client is gone with the process that took it. It was held; now that a turn
		// has succeeded on its chain, it goes on as that one's client would send it.
		env = ended.env
	}
	w := e.writer(tx.Session(), q.Origin)
	w.advance = q.Advance
	r, err := e.prepare(tx.Session(), env, q.Model, q.Tools, w)
	if err != nil {
		e.Logger.Warn("a queued send can not start", zap.Error(err))
		return nil, hold(tx, queue)
	}
	a, err := w.beginQueued(tx, tip, queue, r)
	if err != nil {
		return nil, err
	}
	return r, e.registerAll(a, r)
}

// endOf returns the status that a turn whose context ended is sealed with.
func endOf(ctx context.Context) protocol.Status {
	if errors.Is(context.Cause(ctx), errShutdown) {
		return protocol.StatusInterrupted
	}
	return protocol.StatusCancelled
}
