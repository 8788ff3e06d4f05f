package chat

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestHistoryWalks(t *testing.T) {
	h, err := loadHistory("")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range []string{"one", "two", "two", "  ", "three\nlines"} {
		if err := h.add(e); err != nil {
			t.Fatal(err)
		}
	}
	var got []string
	for {
		e, ok := h.back("draft")
		if !ok {
			break
		}
		got = append(got, e)
	}
	for {
		e, ok := h.forward()
		if !ok {
			break
		}
		got = append(got, e)
	}
	want := []string{"three\nlines", "two", "one", "two", "three\nlines", "draft"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestHistoryIsKept(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state", "history")
	h, err := loadHistory(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range []string{"one", "two\nlines", "漢字"} {
		if err := h.add(e); err != nil {
			t.Fatal(err)
		}
	}
	// A line that was cut, and one that is none of ours.
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString("{}\n\"cut"); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	h, err = loadHistory(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"one", "two\nlines", "漢字"}, h.entries); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v: others can read what was typed", info.Mode(), err)
	}
}

func TestHistoryHasNoSecrets(t *testing.T) {
	path := filepath.Join(t.TempDir(), "history")
	h, err := loadHistory(path)
	if err != nil {
		t.Fatal(err)
	}
	secrets := []string{"my key is sk-" + "abcdefgh12345678", "OPENAI_API_KEY" + "=abcd1234", "password: hunter22", "Authorization: Bearer " + "abcdefghijklmnop", "ghp_" + "0123456789abcdef",
		"AKIA" + "ABCDEFGHIJKLMNOP", "https://me:" + "pass@example.com", "-----BEGIN RSA " + "PRIVATE KEY-----", " begins with a space"}
	for _, s := range secrets {
		if err := h.add(s); err != nil {
			t.Fatal(err)
		}
		if got, ok := h.back(""); !ok || got != strings.TrimSpace(s) {
			t.Errorf("%q can not be brought back in this run: %q", s, got)
		}
		h.at = len(h.entries)
	}
	for _, plain := range []string{"how do I choose a password?", "what is a bearer token", "explain sk-learn", "the secret of cooking"} {
		if err := h.add(plain); err != nil {
			t.Fatal(err)
		}
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(data), "\n"); n != 4 {
		t.Errorf("%d entries on disk, want the 4 harmless ones:\n%s", n, data)
	}
}

func TestHistoryIsShortened(t *testing.T) {
	path := filepath.Join(t.TempDir(), "history")
	var b strings.Builder
	for i := range 2*maxHistory + 10 {
		fmt.Fprintf(&b, "\"entry %d\"\n", i)
	}
	if err := os.WriteFile(path, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	h, err := loadHistory(path)
	if err != nil || len(h.entries) != maxHistory {
		t.Fatalf("%d entries, %v", len(h.entries), err)
	}
	data, err := os.ReadFile(path)
	if err != nil || strings.Count(string(data), "\n") != maxHistory || !strings.Contains(string(data), fmt.Sprintf("entry %d\"", 2*maxHistory+9)) {
		t.Errorf("the file has %d lines, %v", strings.Count(string(data), "\n"), err)
	}
}

// TestHistoryWithoutItsFile: a folder that can not be written is told, and the
// history works all the same.
func TestHistoryWithoutItsFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	h, _ := loadHistory(filepath.Join(file, "history"))
	if err := h.add("kept in memory"); err == nil {
		t.Error("no error")
	}
	if got, ok := h.back(""); !ok || got != "kept in memory" {
		t.Errorf("got %q", got)
	}
}
