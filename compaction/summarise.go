package compaction

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"convls/compaction/manifest"
	"convls/model"
	"convls/projection"
	"convls/protocol"
	"convls/store"
)

// roleSummary is the role of a verbatim text that is another program's summary.
const roleSummary manifest.Role = "summary"

// memory is what a compaction begins with.
type memory struct {
	manifest *manifest.Manifest
	// digest is the previous summary's source_sha256.
	digest string
	// verbatim is what is carried on word for word, within its share.
	verbatim []manifest.Verbatim
}

// outcome is a summary that is ready to be checked.
type outcome struct {
	manifest *manifest.Manifest
	text     string
	// tokens are those of the summary as the model reads it, framed.
	tokens   int64
	name     string
	fellBack bool
	edited   bool
	digest   string
	messages int64
	rejected int
	usage    *protocol.Usage
	prompt   string
	params   map[string]any
}

// summarise has the plan's nodes summarised. What it returns is not checked yet; with
// an error it has what the calls used.
func (e *Engine) summarise(ctx context.Context, r *run, s Summariser) (*outcome, error) {
	p := r.plan
	mem, err := e.remember(r)
	if err != nil {
		return nil, err
	}
	source, total := newFingerprint(), int64(0)
	messages := func(yield func(manifest.Message, error) bool) {
		p.asides = nil
		for w, err := range e.nodes(r, p.from, p.last) {
			if err == nil {
				err = source.add(w)
			}
			if w.Aside {
				p.asides = append(p.asides, w.Node.Seq)
			}
			if err != nil {
				yield(manifest.Message{}, err)
				return
			}
			total++
			if !yield(message(w), nil) {
				return
			}
		}
	}
	out := &outcome{name: s.Name()}
	limit := summaryLimit(p.budget)
	now, known, room, call := mem.manifest, (*manifest.Manifest)(nil), int64(0), 0
	beside := func() (_ int64, err error) {
		known, room, err = e.recall(s, now, r.spec.Instructions)
		return room, err
	}
	for c, err := range chunks(messages, beside, s.Count) {
		if err != nil {
			return out, err
		}
		call++
		if call > maxCalls {
			return out, protocol.Errorf(protocol.CodeContextOverflow,
				"the messages do not fit into %d calls of %s: compact them in parts with up_to_id, or set compaction.model to extractive", maxCalls, s.Name())
		}
		r.progress(call, calls(p.covered, room, call))
		q := Question{Previous: known, Messages: c.shown, Instructions: r.spec.Instructions, MaxTokens: limit}
		answer, err := e.ask(ctx, s, q, Question{Previous: now, Messages: c.messages}, out)
		if err != nil {
			return out, err
		}
		var rejected []manifest.Rejection
		now, rejected = manifest.Reduce(now, answer.Changes, c.messages, manifest.Options{MaxItems: maxItems(limit)})
		out.rejected += len(rejected)
		if bytes := textBytes(now); bytes > 8*largestSummary(p.budget) {
			// It has outgrown what any summary of this window may hold: what would go in the
			// end goes now, so that a long history costs what it says and not its square.
			if now, err = manifest.Squeeze(now, 2*largestSummary(p.budget), byLine(r.counter.Text)); err != nil {
				return nil, &Refusal{Reason: ReasonOverBudget, Message: err.Error()}
			}
		}
	}
	if now == nil {
		return nil, fmt.Errorf("nothing was read between nodes %q and %q", p.from.ID, p.last.ID)
	}
	complete := *now
	complete.Pinned = mem.verbatim
	complete.SourceRange = manifest.SourceRange{FirstID: p.first.ID, LastID: p.last.ID, Count: now.SourceRange.Count}
	out.manifest, out.messages, out.digest = &complete, total, source.sum(mem.digest)
	out.prompt, out.params = s.Record()
	return out, e.render(r, out)
}

// textBytes returns about how much text a manifest holds.
func textBytes(m *manifest.Manifest) int {
	n := 0
	for _, item := range m.Items() {
		n += len(item.Text) + len(item.Quote) + len(item.Handle)
	}
	return n
}

// maxCalls bounds the model calls of one run.
const maxCalls = 256

