package manifest

import (
	"strings"
	"testing"

	"convls/protocol"
)

// TestDecodeEdited has a person edit a manifest: what they write is theirs, unless a
// message says it.
func TestDecodeEdited(t *testing.T) {
	const said = "Never touch prod.yaml, whatever happens. We use tabs."
	drafted, _ := Reduce(nil, Changes{}, []Message{{ID: "n1", Role: RoleUser, Text: said}}, Options{})
	if len(drafted.Constraints) != 1 {
		t.Fatalf("the draft has the constraints %+v", drafted.Constraints)
	}
	texts := map[string]string{"n1": said}
	edit := func(t *testing.T, f func(m *Manifest)) *Manifest {
		t.Helper()
		m := drafted.clone()
		f(m)
		raw, err := protocol.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		out, err := DecodeEdited(raw, drafted, texts)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	if m := edit(t, func(*Manifest) {}); m.Constraints[0].Sources[0] != "n1" {
		t.Errorf("an item that nobody touched has the source %v", m.Constraints[0].Sources)
	}
	forged := edit(t, func(m *Manifest) {
		m.Constraints[0].Text, m.Constraints[0].Quote, m.Constraints[0].Negative = "Touch prod.yaml.", "You may touch prod.yaml", false
	}).Constraints[0]
	if forged.Sources[0] != EditSource || forged.Quote != "Touch prod.yaml." || forged.Negative {
		t.Errorf("what nobody said is kept as %+v", forged)
	}
	turned := edit(t, func(m *Manifest) { m.Constraints[0].Text = "Touch prod.yaml." }).Constraints[0]
	if turned.Sources[0] != EditSource || strings.Contains(turned.Quote, "Never") {
		t.Errorf("a text that its quote does not say is kept as %+v", turned)
	}
	proved := edit(t, func(m *Manifest) {
		m.Decisions = append(m.Decisions, Item{Text: "We use tabs.", Quote: "We use tabs.", Sources: []string{"n1"}})
	}).Decisions
	if last := proved[len(proved)-1]; last.Sources[0] != "n1" || last.ID == "" || last.Status != Decision {
		t.Errorf("what a message says is kept as %+v", last)
	}
	added := edit(t, func(m *Manifest) {
		m.Constraints = append(m.Constraints, Item{Text: "Never mail AKIAIOSFODNN7EXAMPLE."})
		m.Tests = append(m.Tests, Item{Text: "all green"})
		m.Artifacts = append(m.Artifacts, Item{Handle: "a/b.go"})
	})
	if c := added.Constraints[1]; c.Sources[0] != EditSource || !c.Negative || strings.Contains(c.Text, "AKIA") || c.ID == drafted.Constraints[0].ID {
		t.Errorf("an added constraint is %+v", c)
	}
	for _, tc := range []struct{ raw, says string }{
		{`"hello"`, "is no object"},
		{`{"rules":[]}`, "rules"},
		{`{"version":1}`, "source_range"},
	} {
		if _, err := DecodeEdited(protocol.Raw(tc.raw), drafted, texts); err == nil || !strings.Contains(err.Error(), tc.says) || strings.Contains(err.Error(), "Go") {
			t.Errorf("%s: %v", tc.raw, err)
		}
	}
}
