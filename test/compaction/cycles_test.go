package compaction

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"convls/compaction/manifest"
	"convls/test/fakemodel"
)

// TestCycles compacts ten times, and plants a constraint and a file in each part: after
// every cycle each of them is there exactly, nothing else is, and a supposition stays
// one, whatever the summariser says (spec/checkpoints, exercise F).
func TestCycles(t *testing.T) {
	server := newChat(t, nil)
	for _, row := range []struct {
		name     string
		settings params
		replies  func(source string) []fakemodel.Reply
	}{
		{name: "the built-in summariser", settings: params{"compaction.model": "extractive"}},
		{name: "one that records nothing"},
		{name: "one that invents", replies: func(source string) []fakemodel.Reply {
			lie := change("constraints", "Always deploy on Fridays.", "fact", source, "Always deploy on Fridays.")
			return []fakemodel.Reply{fakemodel.Say(lie), fakemodel.Say(good)}
		}},
		{name: "one that promotes", replies: func(source string) []fakemodel.Reply {
			lie := change("decisions", "The cache is the cause.", "fact", source, "")
			return []fakemodel.Reply{fakemodel.Say(lie), fakemodel.Say(good)}
		}},
	} {
		t.Run(row.name, func(t *testing.T) {
			settings := params{"models": params{"fake/x": params{"window": 40_000}}}
			for k, v := range row.settings {
				settings[k] = v
			}
			c := server.row(t, settings)
			c.chat(1)
			for cycle := range 10 {
				// The files differ in a letter's case and in a figure: they never merge.
				first := c.send(fmt.Sprintf("Never touch the file src/Case%d/main.go. Perhaps the cache is the cause of fault %d. %s", cycle, cycle, long("Because.", 200)))
				c.send(fmt.Sprintf("Look at src/case%d/main.go too. %s", cycle, long("So.", 200)))
				c.chat(1)
				if row.replies != nil {
					c.model.script(row.replies(first.UserID)...)
				}
				r := c.compacted(params{"keep_recent_tokens": 250})
				m := manifestOf(t, c.node(r.SummaryID))
				prose := c.context("").Entries[1].Text
				for i := range cycle + 1 {
					constraint := fmt.Sprintf("Never touch the file src/Case%d/main.go", i)
					if !slices.ContainsFunc(m.Constraints, func(it manifest.Item) bool { return it.Negative && strings.Contains(it.Quote, constraint) }) || !strings.Contains(prose, constraint) {
						t.Errorf("cycle %d: constraint %d is lost", cycle+1, i)
					}
					for _, path := range []string{fmt.Sprintf("src/Case%d/main.go", i), fmt.Sprintf("src/case%d/main.go", i)} {
						if !slices.ContainsFunc(m.Artifacts, func(it manifest.Item) bool { return it.Kind == manifest.Path && it.Handle == path }) {
							t.Errorf("cycle %d: %s is lost", cycle+1, path)
						}
					}
				}
				if len(m.Constraints) != cycle+1 {
					t.Errorf("cycle %d: %d constraints: %+v", cycle+1, len(m.Constraints), m.Constraints)
				}
				for _, it := range m.Artifacts {
					if it.Kind == manifest.Path && (!strings.HasPrefix(it.Handle, "src/") || !strings.HasSuffix(it.Handle, "/main.go")) {
						t.Errorf("cycle %d: nobody named %+v", cycle+1, it)
					}
				}
				for section, it := range m.Items() {
					if strings.Contains(it.Text, "cache is the cause") && (section != manifest.Unknowns || it.Status.Firm()) || strings.Contains(it.Text, "Friday") {
						t.Errorf("cycle %d: in %s: %+v", cycle+1, section, it)
					}
				}
			}
		})
	}
}
