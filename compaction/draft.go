package compaction

import (
	"context"
	"slices"
	"strings"
	"time"

	"convls/compaction/manifest"
	"convls/protocol"
	"convls/store"
)

// draft is a summary that waits for a person. It is kept in memory alone: nothing
// that was redacted meanwhile can be left behind in it on disk.
type draft struct {
	id      string
	run     *run
	out     *outcome
	expires time.Time
}

const (
	// draftLife is how long a draft waits.
	draftLife = time.Hour
	// maxDrafts is how many a session may have; the oldest goes.
	maxDrafts = 8
)

// keepDraft ends a run whose summary is not committed yet.
func (e *Engine) keepDraft(r *run, out *outcome) {
	d := &draft{id: store.NewID("dft_"), run: r, out: out, expires: time.Now().Add(draftLife)}
	e.mu.Lock()
	e.trimDrafts(r.sess.ID())
	e.drafts[d.id] = d
	e.mu.Unlock()
	m, err := protocol.Marshal(out.manifest)
	if err != nil {
		e.fail(r, err)
		return
	}
	after := r.plan.before - r.plan.covered + out.tokens
	r.result = protocol.CompactionResult{CompactionID: r.id, State: protocol.RunDrafted, Covered: int64(r.plan.count()), TokensBefore: r.plan.before, TokensAfter: after,
		Cursor: r.sess.Cursor(), Draft: &protocol.CompactionDraft{DraftID: d.id, Text: out.text, Manifest: m, Head: r.plan.head.ID, Covered: int64(r.plan.count()),
			TokensBefore: r.plan.before, TokensAfter: after, ExpiresAt: d.expires.UTC()}}
}

// trimDrafts takes out what expired, and the oldest of a session that has too many.
func (e *Engine) trimDrafts(session string) {
	var oldest *draft
	count := 0
	for id, d := range e.drafts {
		if time.Now().After(d.expires) {
			delete(e.drafts, id)
			continue
		}
		if d.run.sess.ID() != session {
			continue
		}
		count++
		if oldest == nil || d.expires.Before(oldest.expires) {
			oldest = d
		}
	}
	if count >= maxDrafts {
		delete(e.drafts, oldest.id)
	}
}

// takeDraft returns a draft, and takes it out.
func (e *Engine) takeDraft(session, id string) (*draft, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	d := e.drafts[id]
	if d == nil || d.run.sess.ID() != session || time.Now().After(d.expires) {
		return nil, protocol.Errorf(protocol.CodeUnknownDraft, "there is no draft %q: drafts wait for an hour, and not over a restart", id)
	}
	delete(e.drafts, id)
	return d, nil
}

// Discard throws a draft away. A request that is repeated gets the same answer.
func (e *Engine) Discard(ctx context.Context, sess *store.Session, req store.Request, id string) error {
	req.Cause = "discard"
	_, err := store.Apply(ctx, sess, req, func(*store.Tx) (struct{}, error) {
		_, err := e.takeDraft(sess.ID(), id)
		return struct{}{}, err
	})
	return err
}

// Commit commits a draft, with the manifest and the text that a person may have
// edited. What they wrote is checked as everything else is, except that they may
// add what no message says: such items have the source "edit". A draft whose commit
// is refused stays.
func (e *Engine) Commit(ctx context.Context, sess *store.Session, req store.Request, id string, edited protocol.Raw, prose *string) (protocol.CompactionResult, error) {
	d, err := e.takeDraft(sess.ID(), id)
	if err != nil {
		return e.repeatedCommit(ctx, sess, req, err)
	}
	kept := false
	defer func() {
		if !kept {
			e.mu.Lock()
			e.drafts[d.id] = d
			e.mu.Unlock()
		}
	}()
	out, err := e.edit(d, edited, prose)
	if err != nil {
		return protocol.CompactionResult{}, err
	}
	r := &run{id: store.NewID(runPrefix), sess: sess, trigger: protocol.TriggerDraft, spec: d.run.spec, client: d.run.client, origin: req.Origin, counter: d.run.counter,
		plan: d.run.plan, started: time.Now()}
	if err := e.check(r, out); err != nil {
		return protocol.CompactionResult{}, refused(err)
	}
	if other, err := e.reserve(r); err != nil {
		return protocol.CompactionResult{}, err
	} else if other != nil {
		return protocol.CompactionResult{}, running(other)
	}
	defer e.release(r)
	var res protocol.CompactionResult
	req.Cause = "compaction"
	applied, err := store.Apply(ctx, sess, req, func(tx *store.Tx) (string, error) {
		tx.Emit(protocol.Event{Type: protocol.EventCompactStarted, CompactionID: r.id, Trigger: r.trigger, TokensBefore: r.plan.before})
		var err error
		res, err = r.write(tx, out)
		return r.id, err
	})
	if err != nil {
		// Whoever cancels meanwhile is told how it ended.
		r.result = protocol.CompactionResult{CompactionID: r.id, State: protocol.RunFailed, TokensBefore: r.plan.before, Error: nodeError(err), Cursor: sess.Cursor()}
		return protocol.CompactionResult{}, err
	}
	kept = true
	res.Cursor = applied.Cursor
	r.result = res
	return res, nil
}

