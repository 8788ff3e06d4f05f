package transfer

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
)

// maxLine is the longest line that is read, in bytes. A line of a session with
// pictures in it has tens of megabytes; what is longer is no line but a mistake.
const maxLine = 256 << 20

// fault is something wrong with the source, not with the store: what it belongs
// to is left out, and the import goes on.
type fault struct {
	line   int64
	id     string
	reason string
}

func (f *fault) Error() string {
	if f.line > 0 {
		return fmt.Sprintf("line %d: %s", f.line, f.reason)
	}
	return f.reason
}

// faultf makes a fault at a line of the source; 0 if it has none.
func faultf(line int64, format string, args ...any) *fault {
	return &fault{line: line, reason: fmt.Sprintf(format, args...)}
}

// lines reads a source line by line.
type lines struct {
	ctx context.Context
	r   *bufio.Reader
	// number is that of the line that next returned, from 1.
	number int64
	// offset is how many bytes were read.
	offset int64
	buf    []byte
	again  bool
}

func newLines(ctx context.Context, r io.Reader) *lines {
	return &lines{ctx: ctx, r: bufio.NewReaderSize(r, 64<<10)}
}

// next returns the next line that is not blank, without its end; it is valid until
// the call after. A line that is too long is a fault, and the next call goes on
// after it. io.EOF ends.
func (l *lines) next() ([]byte, error) {
	if l.again {
		l.again = false
		return l.buf, nil
	}
	for {
		if err := l.ctx.Err(); err != nil {
			return nil, err
		}
		err := l.read()
		if l.buf = bytes.TrimSpace(l.buf); len(l.buf) > 0 || err != nil {
			return l.buf, err
		}
	}
}

// unread makes next return the same line again.
func (l *lines) unread() { l.again = true }

// read reads one line into buf.
func (l *lines) read() error {
	l.buf = l.buf[:0]
	l.number++
	tooLong := false
	for {
		piece, err := l.r.ReadSlice('\n')
		l.offset += int64(len(piece))
		if tooLong = tooLong || len(l.buf)+len(piece) > maxLine; tooLong {
			l.buf = l.buf[:0]
		} else {
			l.buf = append(l.buf, piece...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			if err := l.ctx.Err(); err != nil {
				return err
			}
			continue
		case errors.Is(err, io.EOF):
			if len(l.buf) == 0 && !tooLong {
				return io.EOF
			}
		case err != nil:
			return fmt.Errorf("read the source: %w", err)
		}
		if tooLong {
			return faultf(l.number, "the line has more than %d MiB", maxLine>>20)
		}
		return nil
	}
}

// rest returns the source from the line that was read last.
func (l *lines) rest() io.Reader {
	return io.MultiReader(bytes.NewReader(append(bytes.Clone(l.buf), '\n')), &counted{l})
}

// counted keeps the offset right for those who read without lines.
type counted struct{ l *lines }

func (c *counted) Read(p []byte) (int, error) {
	if err := c.l.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := c.l.r.Read(p)
	c.l.offset += int64(n)
	return n, err
}
