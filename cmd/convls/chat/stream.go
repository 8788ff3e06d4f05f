package chat

import "convls/protocol"

// stream is the text of a reply that is being written, put together from deltas.
// Offsets are bytes within a part (see [protocol.Delta]).
type stream struct {
	parts []streamPart
	// early are deltas that came before the text that goes before them.
	early []protocol.Delta
}

type streamPart struct {
	kind protocol.DeltaKind
	text []byte
}

// maxParts is how many parts a reply may have; a greater number in a delta is
// not believed.
const maxParts = 4096

// add joins a delta and reports whether text before it is missing: the caller
// then reads the node and hands it to [stream.catchUp]. What was there already is
// not added twice.
func (s *stream) add(d protocol.Delta) (gap bool) {
	if d.Part < 0 || d.Part >= maxParts || d.Offset < 0 {
		return false
	}
	if !s.join(d) {
		s.early = append(s.early, d)
		return true
	}
	s.settle()
	return len(s.early) > 0
}

// join reports whether d could be joined.
func (s *stream) join(d protocol.Delta) bool {
	have := int64(0)
	if d.Part < len(s.parts) {
		have = int64(len(s.parts[d.Part].text))
	}
	if d.Offset > have {
		return false
	}
	p := s.part(d.Part)
	p.kind = d.Kind
	if end := d.Offset + int64(len(d.Text)); end > have {
		p.text = append(p.text, d.Text[have-d.Offset:]...)
	}
	return true
}

// settle joins what came early and fits by now.
func (s *stream) settle() {
	for again := true; again; {
		again = false
		waiting := s.early
		s.early = nil
		for _, d := range waiting {
			if s.join(d) {
				again = true
			} else {
				s.early = append(s.early, d)
			}
		}
	}
}

func (s *stream) part(i int) *streamPart {
	for len(s.parts) <= i {
		s.parts = append(s.parts, streamPart{kind: protocol.DeltaText})
	}
	return &s.parts[i]
}

// catchUp takes the content of the open node, read from the server. Parts of
// which more is known already stay. It reports whether there is still a gap.
func (s *stream) catchUp(content []protocol.Part) (gap bool) {
	for i, c := range content {
		if i >= maxParts {
			break
		}
		p := s.part(i)
		switch c.Type {
		case protocol.PartReasoning:
			p.kind = protocol.DeltaReasoning
		case protocol.PartToolCall:
			p.kind = protocol.DeltaToolArgs
		default:
			p.kind = protocol.DeltaText
		}
		if len(c.Text) > len(p.text) {
			p.text = []byte(c.Text)
		}
	}
	s.settle()
	return len(s.early) > 0
}

// text returns the text so far, without reasoning and tool calls.
func (s *stream) text() string { return s.of(protocol.DeltaText) }

// reasoning returns what the model has thought so far.
func (s *stream) reasoning() string { return s.of(protocol.DeltaReasoning) }

func (s *stream) of(kind protocol.DeltaKind) string {
	var b []byte
	for _, p := range s.parts {
		if p.kind == kind {
			b = append(b, p.text...)
		}
	}
	return string(b)
}

// bytes is how much text of any kind has come.
func (s *stream) bytes() int {
	n := 0
	for _, p := range s.parts {
		n += len(p.text)
	}
	return n
}
