package manifest

import (
	"regexp"
	"strings"
	"sync"
)

// secretPattern is one kind of secret.
//
// The table is our own: the libraries that have one either start from a whole
// scanner of repositories (gitleaks: more than a hundred modules) or tell that a
// text has a secret but not where, and know no keys of model providers
// (DefangLabs/secret-detector).
type secretPattern struct {
	kind string
	// anchors are strings, in lower case, of which the text must have one in
	// whatever case before the pattern is tried.
	anchors []string
	// pattern matches the secret, or has a group that is the secret.
	pattern string
	// plausible, if set, has the last word on what the group matched.
	plausible func(secret string) bool
	compiled  *regexp.Regexp
}

// secretPatterns is the table, the wider patterns after the narrower ones.
var secretPatterns = sync.OnceValue(func() *secretTable {
	table := []secretPattern{
		{kind: "private key", anchors: []string{"private key"}, pattern: `-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----(?s:.*?)(?:-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----|\z)`},
		{kind: "AWS key", anchors: []string{"akia", "asia", "abia", "acca"}, pattern: `\b(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}\b`},
		{kind: "AWS secret", anchors: []string{"secret_access_key", "secretaccesskey", "aws_secret"}, pattern: `(?i)(?:secret_?access_?key|aws_secret(?:_key)?)["']?\s*[:=]\s*["']?([A-Za-z0-9/+=]{40})\b`},
		{kind: "GitHub token", anchors: []string{"ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"}, pattern: `\b(?:gh[pousr]_[A-Za-z0-9]{36,255}|github_pat_[A-Za-z0-9_]{60,255})`},
		{kind: "GitLab token", anchors: []string{"glpat-", "gldt-", "glrt-", "glptt-", "glcbt-", "glagent-"}, pattern: `\bgl(?:pat|dt|rt|ptt|cbt|agent)-[A-Za-z0-9_.-]{20,255}`},
		{kind: "Slack token", anchors: []string{"xox", "xapp-"}, pattern: `\b(?:xox[abeoprs](?:\.xox[bp])?-|xapp-)[A-Za-z0-9-]{10,255}`},
		{kind: "Slack webhook", anchors: []string{"hooks.slack.com"}, pattern: `https://hooks\.slack\.com/(?:services|workflows|triggers)/[A-Za-z0-9/_+-]{20,}`},
		{kind: "Anthropic key", anchors: []string{"sk-ant-"}, pattern: `\bsk-ant-[A-Za-z0-9_-]{20,255}`},
		{kind: "OpenAI key", anchors: []string{"sk-"}, pattern: `\bsk-(?:(?:proj|svcacct|admin|or-v1)-)?[A-Za-z0-9_-]{20,255}`, plausible: mixed},
		{kind: "Google key", anchors: []string{"aiza", "ya29.", "gocspx-"}, pattern: `\b(?:AIza[A-Za-z0-9_-]{35}|ya29\.[A-Za-z0-9_-]{20,}|GOCSPX-[A-Za-z0-9_-]{28})`},
		{kind: "Stripe key", anchors: []string{"sk_live_", "sk_test_", "rk_live_", "rk_test_", "whsec_"}, pattern: `\b(?:[sr]k_(?:live|test)_[A-Za-z0-9]{16,255}|whsec_[A-Za-z0-9+/=]{20,255})`},
		{kind: "npm token", anchors: []string{"npm_"}, pattern: `\bnpm_[A-Za-z0-9]{36}\b`},
		{kind: "Hugging Face token", anchors: []string{"hf_"}, pattern: `\bhf_[A-Za-z0-9]{30,}\b`},
		{kind: "PyPI token", anchors: []string{"pypi-"}, pattern: `\bpypi-[A-Za-z0-9_-]{50,}`},
		{kind: "SendGrid key", anchors: []string{"sg."}, pattern: `\bSG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}`},
		{kind: "JWT", anchors: []string{"eyj"}, pattern: `\beyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*`},
		{kind: "password", anchors: []string{"://"}, pattern: `\b[A-Za-z][A-Za-z0-9+.-]{1,30}://[^\s:/@"'<>]{0,200}:([^\s/@"'<>]{1,200})@`, plausible: secretValue},
		{kind: "password", anchors: []string{"password=", "pwd="}, pattern: `(?i)\b(?:password|pwd)=([^\s;"'&]{1,200})`, plausible: secretValue},
		{kind: "authorization", anchors: []string{"authorization", "bearer "}, pattern: `(?i)(?:\bauthorization["']?\s*[:=]\s*["']?(?:bearer|basic|token|digest)?\s*|\bbearer\s+)([A-Za-z0-9._~+/=-]{12,})`, plausible: mixed},
		{
			kind: "password", anchors: []string{"passw", "pwd", "secret", "token", "api_key", "apikey", "api-key", "passphrase", "credential", "private_key", "access_key"},
			pattern: `(?i)(?:\b|_)(?:pass(?:word|wd|phrase)|pwd|passw|client[_-]?secret|secret(?:[_-]?key)?|api[_-]?key|(?:access|auth|refresh|bot|api)[_-]?token|token|access[_-]?key|private[_-]?key|credentials?)["']?\s{0,3}(?:=|:=?|=>)\s{0,3}` +
				`(?:"([^"\n]{4,300})"|'([^'\n]{4,300})'|([^\s"'<>,;(){}\[\]]{6,300}))`,
			plausible: secretValue,
		},
	}
	t := &secretTable{patterns: table, byPair: map[uint16][]anchor{}}
	for i := range table {
		table[i].compiled = regexp.MustCompile(table[i].pattern)
		for _, a := range table[i].anchors {
			pair := uint16(a[0])<<8 | uint16(a[1])
			t.pairs[pair] = true
			t.byPair[pair] = append(t.byPair[pair], anchor{a, i})
		}
	}
	for c := range t.fold {
		t.fold[c] = strings.ToLower(string(rune(c)))[0]
		if c >= 0x80 {
			t.fold[c] = byte(c)
		}
	}
	return t
})