// maxItems is how many items of a section fit a summary of limit tokens.
func maxItems(limit int) int { return min(max(limit/40, 24), manifest.MaxItems) }

// calls estimates how many calls a run takes, call of which have been made.
func calls(tokens, room int64, call int) int {
	if room <= 0 {
		return max(call, 1)
	}
	return max(int((tokens+room-1)/room), call)
}

// recall returns the memory as the summariser is shown it, and how many tokens of
// messages one call takes beside it. Where the memory would take more than half of
// what a call can read, the summariser is shown the part of it that is never dropped
// and what fits beside that; the memory itself stays whole.
func (e *Engine) recall(s Summariser, now *manifest.Manifest, asked string) (*manifest.Manifest, int64, error) {
	empty, err := s.Room(nil, asked)
	if err != nil || empty == 0 || now == nil {
		return now, empty, err
	}
	room, err := s.Room(now, asked)
	if err == nil && room >= empty/2 {
		return now, room, nil
	}
	for limit := empty / 2; limit >= empty/8; limit = limit * 3 / 4 {
		part, fitErr := manifest.Fit(now, int(limit), s.Count)
		if fitErr != nil {
			break
		}
		if beside, roomErr := s.Room(part, asked); roomErr == nil && beside >= empty/3 {
			return part, beside, nil
		}
	}
	return now, room, err
}

// ask asks the summariser, and a second time if the answer can be repaired. An
// answer none of whose changes holds is none (fault 5 and "unknown sources"). What the
// summariser is asked can be less than the whole that its answer is held against.
func (e *Engine) ask(ctx context.Context, s Summariser, q, whole Question, out *outcome) (Answer, error) {
	for {
		answer, err := s.Summarise(ctx, q)
		if answer.Usage.Calls > 0 {
			sum := answer.Usage
			if out.usage != nil {
				sum = out.usage.Add(sum)
			}
			out.usage = &sum
		}
		if err == nil {
			answer.Changes = masked(answer.Changes)
			err = grounded(whole, answer)
		}
		refusal, ok := errors.AsType[*Refusal](err)
		if !ok || !refusal.Repairable || q.Repair != nil {
			return answer, err
		}
		said, _ := manifest.Mask(answer.Text)
		q.Repair = &Repair{Answer: said, Problem: refusal.Message}
	}
}

// masked takes secrets out of what a summariser says. It was shown none, so these
// are its own, or were told to it otherwise.
func masked(c manifest.Changes) manifest.Changes {
	c.Narrative, _ = manifest.Mask(c.Narrative)
	c.Changes = slices.Clone(c.Changes)
	for i := range c.Changes {
		change := &c.Changes[i]
		for _, text := range []*string{&change.Text, &change.Quote, &change.Handle} {
			*text, _ = manifest.Mask(*text)
		}
	}
	return c
}

// grounded refuses an answer that is made up from the first change to the last.
func grounded(q Question, a Answer) error {
	if len(a.Changes.Changes) == 0 {
		return nil
	}
	_, rejected := manifest.Reduce(q.Previous, a.Changes, q.Messages, manifest.Options{})
	rejected = slices.DeleteFunc(rejected, func(r manifest.Rejection) bool { return r.Index < 0 }) // the narrative is no change
	if len(rejected) < len(a.Changes.Changes) {
		return nil
	}
	var reasons []string
	for _, r := range rejected[:min(len(rejected), 5)] {
		reasons = append(reasons, fmt.Sprintf("changes[%d]: %s", r.Index, r.Reason))
	}
	return &Refusal{Reason: ReasonUnknownSources, Repairable: true, Message: "no change holds against the messages: " + strings.Join(reasons, "; ")}
}

// batch is how many chain nodes are read at once: between batches nothing is held
// of the ledger, so that a run that takes minutes is in nobody's way.
const batch = 512

// nodes yields the nodes of a stretch in order, a batch at a time.
func (e *Engine) nodes(r *run, first, last store.Skeleton) iter.Seq2[projection.Whole, error] {
	return func(yield func(projection.Whole, error) bool) {
		for depth := first.Depth; depth <= last.Depth; depth += batch {
			whole, err := e.readBatch(r, last, depth, min(depth+batch-1, last.Depth))
			if err != nil {
				yield(projection.Whole{}, err)
				return
			}
			for _, w := range whole {
				if !yield(w, nil) {
					return
				}
			}
		}
	}
}

