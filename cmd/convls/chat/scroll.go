package chat

// scroll is a window on lines. Bubbles' viewport measures every line at every
// change, which a streaming answer in a long conversation can not afford.
type scroll struct {
	lines  []string
	top    int
	height int
	// follow keeps the end in view as lines come.
	follow bool
}

// set replaces the lines.
func (s *scroll) set(lines []string) {
	s.lines = lines
	s.settle()
}

// resize sets how many lines can be seen.
func (s *scroll) resize(height int) {
	s.height = max(height, 0)
	s.settle()
}

// by moves the window down by n lines, up if n is negative.
func (s *scroll) by(n int) {
	s.top += n
	s.follow = false
	s.settle()
	s.follow = s.top == s.end()
}

// to moves the window so that line n is its first.
func (s *scroll) to(n int) { s.by(n - s.top) }

// bottom goes to the end and stays there.
func (s *scroll) bottom() {
	s.follow = true
	s.settle()
}

func (s *scroll) end() int { return max(len(s.lines)-s.height, 0) }

func (s *scroll) settle() {
	if s.follow || s.top > s.end() {
		s.top = s.end()
	}
	s.top = max(s.top, 0)
}

// visible returns exactly height lines.
func (s *scroll) visible() []string {
	out := make([]string, s.height)
	copy(out, s.lines[s.top:min(s.top+s.height, len(s.lines))])
	return out
}

// below is how many lines are under the window.
func (s *scroll) below() int { return max(len(s.lines)-s.top-s.height, 0) }
