package turn

import (
	"strings"

	"convls/projection"
	"convls/protocol"
)

// maxMessage bounds the text and images of one message, in bytes.
const maxMessage = 48 << 20

// messageParts checks a message and what is attached to it.
func messageParts(content protocol.SendContent, items []protocol.ContextItem) ([]protocol.Part, error) {
	parts := make([]protocol.Part, 0, len(content)+len(items))
	size, said := 0, false
	for _, c := range items {
		if c.Text == "" {
			continue
		}
		parts = append(parts, protocol.Part{Type: protocol.PartResource, Text: c.Text, URI: c.URI, Range: c.Range, ContextType: c.Type})
		size += len(c.Text)
	}
	for _, p := range content {
		switch p.Type {
		case protocol.PartText:
			said = said || strings.TrimSpace(p.Text) != ""
		case protocol.PartImage, protocol.PartResource:
			said = true
		default:
			return nil, protocol.Errorf(protocol.CodeInvalidParams, "a message holds text, image and resource parts, not %q", p.Type)
		}
		size += len(p.Text) + len(p.Data)
		parts = append(parts, p)
	}
	if !said {
		return nil, protocol.Errorf(protocol.CodeInvalidParams, "the message is empty: write something to send")
	}
	if size > maxMessage {
		return nil, protocol.Errorf(protocol.CodeBodyTooLarge, "the message has %d MiB and can have %d at most: attach less", size>>20, maxMessage>>20)
	}
	return parts, nil
}

// titleOf returns the first line of a message, as the title of a session.
func titleOf(parts []protocol.Part) string {
	const most = 80
	text := []rune(projection.Preview(parts))
	if len(text) > most {
		text = append(text[:most-1], '…')
	}
	return strings.TrimSpace(string(text))
}
