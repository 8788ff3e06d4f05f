package chat

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"

	"github.com/charmbracelet/x/ansi"
)

// clean makes text from outside safe to show: models, tools and other people's
// files can hold escape codes, which would control the terminal. Tabs become
// spaces, because their width depends on where they stand.
func clean(s string) string {
	if strings.ContainsRune(s, '\x1b') {
		s = ansi.Strip(s)
	}
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n':
			return r
		case unicode.IsControl(r), directional(r):
			return -1
		}
		return r
	}, strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\t", "    "))
}

// directional reports whether r overrides the direction of text: with these, what
// is shown can be made to differ from what is there.
func directional(r rune) bool {
	return r >= '\u202A' && r <= '\u202E' || r >= '\u2066' && r <= '\u2069'
}

// line makes text fit for one line: cleaned, spaces joined, cut to width cells.
func line(s string, width int) string {
	s = strings.Join(strings.Fields(clean(s)), " ")
	if width <= 0 {
		return ""
	}
	return ansi.Truncate(s, width, "…")
}

// count returns n and its noun, in the plural where that is right.
func count(n int64, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	if base, ok := strings.CutSuffix(noun, "y"); ok && noun != "day" {
		return thousands(n) + " " + base + "ies"
	}
	if strings.HasSuffix(noun, "ch") {
		return thousands(n) + " " + noun + "es"
	}
	return thousands(n) + " " + noun + "s"
}

// thousands writes n with commas.
func thousands(n int64) string {
	s := strconv.FormatInt(n, 10)
	neg := strings.HasPrefix(s, "-")
	s = strings.TrimPrefix(s, "-")
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	if neg {
		return "-" + s
	}
	return s
}

// dollars writes a cost, with the digits that say something.
func dollars(usd float64) string {
	switch {
	case usd <= 0:
		return "$0"
	case usd < 0.0001:
		return "<$0.0001"
	case usd < 0.1:
		return fmt.Sprintf("$%.4f", usd)
	default:
		return fmt.Sprintf("$%.2f", usd)
	}
}

// fields splits an argument into its first word and the rest.
func firstWord(arg string) (word, rest string) {
	word, rest, _ = strings.Cut(strings.TrimSpace(arg), " ")
	return word, strings.TrimSpace(rest)
}
