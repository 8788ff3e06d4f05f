// Package structure holds the tests of how the project is built: which package
// may import which, who may write to the ledger, what every package and file must
// have.
package structure

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

const (
	module = "convls"
	root   = "../.."
)

// listed is what go list tells of a package.
type listed struct {
	ImportPath string
	Dir        string
	Name       string
	Doc        string
	GoFiles    []string
	Imports    []string
	// Export is the file with the package's compiled form.
	Export string
}

// folder returns the package's folder below the module's.
func (p listed) folder() string { return strings.TrimPrefix(p.ImportPath, module+"/") }

// list runs go list with the given arguments.
func list(args ...string) ([]listed, error) {
	cmd := exec.Command("go", append([]string{"list", "-json=ImportPath,Dir,Name,Doc,GoFiles,Imports,Export"}, args...)...)
	cmd.Dir = root
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w\n%s", err, stderr.String())
	}
	var all []listed
	for dec := jsontext.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		if err := json.UnmarshalDecode(dec, &p); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, fmt.Errorf("reading what go list said: %w", err)
		}
		all = append(all, p)
	}
}

// house asks go list once for the packages of the module.
var house = sync.OnceValues(func() ([]listed, error) { return list("./...") })

// own returns the packages of the module.
func own(t *testing.T) []listed {
	t.Helper()
	all, err := house()
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 3 {
		t.Fatalf("go list found only %d packages", len(all))
	}
	return all
}

// tracked returns the files that git has, by their path below the module's folder.
func tracked(t *testing.T) []string {
	t.Helper()
	if _, err := os.Stat(filepath.Join(root, ".git")); err != nil {
		t.Skipf("not a git checkout: %v", err)
	}
	cmd := exec.Command("git", "ls-files", "-z")
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("git ls-files: %v", err)
	}
	files := slices.DeleteFunc(strings.Split(string(out), "\x00"), func(name string) bool { return name == "" })
	if len(files) < 20 {
		t.Fatalf("git has only %d files", len(files))
	}
	return files
}
