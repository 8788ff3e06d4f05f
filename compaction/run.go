package compaction

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"go.uber.org/zap"

	"convls/compaction/manifest"
	"convls/model"
	"convls/protocol"
	"convls/store"
)

// Request is what a person asks for.
type Request struct {
	Spec  protocol.CompactionSpec
	Draft bool
	// Rebuild is the id of a summary to make again from its covered nodes.
	Rebuild string
}

// runPrefix begins the ids of runs.
const runPrefix = "cmp_"

// Run begins a compaction of HEAD's branch and returns while it runs; [Engine.Wait]
// waits for it. A second request that asks for the same joins the run that is
// there; any other is refused with compaction_running (fault 34).
func (e *Engine) Run(ctx context.Context, sess *store.Session, req store.Request, ask Request, c Client) (protocol.CompactionResult, error) {
	// What is said of a secret is not to be what gives it away.
	ask.Spec.Instructions, _ = manifest.Mask(ask.Spec.Instructions)
	trigger := protocol.TriggerManual
	if ask.Rebuild != "" {
		trigger = protocol.TriggerRebuild
	}
	r := &run{id: store.NewID(runPrefix), sess: sess, trigger: trigger, spec: ask.Spec, draft: ask.Draft, client: c, origin: req.Origin, started: time.Now()}
	plan := func(reader *store.Reader, budget protocol.Budget) (*plan, error) {
		if ask.Rebuild != "" {
			return e.planRebuild(reader, r, budget, ask.Rebuild)
		}
		return planRun(reader, e.options(r.counter, c), budget, c.Settings.Compaction, request{spec: ask.Spec, trigger: trigger})
	}
	other, cursor, id, err := e.begin(ctx, r, req, plan)
	switch {
	case err != nil:
		if protocol.CodeOf(err) == protocol.CodeNothingToCompact {
			e.notice(r, err)
		}
		return protocol.CompactionResult{}, err
	case other != nil:
		res, err := e.join(ctx, req, r, other)
		if errors.Is(err, errNotBegun) {
			<-other.done
			return e.Run(ctx, sess, req, ask, c)
		}
		return res, err
	case id != r.id:
		return e.outcome(sess, id, cursor)
	}
	return protocol.CompactionResult{CompactionID: r.id, State: protocol.RunRunning, Cursor: cursor}, nil
}

// join answers a request that came while another run of the session is under way. One
// that asks for the same gets that run; any other is refused, unless it is one that is
// repeated, which gets what it got. The receipt of a joined request is in the ledger,
// so that it gets the same run however late it is repeated.
func (e *Engine) join(ctx context.Context, req store.Request, r, other *run) (protocol.CompactionResult, error) {
	req.Cause = "compaction"
	out, err := store.Apply(ctx, r.sess, req, func(*store.Tx) (string, error) {
		// The other's beginning, which is a change of the session too, is over by now.
		e.mu.Lock()
		begun := other.plan != nil
		e.mu.Unlock()
		if !begun {
			return "", errNotBegun
		}
		if other.trigger == protocol.TriggerManual && r.trigger == protocol.TriggerManual && other.draft == r.draft && sameSpec(other.spec, r.spec) {
			return other.id, nil
		}
		return "", running(other)
	})
	if err != nil {
		return protocol.CompactionResult{}, err
	}
	return e.outcome(r.sess, out.Result, out.Cursor)
}

// errNotBegun says that the run that was in the way found nothing to do.
var errNotBegun = errors.New("the other run did not begin")

// running refuses what can not be done beside a run.
func running(other *run) error {
	return &protocol.Error{Code: protocol.CodeCompactionRunning, Data: protocol.ErrorData{CompactionID: other.id, Retryable: true},
		Message: "another compaction of this session is under way: wait for it, or cancel it with compaction/cancel"}
}

func sameSpec(a, b protocol.CompactionSpec) bool {
	same := a.Instructions == b.Instructions && a.UpToID == b.UpToID && a.FromID == b.FromID
	if a.KeepRecentTokens == nil || b.KeepRecentTokens == nil {
		return same && a.KeepRecentTokens == b.KeepRecentTokens
	}
	return same && *a.KeepRecentTokens == *b.KeepRecentTokens
}

