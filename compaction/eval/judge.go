package eval

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"convls/compaction/manifest"
)

// Tally is how many of the planted items of a kind are held.
type Tally struct {
	Kept    int `json:"kept"`
	Planted int `json:"planted"`
}

// Whole tells whether all are held.
func (t Tally) Whole() bool { return t.Kept == t.Planted }

func (t *Tally) add(kept bool) {
	t.Planted++
	if kept {
		t.Kept++
	}
}

// Verdict is how one summary stands against the truth. Each list is empty when all
// is well, and says in words what is wrong when it is not.
type Verdict struct {
	// Constraints are those that demand, Prohibitions those that forbid.
	Constraints  Tally `json:"constraints"`
	Prohibitions Tally `json:"prohibitions"`
	// Identities are paths, hashes, call ids and branches.
	Identities Tally `json:"identities"`
	// OpenTasks is the unfinished work that is recalled.
	OpenTasks Tally `json:"open_tasks"`
	// Lost are planted items of these four that are missing.
	Lost []string `json:"lost"`
	// Invented are items that say what the conversation does not.
	Invented []string `json:"invented"`
	// Identity are handles that were never named, or that two items share.
	Identity []string `json:"identity_errors"`
	// Status are suppositions that are held as certain, and prohibitions that are
	// not marked as such.
	Status []string `json:"status_errors"`
}

func newVerdict() Verdict {
	return Verdict{Lost: []string{}, Invented: []string{}, Identity: []string{}, Status: []string{}}
}

// Judge compares a summary, as a manifest and as the text that a model reads, with
// what was planted. An item is held only if both have it, to the letter.
// conversation is every message up to the last one that the summary covers.
func Judge(m *manifest.Manifest, text string, truth Truth, conversation []manifest.Message) Verdict {
	v := newVerdict()
	for _, sentence := range truth.Constraints {
		tally := &v.Constraints
		prohibition := slices.Contains(truth.Prohibitions, sentence)
		if prohibition {
			tally = &v.Prohibitions
		}
		i := slices.IndexFunc(m.Constraints, func(item manifest.Item) bool { return strings.Contains(item.Quote, sentence) })
		v.hold(tally, i >= 0 && strings.Contains(text, sentence), "constraint "+sentence)
		if i >= 0 && prohibition && !m.Constraints[i].Negative {
			v.Status = append(v.Status, "not marked as a prohibition: "+sentence)
		}
	}
	v.identities(m, text, truth, conversation)
	v.inventions(m, truth, conversation)
	for s, item := range m.Items() {
		for _, h := range truth.Hypotheses {
			if item.Status.Firm() && s != manifest.Goal && strings.Contains(strings.ToLower(item.Text), h) {
				v.Status = append(v.Status, fmt.Sprintf("%s %s is a %s: %s", s, item.ID, item.Status, item.Text))
			}
		}
	}
	for _, task := range truth.Open {
		listed := slices.ContainsFunc(m.OpenTasks, func(item manifest.Item) bool { return strings.Contains(item.Text, task) })
		v.hold(&v.OpenTasks, listed && strings.Contains(text, task), "open task "+task)
	}
	return v
}

func (v *Verdict) hold(t *Tally, kept bool, what string) {
	t.add(kept)
	if !kept {
		v.Lost = append(v.Lost, what)
	}
}

func (v *Verdict) identities(m *manifest.Manifest, text string, truth Truth, conversation []manifest.Message) {
	have := map[string]manifest.Kind{}
	for _, item := range m.Artifacts {
		if _, twice := have[item.Handle]; twice {
			v.Identity = append(v.Identity, "two items for "+item.Handle)
		}
		have[item.Handle] = item.Kind
	}
	var planted []string
	for _, group := range []struct {
		kind    manifest.Kind
		handles []string
	}{{manifest.Path, truth.Paths}, {manifest.Hash, truth.Hashes}, {manifest.CallID, truth.CallIDs}, {manifest.Branch, truth.Branches}} {
		for _, h := range group.handles {
			planted = append(planted, h)
			got, ok := have[h]
			v.hold(&v.Identities, ok && strings.Contains(text, h), fmt.Sprintf("%s %s", group.kind, h))
			if ok && got != group.kind {
				v.Identity = append(v.Identity, fmt.Sprintf("%s is a %s and held as a %s", h, group.kind, got))
			}
		}
	}
	for _, item := range m.Artifacts {
		if slices.Contains(planted, item.Handle) {
			continue
		}
		// Something else that was named is fine; a piece of a planted name is not.
		piece := slices.ContainsFunc(planted, func(h string) bool { return strings.Contains(h, item.Handle) || strings.Contains(item.Handle, h) })
		named := slices.ContainsFunc(conversation, func(m manifest.Message) bool { return strings.Contains(m.Text, item.Handle) })
		if piece || !named {
			v.Identity = append(v.Identity, "never named: "+item.Handle)
		}
	}
}

func (v *Verdict) inventions(m *manifest.Manifest, truth Truth, conversation []manifest.Message) {
	vocabulary := map[string]bool{}
	for _, message := range conversation {
		for _, w := range wordsOf(message.Text + " " + message.CallID + " " + message.Name) {
			vocabulary[w] = true
		}
	}
	results := slices.Concat(truth.Failed, truth.Passed)
	for s, item := range m.Items() {
		for _, w := range wordsOf(item.Text) {
			if !vocabulary[w] {
				v.Invented = append(v.Invented, fmt.Sprintf("%s %s: nobody said %q: %s", s, item.ID, w, item.Text))
				break
			}
		}
		stated := func(sentence string) bool { return strings.Contains(flat(item.Quote), flat(sentence)) }
		asked := func(message manifest.Message) bool {
			return message.Role == manifest.RoleUser && strings.Contains(flat(message.Text), item.Quote)
		}
		if s == manifest.Constraints && !slices.ContainsFunc(conversation, asked) {
			v.Invented = append(v.Invented, fmt.Sprintf("%s %s: nobody asked for it: %s", s, item.ID, item.Text))
		}
		if sentence := turned(item, truth); sentence != "" {
			v.Invented = append(v.Invented, fmt.Sprintf("%s %s: it is turned round: %s, where was said: %s", s, item.ID, item.Text, sentence))
		}
		if s == manifest.Tests && !slices.ContainsFunc(results, stated) {
			v.Invented = append(v.Invented, fmt.Sprintf("%s %s: no such result: %s", s, item.ID, item.Text))
		}
	}
}

// turned returns the planted constraint that an item says with more or fewer words
// that forbid, and so turns round; "" if there is none.
func turned(item manifest.Item, truth Truth) string {
	text := flat(item.Text)
	for _, sentence := range truth.Constraints {
		words := strings.Fields(sentence)
		order := 1 // how many words it begins with say whether it demands or forbids
		if len(words) > 5 {
			order = 3
		}
		rest := strings.Join(words[order:], " ")
		at := strings.Index(text, rest)
		if rest == "" || at < 0 {
			continue
		}
		start := strings.LastIndex(text[:at], ". ") + 1 // of the sentence, 0 if it is the first
		if forbids(text[start:at+len(rest)]) != forbids(sentence) {
			return sentence
		}
	}
	return ""
}

// forbids counts the words of a planted sentence that forbid.
func forbids(text string) int {
	n := 0
	for _, w := range wordsOf(text) {
		if slices.Contains([]string{"never", "not", "without", "niemals"}, w) {
			n++
		}
	}
	return n
}

func flat(text string) string { return strings.Join(strings.Fields(text), " ") }

func wordsOf(text string) []string {
	return strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
}
