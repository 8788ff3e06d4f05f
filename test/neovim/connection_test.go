package neovim

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"convls/store"
	"convls/test/bench"
	"convls/test/editor"
	"convls/test/fakemodel"
)

// serverPID returns the process of the server, as it says itself.
func (n *Neovim) serverPID() int {
	n.t.Helper()
	pid := int(whole(n.status("pid")))
	if pid <= 0 {
		n.t.Fatalf("the server's process is %d", pid)
	}
	return pid
}

// status returns a member of what the server says of itself.
func (n *Neovim) status(member string) any {
	n.t.Helper()
	return n.Lua(`local value, member = nil, ...
require("convls.server").request("convls/status", {}, function(_, status) value = status and status[member] end)
vim.wait(10000, function() return value ~= nil end, 5)
return value`, member)
}

// TestStoreIsLocked: a second Neovim on the same store is told who has it, and what
// to do; when the first one has gone, :Convls restart helps.
func TestStoreIsLocked(t *testing.T) {
	Each(t, func(t *testing.T, version string) {
		first := openChat(t, version, nil)
		pid, program := first.serverPID(), first.status("version")
		second := Start(t, Options{Version: version, Home: first.Home, Height: 40, Width: 120})
		second.Command("Convls chat")
		second.wantMessage(fmt.Sprintf("is in use by convls %v, process %d", program, pid), "close the editor or chat that uses it", "Next: then :Convls restart")
		second.Type("<CR>")
		if messages := second.Messages(); strings.Contains(messages, "stack traceback") || strings.Contains(messages, "quit with exit code") {
			t.Errorf("the person was told of more than the cause: %s", messages)
		}
		first.Command("Convls shutdown")
		first.AwaitLua("the server to end", "require('convls.server').status().state == 'off'")
		second.Command("Convls restart")
		second.Command("Convls chat")
		second.AwaitLoaded()
	})
}

// TestServerIsKilled in the middle of a reply: the person is told, the draft stays,
// and after a restart the reply is there as far as it reached the disk.
func TestServerIsKilled(t *testing.T) {
	Each(t, func(t *testing.T, version string) {
		m := fakemodel.New(t)
		n := openChat(t, version, m)
		gate := m.Gate()
		m.Script(fakemodel.Say("half ", "of ", "it").Hold(gate, 2))
		n.Send("go")
		n.wantScreen("half of")
		n.Type("<Esc>G$aa draft<Esc>")
		n.AwaitLua("the draft", "table.concat(chat.view:prompt()) == 'a draft'")
		kill(t, n.serverPID())
		n.wantMessage("the server has ended (signal 9)", ":Convls restart starts it again; the draft is kept")
		n.Type("<CR><Esc>")
		n.wantScreen("the server has gone", "Next: :Convls restart", "no server")
		n.Command("Convls restart")
		n.AwaitLua("the reply to be sealed", "chat.session.connected and chat.session:last().status == 'interrupted'")
		n.wantScreen("## Assistant  interrupted")
		n.wantMessage("> convls ended while this was being written")
		if got := n.Prompt(); got != "a draft" {
			t.Errorf("the draft is %q", got)
		}
		m.Default(fakemodel.Say("the answer"))
		n.Command("Convls send")
		n.wantScreen("the answer")
		n.AwaitIdle(5)
	})
}

// TestServerIsKilledAndRestarts by the setting.
func TestServerIsKilledAndRestarts(t *testing.T) {
	Each(t, func(t *testing.T, version string) {
		n := Start(t, Options{Version: version, Config: `vim.g.convls = { cmd = program, restart = "auto" }
vim.api.nvim_create_autocmd("User", { pattern = "Convls*", callback = function(e) seen = (seen or "") .. e.match .. " " end })`})
		n.Command("Convls chat")
		n.AwaitLoaded()
		pid := n.serverPID()
		kill(t, pid)
		n.AwaitLua("another server", "chat.session.connected and require('convls.server').status().state == 'ready' and select(2, seen:gsub('ConvlsReady', '')) == 2")
		if n.serverPID() == pid {
			t.Error("the process is the same")
		}
		n.Send("still here?")
		n.AwaitIdle(3)
		for _, want := range []string{"ConvlsChatOpened", "ConvlsServerLost", "ConvlsTurnStarted", "ConvlsTurnFinished"} {
			n.AwaitLua("the autocommand "+want, "seen:find(args[1]) ~= nil", want)
		}
	})
}

