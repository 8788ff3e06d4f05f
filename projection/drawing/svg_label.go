package drawing

import (
	"strings"
	"unicode"

	"github.com/charmbracelet/x/ansi"
)

// estimate is about how wide a text is in a sans-serif font, in units of the font's
// size. Nothing can be measured: whoever looks at the picture has the font. It is that
// of a wide one, so that labels end too early rather than too late.
func estimate(s string) float64 {
	w := 0.0
	for _, r := range s {
		w += advance(r)
	}
	return w
}

func advance(r rune) float64 {
	switch {
	case r < 0x80:
		switch {
		case strings.ContainsRune("iIjlf.,:;'|!()[]t`", r):
			return 0.37
		case strings.ContainsRune("mwMW@%", r):
			return 0.95
		case r >= 'A' && r <= 'Z':
			return 0.72
		case r == ' ':
			return 0.33
		}
		return 0.63
	case unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf):
		return 0
	}
	switch ansi.StringWidth(string(r)) {
	case 0:
		return 0
	case 1:
		return 0.68
	}
	return 1.1
}

// shorten cuts a text to about so many units of the font's size, between characters
// as people see them.
func shorten(s string, most float64) string {
	w, end := 0.0, -1
	for i, r := range s {
		a := advance(r)
		if end < 0 && w+a > most-1 {
			end = i
		}
		if w += a; w > most {
			if most < 2 {
				return ""
			}
			return strings.TrimRight(ansi.Truncate(s, ansi.StringWidth(s[:end]), ""), " ") + "…"
		}
	}
	return s
}
