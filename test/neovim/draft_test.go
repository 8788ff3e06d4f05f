package neovim

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"convls/protocol"
)

// openDraft is a chat with the draft of a summary in a window. What Neovim tells is
// kept in the variable told.
func openDraft(t *testing.T, version string) *Neovim {
	t.Helper()
	n := openTalk(t, version)
	n.Type("<Esc>")
	n.Lua(`told = "" vim.notify = function(text) told = told .. text .. "\n" end`)
	n.draft()
	return n
}

// draft makes a draft and waits for its window.
func (n *Neovim) draft() {
	n.t.Helper()
	n.Lua(`before_draft = vim.api.nvim_buf_get_name(0)`)
	n.Command("Convls compact draft")
	n.AwaitLua("the draft", `vim.api.nvim_buf_get_name(0):find("^convls:/draft/") ~= nil and vim.api.nvim_buf_get_name(0) ~= before_draft`)
}

// told waits until Neovim has told each text, and forgets what it told.
func (n *Neovim) told(texts ...string) {
	n.t.Helper()
	for _, text := range texts {
		if n.Lua(`local text = ...
return (vim.wait(10000, function() return told:find(text, 1, true) ~= nil end, 5))`, text) != true {
			n.t.Fatalf("%q was not told, but\n%v\n%s", text, n.Lua(`return told`), n.Screen())
		}
	}
	n.Lua(`told = ""`)
}

// refusal runs an Ex command, and returns the error that Neovim gives.
func (n *Neovim) refusal(command string) string {
	n.t.Helper()
	text, _ := n.Lua(`local ok, err = pcall(vim.cmd, (...))
return ok and "" or tostring(err)`, command).(string)
	return text
}

// edited changes the first line of the current buffer.
func (n *Neovim) edited(line string) {
	n.t.Helper()
	n.Lua(`vim.api.nvim_buf_set_lines(0, 0, 1, false, { ... })`, line)
}

// inDraft reports whether the current buffer is a draft.
func (n *Neovim) inDraft() bool {
	n.t.Helper()
	return n.Lua(`return vim.startswith(vim.api.nvim_buf_get_name(0), "convls:/draft/")`) == true
}

// awaitSummary waits for a summary that says this, and for the draft to go.
func (n *Neovim) awaitSummary(said string) {
	n.t.Helper()
	n.AwaitLua("the summary", `chat.session:last("summary") and chat.session:last("summary").content[1].text:find(args[1], 1, true)
and not vim.fn.execute("ls!"):find("convls:/draft/", 1, true)`, said)
}

// noSummary fails the test if there is a summary.
func (n *Neovim) noSummary() {
	n.t.Helper()
	session := n.Lua(`return require("convls.chat").current().session.id`)
	if list := ask[protocol.CompactionListResult](n, protocol.MethodCompactionList, map[string]any{"session_id": session}); len(list.Summaries) != 0 {
		n.t.Errorf("a summary was made: %+v", list.Summaries)
	}
}

// TestDraftIsEmpty refuses a draft without a text, and keeps it.
func TestDraftIsEmpty(t *testing.T) {
	Each(t, func(t *testing.T, version string) {
		n := openDraft(t, version)
		text := strings.Join(n.Lines(0), "\n")
		for _, empty := range [][]any{{}, {"", " \t"}} {
			n.Lua(`vim.api.nvim_buf_set_lines(0, 0, -1, false, { ... })`, empty...)
			n.Command("write")
			n.told("an empty summary is not committed")
		}
		n.noSummary()
		n.Command("undo")
		n.Command("undo")
		if got := strings.Join(n.Lines(0), "\n"); got != text {
			t.Errorf("after undo the draft is\n%s\n--- want\n%s", got, text)
		}
		// There is nothing before the text that it began with.
		n.Command("undo")
		if got := strings.Join(n.Lines(0), "\n"); got != text {
			t.Errorf("after another undo the draft is\n%s", got)
		}
		n.Command("write")
		n.awaitSummary(text)
	})
}

