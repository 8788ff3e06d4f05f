package drawing

import (
	"io"

	"convls/protocol"
)

// DefaultMaxLanes is how many lanes are drawn side by side if Options do not say.
const DefaultMaxLanes = 24

// Options say how a graph is drawn. The zero value is good for all formats.
type Options struct {
	// Width is how wide the drawing is: columns of text, or pixels of an SVG. Labels are
	// cut to fit. With 0 lines of text are not cut, and an SVG has 960 pixels.
	Width int
	// MaxLanes is how many lanes are drawn; all lanes after them share one more column,
	// which is marked. It is [DefaultMaxLanes] if it is 0.
	MaxLanes int
	// ASCII draws text with characters of ASCII. What people and models wrote stays as it
	// is; where it is cut, the mark of that is ASCII too.
	ASCII bool
	// Color colours text with escape codes. Without it a mark stands where a colour
	// alone would tell something.
	Color bool
	// IDs begins labels of text with the ids of the nodes.
	IDs bool
	// Theme is that of an SVG.
	Theme Theme
	// Title names an SVG and a DOT graph.
	Title string
}

// Theme is which colours an SVG has.
type Theme string

// The themes. ThemeAuto, which the empty one stands for, follows whoever looks at the
// picture: its style sheet asks for prefers-color-scheme.
const (
	ThemeAuto  Theme = "auto"
	ThemeLight Theme = "light"
	ThemeDark  Theme = "dark"
)

func (o Options) maxLanes() int {
	if o.MaxLanes <= 0 {
		return DefaultMaxLanes
	}
	return o.MaxLanes
}

// JSON writes the view itself, indented, as convls/graph/get answers it.
func JSON(w io.Writer, view *protocol.GraphView) error {
	data, err := protocol.Marshal(view)
	if err != nil {
		return err
	}
	raw := protocol.Raw(data)
	if err := raw.Indent(); err != nil {
		return err
	}
	_, err = w.Write(append(raw, '\n'))
	return err
}
