package model

import (
	"bufio"
	"bytes"
	"errors"
	"io"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// errUnreadable ends a stream whose event is not JSON.
var errUnreadable = errors.New("an event is not JSON")

// errTooLong ends a stream whose event has no end.
var errTooLong = errors.New("an event is too long")

// eventReader reads server-sent events (HTML Living Standard, section 9.2) as
// real servers write them and gives an SDK the plain form that it can digest:
// one `event:` line where the event has a type, one `data:` line, an empty line.
// Comments, CRLF, several data lines, a missing last empty line, `"error": null`
// and a missing `event:` line are smoothed out here, once for all SDKs. An error
// object ends the stream and goes to the exchange; so does a whole document.
type eventReader struct {
	x    *exchange
	rc   io.Closer
	src  *bufio.Reader
	out  bytes.Buffer
	data bytes.Buffer
	name string
	// started: the first byte was looked at. ended: nothing more will come.
	started, ended bool
}

func newEventReader(x *exchange, body io.ReadCloser) *eventReader {
	return &eventReader{x: x, rc: body, src: bufio.NewReaderSize(body, 16<<10)}
}

// Close closes the body.
func (r *eventReader) Close() error { return r.rc.Close() }

// Read returns events. Its only error is io.EOF: how the stream really ended is
// noted in the exchange, and SDKs log errors or retry on them.
func (r *eventReader) Read(p []byte) (int, error) {
	for r.out.Len() == 0 {
		if r.ended {
			return 0, io.EOF
		}
		if !r.started {
			r.started = true
			if r.isDocument() {
				r.readDocument()
				continue
			}
		}
		r.readLine()
	}
	return r.out.Read(p)
}

// isDocument looks at the first byte that is no space: some servers answer a
// request for a stream with one JSON document, some proxies with a page.
func (r *eventReader) isDocument() bool {
	for {
		c, err := r.src.Peek(1)
		if err != nil {
			return false
		}
		switch c[0] {
		case ' ', '\t', '\r', '\n', 0xEF, 0xBB, 0xBF: // spaces and a byte order mark
			_, _ = r.src.Discard(1)
		default:
			return c[0] == '{' || c[0] == '[' || c[0] == '<'
		}
	}
}

func (r *eventReader) readDocument() {
	r.ended = true
	body, err := io.ReadAll(io.LimitReader(r.src, maxDocument))
	if err == nil {
		r.x.whole(body)
	}
}

func (r *eventReader) readLine() {
	line, err := r.src.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		long := bytes.Clone(line)
		for errors.Is(err, bufio.ErrBufferFull) && len(long) <= maxDocument {
			line, err = r.src.ReadSlice('\n')
			long = append(long, line...)
		}
		line = long
	}
	if len(line)+r.data.Len() > maxDocument {
		r.stop(errTooLong)
		return
	}
	// A lone CR ends a line too.
	for l := range bytes.SplitSeq(bytes.TrimRight(line, "\r\n"), []byte("\r")) {
		if !r.ended {
			r.line(l)
		}
	}
	if err != nil && !r.ended {
		// A stream may end without the last empty line. What is cut in the middle is
		// no JSON, and dispatch says so.
		r.dispatch()
		r.ended = true
	}
}

func (r *eventReader) line(l []byte) {
	if len(l) == 0 {
		r.dispatch()
		return
	}
	name, value, _ := bytes.Cut(l, []byte(":"))
	value = bytes.TrimPrefix(value, []byte(" "))
	switch string(name) {
	case "data":
		if r.data.Len() > 0 {
			r.data.WriteByte('\n')
		}
		r.data.Write(value)
	case "event":
		r.name = string(value)
	case "", "id", "retry":
		// A comment, often a sign of life, and members that mean nothing here.
	default:
		if l[0] == '{' { // a server that fails in mid-stream and forgets the prefix
			r.dispatch()
			r.data.Write(l)
			r.dispatch()
		}
	}
}

func (r *eventReader) stop(err error) {
	r.ended = true
	r.x.note(err)
}

