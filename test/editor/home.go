package editor

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"convls/client"
	"convls/store"
)

// Home is a user's home in a temporary folder: data, settings and logs of one
// test, out of reach of the environment that the test runs in.
type Home struct {
	// Dir is the home folder, Data the store's.
	Dir, Data string
	program   string
}

// NewHome makes a home that goes with the test.
func NewHome(t testing.TB) *Home {
	t.Helper()
	dir := t.TempDir()
	return &Home{Dir: dir, Data: filepath.Join(dir, "store"), program: Program(t)}
}

// Env is the environment of a server in this home: where things are, and nothing
// that could hold settings or keys.
func (h *Home) Env() []string {
	env := []string{
		"HOME=" + h.Dir,
		"XDG_DATA_HOME=" + filepath.Join(h.Dir, "share"),
		"XDG_CONFIG_HOME=" + filepath.Join(h.Dir, "config"),
		"XDG_STATE_HOME=" + filepath.Join(h.Dir, "state"),
		"XDG_CACHE_HOME=" + filepath.Join(h.Dir, "cache"),
		"XDG_RUNTIME_DIR=" + filepath.Join(h.Dir, "run"),
		"CONVLS_DATA_DIR=" + h.Data,
	}
	if os.Getenv("CONVLS_RACE") == "1" {
		// A race must be seen even in a server that is going to be killed.
		env = append(env, "GORACE=halt_on_error=1")
	}
	for _, name := range []string{"PATH", "TMPDIR", "SystemRoot", "GOCOVERDIR"} {
		if v := os.Getenv(name); v != "" {
			env = append(env, name+"="+v)
		}
	}
	return env
}

// Command returns the command line of a server in this home, which ctx kills.
func (h *Home) Command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, h.program, args...)
	cmd.Env = h.Env()
	cmd.Dir = h.Dir
	return cmd
}

// Options say what an editor is like.
type Options struct {
	// Client is what package client takes; the callbacks that are set are called
	// after the editor has taken note.
	Client client.Options
	// Args are added to the server's command line.
	Args []string
}

// Start starts a server and does the handshake.
func (h *Home) Start(t testing.TB, o Options) *Editor {
	t.Helper()
	ed, err := h.TryStart(t, o)
	if err != nil {
		t.Fatalf("start a server: %v", err)
	}
	return ed
}

// TryStart is [Home.Start] for a server that may refuse the handshake.
func (h *Home) TryStart(t testing.TB, o Options) (*Editor, error) {
	t.Helper()
	ed := newEditor(t)
	cmd := h.Command(context.Background(), append([]string{"--stdio"}, o.Args...)...)
	var err error
	if ed.Client, err = client.Start(context.Background(), cmd, ed.callbacks(o.Client)); err != nil {
		t.Fatal(err)
	}
	ed.process = cmd.Process
	t.Cleanup(func() { _ = ed.process.Kill(); _ = ed.Close() })
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	ed.Server, err = ed.Initialize(ctx)
	return ed, err
}

// Check opens the store, which no server may have open, and reports everything
// that is wrong with it.
func (h *Home) Check(t testing.TB) {
	t.Helper()
	CheckStore(t, h.Data)
}

// CheckStore opens the store in dir and reports everything that is wrong with it.
func CheckStore(t testing.TB, dir string) {
	t.Helper()
	s, err := store.Open(t.Context(), store.Options{Dir: dir})
	if err != nil {
		t.Fatalf("open the store to check it: %v", err)
	}
	defer func() {
		if err := s.Close(); err != nil {
			t.Errorf("close the store: %v", err)
		}
	}()
	var problems []string
	if err := s.Check(t.Context(), func(p store.Problem) { problems = append(problems, p.String()) }); err != nil {
		t.Errorf("check the store: %v", err)
	}
	if len(problems) > 0 {
		t.Errorf("the store has %d problems:\n%s", len(problems), strings.Join(problems, "\n"))
	}
}
