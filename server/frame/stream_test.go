package frame

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	"go.lsp.dev/jsonrpc2"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// duplex is a connection whose input is given and whose output is kept.
type duplex struct {
	io.Reader
	bytes.Buffer
}

func (d *duplex) Read(p []byte) (int, error) { return d.Reader.Read(p) }
func (d *duplex) Close() error               { return nil }

// framed returns bodies, each with a plain header.
func framed(bodies ...string) string {
	var b strings.Builder
	for _, body := range bodies {
		fmt.Fprintf(&b, "Content-Length: %d\r\n\r\n%s", len(body), body)
	}
	return b.String()
}

// exchange reads everything that input holds and returns the bodies that were
// accepted, the bodies that were written, and how reading ended.
func exchange(t *testing.T, input io.Reader, opts Options) (read, written []string, end error) {
	t.Helper()
	conn := &duplex{Reader: input}
	s := New(conn, opts)
	for {
		body, _, err := s.ReadFrame(t.Context())
		if err != nil {
			end = err
			break
		}
		read = append(read, string(body))
	}
	s.Close()
	<-s.Done()
	out := New(&duplex{Reader: &conn.Buffer}, Options{})
	defer func() { out.Close(); <-out.Done() }()
	for {
		body, _, err := out.ReadFrame(t.Context())
		if errors.Is(err, io.EOF) {
			return read, written, end
		}
		if err != nil {
			t.Fatalf("what was written is no frame: %v", err)
		}
		written = append(written, string(body))
	}
}

const (
	ping  = `{"jsonrpc":"2.0","id":1,"method":"ping"}`
	emoji = `{"jsonrpc":"2.0","method":"note","params":{"text":"é漢😀👨‍👩‍👧"}}`
)

// fault 93: headers as real clients write them.
func TestHeaders(t *testing.T) {
	n := len(emoji)
	for _, tc := range []struct {
		name, in string
		want     []string
		end      error
	}{
		{name: "plain", in: framed(ping), want: []string{ping}, end: io.EOF},
		{name: "length counts bytes", in: framed(emoji), want: []string{emoji}, end: io.EOF},
		{name: "two messages in one read", in: framed(ping, emoji), want: []string{ping, emoji}, end: io.EOF},
		{name: "LF alone", in: fmt.Sprintf("Content-Length: %d\n\n%s", n, emoji), want: []string{emoji}, end: io.EOF},
		{name: "any case", in: fmt.Sprintf("content-LENGTH: %d\r\n\r\n%s", n, emoji), want: []string{emoji}, end: io.EOF},
		{name: "no space after the colon", in: fmt.Sprintf("Content-Length:%d\r\n\r\n%s", n, emoji), want: []string{emoji}, end: io.EOF},
		{name: "extra headers", in: fmt.Sprintf("X-A: b: c\r\nContent-Length: %d\r\nContent-Type: application/vscode-jsonrpc; charset=utf-8\r\n\r\n%s", n, emoji), want: []string{emoji}, end: io.EOF},
		{name: "charset utf8", in: fmt.Sprintf("Content-Type: a/b; charset=utf8\r\nContent-Length: %d\r\n\r\n%s", n, emoji), want: []string{emoji}, end: io.EOF},
		{name: "the same length twice", in: fmt.Sprintf("Content-Length: %d\r\nContent-Length: %d\r\n\r\n%s", n, n, emoji), want: []string{emoji}, end: io.EOF},
		{name: "empty lines between messages", in: framed(ping) + "\r\n\n" + framed(emoji) + "\n", want: []string{ping, emoji}, end: io.EOF},
		{name: "byte order mark before all", in: "\xef\xbb\xbf" + framed(ping), want: []string{ping}, end: io.EOF},
		{name: "byte order mark in the body", in: framed("\xef\xbb\xbf" + ping), want: []string{ping}, end: io.EOF},
		{name: "nothing", in: "", end: io.EOF},
		{name: "cut in a header", in: "Content-Le", end: io.ErrUnexpectedEOF},
		{name: "cut after a header line", in: "Content-Length: 10\r\n", end: io.ErrUnexpectedEOF},
		{name: "cut in a body", in: framed(ping)[:40], end: io.ErrUnexpectedEOF},
		{name: "no length", in: "X: 1\r\n\r\n" + ping, end: ErrHeader},
		{name: "negative length", in: "Content-Length: -1\r\n\r\n", end: ErrHeader},
		{name: "length with a sign", in: "Content-Length: +5\r\n\r\n", end: ErrHeader},
		{name: "length is no number", in: "Content-Length: ten\r\n\r\n", end: ErrHeader},
		{name: "length overflows", in: "Content-Length: 99999999999999999999\r\n\r\n", end: ErrHeader},
		{name: "length beyond reason", in: "Content-Length: 1099511627776\r\n\r\n", end: ErrHeader},
		{name: "two lengths", in: "Content-Length: 5\r\nContent-Length: 6\r\n\r\n", end: ErrHeader},
		{name: "no colon", in: "hello\r\n\r\n", end: ErrHeader},
		{name: "a body without a header", in: ping + "\n", end: ErrHeader},
		{name: "endless line", in: strings.Repeat("a", 1<<20), end: ErrHeader},
		{name: "endless fields", in: strings.Repeat("a: b\r\n", 1<<16), end: ErrHeader},
		{name: "endless empty lines", in: strings.Repeat("\n", 1<<16), end: ErrHeader},
	} {
		t.Run(tc.name, func(t *testing.T) {
			for kind, r := range map[string]io.Reader{
				"whole":     strings.NewReader(tc.in),
				"by byte":   iotest.OneByteReader(strings.NewReader(tc.in)),
				"by halves": iotest.HalfReader(strings.NewReader(tc.in)),
			} {
				read, written, end := exchange(t, r, Options{})
				if !cmp.Equal(read, tc.want) || !errors.Is(end, tc.end) {
					t.Errorf("%s: read %q, ended with %v; want %q, %v", kind, read, end, tc.want, tc.end)
				}
				if wantError := errors.Is(tc.end, ErrHeader); wantError != (len(written) == 1) {
					t.Errorf("%s: wrote %q, want an error: %v", kind, written, wantError)
				}
			}
		})
	}
}