func (r *eventReader) dispatch() {
	data, name := bytes.TrimSpace(r.data.Bytes()), r.name
	r.name = ""
	defer r.data.Reset()
	if len(data) == 0 {
		return
	}
	if bytes.HasPrefix(data, []byte("[DONE]")) {
		r.ended = true
		return
	}
	if name == "error" {
		r.ended = true
		r.x.fail(data)
		return
	}
	if !jsontext.Value(data).IsValid(jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true)) {
		r.stop(errUnreadable)
		return
	}
	data, failure := withoutError(data)
	if failure {
		r.ended = true
		r.x.fail(data)
		return
	}
	if r.x.kind == KindAnthropic {
		if name == "" {
			name = memberString(data, "type")
		}
		r.out.WriteString("event: " + name + "\n")
	}
	r.out.WriteString("data: ")
	// A line break in valid JSON stands between tokens.
	r.out.Write(bytes.ReplaceAll(data, []byte("\n"), []byte(" ")))
	r.out.WriteString("\n\n")
}

// errorMembers are the members of an event by which it is an error.
type errorMembers struct {
	Error  jsontext.Value `json:"error"`
	Type   any            `json:"type"`
	Object any            `json:"object"`
}

// withoutError reports whether an event is an error object. An `"error": null`
// beside an answer, which one SDK takes for an error, is taken out.
func withoutError(data []byte) ([]byte, bool) {
	if !bytes.Contains(data, []byte(`"error"`)) {
		return data, false
	}
	lax := json.JoinOptions(jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true))
	var m errorMembers
	if json.Unmarshal(data, &m, lax) != nil {
		return data, false
	}
	if m.Type == "error" || m.Object == "error" || (m.Error != nil && m.Error.Kind() != 'n') {
		return data, true
	}
	if m.Error == nil {
		return data, false
	}
	var all map[string]jsontext.Value
	if json.Unmarshal(data, &all, lax) != nil {
		return data, false
	}
	delete(all, "error")
	if rest, err := json.Marshal(all, lax, json.Deterministic(true)); err == nil {
		return rest, false
	}
	return data, false
}

func memberString(data []byte, name string) string {
	var m map[string]jsontext.Value
	if json.Unmarshal(data, &m, jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true)) != nil {
		return ""
	}
	var s string
	_ = json.Unmarshal(m[name], &s)
	return s
}

// lineReader passes JSON lines (Ollama) on line by line. A line that is an error
// object ends the stream and goes to the exchange, because the SDK keeps only
// its text; a line that is no JSON, the last one of a cut stream, ends it too.
type lineReader struct {
	x     *exchange
	rc    io.Closer
	src   *bufio.Reader
	out   bytes.Buffer
	ended bool
}

func newLineReader(x *exchange, body io.ReadCloser) *lineReader {
	return &lineReader{x: x, rc: body, src: bufio.NewReaderSize(body, 16<<10)}
}

// Close closes the body.
func (r *lineReader) Close() error { return r.rc.Close() }

// Read returns whole lines; its only error is io.EOF.
func (r *lineReader) Read(p []byte) (int, error) {
	for r.out.Len() == 0 {
		if r.ended {
			return 0, io.EOF
		}
		var line []byte
		for {
			piece, err := r.src.ReadSlice('\n')
			line = append(line, piece...)
			if errors.Is(err, bufio.ErrBufferFull) && len(line) <= maxDocument {
				continue
			}
			r.ended = err != nil
			break
		}
		line = bytes.TrimSpace(line)
		switch {
		case len(line) == 0:
		case line[0] == '<':
			r.ended = true
			r.x.whole(line)
		case !jsontext.Value(line).IsValid(jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true)):
			r.ended = true
			r.x.note(errUnreadable)
		default:
			if _, failure := withoutError(line); failure {
				r.ended = true
				r.x.fail(line)
				break
			}
			r.out.Write(line)
			r.out.WriteByte('\n')
		}
	}
	return r.out.Read(p)
}
