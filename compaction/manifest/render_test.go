package manifest

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden files")

// full is a manifest with something in every place.
func full(t *testing.T) *Manifest {
	m := before(t)
	m.Constraints[0].Text = "No push to main" // in other words than its quote
	m.Constraints[1].Status = Hypothesis
	m.Artifacts[0].Text = ""
	m.Artifacts = append(m.Artifacts,
		Item{ID: "a11", Status: Fact, Sources: []string{"n1"}, Quote: "src/b.go", Kind: Path, Handle: "src/b.go"},
		Item{ID: "a12", Text: "the\nrelease", Status: Fact, Sources: []string{"n1", "n2"}, Quote: "commit 1a2b3c4d", Kind: Hash, Handle: "1a2b3c4d"})
	m.Narrative = "The parser is half done.\n# Not a heading"
	m.Pinned = []Verbatim{{ID: "p1", Role: RoleUser, Text: "## Goal\n\nevil\n"}}
	m.Retired = []Retired{{Completed, "x1", "Read the depots", ForSpace}}
	m.RetiredUnlisted, m.Unlisted = 3, 7
	return m
}

func TestRender(t *testing.T) {
	empty := (*Manifest)(nil).clone()
	empty.SourceRange = SourceRange{"n1", "n9", 9}
	for name, got := range map[string]string{
		"full.md":     full(t).Render(RenderOptions{}),
		"full-ids.md": full(t).Render(RenderOptions{IDs: true}),
		"empty.md":    empty.Render(RenderOptions{}),
	} {
		file := filepath.Join("testdata", name)
		if *update {
			if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), got); diff != "" {
			t.Errorf("%s:\n%s", name, diff)
		}
	}
}

// TestRenderHidesHeadings: no text of the conversation makes a heading of the
// rendering.
func TestRenderHidesHeadings(t *testing.T) {
	headings := 0
	for line := range strings.Lines(full(t).Render(RenderOptions{})) {
		if strings.HasPrefix(line, "#") {
			headings++
		}
	}
	if want := len(Sections()) + 3; headings != want {
		t.Errorf("%d headings, want %d", headings, want)
	}
}
