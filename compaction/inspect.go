package compaction

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"convls/compaction/manifest"
	"convls/projection"
	"convls/protocol"
	"convls/store"
)

// The sizes of pages of ids.
const (
	pageIDs    = 1_000
	maxPageIDs = 10_000
)

// Preview says what a run would do, without calling a model. The size of the
// summary is an estimate.
func (e *Engine) Preview(sess *store.Session, spec protocol.CompactionSpec, c Client, limit int, cursor string) (*protocol.CompactionPreview, error) {
	budget, counter, err := e.window(c)
	if err != nil {
		return nil, err
	}
	s, err := e.summariser(c.Settings, c.Model, c.Keys)
	if err != nil {
		return nil, err
	}
	reader, err := sess.Reader()
	if err != nil {
		return nil, err
	}
	defer reader.Close()
	if limit, err = checkPage(limit, cursor); err != nil {
		return nil, err
	}
	out := &protocol.CompactionPreview{CoveredIDs: []string{}, KeptIDs: []string{}, Summariser: s.Name()}
	p, err := planRun(reader, e.options(counter, c), budget, c.Settings.Compaction, request{spec: spec, trigger: protocol.TriggerManual})
	if p != nil {
		out.Head, out.TokensBefore, out.TokensAfter = p.head.ID, p.before, p.before
		for _, u := range p.units[max(p.cut, len(p.units)-pageIDs):] {
			out.KeptIDs = append(out.KeptIDs, u.node.ID)
		}
	}
	if protocol.CodeOf(err) == protocol.CodeNothingToCompact {
		out.WhyNot = err.Error()
		return out, nil
	}
	if err != nil {
		return nil, err
	}
	if p.previous != nil {
		out.PreviousID = p.previous.Summary.ID
	}
	out.Covered, out.NewlyCovered = int64(p.count()), int64(p.last.Depth-p.from.Depth+1)
	if out.CoveredIDs, out.Next, err = page(reader, p.first, p.last, limit, cursor); err != nil {
		return nil, err
	}
	if s.Name() == Extractive {
		return e.exactPreview(&run{sess: sess, spec: spec, client: c, counter: counter, plan: p, trigger: protocol.TriggerManual}, s, out), nil
	}
	size := estimate(p)
	out.TokensAfter = p.before - p.covered + size
	room, err := s.Room(nil, spec.Instructions)
	if err != nil {
		out.WhyNot = err.Error()
		return out, nil //nolint:nilerr // it is said in the preview
	}
	out.Calls = calls(p.covered, room, 0)
	if size >= p.covered {
		out.WhyNot = "the summary would be about as large as what it replaces"
	}
	return out, nil
}

// exactPreview has the built-in rules write the summary, which costs nothing, and
// throws it away.
func (e *Engine) exactPreview(r *run, s Summariser, preview *protocol.CompactionPreview) *protocol.CompactionPreview {
	r.ctx, r.moved = e.root, make(chan struct{})
	out, err := e.summarise(e.root, r, s)
	if err == nil {
		err = e.check(r, out)
	}
	if out != nil && out.tokens > 0 {
		preview.TokensAfter = r.plan.before - r.plan.covered + out.tokens
	}
	if err != nil {
		preview.WhyNot = err.Error()
	}
	return preview
}

// estimate returns about how many tokens the summary of a plan will have: its
// share, or a quarter of what it covers if that is less.
func estimate(p *plan) int64 {
	const least = 150 // headings and frame
	return max(min(int64(summaryLimit(p.budget)), p.covered/4), least)
}

// checkPage checks what a page is asked with, and returns how many ids it has.
func checkPage(limit int, cursor string) (int, error) {
	if limit == 0 {
		limit = pageIDs
	}
	if limit < 0 || limit > maxPageIDs {
		return 0, protocol.Errorf(protocol.CodeInvalidParams, "limit is 1 to %d, not %d", maxPageIDs, limit)
	}
	if cursor != "" {
		if _, err := strconv.ParseUint(cursor, 10, 64); err != nil {
			return 0, protocol.Errorf(protocol.CodeInvalidParams, "the cursor is none of a former reply")
		}
	}
	return limit, nil
}

// page returns a page of the ids from first to last. The cursor is the place of
// the first id.
func page(r *store.Reader, first, last store.Skeleton, limit int, cursor string) (ids []string, next string, err error) {
	if limit, err = checkPage(limit, cursor); err != nil {
		return nil, "", err
	}
	count, at := last.Depth-first.Depth+1, uint64(0)
	if cursor != "" {
		if at, err = strconv.ParseUint(cursor, 10, 64); err != nil || at >= count {
			return nil, "", protocol.Errorf(protocol.CodeInvalidParams, "cursor %q is none of a former reply", cursor)
		}
	}
	end := min(at+uint64(limit), count)
	from, err := r.AncestorAt(last, first.Depth+at)
	if err != nil {
		return nil, "", err
	}
	to, err := r.AncestorAt(last, first.Depth+end-1)
	if err != nil {
		return nil, "", err
	}
	ids = []string{}
	for s, err := range r.Path(from, to) {
		if err != nil {
			return nil, "", err
		}
		ids = append(ids, s.ID)
	}
	slices.Reverse(ids)
	if end < count {
		next = strconv.FormatUint(end, 10)
	}
	return ids, next, nil
}

