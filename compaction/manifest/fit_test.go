package manifest

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func tokensOf(text string) int { return len(text) / 4 }

// crowded has many items of every section.
func crowded(t *testing.T) *Manifest {
	m := before(t)
	m.Narrative = strings.Repeat("So it went. ", 100)
	long := strings.Repeat("word after word ", 20) + "in src/deep/name.go"
	for i := range 40 {
		add := func(s Section, letter, text string, kind Kind, handle string) {
			quote := text
			if handle != "" {
				quote = "a line with " + handle
			}
			*m.section(s) = append(*m.section(s), Item{
				ID: fmt.Sprintf("%s%d", letter, 100+i), Text: fmt.Sprintf("%s %d", text, i), Status: usualStatus(s), Sources: []string{"old1"}, Quote: quote, Kind: kind, Handle: handle,
			})
		}
		add(Completed, "x", "wrote a part", "", "")
		add(Decisions, "d", long, "", "")
		add(Unknowns, "u", long, "", "")
		add(Tests, "r", "12 passed", Passed, "")
		add(Tests, "rf", "1 failed", Failed, "")
		add(Artifacts, "a", "a file that somebody wrote", Path, fmt.Sprintf("src/f%d.go", i))
	}
	if err := Validate(m); err != nil {
		t.Fatal(err)
	}
	return m
}

func TestFit(t *testing.T) {
	m := crowded(t)
	original := m.clone()
	size := func(m *Manifest) int { return tokensOf(m.Render(RenderOptions{})) }
	if same, err := Fit(m, size(m), tokensOf); err != nil || same != m {
		t.Errorf("what fits was changed: %v", err)
	}
	steps := []struct {
		limit int
		check func(f *Manifest) bool
	}{
		{size(m) - 10, func(f *Manifest) bool { return f.Narrative == "" && len(f.Completed) == 41 }},
		{size(m) - 400, func(f *Manifest) bool {
			return f.Narrative == "" && len(f.Completed) < 41 && len(f.Decisions) == 41 && f.Artifacts[5].Text != ""
		}},
		{5600, func(f *Manifest) bool {
			return len(f.Tests) == 0 && f.Artifacts[5].Text == "" && len(f.Unknowns) == 41 && len(f.Decisions[5].Text) > 200
		}},
		{3500, func(f *Manifest) bool {
			return len(f.Unknowns) == 41 && len(f.Unknowns[5].Text) < 200 && strings.Contains(f.Unknowns[5].Text, "src/deep/name.go")
		}},
		{900, func(f *Manifest) bool { return len(f.Unknowns) == 0 && len(f.Decisions) < 41 }},
	}
	for _, s := range steps {
		f, err := Fit(m, s.limit, tokensOf)
		if err != nil {
			t.Errorf("limit %d: %v", s.limit, err)
			continue
		}
		if size(f) > s.limit || !s.check(f) {
			t.Errorf("limit %d: %d tokens, %d completed, %d tests, %d unknowns, %d decisions", s.limit, size(f), len(f.Completed), len(f.Tests), len(f.Unknowns), len(f.Decisions))
		}
		if err := Validate(f); err != nil {
			t.Errorf("limit %d: %v", s.limit, err)
		}
		gone := len(m.Completed) + len(m.Tests) + len(m.Unknowns) + len(m.Decisions) - len(f.Completed) - len(f.Tests) - len(f.Unknowns) - len(f.Decisions)
		if listed := len(f.Retired) + int(f.RetiredUnlisted); listed != gone {
			t.Errorf("limit %d: %d items are gone, %d are listed or counted", s.limit, gone, listed)
		}
		for _, kept := range []Section{Goal, Constraints, OpenTasks} {
			if diff := cmp.Diff(m.Section(kept), f.Section(kept)); diff != "" {
				t.Errorf("limit %d: %s changed:\n%s", s.limit, kept, diff)
			}
		}
		for i := range m.Artifacts {
			if f.Artifacts[i].Handle != m.Artifacts[i].Handle {
				t.Errorf("limit %d: a handle is lost: %s", s.limit, m.Artifacts[i].Handle)
			}
		}
		again, err := Fit(m, s.limit, tokensOf)
		if diff := cmp.Diff(f, again); err != nil || diff != "" {
			t.Errorf("limit %d: another result the second time: %v\n%s", s.limit, err, diff)
		}
	}
	_, err := Fit(m, 200, tokensOf)
	if tle, ok := errors.AsType[*TooLargeError](err); !ok || tle.Limit != 200 || tle.Tokens <= 200 {
		t.Errorf("what is never dropped does not fit: %v", err)
	}
	squeezed, err := Squeeze(m, 210, tokensOf)
	if err != nil || size(squeezed) > 210 {
		t.Fatalf("squeezed: %v", err)
	}
	if err := Validate(squeezed); err != nil {
		t.Errorf("squeezed: %v", err)
	}
	if len(squeezed.Artifacts) == len(m.Artifacts) && len(squeezed.OpenTasks) == len(m.OpenTasks) {
		t.Error("squeezed, and nothing of what Fit keeps is gone: the test is too easy")
	}
	if len(squeezed.Goal) == 0 || squeezed.Goal[0].ID != m.Goal[0].ID {
		t.Error("the first goal is gone")
	}
	gone := 0
	for _, s := range Sections() {
		gone += len(m.Section(s)) - len(squeezed.Section(s))
	}
	if listed := len(squeezed.Retired) + int(squeezed.RetiredUnlisted); listed != gone {
		t.Errorf("squeezed: %d items are gone, %d are listed or counted", gone, listed)
	}
	if diff := cmp.Diff(original, m); diff != "" {
		t.Errorf("the manifest given was changed:\n%s", diff)
	}
}
