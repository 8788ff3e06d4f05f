package neovim

import (
	"fmt"
	"strings"
	"testing"

	"convls/protocol"
	"convls/test/fakemodel"
)

// talk is what is said in a chat that is long enough to be compacted.
var talk = []string{
	"We move the depot list out of the spreadsheet into SQLite.",
	"You must not touch config/prod.yaml while you set it up.",
	"We still have to write the script for the backups.",
	"The restore works with one file.",
	"Two people edit the same depot at times.",
	"Give each row a version.",
}

// talk holds that talk, each message behind a prefix. Each is long, so that a summary
// is smaller.
func (n *Neovim) talk(prefix string) {
	n.t.Helper()
	padding := strings.Repeat(" We talk about the build and how it goes.", 12)
	for i, said := range talk {
		n.Lua(`require("convls.chat").current().view:set_prompt({ ... })`, prefix+said+padding)
		n.Command("Convls send")
		n.AwaitLua("the message to be taken", "not chat.sending and table.concat(chat.view:prompt()) == ''")
		n.AwaitIdle(1 + 2*(i+1))
	}
}

// openTalk is a chat with that talk.
func openTalk(t *testing.T, version string) *Neovim {
	t.Helper()
	n := openChat(t, version, nil)
	n.talk("repeat: ")
	return n
}

// compacted makes a summary and waits for its capsule.
func (n *Neovim) compacted() {
	n.t.Helper()
	n.Type("<Esc>:Convls compact<CR>")
	n.AwaitLua("the summary", "chat.session:last('summary') and not chat.session.rows_busy")
}

// lineOf returns the number of the first line of the current buffer that has a text,
// from 1, and 0 without one.
func (n *Neovim) lineOf(text string) int {
	n.t.Helper()
	for i, line := range n.Lines(0) {
		if strings.Contains(line, text) {
			return i + 1
		}
	}
	return 0
}

// TestCapsule folds a summary with its manifest, shows what it stands for as ghosts,
// and leads from the float to the message that an item comes from.
func TestCapsule(t *testing.T) {
	Each(t, func(t *testing.T, version string) {
		n := openTalk(t, version)
		n.compacted()
		n.wantMessage("messages summed up, ", "(:Convls compact undo)")
		n.Type("gg")
		capsule := n.lineOf("## Summary of ")
		if capsule == 0 {
			t.Fatalf("no capsule:\n%s", n.Transcript())
		}
		closed := func(line int) bool { return whole(n.Lua(`return vim.fn.foldclosed(...)`, line)) == int64(line) }
		if !closed(capsule) {
			t.Error("the capsule is not folded")
		}
		if n.lineOf("## You") < capsule && n.lineOf("## You") != 0 {
			t.Errorf("a message stands before the capsule:\n%s", n.Transcript())
		}
		n.Command(fmt.Sprintf("%d", capsule))
		n.Type("zo")
		n.wantScreen("### Goal", "### Constraints", "You must not touch config/")
		// The ghosts, and the cursor stays on the capsule.
		n.Type("gs")
		n.AwaitLua("the ghosts", "chat.session.rows[2].ghost and not chat.session.rows_busy")
		n.AwaitLua("the cursor on the capsule", `vim.api.nvim_get_current_line():find("^## Summary of .*shown above") ~= nil`)
		n.Type("gg")
		n.wantScreen("not read: a summary stands for it")
		if got := n.Lua(`local chat = require("convls.chat").current()
local line = chat.view:line_of(chat.session.rows[2].id)
for _, mark in ipairs(vim.inspect_pos(0, line + 1, 3).extmarks) do
  if mark.opts.hl_group == "ConvlsGhost" then return true end
end`); got != true {
			t.Error("a ghost is not dimmed")
		}
		n.Command("call search('^## Summary of')")
		n.Type("gs")
		n.AwaitLua("the ghosts to go", "not chat.session.rows[2].ghost and not chat.session.rows_busy")
		// The float, and from an item of it to the message, which was folded away.
		n.Command("call search('^## Summary of')")
		n.Type("K")
		n.wantScreen("Summary · <CR> goes to the message", "Constraints", "✗ repeat: You must not touch config/prod.yaml", "extractive · manual")
		n.Command("call search('✗ repeat: You must not')")
		n.Type("<CR>")
		n.AwaitLua("the message", `vim.api.nvim_get_current_buf() == chat.buf and chat:row_here() and chat:row_here().ghost`)
		got, _ := n.Lua(`return require("convls.chat").current():row_here().content[1].text`).(string)
		if !strings.Contains(got, "You must not touch config/prod.yaml") {
			t.Errorf("the item led to %q", got)
		}
		if messages := n.Messages(); strings.Contains(messages, "Error") || strings.Contains(messages, "E5108") {
			t.Error(messages)
		}
	})
}

