package neovim

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/cockroachdb/datadriven"

	"convls/projection/drawing"
	"convls/protocol"
	"convls/test/shapes"
)

// drawn draws a view in Lua, without a window. It holds the highlights to the lines
// that they are for.
func (n *Neovim) drawn(t *testing.T, view *protocol.GraphView, maxLanes int) string {
	t.Helper()
	data, err := protocol.Marshal(view)
	if err != nil {
		t.Fatal(err)
	}
	reply, _ := n.Lua(`local view, most = ...
local draw = require("convls.graph.draw")
local usual = draw.MAX_LANES
draw.MAX_LANES = most
local ok, drawing = pcall(draw.draw, vim.json.decode(view, { luanil = { object = true } }))
draw.MAX_LANES = usual
assert(ok, drawing)
for i, line in ipairs(drawing.lines) do
  for _, span in ipairs(drawing.spans[i]) do
    assert(span[1] >= 0 and span[1] < span[2] and span[2] <= #line, vim.inspect(span) .. " is not in " .. line)
    assert(vim.fn.hlexists(span[3]) == 1, "there is no group " .. span[3])
  end
end
return vim.json.encode(drawing.lines)`, string(data), maxLanes).(string)
	var lines []string
	if reply != "{}" { // what Lua makes of an empty list
		if err := json.Unmarshal([]byte(reply), &lines); err != nil {
			t.Fatal(err)
		}
	}
	var b strings.Builder
	for _, l := range lines {
		b.WriteString(l + "\n")
	}
	return b.String()
}

// startToDraw starts a Neovim that only draws.
func startToDraw(t *testing.T, version string) *Neovim {
	t.Helper()
	n := Start(t, Options{Version: version})
	n.Lua(`require("convls.highlight").define()`)
	return n
}

// wantDrawn draws a view in Lua and in Go, and compares.
func (n *Neovim) wantDrawn(t *testing.T, view *protocol.GraphView, maxLanes int) {
	t.Helper()
	// As it comes over the wire, where lists are never null.
	data, err := protocol.Marshal(view)
	if err != nil {
		t.Fatal(err)
	}
	var sent protocol.GraphView
	if err := protocol.Unmarshal(data, &sent); err != nil {
		t.Fatal(err)
	}
	var want strings.Builder
	if err := drawing.Text(&want, &sent, drawing.Options{MaxLanes: maxLanes}); err != nil {
		t.Fatal(err)
	}
	if got := n.drawn(t, &sent, maxLanes); got != want.String() {
		t.Errorf("Neovim draws\n%s\n--- want\n%s\n--- of\n%s", got, want.String(), data)
	}
}

// TestGraphShapes draws every shape of projection/drawing/testdata in Lua. Whoever adds
// one there adds it here.
func TestGraphShapes(t *testing.T) {
	files, err := filepath.Glob("../../projection/drawing/testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no golden files: %v", err)
	}
	Each(t, func(t *testing.T, version string) {
		n := startToDraw(t, version)
		for _, file := range files {
			t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
				views := 0
				datadriven.RunTest(t, file, func(t *testing.T, d *datadriven.TestData) string {
					if d.Cmd != "view" {
						return d.Expected // of another format, or of the same view
					}
					views++
					view, err := shapes.ParseView(d.Input)
					if err != nil {
						d.Fatalf(t, "%v", err)
					}
					maxLanes := drawing.DefaultMaxLanes
					d.MaybeScanArgs(t, "max-lanes", &maxLanes)
					if d.HasArg("width") { // a window of Neovim cuts lines itself
						n.wantDrawn(t, view, maxLanes)
						return d.Expected
					}
					return n.drawn(t, view, maxLanes)
				})
				if views == 0 {
					t.Error("the file has no view")
				}
			})
		}
	})
}

// TestGraphOddViews draws what no server sends, and texts that would control a
// terminal.
func TestGraphOddViews(t *testing.T) {
	Each(t, func(t *testing.T, version string) {
		n := startToDraw(t, version)
		for name, view := range shapes.Odd() {
			t.Run(name, func(t *testing.T) { n.wantDrawn(t, view, 3) })
		}
		for _, s := range shapes.Hostile() {
			if !utf8.ValidString(s) {
				continue // can not come over the wire
			}
			t.Run(fmt.Sprintf("%.20q", s), func(t *testing.T) { n.wantDrawn(t, shapes.Untrusted(s), drawing.DefaultMaxLanes) })
		}
	})
}

// TestGraphAnyView draws views of chance. The default of lanes that are drawn is the
// program's.
func TestGraphAnyView(t *testing.T) {
	n := startToDraw(t, "")
	if got := whole(n.Lua(`return require("convls.graph.draw").MAX_LANES`)); got != drawing.DefaultMaxLanes {
		t.Errorf("Neovim draws %d lanes, want %d", got, drawing.DefaultMaxLanes)
	}
	for seed := range uint64(300) {
		view := anyView(rand.New(rand.NewPCG(seed, 0)))
		if n.wantDrawn(t, view, drawing.DefaultMaxLanes); t.Failed() {
			t.Fatalf("with the seed %d", seed)
		}
	}
}

