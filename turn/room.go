package turn

import (
	"context"
	"fmt"
	"slices"

	"go.uber.org/zap"

	"convls/compaction"
	"convls/model"
	"convls/protocol"
	"convls/store"
)

// maxPasses is how many compactions may follow one another before one model call:
// a switch to a much smaller window can need more than one (fault 30).
const maxPasses = 4

// makeRoom compacts before a call that would pass the trigger, and returns the
// prompt that is to be sent. tried says that a compaction was tried and made no
// room. Where none makes room, and the prompt can not fit, it is an error that says
// what to do (fault 27).
func (e *Engine) makeRoom(r *run, p *prompt) (_ *prompt, tried bool, err error) {
	for range maxPasses {
		b := p.budget(r.settings)
		if b.Used < b.TriggerAt {
			return p, false, nil
		}
		next, err := e.compact(r, p, protocol.TriggerAuto)
		if r.ctx.Err() != nil {
			return p, true, context.Cause(r.ctx)
		}
		if next == nil || err != nil {
			return p, true, overflow(p, r.settings, err)
		}
		if next.estimate >= p.estimate {
			return next, true, overflow(next, r.settings, nil)
		}
		p = next
	}
	return p, true, overflow(p, r.settings, nil)
}

// compact compacts what a prompt is made from, and renders the prompt anew; nil if
// there was nothing to compact, or nothing may be.
func (e *Engine) compact(r *run, p *prompt, trigger protocol.Trigger) (*prompt, error) {
	at, err := read(r.sess, func(reader *store.Reader) (store.Skeleton, error) { return reader.Skeleton(r.reply.Predecessor) })
	if err != nil {
		return nil, err
	}
	done, err := e.Compaction.MakeRoom(r.ctx, r.sess, compaction.Call{Head: at, Tools: int64(p.counter.Tools(r.tools)), Trigger: trigger, Origin: r.writer.origin},
		compaction.Client{Settings: r.env.Settings, Model: r.model, Keys: r.env.Keys, ToolResultBytes: ToolResultBytes(r.env.Settings)})
	if err != nil {
		e.Logger.Warn("the context could not be compacted", zap.String("session", r.sess.ID()), zap.Error(err))
		return nil, err
	}
	if !done {
		return nil, nil
	}
	return e.prompt(r)
}

// overflow is the error of a prompt that can not fit the window, whatever the
// provider would say; nil where it may.
func overflow(p *prompt, s protocol.CompactionSettings, why error) error {
	if s.Auto != nil && !*s.Auto {
		return nil
	}
	b := p.budget(s)
	most := b.Window
	if !p.counter.Exact() {
		most += most / 4 // an estimate is no proof
	}
	if b.Used <= most {
		return nil
	}
	text := fmt.Sprintf("the context has about %d tokens and the window of the model %d", b.Used, b.Window)
	if why != nil {
		text += ", and compaction made no room: " + why.Error()
	}
	return protocol.Errorf(protocol.CodeContextOverflow, "%s", text)
}

const hintOverflow = "send a shorter message, go back with rewind, compact with other settings, or choose a model with a larger window"

// reactive answers a provider that says that the context does not fit: one
// compaction, after which the call may be made once more. It returns nil where that
// does not help, and then the error says why.
func (e *Engine) reactive(r *run, p *prompt, cause error) (*prompt, error) {
	next, err := e.compact(r, p, protocol.TriggerReactive)
	if next != nil && err == nil && next.estimate < p.estimate {
		return next, nil
	}
	if err != nil && r.ctx.Err() == nil {
		if me, ok := cause.(*model.Error); ok { //nolint:errorlint // stream hands it over as it is
			said := *me
			said.Message += "; compaction made no room: " + err.Error()
			return nil, &said
		}
	}
	return nil, cause
}

// budget returns how full the window is with a prompt.
func (p *prompt) budget(s protocol.CompactionSettings) protocol.Budget {
	return compaction.Budget(p.counter.Adjust(p.estimate), p.caps.Window, p.caps.MaxOutput, p.counter.Source(), s)
}

// advice returns the event that tells clients that the window fills, once until
// there is room again.
func (e *Engine) advice(session string, b *protocol.Budget) []protocol.Event {
	if b == nil {
		return nil
	}
	full := b.Percent >= 100*compaction.Advised
	e.mu.Lock()
	defer e.mu.Unlock()
	told := e.advised[session]
	if full == told {
		return nil
	}
	if !full {
		delete(e.advised, session)
		return nil
	}
	e.advised[session] = true
	return []protocol.Event{{Type: protocol.EventCompactAdvised, Percent: b.Percent, Budget: b}}
}

// blocked reports whether a send at head has to wait: for the turn that writes
// there, or for the compaction of what stands before it.
func (e *Engine) blocked(tx *store.Tx, head store.Skeleton) (bool, error) {
	session := tx.Session().ID()
	if e.blocking(session, head.Seq) != nil {
		return true, nil
	}
	return e.Compaction.Blocks(session, head, tx.IsAncestor)
}

// goOn begins the sends that waited for a turn, or has them wait for the compaction
// that is under way.
func (e *Engine) goOn(tx *store.Tx, tip store.Skeleton, queue []store.Queued, ended *run) (*run, error) {
	wait, err := e.Compaction.Blocks(tx.Session().ID(), tip, tx.IsAncestor)
	if err != nil {
		return nil, err
	}
	if wait {
		return nil, waitAt(tx, tip, queue)
	}
	return e.startWaiting(tx, tip, queue, ended)
}

// resume begins the sends that waited for a compaction, which has ended.
func (e *Engine) resume(sess *store.Session) {
	if e.root.Err() != nil {
		return
	}
	var begun []*run
	w := e.writer(sess, protocol.Origin{})
	err := w.resume(func(tx *store.Tx) error {
		queue, err := tx.Queue()
		if err != nil {
			return err
		}
		for _, at := range places(queue) {
			mine := slices.DeleteFunc(slices.Clone(queue), func(q store.Queued) bool { return q.After != at || q.Held })
			tip, err := tx.Skeleton(at)
			if err != nil || len(mine) == 0 || tip.Status == protocol.StatusOpen || e.find(sess.ID(), tip.ID) != nil {
				continue // its turn begins it, or nobody can tell where it belongs
			}
			if wait, err := e.blocked(tx, tip); err != nil || wait {
				continue
			}
			next, err := e.startWaiting(tx, tip, mine, nil)
			if err != nil {
				return err
			}
			if next != nil {
				begun = append(begun, next)
			}
		}
		return nil
	})
	if err != nil {
		e.Logger.Error("queued sends can not start", zap.String("session", sess.ID()), zap.Error(err))
		for _, r := range begun {
			e.unregister(r)
		}
		return
	}
	for _, r := range begun {
		go e.answer(r)
	}
	e.changed(sess.ID())
}

// places are the nodes that sends wait at.
func places(queue []store.Queued) []store.Seq {
	var at []store.Seq
	for _, q := range queue {
		if !slices.Contains(at, q.After) {
			at = append(at, q.After)
		}
	}
	return at
}

// CompactionClient is what a compaction takes from a client that asks for one.
func (e *Engine) CompactionClient(sess *store.Session, env Environment) (compaction.Client, error) {
	settings, id, err := e.effective(sess, env, "")
	if err != nil {
		return compaction.Client{}, err
	}
	return compaction.Client{Settings: settings, Model: id, Keys: env.Keys, ToolResultBytes: ToolResultBytes(settings)}, nil
}
