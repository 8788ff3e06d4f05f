package eval

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"convls/compaction/eval"
	"convls/protocol"
	"convls/settings"
)

// run runs convls eval with these arguments, with settings and a temporary folder
// of the test's own, and returns what it printed and what it left in that folder.
func run(t *testing.T, args ...string) (out string, left []os.DirEntry, err error) {
	t.Helper()
	home, tmp := t.TempDir(), t.TempDir()
	t.Setenv("TMPDIR", tmp)
	config := filepath.Join(home, "config.toml")
	if err := os.WriteFile(config, []byte("model = \"nobody/asks\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := Command(Options{Paths: func() (settings.Paths, error) { return settings.Paths{Config: config, DataDir: home}, nil }})
	cmd.SilenceUsage, cmd.SilenceErrors = true, true
	var stdout, stderr bytes.Buffer
	cmd.SetOut(&stdout)
	cmd.SetErr(&stderr)
	cmd.SetArgs(args)
	err = cmd.ExecuteContext(t.Context())
	if stderr.Len() > 0 {
		t.Errorf("standard error, which is no terminal: %q", &stderr)
	}
	left, readErr := os.ReadDir(tmp)
	if readErr != nil {
		t.Fatal(readErr)
	}
	return stdout.String(), left, err
}

// TestTable also holds docs/compaction.md to what the command says: of each row all
// that is kept and all that is wrong. Tokens and time may change.
func TestTable(t *testing.T) {
	doc, err := os.ReadFile("../../../docs/compaction.md")
	if err != nil {
		t.Fatal(err)
	}
	out, left, err := run(t, "compaction", "--summariser", "all")
	if err != nil || len(left) > 0 {
		t.Fatalf("%v; left behind: %v", err, left)
	}
	for _, name := range eval.Names() {
		if !strings.Contains(out, "\n"+name+":\n\n| cycle | compacted") || !strings.Contains(out, "\n| "+name+" ") {
			t.Errorf("there is no table of %s:\n%s", name, out)
		}
		if row, documented := row(out, name), row(string(doc), name); row == "" || row != documented {
			t.Errorf("docs/compaction.md has the row %q, the command says %q", documented, row)
		}
	}
	for _, want := range []string{"After 10 cycles:\n\n| summariser |", "| 10 of 10 ", "| 10    | yes "} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in:\n%s", want, out)
		}
	}
	if strings.Contains(out, "\x1b") {
		t.Error("the table has codes of a terminal")
	}
}

// row returns what a row of a table says up to the errors of status.
func row(text, name string) string {
	for line := range strings.Lines(text) {
		if cells := strings.Split(line, "|"); len(cells) > 10 && strings.TrimSpace(cells[1]) == name {
			return strings.Join(strings.Fields(strings.Join(cells[1:10], " ")), " ")
		}
	}
	return ""
}

func TestJSON(t *testing.T) {
	out, _, err := run(t, "compaction", "--cycles", "3", "--seed", "11", "--json")
	if err != nil {
		t.Fatal(err)
	}
	var r Report
	if err := protocol.Unmarshal([]byte(out), &r); err != nil {
		t.Fatal(err)
	}
	if r.Cycles != 3 || r.Seed != 11 || r.Window != eval.Window || len(r.Evaluations) != 1 || len(r.Evaluations[0].Results) != 3 {
		t.Fatalf("%+v", r)
	}
	last := r.Evaluations[0].Results[2]
	if last.Cycle != 3 || last.State != eval.Compacted || last.Identities.Kept != last.Identities.Planted || last.Identities.Planted < 30 || last.TokensBefore == 0 {
		t.Errorf("%+v", last)
	}
}

func TestRefused(t *testing.T) {
	for _, tc := range []struct {
		name, want string
		args       []string
	}{
		{"no cycle", "--cycles is 1 or more, not 0", []string{"--cycles", "0"}},
		{"unknown summariser", `there is no summariser "forgetful": there are extractive, forgets, invents, merges, repeats, promotes, and every model`, []string{"--summariser", "forgetful"}},
		{"unknown provider", "nobody", []string{"--summariser", "nobody/model"}},
		{"an argument", "unknown command", []string{"twice"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			out, left, err := run(t, append([]string{"compaction"}, tc.args...)...)
			if err == nil || !strings.Contains(err.Error(), tc.want) || out != "" || len(left) > 0 {
				t.Errorf("%v, want %q; printed %q, left %v", err, tc.want, out, left)
			}
		})
	}
}

// TestVerdict: the exit status says what the table does.
func TestVerdict(t *testing.T) {
	held := &eval.Evaluation{Summariser: "a", Results: []eval.Result{{Cycle: 1, State: eval.Compacted}}}
	refused := &eval.Evaluation{Summariser: "b", Results: []eval.Result{{Cycle: 1, State: eval.Refused, Message: "empty"}}}
	silent := &eval.Evaluation{Summariser: "c", Results: []eval.Result{{Cycle: 1, State: eval.Failed, Message: "no key"}}}
	lost := &eval.Evaluation{Summariser: "d", Results: []eval.Result{{Cycle: 1, State: eval.Compacted}}, Breaches: []string{"d, cycle 1: 2 of 3 constraints are kept"}}
	worse := &eval.Evaluation{Summariser: "e", Results: []eval.Result{{Cycle: 1, State: eval.Compacted}}, Breaches: []string{"x", "y"}}
	for _, tc := range []struct {
		want string
		of   []*eval.Evaluation
	}{
		{"", []*eval.Evaluation{held, refused}},
		{"c never answered: no key", []*eval.Evaluation{held, silent}},
		{"d, cycle 1: 2 of 3 constraints are kept", []*eval.Evaluation{held, lost}},
		{"d, cycle 1: 2 of 3 constraints are kept (and 2 more: --json lists them)", []*eval.Evaluation{lost, worse}},
	} {
		x := evaluation{Report: Report{Evaluations: tc.of}}
		got := ""
		if err := x.verdict(); err != nil {
			got = err.Error()
		}
		if got != tc.want {
			t.Errorf("%q, want %q", got, tc.want)
		}
	}
	x := evaluation{Report: Report{Cycles: 1, Evaluations: []*eval.Evaluation{refused}}}
	if out := x.text(); !strings.Contains(out, "1 of 1 compactions changed nothing:\n- cycle 1: empty\n") {
		t.Errorf("no reason in:\n%s", out)
	}
}
