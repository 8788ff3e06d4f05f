package drawing

import (
	"bufio"
	"cmp"
	"encoding/xml"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"convls/protocol"
)

// The measures of an SVG, in pixels.
const (
	defaultWidth = 960
	rowHeight    = 30
	laneWidth    = 20
	margin       = 14
	noteHeight   = 24
	labelGap     = 22
	corner       = 9
	fontSize     = 13
	smallSize    = 12
	pillSize     = 6.65 // the width of a character in a pill
	tierIndent   = 18
)

// SVG writes a view as a picture (SVG 1.1 with a style sheet) that needs nothing
// beside it. Labels are cut by an estimate of their width. Every node has a title
// with all that the drawing has no room for.
func SVG(w io.Writer, view *protocol.GraphView, o Options) error {
	l := newLayout(view, o.maxLanes())
	s := svgDrawing{out: bufio.NewWriter(w), l: l, sources: l.sources(), width: cmp.Or(max(o.Width, 0), defaultWidth), top: margin}
	if l.above {
		s.top += noteHeight
	}
	s.bottom = s.top + rowHeight*len(l.rows)
	height := s.bottom + margin
	if l.below {
		height += noteHeight
	}
	height += noteHeight * len(l.notes(""))
	title := cmp.Or(clean(o.Title), "Conversation graph")
	s.write(`<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" role="img">`+"\n", s.width, height, s.width, height)
	s.write("<title>%s</title>\n<style>%s</style>\n", escaped(title), o.Theme.sheet())
	s.write(`<rect class="bg" width="%d" height="%d" rx="8"/>`+"\n", s.width, height)
	s.band()
	s.write("<g>\n")
	for _, e := range l.lines {
		s.edge(e)
	}
	s.write("</g>\n")
	if err := l.sweep(s.row); err != nil {
		return err
	}
	for _, e := range l.arrows {
		s.arrow(e)
	}
	s.notes()
	s.write("</svg>\n")
	return s.out.Flush()
}

// svgDrawing writes the elements of a picture.
type svgDrawing struct {
	out     *bufio.Writer
	l       *layout
	sources map[string]int
	// last is the last column of each row in which there is something.
	last               []int
	width, top, bottom int
}

// write writes markup. Its errors stay until Flush.
func (s *svgDrawing) write(format string, args ...any) { _, _ = fmt.Fprintf(s.out, format, args...) }

// escaped makes text that clean has seen fit for XML.
func escaped(text string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(text)) // into memory
	return b.String()
}

func (s *svgDrawing) x(lane int) int { return margin + laneWidth/2 + laneWidth*s.l.column(lane) }

func (s *svgDrawing) y(row int) int { return s.top + rowHeight*row + rowHeight/2 }

// band is the ground of the row that is HEAD.
func (s *svgDrawing) band() {
	for i := range s.l.rows {
		if s.l.rows[i].IsHead {
			s.write(`<rect class="band" x="6" y="%d" width="%d" height="%d" rx="6"/>`+"\n", s.y(i)-rowHeight/2+1, s.width-12, rowHeight-2)
		}
	}
}

func laneClass(lane int) string { return "c" + strconv.Itoa(max(lane, 0)%8) }

// edge draws a line: sideways out of its beginning, down, and sideways again in the
// gap above each row in which it bends.
func (s *svgDrawing) edge(e line) {
	class := "e " + laneClass(e.run)
	var to *protocol.GraphRow
	if e.to < len(s.l.rows) {
		to = &s.l.rows[e.to]
		if to.OnHead && !to.Ghost && e.Style != protocol.EdgeSpawn && !e.sideways() {
			class += " h"
		}
		if to.Ghost {
			class += " g"
		}
	}
	if e.dashed() || to != nil && to.Ghost {
		class += " d"
	}
	if e.sideways() {
		s.write(`<path class="%s" d="M%d %dH%d"/>`+"\n", class, s.x(e.FromLane), s.y(e.to), s.x(e.ToLane))
		return
	}
	s.write(`<path class="%s" d="`, class)
	x := s.x(e.run)
	switch from := s.x(e.FromLane); {
	case e.from < 0:
		s.write("M%d %d", x, s.top-margin/2)
	case from == x:
		s.write("M%d %d", x, s.y(e.from))
	default:
		y, r := s.y(e.from), corner
		if from > x {
			r = -corner
		}
		s.write("M%d %dH%dQ%d %d %d %d", from, y, x-r, x, y, x, y+corner)
	}
	for _, b := range e.bends {
		y, next := s.y(b.row), s.x(b.to)
		if next != x {
			s.write("V%dC%d %d %d %d %d %d", y-rowHeight+corner, x, y-corner, next, y-rowHeight+corner, next, y-2)
			x = next
		}
	}
	end := s.bottom + margin/2
	if e.to < len(s.l.rows) {
		end = s.y(e.to)
	}
	s.write("V%d\"/>\n", end)
}

