package chat

import (
	"slices"
	"strings"

	"charm.land/glamour/v2"
	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"
)

// markdown renders answers for one width and theme.
type markdown struct {
	width     int
	theme     theme
	renderers map[int]*glamour.TermRenderer // by width
	// head is the beginning that was rendered last of an answer that is being
	// written: most pieces leave it as it was.
	head      string
	headLines []string
}

const (
	// maxRendered is how long a text may be to be rendered as Markdown, in bytes; a
	// longer one would hold the screen up.
	maxRendered = 256 << 10
	// maxNested is how deep lists and quotes are taken apart, and minNested how much
	// width must be left for that, in cells.
	maxNested, minNested = 8, 24
)

func newMarkdown(width int, t theme) *markdown {
	return &markdown{width: width, theme: t, renderers: map[int]*glamour.TermRenderer{}}
}

// lines renders text that is complete.
func (m *markdown) lines(text string) []string {
	text = clean(text)
	if len(text) > maxRendered {
		return wrap(text, m.width)
	}
	return m.nested(text, m.width, 0)
}

// nested renders what stands in depth lists and quotes.
func (m *markdown) nested(text string, width, depth int) []string {
	if depth >= maxNested || width < minNested {
		return m.render(text, width)
	}
	var out []string
	for _, b := range splitMarkdown(text) {
		var lines []string
		switch b.kind {
		case blockItem:
			marker := b.marker
			if len(marker) == 1 {
				marker = "•"
			}
			lines = hang(marker+" ", m.nested(b.text, width-ansi.StringWidth(marker)-1, depth+1))
		case blockQuote:
			bar := m.theme.rule.Render("│") + " "
			for _, l := range m.nested(b.text, width-2, depth+1) {
				lines = append(lines, bar+l)
			}
		default:
			lines = m.render(b.text, width)
		}
		if len(out) > 0 && len(lines) > 0 && !(b.tight && b.kind == blockItem) && !(b.tight && depth > 0) {
			out = append(out, "")
		}
		out = append(out, lines...)
	}
	return out
}

// hang puts a marker before the first line and as much room before the others.
func hang(marker string, lines []string) []string {
	if len(lines) == 0 {
		return []string{strings.TrimRight(marker, " ")}
	}
	room := strings.Repeat(" ", ansi.StringWidth(marker))
	out := make([]string, len(lines))
	for i, l := range lines {
		switch {
		case i == 0:
			out[i] = marker + l
		case l != "":
			out[i] = room + l
		}
	}
	return out
}

// render renders Markdown without lists and quotes.
func (m *markdown) render(text string, width int) []string {
	width = max(width, 1)
	r := m.renderers[width]
	if r == nil {
		var err error
		if r, err = glamour.NewTermRenderer(glamour.WithStyles(m.theme.markdown()), glamour.WithWordWrap(width)); err != nil {
			return wrap(text, width)
		}
		m.renderers[width] = r
	}
	out, err := r.Render(text)
	if err != nil {
		return wrap(text, width)
	}
	// Wide tables and code are not wrapped by the renderer; what is too wide would be
	// cut at the screen's edge.
	return trimBlank(wrapLines(strings.Split(out, "\n"), width))
}

// partial renders text that goes on: its whole blocks as Markdown, and the one
// that is being written as it is, because half of a table or of a link would jump.
// What was rendered before is not rendered again, so that an answer costs what it
// is long, not its square.
func (m *markdown) partial(text string) []string {
	head, rest := splitWhole(text)
	if !strings.HasPrefix(head, m.head) {
		m.head, m.headLines = "", nil
	}
	if more := head[len(m.head):]; more != "" {
		m.headLines = joined(m.headLines, m.lines(more))
		m.head = head
	}
	return joined(m.headLines, wrap(clean(strings.Trim(rest, "\n")), m.width))
}

// joined puts a blank line between blocks.
func joined(a, b []string) []string {
	out := slices.Clone(a)
	if len(a) > 0 && len(b) > 0 {
		out = append(out, "")
	}
	return append(out, b...)
}

// splitWhole cuts text before its last block: behind a blank line that stands
// outside a fence, and is not within a list, which may go on.
func splitWhole(text string) (head, rest string) {
	cut, at, fence, blank := 0, 0, "", false
	for l := range strings.Lines(text) {
		t := strings.TrimRight(l, "\n")
		switch {
		case fence != "":
			fence = nextFence(fence, t)
		case strings.TrimSpace(t) == "":
			blank = strings.HasSuffix(l, "\n")
			at += len(l)
			continue
		default:
			if blank && leading(t) == 0 && !itemLine.MatchString(t) {
				cut = at
			}
			fence = opensFence(t)
		}
		blank = false
		at += len(l)
	}
	return text[:cut], text[cut:]
}

// wrap breaks plain text into lines of width cells. It keeps indentation and
// never cuts a character in two.
func wrap(text string, width int) []string {
	if text == "" {
		return nil
	}
	return wrapLines(strings.Split(text, "\n"), width)
}

func wrapLines(lines []string, width int) []string {
	width = max(width, 1)
	out := make([]string, 0, len(lines))
	for _, l := range lines {
		l = strings.TrimRight(l, " ")
		if ansi.StringWidth(l) <= width {
			out = append(out, l)
			continue
		}
		for w := range strings.SplitSeq(lipgloss.Wrap(l, width, ""), "\n") {
			if ansi.StringWidth(w) > width {
				// Words of hyphens alone make Wrap go past the edge.
				out = append(out, strings.Split(ansi.Hardwrap(w, width, true), "\n")...)
				continue
			}
			out = append(out, w)
		}
	}
	return out
}

// trimBlank takes blank lines from the beginning and the end. Styled lines can be
// blank with escape codes in them.
func trimBlank(lines []string) []string {
	blank := func(l string) bool { return strings.TrimSpace(ansi.Strip(l)) == "" }
	for len(lines) > 0 && blank(lines[0]) {
		lines = lines[1:]
	}
	for len(lines) > 0 && blank(lines[len(lines)-1]) {
		lines = lines[:len(lines)-1]
	}
	return lines
}
