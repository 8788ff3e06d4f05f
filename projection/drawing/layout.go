package drawing

import (
	"fmt"
	"slices"
	"sort"

	"convls/protocol"
)

// layout is a view with its edges tied to the rows that are drawn.
type layout struct {
	rows  []protocol.GraphRow
	index map[string]int
	// columns is how many columns the lanes take. If lanes are left out the last one
	// is that of all lanes from limit on.
	columns, limit int
	// lines are the edges that have a lane, in the order of the view; arrows are those
	// that have none.
	lines, arrows []line
	// above and below say that the graph goes on there.
	above, below bool
	// unsent is how many lines pass the window that are not in the view.
	unsent int
	// highest is the highest lane of the window.
	highest int
}

// line is an edge whose ends are rows of the drawing.
type line struct {
	protocol.GraphEdge
	// from and to are indices of rows: -1 above the first one, len(rows) below the last.
	from, to int
	// run is the lane in which the line leaves its beginning, or enters the window.
	run int
	// bends are those that are drawn: one a row at most, from top to bottom.
	bends []bend
}

// bend is a change of the lane in a row of the drawing.
type bend struct{ row, from, to int }

// sideways reports whether a line is in one row only.
func (e line) sideways() bool { return e.FromRow == e.ToRow }

// dashed reports whether a line is drawn dashed: it leads to a turn that a call
// spawned, or away from nodes that are not shown.
func (e line) dashed() bool {
	return e.Style == protocol.EdgeSpawn || e.Style == protocol.EdgeFolded && e.sideways()
}

// newLayout ties the edges of a view to its rows.
func newLayout(view *protocol.GraphView, limit int) *layout {
	l := &layout{rows: view.Rows, index: make(map[string]int, len(view.Rows)), limit: limit, above: view.Before != "", below: view.After != ""}
	for i, r := range view.Rows {
		l.index[r.ID] = i
		l.highest = max(l.highest, r.Lane)
	}
	if len(view.Rows) == 0 {
		return l
	}
	for _, e := range view.Edges {
		l.add(e)
	}
	l.unsent = view.Passing
	for _, e := range l.lines {
		if e.from < 0 && e.to == len(l.rows) {
			l.unsent--
		}
	}
	l.columns = min(l.highest, l.limit) + 1
	return l
}

func (l *layout) add(e protocol.GraphEdge) {
	n := line{GraphEdge: e, from: l.begin(e), to: l.end(e), run: e.ToLane}
	switch {
	case e.FromLane < 0 || e.ToLane < 0 || n.to < 0 || n.from >= len(l.rows),
		slices.ContainsFunc(e.Bends, func(b protocol.GraphBend) bool { return b.From < 0 || b.To < 0 }):
		return
	case e.Style == protocol.EdgeAttach:
		if n.from < n.to {
			l.arrows = append(l.arrows, n)
		}
		return
	case n.sideways():
		if n.to == len(l.rows) || l.rows[n.to].Row != e.ToRow {
			return
		}
		n.from = n.to
	case n.from >= n.to:
		return
	case len(e.Bends) > 0:
		n.run = e.Bends[0].From
		for _, b := range e.Bends {
			n.bend(b, l)
		}
	}
	l.highest = max(l.highest, n.run)
	if n.from >= 0 {
		l.highest = max(l.highest, e.FromLane)
	}
	for _, b := range n.bends {
		l.highest = max(l.highest, b.from, b.to)
	}
	l.lines = append(l.lines, n)
}

// bend takes one change of the lane: at the first row at or after its slot. What is
// above the window or at the beginning of the line only changes where it runs first.
func (e *line) bend(b protocol.GraphBend, l *layout) {
	row := l.slot(b.Row)
	switch last := len(e.bends) - 1; {
	case row <= e.from, row == 0 && b.Row < l.rows[0].Row:
		e.run = b.To
	case row >= len(l.rows):
	case last >= 0 && e.bends[last].row == row:
		e.bends[last].to = b.To
	default:
		e.bends = append(e.bends, bend{row: min(row, e.to), from: b.From, to: b.To})
	}
}

