package model

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"convls/protocol"
)

func environment(pairs ...string) func(string) string {
	return func(name string) string {
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i] == name {
				return pairs[i+1]
			}
		}
		return ""
	}
}

const openaiURL = "https://api.openai.com/v1"

func TestKeysFromEnvironment(t *testing.T) {
	for _, c := range []struct {
		name, provider, url string
		settings            protocol.ProviderSettings
		env                 []string
		want                string
	}{
		{"default", "openai", openaiURL, protocol.ProviderSettings{}, []string{"OPENAI_API_KEY", " k1\n"}, "k1"},
		{"none", "openai", openaiURL, protocol.ProviderSettings{}, nil, ""},
		{"named", "openai", openaiURL, protocol.ProviderSettings{APIKeyEnv: "MINE"}, []string{"OPENAI_API_KEY", "k1", "MINE", "k2"}, "k2"},
		{"own provider", "my-host", "https://models.example", protocol.ProviderSettings{}, []string{"MY_HOST_API_KEY", "k3"}, "k3"},
		// A key is for one address.
		{"another address", "openai", "https://evil.example/v1", protocol.ProviderSettings{}, []string{"OPENAI_API_KEY", "k1"}, ""},
		{"another address, named", "openai", "https://proxy.example/v1", protocol.ProviderSettings{APIKeyEnv: "OPENAI_API_KEY"}, []string{"OPENAI_API_KEY", "k1"}, "k1"},
		{"not encrypted", "openai", "http://api.openai.com/v1", protocol.ProviderSettings{}, []string{"OPENAI_API_KEY", "k1"}, ""},
	} {
		got, err := NewSystemKeys(environment(c.env...)).Key(t.Context(), KeyRequest{Provider: c.provider, BaseURL: c.url, Settings: c.settings})
		if err != nil || got != c.want {
			t.Errorf("%s: %q, %v", c.name, got, err)
		}
	}
}

func TestKeysFromKeyring(t *testing.T) {
	keys := NewSystemKeys(environment("DBUS_SESSION_BUS_ADDRESS", "unix:path=/nowhere"))
	asked := ""
	keys.keyring = func(service, user string) (string, error) {
		asked = service + "|" + user
		if user == "openai "+openaiURL {
			return "ring-key", nil
		}
		return "", errors.New("not found")
	}
	if key, err := keys.Key(t.Context(), KeyRequest{Provider: "openai", BaseURL: openaiURL}); key != "ring-key" || err != nil || asked != "convls|openai "+openaiURL {
		t.Errorf("%q, %v, asked %q", key, err, asked)
	}
	if key, err := keys.Key(t.Context(), KeyRequest{Provider: "openai", BaseURL: "https://other.example"}); key != "" || err != nil {
		t.Errorf("another address: %q, %v", key, err)
	}
	if key, err := keys.Key(t.Context(), KeyRequest{Provider: "openai", BaseURL: "http://127.0.0.1:8080/v1"}); key != "" || err != nil || strings.Contains(asked, "127.0.0.1") {
		t.Errorf("this machine: %q, %v, asked %q", key, err, asked)
	}
	if runtime.GOOS == "linux" {
		// Without a session bus there is no keyring, and the library is not asked.
		keys.env = environment()
		asked = ""
		if key, err := keys.Key(t.Context(), KeyRequest{Provider: "openai", BaseURL: openaiURL}); key != "" || err != nil || asked != "" {
			t.Errorf("%q, %v, asked %q", key, err, asked)
		}
	}
}

