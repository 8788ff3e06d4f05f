package main

import (
	"reflect"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

var (
	goName   = regexp.MustCompile(`\b[A-Z][A-Za-z0-9]*\b`)
	docLink  = regexp.MustCompile(`\[([A-Z][A-Za-z0-9]*)\]`)
	method   = regexp.MustCompile(`(^|[^\x60])\b(convls/[a-z]+(?:/[a-z]+)?)`)
	opening  = regexp.MustCompile(`^\w+ (?:is|are) (?:the |a client's )?(?:parameters of|reply to|reply of|answer to)[^:.;,]*([:;,.])\s*`)
	wireName = regexp.MustCompile("`[^`]*`|\\b[a-z]+(?:_[a-z0-9]+)+\\b")
	sentence = regexp.MustCompile(`\s+`)
)

// prose makes Markdown of a Go comment about struct type t (nil for others): on
// the wire people meet the names of members, so the names of Go fields become
// those; names of types and methods, and words with underscores (codes, members),
// become links and code.
func prose(comment string, t reflect.Type, link func(name string) string) string {
	names := map[string]string{}
	if t != nil && t.Kind() == reflect.Struct {
		for _, m := range members(t) {
			names[m.field.Name] = "`" + m.json + "`"
		}
	}
	var paragraphs []string
	for p := range strings.SplitSeq(strings.TrimSpace(comment), "\n\n") {
		p = sentence.ReplaceAllString(strings.TrimSpace(p), " ")
		// Links come last: what they are made of must not be replaced again.
		p = outsideLinks(p, func(s string) string {
			s = goName.ReplaceAllStringFunc(s, func(w string) string {
				if name, ok := names[w]; ok {
					return name
				}
				return w
			})
			s = method.ReplaceAllString(s, "$1`$2`")
			return wireName.ReplaceAllStringFunc(s, func(w string) string { return "`" + strings.Trim(w, "`") + "`" })
		})
		p = docLink.ReplaceAllStringFunc(p, func(w string) string { return link(w[1 : len(w)-1]) })
		paragraphs = append(paragraphs, p)
	}
	return strings.Join(paragraphs, "\n\n")
}

// outsideLinks applies edit to what stands between the doc links of s.
func outsideLinks(s string, edit func(string) string) string {
	var b strings.Builder
	last := 0
	for _, at := range docLink.FindAllStringIndex(s, -1) {
		b.WriteString(edit(s[last:at[0]]))
		b.WriteString(s[at[0]:at[1]])
		last = at[1]
	}
	b.WriteString(edit(s[last:]))
	return b.String()
}

// remark returns what the comment of a parameter or result type, made Markdown
// already, says beyond "X are the parameters of M", which the heading says.
func remark(text string) string {
	m := opening.FindStringSubmatchIndex(text)
	if m == nil {
		return text
	}
	if text[m[2]:m[3]] == "," { // a relative clause can not stand alone
		_, rest, _ := strings.Cut(text, ". ")
		return rest
	}
	return capital(text[m[1]:])
}

// capital makes the first letter of s a capital.
func capital(s string) string {
	r, n := utf8.DecodeRuneInString(s)
	if n == 0 {
		return s
	}
	return string(unicode.ToUpper(r)) + s[n:]
}

// cell makes text fit for a cell of a Markdown table.
func cell(s string) string {
	return strings.ReplaceAll(strings.ReplaceAll(s, "\n\n", "<br>"), "|", `\|`)
}