// slot returns the first row at or after a slot.
func (l *layout) slot(row int64) int {
	return sort.Search(len(l.rows), func(i int) bool { return l.rows[i].Row >= row })
}

// begin returns the row in which an edge begins. What stands in the first slot and is
// not there is above the window.
func (l *layout) begin(e protocol.GraphEdge) int {
	if i, ok := l.index[e.From]; ok {
		return i
	}
	if e.FromRow <= l.rows[0].Row {
		return -1
	}
	return l.slot(e.FromRow)
}

// end returns the row in which an edge ends.
func (l *layout) end(e protocol.GraphEdge) int {
	if i, ok := l.index[e.To]; ok {
		return i
	}
	if e.ToRow >= l.rows[len(l.rows)-1].Row {
		return len(l.rows)
	}
	if e.ToRow < l.rows[0].Row {
		return -1
	}
	return l.slot(e.ToRow)
}

// column returns where a lane is drawn.
func (l *layout) column(lane int) int { return max(min(lane, l.limit), 0) }

// leftOut returns how many lanes of the window have no column of their own.
func (l *layout) leftOut() int { return max(l.highest+1-l.limit, 0) }

// notes tell of what is not drawn, each begun with mark.
func (l *layout) notes(mark string) []string {
	var out []string
	if n := l.leftOut(); n > 0 {
		out = append(out, fmt.Sprintf("%s lanes %s to %s share the last column", mark, thousands(int64(l.limit+1)), thousands(int64(l.highest+1))))
	}
	if l.unsent > 0 {
		out = append(out, fmt.Sprintf("%s %s that only pass by are left out", mark, counted(int64(l.unsent), "line")))
	}
	return out
}

// The directions in which a line leaves a cell.
const (
	up = 1 << iota
	down
	left
	right
)

// cell is a place of the grid of rows and columns.
type cell struct {
	// arms are the directions in which lines leave it.
	arms int
	// dashed says that what is drawn of it is dashed.
	dashed bool
	// lane is whose colour it has.
	lane int
}

// cells are those of one row: of its columns, and of the gaps between them, gaps[i]
// being the one right of column i.
type cells struct {
	columns, gaps []cell
	// passing says that lines run in the column of the lanes that are left out.
	passing bool
}

// last returns the last column in which there is something.
func (c *cells) last() int {
	for i := len(c.columns) - 1; i >= 0; i-- {
		if c.columns[i].arms != 0 {
			return i
		}
	}
	return -1
}

// sweeping is the state between two rows of a sweep.
type sweeping struct {
	l      *layout
	active []cell // of each column, the line that runs down in it; arms is 0 if there is none
	more   int    // lines that run in lanes that are left out
	c      cells
}

// sweep calls visit for every row, from top to bottom, with its cells, which are valid
// until visit returns. It keeps one row in memory, however many there are.
func (l *layout) sweep(visit func(row int, c *cells) error) error {
	begins, bends, ends := l.events()
	s := sweeping{l: l, active: make([]cell, l.columns), c: cells{columns: make([]cell, l.columns), gaps: make([]cell, l.columns)}}
	for _, e := range begins[0] {
		s.open(e, l.lines[e].run)
	}
	for i := range l.rows {
		s.pass()
		for _, e := range ends[i] {
			s.finish(e, i)
		}
		for _, e := range bends[i] {
			s.bend(e, i)
		}
		for _, e := range begins[i+1] {
			s.begin(e)
		}
		if err := visit(i, &s.c); err != nil {
			return err
		}
	}
	return nil
}

