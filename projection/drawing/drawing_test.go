package drawing

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/charmbracelet/x/ansi"

	"convls/protocol"
)

// hostile are texts that would end an element, a string or a line, control a
// terminal, or show something else than what is there.
func hostile() []string {
	return []string{
		"</text><script>alert(1)</script>", `"];evil[label="`, `\`, `\"`, "a\nb\r\nc\u2028d", "\x1b[31mred\x1b[m", "\x1b]0;title\a", "\u202eevil\u202c", "\u200f\u061c",
		"\x00\x01\x08\x0b\x7f\u0085\u009b31m", "\ufffe\uffff\U0001ffff", "\xff\xfe", "\xed\xa0\x80", "&amp;&#0;&nbsp;", "]]>", "<!--", "<?xml?>", "👩‍👩‍👧‍👦", "e\u0301\u20dd", strings.Repeat("W", 500),
	}
}

// untrusted is a view with s wherever a text from outside can stand.
func untrusted(s string) *protocol.GraphView {
	return &protocol.GraphView{Head: s, Rows: []protocol.GraphRow{
		{ID: s, Kind: protocol.KindUser, Status: protocol.Status(s), Preview: s, Branches: []string{s}, Model: s, IsHead: true, Error: &protocol.NodeError{Message: s}},
		{ID: s + "2", Kind: protocol.Kind(s), Preview: s, Row: 1, Tier: 1, Caller: s},
		{ID: s + "3", Kind: protocol.KindAttach, Preview: s, Row: 2, Source: &protocol.GraphSource{SessionID: s, NodeID: s}},
		{ID: s + "4", Kind: protocol.KindSummary, Preview: s, Row: 3, Fold: &protocol.Fold{State: s, Count: 3}},
	}, Edges: []protocol.GraphEdge{{From: s, To: s + "3", Style: protocol.EdgeStyle(s), ToRow: 2}, {From: s + "x", To: s + "y", FromRow: -1, ToRow: 9}}}
}

// parses reads an SVG to its end, as strictly as XML asks for.
func parses(svg []byte) error {
	dec := xml.NewDecoder(bytes.NewReader(svg))
	for {
		tok, err := dec.Token()
		switch el, ok := tok.(xml.StartElement); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case ok && !slices.Contains(strings.Fields("svg title style rect g path circle text tspan"), el.Name.Local):
			return fmt.Errorf("element %s is none of a drawing", el.Name.Local)
		}
	}
}

// tame reports why what is written to a terminal controls it.
func tame(text string) error {
	for _, r := range text {
		if unicode.IsControl(r) && r != '\n' || directional(r) || r == '\u2028' || r == unicode.ReplacementChar && !strings.Contains(text, "\uFFFD") {
			return fmt.Errorf("the text holds %U: %q", r, text)
		}
	}
	return nil
}