// begin plans a run, tells of it, and starts it. It returns the run that is under
// way already, if one is; and the id of the run, another than r's for a request
// that is repeated.
func (e *Engine) begin(ctx context.Context, r *run, req store.Request, makePlan func(*store.Reader, protocol.Budget) (*plan, error)) (other *run, cursor, id string, err error) {
	budget, counter, err := e.window(r.client)
	if err != nil {
		return nil, "", "", err
	}
	r.counter = counter
	s, err := e.summariser(r.client.Settings, r.client.Model, r.client.Keys)
	if err != nil {
		return nil, "", "", err
	}
	if other, err := e.reserve(r); other != nil || err != nil {
		return other, "", "", err
	}
	started := false
	defer func() {
		if !started {
			e.release(r)
		}
	}()
	req.Cause = "compaction"
	out, err := store.Apply(ctx, r.sess, req, func(tx *store.Tx) (string, error) {
		reader, err := r.sess.Reader()
		if err != nil {
			return "", err
		}
		defer reader.Close()
		p, err := makePlan(reader, budget)
		if err != nil {
			return "", err
		}
		e.mu.Lock()
		r.plan = p
		e.mu.Unlock()
		if r.draft {
			return r.id, nil
		}
		return r.id, tx.BeginCompaction(r.id, protocol.Event{Trigger: r.trigger, TokensBefore: p.before})
	})
	if err != nil || out.Result != r.id {
		return nil, out.Cursor, out.Result, err
	}
	started = true
	go e.execute(r, s)
	return nil, out.Cursor, r.id, nil
}

// notice tells the other windows why there was nothing to do.
func (e *Engine) notice(r *run, why error) {
	_, err := store.Apply(context.WithoutCancel(e.root), r.sess, store.Request{Origin: r.origin}, func(tx *store.Tx) (struct{}, error) {
		tx.Emit(protocol.Event{Type: protocol.EventLocalCommand, Text: "Nothing was compacted: " + why.Error()})
		return struct{}{}, nil
	})
	if err != nil {
		e.Logger.Warn("a notice is not told", zap.String("session", r.sess.ID()), zap.Error(err))
	}
}

// execute carries a run out, and ends it, whatever happens (fault 69).
func (e *Engine) execute(r *run, s Summariser) {
	defer e.release(r)
	defer func() {
		if p := recover(); p != nil {
			e.Logger.Error("a compaction panicked", zap.Any("panic", p), zap.Stack("stack"))
			e.fail(r, protocol.Errorf(protocol.CodeInternal, "internal error in the compaction: the log has the details"))
		}
	}()
	out, err := e.summarise(r.ctx, r, s)
	if err != nil && r.ctx.Err() == nil && r.client.Settings.Compaction.Fallback == Extractive && s.Name() != Extractive && fallsBack(err) {
		e.Logger.Warn("the summariser failed; falling back to the built-in one", zap.String("summariser", s.Name()), zap.Error(err))
		usage := usageOf(out)
		if out, err = e.summarise(r.ctx, r, NewExtractive()); err == nil {
			out.fellBack, out.usage = true, usage
		}
	}
	if err == nil {
		err = e.check(r, out)
	}
	switch {
	case err != nil:
		e.fail(r, err)
	case r.draft:
		e.keepDraft(r, out)
	default:
		e.finish(r, out)
	}
}

// fallsBack reports whether another summariser could do better.
func fallsBack(err error) bool {
	return protocol.CodeOf(err) != protocol.CodeStaleCompaction && model.ClassOf(err) != model.ClassCancelled
}

func usageOf(out *outcome) *protocol.Usage {
	if out == nil {
		return nil
	}
	return out.usage
}

// fail ends a run that changes nothing.
func (e *Engine) fail(r *run, cause error) {
	r.ends()
	r.result = protocol.CompactionResult{CompactionID: r.id, State: protocol.RunFailed, TokensBefore: r.plan.before, Error: nodeError(cause)}
	event := protocol.Event{Type: protocol.EventCompactFailed, CompactionID: r.id, Trigger: r.trigger, Error: r.result.Error, TokensBefore: r.plan.before}
	if r.ctx.Err() != nil {
		r.result.State, event.Type = protocol.RunCancelled, protocol.EventCompactCancel
		r.result.Error, event.Error = nil, nil
		if errors.Is(context.Cause(r.ctx), errShutdown) {
			r.result.State, event.Type = protocol.RunFailed, protocol.EventCompactFailed
			r.result.Error = &protocol.NodeError{Code: protocol.CodeServerRestarted, Message: "convls ended while this compaction was under way, and nothing was changed", Retryable: true}
			event.Error = r.result.Error
		}
	} else {
		e.Logger.Warn("a compaction failed", zap.String("session", r.sess.ID()), zap.String("compaction", r.id), zap.Error(cause))
	}
	if r.draft {
		r.result.Cursor = r.sess.Cursor()
		return
	}
	out, err := store.Apply(context.WithoutCancel(r.ctx), r.sess, r.request(), func(tx *store.Tx) (struct{}, error) {
		if r.trigger != protocol.TriggerManual && r.result.State == protocol.RunFailed && counts(r.result.Error.Code) {
			if err := r.breaks(tx); err != nil {
				return struct{}{}, err
			}
		}
		return struct{}{}, tx.EndCompaction(event)
	})
	if err != nil {
		e.Logger.Error("the end of a compaction is not told", zap.String("session", r.sess.ID()), zap.Error(err))
	}
	r.result.Cursor = out.Cursor
}

