package neovim

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// quietNotify keeps what the plugin tells, so that no message asks for a key.
const quietNotify = `
told = {}
vim.notify = function(text) told[#told + 1] = text end
function heard(text) return table.concat(told, "\n"):find(text, 1, true) end`

// script writes a shell script that stands for a server.
func script(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "server.sh")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

// answer is a script that answers the first request, and nothing afterwards.
func answer(body string) string {
	return fmt.Sprintf("printf 'Content-Length: %d\\r\\n\\r\\n%%s' '%s'\nexec cat >/dev/null\n", len(body), body)
}

// TestProgramsThatAreNoServer: the person is told what is wrong, and with the right
// program :Convls restart helps.
func TestProgramsThatAreNoServer(t *testing.T) {
	for _, row := range []struct{ name, script, want string }{
		{"silent", "exec cat >/dev/null\n", "server.sh does not answer. Is it convls? Next: :checkhealth convls, then :Convls restart"},
		{"another server", answer(`{"jsonrpc":"2.0","id":1,"result":{"capabilities":{}}}`), "server.sh is no convls"},
		{"one that says only yes", answer(`{"jsonrpc":"2.0","id":1,"result":{"capabilities":{"experimental":{"convls":true}}}}`), "server.sh is no convls"},
		{"one that ends", "exit 3\n", "the server has ended (exit code 3, before it answered)"},
	} {
		t.Run(row.name, func(t *testing.T) {
			Each(t, func(t *testing.T, version string) {
				// What takes 10 s is here when the first second is over.
				n := Start(t, Options{Version: version, Config: fmt.Sprintf(`right = program; vim.g.convls = { cmd = %q }
local defer = vim.defer_fn
vim.defer_fn = function(f, ms) return defer(f, ms == 10000 and 1000 or ms) end`, script(t, row.script)) + quietNotify})
				n.Command("Convls chat")
				n.AwaitLua("the message", "heard(args[1])", row.want)
				n.Lua(`require("convls").setup({ cmd = right })`)
				n.Command("Convls restart")
				n.AwaitLua("the server", "require('convls.server').status().state == 'ready'")
				if told, _ := n.Lua(`return table.concat(told, "\n")`).(string); strings.Contains(told, "traceback") || strings.Count(told, row.want) != 1 {
					t.Errorf("told:\n%s", told)
				}
				if m := n.Messages(); m != "" {
					t.Errorf("there are messages that are not ours:\n%s", m)
				}
			})
		})
	}
}

// TestHealthOfSilence: :checkhealth says which program does not answer.
func TestHealthOfSilence(t *testing.T) {
	Each(t, func(t *testing.T, version string) {
		silent := script(t, "exec cat >/dev/null\n")
		n := Start(t, Options{Version: version, Config: fmt.Sprintf(`vim.g.convls = { cmd = %q }
local wait = vim.wait
vim.wait = function(ms, ...) return wait(ms == 10000 and 1 or ms, ...) end`, silent)})
		n.Command("checkhealth convls")
		text := strings.Join(n.Lines(0), "\n")
		for _, want := range []string{"it did not answer within 10 s", "is " + silent + " convls? In a shell it answers to the command version", "then :Convls restart"} {
			if !strings.Contains(text, want) {
				t.Errorf("checkhealth does not say %q:\n%s", want, text)
			}
		}
	})
}

// TestGarbage: a program that writes what is no message.
func TestGarbage(t *testing.T) {
	Each(t, func(t *testing.T, version string) {
		n := Start(t, Options{Version: version, Config: fmt.Sprintf(`right = program; vim.g.convls = { cmd = %q }
local defer = vim.defer_fn
vim.defer_fn = function(f, ms) return defer(f, ms == 10000 and 1 or ms) end`, script(t, "echo hello world\nexec cat >/dev/null\n")) + quietNotify})
		n.Command("Convls chat")
		n.AwaitLua("the message", "heard('server.sh does not answer') or heard('before it answered')")
		n.Lua(`require("convls").setup({ cmd = right })`)
		n.Command("Convls restart")
		n.AwaitLua("the server", "require('convls.server').status().state == 'ready'")
	})
}

// TestSettingsThatCanNotBeSent come from a person's vim.lsp.config, which nobody checks.
func TestSettingsThatCanNotBeSent(t *testing.T) {
	n := Start(t, Options{Version: "0.12", Config: `vim.g.convls = { cmd = program }
vim.lsp.config("convls", { init_options = { model = function() end } })` + quietNotify})
	n.Command("Convls chat")
	n.AwaitLua("the message", "heard('starting the server: the settings can not be sent: Cannot serialise function')")
	if got := n.Lua(`return require("convls.server").status().state`); got != "off" {
		t.Errorf("the state is %v", got)
	}
	n.Lua(`vim.lsp.config("convls", { init_options = { model = "offline" } })`)
	n.Command("Convls restart")
	n.AwaitLua("the server", "require('convls.server').status().state == 'ready'")
	if got := n.Lua(`return table.concat(told, "\n")`).(string); strings.Contains(got, "traceback") {
		t.Errorf("told:\n%s", got)
	}
}

// TestRestartAndGoOn: what is asked while the old server leaves is answered by the new one.
func TestRestartAndGoOn(t *testing.T) {
	Each(t, func(t *testing.T, version string) {
		n := Start(t, Options{Version: version, Config: "vim.g.convls = { cmd = program }" + quietNotify})
		n.Command("Convls chat")
		n.AwaitLoaded()
		first := n.serverPID()
		n.Lua(`vim.cmd("Convls restart")
require("convls.server").request("convls/status", {}, function(err, status) failed, status_then = err, status end)
vim.cmd("Convls restart")`)
		n.AwaitLua("an answer", "failed or status_then")
		if pid := n.Lua("return failed or status_then.pid"); whole(pid) <= 0 || int(whole(pid)) == first {
			t.Errorf("the answer is %v, the old server was %d", pid, first)
		}
		if got := n.Lua(`return table.concat(told, "\n")`); got != "" {
			t.Errorf("told: %v", got)
		}
	})
}

// TestShutdown says that the server is off, and what starts it.
func TestShutdown(t *testing.T) {
	Each(t, func(t *testing.T, version string) {
		n := Start(t, Options{Version: version, Config: "vim.g.convls = { cmd = program }" + quietNotify})
		n.Command("Convls chat")
		n.AwaitLoaded()
		// What a view still asks starts no other server.
		n.Lua(`vim.cmd("Convls shutdown")
require("convls.server").request("convls/status", {}, function(err) refused = err and err.message end)`)
		n.AwaitLua("the refusal", "refused == 'the server was stopped'")
		n.AwaitLua("the message", "heard('the server was stopped; the next command starts it')")
		n.Command("Convls shutdown")
		n.AwaitLua("the other message", "heard('the server is off; the next command starts it')")
		if got := n.Lua("return require('convls.server').status().state .. #told"); got != "off2" {
			t.Errorf("state and number of messages are %v", got)
		}
		if n.serverPID() <= 0 || strings.Contains(n.Messages(), "deprecated") {
			t.Errorf("messages: %s", n.Messages())
		}
	})
}
