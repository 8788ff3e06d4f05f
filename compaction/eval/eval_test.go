package eval

import (
	"testing"

	"convls/compaction/manifest"
)

// TestReducerHolds: 10 compactions with each adversary keep every constraint,
// prohibition and identity, take in nothing invented, and lose no open work
// (spec/checkpoints.md, exercise F).
func TestReducerHolds(t *testing.T) {
	none := Named{"says nothing", func(*manifest.Manifest, []manifest.Message) manifest.Changes { return manifest.Changes{} }}
	for _, a := range append(Adversaries(), none) {
		t.Run(a.Name, func(t *testing.T) {
			var m *manifest.Manifest
			var conversation []manifest.Message
			for n, cycle := range Plant(7, 10) {
				conversation = append(conversation, cycle.Messages...)
				changes := a.Changes(m, cycle.Messages)
				var rejected []manifest.Rejection
				m, rejected = manifest.Reduce(m, changes, cycle.Messages, manifest.Options{})
				if err := manifest.Validate(m); err != nil {
					t.Fatalf("cycle %d: %v", n, err)
				}
				v := Judge(m, m.Render(manifest.RenderOptions{}), cycle.Truth, conversation)
				for _, list := range [][]string{v.Lost, v.Invented, v.Identity, v.Status} {
					for _, what := range list {
						t.Errorf("cycle %d: %s", n, what)
					}
				}
				for _, tally := range []Tally{v.Constraints, v.Prohibitions, v.Identities, v.OpenTasks} {
					if !tally.Whole() || tally.Planted == 0 {
						t.Errorf("cycle %d: kept %+v", n, tally)
					}
				}
				if a.Name == "says nothing" != (len(rejected) == 0) && (n > 0 || len(changes.Changes) > 0) {
					t.Errorf("cycle %d: %d rejections", n, len(rejected))
				}
				if t.Failed() {
					return
				}
			}
		})
	}
}
