package scenario

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"convls/protocol"
	"convls/test/editor"
)

// printed runs the program in a home and returns what it prints and its status.
func printed(t *testing.T, home *editor.Home, stdin string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	var out, errs bytes.Buffer
	cmd := home.Command(t.Context(), args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &out, &errs
	err := cmd.Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return out.String(), errs.String(), exit.ExitCode()
	}
	if err != nil {
		t.Fatal(err)
	}
	return out.String(), errs.String(), 0
}

// graphHome is a home with a session that has a retry, an edit, named branches and
// another session before it. It returns the session's id.
func graphHome(t *testing.T) (home *editor.Home, id string) {
	t.Helper()
	home = editor.NewHome(t)
	if _, errs, code := printed(t, home, "", "chat", "--once", "repeat: before"); code != 0 {
		t.Fatal(errs)
	}
	talk := "repeat: one\n/retry\n/prev\n/name first\nrepeat: two\n/fork #2 other\nrepeat: three\n/edit #1 repeat: four\n/pin\n/checkout first\n"
	if _, errs, code := printed(t, home, talk, "chat", "--title", "Numbers <&>"); code != 0 {
		t.Fatal(errs)
	}
	list, _, _ := printed(t, home, "", "sessions", "numbers")
	id, _, _ = strings.Cut(list, " ")
	return home, id
}

func TestGraphCommand(t *testing.T) {
	home, id := graphHome(t)
	const whole = `◆─────╮ (beginning)
○─╮   │ repeat: one
●─┼─╮ │ one
│ ● │ │ one
○   │ │ repeat: two
●   │ │ [first] ◀ HEAD two
    ○ │ repeat: three
    ● │ [other] three
      ○ repeat: four
      ● four pinned
`
	for _, tc := range []struct {
		name        string
		args        []string
		code        int
		out, errOut string
	}{
		{name: "the last one", args: []string{"last"}, out: whole},
		{name: "all of it", args: []string{id, "--all"}, out: whole},
		{name: "by the beginning of its id", args: []string{strings.ToLower(id[:len(id)-2])}, out: whole},
		{name: "of another head", args: []string{"last", "--head", "other"}, out: whole},
		{name: "of a branch by its number", args: []string{"last", "--head", "2"}, out: whole},
		{name: "of a message by its number", args: []string{"last", "--head", "#2"}, out: whole},
		{name: "a window", args: []string{"last", "--ascii", "--limit", "3", "--width", "28"}, errOut: "3 of 10 rows: --all draws all of them\n", out: `: there is more above
 o   | | repeat: two
 *   | | [first] <= HEAD two
     o | repeat: three
: there is more below
`},
		{name: "few lanes", args: []string{"last", "--lanes", "1", "--limit", "2"}, errOut: "2 of 10 rows: --all draws all of them\n", out: `⋮ there is more above
○ … repeat: two
● … [first] ◀ HEAD two
⋮ there is more below
… lanes 2 to 4 share the last column
`},
		{name: "in colour", args: []string{"last", "--color", "always", "--limit", "1", "--lanes", "1"}, errOut: "1 of 10", out: "\x1b[2m⋮ there is more above\x1b[m\n" +
			"\x1b[1;36m●\x1b[m \x1b[2m…\x1b[m \x1b[32m[first]\x1b[m \x1b[1;7m◀ HEAD\x1b[m two\n\x1b[2m⋮ there is more below\x1b[m\n\x1b[2m… lanes 2 to 4 share the last column\x1b[m\n"},
		{name: "no session", code: 1, errOut: "which session? convls graph SESSION"},
		{name: "an unknown session", args: []string{"nowhere"}, code: 1, errOut: `there is no session "nowhere": convls sessions`},
		{name: "a beginning of two ids", args: []string{id[:5]}, code: 1, errOut: "2 sessions have an id that begins with"},
		{name: "an unknown head", args: []string{"last", "--head", "nowhere"}, code: 1, errOut: `there is no branch or message "nowhere"`},
		{name: "an unknown branch", args: []string{"last", "--head", "9"}, code: 1, errOut: "there is no branch 9: the session has 4 branches"},
		{name: "an unknown message", args: []string{"last", "--head", "#9"}, code: 1, errOut: "there is no message #9 on HEAD's branch: the last one is #4"},
		{name: "an unknown summary", args: []string{"last", "--expand", "nowhere"}, code: 1, errOut: "nowhere"},
		{name: "an unknown format", args: []string{"last", "--format", "png"}, code: 1, errOut: `--format is one of text, svg, dot, json, not "png"`},
		{name: "an unknown colour", args: []string{"last", "--color", "red"}, code: 1, errOut: `--color is one of auto, always, never`},
		{name: "an unknown theme", args: []string{"last", "--theme", "red"}, code: 1, errOut: `--theme is one of auto, light, dark`},
		{name: "no rows", args: []string{"last", "--limit", "0"}, code: 1, errOut: "--limit is 1 to 2000, not 0: --all draws all rows"},
		{name: "all and a limit", args: []string{"last", "--limit", "9", "--all"}, code: 1, errOut: "leave --limit out"},
		{name: "no lanes", args: []string{"last", "--lanes", "0"}, code: 1, errOut: "--lanes is 1 or more"},
		{name: "less than no width", args: []string{"last", "--width", "-1"}, code: 1, errOut: "--width is 0"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			out, errs, code := printed(t, home, "", append([]string{"graph"}, tc.args...)...)
			if code != tc.code || out != tc.out || tc.errOut == "" && errs != "" || !strings.Contains(errs, tc.errOut) {
				t.Errorf("status %d, %q\n%s\nwant status %d, %q\n%s", code, errs, out, tc.code, tc.errOut, tc.out)
			}
		})
	}
}

