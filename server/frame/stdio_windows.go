package frame

import (
	"io"
	"os"
)

// Stdio takes standard input and output over as one connection. A process calls
// it once, early. Reads of a Windows pipe can not be interrupted, so a goroutine
// feeds them on. What prints to os.Stdout from now on goes to standard error.
func Stdio() (io.ReadWriteCloser, error) {
	out := os.Stdout
	os.Stdout = os.Stderr
	return stdio{ReadCloser: feed(os.Stdin), out: out}, nil
}
