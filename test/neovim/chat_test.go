package neovim

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"convls/client"
	"convls/protocol"
	"convls/test/editor"
	"convls/test/fakemodel"
)

// fakeConfig is a person's configuration with the fake model.
func fakeConfig(m *fakemodel.Server) string {
	return fmt.Sprintf(`vim.g.convls = { cmd = program, key = false, settings = {
		model = "fake/fake", providers = { fake = { kind = "openai", base_url = %q, timeout_ms = 60000 } },
		models = { ["fake/fake"] = { window = 32768, max_output = 1000, input_price = 1000, output_price = 2000 } },
		turn = { max_retries = 0 } } }`, m.URL())
}

// openChat starts a Neovim with an open chat and an empty prompt; without a model
// it is the offline one.
func openChat(t *testing.T, version string, m *fakemodel.Server) *Neovim {
	t.Helper()
	o := Options{Version: version}
	if m != nil {
		o.Config = fakeConfig(m)
	}
	n := Start(t, o)
	n.Command("Convls chat")
	n.AwaitLoaded()
	return n
}

// AwaitLoaded waits until the current chat has its transcript.
func (n *Neovim) AwaitLoaded() {
	n.t.Helper()
	n.AwaitLua("the chat", "chat and chat.session.connected and chat.session.info")
}

// AwaitIdle waits until the current chat has so many rows on HEAD's branch, nothing
// is being written, and nothing is asked for.
func (n *Neovim) AwaitIdle(rows int) {
	n.t.Helper()
	n.AwaitLua(fmt.Sprintf("%d rows and no running turn", rows),
		"#chat.session.rows == args[1] and next(chat.session.running) == nil and chat.session:last().status ~= 'open' and not chat.timing "+
			"and not chat.session.info_busy and not chat.session.rows_busy", rows)
}

// Send writes a message into the prompt and sends it.
func (n *Neovim) Send(text string) {
	n.t.Helper()
	n.Type("<Esc>G$a" + text + "<C-CR><Esc>")
	n.AwaitLua("the message to be taken", "not chat.sending and table.concat(chat.view:prompt()) == ''")
}

// Prompt returns what stands in the prompt of the current chat.
func (n *Neovim) Prompt() string {
	n.t.Helper()
	text, _ := n.Lua(`return table.concat(require("convls.chat").current().view:prompt(), "\n")`).(string)
	return text
}

// Transcript returns the lines above the prompt.
func (n *Neovim) Transcript() string {
	n.t.Helper()
	text, _ := n.Lua(`local view = require("convls.chat").current().view
return table.concat(vim.api.nvim_buf_get_lines(view.buf, 0, view:end_row(), false), "\n")`).(string)
	return text
}

// wantLines waits until the transcript is this. A title comes after the answer that
// it is made from.
func (n *Neovim) wantLines(want ...string) {
	n.t.Helper()
	text := strings.Join(want, "\n")
	if n.Lua(`local view, text = require("convls.chat").current().view, ...
return (vim.wait(10000, function()
  return table.concat(vim.api.nvim_buf_get_lines(view.buf, 0, view:end_row(), false), "\n") == text
end, 5))`, text) != true {
		n.t.Errorf("the transcript is\n%s\n--- want\n%s", n.Transcript(), text)
	}
}

// wantScreen fails the test unless the screen shows each text.
func (n *Neovim) wantScreen(texts ...string) {
	n.t.Helper()
	for _, text := range texts {
		n.AwaitText(text)
	}
}

// wantMessage waits until the screen shows each text, wherever its lines are broken.
func (n *Neovim) wantMessage(texts ...string) {
	n.t.Helper()
	bare := func(s string) string { return strings.Join(strings.Fields(s), "") }
	for _, text := range texts {
		n.AwaitScreen(fmt.Sprintf("%q", text), func(s string) bool { return strings.Contains(bare(s), bare(text)) })
	}
}

// checkout makes a folder that looks as a clone does after make build.
func checkout(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	// Neovim finds out where links lead, so that the plugin is a copy.
	if err := os.CopyFS(filepath.Join(root, "editors", "neovim"), os.DirFS(Plugin(t))); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(root, "bin"), 0o750); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(editor.Program(t), filepath.Join(root, "bin", "convls")); err != nil {
		t.Fatal(err)
	}
	return root
}