// checkUntrusted draws s in every format.
func checkUntrusted(t *testing.T, s string) {
	t.Helper()
	view := untrusted(s)
	var svg, text, dot bytes.Buffer
	if err := errors.Join(SVG(&svg, view, Options{Title: s}), Text(&text, view, Options{Width: 60, IDs: true}), DOT(&dot, view, Options{Title: s})); err != nil {
		t.Fatal(err)
	}
	if err := parses(svg.Bytes()); err != nil {
		t.Errorf("%q: %v\n%s", s, err, svg.Bytes())
	}
	if err := tame(text.String()); err != nil {
		t.Errorf("%q: %v", s, err)
	}
	if n := strings.Count(text.String(), "\n"); n != len(view.Rows) {
		t.Errorf("%q: %d lines for %d rows", s, n, len(view.Rows))
	}
	if left := outsideStrings(dot.String()); strings.ContainsAny(left, `"\`) || strings.Contains(left, "evil") {
		t.Errorf("%q breaks out of a string:\n%s", s, dot.String())
	}
}

// outsideStrings is a text of DOT without its strings.
func outsideStrings(dot string) string {
	var b strings.Builder
	in := false
	for i := 0; i < len(dot); i++ {
		switch c := dot[i]; {
		case in && c == '\\':
			i++
		case c == '"':
			in = !in
		case !in:
			b.WriteByte(c)
		}
	}
	if in {
		b.WriteByte('"')
	}
	return b.String()
}

func TestUntrustedText(t *testing.T) {
	for _, s := range hostile() {
		checkUntrusted(t, s)
	}
}

func TestClean(t *testing.T) {
	for text, want := range map[string]string{
		"plain text":                  "plain text",
		"":                            "",
		" ":                           "",
		" two  spaces ":               "two spaces",
		"a\tb\r\nc\u00a0d\u2028e":     "a b c d e",
		"\x1b[31mred\x1b[m":           "red",
		"\x1b]0;title\arest":          "rest",
		"\x1b[cut":                    "ut",
		"x\u202ey\u2066z\u200f\ufeff": "xyz",
		"\u009b31mC1":                 "31mC1",
		"bad \xff bytes":              "bad \ufffd bytes",
		"👩‍👩‍👧‍👦 e\u0301 \ufe0f漢":           "👩‍👩‍👧‍👦 e\u0301 \ufe0f漢",
		"[link](x) <b>&amp;</b> \"\\ stays": "[link](x) <b>&amp;</b> \"\\ stays",
	} {
		if got := clean(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func FuzzUntrustedText(f *testing.F) {
	for _, s := range hostile() {
		f.Add(s)
	}
	f.Fuzz(checkUntrusted)
}

// TestWidths: no line is wider than asked for, whatever is in it (fault 91).
func TestWidths(t *testing.T) {
	texts := append(hostile(), "データベースを選びます", "한국어 텍스트입니다", "mixed 漢字 and latin", "👍🏽👍🏿🇩🇪🇫🇷", "ﷺ and ﷽")
	for width := 1; width < 50; width++ {
		for _, s := range texts {
			for _, o := range []Options{{Width: width}, {Width: width, ASCII: true}, {Width: width, Color: true, IDs: true}} {
				var b bytes.Buffer
				if err := Text(&b, untrusted(s), o); err != nil {
					t.Fatal(err)
				}
				for l := range strings.Lines(b.String()) {
					l = strings.TrimSuffix(l, "\n")
					if w := ansi.StringWidth(l); w > max(width, 4) {
						t.Fatalf("width %d: %d columns: %q", width, w, l)
					}
				}
			}
		}
	}
}

// TestShorten: labels of SVG are cut between characters as people see them.
func TestShorten(t *testing.T) {
	for _, tc := range []struct {
		text string
		most float64
		want string
	}{
		{"short", 10, "short"},
		{"", 10, ""},
		{"a longer text", 5, "a longe…"},
		{"データベース", 4, "デー…"},
		{"👨‍👩‍👧👨‍👩‍👧👨‍👩‍👧", 6, "👨‍👩‍👧👨‍👩‍👧…"},
		{"no room", 1, ""},
		{"no room", -3, ""},
	} {
		if got := shorten(tc.text, tc.most); got != tc.want {
			t.Errorf("%q in %g: %q, want %q", tc.text, tc.most, got, tc.want)
		}
	}
}

// wide is a view with a fork to each of n lanes, and one row of each.
func wide(n int) *protocol.GraphView {
	v := &protocol.GraphView{Rows: []protocol.GraphRow{{ID: "r", Kind: protocol.KindRoot}}}
	for i := range n {
		r := protocol.GraphRow{ID: fmt.Sprint(i), Kind: protocol.KindUser, Row: int64(i + 1), Lane: i, Preview: "text"}
		v.Rows = append(v.Rows, r)
		v.Edges = append(v.Edges, protocol.GraphEdge{From: "r", To: r.ID, Style: protocol.EdgeChain, ToRow: r.Row, ToLane: r.Lane})
	}
	return v
}

// long is a view with one chain of n rows, and a line beside it with a bend in each.
func long(n int) *protocol.GraphView {
	v := &protocol.GraphView{}
	beside := protocol.GraphEdge{From: "above", To: "below", Style: protocol.EdgeFolded, FromRow: -1, FromLane: 1, ToRow: int64(n), ToLane: 1}
	for i := range n {
		r := protocol.GraphRow{ID: fmt.Sprint(i), Kind: protocol.KindAssistant, Row: int64(i), Preview: "text"}
		if i > 0 {
			v.Edges = append(v.Edges, protocol.GraphEdge{From: fmt.Sprint(i - 1), To: r.ID, Style: protocol.EdgeChain, FromRow: r.Row - 1, ToRow: r.Row})
		}
		v.Rows = append(v.Rows, r)
		beside.Bends = append(beside.Bends, protocol.GraphBend{Row: r.Row, From: 1 + i%2, To: 1 + (i+1)%2})
	}
	v.Edges = append(v.Edges, beside)
	return v
}

// TestSizes: 10,000 forks of one node, and 100,000 rows (fault 75). With work that
// grows with the square this test would not end.
func TestSizes(t *testing.T) {
	for _, tc := range []struct {
		name string
		view *protocol.GraphView
		o    Options
		more int // lines beside the rows
	}{
		{"forks", wide(10_000), Options{Width: 100}, 1},
		{"all lanes", wide(2_000), Options{MaxLanes: 3_000}, 0},
		{"chain", long(100_000), Options{Width: 100}, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var text, svg, dot bytes.Buffer
			if err := errors.Join(Text(&text, tc.view, tc.o), SVG(&svg, tc.view, tc.o), DOT(&dot, tc.view, tc.o)); err != nil {
				t.Fatal(err)
			}
			if n := bytes.Count(text.Bytes(), []byte("\n")); n != len(tc.view.Rows)+tc.more {
				t.Errorf("%d lines, want %d", n, len(tc.view.Rows)+tc.more)
			}
			if n := bytes.Count(svg.Bytes(), []byte("<g class")); n != len(tc.view.Rows) {
				t.Errorf("%d nodes in the picture, want %d", n, len(tc.view.Rows))
			}
			if n := bytes.Count(dot.Bytes(), []byte(" -> ")); n != len(tc.view.Edges) {
				t.Errorf("%d edges in DOT, want %d", n, len(tc.view.Edges))
			}
		})
	}
}

// TestOddViews: what no server sends is drawn somehow, and nothing falls over it.
func TestOddViews(t *testing.T) {
	row := func(id string, slot int64, lane int) protocol.GraphRow {
		return protocol.GraphRow{ID: id, Kind: protocol.KindUser, Row: slot, Lane: lane}
	}
	edge := func(fromRow int64, fromLane int, toRow int64, toLane int, bends ...protocol.GraphBend) protocol.GraphEdge {
		return protocol.GraphEdge{From: fmt.Sprint("f", fromRow), To: fmt.Sprint("t", toRow), Style: protocol.EdgeChain, FromRow: fromRow, FromLane: fromLane, ToRow: toRow, ToLane: toLane, Bends: bends}
	}
	for name, v := range map[string]*protocol.GraphView{
		"empty":             {},
		"edges alone":       {Edges: []protocol.GraphEdge{edge(0, 0, 1, 0)}},
		"negative lanes":    {Rows: []protocol.GraphRow{row("a", 1, -3)}, Edges: []protocol.GraphEdge{edge(0, -1, 2, 0), edge(0, 0, 2, -1), edge(0, 0, 9, 0, protocol.GraphBend{Row: 1, From: -1, To: 2})}},
		"backwards":         {Rows: []protocol.GraphRow{row("a", 1, 0), row("b", 2, 0)}, Edges: []protocol.GraphEdge{edge(9, 0, 2, 0), edge(2, 0, 1, 0), edge(-2, 0, -1, 0), {From: "b", To: "a", ToRow: 1, FromRow: 2}}},
		"ends between rows": {Rows: []protocol.GraphRow{row("a", 1, 0), row("b", 9, 1)}, Edges: []protocol.GraphEdge{edge(3, 0, 7, 1), edge(1, 0, 5, 1), edge(5, 2, 5, 0), edge(3, 4, 20, 4, protocol.GraphBend{Row: 4, From: 4, To: 2})}},
		"arrows":            {Rows: []protocol.GraphRow{row("a", 1, 0), row("b", 2, 7)}, Edges: []protocol.GraphEdge{{From: "b", To: "a", Style: protocol.EdgeAttach, FromRow: 2, ToRow: 1}, {From: "a", To: "a", Style: protocol.EdgeAttach, FromRow: 1, ToRow: 1}, {From: "x", To: "b", Style: protocol.EdgeAttach, ToRow: 2, ToLane: 7}, {From: "a", To: "y", Style: protocol.EdgeAttach, FromRow: 1, ToRow: 9}}},
		"two in one lane":   {Rows: []protocol.GraphRow{row("a", 1, 0), row("b", 2, 0), row("c", 3, 0)}, Edges: []protocol.GraphEdge{edge(0, 0, 3, 0), edge(0, 0, 2, 0), edge(0, 50, 2, 50), edge(0, 60, 9, 0, protocol.GraphBend{Row: 2, From: 60, To: 0})}},
	} {
		t.Run(name, func(t *testing.T) {
			var text, svg bytes.Buffer
			if err := errors.Join(Text(&text, v, Options{MaxLanes: 3}), SVG(&svg, v, Options{MaxLanes: 3}), DOT(io.Discard, v, Options{})); err != nil {
				t.Fatal(err)
			}
			if err := parses(svg.Bytes()); err != nil {
				t.Error(err)
			}
			if n := strings.Count(text.String(), "\n"); n < len(v.Rows) {
				t.Errorf("%d lines for %d rows:\n%s", n, len(v.Rows), text.String())
			}
		})
	}
}

// broken is a writer that takes n bytes.
type broken struct{ n int }

var errBroken = errors.New("broken")

func (b *broken) Write(p []byte) (int, error) {
	if b.n -= len(p); b.n < 0 {
		return 0, errBroken
	}
	return len(p), nil
}

// TestWriterFails: nobody is told that a drawing is whole that is not.
func TestWriterFails(t *testing.T) {
	view := long(1_000)
	for _, room := range []int{0, 5_000} {
		for name, draw := range map[string]func(io.Writer) error{
			"text": func(w io.Writer) error { return Text(w, view, Options{}) },
			"svg":  func(w io.Writer) error { return SVG(w, view, Options{}) },
			"dot":  func(w io.Writer) error { return DOT(w, view, Options{}) },
			"json": func(w io.Writer) error { return JSON(w, view) },
		} {
			if err := draw(&broken{room}); !errors.Is(err, errBroken) {
				t.Errorf("%s in %d bytes: %v", name, room, err)
			}
		}
	}
}

// TestContrast: the colours of both themes can be read on their ground (WCAG 2.2,
// 1.4.3).
func TestContrast(t *testing.T) {
	for name, p := range map[string]palette{"light": lightPalette(), "dark": darkPalette()} {
		for _, c := range append(p.lanes[:], p.text, p.muted, p.accent, p.failed, p.open) {
			if got := contrast(c, p.ground); got < 4.5 {
				t.Errorf("%s: %s on %s has a contrast of %.2f", name, c, p.ground, got)
			}
		}
		for _, pair := range [][2]string{{p.text, p.band}, {p.text, p.pill}, {p.ground, p.accent}, {p.muted, p.band}} {
			if got := contrast(pair[0], pair[1]); got < 4.5 {
				t.Errorf("%s: %s on %s has a contrast of %.2f", name, pair[0], pair[1], got)
			}
		}
	}
}
