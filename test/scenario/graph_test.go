package scenario

import (
	"fmt"
	"slices"
	"strings"

	"convls/projection/drawing"
	"convls/protocol"
	"convls/test/editor"
	"convls/test/reference"
)

// checkGraph compares the graph as it is seen from a head: which nodes are rows, what
// is told of them, what each hangs on, and that at most one summary tells what it
// covers where one is active at most (invariant 5, known defects 3 to 5).
func (w *world) checkGraph(s *reference.Session, h *reference.Node) {
	w.t.Helper()
	view := w.graph(s, h.ID)
	got := map[string]reference.GraphRow{}
	telling := 0
	last := protocol.GraphRow{}
	for _, r := range view.Rows {
		if _, twice := got[r.ID]; twice || r.Row < last.Row || r.Row == last.Row && r.Seq <= last.Seq {
			w.t.Fatalf("row %s stands at %d/%d, after %d/%d", w.anonymous(r.ID), r.Row, r.Seq, last.Row, last.Seq)
		}
		last = r
		got[r.ID] = graphRow(r)
		if r.CoversIDs != nil {
			telling++
		}
	}
	if s.Policy != protocol.PolicyPerBranch && telling > 1 {
		w.t.Fatalf("%d summaries tell what they cover", telling)
	}
	for _, e := range view.Edges {
		r, ok := got[e.To]
		if e.Style == protocol.EdgeAttach {
			continue
		}
		if !ok || r.From != "" {
			w.t.Fatalf("edge %+v leads to no row, or to one that has an edge", e)
		}
		r.From = e.From
		got[e.To] = r
	}
	if int(view.TotalRows) != len(got) {
		w.t.Fatalf("the graph has %d rows and says that it has %d", len(got), view.TotalRows)
	}
	w.differ("the graph from "+h.ID, got, s.Graph(h))
}

// graph reads the whole graph, window by window.
func (w *world) graph(s *reference.Session, head string) *protocol.GraphView {
	w.t.Helper()
	p := protocol.GraphGetParams{SessionID: s.ID, Head: head, Limit: 40}
	whole := editor.Ask[protocol.GraphView](w.ed, protocol.MethodGraphGet, p)
	for before := whole.Before; before != ""; {
		p.Before = before
		v := editor.Ask[protocol.GraphView](w.ed, protocol.MethodGraphGet, p)
		whole.Rows, before = append(v.Rows, whole.Rows...), v.Before
		whole.Edges = append(whole.Edges, v.Edges...)
	}
	p.Before = ""
	for after := whole.After; after != ""; {
		p.After = after
		v := editor.Ask[protocol.GraphView](w.ed, protocol.MethodGraphGet, p)
		whole.Rows, after = append(whole.Rows, v.Rows...), v.After
		whole.Edges = append(whole.Edges, v.Edges...)
	}
	// Windows share the edges between them.
	seen := map[string]bool{}
	whole.Edges = slices.DeleteFunc(whole.Edges, func(e protocol.GraphEdge) bool {
		name := fmt.Sprint(e.From, " ", e.To, " ", e.Style)
		defer func() { seen[name] = true }()
		return seen[name]
	})
	whole.Before, whole.After = "", ""
	return &whole
}

// graphRow is a row as the reference has it.
func graphRow(r protocol.GraphRow) reference.GraphRow {
	out := reference.GraphRow{ID: r.ID, Predecessor: r.Predecessor, Caller: r.Caller, Kind: r.Kind, Status: r.Status, IsHead: r.IsHead, OnHead: r.OnHead,
		InContext: r.InContext, Tip: r.Tip, Spawned: r.Spawned, Pinned: r.Pinned, Redacted: r.Redacted, Void: r.Void, Superseded: r.SupersededSummary,
		Branches: strings.Join(r.Branches, " "), Calls: r.Calls, Covers: r.CoversIDs}
	if r.Fold != nil {
		out.Fold = fmt.Sprintf("%s %d", r.Fold.State, r.Fold.Count)
	}
	if r.Void {
		out.Fold = "void"
	}
	return out
}

// opGraph draws the graph.
func opGraph(w *world, a arguments) string {
	var b strings.Builder
	view := w.graph(w.now, w.head(a))
	for i, r := range view.Rows {
		view.Rows[i].Preview = w.anonymous(r.Preview)
		if r.Source != nil {
			r.Source.SessionID, r.Source.NodeID = w.anonymous(r.Source.SessionID), w.anonymous(r.Source.NodeID)
		}
	}
	if err := drawing.Text(&b, view, drawing.Options{Width: 76}); err != nil {
		w.t.Fatal(err)
	}
	return strings.TrimRight(b.String(), "\n")
}
