package projection

import (
	"iter"
	"slices"

	"convls/protocol"
	"convls/store"
)

// GraphWindow chooses rows of a session's graph.
type GraphWindow struct {
	// Head is whose folds and context are shown; HEAD if it is zero.
	Head store.Skeleton
	// Expanded are ids of summaries whose covered nodes are shown, and of chain nodes
	// whose calls are.
	Expanded []string
	// Around, Before and After are ids of nodes; see protocol.GraphGetParams.
	Around, Before, After string
	// Limit is how many rows to show.
	Limit int
	// Since, if it is not 0, is the revision that the client has.
	Since int64
	// ReadsOf is the id of a call whose reads are marked.
	ReadsOf string
	// CountCovers leaves the ids of covered nodes out.
	CountCovers bool
}

// Graph returns a window of the graph of a session, laid out.
//
// Rows are the chain nodes in the order in which they were written, each followed
// by what it called, if it is expanded, and by the capsules of the summaries whose
// covered nodes end with it. So a row's place is known when the node is written:
// what is appended comes below all that is drawn, and a page begins at a number.
// The other candidate, the order of a walk over the tree, would move all rows
// below a branch that grows, and needs the size of every branch to find a page.
//
// A window costs what it shows, O(log n) for each branch that there is, and nothing
// for the nodes that are folded away.
func Graph(r *store.Reader, w GraphWindow) (*protocol.GraphView, error) {
	r.Sequential()
	g := &grapher{pieces: pieces{Reader: r}, w: w, shown: map[store.Seq]map[store.Seq]bool{}}
	if err := g.prepare(); err != nil {
		return nil, err
	}
	out := &protocol.GraphView{Revision: int64(r.State.Events), Head: g.head.ID, Changed: protocol.GraphAll, Rows: []protocol.GraphRow{}, Edges: []protocol.GraphEdge{}}
	var changed map[string]bool
	if w.Since != 0 {
		var err error
		if out.Changed, changed, err = g.changes(uint64(w.Since)); err != nil || out.Changed == protocol.GraphUnchanged {
			return out, err
		}
	}
	if err := g.open(); err != nil {
		return nil, err
	}
	items, before, after, err := g.window()
	if err != nil {
		return nil, err
	}
	if before {
		out.Before = items[0].node.ID
	}
	if after {
		out.After = items[len(items)-1].node.ID
	}
	for _, it := range items {
		if it.node.Kind == protocol.KindAttach && changed != nil {
			changed[it.node.ID] = true // a name can have moved towards its source, or away
		}
		if out.Changed == protocol.GraphRows && !changed[it.node.ID] {
			continue
		}
		row, err := g.row(it)
		if err != nil {
			return nil, err
		}
		out.Rows = append(out.Rows, row)
	}
	if err := g.edges(items, out); err != nil {
		return nil, err
	}
	if out.Changed == protocol.GraphRows {
		out.Edges = slices.DeleteFunc(out.Edges, func(e protocol.GraphEdge) bool { return !changed[e.From] && !changed[e.To] })
		if len(out.Rows) == 0 {
			out.Changed = protocol.GraphUnchanged
		}
	}
	lanes, err := r.Lanes()
	out.Lanes, out.TotalRows = int(lanes), g.total()
	if g.damage != nil {
		out.Damage = g.damage.Error()
	}
	return out, err
}

// grapher builds one window.
type grapher struct {
	pieces
	w       GraphWindow
	head    store.Skeleton
	current store.Skeleton // the session's HEAD
	// sub is the summary that applies to head, and fold says that it is not expanded.
	sub      *Substitution
	fold     bool
	expanded map[string]bool
	// capsules are the summaries by the slot that they stand in, and slotOf the other
	// way round.
	capsules map[store.Seq][]store.Seq
	slotOf   map[store.Seq]store.Seq
	names    map[store.Seq][]string
	read     []readRun
	// shown is what the context shows beside chain nodes, of those that were asked for.
	shown map[store.Seq]map[store.Seq]bool
}

