package turn

import (
	"context"

	"convls/protocol"
	"convls/store"
)

// Turn is an admitted turn.
type Turn struct {
	UserID  string
	ReplyID string
	// Candidates are all replies that a retry began, ReplyID first.
	Candidates []string
	State      protocol.Status
	Head       string
	Cursor     string
}

// Send admits a message at HEAD. It runs at once, or waits in the queue for the
// turn that is running there. A request that is repeated returns the same ids. With
// spawn it runs on a side branch of its own, waits for nothing, and leaves HEAD where
// it is.
func (e *Engine) Send(ctx context.Context, sess *store.Session, req store.Request, p protocol.TurnSendParams, env Environment) (Turn, error) {
	if err := checkSpawn(p); err != nil {
		return Turn{}, err
	}
	parts, err := messageParts(p.Content, p.Context)
	if err != nil {
		return Turn{}, err
	}
	w := e.writer(sess, req.Origin)
	w.advance = !p.Spawn
	r, err := e.prepare(sess, env, p.Model, p.Tools, w)
	if err != nil {
		return Turn{}, err
	}
	m := message{userID: store.NewID(""), replyID: store.NewID(""), parts: parts, model: r.model, tools: p.Tools, counter: r.counter}
	if p.Spawn {
		req.Cause, m.exposed = "spawn", p.Expose
		out, err := w.spawn(ctx, req, p.Head, p.Caller, m, func(a admission) error { return e.registerAll(a, r) })
		return e.admitted(out, err, r)
	}
	req.Cause = "send"
	// A queued send keeps the environment of its client from before it can start.
	e.keepEnvironment(sess.ID(), m.replyID, env)
	begun := false
	out, err := w.sendOrQueue(ctx, req, m,
		func(tx *store.Tx, head store.Skeleton) (bool, error) { return e.blocked(tx, head) },
		func(a admission) error { begun = true; return e.registerAll(a, r) })
	if begun || err != nil || out.Repeated {
		e.takeEnvironment(sess.ID(), m.replyID)
	}
	return e.admitted(out, err, r)
}

// checkSpawn refuses what only a spawned turn has on a send that is none.
func checkSpawn(p protocol.TurnSendParams) error {
	if p.Spawn {
		return nil
	}
	for name, given := range map[string]bool{"caller": p.Caller != "", "head": p.Head != "", "expose": p.Expose} {
		if given {
			return protocol.Errorf(protocol.CodeInvalidParams, "%s is of a spawned turn: give spawn too, or leave %s out to go on at HEAD", name, name)
		}
	}
	return nil
}

// Exec admits a call off the chain: one question on the context of a branch. It waits
// for nothing, nothing waits for it, and HEAD stays. Its ReplyID is the call node.
func (e *Engine) Exec(ctx context.Context, sess *store.Session, req store.Request, p protocol.ExecParams, env Environment) (Turn, error) {
	if p.RenderRange != nil && *p.RenderRange < 0 {
		return Turn{}, protocol.Errorf(protocol.CodeInvalidParams, "render_range is 0 or more entries, not %d", *p.RenderRange)
	}
	prompt, err := messageParts(p.Prompt, p.Context)
	if err != nil {
		return Turn{}, err
	}
	w := e.writer(sess, req.Origin)
	w.advance = false
	r, err := e.prepare(sess, env, p.Model, nil, w)
	if err != nil {
		return Turn{}, err
	}
	r.ask = &question{prompt: prompt, entries: p.RenderRange}
	req.Cause = "exec"
	out, err := w.openCall(ctx, req, side{head: p.Head, caller: p.Caller, prompt: prompt, model: r.model, exposed: p.Expose},
		func(a admission, at store.Skeleton) error {
			r.ask.at = at
			return e.registerAll(a, r)
		})
	return e.admitted(out, err, r)
}

