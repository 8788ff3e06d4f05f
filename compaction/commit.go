package compaction

import (
	"context"
	"slices"
	"time"

	"go.uber.org/zap"

	"convls/projection"
	"convls/protocol"
	"convls/store"
)

// finish commits a run's summary: one node, the active summary, and the event, in
// one batch, if the ledger on which the summary was made still stands.
func (e *Engine) finish(r *run, out *outcome) {
	var res protocol.CompactionResult
	applied, err := store.Apply(context.WithoutCancel(r.ctx), r.sess, r.request(), func(tx *store.Tx) (struct{}, error) {
		if !r.commit() {
			return struct{}{}, context.Cause(r.ctx)
		}
		var err error
		res, err = r.write(tx, out)
		return struct{}{}, err
	})
	if err != nil {
		e.fail(r, err)
		return
	}
	res.Cursor = applied.Cursor
	r.result = res
	e.Logger.Info("compacted", zap.String("session", r.sess.ID()), zap.String("summary", res.SummaryID), zap.Int64("covered", res.Covered),
		zap.Int64("tokens_before", res.TokensBefore), zap.Int64("tokens_after", res.TokensAfter))
}

// write adds the summary to a transaction.
func (r *run) write(tx *store.Tx, out *outcome) (protocol.CompactionResult, error) {
	p := r.plan
	if err := r.stands(tx); err != nil {
		return protocol.CompactionResult{}, err
	}
	info, err := tx.Info()
	if err != nil {
		return protocol.CompactionResult{}, err
	}
	rolling := info.Policy != protocol.PolicyPerBranch
	raw, err := r.rendersRaw(tx, rolling)
	if err != nil {
		return protocol.CompactionResult{}, err
	}
	content, err := r.content(out, info.Policy)
	if err != nil {
		return protocol.CompactionResult{}, err
	}
	spec := store.SummarySpec{First: p.first.Seq, Last: p.last.Seq, Content: content, Tokens: r.counter.Parts(content.Parts), Tokenizer: r.counter.ID(), Activate: rolling}
	if p.previous != nil && r.trigger != protocol.TriggerRebuild {
		spec.Previous = p.previous.Summary.Seq
	}
	sk, err := tx.AppendSummary(spec)
	if err != nil {
		return protocol.CompactionResult{}, err
	}
	after := p.before - p.covered + out.tokens
	res := protocol.CompactionResult{CompactionID: r.id, State: protocol.RunFinished, SummaryID: sk.ID, Covered: int64(p.count()),
		TokensBefore: p.before, TokensAfter: after, RawTips: raw, Summariser: out.name}
	// Under per-branch a rebuild of a shorter summary leaves the longer one standing.
	if !rolling && (p.previous == nil || p.count() >= p.previous.Covers.Count) {
		tx.Emit(protocol.Event{Type: protocol.EventSummaryActive, SummaryID: sk.ID, Summaries: []string{sk.ID}})
	}
	if err := tx.SetBreaker(store.Breaker{}); err != nil {
		return res, err
	}
	return res, tx.EndCompaction(protocol.Event{Type: protocol.EventCompactFinished, CompactionID: r.id, SummaryID: sk.ID, Covered: res.Covered,
		TokensBefore: p.before, TokensAfter: after, DurationMS: time.Since(r.started).Milliseconds(), Trigger: r.trigger,
		UsedPrevious: spec.Previous != 0, FellBack: out.fellBack})
}

// content is the summary node's.
func (r *run) content(out *outcome, policy string) (store.Content, error) {
	p := r.plan
	m, err := protocol.Marshal(out.manifest)
	if err != nil {
		return store.Content{}, err
	}
	params := map[string]any{"keep_recent_tokens": r.spec.KeepRecentTokens, "instructions": r.spec.Instructions, "summary_limit": summaryLimit(p.budget),
		"window": p.budget.Window, "trigger": p.budget.TriggerAt, "tokenizer": r.counter.ID()}
	for k, v := range out.params {
		params["summariser_"+k] = v
	}
	parameters, err := protocol.Marshal(params)
	if err != nil {
		return store.Content{}, err
	}
	prov := &protocol.Provenance{CompactionID: r.id, Trigger: r.trigger, Policy: policy, PolicyVersion: PolicyVersion, Model: out.name, Parameters: parameters,
		PromptSHA256: out.prompt, SourceSHA256: out.digest, FromID: p.from.ID, Rejected: out.rejected, Edited: out.edited,
		TokensBefore: p.before, TokensAfter: p.before - p.covered + out.tokens, DurationMS: time.Since(r.started).Milliseconds(), Usage: out.usage, FellBack: out.fellBack}
	rebuilt := r.trigger == protocol.TriggerRebuild
	if p.previous != nil && !rebuilt {
		prov.PreviousID = p.previous.Summary.ID
	}
	return store.Content{Parts: text(out.text), Model: out.name, DurationMS: prov.DurationMS, Usage: out.usage, Reads: p.reads(rebuilt),
		Metadata: map[string]protocol.Raw{"compaction": protocol.Raw("true")}, Manifest: m, Provenance: prov}, nil
}

