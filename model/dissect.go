package model

import (
	"bytes"
	"html"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

const (
	// maxMessage is how long the message of an [Error] may be, in bytes.
	maxMessage = 2000
	// maxErrorBody is how much of an error's body is looked at, in bytes.
	maxErrorBody = 1 << 20
	// maxDissectDepth bounds how deep errors are nested in errors: a gateway's
	// error holds its upstream's as JSON in a string, once or twice.
	maxDissectDepth = 8
)

// dissected is what an error's body says, in whichever of its many shapes.
type dissected struct {
	// codes are the words under code, type, status and reason, from the outermost
	// object inwards.
	codes []string
	// messages are the texts for people, likewise.
	messages []string
	// words are all texts and codes together, for the wordings.
	words string
	// status is an HTTP status found inside, 0 if none is.
	status int
	retry  time.Duration
	// page says that the body is a web page.
	page bool
}

// dissect reads a body that is JSON, JSON inside JSON (gateways), a web page or
// plain text. It never fails.
func dissect(body []byte) dissected {
	var d dissected
	if len(body) > maxErrorBody {
		body = body[:maxErrorBody]
	}
	body = bytes.TrimSpace(bytes.TrimPrefix(body, []byte("\xef\xbb\xbf")))
	if v, ok := decodeJSON(body); ok {
		d.walk(v, 0)
	} else if text := string(body); strings.HasPrefix(text, "<") {
		d.page = true
		d.messages = append(d.messages, pageTitle(text))
	} else if text != "" {
		d.note(text, 0)
	}
	d.words = strings.Join(append(slices.Clone(d.messages), d.codes...), "\n")
	return d
}

// decodeJSON decodes any JSON, also with duplicate names or invalid UTF-8: what
// a broken server says is still worth reading.
func decodeJSON(data []byte) (any, bool) {
	if len(data) == 0 || (data[0] != '{' && data[0] != '[' && data[0] != '"') {
		return nil, false
	}
	var v any
	if json.Unmarshal(data, &v, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)) != nil {
		return nil, false
	}
	return v, true
}

// The members that are looked into. Others are not, because servers echo the
// request in them, and a conversation about errors is no error.
var (
	codeMembers    = []string{"code", "type", "status", "reason", "error_code"}
	messageMembers = []string{"message", "msg", "error", "detail", "title", "description", "error_description", "raw"}
	nestedMembers  = []string{"error", "errors", "detail", "details", "metadata", "raw", "message", "innererror", "inner_error", "cause", "provider_error"}
)

// walk collects from v, an object, a list of them, or a text.
func (d *dissected) walk(v any, depth int) {
	if depth > maxDissectDepth {
		return
	}
	switch v := v.(type) {
	case string:
		d.note(v, depth)
	case []any:
		for _, e := range v[:min(len(v), 16)] {
			d.walk(e, depth+1)
		}
	case map[string]any:
		for _, name := range codeMembers {
			switch c := v[name].(type) {
			case string:
				if n, err := strconv.Atoi(c); err == nil {
					d.setStatus(float64(n))
				} else if c != "" && c != "error" && len(c) < 200 {
					d.codes = append(d.codes, c)
				}
			case float64:
				d.setStatus(c)
			}
		}
		if n, ok := v["status_code"].(float64); ok {
			d.setStatus(n)
		}
		d.readWait(v)
		for _, name := range messageMembers {
			if s, ok := v[name].(string); ok {
				d.note(s, depth)
			}
		}
		for _, name := range nestedMembers {
			switch v[name].(type) {
			case map[string]any, []any:
				d.walk(v[name], depth+1)
			}
		}
	}
}

// note keeps a text, and looks for an upstream's error inside it: litellm writes
// `BadRequestError: OpenAIException - {"error":{...}}`, OpenRouter puts it into
// metadata.raw.
func (d *dissected) note(text string, depth int) {
	text = strings.TrimSpace(text)
	if text == "" || slices.Contains(d.messages, text) {
		return
	}
	before, _, found := strings.Cut(text, "{")
	if found && depth < maxDissectDepth {
		rest := text[len(before):]
		if end := strings.LastIndexByte(rest, '}'); end > 0 {
			if v, ok := decodeJSON([]byte(rest[:end+1])); ok {
				if before = strings.TrimRight(before, " -:"); before != "" {
					d.messages = append(d.messages, before)
				}
				d.walk(v, depth+1)
				return
			}
		}
	}
	d.messages = append(d.messages, text)
}

