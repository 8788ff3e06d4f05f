package chat

import (
	"regexp"
	"strings"
	"testing"
)

func TestParseInput(t *testing.T) {
	for _, tc := range []struct {
		text, name, arg string
		command         bool
	}{
		{"hello", "", "hello", false},
		{"", "", "", false},
		{"/help", "help", "", true},
		{"/fork  a name ", "fork", "a name", true},
		{"/system two\nlines", "system", "two\nlines", true},
		{"/attach-file x", "attach-file", "x", true},
		{"/usr/bin/env is a path", "", "/usr/bin/env is a path", false},
		{"/", "", "/", false},
		{"/ x", "", "/ x", false},
		{"/Help", "", "/Help", false},
		{"//help", "", "/help", false},
		{"// comment", "", "/ comment", false},
		{" /help", "", " /help", false},
	} {
		name, arg, command := parseInput(tc.text)
		if name != tc.name || arg != tc.arg || command != tc.command {
			t.Errorf("%q: %q %q %v, want %q %q %v", tc.text, name, arg, command, tc.name, tc.arg, tc.command)
		}
	}
}

func TestLookup(t *testing.T) {
	for _, tc := range []struct{ name, want, err string }{
		{"help", "help", ""},
		{"h", "help", ""},
		{"new", "new", ""}, // though /next begins with n too
		{"cont", "context", ""},
		{"re", "", "not clear"},
		{"hlep", "", "did you mean /help"},
		{"pni", "", "did you mean /pin"},
		{"redat", "", "did you mean /redact"},
		{"exit", "quit", ""},
		{"attach-file", "attach", ""},
		{"frobnicate", "", "/help lists them"},
	} {
		c, err := lookup(tc.name)
		if c.name != tc.want || (err == nil) != (tc.err == "") || err != nil && !strings.Contains(err.Error(), tc.err) {
			t.Errorf("%s: %q, %v", tc.name, c.name, err)
		}
	}
}

// TestCommandTable: help and completion are made from the table, so it has to be
// whole.
func TestCommandTable(t *testing.T) {
	seen := map[string]bool{}
	help := helpText()
	for _, c := range commands() {
		if seen[c.name] || c.about == "" || c.prepare == nil || !regexp.MustCompile(`^[a-z-]+$`).MatchString(c.name) {
			t.Errorf("/%s is there twice or is not whole", c.name)
		}
		seen[c.name] = true
		if !strings.Contains(help, "/"+c.name) {
			t.Errorf("/%s is not in the help", c.name)
		}
		lines := 0
		for line := range strings.Lines(helpLines()) {
			if name, about, _ := strings.Cut(line, "  "); name == strings.TrimSpace("/"+c.name+" "+c.args) && strings.TrimSpace(about) == c.about {
				lines++
			}
		}
		if lines != 1 {
			t.Errorf("/%s has %d lines in the help without a screen:\n%s", c.name, lines, helpLines())
		}
		// No command may fall over the state that it meets at the start.
		if _, err := c.prepare(&state{}, ""); err != nil && err.Error() == "" {
			t.Errorf("/%s refuses without a reason", c.name)
		}
		_, _ = c.prepare(&state{conversation: *shown()}, "#99999999999999999999")
	}
	for _, name := range []string{"help", "retry", "edit", "fork", "checkout", "branches", "rewind", "context", "model", "sessions", "new", "open", "rename", "name", "delete",
		"system", "attach", "search", "export", "cancel", "quit", "prev", "next", "restart", "pin", "unpin", "redact", "compare", "copy", "graph", "candidates", "exec", "spawn"} {
		if !seen[name] {
			t.Errorf("/%s is missing", name)
		}
	}
}

func TestMessageNumber(t *testing.T) {
	for word, want := range map[string]int64{"#4": 4, "4": 4, "0": 0, "#": -1, "x": -1, "": -1, "-1": -1, "#-1": -1, "4.5": -1} {
		n, ok := messageNumber(word)
		if !ok {
			n = -1
		}
		if n != want {
			t.Errorf("%q: %d, want %d", word, n, want)
		}
	}
}
