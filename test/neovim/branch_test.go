package neovim

import (
	"fmt"
	"strings"
	"testing"
)

// TestBranchCommands works on branches from a chat, by name and at the cursor.
func TestBranchCommands(t *testing.T) {
	Each(t, func(t *testing.T, version string) {
		n := forked(t, version)
		n.Command("call search('^## You')")
		n.Command("Convls fork early")
		n.AwaitLua("HEAD at the message", "#chat.session.rows == 2 and chat.session.info.branch == 'early'")
		n.Command("Convls checkout left")
		n.AwaitLua("the branch", "#chat.session.rows == 3 and chat.session.info.branch == 'left' and not chat.session.rows_busy")
		n.Command("Convls compare early")
		n.wantScreen("What two branches added since they parted", "## left: 1 message,", "## early: 0 messages,")
		n.Command("close")
		// The name alone goes, and that is asked for, too.
		for i, row := range []struct{ key, left string }{{"k", "true"}, {"d", "false"}} {
			n.Type("<Esc>:Convls delete early<CR>")
			n.wantScreen("Delete the name early? No message goes.")
			n.Type(row.key)
			n.AwaitLua(fmt.Sprintf("answer %d", i+1), "vim.tbl_contains(require('convls.branch').names(), 'early') == "+row.left+" and not chat.session.info_busy")
		}
		n.Type("<Esc>:Convls delete nowhere<CR>")
		n.wantMessage("Next: :Convls branches lists the branches")
	})
}

// TestNode opens the document of a message, from the chat and from the graph, and the
// graph is asked for anew.
func TestNode(t *testing.T) {
	Each(t, func(t *testing.T, version string) {
		n := forked(t, version)
		n.Command("call search('count to 3', 'b')")
		n.Command("Convls node")
		n.wantScreen("# User", "count to 3")
		n.Command("close")
		n.openGraph()
		n.Command("Convls refresh")
		n.AwaitGraph("the graph anew", "graph.view and row.is_head")
		n.Command("Convls node")
		n.wantScreen("# Assistant", "1 2 3")
		n.Command("Convls health")
		n.wantScreen("convls: server")
	})
}

// TestDeleteWhatWasShown refuses to delete a branch that has grown since the person was
// asked.
func TestDeleteWhatWasShown(t *testing.T) {
	Each(t, func(t *testing.T, version string) {
		n := forked(t, version)
		n.Lua(`local confirm = vim.fn.confirm
function vim.fn.confirm(question)
  asked = question
  -- Meanwhile the branch goes on.
  local session, done = require("convls.chat").current().session, nil
  session:change("convls/turn/send", { content = "more", wait = true }, function() done = true end)
  vim.wait(5000, function() return done end, 5)
  return 1
end`)
		n.Command("Convls checkout left")
		n.AwaitLua("the branch", "chat.session.info.branch == 'left'")
		n.Type("<Esc>:Convls delete left<CR>")
		n.AwaitScreen("a refusal", func(s string) bool { return strings.Contains(s, "deleting the branch: ") })
		n.Type("<CR>")
		n.AwaitLua("the question", "asked and asked:find('of left for good') ~= nil")
		n.AwaitLua("both messages", "#chat.session.rows == 5 and chat.session:last().status == 'sealed'")
	})
}