func kill(t *testing.T, pid int) {
	t.Helper()
	p, err := os.FindProcess(pid)
	if err == nil {
		err = p.Signal(syscall.SIGKILL)
	}
	if err != nil {
		t.Fatalf("kill the server: %v", err)
	}
}

// TestFound looks for the server where the documents say.
func TestFound(t *testing.T) {
	root := checkout(t)
	find := `local argv, source = require("convls.server").find()
return (argv and argv[1] or "nothing") .. " by " .. source`
	n := Start(t, Options{Checkout: root, Args: []string{"--cmd", "set runtimepath^=editors/neovim"}})
	if got, want := n.Lua(find), filepath.Join(root, "bin", "convls")+" by the checkout"; got != want {
		t.Errorf("found %q, want %q", got, want)
	}
	n.Lua(`vim.env.PATH = vim.env.PATH .. ":" .. ...`, filepath.Join(root, "bin"))
	if got, want := n.Lua(find), filepath.Join(root, "bin", "convls")+" by PATH"; got != want {
		t.Errorf("found %q, want %q", got, want)
	}
	n.Lua(`require("convls").setup({ cmd = { ..., "--stdio" } })`, filepath.Join(root, "bin", "convls"))
	if got, want := n.Lua(find), filepath.Join(root, "bin", "convls")+" by the setting cmd"; got != want {
		t.Errorf("found %q, want %q", got, want)
	}

	if err := os.Remove(filepath.Join(root, "bin", "convls")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, "go.mod"), []byte("module convls\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	n = Start(t, Options{Checkout: root, Args: []string{"--cmd", "set runtimepath^=editors/neovim"}})
	if got, want := n.Lua(find), fmt.Sprintf("nothing by there is no convls on PATH, and %s/bin/convls is not built: run make build in %s", root, root); got != want {
		t.Errorf("found %q, want %q", got, want)
	}
}

// TestLSPConfig: vim.lsp.enable makes no second client, and what is said with
// vim.lsp.config counts.
func TestLSPConfig(t *testing.T) {
	n := Start(t, Options{Version: "0.12", Config: `vim.g.convls = { cmd = program }
vim.lsp.config("convls", { init_options = { system = "Be brief." } })
vim.lsp.enable("convls")`})
	n.Command("Convls chat")
	n.AwaitLoaded()
	if got := whole(n.Lua(`return #vim.lsp.get_clients({ name = "convls" })`)); got != 1 {
		t.Errorf("there are %d clients", got)
	}
	n.wantScreen("## System", "Be brief.")
}

// TestNoServer says what was looked for.
func TestNoServer(t *testing.T) {
	Each(t, func(t *testing.T, version string) {
		n := Start(t, Options{Version: version, Width: 160, Height: 40, Config: `vim.g.convls = { cmd = "/nowhere/convls" }`})
		n.Type(":Convls chat<CR>")
		n.wantScreen("the setting cmd names /nowhere/convls, which can not be executed", ":checkhealth convls")
		n.Type("<CR>")
		if got := strings.Count(n.Messages(), "can not be executed"); got != 1 {
			t.Errorf("it was told %d times:\n%s", got, n.Messages())
		}
	})
}

// TestSettings: what is wrong is told key by key, and the rest holds.
func TestSettings(t *testing.T) {
	for _, tc := range []struct{ name, config, want string }{
		{"an unknown key, with the nearest", `{ opne = "tab" }`, `setup(): there is no setting "opne", did you mean "open"?`},
		{"an unknown key, with none near", `{ colourscheme = 1 }`, `setup(): there is no setting "colourscheme", see :help convls-settings`},
		{"a value out of its set", `{ open = "left" }`, `setup(): open must be one of "vsplit", "split", "tab", "current", not "left"`},
		{"another type", `{ keymaps = "yes" }`, `setup(): keymaps must be a boolean, not "yes"`},
		{"a number out of range", `{ tail = 0.5 }`, `setup(): tail must be a whole number from 1 to 500, not 0.5`},
		{"more than the server gives", `{ tail = 501 }`, `setup(): tail must be a whole number from 1 to 500, not 501`},
		{"a list of settings", `{ settings = { "fast" } }`, `setup(): settings must be a table of settings by their names, not { "fast" }`},
		{"a function as a setting", `{ settings = { turn = { max_retries = print } } }`, `setup(): settings must be a table that can be written as JSON (settings.turn.max_retries is a function), not {
  turn = {
    max_retries = <function 1>
  }
}`},
		{"no number", `{ settings = { models = { { window = 0 / 0 } } } }`, `setup(): settings must be a table that can be written as JSON (settings.models[1].window is nan), not {
  models = { {
      window = nan
    } }
}`},
		{"half a list", `{ settings = { models = { "one", two = 2 } } }`, `setup(): settings must be a table that can be written as JSON (settings.models is neither a list nor has it names alone), not {
  models = { "one",
    two = 2
  }
}`},
		{"an empty command", `{ cmd = {} }`, `setup(): cmd must be a string or a list of strings, not {}`},
		{"no table", `"fast"`, `setup() must be a table, not "fast"`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			n := Start(t, Options{Config: "told = {}; function vim.notify(text) told[#told + 1] = text end"})
			n.Lua("require('convls').setup(" + tc.config + ")")
			if got := n.Lua("return table.concat(told, '\\n')"); got != "convls: "+tc.want {
				t.Errorf("told %q, want %q", got, "convls: "+tc.want)
			}
			if got := n.Lua("return require('convls.config').get().open"); got != "vsplit" {
				t.Errorf("open is %v: the default does not hold", got)
			}
		})
	}
	t.Run("both sources, the later one wins", func(t *testing.T) {
		n := Start(t, Options{Config: `vim.g.convls = { open = "tab", tail = 7 }`})
		n.Lua("require('convls').setup({ open = 'split' })")
		if got := n.Lua("local c = require('convls.config').get(); return c.open .. c.tail .. c.batch_ms"); got != "split740" {
			t.Errorf("the settings are %v", got)
		}
	})
}

