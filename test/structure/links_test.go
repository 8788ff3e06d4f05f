package structure

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"
)

var (
	link    = regexp.MustCompile(`\]\(([^()\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#{1,6} +(.+?)\s*$`)
	fenced  = regexp.MustCompile("(?s)\n *```.*?\n *```")
)

// anchors returns the anchors of a Markdown document's headings.
func anchors(document string) map[string]bool {
	out := map[string]bool{}
	for _, m := range heading.FindAllStringSubmatch(fenced.ReplaceAllString(document, ""), -1) {
		var b strings.Builder
		for _, r := range strings.ToLower(m[1]) {
			switch {
			case r == ' ':
				b.WriteByte('-')
			case unicode.IsLetter(r), unicode.IsDigit(r), r == '-', r == '_':
				b.WriteRune(r)
			}
		}
		anchor := b.String()
		for n := 1; out[anchor]; n++ { // a heading that comes twice
			anchor = fmt.Sprintf("%s-%d", b.String(), n)
		}
		out[anchor] = true
	}
	return out
}

// TestLinksLeadSomewhere follows the links inside the project's documents.
func TestLinksLeadSomewhere(t *testing.T) {
	followed := 0
	for _, name := range tracked(t) {
		// The preamble is a part of docs/protocol.md, where its links are followed.
		if path.Ext(name) != ".md" || name == "protocol/gen/preamble.md" {
			continue
		}
		document := fenced.ReplaceAllString(string(text(t, name)), "")
		for _, m := range link.FindAllStringSubmatch(document, -1) {
			target := m[1]
			if strings.Contains(target, ":") { // elsewhere in the world
				continue
			}
			followed++
			file, anchor, _ := strings.Cut(target, "#")
			where := path.Join(path.Dir(name), file)
			if file == "" {
				where = name
			}
			if _, err := os.Stat(filepath.Join(root, where)); err != nil {
				t.Errorf("%s links to %s, which is not there", name, target)
				continue
			}
			if anchor != "" && !anchors(string(text(t, where)))[anchor] {
				t.Errorf("%s links to %s: no such heading", name, target)
			}
		}
	}
	if followed == 0 {
		t.Error("no document has a link: this test looks for the wrong thing")
	}
}

func TestAnchors(t *testing.T) {
	got := anchors("# One two\n## convls/turn/send\n```\n# no heading\n```\n## `Code`, and more!\n# One two\n")
	for _, want := range []string{"one-two", "convlsturnsend", "code-and-more", "one-two-1"} {
		if !got[want] {
			t.Errorf("no anchor %q in %v", want, got)
		}
	}
	if len(got) != 4 {
		t.Errorf("%d anchors, want 4: %v", len(got), got)
	}
}
