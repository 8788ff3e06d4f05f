package frame

import (
	"errors"
	"io"
)

// stdio joins a process's standard input and output to one connection.
type stdio struct {
	io.ReadCloser
	out io.WriteCloser
}

func (s stdio) Write(p []byte) (int, error) { return s.out.Write(p) }

func (s stdio) Close() error {
	return errors.Join(s.ReadCloser.Close(), s.out.Close())
}

// feed makes the reads of src interruptible: a goroutine reads src into a pipe,
// and Close closes the pipe. The goroutine stays in its last read until src gives
// something or the process ends; it is for inputs that can not be interrupted.
func feed(src io.Reader) io.ReadCloser {
	r, w := io.Pipe()
	go func() {
		_, err := io.Copy(w, src)
		w.CloseWithError(err)
	}()
	return r
}
