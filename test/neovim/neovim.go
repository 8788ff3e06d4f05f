package neovim

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"convls/protocol"
	"convls/store"
	"convls/test/editor"
)

// patience is how long a test waits for what must come. A test that passes never
// waits so long.
const patience = 60 * time.Second

// Versions are the Neovims that the plugin is tested in, the oldest that it works
// with first.
func Versions() []string { return []string{"0.10", "0.12"} }

// Each runs a test in every Neovim.
func Each(t *testing.T, test func(t *testing.T, version string)) {
	t.Helper()
	for _, v := range Versions() {
		t.Run(v, func(t *testing.T) { test(t, v) })
	}
}

// Options say how a Neovim starts.
type Options struct {
	// Version is one of [Versions]; the last if it is left out.
	Version string
	// Home holds the store and all settings; one of its own if it is left out.
	Home *editor.Home
	// Config is Lua that runs before the plugin is loaded, as a person's own init.lua.
	// The variable program is the path of convls.
	Config string
	// Width and Height are 100 and 30 if they are left out.
	Width, Height int
	// Args are added to the command line: files to open, and such.
	Args []string
	// Checkout, if it is there, is the working directory, and Neovim gets Args alone, as
	// a person would type them.
	Checkout string
}

// Neovim is a child process with the plugin.
type Neovim struct {
	Home   *editor.Home
	t      testing.TB
	rpc    *rpc
	screen *screen
}