// TestFirstAnswer is the way of README: a clone, a Neovim, :Convls chat, a message,
// an answer of the offline model. Nothing is configured.
func TestFirstAnswer(t *testing.T) {
	Each(t, func(t *testing.T, version string) {
		n := Start(t, Options{Version: version, Checkout: checkout(t), Args: []string{"--cmd", "set runtimepath^=editors/neovim", "-c", "Convls chat"}})
		n.AwaitLoaded()
		n.wantScreen("# New chat", "── Message")
		n.Type("icount to 3<C-CR>")
		n.wantScreen("1 2 3", "## Assistant  offline", "count to 3 · offline ·")
		n.AwaitIdle(3)
		n.wantLines("# count to 3", "", "## You", "count to 3", "", "## Assistant", "1 2 3", "")
		if got := n.Prompt(); got != "" {
			t.Errorf("the prompt has %q", got)
		}
		if messages := n.Messages(); messages != "" {
			t.Errorf("there were messages: %s", messages)
		}
	})
}

// TestStreaming reads a reply of 1,000 pieces, with a cursor at the end and another
// window that shows the beginning.
func TestStreaming(t *testing.T) {
	Each(t, func(t *testing.T, version string) {
		m := fakemodel.New(t)
		n := openChat(t, version, m)
		pieces := make([]string, 1000)
		for i := range pieces {
			pieces[i] = fmt.Sprintf("word%d ", i)
			if i%10 == 9 {
				pieces[i] += "\n"
			}
		}
		gate := m.Gate()
		m.Script(fakemodel.Say(pieces...).Hold(gate, 500))
		n.Command("split")
		n.Command("normal! gg")
		n.Command("wincmd p")
		n.Send("go")
		gate.Wait(t)
		n.wantScreen("word498", "writing")
		// The cursor is at the end and stays there; the other window stays at the top.
		top := n.Lua(`local out = {}
for _, win in ipairs(vim.fn.win_findbuf(vim.api.nvim_get_current_buf())) do out[#out + 1] = vim.fn.line("w0", win) end
table.sort(out)
return out`)
		lines, _ := top.([]any)
		if len(lines) != 2 || whole(lines[0]) != 1 || whole(lines[1]) < 20 {
			t.Errorf("the windows begin at lines %v, want 1 and the end", top)
		}
		// A person who reads further up is left there.
		n.Type("gg")
		gate.Release()
		n.AwaitIdle(3)
		if at := n.Lua(`return vim.fn.line(".")`); whole(at) != 1 {
			t.Errorf("the cursor went to line %v", at)
		}
		if text := n.Transcript(); !strings.Contains(text, "\n"+strings.Join(pieces, "")) {
			t.Errorf("the reply is not whole:\n%s", text)
		}
	})
}

// TestTypingWhileItStreams: what a person types in the prompt is not disturbed by
// the text that arrives above it.
func TestTypingWhileItStreams(t *testing.T) {
	Each(t, func(t *testing.T, version string) {
		m := fakemodel.New(t)
		n := openChat(t, version, m)
		gate := m.Gate()
		m.Script(fakemodel.Say(strings.SplitAfter(strings.Repeat("word \n", 600), " ")...).Hold(gate, 100))
		n.Send("go")
		gate.Wait(t)
		n.Type("Gidraft")
		n.AwaitLua("the draft", "table.concat(chat.view:prompt()) == 'draft'")
		gate.Release()
		for i := range 10 {
			n.Type(fmt.Sprintf(" %d", i))
		}
		n.AwaitIdle(3)
		n.Type("<CR>end<Esc>")
		n.AwaitLua("the draft to be whole", "table.concat(chat.view:prompt(), '/') == 'draft 0 1 2 3 4 5 6 7 8 9/end'")
		if got := strings.Count(n.Transcript(), "word"); got != 600 {
			t.Errorf("the reply has %d words, want 600", got)
		}
	})
}

// TestStaleHead: a message is not sent to another branch than the one that the
// person sees; the view is brought up to date, and the draft stays.
func TestStaleHead(t *testing.T) {
	Each(t, func(t *testing.T, version string) {
		m := fakemodel.New(t)
		n := openChat(t, version, m)
		n.Send("one")
		n.AwaitIdle(3)
		// What another client has moved, and was not told of yet, looks so.
		n.Lua(`local session = require("convls.chat").current().session
session.head = session.rows[1].id
require("convls.server").client_id = function() return "another" end`)
		n.Type("<Esc>G$atwo<C-CR><Esc>")
		n.wantMessage("moved by", "Next: the view was brought up to date; look, then do it again")
		n.Type("<CR>")
		n.AwaitLua("the view", "chat.session.head == chat.session.rows[3].id and not chat.sending")
		if got := n.Prompt(); got != "two" {
			t.Errorf("the prompt has %q, not the draft", got)
		}
		n.Command("Convls send")
		n.AwaitIdle(5)
	})
}

