package structure

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// TestEveryPackageHasAComment: the first thing that a reader of a package meets is
// what it is for. (That every exported name has a comment is the linter's rule
// "exported".)
func TestEveryPackageHasAComment(t *testing.T) {
	for _, p := range own(t) {
		if len(p.GoFiles) == 0 { // tests alone
			continue
		}
		want := "Package " + p.Name + " "
		if p.Name == "main" {
			want = "Command " + filepath.Base(p.Dir) + " "
		}
		if !strings.HasPrefix(p.Doc, want) {
			t.Errorf("the comment of package %s begins %q, want %q", p.folder(), p.Doc, want)
		}
	}
}

// TestPackagesAreNamedForWhatTheyAre: a package that is a drawer gets filled.
func TestPackagesAreNamedForWhatTheyAre(t *testing.T) {
	drawers := []string{"util", "utils", "common", "helper", "helpers", "types", "misc", "shared", "manager"}
	for _, p := range own(t) {
		for part := range strings.SplitSeq(p.folder(), "/") {
			if slices.Contains(drawers, part) {
				t.Errorf("package %s is named for no subject", p.folder())
			}
		}
	}
}

// text returns the content of a file that people wrote, or nil for others.
func text(t *testing.T, name string) []byte {
	t.Helper()
	if slices.Contains(strings.Split(name, "/"), "testdata") {
		return nil
	}
	data, err := os.ReadFile(filepath.Join(root, name))
	if os.IsNotExist(err) { // deleted, not committed yet
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	if bytes.IndexByte(data, 0) >= 0 || !utf8.Valid(data) {
		return nil
	}
	return data
}

// search reports every place in the committed files that pattern matches.
func search(t *testing.T, pattern *regexp.Regexp, why string) {
	t.Helper()
	for _, name := range tracked(t) {
		data := text(t, name)
		for _, at := range pattern.FindAllIndex(data, -1) {
			line := 1 + bytes.Count(data[:at[0]], []byte("\n"))
			t.Errorf("%s:%d: %s: %s", name, line, data[at[0]:at[1]], why)
		}
	}
}

// The words in the patterns below are broken up, so that this file has none.

func TestNothingIsLeftForLater(t *testing.T) {
	search(t, regexp.MustCompile(`\b(?:TO`+`DO|FIX`+`ME|XX`+`X)\b`), "do it, or write an issue")
}

// TestNoRegistryIsNamed: packages come from whatever registry a machine is set up
// to use.
func TestNoRegistryIsNamed(t *testing.T) {
	hosts := []string{
		`proxy\.golang` + `\.org`, `sum\.golang` + `\.org`, `goproxy` + `\.\w+`,
		`registry\.npmjs` + `\.\w+`, `registry\.yarnpkg` + `\.\w+`, `npmmirror` + `\.\w+`,
		`(?:deb|security|snapshot|ftp)\.debian` + `\.org`, `archive\.ubuntu` + `\.com`,
		`pypi` + `\.org`, `pythonhosted` + `\.org`, `crates` + `\.io`, `rubygems` + `\.org`,
		`docker` + `\.io`, `ghcr` + `\.io`, `quay` + `\.io`, `repo\.maven` + `\.\w+`,
	}
	search(t, regexp.MustCompile(`(?i)\b(?:`+strings.Join(hosts, "|")+`)\b`), "name no registry")
}
