package frame

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"go.lsp.dev/jsonrpc2"
)

// The limits of a stream that [Options] leaves at zero.
const (
	// DefaultMaxFrame is the longest body that is read, in bytes: 64 MiB. It is
	// above any message that a client has a reason to send (a 20 MB paste, an
	// import as text), and far below what would hurt a machine.
	DefaultMaxFrame = 64 << 20
	// DefaultQueueBytes is how much may wait for a peer that does not read: 1 MiB.
	DefaultQueueBytes = 1 << 20
	// DefaultFlushTimeout is how long Close lets a peer take what is queued.
	DefaultFlushTimeout = 2 * time.Second
)

// ErrClosed is returned for messages that come after Close.
var ErrClosed = errors.New("frame: the stream is closed")

// Options are the limits of a stream. The zero value is good.
type Options struct {
	MaxFrame     int64
	QueueBytes   int
	FlushTimeout time.Duration
	// OnReject is told, on the reading goroutine, of each message that was refused.
	OnReject func(error)
}

// Stream is one connection. One goroutine reads; any number may write.
type Stream struct {
	conn io.ReadWriteCloser
	in   *bufio.Reader
	out  *queue
	opts Options

	// body is reused from message to message, up to keepBuffer.
	body    []byte
	started bool

	closeOnce sync.Once
	shutOnce  sync.Once
	flushing  *time.Timer
	done      chan struct{}
}

var _ jsonrpc2.Stream = (*Stream)(nil)

// New makes a stream over conn, which it owns, and starts its writer.
func New(conn io.ReadWriteCloser, opts Options) *Stream {
	if opts.MaxFrame <= 0 {
		opts.MaxFrame = DefaultMaxFrame
	}
	if opts.QueueBytes <= 0 {
		opts.QueueBytes = DefaultQueueBytes
	}
	if opts.FlushTimeout <= 0 {
		opts.FlushTimeout = DefaultFlushTimeout
	}
	if opts.OnReject == nil {
		opts.OnReject = func(error) {}
	}
	s := &Stream{
		conn: conn,
		in:   bufio.NewReaderSize(conn, readBuffer),
		out:  newQueue(opts.QueueBytes),
		opts: opts,
		done: make(chan struct{}),
	}
	go func() {
		s.out.drain(conn)
		s.shut()
	}()
	return s
}

// ReadFrame returns the body of the next message and its length. The body is
// valid JSON without duplicate members and a well-formed JSON-RPC message, and
// belongs to the caller until the next ReadFrame. At the end of input between
// two messages the error is io.EOF, inside one io.ErrUnexpectedEOF; a header
// that can not be understood is [ErrHeader], after the peer was told.
func (s *Stream) ReadFrame(ctx context.Context) ([]byte, int64, error) {
	if cap(s.body) > keepBuffer {
		s.body = nil
	}
	if !s.started {
		s.started = true
		s.skipMark()
	}
	for {
		h, err := readHeader(s.in)
		if err != nil {
			if errors.Is(err, ErrHeader) {
				s.refuse(ctx, refusal{code: jsonrpc2.ParseError, reason: err.Error()})
			}
			return nil, 0, err
		}
		body, refused, err := s.readBody(h)
		if err != nil {
			return nil, 0, err
		}
		if refused == nil {
			body, refused = check(body)
		}
		if refused == nil {
			return body, h.length, nil
		}
		if answer := s.refuse(ctx, *refused); answer != nil {
			return answer, int64(len(answer)), nil
		}
	}
}

// refuse tells the peer that a message was not accepted. If the message was an
// answer to a call of ours there is nobody to tell, but somebody waits for it:
// then refuse returns an error answer to take its place.
func (s *Stream) refuse(ctx context.Context, r refusal) (answer []byte) {
	s.opts.OnReject(errors.New("frame: refused a message: " + r.reason))
	body := jsonrpc2.AppendResponse(nil, r.id, nil, r.wire())
	if r.response {
		return body
	}
	// The writer may be gone while there is still something to read; the next
	// read finds the end by itself.
	_ = s.Send(ctx, body)
	return nil
}

// Read returns the next message, which borrows from the stream until the next
// Read.
func (s *Stream) Read(ctx context.Context) (jsonrpc2.Message, int64, error) {
	body, n, err := s.ReadFrame(ctx)
	if err != nil {
		return nil, 0, err
	}
	msg, err := jsonrpc2.DecodeMessage(body)
	return msg, n, err
}

// Write queues msg as [Stream.Send] does.
func (s *Stream) Write(ctx context.Context, msg jsonrpc2.Message) (int64, error) {
	scratch, ok := scratchPool.Get().(*[]byte)
	if !ok {
		scratch = new([]byte)
	}
	body := jsonrpc2.AppendMessage((*scratch)[:0], msg)
	err := s.Send(ctx, body)
	if cap(body) <= keepScratch {
		*scratch = body
		scratchPool.Put(scratch)
	}
	return int64(len(body)), err
}

// WriteFrame queues the encoded message body as [Stream.Send] does.
func (s *Stream) WriteFrame(ctx context.Context, body []byte) (int64, error) {
	return int64(len(body)), s.Send(ctx, body)
}

// Send queues an encoded message. While the queue is full it waits, in order
// with other waiters, until ctx ends; a message larger than the whole queue goes
// when the queue is empty. The body is not kept. An error means that the message
// was not and will not be written.
func (s *Stream) Send(ctx context.Context, body []byte) error {
	return s.out.send(ctx, body)
}

// TrySend queues an encoded message if the queue is at most half full with it
// and nobody waits, and reports whether it did. So what may be dropped never
// delays what may not.
func (s *Stream) TrySend(body []byte) bool {
	return s.out.trySend(body)
}

// Queued returns how many bytes wait to be taken by the peer.
func (s *Stream) Queued() int { return s.out.queued() }

// Room waits until the queue is at most half full and nobody waits to send.
func (s *Stream) Room(ctx context.Context) error { return s.out.room(ctx) }

// Close stops taking messages, and returns at once. What is queued is still
// written, for FlushTimeout at most; then the connection is closed, which ends a
// pending read too.
func (s *Stream) Close() error {
	s.closeOnce.Do(func() {
		s.flushing = time.AfterFunc(s.opts.FlushTimeout, s.shut)
		s.out.close(ErrClosed)
	})
	return nil
}

// Done is closed when the connection is.
func (s *Stream) Done() <-chan struct{} { return s.done }

func (s *Stream) shut() {
	s.shutOnce.Do(func() {
		s.out.close(ErrClosed)
		// Nothing can be done about a connection that does not close well, and
		// everything that was queued has been written or given up.
		_ = s.conn.Close()
		close(s.done)
	})
	// Reached by the writer too, so that the timer does not outlive the stream.
	s.closeOnce.Do(func() {})
	if s.flushing != nil {
		s.flushing.Stop()
	}
}

// skipMark drops a byte order mark at the start of the input, which some
// programs write before anything else.
func (s *Stream) skipMark() {
	if b, err := s.in.Peek(1); err != nil || b[0] != mark[0] {
		return
	}
	if b, err := s.in.Peek(len(mark)); err == nil && bytes.Equal(b, mark) {
		_, _ = s.in.Discard(len(mark))
	}
}

var (
	mark        = []byte("\xef\xbb\xbf")
	scratchPool sync.Pool
)

const (
	readBuffer  = 32 << 10
	keepBuffer  = 256 << 10
	keepScratch = 64 << 10
)