// TestCompactUndo takes a summary back and up again, chooses one, and verifies it.
func TestCompactUndo(t *testing.T) {
	Each(t, func(t *testing.T, version string) {
		n := openTalk(t, version)
		n.Type("<Esc>:Convls compact undo<CR>")
		n.wantMessage("there is nothing to undo")
		n.Type(":Convls compact preview<CR>")
		n.wantScreen("A summary would stand for", "would stay word for word", "no model is asked")
		n.Type("q")
		n.compacted()
		rows := whole(n.Lua(`return #require("convls.chat").current().session.rows`))
		n.Type(":Convls compact undo<CR>")
		n.wantMessage("undone, the model reads", "messages again (:Convls compact redo)")
		n.AwaitLua("every row", "not chat.session:last('summary') and #chat.session.rows == 13")
		n.Type(":Convls compact redo<CR>")
		n.AwaitLua("the capsule again", "chat.session:last('summary') and #chat.session.rows == args[1]", rows)
		n.Type(":Convls compact redo<CR>")
		n.wantMessage("there is no later summary to take up")
		n.Type(":Convls compact verify<CR>")
		n.wantMessage("the summary holds: what it read is as it was (")
		n.Lua(`vim.ui.select = function(items, opts, done)
  vim.g.offered = table.concat(vim.tbl_map(opts.format_item, items), "\n")
  done(items[1])
end`)
		n.Type(":Convls compact list<CR>")
		n.AwaitLua("no summary", "not chat.session:last('summary')")
		offered, _ := n.Lua(`return vim.g.offered`).(string)
		if !strings.HasPrefix(offered, "none: the model reads every message\n◀ ") || !strings.Contains(offered, "(stands here, ") {
			t.Errorf("the summaries that are offered:\n%s", offered)
		}
		n.Type(":Convls compact verify<CR>")
		n.wantMessage("no summary stands here")
	})
}

// TestCompactDraft edits a draft, commits it by :w, and discards another.
func TestCompactDraft(t *testing.T) {
	Each(t, func(t *testing.T, version string) {
		n := openTalk(t, version)
		n.Type("<Esc>:Convls compact draft<CR>")
		n.wantScreen(":w commits it", "## Goal")
		n.Command("%s/touch/TOUCH/g")
		n.Command("write")
		n.AwaitLua("the summary", "chat.session:last('summary') and not vim.api.nvim_buf_get_name(0):find('draft')")
		text, _ := n.Lua(`return require("convls.chat").current().session:last("summary").content[1].text`).(string)
		if !strings.Contains(text, "TOUCH config/prod.yaml") || !strings.HasPrefix(text, protocol.SummaryMarker) {
			t.Errorf("the summary says\n%s", text)
		}
		if edited := n.Lua(`return require("convls.chat").current().session:last("summary").provenance.edited`); edited != true {
			t.Error("the provenance does not tell that a person edited it")
		}
		n.Command("Convls compact undo")
		n.AwaitLua("no summary", "not chat.session:last('summary')")
		// What is closed without :w is discarded: its id names nothing any more.
		n.Command("Convls compact draft")
		n.wantScreen(":w commits it")
		id, _ := n.Lua(`return vim.api.nvim_buf_get_name(0):match("([^/]+)%.md$")`).(string)
		n.Command("bdelete!")
		n.Lua(`local chat, draft = require("convls.chat").current(), ...
vim.g.refused = nil
chat.session:change("convls/compaction/commit", { draft_id = draft }, function(err) vim.g.refused = err and err.data.code or "none" end)`, id)
		n.AwaitLua("the refusal", "vim.g.refused == 'unknown_draft'")
	})
}