// A message that is well framed but no good is answered, and the next is read.
func TestBadBodiesAreAnswered(t *testing.T) {
	for _, tc := range []struct {
		name, body string
		code       jsonrpc2.Code
		id         string
	}{
		{"empty", "", jsonrpc2.ParseError, "null"},
		{"not JSON", "hello", jsonrpc2.ParseError, "null"},
		{"cut, with an id", `{"jsonrpc":"2.0","id":7,"method":"a","params":{"b":`, jsonrpc2.ParseError, "7"},
		{"trailing text", ping + "x", jsonrpc2.ParseError, "1"},
		{"invalid UTF-8", "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"a\",\"params\":{\"t\":\"\xff\"}}", jsonrpc2.ParseError, "7"},
		{"invalid UTF-8 before the id", "{\"jsonrpc\":\"2.0\",\"method\":\"a\",\"params\":{\"t\":\"\xff\"},\"id\":\"x\"}", jsonrpc2.ParseError, `"x"`},
		{"lone surrogate", `{"jsonrpc":"2.0","id":7,"method":"a","params":{"t":"\ud800"}}`, jsonrpc2.ParseError, "7"},
		{"duplicate member", `{"jsonrpc":"2.0","id":7,"method":"a","params":{"t":1,"t":2}}`, jsonrpc2.InvalidRequest, "7"},
		{"too deep", `{"jsonrpc":"2.0","id":7,"method":"a","params":` + strings.Repeat("[", 20000) + strings.Repeat("]", 20000) + `}`, jsonrpc2.ParseError, "7"},
		{"batch", "[" + ping + "]", jsonrpc2.InvalidRequest, "null"},
		{"empty batch", "[]", jsonrpc2.InvalidRequest, "null"},
		{"a number", "5", jsonrpc2.InvalidRequest, "null"},
		{"no version", `{"id":7,"method":"a"}`, jsonrpc2.InvalidRequest, "7"},
		{"version 1", `{"jsonrpc":"1.0","id":7,"method":"a"}`, jsonrpc2.InvalidRequest, "7"},
		{"neither method nor result", `{"jsonrpc":"2.0","id":7}`, jsonrpc2.InvalidRequest, "7"},
		{"method is no string", `{"jsonrpc":"2.0","id":7,"method":5}`, jsonrpc2.InvalidRequest, "7"},
		{"method and result", `{"jsonrpc":"2.0","id":7,"method":"a","result":1}`, jsonrpc2.InvalidRequest, "7"},
		{"id is an object", `{"jsonrpc":"2.0","id":{},"method":"a"}`, jsonrpc2.InvalidRequest, "null"},
		{"id is a fraction", `{"jsonrpc":"2.0","id":1.5,"method":"a"}`, jsonrpc2.InvalidRequest, "null"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var rejected []error
			read, written, end := exchange(t, strings.NewReader(framed(tc.body, ping)), Options{
				OnReject: func(err error) { rejected = append(rejected, err) },
			})
			if !cmp.Equal(read, []string{ping}) || !errors.Is(end, io.EOF) {
				t.Errorf("the next message: read %q, %v", read, end)
			}
			prefix := fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":%d,`, tc.id, tc.code)
			if len(written) != 1 || !strings.HasPrefix(written[0], prefix) {
				t.Errorf("wrote %q, want %s", written, prefix)
			}
			if len(rejected) != 1 {
				t.Errorf("OnReject was told %v", rejected)
			}
		})
	}
}