func (r *run) request() store.Request {
	return store.Request{Origin: r.origin, Cause: "compaction", Unreserved: true}
}

// nodeError returns why a run failed, in the wire's form.
func nodeError(err error) *protocol.NodeError {
	if refusal, ok := errors.AsType[*Refusal](err); ok {
		return &protocol.NodeError{Code: protocol.CodeSummaryRefused, Reason: string(refusal.Reason), Message: refusal.Message, Hint: refusal.hint()}
	}
	if me, ok := errors.AsType[*model.Error](err); ok {
		return me.Node()
	}
	n := &protocol.NodeError{Code: protocol.CodeInternal, Message: err.Error()}
	if pe, ok := errors.AsType[*protocol.Error](err); ok {
		n.Code, n.Retryable = pe.Code, pe.Data.Retryable || pe.Code == protocol.CodeStaleCompaction
	}
	return n
}

// Wait returns how a run ended, and until then tells progress, unless that is nil,
// which call of how many the summariser is making. If ctx ends first the run goes on.
func (e *Engine) Wait(ctx context.Context, sess *store.Session, id string, progress func(call, calls int)) (protocol.CompactionResult, error) {
	r := e.find(sess.ID())
	if r == nil || r.id != id {
		return e.outcome(sess, id, sess.Cursor())
	}
	for {
		call, calls, moved := r.at()
		if progress != nil && call > 0 {
			progress(call, calls)
		}
		select {
		case <-moved:
		case <-r.done:
			return r.result, nil
		case <-ctx.Done():
			return protocol.CompactionResult{}, ctx.Err()
		}
	}
}

// outcome returns how an earlier run ended.
func (e *Engine) outcome(sess *store.Session, id, cursor string) (protocol.CompactionResult, error) {
	if r := e.find(sess.ID()); r != nil && r.id == id {
		if !r.ending() {
			return protocol.CompactionResult{CompactionID: id, State: protocol.RunRunning, Cursor: cursor}, nil
		}
		<-r.done // its end may have been told already
	}
	e.mu.Lock()
	res, ok := e.ended.byID[id]
	e.mu.Unlock()
	if ok {
		return res, nil
	}
	return committed(sess, id, cursor)
}

// committed looks for the summary of a run that an earlier process carried out.
func committed(sess *store.Session, id, cursor string) (protocol.CompactionResult, error) {
	res := protocol.CompactionResult{CompactionID: id, State: protocol.RunFailed, Cursor: cursor, Error: &protocol.NodeError{
		Code: protocol.CodeServerRestarted, Message: "the run ended without a summary before convls was started again", Retryable: true}}
	r, err := sess.Reader()
	if err != nil {
		return res, err
	}
	defer r.Close()
	for seq, err := range r.Summaries() {
		if err != nil {
			return res, err
		}
		content, err := r.Content(seq)
		if err != nil || content.Provenance == nil || content.Provenance.CompactionID != id {
			continue
		}
		s, err := r.Skeleton(seq)
		if err != nil {
			return res, err
		}
		return protocol.CompactionResult{CompactionID: id, State: protocol.RunFinished, SummaryID: s.ID, Covered: int64(content.Covers.Count),
			TokensBefore: content.Provenance.TokensBefore, TokensAfter: content.Provenance.TokensAfter, Cursor: cursor}, nil
	}
	return res, nil
}

// Cancel ends a session's run and returns how it ended: one that was about to be
// committed is finished.
func (e *Engine) Cancel(ctx context.Context, sess *store.Session, id string) (protocol.CompactionResult, error) {
	r := e.find(sess.ID())
	if r == nil || id != "" && r.id != id {
		if id == "" {
			return protocol.CompactionResult{}, protocol.Errorf(protocol.CodeNothingToCompact, "no compaction of this session is under way")
		}
		res, err := e.outcome(sess, id, sess.Cursor())
		if err == nil && res.State == protocol.RunFailed && res.Error.Code == protocol.CodeServerRestarted && !strings.HasPrefix(id, runPrefix) {
			return protocol.CompactionResult{}, protocol.Errorf(protocol.CodeInvalidParams, "compaction_id %.80q is none that compaction/run gave", id)
		}
		return res, err
	}
	r.stop(errCancelled)
	select {
	case <-r.done:
		return r.result, nil
	case <-ctx.Done():
		return protocol.CompactionResult{}, fmt.Errorf("wait for the end of the compaction: %w", ctx.Err())
	}
}
