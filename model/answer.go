package model

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/oklog/ulid/v2"

	"convls/protocol"
)

// The stop reasons of a [Response].
const (
	StopStop      = "stop"
	StopLength    = "length"
	StopToolCalls = "tool_calls"
	StopRefusal   = "refusal"
)

// answer puts an answer together from the pieces that an adapter decodes, and
// emits each piece. Text arrives whole characters at a time, whatever the chunks
// were (fault 92).
type answer struct {
	provider string
	emit     func(Delta) error
	pieces   []*piece
	// stop is the finish reason in our words; empty until it was seen.
	stop  string
	usage protocol.Usage
	model string
	// emitting is set while emit runs; see guard.
	emitting bool
}

// piece is a part under way.
type piece struct {
	kind protocol.PartType
	key  string // the provider's name for it, where pieces of several interleave
	text strings.Builder
	// carry is the beginning of a character that is not whole yet.
	carry     string
	id, name  string
	signature string
}

// add appends s to the part of this kind and key, which is the last one, or for
// tool calls any one, or begins it.
func (a *answer) add(kind protocol.PartType, key, s string) error {
	index := a.find(kind, key)
	if index < 0 {
		if s == "" {
			return nil
		}
		if err := a.flush(); err != nil {
			return err
		}
		index = len(a.pieces)
		a.pieces = append(a.pieces, &piece{kind: kind, key: key})
	}
	p := a.pieces[index]
	s = p.carry + s
	p.carry = ""
	if cut := incomplete(s); cut > 0 {
		s, p.carry = s[:len(s)-cut], s[len(s)-cut:]
	}
	return a.write(index, valid(s))
}

func (a *answer) write(index int, s string) error {
	if s == "" {
		return nil
	}
	p := a.pieces[index]
	p.text.WriteString(s)
	kind := protocol.DeltaText
	switch p.kind {
	case protocol.PartReasoning:
		kind = protocol.DeltaReasoning
	case protocol.PartToolCall:
		kind = protocol.DeltaToolArgs
	}
	a.emitting = true
	err := a.emit(Delta{Kind: kind, Part: index, Text: s})
	a.emitting = false
	return err
}

// find returns the part that a piece belongs to, or -1. Text goes on with the
// last part only: text after a tool call is a part of its own.
func (a *answer) find(kind protocol.PartType, key string) int {
	if kind != protocol.PartToolCall {
		if last := len(a.pieces) - 1; last >= 0 && a.pieces[last].kind == kind && a.pieces[last].key == key {
			return last
		}
		return -1
	}
	for i, p := range slices.Backward(a.pieces) {
		if p.kind == kind && p.key == key {
			return i
		}
	}
	return -1
}

// begin starts a part with nothing in it yet and returns it.
func (a *answer) begin(kind protocol.PartType, key string) (*piece, error) {
	err := a.flush()
	p := &piece{kind: kind, key: key}
	a.pieces = append(a.pieces, p)
	return p, err
}

// call returns the tool call with the key, beginning it if need be.
func (a *answer) call(key string) (*piece, error) {
	if i := a.find(protocol.PartToolCall, key); i >= 0 {
		return a.pieces[i], nil
	}
	return a.begin(protocol.PartToolCall, key)
}

// flush writes out what will not become a whole character any more.
func (a *answer) flush() error {
	for i, p := range a.pieces {
		if p.carry != "" && p.kind != protocol.PartToolCall {
			p.carry = ""
			if err := a.write(i, "\uFFFD"); err != nil {
				return err
			}
		}
	}
	return nil
}

// incomplete returns how many bytes at the end of s begin a character that is
// not whole.
func incomplete(s string) int {
	for n := 1; n <= 3 && n <= len(s); n++ {
		c := s[len(s)-n]
		if utf8.RuneStart(c) {
			if c >= utf8.RuneSelf && !utf8.FullRuneInString(s[len(s)-n:]) {
				return n
			}
			return 0
		}
	}
	return 0
}

// started reports whether anything of the answer has arrived.
func (a *answer) started() bool { return len(a.pieces) > 0 }

// response returns what there is. Call ids are made where the provider sent none
// or the same twice.
func (a *answer) response() *Response {
	r := &Response{Parts: []protocol.Part{}, StopReason: a.stop, Usage: a.usage, Model: valid(a.model)}
	seen := map[string]bool{}
	for _, p := range a.pieces {
		part := protocol.Part{Type: p.kind, Signature: valid(p.signature)}
		switch p.kind {
		case protocol.PartToolCall:
			part.CallID = valid(p.id)
			if part.CallID == "" || seen[part.CallID] {
				part.CallID = newCallID()
			}
			seen[part.CallID] = true
			part.Name = valid(p.name)
			part.Arguments = arguments(p.text.String())
		default:
			part.Text = p.text.String()
			if p.carry != "" {
				part.Text += "\uFFFD"
			}
		}
		if part.Signature != "" {
			part.Provider = a.provider
		}
		r.Parts = append(r.Parts, part)
	}
	switch calls := len(seen) > 0; {
	case calls && r.StopReason == StopStop:
		// Some servers say stop after a tool call.
		r.StopReason = StopToolCalls
	case !calls && r.StopReason == StopToolCalls:
		r.StopReason = StopStop
	}
	return r
}

// valid returns s as UTF-8: an SDK passes on what a server sends.
func valid(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

func newCallID() string { return "call_" + strings.ToLower(ulid.Make().String()) }

// arguments returns the arguments of a call as JSON: as they came, {} for none,
// or a JSON string of the text where it is no JSON.
func arguments(text string) protocol.Raw {
	text = strings.TrimSpace(text)
	if text == "" {
		return protocol.Raw("{}")
	}
	if v := protocol.Raw(text); v.IsValid() {
		return v
	}
	quoted, err := jsontext.AppendQuote(nil, valid(text))
	if err != nil {
		return protocol.Raw(`""`)
	}
	return quoted
}
