package drawing

import (
	"strings"
	"testing"
	"unicode"

	"convls/protocol"
)

// TestSourceText: a source is told by a name where it has one, and by its id only where
// nothing else is known.
func TestSourceText(t *testing.T) {
	const session, node = "01JZZZZZZZZZZZZZZZZZSESSION", "01JYYYYYYYYYYYYYYYYYYYNODE"
	for _, tc := range []struct {
		source protocol.GraphSource
		local  bool
		want   string
	}{
		{protocol.GraphSource{Branch: "side", Depth: 4}, true, "<- side"},
		{protocol.GraphSource{Depth: 1234}, true, "<- #1,234"},
		{protocol.GraphSource{Kind: protocol.KindSummary}, true, "<- summary"},
		{protocol.GraphSource{Branch: "side", Title: "Elsewhere\x1b[m"}, false, "<- Elsewhere/side"},
		{protocol.GraphSource{Branch: "side"}, false, "<- …ZSESSION/side"},
		{protocol.GraphSource{}, false, "<- …ZSESSION/…YYYYNODE"},
		{protocol.GraphSource{Branch: "side", Title: "Elsewhere", Deleted: true}, false, "<- deleted"},
	} {
		tc.source.SessionID, tc.source.NodeID = session, node
		if got := sourceText(&tc.source, tc.local, "…"); got != tc.want {
			t.Errorf("%+v: %q, want %q", tc.source, got, tc.want)
		}
		var b strings.Builder
		row := protocol.GraphRow{ID: "x", Kind: protocol.KindAttach, Status: protocol.StatusSealed, Row: 1, Source: &tc.source}
		v := &protocol.GraphView{Rows: []protocol.GraphRow{row}}
		if err := Text(&b, v, Options{}); err != nil || tc.source.Deleted && !strings.HasSuffix(b.String(), "<- deleted\n") {
			t.Errorf("drawn as %q (%v)", b.String(), err)
		}
		if b.Reset(); tc.source.Deleted {
			if err := DOT(&b, v, Options{}); err != nil || !strings.Contains(b.String(), "<- deleted") {
				t.Errorf("drawn as %q (%v)", b.String(), err)
			}
		}
	}
}

// TestASCII: apart from what people wrote, a drawing in ASCII has nothing else, however
// it is cut.
func TestASCII(t *testing.T) {
	node := strings.Repeat("N", 26)
	v := &protocol.GraphView{Before: "b", After: "a", Rows: []protocol.GraphRow{
		{ID: "r", Kind: protocol.KindRoot, Status: protocol.StatusSealed, Row: 1},
		{ID: "u", Kind: protocol.KindUser, Status: protocol.StatusSealed, Row: 2, Preview: strings.Repeat("long ", 39) + "mark…", Branches: []string{strings.Repeat("name", 20)}},
		{ID: "s", Kind: protocol.KindSummary, Status: protocol.StatusSealed, Row: 3, SupersededSummary: true, Fold: &protocol.Fold{State: "undone", Count: 4}},
		{ID: "x", Kind: protocol.KindAttach, Status: protocol.StatusSealed, Row: 4, Source: &protocol.GraphSource{SessionID: node, NodeID: node}},
		{ID: "t", Kind: protocol.KindTool, Status: protocol.StatusFailed, Row: 4, Tier: 1, Calls: 2},
		{ID: "a", Kind: protocol.KindAssistant, Status: protocol.StatusOpen, Row: 5, Lane: 9, Ghost: true, IsHead: true, Pinned: true, Read: true},
	}, Edges: []protocol.GraphEdge{{From: "r", To: "a", Style: protocol.EdgeChain, FromRow: 1, ToRow: 5, ToLane: 9}, {From: "u", To: "s", Style: protocol.EdgeSpawn, FromRow: 2, ToRow: 3, ToLane: 1}}, Passing: 7}
	for _, width := range []int{0, 20, 60, 400} {
		var b strings.Builder
		if err := Text(&b, v, Options{ASCII: true, Width: width, MaxLanes: 2}); err != nil {
			t.Fatal(err)
		}
		if i := strings.IndexFunc(b.String(), func(r rune) bool { return r > unicode.MaxASCII }); i >= 0 {
			t.Errorf("width %d:\n%s", width, b.String())
		}
	}
	// What a person wrote is theirs.
	v.Rows = []protocol.GraphRow{{ID: "u", Kind: protocol.KindUser, Status: protocol.StatusSealed, Row: 1, Preview: "wait… 漢…"}}
	var b strings.Builder
	if err := Text(&b, v, Options{ASCII: true}); err != nil || !strings.Contains(b.String(), "wait… 漢…") {
		t.Errorf("%q (%v)", b.String(), err)
	}
}