// summaryOf returns a summary and what it covers.
func summaryOf(r *store.Reader, id string) (store.Skeleton, store.Covers, error) {
	s, err := r.Lookup(id)
	if protocol.CodeOf(err) == protocol.CodeUnknownNode || err == nil && s.Kind != protocol.KindSummary {
		return s, store.Covers{}, protocol.Errorf(protocol.CodeUnknownSummary, "session %s has no summary %q: compaction/list names them", r.SessionID(), id)
	}
	if err != nil {
		return s, store.Covers{}, err
	}
	covers, err := r.Covers(s.Seq)
	return s, covers, err
}

// Covers returns a page of the ids that a summary stands for.
func Covers(r *store.Reader, id string, limit int, cursor string) (*protocol.CompactionCoversResult, error) {
	_, covers, err := summaryOf(r, id)
	if err != nil {
		return nil, err
	}
	first, err := r.Skeleton(covers.First)
	if err != nil {
		return nil, err
	}
	last, err := r.Skeleton(covers.Last)
	if err != nil {
		return nil, err
	}
	out := &protocol.CompactionCoversResult{Count: int64(covers.Count)}
	out.CoversIDs, out.Next, err = page(r, first, last, limit, cursor)
	return out, err
}

// List returns a session's summaries, the newest first.
func (e *Engine) List(r *store.Reader) (*protocol.CompactionListResult, error) {
	info, err := r.Info()
	if err != nil {
		return nil, err
	}
	head, err := r.Skeleton(r.State.Head)
	if err != nil {
		return nil, err
	}
	out := &protocol.CompactionListResult{Policy: info.Policy, Summaries: []protocol.SummaryInfo{}}
	if out.ActiveSummaries, err = projection.ActiveSummaries(r, head); err != nil {
		return nil, err
	}
	sub, _, err := projection.Substituted(r, head)
	if err != nil {
		return nil, err
	}
	for seq, err := range r.Summaries() {
		if err != nil {
			return nil, err
		}
		s, err := describe(r, seq, head)
		if err != nil {
			return nil, err
		}
		s.Applies = sub != nil && sub.Summary.Seq == seq
		out.Summaries = append(out.Summaries, s)
	}
	slices.Reverse(out.Summaries)
	out.Undo, out.Redo = steps(out.Summaries)
	if running := e.Running(r.SessionID()); len(running) > 0 {
		out.Running = &running[0]
	}
	return out, nil
}

// steps returns the moves from the summary that applies, of summaries that are listed
// newest first. A summary leads back to the one that it was made from, and forward to
// the newest of those made from it; without one, forward leads to the first of the
// newest chain. What is void is passed over.
func steps(summaries []protocol.SummaryInfo) (undo, redo *protocol.SummaryStep) {
	present := map[string]bool{"": true}
	now := ""
	for _, s := range summaries {
		present[s.SummaryID] = !s.Void
		if s.Applies {
			now = s.SummaryID
		}
	}
	for _, s := range summaries {
		previous := ""
		if s.Provenance != nil && present[s.Provenance.PreviousID] {
			previous = s.Provenance.PreviousID
		}
		switch {
		case s.Applies:
			undo = &protocol.SummaryStep{SummaryID: previous, Covered: s.Covered}
		case redo == nil && !s.Void && previous == now:
			redo = &protocol.SummaryStep{SummaryID: s.SummaryID, Covered: s.Covered}
		}
	}
	return undo, redo
}

func describe(r *store.Reader, seq store.Seq, head store.Skeleton) (protocol.SummaryInfo, error) {
	sk, err := r.Skeleton(seq)
	if err != nil {
		return protocol.SummaryInfo{}, err
	}
	s := protocol.SummaryInfo{SummaryID: sk.ID, CreatedAt: sk.Created, Tokens: int64(sk.Tokens)}
	if s.Active, err = projection.Active(r, seq, head); err != nil {
		return s, err
	}
	if s.VoidReason, s.Void, err = r.VoidReason(seq); err != nil {
		return s, err
	}
	if s.Undone, err = projection.Undone(r, seq); err != nil {
		return s, err
	}
	if covers, err := r.Covers(seq); err == nil { // what lost its nodes names none
		s.Covered = int64(covers.Count)
		if first, err := r.Skeleton(covers.First); err == nil {
			s.FirstID = first.ID
		}
		if last, err := r.Skeleton(covers.Last); err == nil {
			s.LastID = last.ID
		}
	}
	if content, err := r.Content(seq); err == nil { // a damaged one is still listed
		s.Preview = projection.PreviewOf(sk, content)
		s.Provenance = content.Provenance
	}
	return s, nil
}

