package manifest

import (
	"strings"
	"testing"
)

func TestMask(t *testing.T) {
	letters := "abcdefghijklmnopqrstuvwxyzABCDEFGHIJ0123456789"
	pem := func(kind string) string {
		return "-----BEGIN " + kind + "-----\nMIIabc\ndef==\n-----END " + kind + "-----"
	}
	// The secrets are put together here, so that no scanner takes this file for a leak.
	for _, tc := range []struct {
		name, text, want string
	}{
		{"RSA key", "key: " + pem("RSA PRIVATE KEY") + " end", "key: [secret removed: private key] end"},
		{"OpenSSH key, cut", "-----BEGIN OPENSSH PRIVATE KEY-----\nb3Blb", "[secret removed: private key]"},
		{"two keys", pem("PRIVATE KEY") + "\n" + pem("EC PRIVATE KEY"), "[secret removed: private key]\n[secret removed: private key]"},
		{"AWS", "id AKIA" + "ABCDEFGHIJKLMNOP.", "id [secret removed: AWS key]."},
		{"AWS secret", "aws_secret_access_key = " + letters[:40], "aws_secret_access_key = [secret removed: AWS secret]"},
		{"GitHub", "ghp_" + letters[:36] + " x", "[secret removed: GitHub token] x"},
		{"GitHub, fine-grained", "github_pat_" + strings.Repeat("A1_", 25), "[secret removed: GitHub token]"},
		{"GitLab", "glpat-" + letters[:20], "[secret removed: GitLab token]"},
		{"Slack", "xoxb-" + "123456789012-abcdefABCDEF", "[secret removed: Slack token]"},
		{"Slack webhook", "https://hooks.slack.com/" + "services/T000/B000/" + letters[:24], "[secret removed: Slack webhook]"},
		{"Anthropic", "sk-ant-" + "api03-" + letters, "[secret removed: Anthropic key]"},
		{"OpenAI", "sk-proj-" + letters, "[secret removed: OpenAI key]"},
		{"Google", "AIza" + "SyA" + letters[:32], "[secret removed: Google key]"},
		{"JWT", "eyJ" + "hbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.abc_DEF-123", "[secret removed: JWT]"},
		{"password in a connection string", "postgres://app:s3cr" + "et@db/x and amqp://u:p%20w@h", "postgres://app:[secret removed: password]@db/x and amqp://u:[secret removed: password]@h"},
		{"password in a setting", `password=hunter2; PWD="a b c d"`, `password=[secret removed: password]; PWD="[secret removed: password]"`},
		{"password in JSON", `{"password": "hunter22", "user": "x"}`, `{"password": "[secret removed: password]", "user": "x"}`},
		{"upper case in an environment", "export DB_PASSWORD=correcthorse", "export DB_PASSWORD=[secret removed: password]"},
		{"API key in YAML", "api_key: 'abcd1234efgh'", "api_key: '[secret removed: password]'"},
		{"bearer", "Authorization: Bearer abcdef1234567890", "Authorization: Bearer [secret removed: authorization]"},
		{"bearer alone", "curl -H 'bearer abcdef1234567890'", "curl -H 'bearer [secret removed: authorization]'"},

		{"a commit", "commit da39a3ee5e6b4b0d3255bfef95601890afd80709", ""},
		{"a digest", "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855", ""},
		{"a digest as a token", "token=da39a3ee5e6b4b0d3255bfef95601890afd80709", ""},
		{"a type", "password: string; token: str", ""},
		{"a reference", "password=$DB_PASSWORD api_key: process.env.API_KEY", ""},
		{"a public key", "-----BEGIN PUBLIC KEY-----\nabc\n-----END PUBLIC KEY-----", ""},
		{"words joined by dashes", "sk-learn-like-estimators-are-here", ""},
		{"a port in a URL", "http://localhost:8080/a@b", ""},
		{"talk of passwords", "The password must be long. The token is short, the bearer waits.", ""},
		{"masked before", "password=[secret removed: password]", ""},
		{"empty", "", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			want, count := tc.want, strings.Count(tc.want, "[secret removed")
			if want == "" {
				want = tc.text
			}
			got, n := Mask(tc.text)
			if got != want || n != count {
				t.Errorf("%q, %d\nwant %q, %d", got, n, want, count)
			}
			if again, n := Mask(got); again != got || n != 0 {
				t.Errorf("masked twice: %q, %d", again, n)
			}
		})
	}
}

// TestAnchors: a pattern is tried only where one of its anchors is, so each pattern
// needs at least one, of two bytes at least, in lower case.
func TestAnchors(t *testing.T) {
	for _, p := range secretPatterns().patterns {
		if len(p.anchors) == 0 {
			t.Errorf("%s has no anchor", p.pattern)
		}
		for _, a := range p.anchors {
			if len(a) < 2 || a != strings.ToLower(a) {
				t.Errorf("anchor %q of %s", a, p.pattern)
			}
		}
	}
	if n := len(secretPatterns().patterns); n > 64 {
		t.Errorf("%d patterns do not fit the set", n)
	}
}