// Plugin returns the plugin's folder. It looks at each file, so that go test knows that
// the result depends on them.
func Plugin(t testing.TB) string {
	t.Helper()
	dir, err := filepath.Abs("../../editors/neovim")
	if err != nil {
		t.Fatal(err)
	}
	err = filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err == nil {
			_, err = os.Stat(path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// Start starts a Neovim that ends with the test.
func Start(t testing.TB, o Options) *Neovim {
	t.Helper()
	if o.Version == "" {
		o.Version = Versions()[len(Versions())-1]
	}
	program := find(t, o.Version)
	if o.Home == nil {
		o.Home = editor.NewHome(t)
	}
	if o.Width == 0 {
		o.Width, o.Height = 100, 30
	}
	if o.Config == "" {
		o.Config = "vim.g.convls = { cmd = program }"
	}
	// With --clean Neovim reads nothing of the machine's, but loads plugins.
	ctx, stop := context.WithCancel(context.Background())
	args := []string{"--embed", "--clean", "-n"}
	if o.Checkout == "" {
		args = append(args, "--cmd", "set runtimepath^="+Plugin(t),
			"--cmd", fmt.Sprintf("lua local program = %q; %s", editor.Program(t), strings.ReplaceAll(o.Config, "\n", " ")))
	}
	cmd := exec.CommandContext(ctx, program, append(args, o.Args...)...)
	cmd.Env = append(o.Home.Env(), "NVIM_LOG_FILE="+filepath.Join(o.Home.Dir, "nvim.log"))
	cmd.Dir = o.Home.Dir
	if o.Checkout != "" {
		cmd.Dir = o.Checkout
	}
	cmd.Stderr = os.Stderr
	n := &Neovim{Home: o.Home, t: t, screen: newScreen()}
	in, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatalf("start neovim: %v", err)
	}
	n.rpc = newRPC(in, out, n.screen.notify)
	t.Cleanup(func() { n.quit(out, cmd, stop) })
	n.call("nvim_ui_attach", o.Width, o.Height, map[string]any{"rgb": true, "ext_linegrid": true})
	return n
}

// quit asks Neovim to end as :qa! does, and kills it if it does not.
func (n *Neovim) quit(out io.Closer, cmd *exec.Cmd, stop context.CancelFunc) {
	gone := make(chan struct{})
	late := time.AfterFunc(10*time.Second, stop)
	go func() {
		defer close(gone)
		// A prompt that a test left open answers nothing else.
		_, _ = n.rpc.call(nil, "nvim_input", "<C-c><Esc>")
		// The server must have left the store before the folder goes.
		_, _ = n.rpc.call(nil, "nvim_exec_lua", `local server = package.loaded["convls.server"]
if server then
  server.stop()
  vim.wait(5000, function() return server.status().state == "off" end, 5)
end`, []any{})
		_, _ = n.rpc.call(nil, "nvim_command", "qa!")
		_ = out.Close()
		<-n.rpc.done
		_ = cmd.Wait() // how it ended says nothing
	}()
	<-gone
	killed := !late.Stop()
	stop()
	if killed {
		n.waitForStore()
	}
}

// waitForStore returns when the server of a Neovim that was killed has left the store,
// or after 10 s: nobody tells of it.
func (n *Neovim) waitForStore() {
	late := time.After(10 * time.Second)
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for {
		s, err := store.Open(context.Background(), store.Options{Dir: n.Home.Data})
		if err == nil {
			_ = s.Close()
		}
		if protocol.CodeOf(err) != protocol.CodeStoreLocked {
			return
		}
		select {
		case <-again.C:
		case <-late:
			return
		}
	}
}

// find returns the program of a version. Without it the test is skipped, or fails
// where CONVLS_REQUIRE_NEOVIM is set.
func find(t testing.TB, version string) string {
	t.Helper()
	cache, err := os.UserCacheDir()
	if err == nil {
		path := filepath.Join(cache, "convls-test", "neovim-"+version, "bin", "nvim")
		if _, err = os.Stat(path); err == nil {
			return path
		}
	}
	if os.Getenv("CONVLS_REQUIRE_NEOVIM") != "" {
		t.Fatalf("no Neovim %s: %v", version, err)
	}
	t.Skipf("no Neovim %s, run test/install.sh: %v", version, err)
	return ""
}

// try sends a request of :help api.
func (n *Neovim) try(method string, params ...any) (any, error) {
	ctx, cancel := context.WithTimeout(n.t.Context(), patience)
	defer cancel()
	return n.rpc.call(ctx.Done(), method, params...)
}

// call sends a request and fails the test if it fails.
func (n *Neovim) call(method string, params ...any) any {
	n.t.Helper()
	v, err := n.try(method, params...)
	if err != nil {
		n.t.Fatalf("%s: %v\n%s", method, err, n.Screen())
	}
	return v
}

// Command runs an Ex command.
func (n *Neovim) Command(command string) {
	n.t.Helper()
	n.call("nvim_command", command)
}

// Lua runs Lua code, which gets args as its varargs, and returns what it returns.
func (n *Neovim) Lua(code string, args ...any) any {
	n.t.Helper()
	if args == nil {
		args = []any{}
	}
	return n.call("nvim_exec_lua", code, args)
}

// Type types keys, written as in maps: "ihello<Esc>".
func (n *Neovim) Type(keys string) {
	n.t.Helper()
	n.call("nvim_input", keys)
}

// Screen returns what is on the screen.
func (n *Neovim) Screen() string {
	n.screen.mu.Lock()
	defer n.screen.mu.Unlock()
	return n.screen.text()
}

// AwaitScreen waits until f holds of the screen, and returns that. what says in a
// failure what was waited for.
func (n *Neovim) AwaitScreen(what string, f func(screen string) bool) string {
	n.t.Helper()
	ctx, cancel := context.WithTimeout(n.t.Context(), patience)
	defer cancel()
	for {
		n.screen.mu.Lock()
		text, changed := n.screen.text(), n.screen.changed
		n.screen.mu.Unlock()
		if f(text) {
			return text
		}
		select {
		case <-changed:
		case <-n.rpc.done:
			n.t.Fatalf("neovim ended before %s was on the screen:\n%s", what, text)
		case <-ctx.Done():
			n.t.Fatalf("%s did not come to the screen:\n%s\nmessages:\n%s", what, text, n.Messages())
		}
	}
}

// AwaitText waits until the screen shows a text.
func (n *Neovim) AwaitText(text string) string {
	n.t.Helper()
	return n.AwaitScreen(fmt.Sprintf("%q", text), func(s string) bool { return strings.Contains(s, text) })
}

// AwaitLua waits until a Lua expression is true, in which args are the arguments
// and chat is the current chat. Neovim looks at it again and again, between
// whatever else it does.
func (n *Neovim) AwaitLua(what, expression string, args ...any) {
	n.t.Helper()
	ok := n.Lua(`local args = { ... }
return vim.wait(50000, function()
  local chat = package.loaded["convls.chat"] and require("convls.chat").current()
  return `+expression+`
end, 10)`, args...)
	if ok != true {
		n.t.Fatalf("%s did not come:\n%s\nmessages:\n%s", what, n.Screen(), n.Messages())
	}
}

// Messages returns the messages that a person got, as :messages shows them.
func (n *Neovim) Messages() string {
	n.t.Helper()
	v, err := n.try("nvim_exec2", "messages", map[string]any{"output": true})
	if err != nil {
		return err.Error()
	}
	m, ok := v.(map[string]any)
	if !ok {
		return fmt.Sprint(v)
	}
	text, _ := m["output"].(string)
	return text
}

// Lines returns the lines of a buffer, 0 for the current one.
func (n *Neovim) Lines(buffer int) []string {
	n.t.Helper()
	list, ok := n.call("nvim_buf_get_lines", buffer, 0, -1, false).([]any)
	if !ok {
		n.t.Fatal(errors.New("a buffer is no list of lines"))
	}
	lines := make([]string, len(list))
	for i, l := range list {
		lines[i], _ = l.(string)
	}
	return lines
}
