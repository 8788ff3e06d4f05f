package frame

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"go.lsp.dev/jsonrpc2"
)

// What is accepted is a message that jsonrpc2 decodes (it would end the
// connection otherwise), and what is written is well framed.
func FuzzReadFrame(f *testing.F) {
	for _, s := range []string{
		framed(ping), framed(emoji, ping), framed("["+ping+"]", "x", ping), "\xef\xbb\xbf" + framed(ping),
		"content-length: 3\n\nabc", "Content-Length: 99\r\n\r\n{}", "Content-Length: -1\r\n\r\n", "\n\n\nX: y\n\n",
		framed(`{"id":15.0,"jsonrpc":"2.0","method":"a"}`, `{"jsonrpc":"2.0","id":1,"result":{"a":"`+"\xff"+`"}}`),
		framed(`{"jsonrpc":"2.0","id":null,"error":{"code":-1,"message":"\ud83d\ude00"}}`),
		framed(`{"jsonrpc":"2.0","method":"` + strings.Repeat("x", 3000) + `","id":4}`),
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		conn := &duplex{Reader: bytes.NewReader(data)}
		s := New(conn, Options{MaxFrame: 2000})
		for {
			body, _, err := s.ReadFrame(t.Context())
			if err != nil {
				if !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, ErrHeader) {
					t.Fatalf("ended with %v", err)
				}
				break
			}
			if !jsontext.Value(body).IsValid() {
				t.Fatalf("accepted %q", body)
			}
			if _, err := jsonrpc2.DecodeMessage(body); err != nil {
				t.Fatalf("accepted %q, which does not decode: %v", body, err)
			}
		}
		s.Close()
		<-s.Done()
		for in := newReader(&conn.Buffer); ; {
			h, err := readHeader(in.in)
			if errors.Is(err, io.EOF) {
				break
			}
			b, refused, err2 := in.readBody(h)
			if err != nil || err2 != nil || refused != nil {
				t.Fatalf("wrote no frame: %v, %v, %v", err, err2, refused)
			}
			if _, err := jsonrpc2.DecodeMessage(b); err != nil || !jsontext.Value(b).IsValid() {
				t.Fatalf("wrote %q: %v", b, err)
			}
		}
	})
}

// newReader returns a stream that only reads, without a writer.
func newReader(r io.Reader) *Stream {
	s := New(&duplex{Reader: r}, Options{})
	s.Close()
	<-s.Done()
	return s
}

// On a message without damage the lenient reader finds the id that jsonrpc2 finds.
func FuzzPeek(f *testing.F) {
	f.Add([]byte(ping))
	f.Add([]byte(emoji))
	f.Add([]byte(`{"params":{"id":3,"a":["]}",{}]},"id":"\u00e9","jsonrpc":"2.0","method":"a"}`))
	f.Add([]byte(` { "jsonrpc" : "2.0" , "result" : null , "id" : -3 } `))
	f.Fuzz(func(t *testing.T, data []byte) {
		e := peek(data)
		lastID(data)
		if !jsontext.Value(data).IsValid() {
			return
		}
		msg, err := jsonrpc2.DecodeMessage(data)
		if err != nil {
			return
		}
		var want jsonrpc2.ID
		switch m := msg.(type) {
		case *jsonrpc2.Call:
			want = m.ID()
		case *jsonrpc2.Response:
			want = m.ID()
		}
		if s, ok := want.StringValue(); e.id != want && (!ok || len(s) <= maxID/6) {
			t.Errorf("%q: found id %v, want %v", data, e.id, want)
		}
		if _, ok := msg.(*jsonrpc2.Response); ok != e.response {
			t.Errorf("%q: response %v, want %v", data, e.response, ok)
		}
	})
}