// TestLongSession opens a session of 5,000 turns, which is loaded from its end, and
// scrolls up.
func TestLongSession(t *testing.T) {
	Each(t, func(t *testing.T, version string) {
		home := editor.NewHome(t)
		session := longSession(t, home, 5000)
		n := Start(t, Options{Version: version, Home: home})
		n.Command("Convls chat " + session)
		n.AwaitLoaded()
		n.wantScreen("## Assistant  offline", "── Message")
		if rows := whole(n.Lua(`return #require("convls.chat").current().session.rows`)); rows != 100 {
			t.Errorf("%d rows were loaded, want the last 100", rows)
		}
		// At the top more come, and what the person looks at stays where it is.
		n.Lua(`first = require("convls.chat").current().session.rows[1].id`)
		n.Type("gg")
		n.AwaitLua("more rows", "#chat.session.rows == 200 and chat.view:line_of(chat.session.rows[1].id)")
		if gone := n.Lua(`local chat = require("convls.chat").current()
return math.abs(vim.fn.line("w0") - 1 - chat.view:line_of(first))`); whole(gone) > 3 {
			t.Errorf("what was on the screen went away by %v lines when more came above it", gone)
		}
		// So long a conversation is compacted first: the rows are others afterwards.
		n.Send("and on")
		n.AwaitLua("the answer", "next(chat.session.running) == nil and chat.session:last().status == 'sealed' and chat.session:last('user').content[1].text == 'and on'")
		n.wantScreen("and on", "This is turn")
	})
}

// longSession makes a session of so many turns.
func longSession(t testing.TB, home *editor.Home, turns int) string {
	t.Helper()
	s, err := store.Open(t.Context(), store.Options{Dir: home.Data})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	out, err := s.Create(t.Context(), store.Request{}, store.Info{Title: "long", Model: "offline", Policy: "rolling"}, "")
	if err != nil {
		t.Fatal(err)
	}
	sess, err := s.Session(out.Result)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := bench.Fill(t.Context(), sess, 2*turns, bench.Options{}); err != nil {
		t.Fatal(err)
	}
	return out.Result
}

// TestSessionFile brings the views back that a session file of Neovim names.
func TestSessionFile(t *testing.T) {
	Each(t, func(t *testing.T, version string) {
		home := editor.NewHome(t)
		file := filepath.Join(home.Dir, "session.vim")
		t.Run("made", func(t *testing.T) {
			n := Start(t, Options{Version: version, Home: home})
			n.Command("Convls chat")
			n.AwaitLoaded()
			n.Send("count to 3")
			n.AwaitIdle(3)
			n.openGraph()
			n.Command("mksession " + file)
		})
		t.Run("read", func(t *testing.T) {
			n := Start(t, Options{Version: version, Home: home})
			n.Command("silent source " + file)
			n.AwaitLua("the chat", "chat and #chat.session.rows == 3")
			n.wantScreen("## Assistant  offline", "◀ HEAD 1 2 3")
			n.Command("Convls chat")
			n.Send("count to 4")
			n.AwaitIdle(5)
		})
	})
}
