package scenario

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"convls/test/editor"
)

// TestCommandLine gives the command what a person mistypes: each is told with what
// was probably meant, or what to do next, and with the exit status of a failure.
func TestCommandLine(t *testing.T) {
	home := editor.NewHome(t)
	config := filepath.Join(home.Dir, "settings.toml")
	if err := os.WriteFile(config, []byte("modek = \"offline\"\nsystem = \"Be brief.\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	elsewhere := filepath.Join(home.Dir, "elsewhere")
	for _, tc := range []struct {
		name, args  string
		stdin       string
		code        int
		out, errOut string
	}{
		{name: "a command", args: "chta", code: 1, errOut: `there is no command "chta": did you mean convls chat?`},
		{name: "no command", args: "frobnicate", code: 1, errOut: `there is no command "frobnicate": there are chat, `},
		{name: "a flag", args: "chat --sesion x", code: 1, errOut: "there is no flag --sesion: did you mean --session?"},
		{name: "no flag", args: "sessions --frobnicate", code: 1, errOut: "convls sessions --help lists the flags"},
		{name: "no file", args: "import", code: 1, errOut: "which files? convls import FILE..."},
		{name: "a file that is not there", args: "import /nowhere/x.jsonl", code: 1, errOut: "/nowhere/x.jsonl"},
		{name: "no session", args: "export", code: 1, errOut: "which session? convls export SESSION"},
		{name: "two sessions", args: "export a b", code: 1, errOut: "convls export takes 1 argument, not 2"},
		{name: "an unknown session", args: "export nowhere", code: 1, errOut: `there is no session "nowhere": convls sessions`},
		{name: "nothing to list", args: "sessions", errOut: "there is no session yet: convls chat begins one"},
		{name: "settings that are not there", args: "--config /nowhere/x.toml chat --once hi", code: 1, errOut: "/nowhere/x.toml, which --config or CONVLS_CONFIG names, is not there"},
		{name: "settings that are not there, for a list", args: "sessions --config /nowhere/x.toml", code: 1, errOut: "/nowhere/x.toml, which --config"},
		{name: "relative settings", args: "--config x.toml chat --once hi", code: 1, errOut: `--config is "x.toml", which is relative: give an absolute path`},
		{name: "a misspelt setting", args: "--config " + config + " chat --once repeat:hi", out: "hi\n", errOut: "warning: " + config + ": modek is no setting: did you mean model?\n"},
		{name: "a pipe", args: "chat", stdin: "repeat: one\n/pni\nrepeat: two\n", code: 1, out: "one\ntwo\n", errOut: "there is no command /pni: did you mean /pin?"},
		{name: "another store", args: "chat --once repeat:there --data-dir " + elsewhere, out: "there\n"},
		{name: "what is in another store", args: "sessions --data-dir " + elsewhere, out: "  repeat:there\n"},
		{name: "what is not in it", args: "sessions one --data-dir " + elsewhere, errOut: `no title or workspace has "one": convls sessions lists all`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var stdout, stderr strings.Builder
			cmd := home.Command(t.Context(), strings.Fields(tc.args)...)
			cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(tc.stdin), &stdout, &stderr
			err := cmd.Run()
			if exit, ok := errors.AsType[*exec.ExitError](err); err != nil && !ok || (exit == nil) != (tc.code == 0) || exit != nil && exit.ExitCode() != tc.code {
				t.Errorf("it ends with %v, want status %d", err, tc.code)
			}
			if out := stdout.String(); tc.out == "" && out != "" || !strings.HasSuffix(out, tc.out) {
				t.Errorf("printed %q, want %q", out, tc.out)
			}
			if errs := stderr.String(); tc.errOut == "" && errs != "" || !strings.Contains(errs, tc.errOut) {
				t.Errorf("on standard error:\n%s\nwant %q", errs, tc.errOut)
			}
		})
	}
}
