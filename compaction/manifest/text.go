package manifest

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// normalise makes every run of white space one space. Quotes are stored and
// compared so, because models re-wrap what they quote.
func normalise(text string) string { return strings.Join(strings.Fields(text), " ") }

// clip shortens text to at most n bytes, at the end of a sentence or of a word
// where one is near, and marks the cut.
func clip(text string, n int) string {
	if len(text) <= n {
		return text
	}
	const mark = "…"
	return strings.TrimRight(cut(text, n-len(mark)), " ") + mark
}

// cut returns a prefix of text of at most n bytes, whole runes, without a mark.
func cut(text string, n int) string {
	if len(text) <= n {
		return text
	}
	n = max(n, 0)
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	head := text[:n]
	if i := strings.LastIndex(head, ". "); i > n/2 {
		return head[:i+1]
	}
	if i := strings.LastIndexByte(head, ' '); i > n/2 {
		return head[:i]
	}
	return head
}

// maxSentence is where a sentence without an end is cut, so that it fits a quote.
const maxSentence = MaxQuote - 100

// sentences calls yield with the bounds of each sentence of text, in order; they
// are disjoint and leave out white space only. A line ends a sentence, but with
// wrap a line that goes on in lower case belongs to the one before it: people and
// models wrap their prose, and half a sentence may lack its "not".
func sentences(text string, wrap bool, yield func(start, end int)) {
	start := 0
	emit := func(end int) {
		s, e := start, end
		for s < e && isSpace(text[s]) {
			s++
		}
		for e > s && isSpace(text[e-1]) {
			e--
		}
		if s < e {
			yield(s, e)
		}
		start = end
	}
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\n':
			if !wrap || !goesOn(text, start, i) {
				emit(i + 1)
			}
		case c == '.' || c == '!' || c == '?':
			if endsHere(text, i) {
				emit(i + 1)
			}
		case c == 0xE3 && strings.HasPrefix(text[i:], "。"),
			c == 0xEF && (strings.HasPrefix(text[i:], "！") || strings.HasPrefix(text[i:], "？") || strings.HasPrefix(text[i:], "；")):
			emit(i + 3)
			i += 2
		}
		if i-start >= maxSentence {
			end := i + 1
			if k := strings.LastIndexByte(text[start:end], ' '); k > maxSentence/2 {
				end = start + k + 1
			}
			for k := 0; k < utf8.UTFMax && end < len(text) && !utf8.RuneStart(text[end]); k++ {
				end++
			}
			emit(end)
			i = max(i, end-1)
		}
	}
	emit(len(text))
}

// goesOn tells whether the line that ends at newline continues on the next one.
func goesOn(text string, start, newline int) bool {
	line := strings.TrimSpace(text[start:newline])
	if line == "" || strings.HasPrefix(line, "```") || strings.HasPrefix(line, "#") || strings.HasPrefix(line, "|") {
		return false
	}
	if strings.IndexByte(".!?:;", line[len(line)-1]) >= 0 {
		return false
	}
	rest := newline + 1
	for rest < len(text) && (text[rest] == ' ' || text[rest] == '\t') {
		rest++
	}
	return rest < len(text) && text[rest] >= 'a' && text[rest] <= 'z'
}

// endsHere tells whether the mark at i ends a sentence: it does not inside a
// name (a.go), nor before a word in lower case (e.g. this).
func endsHere(text string, i int) bool {
	j := i + 1
	for j < len(text) && strings.IndexByte("\"')]*", text[j]) >= 0 {
		j++
	}
	if j == len(text) || text[j] == '\n' {
		return true
	}
	if !isSpace(text[j]) {
		return text[j] >= 0x80 && text[i] != '.'
	}
	for j < len(text) && isSpace(text[j]) {
		j++
	}
	return j == len(text) || text[i] != '.' || text[j] < 'a' || text[j] > 'z'
}

func isSpace(c byte) bool {
	return c == ' ' || c == '\n' || c == '\t' || c == '\r' || c == '\v' || c == '\f'
}

// passage is a covered message made ready for looking up quotes.
type passage struct {
	role Role
	norm string
	// ends are the offsets in norm where a sentence ends, ascending.
	ends []int
	// lower is norm in lower case, made when it is first needed.
	lower string
}

func newPassage(m *Message) *passage {
	text := m.Body()
	p := &passage{role: m.Role}
	var b strings.Builder
	b.Grow(len(text))
	last := 0
	sentences(text, m.Role != RoleTool, func(start, end int) {
		before, _ := utf8.DecodeLastRuneInString(text[:start])
		first, _ := utf8.DecodeRuneInString(text[start:])
		apart := start > last || unicode.IsSpace(before) || unicode.IsSpace(first)
		for field := range strings.FieldsSeq(text[start:end]) {
			if b.Len() > 0 && apart {
				b.WriteByte(' ')
			}
			b.WriteString(field)
			apart = true
		}
		last = end
		p.ends = append(p.ends, b.Len())
	})
	p.norm = b.String()
	return p
}