// TestStop ends an answer: its text stays, and it is marked.
func TestStop(t *testing.T) {
	Each(t, func(t *testing.T, version string) {
		m := fakemodel.New(t)
		n := openChat(t, version, m)
		gate := m.Gate()
		m.Script(fakemodel.Say("one ", "two ", "three").Hold(gate, 2))
		n.Send("go")
		n.wantScreen("one two", "writing…")
		n.Command("Convls stop")
		n.AwaitIdle(3)
		n.wantScreen("## Assistant  stopped")
		n.wantLines("# go", "", "## You", "go", "", "## Assistant", "one two ", "")
		n.Command("Convls stop")
		if messages := n.Messages(); !strings.Contains(messages, "no answer is being written") {
			t.Errorf("nothing to stop was told as %q", messages)
		}
	})
}

// TestVersions retries, steps between the versions, edits, and rewinds.
func TestVersions(t *testing.T) {
	Each(t, func(t *testing.T, version string) {
		m := fakemodel.New(t)
		n := openChat(t, version, m)
		m.Script(fakemodel.Say("first"), fakemodel.Say("second"), fakemodel.Say("third"))
		n.Send("question")
		n.AwaitIdle(3)
		n.Command("Convls retry")
		n.wantScreen("second", "## Assistant  2/2")
		n.AwaitIdle(3)
		n.Type("[b")
		n.wantScreen("first", "## Assistant  1/2")
		n.wantLines("# question", "", "## You", "question", "", "## Assistant", "first", "")
		n.Type("]b")
		n.wantScreen("second", "## Assistant  2/2")
		n.Type("]b")
		n.wantScreen("this is the newest version")

		// An edit opens the message; what was in the prompt comes back after it.
		n.Type("<Esc>G$adraft<Esc>")
		n.Command("Convls edit")
		n.wantScreen("Another version of your message")
		if got := n.Prompt(); got != "question" {
			t.Errorf("the prompt has %q, not the message", got)
		}
		n.Command("Convls edit cancel")
		if got := n.Prompt(); got != "draft" {
			t.Errorf("the prompt has %q, not the draft", got)
		}
		n.Command("Convls edit")
		n.Type("<Esc>G$a, again<C-CR><Esc>")
		n.wantScreen("third", "## You  2/2")
		n.AwaitIdle(3)
		n.wantLines("# question", "", "## You", "question, again", "", "## Assistant", "third", "")
		if got := n.Prompt(); got != "draft" {
			t.Errorf("the prompt has %q, not the draft", got)
		}
		n.Type("[b")
		n.wantScreen("## You  1/2", "second")

		// A rewind brings the message back into an empty prompt.
		n.Type("<Esc>Gcc<Esc>")
		n.Command("Convls rewind")
		n.AwaitLua("the rewind", "#chat.session.rows == 1 and table.concat(chat.view:prompt()) == 'question'")
		n.wantLines("# question", "")
	})
}

// TestEditReply writes another version of a reply: nothing is asked.
func TestEditReply(t *testing.T) {
	Each(t, func(t *testing.T, version string) {
		m := fakemodel.New(t)
		n := openChat(t, version, m)
		m.Script(fakemodel.Say("wrong"))
		n.Send("question")
		n.AwaitIdle(3)
		n.Type("<Esc>?wrong<CR>")
		n.Command("Convls edit")
		n.wantScreen("Another version of the reply")
		n.Type("<Esc>Gccright<C-CR><Esc>")
		n.wantScreen("## Assistant  2/2", "right")
		n.AwaitIdle(3)
		if got := len(m.Requests()); got != 1 {
			t.Errorf("the model was asked %d times, want once", got)
		}
	})
}

// TestFailure shows why a reply failed and what to do next.
func TestFailure(t *testing.T) {
	Each(t, func(t *testing.T, version string) {
		m := fakemodel.New(t)
		n := openChat(t, version, m)
		m.Script(fakemodel.Reply{Status: 401, Body: `{"error":{"message":"bad key"}}`})
		n.Send("go")
		n.wantScreen("## Assistant  failed", "bad key", "Next: ")
		n.AwaitIdle(3)
		m.Script(fakemodel.Say("fine now"))
		n.Command("Convls retry")
		n.wantScreen("fine now", "2/2")
	})
}