// TestExportCommand exports the session that was used last, or one by the beginning of
// its id, and its branches as the chat names them.
func TestExportCommand(t *testing.T) {
	home, id := graphHome(t)
	all, errs, code := printed(t, home, "", "export", id)
	if code != 0 || all == "" {
		t.Fatalf("status %d, %q", code, errs)
	}
	for _, word := range []string{"last", strings.ToLower(id[:len(id)-2])} {
		if out, errs, code := printed(t, home, "", "export", word); code != 0 || out != all {
			t.Errorf("%s: status %d, %q; %d bytes, want %d", word, code, errs, len(out), len(all))
		}
	}
	for head, want := range map[string]string{"first": "two", "1": "two", "other": "three", "#2": "one", "": "two"} {
		out, errs, code := printed(t, home, "", "export", "last", "--format", "markdown", "--head", head)
		if code != 0 || !strings.HasSuffix(out, "\n\n"+want+"\n\n") {
			t.Errorf("--head %q: status %d, %q\n%s\nwant it to end with %q", head, code, errs, out, want)
		}
	}
	if _, errs, code := printed(t, home, "", "export", "last", "--format", "markdown", "--head", "nowhere"); code != 1 || !strings.Contains(errs, `no branch or message "nowhere"`) {
		t.Errorf("an unknown head: status %d, %q", code, errs)
	}
}

// TestGraphFiles writes a graph into files: the format follows from the name, and
// no file is replaced unasked.
func TestGraphFiles(t *testing.T) {
	home, _ := graphHome(t)
	file := func(name string) string { return filepath.Join(home.Dir, name) }
	for name, want := range map[string]string{"graph.svg": "<title>Numbers &lt;&amp;&gt;</title>", "graph.dot": "digraph \"Numbers <&amp;>\" {", "graph.txt": "◀ HEAD two"} {
		if out, errs, code := printed(t, home, "", "graph", "last", "-o", file(name)); code != 0 || out != "" || errs != "" {
			t.Fatalf("%s: status %d, %q %q", name, code, out, errs)
		}
		if data, err := os.ReadFile(file(name)); err != nil || !strings.Contains(string(data), want) {
			t.Errorf("%s has no %q: %v\n%s", name, want, err, data)
		}
	}
	if _, errs, code := printed(t, home, "", "graph", "last", "-o", file("graph.svg"), "--theme", "dark"); code != 1 || !strings.Contains(errs, "exists already") {
		t.Errorf("a file is replaced unasked: status %d, %q", code, errs)
	}
	if _, errs, code := printed(t, home, "", "graph", "last", "-o", file("graph.svg"), "--theme", "dark", "--force"); code != 0 {
		t.Errorf("a file is not replaced: %q", errs)
	}
	if data, err := os.ReadFile(file("graph.svg")); err != nil || strings.Contains(string(data), "prefers-color-scheme") {
		t.Errorf("a picture in the dark asks for the colour scheme: %v", err)
	}
	for _, name := range []string{"graph.png", "graph"} {
		if _, errs, code := printed(t, home, "", "graph", "last", "-o", file(name)); code != 1 || !strings.Contains(errs, "give --format, or an ending .txt, .svg, .dot or .json") {
			t.Errorf("%s: status %d, %q", name, code, errs)
		}
	}
	if _, errs, code := printed(t, home, "", "graph", "last", "-o", file("nowhere/graph.svg")); code != 1 || !strings.Contains(errs, "write the graph") {
		t.Errorf("a folder that is not there: status %d, %q", code, errs)
	}
	var view protocol.GraphView
	out, _, _ := printed(t, home, "", "graph", "last", "--format", "json")
	if err := protocol.Unmarshal([]byte(out), &view); err != nil || len(view.Rows) != 10 || view.TotalRows != 10 || view.Lanes != 4 {
		t.Errorf("as JSON: %v, %d rows\n%s", err, len(view.Rows), out)
	}
}