// TestContext shows what the model reads, with the draft, and follows the session.
func TestContext(t *testing.T) {
	Each(t, func(t *testing.T, version string) {
		n := openTalk(t, version)
		n.Lua(`require("convls.chat").current().view:set_prompt({ "What about backups?" })`)
		n.call("nvim_ui_try_resize", 120, 60)
		n.Command("Convls context")
		n.wantScreen("What the model reads: ", "1 root", "branch   │ repeat: We move", "14 user", "draft    │ What about backups?")
		// A fold an entry, with the text to the letter.
		line := n.lineOf("2 user")
		n.Command(fmt.Sprint(line))
		n.Type("zo")
		if got := n.Lines(0)[line]; !strings.HasPrefix(got, "repeat: We move the depot list") {
			t.Errorf("the text below the entry is %q", got)
		}
		// What is typed comes into it.
		n.Lua(`vim.api.nvim_set_current_win(vim.fn.win_findbuf(require("convls.chat").current().buf)[1])`)
		n.Type("<Esc>G$a And more?<Esc>")
		n.wantScreen("draft    │ What about backups? And more?")
		n.Lua(`vim.cmd.wincmd("p")`)
		entries := whole(n.Lua(`return #require("convls.context").current().entries`))
		// A summary takes the place of what it covers; the open fold stays open.
		n.Command("call search('14 user')")
		n.Type(":Convls compact<CR>")
		n.AwaitLua("the summary", `(function() local c = require("convls.context").current()
return c and #c.entries < args[1] and c.entries[2].kind == "summary" end)()`, entries)
		n.wantScreen("2 summary", "A summary stands for")
		n.AwaitLua("the cursor on its entry", `(require("convls.context").current():entry() or {}).why == "draft"`)
		n.Command("call search('│ repeat: Give each')")
		n.Type("<CR>")
		n.AwaitLua("the message in the chat", `vim.api.nvim_get_current_buf() == chat.buf and chat:row_here() and chat:row_here().content[1].text:find("Give each row") ~= nil`)
	})
}

// TestDocuments opens virtual documents and views by their names.
func TestDocuments(t *testing.T) {
	Each(t, func(t *testing.T, version string) {
		n := openChat(t, version, nil)
		n.Send("count to 3")
		n.AwaitIdle(3)
		session, _ := n.Lua(`return require("convls.chat").current().session.id`).(string)
		n.Command("Convls transcript")
		n.wantScreen("1 2 3")
		if name := n.Lua(`return vim.api.nvim_buf_get_name(0)`); name != "convls:/session/"+session+"/transcript.md" {
			t.Errorf("the document's name is %v", name)
		}
		// It follows the session.
		n.Lua(`require("convls.chat").current().view:set_prompt({ "count to 5" })`)
		n.Command("Convls send")
		n.AwaitLua("the new answer", `table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, false), "\n"):find("1 2 3 4 5", 1, true) ~= nil`)
		n.Command("edit convls:/session/" + session + "/context.md")
		n.wantScreen("# What the model reads")
		// A link leads to the document of the node.
		n.AwaitLua("the entries", `vim.fn.search("](convls:/node/") > 0`)
		n.Type("f(gf")
		n.AwaitLua("the node", `vim.api.nvim_buf_get_name(0):find("^convls:/node/") ~= nil and vim.fn.search("^# ") > 0`)
		n.Command("edit convls:/session/" + session + "/graph.md")
		n.wantScreen("# Graph", "◀ HEAD")
		n.Command("edit convls:/session/nowhere/graph.md")
		n.wantScreen(`> there is no session "nowhere"`)
		n.Command("edit convls:/else")
		n.wantScreen("> there is no convls:/else: see :help")
		// The views of the plugin: one that is there, and one that is read anew with its draft.
		n.Lua(`require("convls.chat").current().view:set_prompt({ "a draft" })`)
		n.Command("edit convls:/session/" + session + "/chat")
		n.AwaitLua("the chat", "vim.api.nvim_get_current_buf() == chat.buf")
		n.Command("edit")
		n.AwaitLua("the chat anew", "vim.api.nvim_get_current_buf() == chat.buf and #chat.session.rows == 5 and chat.session.connected")
		n.wantScreen("a draft", "1 2 3 4 5")
		n.Command("bdelete!")
		n.Command("edit convls:/session/" + session + "/context")
		n.AwaitLua("the context", `(require("convls.context").current() or { entries = {} }).entries[5] ~= nil`)
		n.Command("edit convls:/session/" + session + "/chat")
		n.AwaitLua("the chat", "chat ~= nil and vim.api.nvim_get_current_buf() == chat.buf and #chat.session.rows == 5")
		n.wantScreen("a draft")
	})
}

// fakeTalk is a chat of a scripted model that is long enough to be compacted.
func fakeTalk(t *testing.T, version string) (*Neovim, *fakemodel.Server) {
	t.Helper()
	m := fakemodel.New(t)
	m.Default(fakemodel.Say("Fine."))
	n := openChat(t, version, m)
	n.talk("")
	return n, m
}

