package projection

import (
	"cmp"
	"slices"

	"convls/protocol"
	"convls/store"
)

// maxPassing bounds the edges that pass a window from above it to below it: more
// lines than that are no picture.
const maxPassing = 100

// edges fills in the edges at the rows of a window, and those that pass it.
func (g *grapher) edges(items []item, out *protocol.GraphView) error {
	if len(items) == 0 {
		return nil
	}
	var slots []store.Seq
	for _, it := range items {
		if n := len(slots); n == 0 || slots[n-1] != it.slot.Seq {
			slots = append(slots, it.slot.Seq)
		}
	}
	e := &edger{grapher: g, slots: slots, out: out}
	for _, it := range items {
		var err error
		switch {
		case g.fold && it.node.Seq == g.sub.Summary.Seq:
			var rail protocol.GraphEdge
			if rail, err = e.rail(); err == nil {
				e.add(rail)
			}
		case it.node.Kind.OnChain():
			if err = e.chain(it.node); err == nil && it.node.Kind == protocol.KindAttach {
				err = e.attach(it.node)
			}
		}
		if err != nil && !g.pass(err) {
			return err
		}
	}
	if err := e.leaving(items); err != nil {
		return err
	}
	slices.SortStableFunc(out.Edges, func(a, b protocol.GraphEdge) int { return cmp.Compare(a.ToRow, b.ToRow) })
	return nil
}

// edger finds the edges of one window.
type edger struct {
	*grapher
	slots []store.Seq // those of the window, top to bottom
	out   *protocol.GraphView
}

func (e *edger) top() store.Seq    { return e.slots[0] }
func (e *edger) bottom() store.Seq { return e.slots[len(e.slots)-1] }

func (e *edger) add(edge protocol.GraphEdge) { e.out.Edges = append(e.out.Edges, edge) }

// chain adds the edge from a chain node's predecessor, or from the capsule that this
// is folded into.
func (e *edger) chain(s store.Skeleton) error {
	if s.Predecessor == 0 {
		return nil
	}
	edge, err := e.edgeTo(s)
	if err == nil {
		e.add(edge)
	}
	return err
}

func (e *edger) edgeTo(s store.Skeleton) (protocol.GraphEdge, error) {
	edge := protocol.GraphEdge{To: s.ID, Style: protocol.EdgeChain, ToRow: int64(s.Seq), ToLane: int(s.Lane)}
	if s.Caller != 0 {
		edge.Style = protocol.EdgeSpawn
	}
	pred, err := e.Skeleton(s.Predecessor)
	if err != nil {
		return edge, err
	}
	in, err := e.folded(pred)
	if err != nil {
		return edge, err
	}
	edge.From, edge.FromRow, edge.FromLane = pred.ID, int64(pred.Seq), int(pred.Lane)
	if !in {
		return edge, nil
	}
	edge.Style, edge.From = protocol.EdgeFolded, e.sub.Summary.ID
	if s.Seq > e.sub.Last.Seq {
		edge.FromRow, edge.FromLane = int64(e.sub.Last.Seq), int(e.sub.Last.Lane)
		return edge, nil
	}
	// The branch began before the segment's end: it leaves the folded line beside itself.
	edge.FromRow = int64(s.Seq)
	edge.FromLane, err = e.railLane(s.Seq)
	return edge, err
}

// railLane returns the lane of the folded line at a slot: that of the covered node
// that the line would lead to from there.
func (e *edger) railLane(at store.Seq) (int, error) {
	next, err := e.railNode(at)
	return int(next.Lane), err
}

// railNode returns the first covered node that was written at or after the number at.
func (e *edger) railNode(at store.Seq) (store.Skeleton, error) {
	before, ok, err := e.AncestorBefore(e.sub.Last, at)
	if err != nil {
		return before, err
	}
	if !ok || before.Depth < e.sub.First.Depth {
		return e.sub.First, nil
	}
	return e.AncestorAt(e.sub.Last, before.Depth+1)
}

