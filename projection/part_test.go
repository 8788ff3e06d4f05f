package projection

import (
	"testing"

	"convls/protocol"
)

// TestRangeOfArguments reads the arguments of a tool call, which are no JSON any
// more once they are cut, as text.
func TestRangeOfArguments(t *testing.T) {
	node := func() *protocol.NodeGetResult {
		return &protocol.NodeGetResult{Node: protocol.Node{Content: []protocol.Part{
			{Type: protocol.PartToolCall, Name: "read", Arguments: protocol.Raw(`{"path":"é"}`)},
			{Type: protocol.PartToolResult, Text: ""},
		}}}
	}
	n := node()
	if err := Range(n, 0, 9, 1); err != nil {
		t.Fatal(err)
	}
	if p := n.Content[0]; p.Text != "é" || p.Arguments != nil || *n.Size != 13 || p.Name != "read" {
		t.Errorf("got %+v of %d", p, *n.Size)
	}
	n = node()
	if err := Range(n, 1, 0, 10); err != nil || n.Content[0].Text != "" || *n.Size != 0 {
		t.Errorf("an empty part: %+v, %v", n.Content, err)
	}
}
