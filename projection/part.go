package projection

import (
	"unicode/utf8"

	"convls/protocol"
	"convls/store"
)

// Range leaves of a node's content one part, counted from 0, and of that the bytes
// from offset on, limit at most: of an image's data, of a tool_call's arguments,
// which come as text, or of the text. Text begins and ends with whole characters and
// has one at least, so that whoever goes on where it ends comes to an end. Size is
// set to the bytes of the whole part.
//
// A part that is not there, or an offset beyond its end or inside a character, is
// invalid_params.
func Range(n *protocol.NodeGetResult, part int, offset, limit int64) error {
	if part < 0 || part >= len(n.Content) {
		return protocol.Errorf(protocol.CodeInvalidParams, "node %q has no part %d: it has %d, counted from 0", n.ID, part, len(n.Content))
	}
	p := n.Content[part]
	if p.Type == protocol.PartToolCall && len(p.Arguments) > 0 {
		p.Text, p.Arguments = string(p.Arguments), nil
	}
	size := int64(len(p.Data))
	if p.Data == nil {
		size = int64(len(p.Text))
	}
	if offset < 0 || offset > size {
		return protocol.Errorf(protocol.CodeInvalidParams, "offset is 0 to %d, which is the size of part %d, not %d", size, part, offset)
	}
	switch {
	case p.Data != nil:
		p.Data = p.Data[offset:min(offset+limit, size)]
	case offset < size && !utf8.RuneStart(p.Text[offset]):
		return protocol.Errorf(protocol.CodeInvalidParams, "offset %d of part %d is inside a character: go on where the text before it ended", offset, part)
	default:
		rest := p.Text[offset:]
		_, first := utf8.DecodeRuneInString(rest)
		p.Text = store.Clip(rest, max(int(limit), first))
	}
	n.Content, n.Size = []protocol.Part{p}, &size
	return nil
}