// TestCompactCancel ends a run that a model is writing for, and tells of one that
// failed: nothing is changed.
func TestCompactCancel(t *testing.T) {
	Each(t, func(t *testing.T, version string) {
		n, m := fakeTalk(t, version)
		before := n.Transcript()
		gate := m.Gate()
		m.Script(fakemodel.Say("{}").Hold(gate, 0))
		n.Command("Convls compact what matters is the restore")
		n.wantScreen("compacting…")
		n.AwaitLua("the run in the status line", `require("convls").statusline():find("compacting") ~= nil`)
		gate.Wait(t)
		n.Command("Convls compact cancel")
		n.wantMessage("the compaction was cancelled, nothing was changed")
		n.AwaitLua("the end of the run", "not chat.session.compaction")
		asked := m.Requests()[len(m.Requests())-1].Texts()
		if !strings.Contains(strings.Join(asked, "\n"), "what matters is the restore") {
			t.Errorf("the model did not read the words: %q", asked)
		}
		m.Script(fakemodel.Fail(400, `{"error":{"message":"no such option"}}`))
		n.Type("<Esc>:Convls compact<CR>")
		n.wantMessage("no summary was made: ", "no such option")
		n.Type("<CR>")
		n.AwaitLua("the end of the run", "not chat.session.compaction")
		if after := n.Transcript(); after != before {
			t.Errorf("the transcript was\n%s\nand is\n%s", before, after)
		}
		n.Type(":Convls compact cancel<CR>")
		n.wantMessage("no compaction of this session is under way")
	})
}

// TestCompactHere makes a summary up to the cursor, makes it again, and shows it from
// the prompt.
func TestCompactHere(t *testing.T) {
	Each(t, func(t *testing.T, version string) {
		n := openTalk(t, version)
		n.Command("call search('write the script', 'b')")
		n.Type(":Convls compact here<CR>")
		n.AwaitLua("the summary", "chat.session:last('summary') and not chat.session.rows_busy")
		text, _ := n.Lua(`local rows = require("convls.chat").current().session.rows
for i, row in ipairs(rows) do
  if row.kind == "summary" then return rows[i + 1].content[1].text end
end`).(string)
		if !strings.HasPrefix(text, "repeat: The restore works") {
			t.Errorf("after the summary comes %q", text)
		}
		first := n.Lua(`return require("convls.chat").current().session:last("summary").id`)
		n.Type(":Convls compact rebuild<CR>")
		n.AwaitLua("the other summary", "chat.session:last('summary').id ~= args[1]", first)
		n.Type("G:Convls compact show<CR>")
		n.wantScreen("Summary · <CR> goes to the message", "extractive · rebuild")
		n.Type("q")
		n.AwaitScreen("the end of the float", func(s string) bool { return !strings.Contains(s, "goes to the message") })
	})
}

// TestCompactFollows changes summaries in one window, and the other views follow: a
// second chat window, the graph, the context and a document.
func TestCompactFollows(t *testing.T) {
	n := openTalk(t, "")
	n.call("nvim_ui_try_resize", 160, 60)
	session := n.Lua(`return require("convls.chat").current().session.id`)
	n.Command("split")
	n.Command("Convls graph")
	n.AwaitGraph("the graph", "graph.view")
	n.Command("Convls context")
	n.AwaitLua("the context", `#(require("convls.context").current() or { entries = {} }).entries == 13`)
	n.Command("Convls transcript")
	n.AwaitLua("the document", `vim.fn.search("Give each row") > 0`)
	shown := func(what, context, document string) {
		t.Helper()
		n.AwaitLua(what, `(function()
  local context, rows = nil, nil
  for _, buf in ipairs(vim.api.nvim_list_bufs()) do
    local name = vim.api.nvim_buf_get_name(buf)
    local text = table.concat(vim.api.nvim_buf_get_lines(buf, 0, -1, false), "\n")
    if name == "convls:/session/" .. args[1] .. "/context" then context = text end
    if name == "convls:/session/" .. args[1] .. "/graph" then rows = text end
    if name == "convls:/session/" .. args[1] .. "/transcript.md" then document = text end
  end
  return (context:find("2 summary", 1, true) ~= nil) == `+context+`
    and (rows:find("10 messages folded", 1, true) ~= nil) == `+context+`
    and (document:find("`+document+`", 1, true) ~= nil)
    and (chat.session:last("summary") ~= nil) == `+context+`
end)()`, session)
	}
	shown("no summary", "false", "Give each row")
	n.Lua(`vim.api.nvim_create_autocmd("User", { pattern = "ConvlsCompacted", callback = function(event) told = event.data end })`)
	n.Type(":Convls compact<CR>")
	shown("the summary in each view", "true", "Give each row")
	n.AwaitLua("the autocommand", "told and told.session_id == args[1] and told.summary_id == chat.session:last('summary').id", session)
	n.Type(":Convls compact undo<CR>")
	shown("no summary in any view", "false", "Give each row")
}