// item is a row before it is read.
type item struct {
	node store.Skeleton
	// slot is the chain node in whose slot the row stands.
	slot store.Skeleton
	tier int
}

// prepare reads whose graph it is: the head, and what folds there.
func (g *grapher) prepare() error {
	var err error
	if g.current, err = g.Skeleton(g.State.Head); err != nil {
		return err
	}
	if g.head = g.w.Head; g.head.Seq == 0 {
		g.head = g.current
	}
	g.expanded = make(map[string]bool, len(g.w.Expanded))
	for _, id := range g.w.Expanded {
		g.expanded[id] = true
	}
	var damage error
	if g.sub, damage, err = Substituted(g.Reader, g.head); err != nil {
		return err
	}
	g.pass(damage)
	g.fold = g.sub != nil && !g.expanded[g.sub.Summary.ID]
	return nil
}

// open finds what the graph is made of.
func (g *grapher) open() error {
	names, err := g.Names()
	if err != nil {
		return err
	}
	g.names = make(map[store.Seq][]string, len(names))
	for name, seq := range names {
		g.names[seq] = append(g.names[seq], name)
	}
	if err := g.runs(); err != nil {
		return err
	}
	if err := g.placeCapsules(); err != nil {
		return err
	}
	if g.fold {
		if err := g.pieces.fold(g.sub); err != nil {
			return err
		}
		if err := g.foldedSlots(); err != nil {
			return err
		}
	}
	return g.openReads()
}

// placeCapsules gives each summary its slot: that of the last node that it covers.
// A void one whose last node is gone stands where its covered nodes began.
func (g *grapher) placeCapsules() error {
	g.capsules, g.slotOf = map[store.Seq][]store.Seq{}, map[store.Seq]store.Seq{}
	for seq, err := range g.Summaries() {
		if err != nil {
			return err
		}
		covers, err := g.Covers(seq)
		if g.pass(err) {
			continue
		}
		if err != nil {
			return err
		}
		at := covers.Last
		if _, err := g.Skeleton(at); isDamage(err) {
			s, err := g.Skeleton(seq)
			if g.pass(err) {
				continue
			}
			if err != nil {
				return err
			}
			at = s.Predecessor
		} else if err != nil {
			return err
		}
		g.capsules[at] = append(g.capsules[at], seq)
		g.slotOf[seq] = at
	}
	return nil
}

// foldedSlots adds the slots inside the folded stretch in which capsules stand: a
// capsule never hides another.
func (g *grapher) foldedSlots() error {
	for at := range g.capsules {
		s, err := g.Skeleton(at)
		if err != nil {
			return err
		}
		if in, err := g.covered(s); err != nil {
			return err
		} else if in {
			g.all = append(g.all, piece{top: s.Depth, first: s.Seq, bottom: s, folded: true})
		}
	}
	return nil
}

// covered reports whether the summary that applies stands for a chain node.
func (g *grapher) covered(s store.Skeleton) (bool, error) {
	if g.sub == nil {
		return false, nil
	}
	return inStretch(g.Reader, g.sub.First, g.sub.Last, s)
}

// folded reports whether a chain node is folded into a capsule.
func (g *grapher) folded(s store.Skeleton) (bool, error) {
	if !g.fold {
		return false, nil
	}
	return g.covered(s)
}

// total counts the rows of the whole graph, expanded calls left out.
func (g *grapher) total() int64 {
	n := int64(len(g.slotOf))
	for _, p := range g.all {
		if !p.folded {
			n += int64(p.bottom.Depth - p.top + 1)
		}
	}
	return n
}

