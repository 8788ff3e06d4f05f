package compaction

import (
	"testing"

	"convls/compaction/manifest"
)

// TestGrounded: an answer is refused if none of its changes holds, and only then.
// What is wrong with its narrative is another matter.
func TestGrounded(t *testing.T) {
	q := Question{Messages: []manifest.Message{{ID: "n1", Role: manifest.RoleUser, Text: "Please sort the parcels by depot."}}}
	holds := manifest.Change{Op: manifest.Add, Section: manifest.Unknowns, Text: "sort the parcels by depot", Status: manifest.Unknown, Sources: []string{"n1"}}
	lies := manifest.Change{Op: manifest.Add, Section: manifest.Unknowns, Text: "sort the parcels by depot", Status: manifest.Unknown, Sources: []string{"n9"}}
	const invented = "The team moved to etc/invented.toml."
	for _, tc := range []struct {
		name    string
		changes manifest.Changes
		refused bool
	}{
		{"nothing to record", manifest.Changes{}, false},
		{"one holds", manifest.Changes{Changes: []manifest.Change{lies, holds}}, false},
		{"none holds", manifest.Changes{Changes: []manifest.Change{lies, lies}}, true},
		{"one holds, the narrative does not", manifest.Changes{Changes: []manifest.Change{holds}, Narrative: invented}, false},
		{"all but one hold, and the narrative does not", manifest.Changes{Changes: []manifest.Change{holds, lies}, Narrative: invented}, false},
		{"neither holds", manifest.Changes{Changes: []manifest.Change{lies}, Narrative: invented}, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if err := grounded(q, Answer{Changes: tc.changes}); tc.refused != (err != nil) {
				t.Errorf("refused: %v, want %v", err, tc.refused)
			}
		})
	}
}
