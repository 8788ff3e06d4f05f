package neovim

import (
	"strings"
	"testing"

	"convls/projection/drawing"
	"convls/protocol"
)

// forked is a chat whose last message was answered twice and whose first answer has
// the name left; HEAD is on the second.
func forked(t *testing.T, version string) *Neovim {
	t.Helper()
	n := openChat(t, version, nil)
	n.Send("count to 3")
	n.AwaitIdle(3)
	n.Command("Convls rename left")
	n.Command("Convls retry")
	n.AwaitLua("the second answer", "chat.session:last().siblings and chat.session:last().siblings.count == 2")
	n.AwaitIdle(3)
	return n
}

// openGraph opens the graph of the current chat.
func (n *Neovim) openGraph() {
	n.t.Helper()
	n.Command("Convls graph")
	n.AwaitGraph("the graph", "graph.view")
}

// AwaitGraph waits until a Lua expression is true, in which graph is the graph of the
// current window, row that at the cursor, and args are the arguments.
func (n *Neovim) AwaitGraph(what, expression string, args ...any) {
	n.t.Helper()
	n.AwaitLua(what, `(function()
  local graph = require("convls.graph").current()
  if not graph or graph.loading then return false end
  local row = graph:row()
  return `+expression+`
end)()`, args...)
}

// wantDrawing compares the graph's buffer with what convls graph draws of the same
// view.
func (n *Neovim) wantDrawing() {
	n.t.Helper()
	encoded, _ := n.Lua(`return vim.json.encode(require("convls.graph").current().view)`).(string)
	n.wantView(encoded)
}

// wantView compares the graph's buffer with what convls graph draws of a view, which
// is JSON as Lua writes it.
func (n *Neovim) wantView(encoded string) {
	n.t.Helper()
	encoded = strings.ReplaceAll(encoded, `"edges":{}`, `"edges":[]`)
	var view protocol.GraphView
	if err := protocol.Unmarshal([]byte(encoded), &view); err != nil {
		n.t.Fatal(err)
	}
	var want strings.Builder
	if err := drawing.Text(&want, &view, drawing.Options{}); err != nil {
		n.t.Fatal(err)
	}
	if got := strings.Join(n.Lines(0), "\n") + "\n"; got != want.String() {
		n.t.Errorf("the graph is\n%s\n--- want\n%s", got, want.String())
	}
	n.wantMarks()
}

// wantMarks holds the highlights in the buffer to those of the drawing.
func (n *Neovim) wantMarks() {
	n.t.Helper()
	if got, _ := n.Lua(`local drawing = require("convls.graph").current().drawing
local ns = vim.api.nvim_get_namespaces()["convls.graph"]
local there, want = {}, {}
for _, mark in ipairs(vim.api.nvim_buf_get_extmarks(0, ns, 0, -1, { details = true })) do
  there[#there + 1] = ("%d:%d-%d %s"):format(mark[2] + 1, mark[3], mark[4].end_col, mark[4].hl_group)
end
for i, spans in ipairs(drawing.spans) do
  for _, span in ipairs(spans) do want[#want + 1] = ("%d:%d-%d %s"):format(i, unpack(span)) end
end
table.sort(there)
table.sort(want)
return table.concat(there, "\n") ~= table.concat(want, "\n") and ("%d marks, want %d"):format(#there, #want) or ""`).(string); got != "" {
		n.t.Errorf("the highlights are not those of the drawing: %s", got)
	}
}

// TestGraph draws what the program draws, follows the session, and keeps the cursor.
func TestGraph(t *testing.T) {
	Each(t, func(t *testing.T, version string) {
		n := forked(t, version)
		n.openGraph()
		n.wantDrawing()
		n.wantScreen("[left] 1 2 3", "◀ HEAD 1 2 3", "○─╮")
		n.AwaitGraph("the cursor at HEAD", "row.is_head")
		// The other answer, and back.
		n.Command("call search('left')")
		n.Type("<CR>")
		n.AwaitGraph("HEAD at left", "row.is_head and row.branches[1] == 'left'")
		n.wantDrawing()
		n.AwaitLua("the chat to follow", "chat.session.head == require('convls.graph').current():row().id")
		// A message of the chat comes into the graph, and the cursor stays on its node.
		n.Lua(`require("convls.chat").current().view:set_prompt({ "count to 2" })`)
		n.Command("Convls send")
		n.AwaitGraph("the reply", "#graph.view.rows == 6 and graph.view.rows[6].status == 'sealed' and row.preview == '1 2 3'")
		n.wantDrawing()
		n.Type("K")
		n.wantScreen("assistant", "It read 2 nodes", "- user: count to 3")
	})
}

// TestGraphBranches forks, renames, compares and deletes by keys.
func TestGraphBranches(t *testing.T) {
	Each(t, func(t *testing.T, version string) {
		n := forked(t, version)
		n.openGraph()
		n.Type("fright<CR>")
		n.AwaitGraph("the fork", "row.branches and row.branches[1] == 'right'")
		n.Type("r<C-u>other<CR>")
		n.AwaitGraph("the name", "row.branches and row.branches[1] == 'other'")
		n.wantDrawing()
		n.Command("call search('left')")
		n.Type("c")
		n.wantScreen("What two branches added since they parted", "## other: 1 message,", "## left: 1 message,")
		n.Command("close")
		n.Command("Convls graph")
		n.Command("call search('left')")
		n.Type("d")
		n.wantScreen("Delete 1 node of left for good?")
		n.Type("k")
		n.AwaitScreen("the end of the question", func(s string) bool { return !strings.Contains(s, "for good?") })
		n.AwaitGraph("all rows", "#graph.view.rows == 4")
		before := len(n.Lines(0))
		n.Type("d")
		n.wantScreen("Delete 1 node of left for good?")
		n.Type("d")
		n.AwaitGraph("the row to go", "not vim.tbl_contains(vim.tbl_map(function(r) return r.branches and r.branches[1] end, graph.view.rows), 'left')")
		if got := len(n.Lines(0)); got != before-1 {
			t.Errorf("the graph has %d lines, want %d", got, before-1)
		}
		n.wantDrawing()
	})
}

// TestBranches goes to a branch that is chosen from a list, or named.
func TestBranches(t *testing.T) {
	Each(t, func(t *testing.T, version string) {
		n := forked(t, version)
		n.Lua(`vim.ui.select = function(items, opts, done)
  for _, item in ipairs(items) do
    if opts.format_item(item):find("[left]", 1, true) then return done(item) end
  end
  error("no branch left")
end`)
		right := n.Lua(`return require("convls.chat").current().session.head`)
		n.Command("Convls branches")
		n.AwaitLua("HEAD at left", "chat.session.head ~= args[1] and chat.session.info.branch == 'left'", right)
		if got := words(n.Lua(`return vim.fn.getcompletion("Convls checkout ", "cmdline")`)); len(got) != 1 || got[0] != "left" {
			t.Errorf("the branches are completed to %v", got)
		}
		n.Command("Convls checkout nowhere")
		n.wantMessage("Next: :Convls branches lists the branches")
	})
}

// TestGraphMapsOff leaves a graph without maps.
func TestGraphMapsOff(t *testing.T) {
	n := Start(t, Options{Config: "vim.g.convls = { cmd = program, keymaps = false }"})
	n.Command("Convls chat")
	n.AwaitLoaded()
	n.openGraph()
	if got := whole(n.Lua(`return #vim.api.nvim_buf_get_keymap(0, "n")`)); got != 0 {
		t.Errorf("the graph has %d maps", got)
	}
}
