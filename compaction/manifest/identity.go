package manifest

import (
	"strings"
)

// tokens calls yield with the bounds of each word of text that could be a name:
// runs without white space, quotes, brackets and list marks, less the
// punctuation at the end.
func tokens(text string, yield func(start, end int)) {
	start := -1
	for i := 0; i <= len(text); i++ {
		if i < len(text) && (!delimiter[text[i]] || text[i] == ' ' && start >= 0 && text[i-1] == '\\') {
			if start < 0 {
				start = i
			}
			continue
		}
		if start >= 0 {
			token(text, start, i, yield)
			start = -1
		}
	}
}

// token trims one run, and splits it where Chinese or Japanese text touches a
// name without a space. A path that is written from a root keeps such letters.
func token(text string, start, end int, yield func(start, end int)) {
	ascii := true
	for _, c := range []byte(text[start:end]) {
		if c >= 0x80 {
			ascii = false
			break
		}
	}
	if ascii || rooted(text[start:end]) {
		trimmed(text, start, end, yield)
		return
	}
	from := start
	for i, r := range text[start:end] {
		if !wide(r) {
			continue
		}
		if at := start + i; at > from {
			trimmed(text, from, at, yield)
		}
		from = start + i + len(string(r))
	}
	if end > from {
		trimmed(text, from, end, yield)
	}
}

func trimmed(text string, start, end int, yield func(start, end int)) {
	for end > start && (mark(text[end-1]) || text[end-1] == '.') {
		end--
	}
	for start < end && mark(text[start]) {
		start++
	}
	if start < end {
		yield(start, end)
	}
}

func mark(c byte) bool { return c == ':' || c == '!' || c == '?' || c == '=' }

// wide tells whether r belongs to a script that is written without spaces, or to
// its punctuation.
func wide(r rune) bool {
	return r >= 0x2E80 && r <= 0x9FFF || r >= 0xAC00 && r <= 0xD7AF || r >= 0xF900 && r <= 0xFAFF || r >= 0xFF00 && r <= 0xFFEF ||
		r == '“' || r == '”' || r == '‘' || r == '’' || r == '…'
}

func rooted(s string) bool {
	return strings.HasPrefix(s, "/") || strings.HasPrefix(s, "./") || strings.HasPrefix(s, "../") || strings.HasPrefix(s, "~/") ||
		len(s) > 2 && isLetter(s[0]) && s[1] == ':' && (s[2] == '\\' || s[2] == '/')
}

var (
	delimiter = byteSet(" \n\t\r\v\f\"'`<>()[]{}|,;*")
	nameBytes = byteSet(`./\_:@-0123456789`)
)

func byteSet(chars string) (set [256]bool) {
	for _, c := range []byte(chars) {
		set[c] = true
	}
	return set
}

// namelike tells whether a word has a character that plain words have not. Most
// words of a conversation are let go here.
func namelike(tok string) bool {
	for i := range len(tok) {
		if nameBytes[tok[i]] {
			return true
		}
	}
	return false
}

// classify returns the artifact that a token names, and its exact handle, which
// may be shorter than the token (a.go:12 names a.go); "" if it names none. Short
// hashes and branches are known by the word before them: see [shortHash].
func classify(tok string) (kind Kind, handle string) {
	if len(tok) < 3 || !namelike(tok) {
		return "", ""
	}
	colon := strings.IndexByte(tok, ':')
	if colon > 0 && strings.HasPrefix(tok[colon:], "://") {
		return classifyURL(tok, colon)
	}
	if i := strings.LastIndexByte(tok, '='); i >= 0 {
		return classify(tok[i+1:]) // out=build/app.js
	}
	if i := strings.LastIndexAny(tok, ":@"); i >= 0 && isHash(tok[i+1:]) {
		return Hash, tok[i+1:] // sha256:…, image@sha256:…
	}
	if isHash(tok) {
		return Hash, tok
	}
	if isCallID(tok) {
		return CallID, tok
	}
	if strings.IndexByte(tok, '/') < 0 && strings.IndexByte(tok, '\\') < 0 && strings.IndexByte(tok, '.') < 0 {
		return "", ""
	}
	return classifyPath(tok)
}

func classifyURL(tok string, colon int) (Kind, string) {
	switch scheme := strings.ToLower(tok[:colon]); {
	case len(tok) == colon+3:
		return "", ""
	case scheme == "artifact":
		return Stored, tok
	case scheme == "http", scheme == "https", scheme == "ssh", scheme == "git", scheme == "ftp", scheme == "file", scheme == "s3", scheme == "gs", scheme == "ws", scheme == "wss":
		return URL, tok
	}
	return "", ""
}

// isHash tells whether s is a whole SHA-1, SHA-224, SHA-256, SHA-384 or SHA-512.
func isHash(s string) bool {
	switch len(s) {
	case 40, 56, 64, 96, 128:
		return isHex(s)
	}
	return false
}

func isHex(s string) bool {
	for _, c := range []byte(s) {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') && (c < 'A' || c > 'F') {
			return false
		}
	}
	return s != ""
}

// shortHash tells whether s may be an abbreviated commit id. Only the words
// around it can say that it is one.
func shortHash(s string) bool {
	return len(s) >= 7 && len(s) < 40 && isHex(s) && strings.ContainsAny(s, "0123456789")
}

func isCallID(s string) bool {
	for _, prefix := range []string{"call_", "toolu_", "fc_", "chatcmpl-tool-"} {
		if rest, ok := strings.CutPrefix(s, prefix); ok && len(rest) >= 3 && strings.ContainsAny(rest, "0123456789") {
			return true
		}
	}
	return false
}

