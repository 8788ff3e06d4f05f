package editor

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
)

// built is the program of this test run.
var built struct {
	sync.Mutex
	dir, path string
	err       error
}

// Main runs the tests of a package that needs the program, and cleans up. The
// program is built at first use, so that a run that needs none builds none. With
// CONVLS_RACE=1 it is built with the race detector; CONVLS_PROGRAM names one that
// was built elsewhere.
func Main(m *testing.M) int {
	defer func() {
		if built.dir != "" {
			_ = os.RemoveAll(built.dir)
		}
	}()
	return m.Run()
}

// Program returns the path of the program, and builds it first where that has not
// happened yet.
func Program(t testing.TB) string {
	t.Helper()
	built.Lock()
	defer built.Unlock()
	if built.path == "" {
		built.path = os.Getenv("CONVLS_PROGRAM")
	}
	if built.path == "" && built.err == nil {
		built.path, built.err = build(t.Context())
	}
	if built.err != nil {
		t.Fatal(built.err)
	}
	return built.path
}

func build(ctx context.Context) (string, error) {
	dir, err := os.MkdirTemp("", "convls-test-")
	if err != nil {
		return "", err
	}
	built.dir = dir
	path := filepath.Join(dir, "convls")
	if runtime.GOOS == "windows" {
		path += ".exe"
	}
	args := []string{"build", "-o", path}
	if os.Getenv("CONVLS_RACE") == "1" {
		args = append(args, "-race")
	}
	out, err := exec.CommandContext(ctx, "go", append(args, "convls/cmd/convls")...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("build the program: %w\n%s", err, out)
	}
	return path, nil
}

// Long reports whether the long suites run in full, as they do in CI.
func Long() bool { return os.Getenv("CONVLS_LONG") != "" }
