package manifest

import (
	"fmt"
	"slices"
	"strings"

	"convls/protocol"
)

// FieldError names the field of a manifest that is wrong.
type FieldError struct {
	// Field is a path into the JSON: constraints[2].quote.
	Field string
	// Problem says what is wrong and what is expected.
	Problem string
}

// Error returns the field and the problem.
func (e *FieldError) Error() string { return e.Field + " " + e.Problem }

func fieldErrorf(field, format string, args ...any) error {
	return &FieldError{Field: field, Problem: fmt.Sprintf(format, args...)}
}

// Decode reads a manifest and checks it as [Validate] does: one that lacks a
// section, or source_range, is refused (spec/checkpoints.md, exercise D).
func Decode(raw protocol.Raw) (*Manifest, error) {
	m := &Manifest{}
	if err := protocol.Unmarshal(raw, m); err != nil {
		return nil, fmt.Errorf("read a manifest: %w", err)
	}
	if err := Validate(m); err != nil {
		return nil, fmt.Errorf("read a manifest: %w", err)
	}
	return m, nil
}

// Validate checks a manifest that was read from disk or edited by a person. It
// returns a [*FieldError] for the first field that is wrong. Whether the sources
// exist it can not know: see [CheckSources].
func Validate(m *Manifest) error {
	if m == nil {
		return fieldErrorf("manifest", "is missing")
	}
	if m.Version != Version {
		return fieldErrorf("version", "is %d: this program reads %d", m.Version, Version)
	}
	ids, handles := map[string]string{}, map[string]string{}
	for _, s := range Sections() {
		items := *m.section(s)
		if items == nil {
			return fieldErrorf(string(s), "is missing: write an empty array if there is nothing to say")
		}
		for i := range items {
			field := fmt.Sprintf("%s[%d]", s, i)
			if err := validateItem(s, &items[i], field); err != nil {
				return err
			}
			if other, taken := ids[items[i].ID]; taken {
				return fieldErrorf(field+".id", "is %q, as %s has", items[i].ID, other)
			}
			ids[items[i].ID] = field
			if s != Artifacts {
				continue
			}
			if other, taken := handles[items[i].Handle]; taken {
				return fieldErrorf(field+".handle", "is %q, as %s has: one artifact is one item", items[i].Handle, other)
			}
			handles[items[i].Handle] = field
		}
	}
	return validateRest(m)
}

func validateItem(s Section, item *Item, field string) error {
	quoted := s == Constraints || s == Artifacts || s == Tests
	switch {
	case strings.TrimSpace(item.ID) == "":
		return fieldErrorf(field+".id", "is empty")
	case strings.TrimSpace(item.Text) == "" && s != Artifacts:
		return fieldErrorf(field+".text", "is empty")
	case len(item.Text) > MaxText:
		return fieldErrorf(field+".text", "has %d bytes: at most %d", len(item.Text), MaxText)
	case !slices.Contains(Statuses(), item.Status):
		return fieldErrorf(field+".status", "is %q: expected %s", item.Status, oneOf(Statuses()))
	case len(item.Sources) == 0:
		return fieldErrorf(field+".sources", "is empty: name the node, or %q for what a person adds", EditSource)
	case len(item.Sources) > MaxSources:
		return fieldErrorf(field+".sources", "has %d ids: at most %d", len(item.Sources), MaxSources)
	case slices.Contains(item.Sources, ""):
		return fieldErrorf(field+".sources", "has an empty id")
	case quoted && strings.TrimSpace(item.Quote) == "":
		return fieldErrorf(field+".quote", "is empty: %s quote their source", s)
	case len(item.Quote) > MaxQuote:
		return fieldErrorf(field+".quote", "has %d bytes: at most %d", len(item.Quote), MaxQuote)
	case s == Artifacts && strings.TrimSpace(item.Handle) == "":
		return fieldErrorf(field+".handle", "is empty: an artifact is its handle")
	case s == Artifacts && !slices.Contains(ArtifactKinds(), item.Kind):
		return fieldErrorf(field+".kind", "is %q: expected %s", item.Kind, oneOf(ArtifactKinds()))
	case s == Artifacts && !strings.Contains(item.Quote, item.Handle):
		return fieldErrorf(field+".quote", "does not hold the handle %q", item.Handle)
	case s == Tests && !slices.Contains(TestKinds(), item.Kind):
		return fieldErrorf(field+".kind", "is %q: expected %s", item.Kind, oneOf(TestKinds()))
	}
	return nil
}

func validateRest(m *Manifest) error {
	switch {
	case m.SourceRange.FirstID == "":
		return fieldErrorf("source_range.first_id", "is missing")
	case m.SourceRange.LastID == "":
		return fieldErrorf("source_range.last_id", "is missing")
	case m.SourceRange.Count <= 0:
		return fieldErrorf("source_range.count", "is %d: expected how many nodes were read", m.SourceRange.Count)
	case len(m.Narrative) > MaxNarrative:
		return fieldErrorf("narrative", "has %d bytes: at most %d", len(m.Narrative), MaxNarrative)
	case m.Pinned == nil:
		return fieldErrorf("pinned", "is missing: write an empty array if nothing is pinned")
	case m.Retired == nil:
		return fieldErrorf("retired", "is missing: write an empty array if nothing was retired")
	case len(m.Retired) > MaxRetired:
		return fieldErrorf("retired", "has %d entries: at most %d", len(m.Retired), MaxRetired)
	case m.RetiredUnlisted < 0 || m.Unlisted < 0 || m.LastItem < 0:
		return fieldErrorf("retired_unlisted", "is negative, or unlisted or last_item is")
	}
	for i, v := range m.Pinned {
		if v.ID == "" {
			return fieldErrorf(fmt.Sprintf("pinned[%d].id", i), "is empty")
		}
	}
	return nil
}

// CheckSources returns a [*FieldError] for the first source that known does not
// know. [EditSource] is always known.
func CheckSources(m *Manifest, known func(id string) bool) error {
	for _, s := range Sections() {
		for i, item := range *m.section(s) {
			for _, id := range item.Sources {
				if id != EditSource && !known(id) {
					return fieldErrorf(fmt.Sprintf("%s[%d].sources", s, i), "names %q, which is not covered", id)
				}
			}
		}
	}
	return nil
}
