package drawing

import (
	"bufio"
	"io"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"convls/protocol"
)

// longestDOT is how many columns of text a node has: Graphviz does not wrap.
const longestDOT = 48

// DOT writes a view in the language of Graphviz (its manual, "The DOT Language"): the
// nodes and edges of the view, for Graphviz to lay out in its own way. An end of an
// edge that is outside the window is a node with dots.
func DOT(w io.Writer, view *protocol.GraphView, o Options) error {
	d := dotDrawing{bufio.NewWriter(w), strings.NewReplacer(`\`, `\\`, `"`, `\"`, "&", "&amp;")}
	d.write("digraph ", d.quoted(o.Title), " {\n")
	d.write("  node [fontname=\"sans-serif\", fontsize=11, shape=box, style=rounded];\n  edge [arrowhead=none];\n")
	known := make(map[string]bool, len(view.Rows))
	for i := range view.Rows {
		r := &view.Rows[i]
		known[r.ID] = true
		d.node(r)
	}
	for _, e := range view.Edges {
		for _, id := range []string{e.From, e.To} {
			if !known[id] {
				known[id] = true
				d.write("  ", d.quoted(id), " [label=\"…\", shape=plaintext];\n")
			}
		}
		d.edge(e)
	}
	d.hanging(view, known)
	d.write("}\n")
	return d.out.Flush()
}

// hanging writes the edges of what hangs off the chain: from a caller to its calls, and
// to a summary that stands beside the last node it covers.
func (d dotDrawing) hanging(view *protocol.GraphView, known map[string]bool) {
	ends := make(map[string]bool, len(view.Edges))
	for _, e := range view.Edges {
		ends[e.To] = true
	}
	var at *protocol.GraphRow
	for i := range view.Rows {
		r := &view.Rows[i]
		from := ""
		switch {
		case r.Tier > 0:
			if known[r.Caller] {
				from = r.Caller
			}
		case r.Kind != protocol.KindSummary:
			at = r
		case at != nil && at.Row == r.Row && !ends[r.ID]:
			from = at.ID
		}
		if from != "" {
			d.write("  ", d.quoted(from), " -> ", d.quoted(r.ID), " [style=dotted];\n")
		}
	}
}

type dotDrawing struct {
	out *bufio.Writer
	// escape escapes a line of a string. Graphviz takes backslashes, and in labels
	// entities of HTML, for more than they are.
	escape *strings.Replacer
}

func (d dotDrawing) write(parts ...string) {
	for _, p := range parts {
		_, _ = d.out.WriteString(p) // its errors stay until Flush
	}
}

// dotShapes are the shapes of kinds other than box.
func dotShapes() map[protocol.Kind]string {
	return map[protocol.Kind]string{
		protocol.KindRoot: "octagon", protocol.KindUser: "box", protocol.KindAssistant: "box", protocol.KindAttach: "cds",
		protocol.KindTool: "component", protocol.KindCall: "component", protocol.KindSummary: "ellipse", protocol.KindNotice: "note",
	}
}

func (d dotDrawing) node(r *protocol.GraphRow) {
	label := ansi.Truncate(text(r), longestDOT, "…")
	if s := foldText(r); s != "" {
		label = s
	}
	tags := []string{}
	if r.Source != nil && r.Source.Deleted {
		tags = append(tags, sourceText(r.Source, true, "…"))
	}
	for _, b := range r.Branches {
		tags = append(tags, "["+clean(b)+"]")
	}
	if r.IsHead {
		tags = append(tags, "HEAD")
	}
	for _, s := range []string{parenthesised(status(r)), callsText(r.Calls)} {
		if s != "" {
			tags = append(tags, s)
		}
	}
	if len(tags) > 0 {
		label += "\n" + strings.Join(tags, " ")
	}
	d.write("  ", d.quoted(r.ID), " [label=", d.quoted(label), ", tooltip=", d.quoted(about(r)))
	if shape := dotShapes()[r.Kind]; shape != "" && shape != "box" {
		d.write(", shape=", shape)
	}
	if r.Kind == protocol.KindSummary {
		d.write(", peripheries=2")
	}
	switch {
	case r.Ghost, r.SupersededSummary:
		d.write(", style=\"rounded,dashed\", fontcolor=gray50")
	case r.IsHead:
		d.write(", style=\"rounded,bold\"")
	case r.Kind == protocol.KindAssistant:
		d.write(", style=\"rounded,filled\", fillcolor=gray95")
	}
	d.write("];\n")
}

func (d dotDrawing) edge(e protocol.GraphEdge) {
	d.write("  ", d.quoted(e.From), " -> ", d.quoted(e.To))
	switch e.Style {
	case protocol.EdgeFolded:
		d.write(" [style=dashed]")
	case protocol.EdgeSpawn:
		d.write(" [style=dotted]")
	case protocol.EdgeAttach:
		d.write(" [style=dashed, arrowhead=normal, constraint=false]")
	}
	d.write(";\n")
}

// quoted writes s as a string of DOT. Its lines are broken where s has a line feed.
func (d dotDrawing) quoted(s string) string {
	lines := strings.Split(s, "\n")
	for i, l := range lines {
		lines[i] = d.escape.Replace(clean(l))
	}
	return `"` + strings.Join(lines, `\n`) + `"`
}
