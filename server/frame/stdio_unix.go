//go:build unix

package frame

import (
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// Stdio takes standard input and output over as one connection. A process calls
// it once, early.
//
// Input is made non-blocking where it is a pipe or a socket, as with every
// editor, because a blocking read can not be interrupted and Close would hang.
// Both streams move to descriptors of their own: standard input becomes the null
// device and standard output joins standard error, so that no library and no
// child process can read from the protocol or print into it, and so that an
// editor that dies makes a write fail, where on descriptor 1 it would kill the
// process by SIGPIPE.
func Stdio() (io.ReadWriteCloser, error) {
	in, err := takeStdin()
	if err != nil {
		return nil, err
	}
	out, err := unix.FcntlInt(1, unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		return nil, fmt.Errorf("frame: standard output: %w", err)
	}
	// Without a standard error, standard output stays where it is.
	_ = unix.Dup2(2, 1)
	return stdio{ReadCloser: in, out: os.NewFile(uintptr(out), "stdout")}, nil
}

func takeStdin() (io.ReadCloser, error) {
	info, err := os.Stdin.Stat()
	if err != nil {
		return nil, fmt.Errorf("frame: standard input: %w", err)
	}
	fd, err := unix.FcntlInt(0, unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		return nil, fmt.Errorf("frame: standard input: %w", err)
	}
	interruptible := info.Mode()&(os.ModeNamedPipe|os.ModeSocket) != 0
	if interruptible {
		if err := unix.SetNonblock(fd, true); err != nil {
			return nil, fmt.Errorf("frame: standard input: %w", err)
		}
	}
	if null, err := os.Open(os.DevNull); err == nil {
		_ = unix.Dup2(int(null.Fd()), 0)
		_ = null.Close()
	}
	file := os.NewFile(uintptr(fd), "stdin")
	if interruptible {
		return file, nil
	}
	// A terminal is shared with the shell, which must not find it non-blocking.
	return feed(file), nil
}
