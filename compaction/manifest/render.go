package manifest

import (
	"fmt"
	"strings"
)

// RenderOptions say who reads the rendering.
type RenderOptions struct {
	// IDs shows the item ids and sources: a summariser needs them for its changes,
	// the model of the conversation does not.
	IDs bool
}

// headings are the titles of the sections, and what stands under them.
var headings = map[Section]string{
	Goal:        "Goal",
	Constraints: "Constraints",
	Decisions:   "Decisions",
	Completed:   "Completed",
	OpenTasks:   "Open tasks",
	Artifacts:   "Artifacts",
	Tests:       "Tests",
	Unknowns:    "Hypotheses and unknowns",
}

// Render returns the manifest as Markdown, the same for the same manifest. Every
// section is there, an empty one says "none"; constraints show their quotes,
// artifacts their handles to the letter. Artifacts with nothing but a handle share
// a line with the others of their kind.
func (m *Manifest) Render(o RenderOptions) string {
	var b strings.Builder
	for _, s := range Sections() {
		fmt.Fprintf(&b, "## %s\n\n", headings[s])
		items := *m.section(s)
		switch {
		case len(items) == 0:
			b.WriteString("none\n")
		case s == Artifacts && !o.IDs:
			renderArtifacts(&b, items)
		default:
			for i := range items {
				renderItem(&b, s, &items[i], o)
			}
		}
		b.WriteString("\n")
	}
	renderNarrative(&b, m)
	renderPinned(&b, m)
	renderRetired(&b, m)
	fmt.Fprintf(&b, "Source: %s to %s, %d nodes.\n", m.SourceRange.FirstID, m.SourceRange.LastID, m.SourceRange.Count)
	return b.String()
}

func renderItem(b *strings.Builder, s Section, item *Item, o RenderOptions) {
	b.WriteString("- ")
	if o.IDs {
		fmt.Fprintf(b, "[%s] ", item.ID)
	}
	if item.Negative {
		b.WriteString("(prohibition) ")
	}
	if s == Artifacts {
		fmt.Fprintf(b, "%s %s", item.Kind, item.Handle)
		if item.Text != "" {
			b.WriteString(": " + normalise(item.Text))
		}
	} else {
		if s == Tests {
			fmt.Fprintf(b, "(%s) ", item.Kind)
		}
		b.WriteString(normalise(item.Text))
	}
	if item.Status != usualStatus(s) || s == Unknowns {
		fmt.Fprintf(b, " (%s)", item.Status)
	}
	if showQuote(s, item) {
		b.WriteString(` — "` + item.Quote + `"`) // not escaped: a path in it stays what it is
	}
	if o.IDs {
		fmt.Fprintf(b, " {%s}", strings.Join(item.Sources, ", "))
	}
	b.WriteString("\n")
}

// showQuote tells whether the quote says more than the text beside it.
func showQuote(s Section, item *Item) bool {
	return (s == Constraints || s == Tests) && sameText(item.Quote) != sameText(item.Text)
}

func renderArtifacts(b *strings.Builder, items []Item) {
	for _, kind := range ArtifactKinds() {
		var bare []string
		for i := range items {
			switch {
			case items[i].Kind != kind:
			case items[i].Text == "" && items[i].Status == Fact:
				bare = append(bare, items[i].Handle)
			default:
				renderItem(b, Artifacts, &items[i], RenderOptions{})
			}
		}
		if len(bare) > 0 {
			fmt.Fprintf(b, "- %s %s\n", kind, strings.Join(bare, ", "))
		}
	}
}

func renderNarrative(b *strings.Builder, m *Manifest) {
	b.WriteString("## Narrative (written by a model, not checked)\n\n")
	if m.Narrative == "" {
		b.WriteString("none\n\n")
		return
	}
	b.WriteString(quoteLines(m.Narrative) + "\n")
}

func renderPinned(b *strings.Builder, m *Manifest) {
	b.WriteString("## Word for word\n\n")
	if len(m.Pinned) == 0 {
		b.WriteString("none\n\n")
		return
	}
	for _, v := range m.Pinned {
		fmt.Fprintf(b, "%s (%s):\n\n%s\n", v.Role, v.ID, quoteLines(v.Text))
	}
}

func renderRetired(b *strings.Builder, m *Manifest) {
	b.WriteString("## No longer listed\n\n")
	for _, r := range m.Retired {
		fmt.Fprintf(b, "- %s %s (%s): %s\n", r.Section, r.ID, r.Reason, normalise(r.Text))
	}
	switch {
	case m.RetiredUnlisted > 0:
		fmt.Fprintf(b, "- and %d older items\n", m.RetiredUnlisted)
	case len(m.Retired) == 0:
		b.WriteString("none\n")
	}
	if m.Unlisted > 0 {
		fmt.Fprintf(b, "- %d more findings were left out, because there were too many\n", m.Unlisted)
	}
	b.WriteString("\n")
}

// quoteLines sets text as a Markdown quotation, so that headings in it are not
// taken for the manifest's own.
func quoteLines(text string) string {
	var b strings.Builder
	for line := range strings.Lines(strings.TrimRight(text, "\n") + "\n") {
		b.WriteString(strings.TrimRight("> "+strings.TrimRight(line, "\n"), " ") + "\n")
	}
	return b.String()
}
