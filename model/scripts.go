package model

import (
	"unicode"
	"unicode/utf8"
)

// scriptID names this estimate; it changes when the figures do.
const scriptID = "script-1"

// script is a group of characters that tokenise alike.
type script int

const (
	scriptSpace script = iota
	scriptLatin
	scriptDigit
	scriptMark
	scriptAccent
	scriptHangul
	scriptHan
	scriptKana
	scriptCyrillic
	scriptIndic
	scriptOther
	scriptEmoji
	scriptInvalid
	scripts
)

// rates are tokens a character, measured with o200k on prose. Hangul comes
// below: its rate depends on spaces.
var rates = [scripts]float64{
	scriptLatin:    0.225,
	scriptDigit:    0.42,
	scriptMark:     0.66,
	scriptAccent:   0.60,
	scriptHan:      0.793,
	scriptKana:     0.740,
	scriptCyrillic: 0.28,
	scriptIndic:    0.36,
	scriptOther:    0.50,
	scriptEmoji:    1.60,
	scriptInvalid:  0.80,
}

const (
	// hangulWord is the rate of Hangul in words with spaces between them: 0.604 a
	// character of prose, spaces included, with three syllables to a space.
	hangulWord = 0.80
	// hangulRun is the rate of Hangul that is written without spaces.
	hangulRun = 0.964
	// hangulLong is from how many syllables on a run is no word any more.
	hangulLong = 12
)

// estimateText estimates how many tokens a text takes, by the scripts that it is
// written in: one figure for all either counts Chinese and Korean two to six
// times too low (fault 40) or far too high (fault 41).
func estimateText(s string) float64 {
	var count [scripts]int
	total := 0.0
	hangul := 0
	endHangul := func() {
		if hangul >= hangulLong {
			total += hangulRun * float64(hangul)
		} else {
			total += hangulWord * float64(hangul)
		}
		hangul = 0
	}
	spaces, lines := 0, 0
	endSpaces := func() {
		// One space goes with the next word; indentation is a token, and so is a
		// line break.
		if lines > 0 {
			total += 0.6
		}
		if spaces > 1 {
			total += 0.5 + float64(spaces)/40
		}
		spaces, lines = 0, 0
	}
	for i := 0; i < len(s); {
		r, size := rune(s[i]), 1
		if r >= utf8.RuneSelf {
			r, size = utf8.DecodeRuneInString(s[i:])
		}
		k := scriptOf(r, size)
		i += size
		if k == scriptHangul {
			hangul++
		} else if hangul > 0 {
			endHangul()
		}
		if k == scriptSpace {
			if r == '\n' {
				lines++
				spaces = 0
			} else {
				spaces++
			}
			continue
		}
		if spaces > 0 || lines > 0 {
			endSpaces()
		}
		count[k]++
	}
	endHangul()
	endSpaces()
	for k, n := range count {
		total += rates[k] * float64(n)
	}
	return total
}

func scriptOf(r rune, size int) script {
	switch {
	case r < utf8.RuneSelf:
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z':
			return scriptLatin
		case r >= '0' && r <= '9':
			return scriptDigit
		case r == ' ', r == '\n', r == '\t', r == '\r':
			return scriptSpace
		}
		return scriptMark
	case r == utf8.RuneError && size == 1:
		return scriptInvalid
	case r >= 0xAC00 && r <= 0xD7A3, r >= 0x1100 && r <= 0x11FF, r >= 0x3130 && r <= 0x318F:
		return scriptHangul
	case r >= 0x4E00 && r <= 0x9FFF, r >= 0x3400 && r <= 0x4DBF, r >= 0xF900 && r <= 0xFAFF:
		return scriptHan
	case r >= 0x20000 && r <= 0x3FFFF:
		return scriptEmoji // rare Han take two or three tokens
	case r >= 0x3040 && r <= 0x30FF, r >= 0x31F0 && r <= 0x31FF, r >= 0xFF66 && r <= 0xFF9F:
		return scriptKana
	case r >= 0x0400 && r <= 0x052F:
		return scriptCyrillic
	case r >= 0x00C0 && r <= 0x024F, r >= 0x0300 && r <= 0x036F, r >= 0x1E00 && r <= 0x1EFF:
		return scriptAccent
	case r >= 0x0900 && r <= 0x0DFF, r >= 0x0600 && r <= 0x06FF, r >= 0x0590 && r <= 0x05FF, r >= 0x0370 && r <= 0x03FF, r >= 0x0E00 && r <= 0x0EFF:
		return scriptIndic
	case r >= 0x1F000 && r <= 0x1FAFF, r >= 0x2600 && r <= 0x27BF, r == 0x200D, r == 0xFE0F, r >= 0xE0000 && r <= 0xE007F:
		return scriptEmoji
	case unicode.IsSpace(r):
		return scriptSpace
	case unicode.IsPunct(r), unicode.IsSymbol(r):
		return scriptMark
	}
	return scriptOther
}