// TestDraftIsCopied writes a draft, and a part of it, to files: it is not committed.
func TestDraftIsCopied(t *testing.T) {
	Each(t, func(t *testing.T, version string) {
		n := openDraft(t, version)
		text := strings.Join(n.Lines(0), "\n") + "\n"
		dir := t.TempDir()
		want := func(name, content string) {
			t.Helper()
			got, err := os.ReadFile(filepath.Join(dir, name))
			if err != nil || string(got) != content {
				t.Errorf("%s is %q, %v", name, got, err)
			}
		}
		n.Command("write " + filepath.Join(dir, "copy.md"))
		n.told("written to "+filepath.Join(dir, "copy.md"), "not committed")
		want("copy.md", text)
		n.Command("2,3write " + filepath.Join(dir, "part.md"))
		want("part.md", strings.Join(n.Lines(0)[1:3], "\n")+"\n")
		n.Command("write " + filepath.Join(dir, "none", "copy.md"))
		n.told("E482")
		n.noSummary()
		if !n.inDraft() {
			t.Error("the draft has gone")
		}
		n.Command("saveas " + filepath.Join(dir, "as.md"))
		want("as.md", text)
		n.noSummary()
	})
}

// TestDraftIsReadAgain brings the text back with :edit!, which can be committed.
func TestDraftIsReadAgain(t *testing.T) {
	Each(t, func(t *testing.T, version string) {
		n := openDraft(t, version)
		text := strings.Join(n.Lines(0), "\n")
		n.edited("half")
		if got := n.refusal("edit"); !strings.Contains(got, "E37") {
			t.Errorf(":edit of an edited draft got %q", got)
		}
		n.Command("edit!")
		if got := strings.Join(n.Lines(0), "\n"); got != text {
			t.Errorf("after :edit! the draft is\n%s\n--- want\n%s", got, text)
		}
		n.edited("Edited again.")
		n.Command("write")
		n.awaitSummary("Edited again.")
		n.told("summed up")
		n.Command("edit convls:/draft/nowhere/dft_1.md")
		n.wantScreen("> there is no convls:/draft/nowhere/dft_1.md")
	})
}

// TestDraftIsClosed commits a draft that nobody edited by :x and, while it is hidden,
// by :wall, and tells of one that is only hidden.
func TestDraftIsClosed(t *testing.T) {
	Each(t, func(t *testing.T, version string) {
		n := openDraft(t, version)
		n.Command("xit")
		n.awaitSummary("## Goal")
		n.told("summed up")
		n.Command("Convls compact undo")
		n.told("undone")
		n.draft()
		n.Command("quit")
		n.told("the draft is hidden, not committed: :b ")
		n.Type(":qall<CR>")
		n.wantMessage("E162: No write since last change for buffer")
		n.Type("<CR>")
		n.AwaitLua("the draft", `vim.startswith(vim.api.nvim_buf_get_name(0), "convls:/draft/")`)
		n.Command("hide edit convls:/nothing")
		if got := n.refusal("wall"); got != "" {
			t.Errorf(":wall got %q", got)
		}
		n.awaitSummary("## Goal")
		n.told("summed up")
		if got := n.Messages(); strings.Contains(got, "E813") {
			t.Error(got)
		}
	})
}

// TestDraftOfASlowServer: :wq waits, then says that the commit is under way, and the
// window stays until it is over.
func TestDraftOfASlowServer(t *testing.T) {
	Each(t, func(t *testing.T, version string) {
		n := openDraft(t, version)
		n.edited("Edited by hand.")
		n.Lua(`require("convls.compact").patience = 20
local server = require("convls.server")
local request, held = server.request, {}
server.request = function(...) held[#held + 1] = { ... } end
function release()
  server.request = request
  for _, arguments in ipairs(held) do request(unpack(arguments)) end
end`)
		for range 2 {
			n.refusal("wq")
			n.told("the commit is still under way")
			if !n.inDraft() || n.Lua(`return vim.bo.modified and not vim.bo.modifiable`) != true {
				t.Error("the window has gone, or can be edited")
			}
		}
		n.Lua(`release()`)
		n.awaitSummary("Edited by hand.")
		n.told("summed up")
	})
}