// readBatch reads the chain nodes of a branch between two depths.
func (e *Engine) readBatch(r *run, tip store.Skeleton, from, to uint64) ([]projection.Whole, error) {
	reader, err := r.sess.Reader()
	if err != nil {
		return nil, err
	}
	defer reader.Close()
	first, err := reader.AncestorAt(tip, from)
	if err != nil {
		return nil, stale(err)
	}
	last, err := reader.AncestorAt(tip, to)
	if err != nil {
		return nil, stale(err)
	}
	var whole []projection.Whole
	for w, err := range projection.Stretch(reader, first, last, projection.Options{Head: tip, Other: e.Store.Session}) {
		if err != nil {
			return nil, stale(err)
		}
		whole = append(whole, w)
	}
	return whole, nil
}

// stale turns the loss of a node under the run's hands into what it means.
func stale(err error) error {
	if protocol.CodeOf(err) == protocol.CodeUnknownNode {
		return &protocol.Error{Code: protocol.CodeStaleCompaction, Message: "a message was deleted while it was being summarised: nothing was changed", Cause: err}
	}
	return err
}

// remember reads what the run begins with: the previous summary's manifest, and
// what is carried on word for word.
func (e *Engine) remember(r *run) (memory, error) {
	var mem memory
	reader, err := r.sess.Reader()
	if err != nil {
		return mem, err
	}
	defer reader.Close()
	p := r.plan
	if p.previous != nil && r.trigger != protocol.TriggerRebuild {
		content, err := reader.Content(p.previous.Summary.Seq)
		if err != nil {
			return mem, err
		}
		if content.Provenance != nil {
			mem.digest = content.Provenance.SourceSHA256
		}
		mem.manifest, err = manifest.Decode(content.Manifest)
		if err != nil {
			// Another program's summary, or an edited one: its text is all there is.
			mem.manifest = nil
			text, _ := manifest.Mask(strings.TrimPrefix(strings.TrimPrefix(store.Text(content.Parts), protocol.SummaryMarker), "\n"))
			mem.verbatim = append(mem.verbatim, manifest.Verbatim{ID: p.previous.Summary.ID, Role: roleSummary, Text: text})
		} else {
			for _, v := range mem.manifest.Pinned {
				if v.Role == roleSummary || v.Role == roleEdit {
					mem.verbatim = append(mem.verbatim, v)
				}
			}
		}
	}
	err = e.verbatim(reader, r, &mem)
	return mem, err
}

// verbatim adds the pinned nodes of the whole covered stretch, and the message of
// the turn that the cut divides. What goes over its share is named in its place.
func (e *Engine) verbatim(reader *store.Reader, r *run, mem *memory) error {
	p := r.plan
	carried, limit := 0, pinnedLimit(p.budget)
	add := func(s store.Skeleton) error {
		content, err := reader.Content(s.Seq)
		if err != nil {
			return err
		}
		m := message(projection.Whole{Node: s, Content: content, Parts: content.Parts, Why: why(s)})
		if tokens := r.counter.Text(m.Text); carried+tokens > limit {
			m.Text = fmt.Sprintf("[pinned, and not carried: its %d tokens are over the %d that pinned messages have in a summary]", tokens, limit)
		} else {
			carried += tokens
		}
		mem.verbatim = append(mem.verbatim, manifest.Verbatim{ID: m.ID, Role: m.Role, Text: m.Text})
		return nil
	}
	pinned := map[store.Seq]bool{}
	for seq, err := range reader.Pins() {
		if err != nil {
			return err
		}
		s, err := reader.Skeleton(seq)
		if err != nil {
			return err
		}
		if in, err := covers(reader, p, s); err != nil {
			return err
		} else if in && !s.Redacted {
			pinned[seq] = true
			if err := add(s); err != nil {
				return err
			}
		}
	}
	if p.turn.Seq == 0 || pinned[p.turn.Seq] {
		return nil
	}
	if in, err := covers(reader, p, p.turn); err != nil || !in {
		return err
	}
	return add(p.turn)
}

