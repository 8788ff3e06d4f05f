package neovim

import (
	"strings"
	"sync"
)

// cell is a place of the screen: a character, empty right of a wide one, and its
// highlight.
type cell struct {
	text string
	attr int64
}

// screen is what a terminal would show. Neovim draws it by the events of its UI
// protocol (:help ui-linegrid); a flush says that it is whole.
type screen struct {
	mu       sync.Mutex
	changed  chan struct{} // closed and replaced at each flush
	cells    [][]cell
	attrs    map[int64]map[string]any
	colors   [2]int64 // the default foreground and background
	row, col int
	flushes  int
}

func newScreen() *screen {
	return &screen{changed: make(chan struct{}), attrs: map[int64]map[string]any{}}
}

// notify takes the notifications of Neovim.
func (s *screen) notify(method string, params []any) {
	if method != "redraw" {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range params {
		event, ok := p.([]any)
		if !ok || len(event) == 0 {
			continue
		}
		name, _ := event[0].(string)
		for _, a := range event[1:] {
			if args, ok := a.([]any); ok {
				s.event(name, args)
			}
		}
	}
}

func (s *screen) event(name string, args []any) {
	at := func(i int) int { return int(whole(args[i])) }
	switch name {
	case "grid_resize":
		s.resize(at(1), at(2))
	case "grid_clear":
		s.resize(len(s.cells[0]), len(s.cells))
	case "grid_cursor_goto":
		s.row, s.col = at(1), at(2)
	case "grid_line":
		s.line(at(1), at(2), args[3])
	case "grid_scroll":
		s.scroll(at(1), at(2), at(3), at(4), at(5))
	case "hl_attr_define":
		if attr, ok := args[1].(map[string]any); ok {
			s.attrs[whole(args[0])] = attr
		}
	case "default_colors_set":
		s.colors = [2]int64{whole(args[0]), whole(args[1])}
	case "flush":
		s.flushes++
		close(s.changed)
		s.changed = make(chan struct{})
	}
}

func (s *screen) resize(width, height int) {
	s.cells = make([][]cell, height)
	for i := range s.cells {
		s.cells[i] = make([]cell, width)
		for j := range s.cells[i] {
			s.cells[i][j].text = " "
		}
	}
}

// line writes cells: each is a text, perhaps a highlight (else the one before
// holds on), perhaps how often.
func (s *screen) line(row, col int, cells any) {
	list, _ := cells.([]any)
	attr := int64(0)
	for _, c := range list {
		parts, _ := c.([]any)
		if len(parts) == 0 {
			continue
		}
		text, _ := parts[0].(string)
		times := int64(1)
		if len(parts) > 1 {
			attr = whole(parts[1])
		}
		if len(parts) > 2 {
			times = whole(parts[2])
		}
		for range times {
			s.cells[row][col] = cell{text, attr}
			col++
		}
	}
}

// scroll moves the lines of a region up by so many rows, down where rows is
// negative.
func (s *screen) scroll(top, bottom, left, right, rows int) {
	move := func(to int) {
		if from := to + rows; from >= top && from < bottom {
			copy(s.cells[to][left:right], s.cells[from][left:right])
		}
	}
	if rows > 0 {
		for to := top; to < bottom; to++ {
			move(to)
		}
		return
	}
	for to := bottom - 1; to >= top; to-- {
		move(to)
	}
}

// text returns the screen as lines without blanks at their ends.
func (s *screen) text() string {
	var b strings.Builder
	for _, row := range s.cells {
		var line strings.Builder
		for _, c := range row {
			line.WriteString(c.text)
		}
		b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
	return b.String()
}