// items returns the rows of a slot, top to bottom.
func (g *grapher) items(at slot) ([]item, error) {
	var out []item
	if !at.of.folded {
		out = append(out, item{node: at.node, slot: at.node})
		if g.expanded[at.node.ID] {
			for c, err := range g.subtree(at.node) {
				if err != nil {
					return nil, err
				}
				out = append(out, c)
			}
		}
	}
	for _, seq := range g.capsules[at.node.Seq] {
		s, err := g.Skeleton(seq)
		if g.pass(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		out = append(out, item{node: s, slot: at.node})
	}
	return out, nil
}

// place is a row, by its slot and its index there.
type place struct {
	at    slot
	index int
	items []item
}

// find returns the row of a node: its own, or the one that it is folded into.
func (g *grapher) find(id string) (place, error) {
	s, err := g.Lookup(id)
	if err != nil {
		return place{}, err
	}
	return g.placeOf(s)
}

func (g *grapher) placeOf(s store.Skeleton) (place, error) {
	row := s
	var at store.Skeleton
	var err error
	if slot, ok := g.slotOf[s.Seq]; ok {
		at, err = g.Skeleton(slot)
	} else {
		at, err = g.Owner(s)
	}
	if err != nil {
		return place{}, err
	}
	in, err := g.folded(at)
	if err != nil {
		return place{}, err
	}
	if _, capsule := g.slotOf[s.Seq]; in && !capsule {
		row, at = g.sub.Summary, g.sub.Last
	}
	p := place{at: slot{node: at, of: piece{top: at.Depth, first: at.Seq, bottom: at, folded: in}}}
	if p.items, err = g.items(p.at); err != nil {
		return p, err
	}
	p.index = max(slices.IndexFunc(p.items, func(it item) bool { return it.node.Seq == row.Seq }), 0)
	return p, nil
}

// window returns the rows of the window, top to bottom, and whether there are more
// before and after it.
func (g *grapher) window() (items []item, before, after bool, err error) {
	limit := g.w.Limit
	switch {
	case g.w.Before != "":
		p, err := g.find(g.w.Before)
		if err != nil {
			return nil, false, false, err
		}
		up, err := g.up(p, limit+1)
		n := min(len(up), limit)
		return backwards(up[:n]), len(up) > limit, n > 0, err
	case g.w.After != "":
		p, err := g.find(g.w.After)
		if err != nil {
			return nil, false, false, err
		}
		down, err := g.down(p, limit+1)
		n := min(len(down), limit)
		return down[:n], n > 0, len(down) > limit, err
	}
	var p place
	if g.w.Around != "" {
		p, err = g.find(g.w.Around)
	} else {
		p, err = g.placeOf(g.head)
	}
	if err != nil || len(p.items) == 0 {
		return nil, false, false, err
	}
	up, err := g.up(p, limit)
	if err != nil {
		return nil, false, false, err
	}
	down, err := g.down(p, limit)
	if err != nil {
		return nil, false, false, err
	}
	// Half of the rows before it, unless there are fewer after it.
	rest := limit - 1
	above := min(len(up), max(rest-rest/2, rest-len(down)))
	below := min(len(down), rest-above)
	items = append(backwards(up[:above]), p.items[p.index])
	return append(items, down[:below]...), above < len(up), below < len(down), nil
}

func backwards(items []item) []item {
	items = slices.Clone(items)
	slices.Reverse(items)
	return items
}

// up returns the rows before p, nearest first, limit at most.
func (g *grapher) up(p place, limit int) ([]item, error) {
	return g.gather(backwards(p.items[:p.index]), g.upwards(p.at.node.Seq), backwards, limit)
}

// down returns the rows after p, nearest first, limit at most.
func (g *grapher) down(p place, limit int) ([]item, error) {
	return g.gather(slices.Clone(p.items[min(p.index+1, len(p.items)):]), g.downwards(p.at.node.Seq), func(items []item) []item { return items }, limit)
}

// gather adds the rows of slots to out, each slot's in the given order, up to limit.
func (g *grapher) gather(out []item, slots iter.Seq2[slot, error], order func([]item) []item, limit int) ([]item, error) {
	for at, err := range slots {
		if err != nil || len(out) >= limit {
			return out[:min(len(out), limit)], err
		}
		items, err := g.items(at)
		if err != nil {
			return nil, err
		}
		out = append(out, order(items)...)
	}
	return out[:min(len(out), limit)], nil
}