// A damaged answer to a call of ours must not leave the caller waiting: it
// arrives as an error answer, and the peer is told nothing.
func TestDamagedAnswerBecomesAnErrorAnswer(t *testing.T) {
	for _, body := range []string{
		"{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{\"t\":\"\xff\"}}",
		`{"jsonrpc":"2.0","id":7,"result":{"t":`,
		`{"jsonrpc":"2.0","id":7,"error":{"code":1,"code":2}}`,
	} {
		read, written, _ := exchange(t, strings.NewReader(framed(body)), Options{})
		if len(read) != 1 || !strings.HasPrefix(read[0], `{"jsonrpc":"2.0","id":7,"error":`) || len(written) != 0 {
			t.Errorf("%q: read %q, wrote %q", body, read, written)
		}
	}
}

func TestWholeNumberID(t *testing.T) {
	read, written, _ := exchange(t, strings.NewReader(framed(`{"id":15.0,"jsonrpc":"2.0","method":"a"}`)), Options{})
	if len(read) != 1 || len(written) != 0 {
		t.Fatalf("read %q, wrote %q", read, written)
	}
	msg, err := jsonrpc2.DecodeMessage([]byte(read[0]))
	if call, ok := msg.(*jsonrpc2.Call); err != nil || !ok || call.ID() != jsonrpc2.NewNumberID(15) {
		t.Errorf("decoded %v, %v", msg, err)
	}
}

func TestOtherCharsetIsRefused(t *testing.T) {
	in := fmt.Sprintf("Content-Type: a/b; charset=latin1\r\nContent-Length: %d\r\n\r\n%s", len(ping), ping) + framed(emoji)
	read, written, _ := exchange(t, strings.NewReader(in), Options{})
	if !cmp.Equal(read, []string{emoji}) || len(written) != 1 || !strings.Contains(written[0], `"id":1,`) || !strings.Contains(written[0], "latin1") {
		t.Errorf("read %q, wrote %q", read, written)
	}
}

func TestTooLarge(t *testing.T) {
	filler := strings.Repeat("x", 100_000)
	for _, tc := range []struct{ name, body, id string }{
		{"id first", `{"jsonrpc":"2.0","id":7,"method":"a","params":{"t":"` + filler + `"}}`, "7"},
		{"id last", `{"jsonrpc":"2.0","method":"a","params":{"t":"` + filler + `"},"id":"seven"}`, `"seven"`},
		{"id last, with spaces", `{"jsonrpc":"2.0","method":"a","params":{"t":"` + filler + `"}, "id" : 7 } ` + "\n", `7`},
		{"no id", `{"jsonrpc":"2.0","method":"a","params":{"t":"` + filler + `"}}`, "null"},
		{"an id inside params", `{"jsonrpc":"2.0","method":"a","params":{"t":"` + filler + `","id":7}}`, "null"},
		{"not JSON", filler, "null"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			read, written, end := exchange(t, strings.NewReader(framed(tc.body, ping)), Options{MaxFrame: 10_000})
			if !cmp.Equal(read, []string{ping}) || !errors.Is(end, io.EOF) {
				t.Errorf("the next message: read %q, %v", read, end)
			}
			want := `{"jsonrpc":"2.0","id":` + tc.id + `,"error":{"code":-32803,`
			if len(written) != 1 || !strings.HasPrefix(written[0], want) || !strings.Contains(written[0], `"data":{"code":"too_large","retryable":false}`) {
				t.Errorf("wrote %.200q, want %s", written, want)
			}
		})
	}
	// The answer to a call of ours that is too large fails the call.
	body := `{"jsonrpc":"2.0","id":7,"result":"` + filler + `"}`
	read, _, _ := exchange(t, strings.NewReader(framed(body)), Options{MaxFrame: 10_000})
	if len(read) != 1 || !strings.Contains(read[0], "too_large") {
		t.Errorf("read %q", read)
	}
}

