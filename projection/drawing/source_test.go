package drawing

import (
	"strings"
	"testing"

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
		if got := sourceText(&tc.source, tc.local); got != tc.want {
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