// arrow draws the edge to an attach node: along the right of all that is between.
func (s *svgDrawing) arrow(e line) {
	if e.to >= len(s.l.rows) {
		return
	}
	y, end, r := s.y(e.to), s.x(e.ToLane)+8, corner
	x := s.x(s.rightmost(max(e.from, 0), e.to)) + labelGap/2
	if e.from >= 0 {
		s.write(`<path class="e d mut" d="M%d %dH%dQ%d %d %d %d`, s.x(e.FromLane)+8, s.y(e.from), x-r, x, s.y(e.from), x, s.y(e.from)+r)
	} else {
		s.write(`<path class="e d mut" d="M%d %d`, x, s.top-margin/2)
	}
	s.write(`V%dQ%d %d %d %dH%d"/><path class="k mut" d="M%d %dl6 -4v8z"/>`+"\n", y-r, x, y, x-r, y, end+4, end-1, y)
}

// farRows is over how many rows an arrow is led around what is there. One that is
// longer is led around all there is in the picture.
const farRows = 2_000

// rightmost returns the last column in which there is something between two rows.
func (s *svgDrawing) rightmost(from, to int) int {
	if to-from > farRows {
		return s.l.columns - 1
	}
	return slices.Max(s.last[from : to+1])
}

// notes tell what is left out.
func (s *svgDrawing) notes() {
	note := func(y int, text string) {
		s.write(`<text class="m s" x="%d" y="%d">%s</text>`+"\n", margin, y, escaped(text))
	}
	y := s.bottom + margin
	if s.l.above {
		note(margin+4, "⋮ there is more above")
	}
	if s.l.below {
		note(y+8, "⋮ there is more below")
		y += noteHeight
	}
	for _, text := range s.l.notes("…") {
		note(y+8, text)
		y += noteHeight
	}
}

// row draws a node and its label.
func (s *svgDrawing) row(i int, c *cells) error {
	r := &s.l.rows[i]
	class := laneClass(r.Lane)
	switch state, _ := fold(r); {
	case state == "void" || r.Status == protocol.StatusFailed:
		class = "red"
	case state == "superseded" || state == "undone" || state == "inert":
		class = "mut"
	}
	s.write(`<g class="%s"><title>%s</title>`, class, escaped(about(r)))
	last := max(c.last(), s.l.column(r.Lane), min(s.l.columns, aligned)-1)
	s.last = append(s.last, last)
	x, y := s.x(last)+labelGap, s.y(i)
	if r.Tier > 0 {
		x += tierIndent*(r.Tier-1) + 4
		s.write(`<path class="e" d="M%d %dv%dh8"/>`, x, y-rowHeight/2+2, rowHeight/2-2)
		x += 14
		s.shape(r, x, y)
		x += 10
	} else {
		s.shape(r, s.x(r.Lane), y)
	}
	s.label(i, x, y)
	s.write("</g>\n")
	return s.err()
}

// err is that of the writer below, so that a drawing that nobody takes ends early.
func (s *svgDrawing) err() error {
	_, err := s.out.Write(nil)
	return err
}

// shape draws the mark of a node.
func (s *svgDrawing) shape(r *protocol.GraphRow, x, y int) {
	dash := ""
	if r.Ghost {
		dash = " d"
		s.write(`<g class="g">`)
		defer s.write("</g>")
	}
	switch r.Kind {
	case protocol.KindSummary:
		s.capsule(r, x, y)
	case protocol.KindRoot:
		s.write(`<path class="r k%s" d="M%d %dl7 7l-7 7l-7 -7z"/>`, dash, x, y-7)
	case protocol.KindAttach:
		s.write(`<path class="r bg%s" d="M%d %dl7 7l-7 7l-7 -7z"/>`, dash, x, y-7)
	case protocol.KindAssistant:
		if r.Ghost || !r.Status.Final() {
			s.write(`<circle class="r bg d" cx="%d" cy="%d" r="5.5"/><circle class="k" cx="%d" cy="%d" r="2.5"/>`, x, y, x, y)
			return
		}
		s.write(`<circle class="r k" cx="%d" cy="%d" r="6"/>`, x, y)
	case protocol.KindTool:
		s.write(`<rect class="r k" x="%d" y="%d" width="8" height="8" rx="1.5"/>`, x-4, y-4)
	case protocol.KindCall:
		s.write(`<rect class="r bg" x="%d" y="%d" width="8" height="8" rx="1.5"/>`, x-4, y-4)
	case protocol.KindNotice:
		s.write(`<circle class="k" cx="%d" cy="%d" r="3"/>`, x, y)
	default:
		s.write(`<circle class="r bg%s" cx="%d" cy="%d" r="5.5"/>`, dash, x, y)
	}
}