func why(s store.Skeleton) protocol.Why {
	if s.Kind.OnChain() {
		return protocol.WhySpine
	}
	return protocol.WhySubtree
}

// covers reports whether a plan takes a node out of the view.
func covers(r *store.Reader, p *plan, s store.Skeleton) (bool, error) {
	owner, err := r.Owner(s)
	if err != nil || owner.Depth < p.first.Depth || owner.Depth > p.last.Depth {
		return false, err
	}
	return r.IsAncestor(owner, p.last)
}

// render brings the manifest under its limit and writes the prose.
func (e *Engine) render(r *run, out *outcome) error {
	pinned := 0
	for _, v := range out.manifest.Pinned {
		pinned += r.counter.Text(v.Text) // pinned text has a share of its own
	}
	count := byLine(r.counter.Text)
	fitted, err := manifest.Fit(out.manifest, summaryLimit(r.plan.budget)+pinned, count)
	if _, ok := errors.AsType[*manifest.TooLargeError](err); ok {
		// What must not be dropped may take more than its share, as long as there is room
		// for a conversation.
		fitted, err = manifest.Fit(out.manifest, largestSummary(r.plan.budget)+pinned, count)
	}
	if _, ok := errors.AsType[*manifest.TooLargeError](err); ok {
		fitted, err = manifest.Squeeze(out.manifest, largestSummary(r.plan.budget)+pinned, count)
	}
	if tooLarge, ok := errors.AsType[*manifest.TooLargeError](err); ok {
		return &Refusal{Reason: ReasonOverBudget, Message: tooLarge.Error()}
	}
	if err != nil {
		return err
	}
	// A summary that would save nothing says less, if it can, rather than be refused.
	const frame = 100
	if most := int(r.plan.covered) - frame; count(fitted.Render(manifest.RenderOptions{})) > most {
		if smaller, err := manifest.Fit(fitted, most, count); err == nil {
			fitted = smaller
		}
	}
	out.manifest = fitted
	out.text = protocol.SummaryMarker + "\n" + fitted.Render(manifest.RenderOptions{})
	return nil
}

// byLine counts a text line by line, and each line once: fitting a manifest counts
// renderings of it that differ in a few lines. A text never has more tokens than its
// lines together.
func byLine(count func(string) int) func(string) int {
	known := map[string]int{}
	return func(text string) int {
		total := 0
		for line := range strings.Lines(text) {
			n, ok := known[line]
			if !ok {
				n = count(line)
				known[line] = n
			}
			total += n
		}
		return total
	}
}

// summariser returns the summariser that the settings name.
func (e *Engine) summariser(settings protocol.Settings, conversation string, keys model.KeySource) (Summariser, error) {
	id := settings.Compaction.Model
	if id == "" {
		id = conversation
	}
	usual := func() (Summariser, error) { return e.usual(settings, id, keys) }
	if e.Summarisers != nil {
		return e.Summarisers(id, usual)
	}
	return usual()
}

// usual makes the summariser of an id.
func (e *Engine) usual(settings protocol.Settings, id string, keys model.KeySource) (Summariser, error) {
	if id == Extractive || id == model.Offline || strings.HasPrefix(id, model.Offline+"/") { // an import may name it so
		return NewExtractive(), nil
	}
	provider, name, err := e.Models.Resolve(settings, id, keys)
	if err != nil {
		return nil, fmt.Errorf("the summariser %s: %w", id, err)
	}
	counter, err := e.Models.Counter(settings, id)
	if err != nil {
		return nil, fmt.Errorf("the summariser %s: %w", id, err)
	}
	return newAsker(provider, id, name, counter, settings.Compaction), nil
}

// reads are the nodes whose content is in a summary: those that were read as they
// are with their tools, the exposed calls and spawned turns, and the summary before.
func (p *plan) reads(rebuilt bool) []store.Run {
	runs := []store.Run{{First: p.from.Seq, Last: p.last.Seq, Tools: true}}
	if p.previous != nil && !rebuilt {
		runs = slices.Insert(runs, 0, store.Run{First: p.previous.Summary.Seq, Last: p.previous.Summary.Seq})
	}
	for _, seq := range p.asides {
		runs = append(runs, store.Run{First: seq, Last: seq})
	}
	return runs
}