// anyView is a view with rows and edges at random places, as no layout would have
// them: what is drawn of it is the same everywhere all the same.
func anyView(rng *rand.Rand) *protocol.GraphView {
	pick := func(words ...string) string { return words[rng.IntN(len(words))] }
	lanes := 1 + rng.IntN(40)
	v := &protocol.GraphView{Before: pick("", "b"), After: pick("", "a"), Passing: rng.IntN(9)}
	slot := int64(rng.IntN(3))
	for i := range rng.IntN(30) {
		r := protocol.GraphRow{ID: fmt.Sprint("n", i), Kind: protocol.Kind(pick("root", "user", "assistant", "attach", "tool", "call", "notice", "summary", "other")),
			Status: protocol.Status(pick("sealed", "sealed", "open", "failed", "")), Preview: pick("", "text", "漢字 \x1b[1mx", "a\tb"), Row: slot, Lane: rng.IntN(lanes),
			Tier: max(0, rng.IntN(5)-2), Calls: max(0, rng.IntN(2000)-1000), CoversCount: int64(rng.IntN(3)), IsHead: rng.IntN(9) == 0, Ghost: rng.IntN(9) == 0,
			Redacted: rng.IntN(9) == 0, Pinned: rng.IntN(9) == 0, Read: rng.IntN(9) == 0, Void: rng.IntN(9) == 0, SupersededSummary: rng.IntN(9) == 0}
		if rng.IntN(3) > 0 {
			r.Fold = &protocol.Fold{State: pick("folded", "expanded", "inert", "superseded", "undone", "void", "", "other"), Count: int64(rng.IntN(3000))}
		}
		if rng.IntN(5) == 0 {
			r.Source = &protocol.GraphSource{SessionID: pick("", "s", "01JZZZZZZZZZZZZZZZZZSESSION"), NodeID: pick("n1", "01JYYYYYYYYYYYYYYYYYYYNODE"),
				Branch: pick("", "", "side\t"), Depth: int64(max(0, rng.IntN(4000)-2000)), Kind: protocol.Kind(pick("user", "summary")), Title: pick("", "", "Elsewhere\x1b[m"), Deleted: rng.IntN(9) == 0}
		}
		if rng.IntN(5) == 0 {
			r.Branches = []string{pick("main", "漢 字", "\u202e")}
		}
		v.Rows = append(v.Rows, r)
		slot += int64(rng.IntN(3))
	}
	for range rng.IntN(40) {
		e := protocol.GraphEdge{From: fmt.Sprint("n", rng.IntN(35)), To: fmt.Sprint("n", rng.IntN(35)), Style: protocol.EdgeStyle(pick("chain", "chain", "folded", "spawn", "attach")),
			FromRow: int64(rng.IntN(40)) - 2, ToRow: int64(rng.IntN(40)), FromLane: rng.IntN(lanes), ToLane: rng.IntN(lanes)}
		for _, r := range v.Rows {
			if r.ID == e.From {
				e.FromRow, e.FromLane = r.Row, r.Lane
			}
			if r.ID == e.To {
				e.ToRow, e.ToLane = r.Row, r.Lane
			}
		}
		if rng.IntN(3) == 0 {
			at, lane := e.FromRow, rng.IntN(lanes)
			for range 1 + rng.IntN(3) {
				to := rng.IntN(lanes)
				if at += int64(rng.IntN(4)); at > e.ToRow {
					break // a line has no bends after its end
				}
				e.Bends = append(e.Bends, protocol.GraphBend{Row: at, From: lane, To: to})
				lane = to
			}
		}
		v.Edges = append(v.Edges, e)
	}
	return v
}

// TestGraphRedraws puts drawings into one buffer, one after the other, that are alike
// in much: each is there as a whole.
func TestGraphRedraws(t *testing.T) {
	n := forked(t, "")
	n.openGraph()
	rng := rand.New(rand.NewPCG(1, 0))
	for range 200 {
		view := protocol.GraphView{Rows: []protocol.GraphRow{{ID: "root", Kind: protocol.KindRoot, InContext: rng.IntN(2) == 0}}, Edges: []protocol.GraphEdge{}}
		for i := range int64(rng.IntN(6)) {
			view.Rows = append(view.Rows, protocol.GraphRow{ID: fmt.Sprint(i), Kind: protocol.KindUser, Row: i + 1, Preview: "same", InContext: rng.IntN(2) == 0})
		}
		// Which one is drawn last gives the line its colour.
		for _, lane := range rng.Perm(3) {
			view.Edges = append(view.Edges, protocol.GraphEdge{From: "root", To: fmt.Sprint("to", lane), Style: protocol.EdgeChain, ToRow: 99, ToLane: lane + 1})
		}
		data, err := protocol.Marshal(&view)
		if err != nil {
			t.Fatal(err)
		}
		n.Lua(`local graph = require("convls.graph").current()
graph.view = vim.json.decode(..., { luanil = { object = true } })
graph:draw()`, string(data))
		if n.wantDrawing(); t.Failed() {
			t.Fatalf("of %s", data)
		}
	}
}