// events returns which lines begin, bend and end in each row. Those of begins are
// shifted by one: the first are those that come from above.
func (l *layout) events() (begins, bends, ends [][]int) {
	begins, bends, ends = make([][]int, len(l.rows)+1), make([][]int, len(l.rows)), make([][]int, len(l.rows))
	for i, e := range l.lines {
		begins[e.from+1] = append(begins[e.from+1], i)
		for _, b := range e.bends {
			bends[b.row] = append(bends[b.row], i)
		}
		if e.to < len(l.rows) && !e.sideways() {
			ends[e.to] = append(ends[e.to], i)
		}
	}
	return begins, bends, ends
}

func (s *sweeping) leftOut(lane int) bool { return lane >= s.l.limit }

// open has a line run in a lane from here on.
func (s *sweeping) open(e, lane int) {
	if s.leftOut(lane) {
		s.more++
		return
	}
	s.active[lane] = cell{arms: up | down, dashed: s.l.lines[e].dashed(), lane: lane}
}

// close ends a line that runs in a lane.
func (s *sweeping) close(lane int) {
	if s.leftOut(lane) {
		s.more--
		return
	}
	s.active[lane] = cell{}
}

// pass fills a row with the lines that run through it.
func (s *sweeping) pass() {
	copy(s.c.columns, s.active)
	clear(s.c.gaps)
	s.c.passing = s.more > 0
	if s.c.passing {
		s.c.columns[s.l.limit] = cell{arms: up | down, lane: s.l.limit}
	}
}

// at is the lane in which a line is just above a row.
func (e line) at(row int) int {
	lane := e.run
	for _, b := range e.bends {
		if b.row < row {
			lane = b.to
		}
	}
	return lane
}

// finish ends a line at its node. One that bends in the row of its end is left to
// bend.
func (s *sweeping) finish(e, row int) {
	n := s.l.lines[e]
	if k := len(n.bends); k > 0 && n.bends[k-1].row == row {
		return
	}
	s.close(n.at(row))
}

func (s *sweeping) bend(e, row int) {
	n := s.l.lines[e]
	k, _ := slices.BinarySearchFunc(n.bends, row, func(b bend, row int) int { return b.row - row })
	b := n.bends[k]
	if b.from == b.to {
		if n.to == row {
			s.close(b.from)
			s.arms(b.from, 0, down, n.dashed())
		}
		return
	}
	s.close(b.from)
	s.arms(b.from, 0, down, n.dashed())
	s.across(b.from, b.to, n)
	if n.to != row {
		s.open(e, b.to)
		s.arms(b.to, down, 0, n.dashed())
	}
}

// begin leads a line away from its beginning.
func (s *sweeping) begin(e int) {
	n := s.l.lines[e]
	if n.sideways() {
		s.across(n.FromLane, n.ToLane, n)
		return
	}
	s.across(n.FromLane, n.run, n)
	s.open(e, n.run)
	s.arms(n.run, down, 0, n.dashed())
}

// arms adds arms to the cell of a lane, and takes some away.
func (s *sweeping) arms(lane, add, remove int, dashed bool) {
	at := s.l.column(lane)
	if s.leftOut(lane) {
		remove = 0 // others may run in the same column
	}
	c := &s.c.columns[at]
	if c.arms == 0 {
		c.lane, c.dashed = lane, dashed
	}
	c.arms = c.arms&^remove | add
}

// across draws a line sideways between two lanes.
func (s *sweeping) across(from, to int, e line) {
	a, b := s.l.column(from), s.l.column(to)
	if a == b {
		return
	}
	toward, back := right, left
	if a > b {
		toward, back = left, right
	}
	dashed := e.dashed()
	s.arms(from, toward, 0, dashed)
	s.arms(to, back, 0, dashed)
	for i := min(a, b); i < max(a, b); i++ {
		s.c.gaps[i] = cell{arms: left | right, dashed: dashed, lane: to}
		if i > min(a, b) {
			s.arms(i, left|right, 0, dashed)
		}
	}
}
