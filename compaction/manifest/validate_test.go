package manifest

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"convls/protocol"
)

func TestValidate(t *testing.T) {
	for _, tc := range []struct {
		field string
		spoil func(m *Manifest)
	}{
		{"version", func(m *Manifest) { m.Version = 2 }},
		{"constraints", func(m *Manifest) { m.Constraints = nil }},
		{"unknowns", func(m *Manifest) { m.Unknowns = nil }},
		{"source_range.first_id", func(m *Manifest) { m.SourceRange.FirstID = "" }},
		{"source_range.last_id", func(m *Manifest) { m.SourceRange.LastID = "" }},
		{"source_range.count", func(m *Manifest) { m.SourceRange.Count = 0 }},
		{"pinned", func(m *Manifest) { m.Pinned = nil }},
		{"pinned[0].id", func(m *Manifest) { m.Pinned = []Verbatim{{Text: "x"}} }},
		{"retired", func(m *Manifest) { m.Retired = nil }},
		{"retired", func(m *Manifest) { m.Retired = make([]Retired, MaxRetired+1) }},
		{"retired_unlisted", func(m *Manifest) { m.Unlisted = -1 }},
		{"narrative", func(m *Manifest) { m.Narrative = strings.Repeat("x", MaxNarrative+1) }},
		{"constraints[1].id", func(m *Manifest) { m.Constraints[1].ID = "c2" }},
		{"decisions[0].id", func(m *Manifest) { m.Decisions[0].ID = "c2" }},
		{"goal[0].id", func(m *Manifest) { m.Goal[0].ID = "" }},
		{"goal[0].text", func(m *Manifest) { m.Goal[0].Text = " " }},
		{"goal[0].text", func(m *Manifest) { m.Goal[0].Text = strings.Repeat("x", MaxText+1) }},
		{"goal[0].status", func(m *Manifest) { m.Goal[0].Status = "sure" }},
		{"goal[0].sources", func(m *Manifest) { m.Goal[0].Sources = nil }},
		{"goal[0].sources", func(m *Manifest) { m.Goal[0].Sources = []string{""} }},
		{"goal[0].sources", func(m *Manifest) { m.Goal[0].Sources = make([]string, MaxSources+1) }},
		{"constraints[0].quote", func(m *Manifest) { m.Constraints[0].Quote = "" }},
		{"artifacts[0].quote", func(m *Manifest) { m.Artifacts[0].Quote = "" }},
		{"artifacts[0].quote", func(m *Manifest) { m.Artifacts[0].Quote = "another line" }},
		{"tests[0].quote", func(m *Manifest) { m.Tests[0].Quote = "" }},
		{"tests[0].quote", func(m *Manifest) { m.Tests[0].Quote = strings.Repeat("x", MaxQuote+1) }},
		{"artifacts[0].handle", func(m *Manifest) { m.Artifacts[0].Handle = "" }},
		{"artifacts[1].handle", func(m *Manifest) {
			m.Artifacts = append(m.Artifacts, m.Artifacts[0])
			m.Artifacts[1].ID = "a99"
		}},
		{"artifacts[0].kind", func(m *Manifest) { m.Artifacts[0].Kind = Passed }},
		{"tests[0].kind", func(m *Manifest) { m.Tests[0].Kind = "" }},
	} {
		m := before(t)
		tc.spoil(m)
		err := Validate(m)
		if fe, ok := errors.AsType[*FieldError](err); !ok || fe.Field != tc.field || fe.Problem == "" {
			t.Errorf("%v, want an error of %s", err, tc.field)
		}
	}
	if err := Validate(nil); err == nil {
		t.Error("a nil manifest is valid")
	}
}

// TestDecode: what is written is read back, and a checkpoint that lacks a section
// or its range is refused (spec/checkpoints.md, exercise D).
func TestDecode(t *testing.T) {
	m := before(t)
	m.Pinned = []Verbatim{{ID: "p1", Role: RoleUser, Text: "# word\nfor word"}}
	raw, err := protocol.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(raw), "null") {
		t.Errorf("an array is null: %s", raw)
	}
	got, err := Decode(raw)
	if diff := cmp.Diff(m, got); err != nil || diff != "" {
		t.Errorf("read back: %v\n%s", err, diff)
	}
	var members map[string]protocol.Raw
	if err := protocol.Unmarshal(raw, &members); err != nil {
		t.Fatal(err)
	}
	for _, missing := range []string{"goal", "constraints", "decisions", "completed", "open_tasks", "artifacts", "tests", "unknowns", "source_range", "pinned", "retired", "version"} {
		less := map[string]protocol.Raw{}
		for k, v := range members {
			if k != missing {
				less[k] = v
			}
		}
		raw, err := protocol.Marshal(less)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Decode(raw); err == nil || !strings.Contains(err.Error(), missing) {
			t.Errorf("without %s: %v", missing, err)
		}
	}
	if _, err := Decode(protocol.Raw("{")); err == nil {
		t.Error("half an object was read")
	}
}

func TestCheckSources(t *testing.T) {
	m := before(t)
	m.Goal[0].Sources = []string{EditSource}
	if err := CheckSources(m, func(id string) bool { return id == "old1" }); err != nil {
		t.Error(err)
	}
	m.Tests[0].Sources = []string{"old1", "gone"}
	err := CheckSources(m, func(id string) bool { return id == "old1" })
	if fe, ok := errors.AsType[*FieldError](err); !ok || fe.Field != "tests[0].sources" {
		t.Errorf("an unknown source: %v", err)
	}
}
