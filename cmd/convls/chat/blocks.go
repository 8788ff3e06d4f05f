package chat

import (
	"regexp"
	"strings"
)

// blockKind is what a piece of Markdown is.
type blockKind int

const (
	// blockText is anything but the others: paragraphs, headings, code, tables.
	blockText blockKind = iota
	blockItem
	blockQuote
)

// mdBlock is a piece of Markdown that is set by itself. Glamour does not indent the
// second line of a list item, joins its paragraphs into one word, and breaks
// quotes twice; so lists and quotes are taken apart here, and what they hold is
// rendered on its own at the width that is left.
type mdBlock struct {
	kind blockKind
	// marker is an item's bullet or number.
	marker string
	text   string
	// tight says that no blank line stood before it.
	tight bool
}

var (
	itemLine  = regexp.MustCompile(`^( {0,3})([-*+]|\d{1,9}[.)])( +|$)`)
	breakLine = regexp.MustCompile(`^ {0,3}([-*_])( *[-*_]){2,} *$`)
	quoteLine = regexp.MustCompile(`^ {0,3}> ?`)
)

// splitMarkdown takes Markdown apart into blocks (CommonMark 0.31, sections 5.1 and
// 5.2, without lazy continuation of quotes). Nothing is lost: what it takes for
// text is the renderer's to understand.
func splitMarkdown(text string) []mdBlock {
	var s splitter
	lines := strings.Split(text, "\n")
	for i := 0; i < len(lines); {
		l := lines[i]
		item := itemLine.FindStringSubmatch(l)
		switch {
		case s.fence != "":
			s.text(l)
			i++
		case strings.TrimSpace(l) == "":
			s.blank(l)
			i++
		case quoteLine.MatchString(l):
			n := 0
			for i+n < len(lines) && quoteLine.MatchString(lines[i+n]) {
				n++
			}
			s.quote(lines[i : i+n])
			i += n
		case item != nil && !breakLine.MatchString(l) && (!s.inParagraph() || startsList(item)):
			n := itemLength(lines[i:], item)
			s.item(lines[i:i+n], item)
			i += n
		default:
			s.text(l)
			i++
		}
	}
	s.flush()
	return s.blocks
}

// startsList reports whether an item can interrupt a paragraph: a line that begins
// with a year and a full stop is no list.
func startsList(item []string) bool {
	return item[3] != "" && (len(item[2]) == 1 || item[2] == "1." || item[2] == "1)")
}

// itemLength returns how many lines belong to the item that begins with the first.
func itemLength(lines []string, item []string) int {
	indent := contentIndent(item)
	fence, end := opensFence(lines[0][min(indent, len(lines[0])):]), 1
	after := false // a blank line came before
	for n := 1; n < len(lines); n++ {
		l := lines[n]
		if strings.TrimSpace(l) == "" {
			after = true
			if fence != "" {
				end = n + 1
			}
			continue
		}
		deep := leading(l)
		inner := itemLine.FindStringSubmatch(strings.TrimLeft(l, " "))
		switch {
		case deep >= indent:
			fence = nextFence(fence, l)
		case fence != "":
			return end
		case inner != nil && deep > len(item[1])+1:
			// Less indented than it should be, but meant as an item of this item.
		case inner != nil || after || quoteLine.MatchString(l) || strings.HasPrefix(l, "#") || opensFence(l) != "" || breakLine.MatchString(l):
			return end
		}
		after, end = false, n+1
	}
	return end
}

// contentIndent is the column at which an item's content begins.
func contentIndent(item []string) int {
	if len(item[3]) > 4 || item[3] == "" {
		return len(item[1]) + len(item[2]) + 1
	}
	return len(item[0])
}

func leading(l string) int { return len(l) - len(strings.TrimLeft(l, " ")) }

// opensFence returns the fence that a line opens, or "".
func opensFence(l string) string {
	t := strings.TrimLeft(l, " ")
	if !strings.HasPrefix(t, "```") && !strings.HasPrefix(t, "~~~") {
		return ""
	}
	n := len(t) - len(strings.TrimLeft(t, t[:1]))
	if t[0] == '`' && strings.Contains(t[n:], "`") {
		return "" // code within a line
	}
	return t[:n]
}

// nextFence returns the fence that is open after a line.
func nextFence(fence, l string) string {
	if fence == "" {
		return opensFence(l)
	}
	if t := strings.TrimSpace(l); strings.HasPrefix(t, fence) && strings.Trim(t, fence[:1]) == "" {
		return ""
	}
	return fence
}

// splitter gathers blocks.
type splitter struct {
	blocks []mdBlock
	lines  []string // of the text block that is being gathered
	fence  string
	gap    bool // a blank line was the last
}

func (s *splitter) inParagraph() bool { return len(s.lines) > 0 && !s.gap }

func (s *splitter) text(l string) {
	if len(s.lines) == 0 {
		s.blocks = append(s.blocks, mdBlock{kind: blockText, tight: !s.gap})
	}
	s.lines = append(s.lines, l)
	s.fence = nextFence(s.fence, l)
	s.gap = false
}

func (s *splitter) blank(l string) {
	if len(s.lines) > 0 {
		s.lines = append(s.lines, l)
	}
	s.gap = true
}

func (s *splitter) add(b mdBlock) {
	s.flush()
	b.tight = !s.gap
	s.gap = false
	s.blocks = append(s.blocks, b)
}

func (s *splitter) quote(lines []string) {
	inner := make([]string, len(lines))
	for i, l := range lines {
		inner[i] = quoteLine.ReplaceAllString(l, "")
	}
	s.add(mdBlock{kind: blockQuote, text: strings.Join(inner, "\n")})
}

func (s *splitter) item(lines []string, item []string) {
	indent := contentIndent(item)
	inner := make([]string, len(lines))
	inner[0] = lines[0][min(indent, len(lines[0])):]
	for i, l := range lines[1:] {
		inner[i+1] = l[min(indent, leading(l)):]
	}
	s.add(mdBlock{kind: blockItem, marker: item[2], text: strings.Join(inner, "\n")})
}

// flush ends the text block.
func (s *splitter) flush() {
	if len(s.lines) > 0 {
		s.blocks[len(s.blocks)-1].text = strings.Join(s.lines, "\n")
		s.lines = nil
	}
	s.fence = ""
}