// TestQueue shows messages that wait, and takes one out.
func TestQueue(t *testing.T) {
	Each(t, func(t *testing.T, version string) {
		m := fakemodel.New(t)
		n := openChat(t, version, m)
		gate := m.Gate()
		m.Script(fakemodel.Say("one").Hold(gate, 0), fakemodel.Say("two"))
		n.Send("first")
		gate.Wait(t)
		n.Send("second")
		n.Send("third")
		n.wantScreen("queued 1: second", "queued 2: third", "writing, 2 queued")
		n.Command("Convls stop queued")
		n.AwaitLua("one to be taken out", "#chat.session.queue == 1")
		gate.Release()
		n.AwaitIdle(5)
		n.wantLines("# first", "", "## You", "first", "", "## Assistant", "one", "", "## You", "second", "", "## Assistant", "two", "")
		n.AwaitScreen("no queue", func(s string) bool { return !strings.Contains(s, "queued 1:") })
	})
}

// TestAttach attaches one of each kind, sees the tokens before it is sent, and
// what the model gets.
func TestAttach(t *testing.T) {
	Each(t, func(t *testing.T, version string) {
		m := fakemodel.New(t)
		home := editor.NewHome(t)
		path := filepath.Join(home.Dir, "poem.txt")
		if err := os.WriteFile(path, []byte("line one\nline two\nline three\nline four\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		n := Start(t, Options{Version: version, Home: home, Config: fakeConfig(m), Args: []string{path}})
		n.Command("Convls chat")
		n.AwaitLoaded()
		n.Command("wincmd p")
		n.Type("2GVj:Convls attach<CR>")
		n.wantScreen("+ 1 selection poem.txt:2-3 (", "tokens)")
		n.Command("Convls attach")
		n.wantScreen("+ 2 file poem.txt (")
		n.Command("Convls attach file " + path)
		n.Command("Convls attach diagnostics")
		n.wantScreen("the buffer has no diagnostics")
		n.Lua(`vim.diagnostic.set(vim.api.nvim_create_namespace("t"), 0, { { lnum = 2, col = 5, message = "does not rhyme", source = "ear" } })
vim.fn.setqflist({}, " ", { title = "grep", items = { { filename = "poem.txt", lnum = 4, col = 1, text = "four" } } })`)
		n.Command("Convls attach diagnostics")
		n.Command("Convls attach quickfix")
		n.wantScreen("+ 4 diagnostics poem.txt (", "+ 5 quickfix (")
		n.AwaitLua("the tokens of all", "vim.iter(chat.attachments):all(function(a) return a.tokens and a.tokens > 0 end)")
		n.Command("Convls detach 3")
		n.Command("wincmd p")
		n.Send("look")
		n.AwaitIdle(3)
		got := m.Requests()[0].LastUser()
		for _, want := range []string{"line two\nline three", "line one\nline two\nline three\nline four", "3:6: error: does not rhyme (ear)", "poem.txt:4:1: four", "look"} {
			if !strings.Contains(got, want) {
				t.Errorf("the model was not shown %q:\n%s", want, got)
			}
		}
		if n := strings.Count(got, "line four"); n != 1 {
			t.Errorf("the file came %d times: one was taken off", n)
		}
		n.AwaitScreen("no attachment", func(s string) bool { return !strings.Contains(s, "+ 1 selection") })
		// In the transcript an attachment is folded, with where it came from.
		n.Type("gg")
		n.wantScreen("+ selection poem.txt:2-3")
		if screen := n.Screen(); strings.Contains(screen, "3:6: error") {
			t.Errorf("attachments are not folded:\n%s", screen)
		}
	})
}

// TestPromptIsUndoneAlone: undo takes back what was typed, and never the
// transcript; and nobody can write into that.
func TestPromptIsUndoneAlone(t *testing.T) {
	Each(t, func(t *testing.T, version string) {
		m := fakemodel.New(t)
		n := openChat(t, version, m)
		m.Script(fakemodel.Say("answer"))
		n.Send("question")
		n.AwaitIdle(3)
		transcript := n.Transcript()
		n.Type("<Esc>G$aone<Esc>otwo<Esc>")
		n.AwaitLua("the draft", "table.concat(chat.view:prompt(), '/') == 'one/two'")
		n.Type("u")
		n.AwaitLua("one undo", "table.concat(chat.view:prompt(), '/') == 'one'")
		// Nothing of the transcript is undone, not even to be put right at once.
		n.Lua(`local view = require("convls.chat").current().view
local mend = view.mend
function view.mend(...)
  mended = true
  return mend(...)
end`)
		n.Type("uuuu")
		n.AwaitLua("undo to the beginning", "table.concat(chat.view:prompt(), '/') == ''")
		n.wantLines(strings.Split(transcript, "\n")...)
		if n.Lua("return mended") != nil {
			t.Error("undo reached the transcript")
		}
		n.Type("ggdd")
		n.AwaitText("'modifiable' is off")
		n.wantLines(strings.Split(transcript, "\n")...)
		// From the prompt a command can reach everything: the transcript comes back.
		n.Type("<Esc>Gidraft<Esc>")
		n.Type(":%s/e/X/g<CR>")
		n.AwaitLua("the transcript to be mended", "not chat.view.broken and table.concat(chat.view:prompt()) == 'draft'")
		n.wantLines(strings.Split(transcript, "\n")...)
		n.Type(":%d<CR>")
		n.AwaitLua("an empty prompt", "not chat.view.broken and table.concat(chat.view:prompt()) == ''")
		n.wantLines(strings.Split(transcript, "\n")...)
		n.Send("and more")
		n.AwaitIdle(5)
	})
}

// TestWindowsFollow: two windows, and a chat that is opened again, show the same.
func TestWindowsFollow(t *testing.T) {
	Each(t, func(t *testing.T, version string) {
		m := fakemodel.New(t)
		n := openChat(t, version, m)
		// One cursor is in the prompt, the other on the line above it.
		n.Command("split")
		n.Command("normal! Gk")
		n.Command("wincmd p")
		lines := make([]string, 60)
		for i := range lines {
			lines[i] = fmt.Sprintf("line %d\n", i)
		}
		m.Script(fakemodel.Say(lines...))
		n.Send("hello there")
		n.AwaitIdle(3)
		// Both are at the end, and both windows went along.
		n.AwaitScreen("the end in both windows", func(s string) bool { return strings.Count(s, "line 59") == 2 })
		// A chat whose buffer was deleted opens again, and follows.
		n.Command("only")
		n.Command("bdelete")
		n.AwaitLua("the session to be let go", "not chat")
		n.Command("Convls chat")
		n.AwaitLoaded()
		n.wantScreen("line 59")
		n.Send("and again")
		n.AwaitIdle(5)
	})
}

// TestLostDeltas: text that came twice is shown once, and where some is missing the
// whole is asked for.
func TestLostDeltas(t *testing.T) {
	Each(t, func(t *testing.T, version string) {
		m := fakemodel.New(t)
		n := openChat(t, version, m)
		gate := m.Gate()
		m.Script(fakemodel.Say("first ", "second ", "third").Hold(gate, 2))
		n.Send("go")
		n.wantScreen("first second")
		emit := `local chat = require("convls.chat").current()
local row = chat.session:last()
require("convls.bus").emit(chat.session.id, "delta", { session_id = chat.session.id, node_id = row.id, part = 0, kind = "text", offset = select(1, ...), text = select(2, ...) })`
		n.Lua(emit, 0, "first ")
		if got := n.Lua(`return require("convls.chat").current().session:last().content[1].text`); got != "first second " {
			t.Errorf("what came twice is there twice: %q", got)
		}
		n.Lua(emit, 500, "from far away")
		n.AwaitLua("what is missing to be asked for", "next(chat.session.held) == nil and chat.session:last().content[1].text == 'first second '")
		gate.Release()
		n.AwaitIdle(3)
		n.wantLines("# go", "", "## You", "go", "", "## Assistant", "first second third", "")
	})
}

// TestReset takes a new snapshot where the server says that events were lost.
func TestReset(t *testing.T) {
	Each(t, func(t *testing.T, version string) {
		m := fakemodel.New(t)
		n := openChat(t, version, m)
		n.Send("go")
		n.AwaitIdle(3)
		n.wantScreen("# go")
		want := n.Transcript()
		n.Type("<Esc>G$adraft<Esc>")
		n.Lua(`local session = require("convls.chat").current().session
table.remove(session.rows)
session:tell("rows")
require("convls.bus").emit(session.id, "reset", { session_id = session.id })`)
		n.AwaitLua("the rows", "#chat.session.rows == 3")
		n.wantLines(strings.Split(want, "\n")...)
		if got := n.Prompt(); got != "draft" {
			t.Errorf("the draft is %q", got)
		}
	})
}

// TestLooks: a chat is Markdown by treesitter, and its groups are links that a
// person's own win over.
func TestLooks(t *testing.T) {
	Each(t, func(t *testing.T, version string) {
		n := Start(t, Options{Version: version, Config: `vim.g.convls = { cmd = program }
vim.api.nvim_set_hl(0, "ConvlsUser", { link = "Error" })`})
		n.Command("Convls chat")
		n.AwaitLoaded()
		if got := n.Lua(`return vim.bo.filetype .. " " .. tostring(vim.treesitter.highlighter.active[vim.api.nvim_get_current_buf()] ~= nil)`); got != "convls true" {
			t.Errorf("the chat is %v", got)
		}
		if got := n.Lua(`return vim.api.nvim_get_hl(0, { name = "ConvlsUser" }).link`); got != "Error" {
			t.Errorf("a person's own group became a link to %v", got)
		}
		wrong := words(n.Lua(`vim.cmd("colorscheme habamax")
local out = {}
for _, group in ipairs(require("convls.highlight").groups) do
  local link = vim.api.nvim_get_hl(0, { name = group[1] }).link
  if link ~= group[2] and group[1] ~= "ConvlsUser" then out[#out + 1] = group[1] .. " links to " .. tostring(link) end
end
return out`))
		if len(wrong) > 0 {
			t.Errorf("after another colour scheme %v", wrong)
		}
	})
}

// TestPickers choose a session and a model through vim.ui.select.
func TestPickers(t *testing.T) {
	Each(t, func(t *testing.T, version string) {
		m := fakemodel.New(t)
		n := openChat(t, version, m)
		n.Send("alpha")
		n.AwaitIdle(3)
		n.Command("Convls new beta")
		n.AwaitLua("the new session", "chat.session.info and chat.session.info.title == 'beta'")
		n.Lua(`function vim.ui.select(items, opts, done)
  _G.asked = { kind = opts.kind, items = vim.tbl_map(opts.format_item, items) }
  for i, item in ipairs(asked.items) do if item:find(wanted, 1, true) then return done(items[i], i) end end
  done(nil)
end`)
		n.Lua(`wanted = "alpha"; vim.cmd("Convls sessions")`)
		n.AwaitLua("the other session", "chat.session.info and chat.session.info.title == 'alpha' and asked.kind == 'convls.session'")
		n.Lua(`wanted = "offline"; vim.cmd("Convls model")`)
		n.AwaitLua("another model", "chat.session.info.model == 'offline' and asked.kind == 'convls.model'")
		n.wantScreen("the model is offline")
		n.Command("Convls model nowhere/none")
		n.wantScreen("changing the model: ")
		n.Type("<CR>")
		n.Command("Convls chat beta")
		n.AwaitLua("the session by its title", "chat.session.info and chat.session.info.title == 'beta'")
		n.Command("Convls chat gamma")
		n.wantScreen(":Convls sessions lists")
		n.Type("<CR>")
	})
}

// toolSession makes a session in which the model called a tool: another client has
// declared and answered it.
func toolSession(t *testing.T, home *editor.Home, m *fakemodel.Server) string {
	t.Helper()
	ed := home.Start(t, editor.Options{Client: client.Options{
		Settings: map[string]any{"model": "fake/fake", "providers": map[string]any{"fake": map[string]any{"kind": "openai", "base_url": m.URL()}}},
		CallTool: func(ctx context.Context, _ protocol.ToolCallParams) (protocol.ToolCallResult, error) {
			return protocol.ToolCallResult{Content: []protocol.Part{{Type: protocol.PartText, Text: "the content\nof the file"}}}, ctx.Err()
		},
	}})
	session := editor.Ask[protocol.SessionResult](ed, protocol.MethodSessionCreate, protocol.SessionCreateParams{Title: "tools"})
	m.Script(fakemodel.Call("read_file", `{"path":"a.txt"}`), fakemodel.Say("all read"))
	editor.Ask[protocol.TurnResult](ed, protocol.MethodTurnSend, protocol.TurnSendParams{
		SessionID: session.SessionID, Content: []protocol.Part{{Type: protocol.PartText, Text: "read it"}}, Wait: true,
		Tools: []protocol.ToolDeclaration{{Name: "read_file", Description: "Reads a file."}},
	})
	ed.Leave(t)
	return session.SessionID
}

// TestFences: code that was cut off in the middle does not swallow what stands
// below it.
func TestFences(t *testing.T) {
	Each(t, func(t *testing.T, version string) {
		m := fakemodel.New(t)
		n := openChat(t, version, m)
		m.Script(fakemodel.Say("see\n```lua\nlocal x\n"), fakemodel.Say("~~~~\n~~~\n~~~~\n```\nends here\n```"))
		n.Send("code")
		n.AwaitIdle(3)
		n.wantLines("# code", "", "## You", "code", "", "## Assistant", "see", "```lua", "local x", "```", "")
		n.Command("Convls retry")
		n.wantScreen("2/2")
		n.AwaitIdle(3)
		n.wantLines("# code", "", "## You", "code", "", "## Assistant", "~~~~", "~~~", "~~~~", "```", "ends here", "```", "")
	})
}

// TestToolsAreFolded opens a session whose turn called a tool.
func TestToolsAreFolded(t *testing.T) {
	Each(t, func(t *testing.T, version string) {
		m := fakemodel.New(t)
		home := editor.NewHome(t)
		session := toolSession(t, home, m)
		n := Start(t, Options{Version: version, Home: home, Config: fakeConfig(m)})
		n.Command("Convls chat " + session)
		n.AwaitLoaded()
		n.wantScreen(`### read_file {"path":"a.txt"} ✓`, "all read")
		if screen := n.Screen(); strings.Contains(screen, "the content") {
			t.Errorf("the tool's result is not folded:\n%s", screen)
		}
		n.Type("<Esc>/read_file<CR>zo")
		n.wantScreen("the content")
	})
}

// TestDraftIsKept writes a message and does not send it: it comes back when the chat is
// opened again, in the same Neovim and in the next one, and not once it is sent.
func TestDraftIsKept(t *testing.T) {
	Each(t, func(t *testing.T, version string) {
		home := editor.NewHome(t)
		session := ""
		run := func(name string, test func(t *testing.T, n *Neovim)) {
			t.Run(name, func(t *testing.T) {
				n := Start(t, Options{Version: version, Home: home})
				n.Command("Convls chat " + session)
				n.AwaitLoaded()
				test(t, n)
			})
		}
		run("written", func(_ *testing.T, n *Neovim) {
			session, _ = n.Lua(`return require("convls.chat").current().session.id`).(string)
			n.Type("<Esc>G$afirst line<CR>and \"more\" ä<Esc>")
			n.Command("call setqflist([{ 'text': 'look here' }]) | Convls attach quickfix")
			n.AwaitText("+ 1 quickfix")
			n.Command("bdelete!")
			n.Command("Convls chat " + session)
			n.wantScreen("first line", `and "more" ä`, "+ 1 quickfix")
		})
		run("there", func(t *testing.T, n *Neovim) {
			n.wantScreen("first line", `and "more" ä`, "+ 1 quickfix")
			info, err := os.Stat(filepath.Join(home.Dir, "state", "nvim", "convls-drafts.json"))
			if err != nil || info.Mode().Perm() != 0o600 {
				t.Errorf("the file of drafts: %v, %v", info, err)
			}
			n.Command("Convls send")
			n.AwaitLua("the answer", "#chat.session.rows == 3 and chat.session:last().status == 'sealed'")
		})
		run("gone", func(t *testing.T, n *Neovim) {
			if got := n.Prompt(); got != "" {
				t.Errorf("what was sent is a draft: %q", got)
			}
			if _, err := os.Stat(filepath.Join(home.Dir, "state", "nvim", "convls-drafts.json")); !os.IsNotExist(err) {
				t.Errorf("the file of drafts is there: %v", err)
			}
		})
	})
}

// TestEditWhole opens all of a message that the transcript shows cut, and what it says
// comes before what was attached.
func TestEditWhole(t *testing.T) {
	Each(t, func(t *testing.T, version string) {
		m := fakemodel.New(t)
		m.Default(fakemodel.Say("fine"))
		n := openChat(t, version, m)
		path := filepath.Join(n.Home.Dir, "large.txt")
		if err := os.WriteFile(path, []byte(strings.Repeat("a line of a large file\n", 2800)), 0o600); err != nil {
			t.Fatal(err)
		}
		n.Command("Convls attach file " + path)
		n.AwaitText("tokens)")
		n.Lua(`require("convls.chat").current().view:set_prompt({ "my own words" })`)
		n.Command("Convls send")
		n.AwaitIdle(3)
		n.wantScreen("my own words")
		n.Command("Convls edit")
		n.AwaitLua("the message", "chat.editing and #chat.attachments == 1")
		if got := n.Prompt(); got != "my own words" {
			t.Errorf("the prompt has %q", got)
		}
		if got := whole(n.Lua(`return #require("convls.chat").current().attachments[1].item.text`)); got != 2800*23-1 {
			t.Errorf("the attachment has %d bytes, want %d", got, 2800*23-1)
		}
		// A second edit would lose the first.
		n.Type("<Esc>:Convls edit<CR>")
		n.wantMessage("another version is being written: send it, or :Convls edit cancel")
	})
}

// TestTypedOn keeps what is typed after a message was sent, and takes the message out.
func TestTypedOn(t *testing.T) {
	Each(t, func(t *testing.T, version string) {
		n := openChat(t, version, nil)
		n.Lua(`local chat = require("convls.chat").current()
chat.view:set_prompt({ "count to 3" })
chat:send()
chat.view:set_prompt({ "count to 3", "and the next" })`)
		n.AwaitIdle(3)
		n.AwaitLua("the rest", `table.concat(chat.view:prompt(), "\n") == "and the next"`)
		n.wantLines("# count to 3", "", "## You", "count to 3", "", "## Assistant", "1 2 3", "")
		// A chat that is closed while it sends keeps nothing of what was sent.
		n.Lua(`local chat = require("convls.chat").current()
chat.view:set_prompt({ "count to 2" })
chat:send()
closed = chat.session.id
vim.api.nvim_buf_delete(chat.buf, { force = true })
require("convls.session").get(closed):watch(function() end)`)
		n.AwaitLua("the answer", `#require("convls.session").get(closed).rows == 5 and require("convls.session").get(closed):last().status == "sealed"`)
		n.Lua(`require("convls.chat").open(closed)`)
		n.AwaitLua("the chat", "chat and chat.session.id == closed and #chat.session.rows == 5")
		if got := n.Prompt(); got != "" {
			t.Errorf("what was sent is a draft: %q", got)
		}
		if messages := n.Messages(); strings.Contains(messages, "traceback") {
			t.Error(messages)
		}
	})
}

// TestPromptKeepsALine deletes the prompt's only line: there is one, and it can be
// written in.
func TestPromptKeepsALine(t *testing.T) {
	Each(t, func(t *testing.T, version string) {
		n := openChat(t, version, nil)
		n.Send("count to 3")
		n.AwaitIdle(3)
		n.Type("<Esc>Giwords<Esc>dd")
		n.AwaitLua("an empty prompt", `#chat.view:prompt() == 1 and chat.view:prompt()[1] == "" and vim.fn.line(".") == vim.fn.line("$")`)
		n.Type("iother words<Esc>")
		n.AwaitLua("the words", `chat.view:prompt()[1] == "other words"`)
		if messages := n.Messages(); strings.TrimSpace(messages) != "" {
			t.Error(messages)
		}
	})
}

// TestOddAttachment shows an attachment whose name would break its line, and refuses what
// is no text.
func TestOddAttachment(t *testing.T) {
	Each(t, func(t *testing.T, version string) {
		n := openChat(t, version, nil)
		n.Lua(`local chat = require("convls.chat").current()
chat.session:change("convls/turn/send", { content = "hello", context = { { type = "file", uri = "file:///tmp/a%0Ab.txt", text = "x" } } }, function() end)`)
		n.AwaitIdle(3)
		n.wantScreen("+ file /tmp/a b.txt", "## Assistant")
		for name, text := range map[string]string{"latin1.txt": "caf\xe9", "empty.txt": "\n"} {
			path := filepath.Join(n.Home.Dir, name)
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			n.Command("Convls attach file " + name)
			if got := whole(n.Lua(`return #require("convls.chat").current().attachments`)); got != 0 {
				t.Errorf("%s was attached", name)
			}
		}
	})
}

// TestSessionOfTheView works on the session of the view that the person is in, and on
// the message at its cursor, whichever chat was used last.
func TestSessionOfTheView(t *testing.T) {
	Each(t, func(t *testing.T, version string) {
		n := openChat(t, version, nil)
		n.Send("count to 3")
		n.Send("count to 4")
		n.AwaitIdle(5)
		first := n.Lua(`return require("convls.chat").current().session.id`)
		n.Command("Convls graph")
		n.AwaitGraph("the graph", "graph.view")
		n.Command("Convls new other")
		n.AwaitLua("the other", "chat.session.info and chat.session.info.title == 'other'")
		n.Send("count to 5")
		n.AwaitIdle(3)
		n.Command("drop convls:/session/" + fmt.Sprint(first) + "/graph")
		n.Command("call search('count to 3')")
		n.Command("Convls retry")
		n.AwaitLua("another answer in the graph's session", `(function()
  local chat = require("convls.chat").of_session(args[1])
  local last = chat.session:last()
  return #chat.session.rows == 3 and last.siblings and last.siblings.count == 2 and last.status == "sealed"
end)()`, first)
		n.Command("Convls edit")
		n.AwaitLua("the message at the cursor in its chat", "chat.session.id == args[1] and chat.editing and chat.view:prompt()[1] == 'count to 3'", first)
	})
}
