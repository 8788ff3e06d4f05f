package store

import (
	"strings"
	"testing"

	"convls/protocol"
)

// TestTruncateText cuts what is attached before the message's own words, wherever it
// stands.
func TestTruncateText(t *testing.T) {
	n := protocol.Node{Content: []protocol.Part{
		{Type: protocol.PartResource, Text: strings.Repeat("a", 50)},
		{Type: protocol.PartText, Text: "my own words"},
		{Type: protocol.PartImage, Data: []byte(strings.Repeat("d", 30))},
	}}
	TruncateText(&n, 45)
	if got := n.Content; len(got[0].Text) != 3 || got[1].Text != "my own words" || len(got[2].Data) != 30 || !n.Truncated {
		t.Errorf("%d, %q, %d, truncated: %v", len(got[0].Text), got[1].Text, len(got[2].Data), n.Truncated)
	}
	n = protocol.Node{Prompt: []protocol.Part{{Text: "ää"}}, Content: []protocol.Part{{Text: "ab"}}}
	TruncateText(&n, 3)
	if n.Prompt[0].Text != "ä" || n.Content[0].Text != "a" || !n.Truncated {
		t.Errorf("%q %q", n.Prompt[0].Text, n.Content[0].Text)
	}
	n = protocol.Node{Content: []protocol.Part{{Text: "ab"}}}
	if TruncateText(&n, 2); n.Truncated || n.Content[0].Text != "ab" {
		t.Errorf("what fits was cut: %q", n.Content[0].Text)
	}
}
