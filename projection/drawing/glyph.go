package drawing

import "convls/protocol"

// glyphs are the characters of a text graph, each one column wide. lines are those
// of the arms of a cell; see up, down, left, right.
type glyphs struct {
	lines                    [16]string
	dashedDown, dashedAcross string
	kinds                    map[protocol.Kind]string
	capsules                 map[string]string
	unknown                  string
	// ringed says that a capsule has brackets left and right of it.
	ringed                              bool
	ghost, call, more, head, below, cut string
}

// unicode are the box-drawing characters and geometric shapes.
func unicodeGlyphs() glyphs {
	return glyphs{
		lines: [16]string{
			up: "╵", down: "╷", left: "╴", right: "╶",
			up | down: "│", left | right: "─",
			up | right: "╰", up | left: "╯", down | right: "╭", down | left: "╮",
			up | down | right: "├", up | down | left: "┤", left | right | down: "┬", left | right | up: "┴",
			up | down | left | right: "┼", 0: " ",
		},
		dashedDown: "┆", dashedAcross: "╌",
		kinds: map[protocol.Kind]string{
			protocol.KindRoot: "◆", protocol.KindUser: "○", protocol.KindAssistant: "●", protocol.KindAttach: "◇",
			protocol.KindTool: "▪", protocol.KindCall: "▫", protocol.KindNotice: "·",
		},
		capsules: map[string]string{"folded": "◎", "expanded": "◎", "inert": "◌", "superseded": "◌", "undone": "◌", "void": "⊗"},
		unknown:  "?", ghost: "┊", call: "└", more: "…", head: "◀ HEAD", below: "⋮", cut: "…",
	}
}

// asciiGlyphs are for terminals and files that take nothing else.
func asciiGlyphs() glyphs {
	return glyphs{
		lines: [16]string{
			up: "|", down: "|", left: "-", right: "-",
			up | down: "|", left | right: "-",
			up | right: `\`, up | left: "/", down | right: "/", down | left: `\`,
			up | down | right: "+", up | down | left: "+", left | right | down: "+", left | right | up: "+",
			up | down | left | right: "+", 0: " ",
		},
		dashedDown: ":", dashedAcross: "~",
		kinds: map[protocol.Kind]string{
			protocol.KindRoot: "#", protocol.KindUser: "o", protocol.KindAssistant: "*", protocol.KindAttach: "<",
			protocol.KindTool: "=", protocol.KindCall: "%", protocol.KindNotice: ".",
		},
		capsules: map[string]string{"folded": "o", "expanded": "o", "inert": " ", "superseded": " ", "undone": " ", "void": "x"},
		unknown:  "?", ringed: true, ghost: ":", call: "`", more: "~", head: "<= HEAD", below: ":", cut: "...",
	}
}

func (o Options) glyphs() glyphs {
	if o.ASCII {
		return asciiGlyphs()
	}
	return unicodeGlyphs()
}

// node is the glyph of a row.
func (g *glyphs) node(r *protocol.GraphRow) string {
	s, ok := g.kinds[r.Kind]
	if r.Kind == protocol.KindSummary {
		state, _ := fold(r)
		if s, ok = g.capsules[state]; !ok {
			return g.capsules["inert"]
		}
	}
	if !ok {
		return g.unknown
	}
	return s
}

// cell is the glyph of the lines in a cell.
func (g *glyphs) cell(c cell) string {
	switch {
	case c.dashed && c.arms == up|down:
		return g.dashedDown
	case c.dashed && c.arms == left|right:
		return g.dashedAcross
	}
	return g.lines[c.arms]
}
