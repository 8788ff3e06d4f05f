package drawing

import (
	"bufio"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"

	"convls/protocol"
)

// aligned is up to how many columns of lanes all labels begin in one column. Where
// there are more, a row's label begins after the row's own lanes.
const aligned = 12

// leastLabel is how many columns a text has at least: a label with less is cut as a
// whole.
const leastLabel = 8

// longestName is how many columns the name of a branch has at most.
const longestName = 24

// Text writes a view as lines for a terminal, one a row: the lanes, two columns each,
// and the label. Where the window does not begin or end with the graph, a line with
// dots says so, and a last line tells of lanes that are left out.
func Text(w io.Writer, view *protocol.GraphView, o Options) error {
	l := newLayout(view, o.maxLanes())
	t := textDrawing{Options: o, g: o.glyphs(), l: l, sources: l.sources(), out: bufio.NewWriter(w)}
	if l.above {
		t.note(t.g.below + " there is more above")
	}
	if err := l.sweep(t.row); err != nil {
		return err
	}
	if l.below {
		t.note(t.g.below + " there is more below")
	}
	for _, s := range l.notes(t.g.more) {
		t.note(s)
	}
	return t.out.Flush()
}

// textDrawing writes rows as lines of text.
type textDrawing struct {
	Options
	g       glyphs
	l       *layout
	sources map[string]int
	out     *bufio.Writer
	line    strings.Builder
}

// note writes a line that is no row.
func (t *textDrawing) note(s string) {
	if t.Width > 0 {
		s = ansi.Truncate(s, t.Width, t.g.cut)
	}
	_, _ = t.out.WriteString(t.paint(s, faint) + "\n") // its errors stay until Flush
}

// row writes one row. An error of the writer ends the drawing.
func (t *textDrawing) row(i int, c *cells) error {
	r := &t.l.rows[i]
	t.line.Reset()
	width := t.lanes(r, c)
	label := t.label(i, t.Width-width-1)
	if label == "" {
		_, err := t.out.WriteString(strings.TrimRight(t.line.String(), " ") + "\n")
		return err
	}
	t.line.WriteByte(' ')
	t.line.WriteString(label)
	t.line.WriteByte('\n')
	_, err := t.out.WriteString(t.line.String())
	return err
}

// lanes writes the columns of a row and returns how wide they are. Without colours
// a capsule of ASCII is three wide: it takes the gaps beside it.
func (t *textDrawing) lanes(r *protocol.GraphRow, c *cells) int {
	at := -1
	if r.Tier == 0 {
		at = t.l.column(r.Lane)
	}
	last := max(c.last(), t.l.column(r.Lane), min(t.l.columns, t.aligned())-1)
	ring := t.g.ringed && r.Kind == protocol.KindSummary
	width := 2*last + 1
	if t.g.ringed {
		t.line.WriteString(bracket(ring && at == 0, "(", " "))
		width++
	}
	for i := 0; i <= last; i++ {
		x := c.columns[i]
		switch {
		case i == at:
			t.line.WriteString(t.paint(t.g.node(r), nodeStyle(r)))
		case i == t.l.limit && x.arms != 0:
			t.line.WriteString(t.paint(t.g.more, faint))
		default:
			t.line.WriteString(t.paint(t.g.cell(x), laneStyle(x)))
		}
		switch {
		case ring && i == at:
			t.line.WriteByte(')')
			if i == last {
				width++
			}
		case ring && i == at-1:
			t.line.WriteByte('(')
		case i < last:
			t.line.WriteString(t.paint(t.g.cell(c.gaps[i]), laneStyle(c.gaps[i])))
		}
	}
	return width
}

// aligned is the constant, or less, so that lanes take at most a quarter of the width
// for the sake of order alone.
func (t *textDrawing) aligned() int {
	if t.Width > 0 {
		return min(aligned, max(t.Width/8, 1))
	}
	return aligned
}

func bracket(is bool, yes, no string) string {
	if is {
		return yes
	}
	return no
}

// label is the text of a row, no wider than width if the drawing has a width.
func (t *textDrawing) label(i, width int) string {
	r := &t.l.rows[i]
	var before, after []piece
	if r.Tier > 0 {
		before = append(before, piece{strings.Repeat("  ", r.Tier-1) + t.g.call, faint}, piece{t.g.node(r), nodeStyle(r)})
	}
	if (r.Ghost || r.CoveredBy != "") && !t.Color {
		before = append(before, piece{t.g.ghost, faint})
	}
	for _, b := range r.Branches {
		before = append(before, piece{"[" + t.name(b) + "]", branchStyle})
	}
	if r.IsHead {
		before = append(before, piece{t.g.head, headStyle})
	}
	if t.IDs {
		before = append(before, piece{clean(r.ID), faint})
	}
	_, local := t.sources[r.ID]
	before = append(before, piece{parenthesised(foldText(r)), faint}, piece{sourceText(r.Source, local, t.g.cut), faint})
	after = append(after, piece{parenthesised(status(r)), statusStyle(r)}, piece{callsText(t.l.callsHidden(i)), faint})
	if r.Pinned {
		after = append(after, piece{"pinned", faint})
	}
	if r.Read {
		after = append(after, piece{"read", faint})
	}
	if r.Lane >= t.l.limit {
		after = append(after, piece{fmt.Sprintf("(lane %s)", thousands(int64(r.Lane+1))), faint})
	}
	return t.join(before, piece{recut(t.l.label(i, t.sources), t.g.cut), textStyle(r)}, after, width)
}

// previewLength is how many characters a preview has that the server cut, its mark
// included.
const previewLength = 200

// recut puts the mark of a cut in the place of the server's own, at the end of a preview
// that was cut.
func recut(s, mark string) string {
	if rest, ok := strings.CutSuffix(s, "…"); ok && mark != "…" && utf8.RuneCountInString(s) == previewLength {
		return rest + mark
	}
	return s
}

// name is that of a branch. Where lines are cut it is too, so that there is room for
// the text.
func (t *textDrawing) name(s string) string {
	if s = clean(s); t.Width > 0 {
		return ansi.Truncate(s, longestName, t.g.cut)
	}
	return s
}

func parenthesised(s string) string {
	if s == "" {
		return ""
	}
	return "(" + s + ")"
}

// piece is a part of a label with its style.
type piece struct {
	text  string
	style style
}

// join puts a label together. What is too much for width is taken from the text; and
// if that leaves too little of it, from the end of the whole.
func (t *textDrawing) join(before []piece, text piece, after []piece, width int) string {
	rest := width
	for _, p := range before {
		rest -= needed(p)
	}
	for _, p := range after {
		rest -= needed(p)
	}
	cutAll := false
	if t.Width > 0 && ansi.StringWidth(text.text) > rest {
		if cutAll = rest < leastLabel; !cutAll {
			text.text = ansi.Truncate(text.text, rest, t.g.cut)
		}
	}
	var b strings.Builder
	for _, p := range append(append(before, text), after...) {
		if p.text == "" {
			continue
		}
		if b.Len() > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(t.paint(p.text, p.style))
	}
	if !cutAll {
		return b.String()
	}
	return ansi.Truncate(b.String(), max(width, 0), t.g.cut)
}

// needed is how wide a piece is with the space that parts it from the text.
func needed(p piece) int {
	if p.text == "" {
		return 0
	}
	return ansi.StringWidth(p.text) + 1
}
