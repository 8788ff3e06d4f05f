package transfer

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"convls/protocol"
)

func TestParseURI(t *testing.T) {
	for _, c := range []struct {
		uri  string
		want Document
	}{
		{"convls:/session/s1/transcript.md", Document{SessionID: "s1", View: ViewTranscript}},
		{"convls:session/s1/transcript.md", Document{SessionID: "s1", View: ViewTranscript}},
		{"convls:///session/s1/context.md", Document{SessionID: "s1", View: ViewContext}},
		{"convls:/session/s1/graph.md?head=n1&expand=a&expand=b", Document{SessionID: "s1", View: ViewGraph, Head: "n1", Expanded: []string{"a", "b"}}},
		{"convls:/session/s1/transcript.md?head=n1", Document{SessionID: "s1", View: ViewTranscript, Head: "n1"}},
		{"convls:/session/s1/context.md?", Document{SessionID: "s1", View: ViewContext}},
		{"convls:/node/s1/n.1.md", Document{SessionID: "s1", View: ViewNode, NodeID: "n.1"}},
		{"convls:/node/s%201/graph.md", Document{SessionID: "s 1", View: ViewNode, NodeID: "graph"}},
	} {
		got, err := ParseURI(c.uri)
		if d := cmp.Diff(c.want, got); err != nil || d != "" {
			t.Errorf("%s: %v\n%s", c.uri, err, d)
		}
	}
	for _, uri := range []string{"", "convls:", "convls:/", "convls:/session/s1", "convls:/session/s1/graph", "convls:/session//graph.md", "convls:/session/s1/x/graph.md",
		"convls:/node/s1/.md", "convls://host/session/s1/graph.md", "file:/session/s1/graph.md", "convls:/session/s1/graph.md?%zz", "\x00", "convls:/session/../graph.md/x",
		"convls:/session/s1/graph.md?haed=n1", "convls:/session/s1/graph.md?head=n1&head=n2", "convls:/session/s1/graph.md?head=n1&head=n1", "convls:/session/s1/graph.md?x",
		"convls:/session/s1/transcript.md?expand=a", "convls:/session/s1/context.md?expand=a", "convls:/node/s1/n.md?head=a", "convls:/session/s1/graph.md?HEAD=n1"} {
		if d, err := ParseURI(uri); protocol.CodeOf(err) != protocol.CodeInvalidParams {
			t.Errorf("%q: %+v, %v", uri, d, err)
		}
	}
	if got := nodeURI("s1", "a_b"); got != "convls:/node/s1/a_b.md" {
		t.Error(got)
	}
}

// What a URI is made of comes from anywhere.
func FuzzParseURI(f *testing.F) {
	f.Add("convls:/session/s1/graph.md?head=n1&expand=a")
	f.Add("convls:/node/s1/n.md")
	f.Fuzz(func(t *testing.T, uri string) {
		d, err := ParseURI(uri)
		if err != nil {
			return
		}
		if d.View != ViewNode {
			return
		}
		again, err := ParseURI(nodeURI(d.SessionID, d.NodeID))
		d.Head, d.Expanded = "", nil
		if err != nil || cmp.Diff(d, again) != "" {
			t.Errorf("%q: %+v, then %+v (%v)", uri, d, again, err)
		}
	})
}