// Retry admits count new replies to a message, or beside a reply.
func (e *Engine) Retry(ctx context.Context, sess *store.Session, req store.Request, p protocol.TurnRetryParams, env Environment) (Turn, error) {
	count := max(p.Count, 1)
	if p.Count < 0 || count > maxCandidates {
		return Turn{}, protocol.Errorf(protocol.CodeInvalidParams, "count is 1 to %d, not %d", maxCandidates, p.Count)
	}
	w := e.writer(sess, req.Origin)
	runs := make([]*run, count)
	for i := range runs {
		// Candidates go their own ways: each has a writer of its own.
		wi := w
		if i > 0 {
			wi = e.writer(sess, req.Origin)
		}
		var err error
		if runs[i], err = e.prepare(sess, env, p.Model, p.Tools, wi); err != nil {
			return e.admitted(store.Outcome[admission]{}, err, runs[:i]...)
		}
	}
	req.Cause = "retry"
	out, err := w.retry(ctx, req, p.NodeID, count, runs[0].model, func(a admission) error { return e.registerAll(a, runs...) })
	return e.admitted(out, err, runs...)
}

const maxCandidates = 8

// Edit admits a changed message beside a user node, or writes a changed reply
// beside a reply.
func (e *Engine) Edit(ctx context.Context, sess *store.Session, req store.Request, p protocol.TurnEditParams, env Environment) (Turn, error) {
	parts, err := messageParts(p.Content, p.Context)
	if err != nil {
		return Turn{}, err
	}
	kind, err := kindOf(sess, p.NodeID)
	if err != nil {
		return Turn{}, err
	}
	w := e.writer(sess, req.Origin)
	req.Cause = "edit"
	switch kind {
	case protocol.KindUser:
		r, err := e.prepare(sess, env, p.Model, p.Tools, w)
		if err != nil {
			return Turn{}, err
		}
		out, err := w.editUser(ctx, req, p.NodeID, message{parts: parts, model: r.model, counter: r.counter}, func(a admission) error { return e.registerAll(a, r) })
		return e.admitted(out, err, r)
	case protocol.KindAssistant:
		out, err := w.editReply(ctx, req, p.NodeID, parts, 0, "")
		return e.admitted(out, err)
	}
	return Turn{}, protocol.Errorf(protocol.CodeInvalidParams, "node %q is a %s: only a message or a reply can be edited", p.NodeID, kind)
}

func kindOf(sess *store.Session, id string) (protocol.Kind, error) {
	return read(sess, func(r *store.Reader) (protocol.Kind, error) {
		s, err := r.LookupChain(id)
		return s.Kind, err
	})
}

func (e *Engine) writer(sess *store.Session, origin protocol.Origin) *TurnWriter {
	return &TurnWriter{sess: sess, log: e.Logger, advance: true, origin: origin, running: func(reply string) bool { return e.running(sess.ID(), reply) }}
}

func (e *Engine) keepEnvironment(session, replyID string, env Environment) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.environments[session] == nil {
		e.environments[session] = map[string]Environment{}
	}
	e.environments[session][replyID] = env
}

func (e *Engine) takeEnvironment(session, replyID string) (Environment, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	own := e.environments[session]
	env, ok := own[replyID]
	if delete(own, replyID); len(own) == 0 {
		delete(e.environments, session)
	}
	return env, ok
}

// registerAll makes runs known, each with the reply it writes.
func (e *Engine) registerAll(a admission, runs ...*run) error {
	for i, r := range runs {
		if err := e.register(r); err != nil {
			for _, begun := range runs[:i] {
				e.unregister(begun)
			}
			return err
		}
		e.advance(r, a.replies[i], newLive(r.writer, e.Delta, a.replies[i]))
	}
	return nil
}

// admitted starts the runs of an admission whose batch is on disk, and forgets
// them if it is not.
func (e *Engine) admitted(out store.Outcome[admission], err error, runs ...*run) (Turn, error) {
	if err != nil {
		for _, r := range runs {
			if r.tip != 0 {
				e.unregister(r)
			}
			r.cancel(nil)
		}
		return Turn{}, err
	}
	a := out.Result
	for _, r := range runs {
		if r.tip != 0 {
			go e.answer(r)
		} else {
			r.cancel(nil)
		}
	}
	return Turn{UserID: a.UserID, ReplyID: a.ReplyID, Candidates: a.Candidates, State: a.State, Head: a.Head, Cursor: out.Cursor}, nil
}
