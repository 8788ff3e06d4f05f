package compaction

import (
	"testing"

	"convls/protocol"
)

// TestSteps follows undo and redo through summaries of which one is void, and two were
// made from the same.
func TestSteps(t *testing.T) {
	for _, row := range []struct{ applies, undo, redo string }{
		{"", "-", "a"},
		{"a", "", "c"}, // the newest of those made from it
		{"b", "a", "-"},
		{"c", "a", "-"}, // d is void
		{"e", "", "-"},  // what it was made from is void
	} {
		summaries := []protocol.SummaryInfo{}
		for _, s := range []struct {
			id, previous string
			void         bool
		}{{"e", "d", false}, {"d", "c", true}, {"c", "a", false}, {"b", "a", false}, {"a", "", false}} {
			if s.id == "e" && row.applies != "e" {
				continue // it would be the newest chain
			}
			summaries = append(summaries, protocol.SummaryInfo{SummaryID: s.id, Void: s.void, Applies: s.id == row.applies, Covered: 7,
				Provenance: &protocol.Provenance{PreviousID: s.previous}})
		}
		to := func(s *protocol.SummaryStep) string {
			if s == nil {
				return "-"
			}
			if s.Covered != 7 {
				t.Errorf("at %q a step tells of %d nodes", row.applies, s.Covered)
			}
			return s.SummaryID
		}
		if undo, redo := steps(summaries); to(undo) != row.undo || to(redo) != row.redo {
			t.Errorf("at %q: undo leads to %q and redo to %q, want %q and %q", row.applies, to(undo), to(redo), row.undo, row.redo)
		}
	}
}
