package shapes

import (
	"fmt"
	"strings"

	"convls/protocol"
)

// Hostile are texts that would end an element, a string or a line, control a
// terminal, or show something else than what is there.
func Hostile() []string {
	return []string{
		"</text><script>alert(1)</script>", `"];evil[label="`, `\`, `\"`, "a\nb\r\nc\u2028d", "\x1b[31mred\x1b[m", "\x1b]0;title\a", "\u202eevil\u202c", "\u200f\u061c",
		"\x00\x01\x08\x0b\x7f\u0085\u009b31m", "\ufffe\uffff\U0001ffff", "\xff\xfe", "\xed\xa0\x80", "&amp;&#0;&nbsp;", "]]>", "<!--", "<?xml?>", "👩‍👩‍👧‍👦", "e\u0301\u20dd", strings.Repeat("W", 500),
		"\x1b]8;;http://evil\x1b\\link\x1b]8;;\x1b\\ on", "\x1bPq#0\x1b\\six\x1b_app\x1b\\el", "\x1b(Bset\x1bcreset\x1b7", "\x1b[31", "cut\x1b", "cut \x1b]0;title", "\x1b]0;a\x1b[1mb",
		" \x01 two\x02  \x7f spaces ", "\u1680a\u2007b\u205fc\u3000d\u00a0\v\f", "漢字 \u200b\u2060 \u00ad",
	}
}

// Untrusted is a view with s wherever a text from outside can stand.
func Untrusted(s string) *protocol.GraphView {
	return &protocol.GraphView{Head: s, Rows: []protocol.GraphRow{
		{ID: s, Kind: protocol.KindUser, Status: protocol.Status(s), Preview: s, Branches: []string{s}, Model: s, IsHead: true, Error: &protocol.NodeError{Message: s}},
		{ID: s + "2", Kind: protocol.Kind(s), Preview: s, Row: 1, Tier: 1, Caller: s},
		{ID: s + "3", Kind: protocol.KindAttach, Preview: s, Row: 2, Source: &protocol.GraphSource{SessionID: s, NodeID: s}},
		{ID: s + "4", Kind: protocol.KindSummary, Preview: s, Row: 3, Fold: &protocol.Fold{State: s, Count: 3}},
	}, Edges: []protocol.GraphEdge{{From: s, To: s + "3", Style: protocol.EdgeStyle(s), ToRow: 2}, {From: s + "x", To: s + "y", FromRow: -1, ToRow: 9}}}
}

// Odd are views that no server sends: a client must not fall over them.
func Odd() map[string]*protocol.GraphView {
	row := func(id string, slot int64, lane int) protocol.GraphRow {
		return protocol.GraphRow{ID: id, Kind: protocol.KindUser, Row: slot, Lane: lane}
	}
	edge := func(fromRow int64, fromLane int, toRow int64, toLane int, bends ...protocol.GraphBend) protocol.GraphEdge {
		return protocol.GraphEdge{From: fmt.Sprint("f", fromRow), To: fmt.Sprint("t", toRow), Style: protocol.EdgeChain, FromRow: fromRow, FromLane: fromLane, ToRow: toRow, ToLane: toLane, Bends: bends}
	}
	return map[string]*protocol.GraphView{
		"empty":             {},
		"edges alone":       {Edges: []protocol.GraphEdge{edge(0, 0, 1, 0)}},
		"negative lanes":    {Rows: []protocol.GraphRow{row("a", 1, -3)}, Edges: []protocol.GraphEdge{edge(0, -1, 2, 0), edge(0, 0, 2, -1), edge(0, 0, 9, 0, protocol.GraphBend{Row: 1, From: -1, To: 2})}},
		"backwards":         {Rows: []protocol.GraphRow{row("a", 1, 0), row("b", 2, 0)}, Edges: []protocol.GraphEdge{edge(9, 0, 2, 0), edge(2, 0, 1, 0), edge(-2, 0, -1, 0), {From: "b", To: "a", ToRow: 1, FromRow: 2}}},
		"ends between rows": {Rows: []protocol.GraphRow{row("a", 1, 0), row("b", 9, 1)}, Edges: []protocol.GraphEdge{edge(3, 0, 7, 1), edge(1, 0, 5, 1), edge(5, 2, 5, 0), edge(3, 4, 20, 4, protocol.GraphBend{Row: 4, From: 4, To: 2})}},
		"arrows":            {Rows: []protocol.GraphRow{row("a", 1, 0), row("b", 2, 7)}, Edges: []protocol.GraphEdge{{From: "b", To: "a", Style: protocol.EdgeAttach, FromRow: 2, ToRow: 1}, {From: "a", To: "a", Style: protocol.EdgeAttach, FromRow: 1, ToRow: 1}, {From: "x", To: "b", Style: protocol.EdgeAttach, ToRow: 2, ToLane: 7}, {From: "a", To: "y", Style: protocol.EdgeAttach, FromRow: 1, ToRow: 9}}},
		"two in one lane":   {Rows: []protocol.GraphRow{row("a", 1, 0), row("b", 2, 0), row("c", 3, 0)}, Edges: []protocol.GraphEdge{edge(0, 0, 3, 0), edge(0, 0, 2, 0), edge(0, 50, 2, 50), edge(0, 60, 9, 0, protocol.GraphBend{Row: 2, From: 60, To: 0})}},
	}
}
