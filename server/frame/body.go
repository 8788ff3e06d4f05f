package frame

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"convls/protocol"

	"go.lsp.dev/jsonrpc2"
)

const (
	// firstChunk is what is set aside for a body before any of it has come.
	firstChunk = 64 << 10
	// edge is how much is kept of the ends of a body that is too large, to find its
	// id there: most clients write the id first, this project's and others last.
	edge = 4 << 10
)

// readBody reads the body that h announces. One that is too large is read over,
// so that the next header is found, and refused.
func (s *Stream) readBody(h header) ([]byte, *refusal, error) {
	if h.length > s.opts.MaxFrame {
		r, err := s.skip(h.length)
		return nil, r, err
	}
	n := int(h.length)
	s.body = s.body[:0]
	for len(s.body) < n {
		if len(s.body) == cap(s.body) {
			grown := make([]byte, len(s.body), min(n, max(firstChunk, 2*cap(s.body))))
			copy(grown, s.body)
			s.body = grown
		}
		have := len(s.body)
		got, err := io.ReadFull(s.in, s.body[have:min(n, cap(s.body))])
		s.body = s.body[:have+got]
		if err != nil {
			return nil, nil, cut(err)
		}
	}
	body := bytes.TrimPrefix(s.body, mark)
	if h.charset != "" {
		return nil, refuseAs(jsonrpc2.InvalidRequest, "", body, "the body is in "+h.charset+", and must be in utf-8"), nil
	}
	return body, nil, nil
}

// skip reads over a body of n bytes and returns why.
func (s *Stream) skip(n int64) (*refusal, error) {
	head := make([]byte, min(n, edge))
	if _, err := io.ReadFull(s.in, head); err != nil {
		return nil, cut(err)
	}
	middle := max(0, n-2*edge)
	if _, err := io.CopyN(io.Discard, s.in, middle); err != nil {
		return nil, cut(err)
	}
	tail := make([]byte, n-int64(len(head))-middle)
	if _, err := io.ReadFull(s.in, tail); err != nil {
		return nil, cut(err)
	}
	r := refuseAs(RequestFailed, protocol.CodeTooLarge, head,
		fmt.Sprintf("the message has %d bytes, and at most %d are accepted", n, s.opts.MaxFrame))
	if !r.id.IsValid() {
		r.id = lastID(tail)
	}
	return r, nil
}

// cut returns err as the error of an input that ended inside a message.
func cut(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