// fault 93: 20 MB. The buffer grows with what comes, and is given back.
func TestLargeBody(t *testing.T) {
	big := `{"jsonrpc":"2.0","id":1,"method":"a","params":{"t":"` + strings.Repeat("漢", 20<<20/3) + `"}}`
	s := New(&duplex{Reader: strings.NewReader(framed(big, ping))}, Options{})
	defer func() { s.Close(); <-s.Done() }()
	body, _, err := s.ReadFrame(t.Context())
	if err != nil || string(body) != big {
		t.Fatalf("%d bytes, %v; want %d", len(body), err, len(big))
	}
	if body, _, err = s.ReadFrame(t.Context()); err != nil || string(body) != ping {
		t.Fatalf("%q, %v", body, err)
	}
	if cap(s.body) > keepBuffer {
		t.Errorf("%d bytes are kept after a large message, want at most %d", cap(s.body), keepBuffer)
	}
}

func TestClaimedLengthAllocatesNothing(t *testing.T) {
	s := New(&duplex{Reader: strings.NewReader("Content-Length: 67108864\r\n\r\nabc")}, Options{})
	defer func() { s.Close(); <-s.Done() }()
	if _, _, err := s.ReadFrame(t.Context()); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("ended with %v", err)
	}
	if cap(s.body) > firstChunk {
		t.Errorf("%d bytes were set aside for a claim of 64 MiB", cap(s.body))
	}
}

// fault 92: characters of several bytes across every border of reads.
func TestCharactersAcrossReads(t *testing.T) {
	in := framed(emoji)
	for cut := 1; cut < len(in); cut++ {
		r := io.MultiReader(strings.NewReader(in[:cut]), strings.NewReader(in[cut:]))
		if read, _, _ := exchange(t, r, Options{}); !cmp.Equal(read, []string{emoji}) {
			t.Fatalf("cut at %d: %q", cut, read)
		}
	}
}

func TestReadAndWriteMessages(t *testing.T) {
	a, b := net.Pipe()
	left, right := New(a, Options{}), New(b, Options{})
	defer func() { left.Close(); right.Close(); <-left.Done(); <-right.Done() }()
	want := jsonrpc2.NewCall(jsonrpc2.NewStringID("x"), "m", jsonrpc2.RawMessage(`{"a":1}`))
	if _, err := left.Write(t.Context(), want); err != nil {
		t.Fatal(err)
	}
	msg, _, err := right.Read(t.Context())
	if got, ok := msg.(*jsonrpc2.Call); err != nil || !ok || got.ID() != want.ID() || got.Method() != "m" || string(got.Params()) != `{"a":1}` {
		t.Errorf("read %v, %v", msg, err)
	}
}

func TestCloseEndsAPendingRead(t *testing.T) {
	a, b := net.Pipe()
	defer b.Close()
	s := New(a, Options{})
	ended := make(chan error)
	go func() {
		_, _, err := s.ReadFrame(context.Background())
		ended <- err
	}()
	s.Close()
	if err := <-ended; err == nil {
		t.Error("the read ended without an error")
	}
	<-s.Done()
	if err := s.Send(t.Context(), []byte("{}")); !errors.Is(err, ErrClosed) {
		t.Errorf("send after close: %v", err)
	}
	if s.TrySend([]byte("{}")) {
		t.Error("TrySend after close reports success")
	}
}
