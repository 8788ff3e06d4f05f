package frame

import (
	"bytes"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
	"go.lsp.dev/jsonrpc2"
)

// maxID is the longest id that is given back in a refusal, in bytes.
const maxID = 256

// envelope is what can be read of a message that is damaged or cut.
type envelope struct {
	id       jsonrpc2.ID
	idSpan   []byte
	response bool
}

// peek reads the members at the top level of a message as far as they make
// sense. It looks into no value, so that damage inside params hides nothing.
func peek(b []byte) envelope {
	var e envelope
	method := false
	s := scanner{b: b}
	if !s.take('{') {
		return e
	}
	for {
		key, ok := s.value()
		if !ok || len(key) < 2 || key[0] != '"' || !s.take(':') {
			break
		}
		value, ok := s.value()
		if !ok {
			// The value is cut or damaged, but what it was to be is known.
			e.response = e.response || isResult(key)
			break
		}
		switch {
		case string(key) == `"id"` && e.idSpan == nil:
			e.id, e.idSpan = parseID(value), value
		case string(key) == `"method"`:
			method = true
		case isResult(key):
			e.response = true
		}
		if !s.take(',') {
			break
		}
	}
	e.response = e.response && !method
	return e
}

func isResult(key []byte) bool {
	return string(key) == `"result"` || string(key) == `"error"`
}

// lastID reads the id of a message from its end, where it stands if it is the
// last member: the brace that closes the message comes right after it.
func lastID(tail []byte) jsonrpc2.ID {
	b, ok := bytes.CutSuffix(bytes.TrimRight(tail, " \t\r\n"), []byte("}"))
	if !ok {
		return jsonrpc2.ID{}
	}
	at := bytes.LastIndex(b, []byte(`"id"`))
	if at < 0 {
		return jsonrpc2.ID{}
	}
	s := scanner{b: b[at+len(`"id"`):]}
	if !s.take(':') {
		return jsonrpc2.ID{}
	}
	value, ok := s.value()
	if !ok || !s.end() {
		return jsonrpc2.ID{}
	}
	return parseID(value)
}

// parseID returns the id that value spells, or an invalid one.
func parseID(value []byte) jsonrpc2.ID {
	if len(value) > maxID {
		return jsonrpc2.ID{}
	}
	if value[0] == '"' {
		s, err := jsontext.AppendUnquote(nil, value)
		if err != nil {
			return jsonrpc2.ID{}
		}
		return jsonrpc2.NewStringID(string(s))
	}
	n, err := strconv.ParseInt(string(value), 10, 64)
	if err != nil {
		return jsonrpc2.ID{}
	}
	return jsonrpc2.NewNumberID(n)
}

// wholeID rewrites an id such as 7.0, which Lua and some serialisers write for
// an integer, to 7 and spaces, and reports whether it did.
func wholeID(body []byte) bool {
	span := peek(body).idSpan
	point := bytes.IndexByte(span, '.')
	if point <= 0 || span[0] == '"' || len(bytes.Trim(span[point+1:], "0")) > 0 {
		return false
	}
	for i := point; i < len(span); i++ {
		span[i] = ' '
	}
	return true
}

// Member returns the value of the member name at the top level of object, as it
// is spelt, or nil. It is for a first look at params that [Stream.ReadFrame] has
// found valid: it allocates nothing and looks into no other value.
func Member(object []byte, name string) []byte {
	s := scanner{b: object}
	for more := s.take('{'); more; more = s.take(',') {
		key, ok := s.value()
		if !ok || len(key) < 2 || !s.take(':') {
			return nil
		}
		value, ok := s.value()
		if !ok {
			return nil
		}
		if string(key[1:len(key)-1]) == name {
			return value
		}
	}
	return nil
}

// scanner steps over JSON that may be damaged.
type scanner struct {
	b []byte
	i int
}

func (s *scanner) space() {
	for s.i < len(s.b) && isSpace(s.b[s.i]) {
		s.i++
	}
}

func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\r' || c == '\n' }

// take steps over c if it comes next.
func (s *scanner) take(c byte) bool {
	s.space()
	if s.i < len(s.b) && s.b[s.i] == c {
		s.i++
		return true
	}
	return false
}

// end reports whether nothing but space is left.
func (s *scanner) end() bool {
	s.space()
	return s.i == len(s.b)
}

// value steps over the next value and returns it, if it ends before the input
// does.
func (s *scanner) value() ([]byte, bool) {
	s.space()
	start, depth := s.i, 0
	for s.i < len(s.b) {
		switch c := s.b[s.i]; {
		case c == '"':
			if !s.text() {
				return nil, false
			}
			if depth == 0 {
				return s.b[start:s.i], true
			}
		case c == '{' || c == '[':
			depth++
			s.i++
		case c == '}' || c == ']':
			if depth == 0 {
				return s.b[start:s.i], s.i > start
			}
			depth--
			s.i++
			if depth == 0 {
				return s.b[start:s.i], true
			}
		case depth == 0 && (c == ',' || c == ':' || isSpace(c)):
			return s.b[start:s.i], s.i > start
		default:
			s.i++
		}
	}
	return s.b[start:], false
}

// text steps over a string.
func (s *scanner) text() bool {
	for s.i++; s.i < len(s.b); s.i++ {
		switch s.b[s.i] {
		case '\\':
			s.i++
		case '"':
			s.i++
			return true
		}
	}
	return false
}