// repeatedCommit answers a commit whose draft is gone: a request that was sent
// before gets its result again.
func (e *Engine) repeatedCommit(ctx context.Context, sess *store.Session, req store.Request, unknown error) (protocol.CompactionResult, error) {
	out, err := store.Apply(ctx, sess, req, func(*store.Tx) (string, error) { return "", unknown })
	if err != nil {
		return protocol.CompactionResult{}, err
	}
	return e.outcome(sess, out.Result, out.Cursor)
}

// edit returns a draft's summary as a person left it.
func (e *Engine) edit(d *draft, edited protocol.Raw, prose *string) (*outcome, error) {
	out := *d.out
	if len(edited) > 0 && edited.Kind() != 'n' {
		said, err := e.said(d)
		if err != nil {
			return nil, err
		}
		m, err := manifest.DecodeEdited(edited, d.out.manifest, said)
		if err != nil {
			return nil, protocol.Errorf(protocol.CodeInvalidParams, "the edited manifest: %v", err)
		}
		out.manifest, out.edited = m, true
	}
	// A text that is there and empty is one that a person emptied: it is checked, and
	// refused, like any other.
	if prose != nil {
		masked, _ := manifest.Mask(*prose)
		if manifest.Scratch(strings.TrimPrefix(masked, protocol.SummaryMarker)) {
			return nil, refused(&Refusal{Reason: ReasonScratch, Message: "the text begins with a model's private notes: take them out"})
		}
		if added := addedLines(d.out.text, masked); added != "" {
			m := *out.manifest
			m.Pinned = append(slices.Clone(m.Pinned), manifest.Verbatim{ID: manifest.EditSource, Role: roleEdit, Text: added})
			out.manifest = &m
		}
		out.text, out.edited = protocol.SummaryMarker+"\n"+strings.TrimPrefix(strings.TrimPrefix(masked, protocol.SummaryMarker), "\n"), true
		return &out, nil
	}
	if out.edited {
		if err := e.render(d.run, &out); err != nil {
			return nil, refused(err)
		}
	}
	return &out, nil
}

// roleEdit is the role of a verbatim text that a person wrote into a summary.
const roleEdit manifest.Role = "edit"

// addedLines returns the lines that a person added to a text: later summaries, which
// are written from the manifest, carry them on.
func addedLines(before, after string) string {
	known := map[string]bool{}
	for line := range strings.Lines(before) {
		known[strings.TrimSpace(line)] = true
	}
	var added []string
	for line := range strings.Lines(after) {
		if line = strings.TrimSpace(line); line != "" && line != protocol.SummaryMarker && !known[line] {
			added = append(added, line)
		}
	}
	return strings.Join(added, "\n")
}

// said returns what the covered nodes of a draft say, by their ids.
func (e *Engine) said(d *draft) (map[string]string, error) {
	said := map[string]string{}
	for w, err := range e.nodes(d.run, d.run.plan.first, d.run.plan.last) {
		if err != nil {
			return nil, err
		}
		m := message(w)
		said[m.ID] = m.Body()
	}
	return said, nil
}

// refused turns a refusal into an error of the request.
func refused(err error) error {
	n := nodeError(err)
	if n.Code == protocol.CodeInternal {
		return err
	}
	return &protocol.Error{Code: n.Code, Message: n.Message, Data: protocol.ErrorData{Reason: n.Reason, Retryable: n.Retryable}}
}
