package manifest

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestClassify(t *testing.T) {
	type named struct {
		Kind   Kind
		Handle string
	}
	sha1, sha256 := "da39a3ee5e6b4b0d3255bfef95601890afd80709", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
	for _, tc := range []struct {
		text string
		want []named
	}{
		{"see src/a.go, ./b.ts and ../c/d.py.", []named{{Path, "src/a.go"}, {Path, "./b.ts"}, {Path, "../c/d.py"}}},
		{"/etc/hosts:12 and /usr/local/bin/tool", []named{{Path, "/etc/hosts"}, {Path, "/usr/local/bin/tool"}}},
		{"main.go:12:3: undefined", []named{{Path, "main.go"}}},
		{`C:\build\out.txt and .\run.ps1 and D:/x/y.c`, []named{{Path, `C:\build\out.txt`}, {Path, `.\run.ps1`}, {Path, "D:/x/y.c"}}},
		{`open /tmp/my\ file.txt`, []named{{Path, `/tmp/my\ file.txt`}}},
		{"请修改src/main.go文件，不要动config.yaml。", []named{{Path, "src/main.go"}, {Path, "config.yaml"}}},
		{"/home/müller/Überblick.md", []named{{Path, "/home/müller/Überblick.md"}}},
		{"`go.mod` (\"a/b.json\") [x](docs/y.md)", []named{{Path, "go.mod"}, {Path, "a/b.json"}, {Path, "docs/y.md"}}},
		{"src/a.go src/a.go.bak", []named{{Path, "src/a.go"}, {Path, "src/a.go.bak"}}},
		{"commit " + sha1 + " has sha256:" + sha256, []named{{Hash, sha1}, {Hash, sha256}}},
		{"https://example.org/a?b=c#d. artifact://large-report", []named{{URL, "https://example.org/a?b=c#d"}, {Stored, "artifact://large-report"}}},
		{"call_01ab toolu_01XY9 call_me", []named{{CallID, "call_01ab"}, {CallID, "toolu_01XY9"}}},
		{"out=build/app.js", []named{{Path, "build/app.js"}}},
		{"and/or TCP/IP e.g. v1.2.3 3.14 example.com console.log Node.js i.e. ok… 10/12 /compact don't", nil},
	} {
		var got []named
		tokens(tc.text, func(start, end int) {
			if kind, handle := classify(tc.text[start:end]); handle != "" {
				got = append(got, named{kind, handle})
			}
		})
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s\n%s", tc.text, diff)
		}
	}
}

func TestOccurs(t *testing.T) {
	for _, tc := range []struct {
		text, name string
		want       bool
	}{
		{"see src/a.go.", "src/a.go", true},
		{"src/a.go:12", "src/a.go", true},
		{"(src/a.go)", "src/a.go", true},
		{"修改src/a.go文件", "src/a.go", true},
		{"src/a.go.bak", "src/a.go", false},
		{"x/src/a.go", "src/a.go", false},
		{"./src/a.go", "src/a.go", false},
		{"src/a.got", "src/a.go", false},
		{"src/a.go.bak src/a.go", "src/a.go", true},
		{"abcdef0123", "abcdef0", false},
		{"https://x.org/a?b=1", "https://x.org/a", false},
		{"stage 112", "11", false},
		{"", "a", false},
		{"a", "", false},
	} {
		if got := occurs(tc.text, tc.name); got != tc.want {
			t.Errorf("%q in %q: %v", tc.name, tc.text, got)
		}
	}
}