func classifyPath(tok string) (Kind, string) {
	tok = strings.TrimSuffix(stripPosition(tok), ":")
	for _, c := range []byte(tok) {
		if c < ' ' || c == '$' && !strings.Contains(tok, "/") || c == '?' || c == '&' {
			return "", ""
		}
	}
	i := strings.LastIndexAny(tok, `/\`)
	last := tok[i+1:]
	known := hasExtension(last)
	switch {
	case i < 0: // a bare name: only with an extension that files have
		dot := strings.LastIndexByte(tok, '.')
		if dot > 0 && fileExtensions[strings.ToLower(tok[dot+1:])] && !notFiles[strings.ToLower(tok)] {
			return Path, tok
		}
		return "", ""
	case rooted(tok):
		if strings.Count(tok, "/")+strings.Count(tok, `\`) >= 2 && strings.Trim(tok, `/\.~`) != "" || known {
			return Path, tok
		}
	case known && !strings.HasPrefix(tok, "//") && tok[0] != '-':
		return Path, tok
	case last == "" && strings.Count(tok, "/") >= 2 && isLetter(tok[0]):
		return Path, tok // src/lib/
	}
	return "", ""
}

// stripPosition takes :line and :line:column off a path.
func stripPosition(tok string) string {
	for range 2 {
		i := strings.LastIndexByte(tok, ':')
		if i <= 1 || i+1 == len(tok) || strings.Trim(tok[i+1:], "0123456789-") != "" {
			break
		}
		tok = tok[:i]
	}
	return tok
}

// hasExtension tells whether the last part of a path looks like a file's name.
func hasExtension(name string) bool {
	dot := strings.LastIndexByte(name, '.')
	if dot < 0 || dot == len(name)-1 || len(name)-dot > 11 {
		return false
	}
	letter := false
	for _, c := range []byte(name[dot+1:]) {
		if !isLetter(c) && !isDigit(c) {
			return false
		}
		letter = letter || isLetter(c)
	}
	return letter
}

var fileExtensions = wordSet(`go mod sum py pyi ipynb js jsx mjs cjs ts tsx vue svelte java kt kts scala c h cc cpp cxx hpp hh cs fs rs rb php pl pm lua
	swift m mm zig nim ex exs erl hs ml clj dart r jl sh bash zsh fish ps1 bat cmd sql graphql proto
	html htm css scss sass less xml json jsonl json5 yaml yml toml ini cfg conf env lock properties csv tsv parquet md mdx rst txt adoc tex pdf
	doc docx xls xlsx ppt pptx png jpg jpeg gif svg webp ico mp3 mp4 wav zip tar gz tgz bz2 xz zst 7z jar war whl exe dll so dylib o a wasm bin
	db sqlite log patch diff tmpl tpl gradle cmake mk dockerfile tf hcl service pem crt key gguf onnx pt safetensors`)

// notFiles are words that only look like the names of files.
var notFiles = wordSet("console.log math.log node.js vue.js next.js nuxt.js express.js react.js three.js d3.js deno.js bun.js logger.log asp.net")

func isLetter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// names returns the words of text that stand for one certain thing: artifacts,
// numbers, and identifiers. A claim may hold only those that its source holds.
func names(text string) []string {
	var out []string
	tokens(text, func(start, end int) {
		tok := text[start:end]
		if _, handle := classify(tok); handle != "" {
			out = append(out, handle)
			return
		}
		if identifier(tok) {
			out = append(out, tok)
		}
	})
	return out
}

// identifier tells whether a word is spelt as no word of a language is: with an
// underscore, with a capital inside, or with digits.
func identifier(tok string) bool {
	if len(tok) < 3 {
		return len(tok) == 2 && isDigit(tok[0]) && isDigit(tok[1])
	}
	var upper, lower, digit, inner bool
	for i, c := range []byte(tok) {
		switch {
		case c == '_':
			return true
		case isDigit(c):
			digit = true
		case c >= 'A' && c <= 'Z':
			inner = inner || i > 0 && lower
			upper = true
		case c >= 'a' && c <= 'z':
			lower = true
		}
	}
	return digit || upper && inner
}

// isName tells whether text has name as a whole word, and not as the piece of one:
// \build\a.txt is no name in C:\build\a.txt. A name with spaces is compared by
// what stands around it.
func isName(text, name string) bool {
	if strings.ContainsAny(name, " ") {
		return occurs(text, name)
	}
	found := false
	tokens(text, func(start, end int) {
		if found || !strings.Contains(text[start:end], name) {
			return
		}
		tok := text[start:end]
		_, handle := classify(tok)
		found = tok == name || handle == name || strings.Trim(tok, "#") == name
	})
	return found
}

// occurs tells whether text holds name as a whole: config.yaml does not occur in
// config.yaml.bak, nor in etc/config.yaml.
func occurs(text, name string) bool {
	if name == "" {
		return false
	}
	for from := 0; ; {
		i := strings.Index(text[from:], name)
		if i < 0 {
			return false
		}
		i += from
		if freeBefore(text[:i]) && freeAfter(text[i+len(name):]) {
			return true
		}
		from = i + 1
	}
}

func freeBefore(text string) bool {
	if text == "" {
		return true
	}
	c := text[len(text)-1]
	return !isLetter(c) && !isDigit(c) && strings.IndexByte(`_/\-.~@`, c) < 0
}

func freeAfter(text string) bool {
	if text == "" {
		return true
	}
	c := text[0]
	if isLetter(c) || isDigit(c) || strings.IndexByte(`_/\~`, c) >= 0 {
		return false
	}
	if strings.IndexByte(".?#&=-@", c) < 0 {
		return true
	}
	return len(text) == 1 || !isLetter(text[1]) && !isDigit(text[1])
}