// stands checks that the ledger is what the summary was made on: the same summary
// stands in the branch, and every covered node is there and unredacted. The latter
// costs nothing unless something was deleted or redacted meanwhile.
func (r *run) stands(tx *store.Tx) error {
	p := r.plan
	if same, err := r.sameSummary(tx); err != nil {
		return err
	} else if !same {
		return protocol.Errorf(protocol.CodeStaleCompaction, "another summary became active while this one was made: nothing was changed")
	}
	if tx.State.Removals == p.removals {
		return nil
	}
	if p.previous != nil {
		if void, err := tx.Void(p.previous.Summary.Seq); err != nil || void {
			return gone(err, "the summary before this one lost a message")
		}
	}
	for s, err := range tx.Path(p.from, p.last) {
		if err != nil {
			return gone(err, "a message was deleted while it was being summarised")
		}
		if s.Redacted {
			return gone(nil, "a message was redacted while it was being summarised")
		}
		for tool, err := range tx.Tools(s.Seq) {
			if err != nil || tool.Redacted {
				return gone(err, "a tool's result was redacted while it was being summarised")
			}
		}
	}
	for _, seq := range p.asides {
		s, err := tx.Skeleton(seq)
		if err != nil || s.Redacted {
			return gone(err, "a call or a spawned turn was taken away while it was being summarised")
		}
	}
	return nil
}

// sameSummary reports whether the branch has the summary that it had: under
// per-branch an undo does not change which one the session names.
func (r *run) sameSummary(tx *store.Tx) (bool, error) {
	p := r.plan
	if tx.State.Active != p.active {
		return false, nil
	}
	reader, err := r.sess.Reader()
	if err != nil {
		return false, err
	}
	defer reader.Close()
	if _, err := reader.Skeleton(p.head.Seq); protocol.CodeOf(err) == protocol.CodeUnknownNode {
		return true, nil // the branch lost its tip; what it lost more is checked by itself
	} else if err != nil {
		return false, err
	}
	now, _, err := projection.Substituted(reader, p.head)
	if err != nil || now == nil || p.previous == nil {
		return now == nil && p.previous == nil, err
	}
	return now.Summary.Seq == p.previous.Summary.Seq, nil
}

func gone(err error, what string) error {
	if err != nil && protocol.CodeOf(err) != protocol.CodeUnknownNode {
		return err
	}
	return &protocol.Error{Code: protocol.CodeStaleCompaction, Message: what + ": nothing was changed", Cause: err}
}

// rendersRaw returns the tips in whose views the present summary stands, and the
// new one would not. If HEAD is there the run is stale: the person went to a branch
// that the present summary serves while this run was under way.
func (r *run) rendersRaw(tx *store.Tx, rolling bool) ([]string, error) {
	p := r.plan
	if !rolling || tx.State.Active == 0 {
		return nil, nil
	}
	void, err := tx.Void(tx.State.Active)
	if err != nil || void {
		return nil, err
	}
	old, err := tx.Covers(tx.State.Active)
	if err != nil {
		return nil, nil //nolint:nilerr // a damaged summary stands nowhere
	}
	oldLast, err := tx.Skeleton(old.Last)
	if err != nil {
		return nil, nil //nolint:nilerr // as above
	}
	leaves, err := tx.Leaves()
	if err != nil {
		return nil, err
	}
	at := []store.Seq{tx.State.Head}
	for _, l := range leaves {
		if l.Seq != tx.State.Head {
			at = append(at, l.Seq)
		}
	}
	var raw []string
	for _, seq := range at {
		s, err := tx.Skeleton(seq)
		if err != nil {
			return nil, err
		}
		was, err := tx.IsAncestor(oldLast, s)
		if err != nil {
			return nil, err
		}
		is, err := tx.IsAncestor(p.last, s)
		if err != nil {
			return nil, err
		}
		if !was || is {
			continue
		}
		if seq == tx.State.Head {
			return nil, protocol.Errorf(protocol.CodeStaleCompaction, "HEAD went to a branch that the present summary serves and the new one would not: nothing was changed")
		}
		raw = append(raw, s.ID)
	}
	slices.Sort(raw)
	return raw, nil
}

// breaks counts a failure of an automatic run.
func (r *run) breaks(tx *store.Tx) error {
	b, err := tx.Breaker()
	if err != nil {
		return err
	}
	if b.Model != r.client.Model {
		b.Failures = 0
	}
	b.Failures, b.Model = b.Failures+1, r.client.Model
	return tx.SetBreaker(b)
}

// counts reports whether a failure says something of the next try. A run that the
// ledger moved away under does not.
func counts(code protocol.Code) bool {
	return code != protocol.CodeStaleCompaction && code != protocol.CodeServerRestarted
}