// capsule draws a summary: a doubled ring with the count inside where it folds, one
// dashed ring where it does not.
func (s *svgDrawing) capsule(r *protocol.GraphRow, x, y int) {
	state, n := fold(r)
	switch state {
	case "folded":
		s.write(`<circle class="r bg" cx="%d" cy="%d" r="13"/><circle class="e" cx="%d" cy="%d" r="10"/>`, x, y, x, y)
	case "expanded":
		s.write(`<circle class="r bg" cx="%d" cy="%d" r="13"/><circle class="e d" cx="%d" cy="%d" r="10"/>`, x, y, x, y)
	case "void":
		s.write(`<circle class="r bg d" cx="%d" cy="%d" r="11"/><path class="e" d="M%d %dl8 8m0 -8l-8 8"/>`, x, y, x-4, y-4)
		return
	default:
		s.write(`<circle class="r bg d" cx="%d" cy="%d" r="11"/>`, x, y)
	}
	s.write(`<text class="n %s" x="%d" y="%g">%s</text>`, bracket(r.InContext, "t", "m"), x, float64(y)+3.2, short(n))
}

// short writes a count in four characters at most.
func short(n int64) string {
	switch {
	case n < 1_000:
		return strconv.FormatInt(n, 10)
	case n < 1_000_000:
		return strconv.FormatInt(n/1_000, 10) + "k"
	}
	return strconv.FormatInt(n/1_000_000, 10) + "M"
}

// label writes the pills and the text of a row, beginning at x.
func (s *svgDrawing) label(i, x, y int) {
	r := &s.l.rows[i]
	at := float64(x)
	if r.IsHead {
		at = s.pill(at, y, "HEAD", "acc", "on")
	}
	for _, b := range r.Branches {
		at = s.pill(at, y, clean(b), "pill", "t")
	}
	var after strings.Builder
	rest := (float64(s.width) - margin - at) / fontSize
	add := func(text, class string) {
		if text != "" {
			rest -= estimate(text)*smallSize/fontSize + 0.7
			fmt.Fprintf(&after, `<tspan class="%s s" dx="8">%s</tspan>`, class, escaped(text))
		}
	}
	statusClass := "bad"
	if !r.Status.Final() {
		statusClass = "open"
	}
	add(status(r), statusClass)
	add(callsText(s.l.callsHidden(i)), "m")
	if r.Pinned {
		add("pinned", "m")
	}
	if r.Read {
		add("read", "m")
	}
	if r.Lane >= s.l.limit {
		add("lane "+thousands(int64(r.Lane+1)), "m")
	}
	class := "t"
	if textStyle(r) == faint {
		class = "m"
	}
	if r.Tier > 0 {
		class += " s"
	}
	what := foldText(r)
	if what == "" {
		_, local := s.sources[r.ID]
		what = sourceText(r.Source, local, "…")
	}
	before := ""
	if what != "" {
		rest -= estimate(what)*smallSize/fontSize + 0.7
		before = fmt.Sprintf(`<tspan class="m s">%s</tspan><tspan dx="8">`, escaped(what))
	}
	s.write(`<text class="%s" x="%g" y="%d">%s%s`, class, at, y+4, before, escaped(shorten(s.l.label(i, s.sources), rest)))
	if before != "" {
		s.write("</tspan>")
	}
	s.write("%s</text>", after.String())
}

// pill writes a name in a rounded box and returns where the next thing begins. It is
// no longer than a third of the picture.
func (s *svgDrawing) pill(at float64, y int, name, box, text string) float64 {
	name = ansi.Truncate(name, int(float64(s.width)/3/pillSize), "…")
	w := float64(ansi.StringWidth(name))*pillSize + 14
	s.write(`<rect class="%s" x="%g" y="%d" width="%.1f" height="18" rx="9"/><text class="p %s" x="%g" y="%d">%s</text>`, box, at, y-9, w, text, at+7, y+4, escaped(name))
	return float64(int(at + w + 6))
}
