package manifest

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"

	"convls/protocol"
)

// DecodeEdited reads a manifest that a person edited, and completes what they left
// out: a new item needs nothing but its text. An item that differs from the one with
// its id in drafted counts as a message's word only if its quote stands in one of its
// sources, whose texts said has by their ids; otherwise its source is [EditSource],
// and its quote what they wrote. A source that said does not have is refused. Members that a manifest does not have are refused: a section that is
// spelt wrong would be lost without a word. What is wrong is a [*FieldError].
func DecodeEdited(raw protocol.Raw, drafted *Manifest, said map[string]string) (*Manifest, error) {
	m := &Manifest{}
	if err := json.Unmarshal(raw, m, json.RejectUnknownMembers(true)); err != nil {
		return nil, misfit(raw, err)
	}
	if m.SourceRange == (SourceRange{}) {
		return nil, fieldErrorf("source_range", "is missing")
	}
	m.LastItem = max(m.LastItem, drafted.LastItem)
	for _, s := range Sections() {
		items := *m.section(s)
		for i := range items {
			if err := completeEdit(m, s, &items[i], drafted, said); err != nil {
				return nil, fmt.Errorf("%s[%d]: %w", s, i, err)
			}
		}
	}
	if text := scratchTag(strings.TrimSpace(m.Narrative)); text != "" {
		return nil, fieldErrorf("narrative", "has a private block <%s>", text)
	}
	m.SourceRange, m.Retired, m.RetiredUnlisted, m.Unlisted = drafted.SourceRange, slices.Clone(drafted.Retired), drafted.RetiredUnlisted, drafted.Unlisted
	if m.Pinned == nil {
		m.Pinned = []Verbatim{}
	}
	return m, Validate(m)
}

// misfit says what is wrong with the shape of an edited manifest.
func misfit(raw protocol.Raw, err error) error {
	if raw.Kind() != '{' {
		return fieldErrorf("manifest", "is no object")
	}
	where, ok := errors.AsType[*json.SemanticError](err)
	if !ok {
		return fieldErrorf("manifest", "is no JSON: %v", err)
	}
	field := strings.ReplaceAll(strings.TrimPrefix(string(where.JSONPointer), "/"), "/", ".")
	if errors.Is(err, json.ErrUnknownName) {
		return fieldErrorf(field, "is no member of a manifest: it would be lost")
	}
	return fieldErrorf(field, "has a value of the wrong kind")
}

func completeEdit(m *Manifest, s Section, item *Item, drafted *Manifest, said map[string]string) error {
	section, old, found := drafted.Find(item.ID)
	if found && section == s && old.Text == item.Text && old.Quote == item.Quote && old.Status == item.Status && old.Kind == item.Kind && old.Handle == item.Handle &&
		old.Negative == item.Negative && slices.Equal(old.Sources, item.Sources) {
		return nil
	}
	item.Text, _ = Mask(item.Text)
	item.Quote, _ = Mask(item.Quote)
	if item.Text == "" && item.Handle == "" {
		return fieldErrorf("text", "is empty")
	}
	if item.ID == "" {
		item.ID = m.newID(s)
	}
	if item.Status == "" {
		item.Status = usualStatus(s)
	}
	if s == Tests && item.Kind == "" {
		item.Kind = Passed
	}
	if s == Artifacts && item.Kind == "" {
		item.Kind = Other
	}
	// The words of a person about a message are theirs, unless the message says them.
	text := item.Text
	if text == "" {
		text = item.Handle
	}
	proved := item.Quote != "" && strings.Contains(normalise(item.Quote), normalise(text))
	for _, id := range item.Sources {
		if _, ok := said[id]; !ok && id != EditSource {
			return fieldErrorf("sources", "names %q, which is not covered", id)
		}
	}
	item.Sources = slices.DeleteFunc(slices.Clone(item.Sources), func(id string) bool {
		return id != EditSource && (!proved || !Holds(said[id], item.Quote))
	})
	if len(item.Sources) == 0 || slices.Contains(item.Sources, EditSource) {
		item.Sources, item.Quote = []string{EditSource}, text
		if s == Artifacts && !strings.Contains(text, item.Handle) {
			item.Quote = text + " " + item.Handle
		}
		if s == Constraints {
			item.Negative = readCues(text).has(cueNegative)
		}
	}
	return nil
}

// Scratch tells whether a text begins with a model's private notes.
func Scratch(text string) bool { return scratchTag(strings.TrimSpace(text)) != "" }

// Holds tells whether a text has a quote word for word, white space aside.
func Holds(text, quote string) bool { return strings.Contains(normalise(text), normalise(quote)) }
