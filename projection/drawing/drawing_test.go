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
	"convls/test/shapes"
)

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
	view := shapes.Untrusted(s)
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
	for _, s := range shapes.Hostile() {
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
	for _, s := range shapes.Hostile() {
		f.Add(s)
	}
	f.Fuzz(checkUntrusted)
}

// TestWidths: no line is wider than asked for, whatever is in it (fault 91).
func TestWidths(t *testing.T) {
	texts := append(shapes.Hostile(), "データベースを選びます", "한국어 텍스트입니다", "mixed 漢字 and latin", "👍🏽👍🏿🇩🇪🇫🇷", "ﷺ and ﷽")
	for width := 1; width < 50; width++ {
		for _, s := range texts {
			for _, o := range []Options{{Width: width}, {Width: width, ASCII: true}, {Width: width, Color: true, IDs: true}} {
				var b bytes.Buffer
				if err := Text(&b, shapes.Untrusted(s), o); err != nil {
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
	for name, v := range shapes.Odd() {
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