// Verify computes a summary's fingerprint anew and looks for what is wrong with
// it. It reads every message that the summary was made from.
func (e *Engine) Verify(sess *store.Session, id string) (*protocol.CompactionVerifyResult, error) {
	r, err := sess.Reader()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	s, covers, err := summaryOf(r, id)
	if err != nil {
		return nil, err
	}
	out := &protocol.CompactionVerifyResult{SummaryID: s.ID, Problems: []string{}}
	if why, void, err := r.VoidReason(s.Seq); err != nil {
		return nil, err
	} else if void {
		out.Problems = append(out.Problems, "it is void: "+why)
	}
	content, err := r.Content(s.Seq)
	if err != nil {
		return nil, err
	}
	if content.Provenance == nil || content.Provenance.SourceSHA256 == "" {
		out.Problems = append(out.Problems, "it has no fingerprint: another program made it, or it was redacted")
		return out, nil
	}
	out.Recorded = content.Provenance.SourceSHA256
	if err := e.recompute(r, covers, content, out); err != nil {
		out.Problems = append(out.Problems, err.Error())
	}
	if out.OK = out.Computed == out.Recorded; !out.OK && out.Computed != "" {
		out.Problems = append(out.Problems, "the covered messages are not those that were summarised")
	}
	m, err := manifest.Decode(content.Manifest)
	if err != nil {
		out.Problems = append(out.Problems, "its manifest does not hold: "+err.Error())
		return out, nil
	}
	unproved, err := misquoted(r, m)
	if err != nil {
		return nil, err
	}
	out.Problems = append(out.Problems, unproved...)
	return out, nil
}

// misquoted names the items of a manifest whose quote stands in none of their
// sources.
func misquoted(r *store.Reader, m *manifest.Manifest) ([]string, error) {
	said := map[string]string{}
	text := func(id string) (string, error) {
		if text, ok := said[id]; ok {
			return text, nil
		}
		s, err := r.Lookup(id)
		if err != nil {
			return "", err
		}
		content, err := r.Content(s.Seq)
		if err != nil {
			return "", err
		}
		msg := message(projection.Whole{Node: s, Content: content, Parts: slices.Concat(content.Prompt, content.Parts), Why: why(s)})
		said[id] = msg.Body()
		return said[id], nil
	}
	var problems []string
	for section, item := range m.Items() {
		if item.Quote == "" || slices.Contains(item.Sources, manifest.EditSource) {
			continue
		}
		proved := false
		for _, id := range item.Sources {
			text, err := text(id)
			if isGone(err) {
				continue
			}
			if err != nil {
				return nil, err
			}
			proved = proved || manifest.Holds(text, item.Quote) || section == manifest.Artifacts && strings.Contains(text, item.Handle)
		}
		if !proved {
			problems = append(problems, fmt.Sprintf("%s %s: what it quotes is in none of its sources", section, item.ID))
		}
	}
	return problems, nil
}

func isGone(err error) bool {
	return protocol.CodeOf(err) == protocol.CodeUnknownNode || protocol.CodeOf(err) == protocol.CodeStoreDamaged
}

func (e *Engine) recompute(r *store.Reader, covers store.Covers, summary *store.Content, out *protocol.CompactionVerifyResult) error {
	previous, prov := "", summary.Provenance
	// What was exposed after the summary was made is none of its sources.
	asides := map[store.Seq]bool{}
	for _, run := range summary.Reads {
		if run.First == run.Last {
			asides[run.First] = true
		}
	}
	if prov.PreviousID != "" {
		p, err := r.Lookup(prov.PreviousID)
		if err != nil {
			return fmt.Errorf("the summary before it is gone: %w", err)
		}
		content, err := r.Content(p.Seq)
		if err != nil {
			return err
		}
		if content.Provenance != nil {
			previous = content.Provenance.SourceSHA256
		}
	}
	from, err := r.Lookup(prov.FromID)
	if err != nil {
		return fmt.Errorf("a covered message is gone: %w", err)
	}
	last, err := r.Skeleton(covers.Last)
	if err != nil {
		return fmt.Errorf("a covered message is gone: %w", err)
	}
	source, redacted := newFingerprint(), []string{}
	for w, err := range projection.Stretch(r, from, last, projection.Options{Asides: asides, Other: e.Store.Session}) {
		if err != nil {
			return err
		}
		if w.Node.Redacted {
			redacted = append(redacted, w.Node.ID)
		}
		if err := source.add(w); err != nil {
			return err
		}
	}
	out.Messages, out.Computed = source.count, source.sum(previous)
	if len(redacted) > 0 {
		out.Problems = append(out.Problems, "redacted since: "+strings.Join(redacted[:min(len(redacted), 10)], ", "))
	}
	return nil
}