// keyScript writes a program that counts its runs in a file beside it.
func keyScript(t *testing.T, text string) (dir, runs string) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("needs a POSIX shell")
	}
	dir = t.TempDir()
	runs = filepath.Join(dir, "runs")
	if err := os.WriteFile(filepath.Join(dir, "getkey"), []byte("#!/bin/sh\necho x >> '"+runs+"'\n"+text+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	return dir, runs
}

func count(t *testing.T, runs string) int {
	data, _ := os.ReadFile(runs)
	return strings.Count(string(data), "x")
}

func TestKeyCommand(t *testing.T) {
	dir, runs := keyScript(t, `printf '%s\n' "key-of-$1-$CONVLS_PROVIDER-$HOME-$OTHER" "second line"`)
	keys := NewSystemKeys(environment("PATH", dir+string(filepath.ListSeparator)+"/bin", "HOME", "/h", "OTHER", "no"))
	s := protocol.ProviderSettings{APIKeyCmd: `getkey 'a b'`}
	for range 2 { // the second time from memory
		if key, err := keys.Key(t.Context(), KeyRequest{Provider: "openai", BaseURL: openaiURL, Settings: s}); err != nil || key != "key-of-a b-openai-/h-" {
			t.Fatalf("%q, %v", key, err)
		}
	}
	if n := count(t, runs); n != 1 {
		t.Errorf("run %d times", n)
	}
	// Rejected: asked anew.
	if _, err := keys.Key(t.Context(), KeyRequest{Provider: "openai", BaseURL: openaiURL, Settings: s, Rejected: true}); err != nil || count(t, runs) != 2 {
		t.Errorf("%v after %d runs", err, count(t, runs))
	}
	// Another address: another key.
	if _, err := keys.Key(t.Context(), KeyRequest{Provider: "openai", BaseURL: "https://other.example", Settings: s}); err != nil || count(t, runs) != 3 {
		t.Errorf("%v after %d runs", err, count(t, runs))
	}
}

func TestKeyCommandFails(t *testing.T) {
	dir, _ := keyScript(t, `echo secret-on-stdout; echo secret-on-stderr >&2; exit 3`)
	env := environment("PATH", dir)
	for line, want := range map[string]string{
		"getkey":        "exit status 3",
		"getkey $(x) ;": "exit status 3", // no shell
		"nothere":       "not found",
		"":              "",
		`"open`:         "a quote is not closed",
		`''`:            "empty",
		"/":             "not found",
	} {
		key, err := NewSystemKeys(env).Key(t.Context(), KeyRequest{Provider: "p", BaseURL: "https://p.example", Settings: protocol.ProviderSettings{APIKeyCmd: line}})
		if line == "" {
			if key != "" || err != nil {
				t.Errorf("no command: %q, %v", key, err)
			}
			continue
		}
		if key != "" || err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") || !strings.Contains(err.Error(), "providers.p.api_key_cmd") {
			t.Errorf("%s: %q, %v", line, key, err)
		}
	}
	silent, _ := keyScript(t, `exit 0`)
	if _, err := NewSystemKeys(environment("PATH", silent)).Key(t.Context(), KeyRequest{Provider: "p", BaseURL: "https://p.example", Settings: protocol.ProviderSettings{APIKeyCmd: "getkey"}}); err == nil || !strings.Contains(err.Error(), "printed nothing") {
		t.Error(err)
	}
	// A relative folder of the path is not looked into.
	t.Chdir(dir)
	if _, err := NewSystemKeys(environment("PATH", ".")).Key(t.Context(), KeyRequest{Provider: "p", BaseURL: "https://p.example", Settings: protocol.ProviderSettings{APIKeyCmd: "getkey"}}); err == nil || !strings.Contains(err.Error(), "not found") {
		t.Error(err)
	}
}

func TestKeyCommandCancelled(t *testing.T) {
	dir, runs := keyScript(t, `exec sleep 1000`)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		for count(t, runs) == 0 && ctx.Err() == nil {
			runtime.Gosched()
		}
		cancel()
	}()
	_, err := NewSystemKeys(environment("PATH", dir+":/bin:/usr/bin")).Key(ctx, KeyRequest{Provider: "p", BaseURL: "https://p.example", Settings: protocol.ProviderSettings{APIKeyCmd: "getkey"}})
	if err == nil || ctx.Err() == nil {
		t.Error(err)
	}
}

func TestSplitCommand(t *testing.T) {
	for line, want := range map[string][]string{
		`pass show openai`:             {"pass", "show", "openai"},
		`  op   read "op://a b/c"  `:   {"op", "read", "op://a b/c"},
		`a 'b "c" \d' "e \"f\" \\ \g"`: {"a", `b "c" \d`, `e "f" \ \g`},
		`a\ b c`:                       {"a b", "c"},
		`sh -c 'echo $KEY | head -1'`:  {"sh", "-c", "echo $KEY | head -1"},
		`x ""`:                         {"x", ""},
		`x a"b"'c'`:                    {"x", "abc"},
	} {
		if got, err := splitCommand(line); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %q, %v", line, got, err)
		}
	}
	for _, line := range []string{"", "  ", `"a`, `'a`, `a\`} {
		if got, err := splitCommand(line); err == nil {
			t.Errorf("%q: %q", line, got)
		}
	}
}

func TestDefaultKeyEnv(t *testing.T) {
	for name, want := range map[string]string{"openai": "OPENAI_API_KEY", "my-host.2": "MY_HOST_2_API_KEY", "é": "__API_KEY"} {
		if got := DefaultKeyEnv(name); got != want {
			t.Errorf("%s: %s", name, got)
		}
	}
}
