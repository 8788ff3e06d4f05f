package store

import (
	"strings"
	"unicode/utf8"

	"convls/protocol"
)

// TruncateText cuts the texts of a node's parts, prompt and content, to limit bytes in all, at a
// character border, drops the data of images that do not fit, and sets Truncated
// if it cut anything. What is attached to a message is cut before its own words.
func TruncateText(n *protocol.Node, limit int) {
	for _, attached := range []bool{false, true} {
		for _, parts := range [][]protocol.Part{n.Prompt, n.Content} {
			for i := range parts {
				if p := &parts[i]; (p.Type == protocol.PartResource) == attached {
					limit -= truncatePart(n, p, limit)
				}
			}
		}
	}
}

// truncatePart cuts a part to limit bytes and returns how many it has.
func truncatePart(n *protocol.Node, p *protocol.Part, limit int) int {
	if len(p.Text) > limit {
		p.Text, n.Truncated = Clip(p.Text, limit), true
	}
	limit -= len(p.Text)
	if len(p.Data) > limit {
		p.Data, n.Truncated = nil, true
	}
	limit -= len(p.Data)
	if len(p.Arguments) > limit {
		p.Arguments, n.Truncated = nil, true
	}
	return len(p.Text) + len(p.Data) + len(p.Arguments)
}

// Clip returns the longest beginning of s that has at most limit bytes and does
// not end inside a character.
func Clip(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	limit = max(limit, 0)
	for limit > 0 && !utf8.RuneStart(s[limit]) {
		limit--
	}
	return s[:limit]
}

// Text returns the texts of parts of type text, joined by blank lines.
func Text(parts []protocol.Part) string {
	var texts []string
	for _, p := range parts {
		if p.Type == protocol.PartText && p.Text != "" {
			texts = append(texts, p.Text)
		}
	}
	return strings.Join(texts, "\n\n")
}
