package chat

import (
	"bytes"
	"io"
	"strings"
	"sync"
)

// watched is an output that tells when a text has come.
type watched struct {
	mu   sync.Mutex
	buf  bytes.Buffer
	want string
	seen chan struct{}
	once sync.Once
}

func newWatched(want string) *watched { return &watched{want: want, seen: make(chan struct{})} }

func (s *watched) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.buf.Write(p)
	if strings.Contains(s.buf.String(), s.want) {
		s.once.Do(func() { close(s.seen) })
	}
	return len(p), nil
}

func (s *watched) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.buf.String()
}

// lineReader is an input whose lines come when the test gives them.
type lineReader struct {
	lines chan string
	rest  string
}

func (r *lineReader) Read(p []byte) (int, error) {
	if r.rest == "" {
		l, ok := <-r.lines
		if !ok {
			return 0, io.EOF
		}
		r.rest = l + "\n"
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}