func (d *dissected) setStatus(n float64) {
	if d.status == 0 && n >= 400 && n < 600 {
		d.status = int(n)
	}
}

// readWait reads Gemini's RetryInfo.retryDelay ("34s") and the members that
// gateways use, in seconds or milliseconds.
func (d *dissected) readWait(v map[string]any) {
	if s, ok := v["retryDelay"].(string); ok {
		if wait, err := time.ParseDuration(s); err == nil && wait > 0 {
			d.retry = min(wait, maxRetryAfter)
		}
	}
	if n, ok := v["retry_after"].(float64); ok {
		d.retry = boundWait(n)
	}
	if n, ok := v["retry_after_ms"].(float64); ok {
		d.retry = boundWait(n / 1000)
	}
}

// has reports whether one of the codes is in set. Codes of exceptions come
// qualified: "litellm.ContextWindowExceededError".
func (d dissected) has(set map[string]bool) bool {
	for _, c := range d.codes {
		c = strings.ToLower(c)
		if set[c] || set[c[strings.LastIndexByte(c, '.')+1:]] {
			return true
		}
	}
	return false
}

// genericCodes say less than any other code beside them.
var genericCodes = words("invalid_request_error", "badrequesterror", "invalid_argument", "bad_request")

// code returns the most telling code.
func (d dissected) code() string {
	for _, c := range d.codes {
		if !genericCodes[strings.ToLower(c)] {
			return c
		}
	}
	if len(d.codes) > 0 {
		return d.codes[0]
	}
	return ""
}

// text returns the outermost message, and the innermost if it says more.
func (d dissected) text() string {
	if len(d.messages) == 0 {
		return ""
	}
	first, last := d.messages[0], d.messages[len(d.messages)-1]
	if strings.Contains(first, last) {
		return first
	}
	return first + ": " + last
}

// lazily returns a regular expression that is compiled on first use: starting up
// does not pay for errors that may never come.
func lazily(text string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(text) })
}

var titleTag = lazily(`(?is)<title[^>]*>(.*?)</title>`)

// pageTitle says in one line what a web page says.
func pageTitle(page string) string {
	if m := titleTag().FindStringSubmatch(page); m != nil {
		if title := strings.TrimSpace(html.UnescapeString(m[1])); title != "" {
			return "a web page came instead of an answer: " + title
		}
	}
	return "a web page came instead of an answer"
}

// clean makes foreign text fit for a message: valid UTF-8, one line, no control
// characters.
func clean(s string) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	s = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case unicode.IsControl(r), r == '\u202e', r == '\u2066', r == '\u2067':
			return '\uFFFD'
		}
		return r
	}, s)
	return strings.Join(strings.Fields(s), " ")
}

// clip cuts s to at most n bytes, at a character border.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	n -= len("…")
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "…"
}

// keyShapes find what looks like a key although it is not the one in use: a
// server may echo another, or half of one.
var keyShapes = lazily(`(?i)\b(sk|gsk|pk|rk|xai|hf|ghp|gho|key)[-_][a-z0-9_*.-]{8,}|\bAIza[a-z0-9_-]{10,}|\bbearer\s+[a-z0-9._~+/=*-]{6,}|([?&](api_?)?key=)[^&\s"]+|//[^/\s:@]+:[^/\s@]+@`)

// masked stands for a key in a message.
const masked = "[secret]"

// scrub takes keys out of s.
func scrub(s string, secrets []string) string {
	for _, secret := range secrets {
		if len(secret) >= 4 {
			s = strings.ReplaceAll(s, secret, masked)
		}
	}
	return keyShapes().ReplaceAllString(s, masked)
}
