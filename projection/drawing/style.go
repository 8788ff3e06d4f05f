package drawing

import (
	"github.com/charmbracelet/x/ansi"

	"convls/protocol"
)

// style is how a piece of text looks on a terminal. Its colours are the sixteen of
// the terminal's own palette, which fit its background.
type style int

// The styles. Those of lanes follow from laneColor on.
const (
	noStyle style = iota
	faint
	branchStyle
	headStyle
	failedStyle
	openStyle
	laneColor
)

// bold is added to the style of a lane.
const bold style = 1 << 8

func lanePalette() []ansi.BasicColor {
	return []ansi.BasicColor{ansi.Cyan, ansi.Magenta, ansi.Green, ansi.Yellow, ansi.Blue, ansi.Red}
}

// paint gives s a style, if colours are wanted.
func (t *textDrawing) paint(s string, is style) string {
	if !t.Color || is == noStyle || s == " " || s == "" {
		return s
	}
	var a ansi.Style
	if is&bold != 0 {
		a = a.Bold()
	}
	switch is &^= bold; is {
	case faint:
		a = a.Faint()
	case branchStyle:
		a = a.ForegroundColor(ansi.Green)
	case headStyle:
		a = a.Bold().Reverse(true)
	case failedStyle:
		a = a.ForegroundColor(ansi.Red)
	case openStyle:
		a = a.ForegroundColor(ansi.Yellow)
	default:
		palette := lanePalette()
		a = a.ForegroundColor(palette[int(is-laneColor)%len(palette)])
	}
	return a.Styled(s)
}

func laneStyle(c cell) style { return laneColor + style(c.lane%len(lanePalette())) }

// nodeStyle is that of a row's glyph: what stands on the spine of the head is bold,
// what no model reads any more is faint.
func nodeStyle(r *protocol.GraphRow) style {
	switch state, _ := fold(r); {
	case r.Ghost || state == "superseded" || state == "undone" || state == "inert":
		return faint
	case state == "void" || r.Status == protocol.StatusFailed:
		return failedStyle
	}
	s := laneStyle(cell{lane: max(r.Lane, 0)})
	if r.OnHead {
		s |= bold
	}
	return s
}

// textStyle is that of a row's text: what the model does not read from the head is
// faint.
func textStyle(r *protocol.GraphRow) style {
	if r.Ghost || r.SupersededSummary || !r.InContext {
		return faint
	}
	return noStyle
}

func statusStyle(r *protocol.GraphRow) style {
	if r.Status.Final() {
		return failedStyle
	}
	return openStyle
}
