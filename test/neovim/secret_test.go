package neovim

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"convls/test/fakemodel"
)

// openGuarded opens a chat of a model that answers only to a key; source is the setting
// key, in Lua.
func openGuarded(t *testing.T, version, source string) (*Neovim, *fakemodel.Server) {
	t.Helper()
	m := fakemodel.New(t)
	m.Respond(func(r fakemodel.Request) fakemodel.Reply {
		if r.Header.Get("Authorization") == "Bearer open-sesame" {
			return fakemodel.Say("welcome")
		}
		return fakemodel.Fail(401, `{"error":{"message":"Incorrect API key provided","code":"invalid_api_key"}}`)
	})
	n := Start(t, Options{Version: version, Config: strings.Replace(fakeConfig(m), "key = false", "key = "+source, 1)})
	n.Command("Convls chat")
	n.AwaitLoaded()
	return n, m
}

// The question of openGuarded's model, and what it asks for then.
const (
	question = "fake wants a right key: <C-Y> to type it, <C-N> for none"
	prompt   = "fake wants a right key (empty for none):"
)

// sendGuarded sends a message and waits for the question for the key. Nothing else is
// answered while that is on the screen.
func (n *Neovim) sendGuarded() {
	n.t.Helper()
	n.Type("<Esc>G$ahello<C-CR><Esc>")
	n.AwaitText(question)
}

// typeKey answers the question.
func (n *Neovim) typeKey() {
	n.t.Helper()
	n.Type("<C-Y>")
	n.AwaitText(prompt)
	n.Type("open-sesame<CR>")
}

// wantNoKey looks for the key, and for what stood for it while it was typed.
func (n *Neovim) wantNoKey() {
	n.t.Helper()
	if s := n.Screen() + n.Messages(); strings.Contains(s, "sesame") || strings.Contains(s, "***") {
		n.t.Errorf("the key is shown:\n%s", s)
	}
}

