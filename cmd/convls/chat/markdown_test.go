package chat

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// plainLines renders without colours, so that a test can read it.
func plainLines(width int, text string) []string {
	var out []string
	for _, l := range newMarkdown(width, newTheme(true, true)).lines(text) {
		out = append(out, strings.TrimRight(ansi.Strip(l), " \u00a0"))
	}
	return out
}

func TestMarkdownLists(t *testing.T) {
	for _, tc := range []struct {
		name, text string
		want       []string
	}{
		{"an item that is wrapped hangs", "- one two three four five six seven eight", []string{"• one two three four five six", "  seven eight"}},
		{"numbers are kept", "9. nine\n10. one two three four five six", []string{"9. nine", "10. one two three four five", "    six"}},
		{"nested", "1. a\n   - b\n     - c\n2. d", []string{"1. a", "   • b", "     • c", "2. d"}},
		{"nested with too little room", "1. a\n  - b\n2. d", []string{"1. a", "   • b", "2. d"}},
		{"paragraphs of an item", "- a\n\n  b\n- c", []string{"• a", "", "  b", "• c"}},
		{"code in an item", "1. do\n   ```\n   x\n\n   - y\n   ```\n2. done", []string{"1. do", "", "     x", "", "     - y", "2. done"}},
		{"a year begins no list", "It was\n2019. That is all", []string{"It was 2019. That is all"}},
		{"a quote", "> a\n> - b", []string{"│ a", "│ • b"}},
		{"a rule is no item", "a\n\n* * *\n\nb", []string{"a", "", "--------", "", "b"}},
		{"items apart", "- a\n\n- b", []string{"• a", "", "• b"}},
		{"text after a list", "- a\n\ntext", []string{"• a", "", "text"}},
		{"a lazy line", "- a\nb", []string{"• a b"}},
		{"tasks", "- [x] done", []string{"• [x] done"}},
		{"an empty item", "-\n- b", []string{"•", "• b"}},
		{"list in a fence", "```\n- a\n1. b\n```", []string{"  - a", "  1. b"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, plainLines(30, tc.text)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestMarkdownWideCharacters(t *testing.T) {
	for _, text := range []string{strings.Repeat("漢字", 30), strings.Repeat("👩‍👩‍👧", 20), strings.Repeat("é", 70), "- " + strings.Repeat("かな ", 30), strings.Repeat("x", 200)} {
		var joined strings.Builder
		for _, l := range plainLines(31, text) {
			if w := ansi.StringWidth(l); w > 31 {
				t.Errorf("a line of %d cells: %q", w, l)
			}
			joined.WriteString(strings.TrimLeft(l, "• "))
		}
		want := strings.TrimLeft(strings.ReplaceAll(text, " ", ""), "-")
		if got := strings.ReplaceAll(joined.String(), " ", ""); got != want {
			t.Errorf("text was lost:\n%q\n%q", got, want)
		}
	}
}

// TestMarkdownPartial: while an answer is written its whole blocks are rendered as
// they will be, and nothing is shown twice or left out.
func TestMarkdownPartial(t *testing.T) {
	text := "# Head\n\nFirst *words* here.\n\n- a\n- b\n\n```go\nx := 1\n\ny := 2\n```\n\nlast `words` and more"
	m := newMarkdown(40, newTheme(true, true))
	for n := range len(text) + 1 {
		if !utf8.ValidString(text[:n]) {
			continue
		}
		got := strings.Join(m.partial(text[:n]), "\n")
		for _, word := range []string{"Head", "First", "y := 2", "last"} {
			if want := strings.Count(text[:n], word); strings.Count(got, word) != want {
				t.Fatalf("after %d bytes %q is there %d times, want %d:\n%s", n, word, strings.Count(got, word), want, got)
			}
		}
	}
	if head, rest := splitWhole(text); !strings.HasSuffix(head, "```\n\n") || rest != "last `words` and more" {
		t.Errorf("cut at %q | %q", head, rest)
	}
}

func TestClean(t *testing.T) {
	for in, want := range map[string]string{
		"plain 漢字 👩‍👩‍👧\n":            "plain 漢字 👩‍👩‍👧\n",
		"\x1b[31mred\x1b[0m":          "red",
		"\x1b]52;c;aGk=\x07clip":      "clip",
		"a\x00b\x07c\x7fd\u009be":     "abcde",
		"tab\tx\r\n":                  "tab    x\n",
		"bad\xffbyte":                 "bad\uFFFDbyte",
		"over\u202eride\u2066x\u2069": "overridex",
	} {
		if got := clean(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

func TestWords(t *testing.T) {
	for got, want := range map[string]string{
		count(1, "node"): "1 node", count(0, "branch"): "0 branches", count(1200, "entry"): "1,200 entries", count(2, "day"): "2 days",
		thousands(-1234567): "-1,234,567", thousands(999): "999",
		dollars(0): "$0", dollars(0.00001): "<$0.0001", dollars(0.0123): "$0.0123", dollars(3.456): "$3.46",
		line("a\n b\tc", 10): "a b c", line("abcdef", 4): "abc…", line("漢字漢字", 5): "漢字…", line("x", 0): "",
		fileName("Trip to Lisbon: day 1!"): "trip-to-lisbon-day-1", fileName("///"): "conversation", fileName("日本"): "日本",
		percent(0): "0 %", percent(0.2): "<1 %", percent(12.4): "12 %",
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestMarkdownOfAnything: no text makes the screen fall over, gets a line past the
// edge, or brings a control character to the terminal. (A property and not a fuzz
// target, because the coverage build of all that this package's tests import takes
// minutes.)
func TestMarkdownOfAnything(t *testing.T) {
	pieces := []string{"- ", "1. ", "10) ", "> ", "# ", "```", "~~~", "|", "|-|-|\n", "\n", "\n\n", "  ", "    ", "*", "**", "_", "`", "[x](y)", "![i](j)", "<b>", "\t", "\r", "\x1b[31m", "\x1b]0;x\x07",
		"漢字", "👩‍👩‍👧", "e\u0301", "\u202e", "\xff", "---", "word ", "a-b-c", "https://example.com/a/b", "&amp;", "\\"}
	markdowns := map[int]*markdown{}
	rapid.Check(t, func(t *rapid.T) {
		width := rapid.SampledFrom([]int{1, 2, 7, 24, 40, 96}).Draw(t, "width")
		text := strings.Join(rapid.SliceOfN(rapid.OneOf(rapid.SampledFrom(pieces), rapid.String()), 0, 60).Draw(t, "text"), "")
		m := markdowns[width]
		if m == nil {
			m = newMarkdown(width, newTheme(true, true))
			markdowns[width] = m
		}
		for _, lines := range [][]string{m.lines(text), m.partial(text), wrap(clean(text), width)} {
			for _, l := range lines {
				// One character can be wider than the narrowest screen, and a variation
				// selector makes one wider than the wrapping saw; the view cuts that.
				if w := ansi.StringWidth(l); w > max(width, 2)+1 {
					t.Fatalf("a line of %d cells for %d: %q", w, width, l)
				}
				for _, r := range ansi.Strip(l) {
					if unicode.IsControl(r) {
						t.Fatalf("a control character: %q", l)
					}
				}
			}
		}
	})
}
