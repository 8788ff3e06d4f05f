package manifest

import (
	"slices"
	"strings"
)

// merge takes in what the extractor finds. It never fails: what it finds is
// quoted from the covered text by construction.
func (r *reducer) merge(covered []Message, limit int, hasGoal bool) {
	found, unlisted := extract(covered, limit)
	r.m.Unlisted += unlisted
	have := r.index()
	for i := range found {
		f := &found[i]
		if f.request && (hasGoal || len(r.m.Goal) > 0) {
			continue // the goal was stated, by a model from this message or before it
		}
		item := Item{Text: f.text, Status: f.status, Sources: f.sources, Quote: f.quote, Kind: f.kind, Handle: f.handle}
		item.Negative = r.negative(f.section, f.quote)
		if old := r.same(have, f, &item); old != nil {
			unite(old, &item)
			old.Kind = item.Kind // by rule, where a model may have guessed
			continue
		}
		if r.settled(f) {
			have = r.index() // a task may have moved
			continue
		}
		if f.optional() && len(*r.m.section(f.section)) >= limit {
			r.m.Unlisted++
			continue
		}
		item.ID = r.newID(f.section)
		items := r.m.section(f.section)
		*items = append(*items, item)
		have[itemKey(f.section, &item)] = len(*items) - 1
	}
}

// optional tells whether a finding may be left out of a section that is full. What
// the user says and what the assistant names is taken in any case.
func (f *finding) optional() bool {
	return f.role == RoleTool || f.role == RoleAssistant && f.section != Artifacts
}

// itemKey is equal for two items of a section that are the same.
func itemKey(s Section, item *Item) string {
	if s == Artifacts {
		return string(s) + "\x00" + item.Handle
	}
	return string(s) + "\x00" + sameText(item.Text)
}

func (r *reducer) index() map[string]int {
	have := map[string]int{}
	for _, s := range Sections() {
		items := *r.m.section(s)
		for i := range items {
			have[itemKey(s, &items[i])] = i
		}
	}
	return have
}

// same returns the item that already says what f says: the same handle, the same
// text, or, in other words, an item that quotes the same sentence of the same
// message.
func (r *reducer) same(have map[string]int, f *finding, item *Item) *Item {
	items := *r.m.section(f.section)
	if i, ok := have[itemKey(f.section, item)]; ok && i < len(items) {
		return &items[i]
	}
	if f.section == Artifacts || f.section == Tests {
		return nil
	}
	for i := range items {
		old := &items[i]
		if old.Quote != "" && slices.Contains(old.Sources, f.sources[0]) && (strings.Contains(old.Quote, f.quote) || strings.Contains(f.quote, old.Quote)) {
			return old
		}
	}
	return nil
}

// settled tells whether a found task or supposition was dealt with later in the
// covered text: the sentence that opened it does not open it again. A finding
// that work is done also moves the open task of the same text.
func (r *reducer) settled(f *finding) bool {
	switch f.section {
	case Completed:
		for i, task := range r.m.OpenTasks {
			if sameText(task.Text) == sameText(f.text) {
				r.m.OpenTasks = slices.Delete(r.m.OpenTasks, i, i+1)
				task.Status = Fact
				task.quoteFrom(&Item{Quote: f.quote, Sources: f.sources})
				r.m.Completed = append(r.m.Completed, task)
				return true
			}
		}
	case OpenTasks:
		same := sameText(f.text)
		for _, done := range r.m.Completed {
			if sameText(done.Text) != same {
				continue
			}
			for _, id := range done.Sources {
				if at, ok := r.order[id]; ok && at >= f.at {
					return true
				}
			}
		}
	}
	return false
}

// narrate sets the narrative. A blank one, or one that is not accepted, leaves the
// previous one as it is.
func (r *reducer) narrate(text string, covered []Message) *rejected {
	text = strings.TrimSpace(text)
	if text == "" {
		return nil
	}
	for _, tag := range []string{"<analysis", "<think", "<reasoning", "<scratchpad"} {
		if strings.Contains(strings.ToLower(text), tag) {
			return reject(RuleNarrative, "the narrative has a private block: leave it out")
		}
	}
	text = clip(text, MaxNarrative)
	flat := normalise(text)
	if repeats(flat, covered, r) {
		return reject(RuleNarrative, "the narrative repeats its input word for word: say in a few sentences where the work stands")
	}
	for _, name := range names(flat) {
		if !r.known(name) {
			return reject(RuleNarrative, "the narrative names %q, which neither the covered text nor the manifest has", name)
		}
	}
	r.m.Narrative = text
	return nil
}

// longRun is how much of the covered text, in bytes, a narrative may not repeat.
const longRun = 200

// repeats tells whether text holds longRun bytes in a row of a covered message.
// Such a run holds one of the aligned pieces of half the length, so that only
// those are looked up.
func repeats(text string, covered []Message, r *reducer) bool {
	const piece = longRun / 2
	for i := range covered {
		if len(covered[i].Text) < longRun {
			continue
		}
		norm := r.passage(covered[i].ID).norm
		for at := 0; at+piece <= len(text); at += piece {
			k := strings.Index(norm, text[at:at+piece])
			if k >= 0 && runAround(text, at, norm, k) >= longRun {
				return true
			}
		}
	}
	return false
}

// runAround returns the length of the common run of a at i and b at k.
func runAround(a string, i int, b string, k int) int {
	start, end := 0, 0
	for i-start > 0 && k-start > 0 && a[i-start-1] == b[k-start-1] {
		start++
	}
	for i+end < len(a) && k+end < len(b) && a[i+end] == b[k+end] {
		end++
	}
	return start + end
}

// known tells whether a covered message, an item or the previous narrative has the
// name.
func (r *reducer) known(name string) bool {
	for _, item := range r.m.Items() {
		if occurs(item.Text, name) || occurs(item.Quote, name) || item.Handle == name {
			return true
		}
	}
	if occurs(r.m.Narrative, name) {
		return true
	}
	for _, m := range r.covered {
		if occurs(m.Body(), name) {
			return true
		}
	}
	return false
}
