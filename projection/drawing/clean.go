package drawing

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"
)

// clean makes text from outside one line that is safe to show: without escape codes
// and control characters, which would control a terminal; without the characters that
// set the direction of text, with which what is shown differs from what is there; and
// without what XML 1.0 forbids (section 2.2, Char). Runs of spaces become one.
func clean(s string) string {
	if plain(s) {
		return s
	}
	if strings.ContainsRune(s, '\x1b') {
		s = ansi.Strip(s)
	}
	s = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r), r == '\u2028', r == '\u2029':
			return ' '
		case unicode.IsControl(r), directional(r), r == '\uFEFF', r == '\uFFFE', r == '\uFFFF':
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, "\uFFFD"))
	return strings.Join(strings.Fields(s), " ")
}

// plain reports whether s is printable ASCII without runs of spaces, which most ids
// and many labels are.
func plain(s string) bool {
	space := true
	for i := range len(s) {
		c := s[i]
		if c < ' ' || c >= utf8.RuneSelf || c == '\x7f' || c == ' ' && space {
			return false
		}
		space = c == ' '
	}
	return !space || s == ""
}

// directional reports whether r sets the direction of the text around it (UAX 9,
// section 2).
func directional(r rune) bool {
	return r >= '\u202A' && r <= '\u202E' || r >= '\u2066' && r <= '\u2069' || r == '\u200E' || r == '\u200F' || r == '\u061C'
}