// secretTable finds in one pass over a text which patterns are worth trying: by
// the first two bytes of their anchors. Most texts have none.
type secretTable struct {
	patterns []secretPattern
	fold     [256]byte
	pairs    [1 << 16]bool
	byPair   map[uint16][]anchor
}

type anchor struct {
	text    string
	pattern int
}

// candidates returns the patterns, as a set of bits, that text has an anchor of.
func (t *secretTable) candidates(text string) (set uint64) {
	if text == "" {
		return 0
	}
	before := t.fold[text[0]]
	for i := 1; i < len(text); i++ {
		c := t.fold[text[i]]
		pair := uint16(before)<<8 | uint16(c)
		before = c
		if !t.pairs[pair] {
			continue
		}
		for _, a := range t.byPair[pair] {
			if end := i - 1 + len(a.text); end <= len(text) && strings.EqualFold(text[i-1:end], a.text) {
				set |= 1 << a.pattern
			}
		}
	}
	return set
}

// Mask replaces the secrets that are found by pattern by "[secret removed: KIND]",
// and returns how many it replaced. Hashes of files and commit ids are no secrets.
// What it can not know by pattern stays: a person redacts that.
func Mask(text string) (masked string, count int) {
	table := secretPatterns()
	set := table.candidates(text)
	for i := range table.patterns {
		if set&(1<<i) == 0 {
			continue
		}
		var n int
		text, n = table.patterns[i].replace(text)
		count += n
	}
	return text, count
}

func (p *secretPattern) replace(text string) (string, int) {
	var b strings.Builder
	last, n := 0, 0
	for _, at := range p.compiled.FindAllStringSubmatchIndex(text, -1) {
		start, end := at[0], at[1]
		for g := 2; g < len(at); g += 2 {
			if at[g] >= 0 {
				start, end = at[g], at[g+1]
			}
		}
		secret := text[start:end]
		if strings.HasPrefix(secret, "[secret removed") || p.plausible != nil && !p.plausible(secret) {
			continue
		}
		b.WriteString(text[last:start] + "[secret removed: " + p.kind + "]")
		last = end
		n++
	}
	if n == 0 {
		return text, 0
	}
	b.WriteString(text[last:])
	return b.String(), n
}

// mixed tells whether s looks drawn by chance and not like words joined by dashes.
func mixed(s string) bool { return strings.ContainsAny(s, "0123456789") && !isHash(s) }

// secretValue tells whether the value behind "password=" is one, and not a
// reference to it, a placeholder, a type, or code.
func secretValue(s string) bool {
	if isHash(s) || strings.HasPrefix(s, "$") || strings.HasPrefix(s, "{{") || strings.HasPrefix(s, "%(") || strings.HasPrefix(s, "[secret") {
		return false
	}
	if strings.Trim(s, "*xX.-_…") == "" {
		return false
	}
	switch strings.ToLower(strings.Trim(s, ".,")) {
	case "string", "str", "text", "none", "null", "nil", "true", "false", "undefined", "required", "optional", "redacted", "hidden", "placeholder", "password", "secret", "token", "changeme", "example":
		return false
	}
	for _, code := range []string{"os.environ", "os.getenv", "process.env", "getenv(", "self.", "config.", "settings.", "env."} {
		if strings.HasPrefix(s, code) {
			return false
		}
	}
	return true
}