// keys returns the keys that a model was asked with.
func keys(m *fakemodel.Server) string {
	var all []string
	for _, r := range m.Requests() {
		all = append(all, strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "))
	}
	return strings.Join(all, ",")
}

// TestKeyIsAsked types the key when the model has refused; it is on no screen and in no
// message.
func TestKeyIsAsked(t *testing.T) {
	Each(t, func(t *testing.T, version string) {
		n, _ := openGuarded(t, version, `"ask"`)
		n.sendGuarded()
		n.typeKey()
		n.AwaitText("welcome")
		n.wantNoKey()
		// It is not asked for again.
		n.Send("again")
		n.AwaitIdle(5)
	})
}

// TestKeyIsDeclined asks once, and the error says what to do.
func TestKeyIsDeclined(t *testing.T) {
	for _, no := range []string{"<C-N>", "<C-Y><CR>"} {
		n, _ := openGuarded(t, "", `"ask"`)
		n.sendGuarded()
		n.Type(no)
		n.wantScreen("Incorrect API key provided")
		n.Send("again")
		n.AwaitLua("the second failure", "#chat.session.rows == 5 and chat.session:last().status == 'failed'")
	}
}

// TestKeyIsNotWhatIsTyped: whatever is typed on goes where it was meant, and the person is
// asked when nothing is half done.
func TestKeyIsNotWhatIsTyped(t *testing.T) {
	Each(t, func(t *testing.T, version string) {
		const told = "you are asked for it in normal mode"
		n, m := openGuarded(t, version, `"ask"`)
		n.Type("<Esc>G$ahello<C-CR>")
		n.AwaitText(told)
		n.Type("a private text<CR>open-sesame<CR>")
		n.AwaitLua("the text", "table.concat(chat.view:prompt(), '|') == 'a private text|open-sesame|'")
		// Here it may ask, but these keys are no answer, however fast they come.
		n.Type("<Esc>:let said = 'yes'<CR>i<BS><C-v>é<Esc>")
		n.AwaitText(question)
		n.Type("yy:let said ..= getreg()<CR>2")
		n.AwaitScreen("the count", func(s string) bool { return strings.Contains(s, "2") && !strings.Contains(s, question) })
		n.Type("<Esc>")
		n.AwaitText(question)
		n.Type("<C-N>")
		n.wantScreen("Incorrect API key provided")
		n.AwaitLua("the text to be where it was meant", "vim.g.said == 'yesopen-sesameé\\n'")
		if got := keys(m); got != "" {
			t.Errorf("the model got the keys %q", got)
		}
	})
}

// TestKeyIsNotAskedInCommandLine, nor while a macro is recorded, which would keep it.
func TestKeyIsNotAskedInCommandLine(t *testing.T) {
	Each(t, func(t *testing.T, version string) {
		n, _ := openGuarded(t, version, `"ask"`)
		n.Type("<Esc>qa:let said = 'half")
		n.AwaitText("let said = 'half")
		n.Lua(`require("convls.chat").current().view:set_prompt({ "hi" })
require("convls.chat").current():send()`)
		n.Type(" and half'<CR>")
		n.AwaitText("you are asked for it after the macro")
		n.AwaitLua("the command", "vim.g.said == 'half and half'")
		n.Type("q")
		n.AwaitText(question)
		n.typeKey()
		n.AwaitText("welcome")
		n.wantNoKey()
		if got, _ := n.Lua(`return vim.fn.getreg("a") .. vim.fn.execute("history all")`).(string); strings.Contains(got, "sesame") {
			t.Errorf("the key is kept: %s", got)
		}
	})
}

// TestKeyIsAskedOnce for all who wait for it.
func TestKeyIsAskedOnce(t *testing.T) {
	Each(t, func(t *testing.T, version string) {
		n, m := openGuarded(t, version, `"ask"`)
		first := n.Lua(`return require("convls.chat").current().session.id`)
		n.Command("Convls new second")
		n.AwaitLua("the second chat", "chat and chat.session.info and chat.session.id ~= args[1]", first)
		n.Type("<Esc>i")
		n.AwaitLua("insert mode", "vim.api.nvim_get_mode().mode == 'i'")
		n.Lua(`asked = 0
local get = require("convls.secrets").get
require("convls.secrets").get = function(...) asked = asked + 1; return get(...) end
for _, buf in ipairs(vim.api.nvim_list_bufs()) do
  local chat = require("convls.chat").of(buf)
  if chat then
    chat.view:set_prompt({ "hi" })
    chat:send()
  end
end`)
		n.AwaitLua("both to wait", "asked == 2")
		n.Type("<Esc>")
		n.AwaitText(question)
		n.typeKey()
		n.AwaitLua("both answers", "chat.session:last().status == 'sealed' and #chat.session.rows == 3")
		n.AwaitScreen("both answers", func(s string) bool { return strings.Count(s, "welcome") == 2 })
		n.wantNoKey()
		if got, want := keys(m), "open-sesame,open-sesame"; strings.Trim(got, ",") != want {
			t.Errorf("the model got the keys %q, want %q", got, want)
		}
	})
}

// TestKeyComesLate: a key that is typed when the server no longer waits is taken the
// next time.
func TestKeyComesLate(t *testing.T) {
	for name, hurry := range map[string]string{
		"after the patience": `local defer = vim.defer_fn
vim.defer_fn = function(f, ms) if ms == 60000 then expire = f else return defer(f, ms) end end`,
		"without LuaJIT": "jit = nil",
	} {
		t.Run(name, func(t *testing.T) {
			n, _ := openGuarded(t, "", `"ask"`)
			n.Lua(hurry)
			n.Lua(`vim.keymap.set("c", "<F2>", function() if expire then expire() end return "" end, { expr = true })`)
			n.sendGuarded()
			n.Type("<C-Y>")
			n.AwaitText(prompt)
			n.Type("<F2>open-sesame<CR>")
			n.wantMessage("the key of fake came late: :Convls retry asks the model again")
			n.AwaitLua("the failure", "chat.session:last().status == 'failed'")
			n.Command("Convls retry")
			n.AwaitText("welcome")
			n.wantNoKey()
		})
	}
}

// TestKeyInNoLog: vim.lsp writes each message to its log at the level trace.
func TestKeyInNoLog(t *testing.T) {
	Each(t, func(t *testing.T, version string) {
		for _, source := range []string{`"ask"`, `function() return "open-sesame" end`} {
			n, _ := openGuarded(t, version, source)
			n.Lua(`vim.lsp.set_log_level("trace")`)
			if source == `"ask"` {
				n.sendGuarded()
				n.typeKey()
			} else {
				n.Send("hello")
			}
			n.AwaitText("welcome")
			// Afterwards it writes again.
			n.Send("the last words")
			n.AwaitIdle(5)
			log := ""
			err := filepath.WalkDir(n.Home.Dir, func(path string, entry fs.DirEntry, err error) error {
				if err != nil || entry.IsDir() {
					return err
				}
				text, err := os.ReadFile(path)
				if strings.Contains(string(text), "sesame") {
					t.Errorf("the key is in %s", path)
				}
				if filepath.Base(path) == "lsp.log" {
					log = string(text)
				}
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			for _, want := range []string{"convls/secret/get", "the last words"} {
				if !strings.Contains(log, want) {
					t.Errorf("there is no %q in the log", want)
				}
			}
		}
	})
}

// TestKeyOfFunction gets the key from a person's function, and nothing of an error that
// it raises is shown.
func TestKeyOfFunction(t *testing.T) {
	for _, row := range []struct{ key, want string }{
		{`function(provider, url, reason) return provider == "fake" and reason == "rejected" and "open-sesame" or nil end`, "welcome"},
		{`function() error("the vault says open-sesame") end`, "the setting key failed for fake"},
	} {
		n, _ := openGuarded(t, "", row.key)
		n.Send("hello")
		n.AwaitScreen(row.want, func(s string) bool { return strings.Contains(s, row.want) || strings.Contains(n.Messages(), row.want) })
		if s := n.Screen() + n.Messages(); strings.Contains(s, "sesame") {
			t.Errorf("the key is shown:\n%s", s)
		}
	}
}