// rail returns the edge that stands for the folded nodes: from before the first to the
// capsule. It runs in the lanes that those stood in, which nothing else is in.
func (e *edger) rail() (protocol.GraphEdge, error) {
	from, err := e.Skeleton(e.sub.First.Predecessor)
	if err != nil {
		return protocol.GraphEdge{}, err
	}
	last := e.sub.Last
	edge := protocol.GraphEdge{From: from.ID, To: e.sub.Summary.ID, Style: protocol.EdgeFolded,
		FromRow: int64(from.Seq), FromLane: int(from.Lane), ToRow: int64(last.Seq), ToLane: int(last.Lane)}
	lane, at := -1, from.Seq
	for _, s := range append(slices.Clone(e.slots), last.Seq) {
		if s <= from.Seq || s > last.Seq {
			continue
		}
		here, err := e.railLane(s)
		if err != nil {
			return edge, err
		}
		if lane >= 0 && here != lane {
			bend, err := e.railNode(at + 1)
			if err != nil {
				return edge, err
			}
			edge.Bends = append(edge.Bends, protocol.GraphBend{Row: int64(min(bend.Seq, s)), From: lane, To: here})
		}
		lane, at = here, s
	}
	return edge, nil
}

// attach adds the edge from what an attach node points at, if that is in this
// session.
func (e *edger) attach(s store.Skeleton) error {
	content, err := e.Content(s.Seq)
	if err != nil || content.Source == nil || content.Source.SessionID != e.SessionID() {
		return err
	}
	p, err := e.find(content.Source.NodeID)
	if protocol.CodeOf(err) == protocol.CodeUnknownNode {
		return nil // deleted since
	}
	if err != nil || len(p.items) == 0 {
		return err
	}
	from := p.items[p.index]
	e.add(protocol.GraphEdge{From: from.node.ID, To: s.ID, Style: protocol.EdgeAttach,
		FromRow: int64(from.slot.Seq), FromLane: int(from.slot.Lane), ToRow: int64(s.Seq), ToLane: int(s.Lane)})
	return nil
}

// leaving adds the edges that lead to below the window, from inside it or from
// above: in each piece that to the first node below.
func (e *edger) leaving(items []item) error {
	bottom := e.bottom()
	var passing []protocol.GraphEdge
	put := func(edge protocol.GraphEdge) {
		switch e.side(edge.From, edge.FromRow, items) {
		case above:
			passing = append(passing, edge)
		case inside:
			e.add(edge)
		}
	}
	for _, part := range e.all {
		if part.bottom.Seq <= bottom || part.folded {
			continue
		}
		s, err := e.firstAfter(part, bottom)
		if e.pass(err) || err == nil && s.Predecessor == 0 {
			continue
		}
		if err != nil {
			return err
		}
		edge, err := e.edgeTo(s)
		if e.pass(err) {
			continue
		}
		if err != nil {
			return err
		}
		put(edge)
	}
	if e.fold && e.side(e.sub.Summary.ID, int64(e.sub.Last.Seq), items) == below {
		rail, err := e.rail()
		if err != nil {
			return err
		}
		put(rail)
	}
	e.out.Passing = len(passing)
	slices.SortFunc(passing, func(a, b protocol.GraphEdge) int { return cmp.Compare(a.ToLane, b.ToLane) })
	e.out.Edges = append(e.out.Edges, passing[:min(len(passing), maxPassing)]...)
	return nil
}

// side says where a row is, as seen from a window.
type side int

const (
	above side = iota
	inside
	below
)

// side returns where the row of a node is that begins or ends an edge: rows of one
// slot can be on both sides of a window's border.
func (e *edger) side(id string, row int64, items []item) side {
	switch {
	case row < int64(e.top()):
		return above
	case row > int64(e.bottom()):
		return below
	case slices.ContainsFunc(items, func(it item) bool { return it.node.ID == id }):
		return inside
	case e.sub == nil || id != e.sub.Summary.ID:
		// A chain node is the first row of its slot.
		if row == int64(e.top()) {
			return above
		}
		return below
	case row == int64(e.top()) && items[0].node.Seq > e.sub.Summary.Seq:
		return above
	}
	return below
}