// Body is the text that may be quoted: of a tool node its call id and name too.
func (m *Message) Body() string {
	if m.Role != RoleTool || m.CallID == "" && m.Name == "" {
		return m.Text
	}
	return strings.TrimSpace(m.CallID+" "+m.Name) + "\n" + m.Text
}

func (p *passage) folded() string {
	if p.lower == "" {
		p.lower = strings.ToLower(p.norm)
	}
	return p.lower
}

// whole returns the whole sentences that hold quote, normalised, and false if
// the passage does not hold it. Half a sentence could leave out its "not".
func (p *passage) whole(quote string) (string, bool) {
	quote = normalise(quote)
	at := strings.Index(p.norm, quote)
	if at < 0 || quote == "" {
		return "", false
	}
	start, end := 0, at+len(quote)
	for _, e := range p.ends {
		if e <= at {
			start = e
		}
		if e >= end {
			end = e
			break
		}
	}
	return strings.TrimSpace(p.norm[start:end]), true
}

// maxSupport bounds how much of a message is searched for the sentence that
// supports an unquoted claim.
const maxSupport = 256 << 10

// support returns the sentence that shares the most words with the claim.
func (p *passage) support(claim []string) (sentence string, shared int) {
	start := 0
	for _, end := range p.ends {
		if end > maxSupport {
			break
		}
		s := p.norm[start:end]
		start = end
		if n := holds(strings.ToLower(s), claim); n > shared {
			sentence, shared = strings.TrimSpace(s), n
		}
	}
	return sentence, shared
}

// holds counts the words of claim that are in text, which is in lower case.
func holds(text string, claim []string) int {
	n := 0
	for _, w := range claim {
		if strings.Contains(text, w) {
			n++
		}
	}
	return n
}

// wordRun returns the words of text in lower case with one space before and after
// each, so that a run of words is found in another by looking for it.
func wordRun(text string) string {
	words := strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	return " " + strings.Join(words, " ") + " "
}

// contentWords returns the words of text that carry meaning, in lower case, each
// once: words of three letters or more that are not in the list of the empty ones,
// cut to their stem's length so that endings do not matter, and pairs of Han
// characters.
func contentWords(text string) []string {
	const stem = 5
	var words []string
	seen := map[string]bool{}
	add := func(w string) {
		if !seen[w] {
			seen[w] = true
			words = append(words, w)
		}
	}
	for _, run := range strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
		runes := []rune(run)
		if strings.IndexFunc(run, func(r rune) bool { return unicode.Is(unicode.Han, r) }) >= 0 {
			for i := range runes[:max(len(runes)-1, 1)] {
				add(string(runes[i:min(i+2, len(runes))]))
			}
			continue
		}
		if len(runes) < 3 || emptyWords[run] {
			continue
		}
		add(string(runes[:min(len(runes), stem)]))
	}
	return words
}

// emptyWords are words that say nothing about the subject of a sentence.
var emptyWords = wordSet(`the and for are was were been being have has had does did will would shall should can could may might must
	this that these those with from into onto over under about after before then than there here when where what which who whom whose
	how why not never don didn doesn isn aren won wouldn couldn shouldn you your yours our ours they them their its his her she him
	all any some each every both only just also too very more most much many such same other another but because while until unless
	please use used using let lets get got make made now yet still always keep
	der die das den dem des ein eine einen einem einer eines und oder aber nicht kein keine keinen mit von für auf aus bei nach vor
	über unter ist sind war waren wird werden wurde hat haben kann muss soll darf bitte immer nur auch noch schon sich wir ihr sie ich`)

func wordSet(words string) map[string]bool {
	set := map[string]bool{}
	for w := range strings.FieldsSeq(words) {
		set[w] = true
	}
	return set
}

// sameText is the form in which two texts are compared for being the same:
// white space, case and the marks around the text do not matter.
func sameText(text string) string {
	return strings.ToLower(strings.Trim(normalise(plain(text)), " .!?;:,*_`\"'。！？；"))
}

// plain takes the marks of a list, a heading or a quotation off the beginning.
func plain(text string) string {
	for {
		short := strings.TrimLeft(text, " \t")
		for _, mark := range []string{"- ", "* ", "+ ", "> ", "# ", "## ", "### ", "• ", "[ ] ", "[x] ", "[X] "} {
			short = strings.TrimPrefix(short, mark)
		}
		if short == text {
			return text
		}
		text = short
	}
}