// TestDraftIsLost with the server: the text stays in its window over :wq, and goes into
// the next draft, of the same messages.
func TestDraftIsLost(t *testing.T) {
	Each(t, func(t *testing.T, version string) {
		n := openDraft(t, version)
		n.edited("Edited by hand.")
		kill(t, n.serverPID())
		n.told("the server has ended")
		n.Command("Convls restart")
		n.AwaitLua("the server", "chat.session.connected")
		n.refusal("wq")
		n.told("there is no draft", "Next: the text stays here; :Convls compact draft makes a new draft")
		if !n.inDraft() || n.Lines(0)[0] != "Edited by hand." {
			t.Fatalf("the text has gone:\n%s", n.Screen())
		}
		// What is said meanwhile does not belong to it.
		n.Lua(`local chat = require("convls.chat").current()
chat.view:set_prompt({ ... })
chat:send()`, "repeat: And what of the signs?"+strings.Repeat(" We talk about the signs.", 40))
		n.AwaitIdle(15)
		windows := n.Lua(`return #vim.api.nvim_list_wins()`)
		n.draft()
		n.told("your text is in the new draft")
		if n.Lines(0)[0] != "Edited by hand." || n.Lua(`return #vim.api.nvim_list_wins()`) != windows {
			t.Errorf("the new draft is\n%s", n.Screen())
		}
		n.Command("write")
		n.awaitSummary("Edited by hand.")
	})
}

// TestDraftIsWrittenTwice where the server was lost after it had made the summary, and
// before it said so: the second :w gets what the first one did.
func TestDraftIsWrittenTwice(t *testing.T) {
	n := openDraft(t, "")
	n.edited("Edited by hand.")
	n.Lua(`local server, errors = require("convls.server"), require("convls.errors")
local request = server.request
server.request = function(method, params, callback)
  server.request = request
  request(method, params, function() callback(errors.new(errors.SERVER_LOST, "the server has gone")) end)
end`)
	n.Command("write")
	n.told("the server has gone")
	if !n.inDraft() {
		t.Fatal("the text has gone")
	}
	n.Command("write")
	n.told("summed up")
	n.awaitSummary("Edited by hand.")
}

// TestDraftIsStale where another summary came: the text stays, and is committed when
// that one is taken back. Where a draft is of other messages, the text stays where it is.
func TestDraftIsStale(t *testing.T) {
	n := openDraft(t, "")
	n.edited("Edited by hand.")
	n.Command("Convls compact")
	n.told("summed up")
	n.refusal("wq")
	n.told("another summary became active", "the text stays here; if there is another summary now: :Convls compact undo, then :w again")
	n.Command("Convls compact undo")
	n.told("undone")
	old := n.Lua(`return vim.api.nvim_get_current_buf()`)
	n.AwaitLua("every message", `not chat.session:last("summary") and #chat.session.rows == 13`)
	n.Lua(`local id = require("convls.chat").current().session.rows[5].id
require("convls.branch").here = function() return require("convls.chat").current().session, { id = id } end`)
	n.Command("Convls compact draft here")
	n.told("the new draft is of other messages: your text stays in buffer")
	n.Command("bdelete!")
	n.Lua(`vim.api.nvim_set_current_buf(...)`, old)
	n.Command("write")
	n.awaitSummary("Edited by hand.")
	text, _ := n.Lua(`return require("convls.chat").current().session:last("summary").content[1].text`).(string)
	if !strings.HasPrefix(text, protocol.SummaryMarker) {
		t.Errorf("the summary is %s", text)
	}
}

// TestCompactMistyped refuses what is nearly a verb, and takes all other words, and any
// behind --.
func TestCompactMistyped(t *testing.T) {
	Each(t, func(t *testing.T, version string) {
		n := Start(t, Options{Version: version})
		got := n.Lua(`local compact, asked = require("convls.compact"), {}
vim.notify = function(text) asked[#asked + 1] = text end
compact.run = function(words) asked[#asked + 1] = "run " .. table.concat(words, " ") end
compact.run_words = function(words) asked[#asked + 1] = "words " .. table.concat(words, " ") end
compact.verbs.preview = function(words) asked[#asked + 1] = "preview " .. table.concat(words, " ") end
for _, typed in ipairs({ "previw", "Undo", "drfat the rest", "preview here", "here", "the restore", "-- undo it", "--", "" }) do
  vim.cmd("Convls compact " .. typed)
end
return table.concat(asked, "\n")`)
		want := strings.Join([]string{
			"convls: there is no :Convls compact previw, did you mean preview? (words: :Convls compact -- previw)",
			"convls: there is no :Convls compact Undo, did you mean undo? (words: :Convls compact -- Undo)",
			"convls: there is no :Convls compact drfat, did you mean draft? (words: :Convls compact -- drfat the rest)",
			"preview here", "run here", "run the restore", "words undo it", "words ", "run ",
		}, "\n")
		if got != want {
			t.Errorf("it did\n%v\n--- want\n%s", got, want)
		}
	})
}
