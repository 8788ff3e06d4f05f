package chat

import (
	"os"
	"path/filepath"
	"testing"

	"convls/protocol"

	"github.com/google/go-cmp/cmp"
)

func inputs(all []candidate) []string {
	out := []string{}
	for _, c := range all {
		out = append(out, c.input)
	}
	return out
}

func TestComplete(t *testing.T) {
	s := &state{
		sessions: []protocol.Session{{SessionID: "1", Title: "Trip to Lisbon"}, {SessionID: "2", Title: "Trip to Porto"}, {SessionID: "3"}, {SessionID: "4", Title: "Trip to Porto"}},
		models:   []protocol.Model{{ID: "offline"}, {ID: "fake/large"}, {ID: "fake/small"}},
	}
	s.branches = []protocol.Branch{{Name: "main"}, {Name: "idea"}, {Tip: "t"}}
	for _, tc := range []struct {
		input string
		want  []string
	}{
		{"hello", []string{}},
		{"", []string{}},
		{"/ch", []string{"/checkout "}},
		{"/re", []string{"/retry ", "/redact ", "/rewind ", "/redo-compact", "/rename ", "/restart"}},
		{"/he\nx", []string{}},
		{"/checkout ", []string{"/checkout main", "/checkout idea"}},
		{"/checkout ID", []string{"/checkout idea"}},
		{"/checkout main", []string{}},
		{"/compare ma", []string{"/compare main"}},
		{"/open trip", []string{"/open Trip to Lisbon", "/open Trip to Porto"}},
		{"/open porto", []string{"/open Trip to Porto"}},
		{"/model fa", []string{"/model fake/large", "/model fake/small"}},
		{"/retry fake/l", []string{"/retry fake/large"}},
		{"/retry #4 fake/l", []string{"/retry #4 fake/large"}},
		{"/candidates ", []string{}},
		{"/candidates 3", []string{}},
		{"/candidates 3 fake/l", []string{"/candidates 3 fake/large"}},
		{"/candidates 3 #4 fake/l", []string{"/candidates 3 #4 fake/large"}},
		{"/graph ma", []string{"/graph main"}},
		{"/graph expand ma", []string{"/graph expand main"}},
		{"/attach branch id", []string{"/attach branch idea"}},
		{"/help chec", []string{"/help checkout"}},
		{"/nothing x", []string{}},
		{"/rename x", []string{}},
	} {
		if diff := cmp.Diff(tc.want, inputs(s.complete(tc.input))); diff != "" {
			t.Errorf("%q: (-want +got)\n%s", tc.input, diff)
		}
	}
}

func TestCompleteFiles(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"one.txt", "other.md", ".hidden", "bad\x1bname"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "over"), 0o700); err != nil {
		t.Fatal(err)
	}
	s := &state{}
	at := "/attach " + dir + "/"
	for _, tc := range []struct {
		input string
		want  []string
	}{
		{at, []string{at + "one.txt", at + "other.md", at + "over/"}},
		{at + "ot", []string{at + "other.md"}},
		{at + ".h", []string{at + ".hidden"}},
		{at + "nothing", []string{}},
		{"/attach /does/not/exist/x", []string{}},
	} {
		if diff := cmp.Diff(tc.want, inputs(s.complete(tc.input))); diff != "" {
			t.Errorf("%q: (-want +got)\n%s", tc.input, diff)
		}
	}
	t.Chdir(dir)
	if diff := cmp.Diff([]string{"/export one.txt"}, inputs(s.complete("/export on"))); diff != "" {
		t.Errorf("in the working folder: (-want +got)\n%s", diff)
	}
}

func TestCommon(t *testing.T) {
	c := func(inputs ...string) []candidate {
		var out []candidate
		for _, i := range inputs {
			out = append(out, candidate{input: i})
		}
		return out
	}
	for _, tc := range []struct {
		in   []candidate
		want string
	}{
		{nil, ""}, {c("a"), "a"}, {c("/retry", "/rewind"), "/re"}, {c("漢字", "漢語"), "漢"}, {c("a", "b"), ""},
	} {
		if got := common(tc.in); got != tc.want {
			t.Errorf("%v: %q, want %q", tc.in, got, tc.want)
		}
	}
}
