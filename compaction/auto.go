package compaction

import (
	"context"
	"time"

	"convls/protocol"
	"convls/store"
)

// maxFailures is how many automatic runs may fail in a row before no more are
// tried (fault 28).
const maxFailures = 3

// Call is a model call that needs room.
type Call struct {
	// Head is the node that the call answers.
	Head store.Skeleton
	// Tools is the tokens of the tools that are declared.
	Tools int64
	// Trigger is auto, or reactive after a provider said that the context does not
	// fit.
	Trigger protocol.Trigger
	Origin  protocol.Origin
}

// MakeRoom compacts the branch of a model call, and returns whether it did. It
// returns false where there is nothing to do: automatic compaction is off, or was
// stopped by failures or an undo, or there is nothing to cover. An error is that of
// a run that failed: the context is as it was.
func (e *Engine) MakeRoom(ctx context.Context, sess *store.Session, call Call, c Client) (bool, error) {
	if auto := c.Settings.Compaction.Auto; auto != nil && !*auto {
		return false, nil
	}
	for {
		if off, err := e.off(sess, c.Model); off || err != nil {
			return false, err
		}
		r := &run{id: store.NewID(runPrefix), sess: sess, trigger: call.Trigger, client: c, origin: call.Origin, started: time.Now()}
		other, _, _, err := e.begin(ctx, r, store.Request{Origin: call.Origin, Unreserved: true}, func(reader *store.Reader, budget protocol.Budget) (*plan, error) {
			return planRun(reader, e.options(r.counter, c), budget, c.Settings.Compaction, request{head: call.Head, trigger: call.Trigger, fixed: call.Tools})
		})
		switch {
		case protocol.CodeOf(err) == protocol.CodeNothingToCompact:
			return false, nil
		case err != nil:
			return false, err
		case other == nil:
			other = r
		}
		select {
		case <-other.done:
		case <-ctx.Done():
			if other == r {
				r.stop(errCancelled)
				<-r.done
			}
			return false, ctx.Err()
		}
		if other == r || other.result.State == protocol.RunFinished {
			return other.result.State == protocol.RunFinished, resultError(other.result)
		}
		// Another run was under way, and has made no room: now this one can begin.
	}
}

// off reports whether automatic runs are stopped in a session.
func (e *Engine) off(sess *store.Session, model string) (bool, error) {
	r, err := sess.Reader()
	if err != nil {
		return false, err
	}
	defer r.Close()
	b, err := r.Breaker()
	return b.Undone || b.Failures >= maxFailures && b.Model == model, err
}

func resultError(res protocol.CompactionResult) error {
	if res.Error == nil {
		return nil
	}
	return &protocol.Error{Code: res.Error.Code, Message: res.Error.Message, Data: protocol.ErrorData{Code: res.Error.Code, Reason: res.Error.Reason, Retryable: res.Error.Retryable}}
}

// Stopped says why automatic compaction does not run in a session; "" if it does.
func (e *Engine) Stopped(sess *store.Session, model string, s protocol.CompactionSettings) string {
	if s.Auto != nil && !*s.Auto {
		return "automatic compaction is switched off (compaction.auto)"
	}
	r, err := sess.Reader()
	if err != nil {
		return ""
	}
	defer r.Close()
	b, err := r.Breaker()
	switch {
	case err != nil:
		return ""
	case b.Undone:
		return "a compaction was undone: automatic ones wait until you compact by hand or redo it"
	case b.Failures >= maxFailures && b.Model == model:
		return "automatic compaction failed three times and waits until you compact by hand or change the model"
	}
	return ""
}
