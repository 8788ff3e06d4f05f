package neovim

import (
	"strings"
	"testing"

	"convls/protocol"
	"convls/test/bench"
	"convls/test/editor"
)

// TestGraphOfDeletedSession says that it is one, and asks for nothing any more.
func TestGraphOfDeletedSession(t *testing.T) {
	Each(t, func(t *testing.T, version string) {
		n := forked(t, version)
		session := n.Lua(`return require("convls.chat").current().session.id`)
		n.openGraph()
		n.Command("only")
		before := strings.Join(n.Lines(0), "\n")
		ask[protocol.SessionDeleteResult](n, protocol.MethodSessionDelete, map[string]any{"session_id": session, "confirm": true})
		n.wantScreen("this session was deleted")
		n.Lua(`local server, asked = require("convls.server"), {}
local request = server.request
server.request = function(method, ...)
  asked[#asked + 1] = method
  return request(method, ...)
end
_G.asked = asked`)
		n.Type("RggG")
		n.AwaitGraph("the cursor at the end", "vim.fn.line('.') == vim.fn.line('$')")
		if got := words(n.Lua(`return asked`)); len(got) != 0 {
			t.Errorf("the server was asked for %v", got)
		}
		if got := strings.Join(n.Lines(0), "\n"); got != before {
			t.Errorf("the picture is\n%s\n--- want\n%s", got, before)
		}
	})
}

// TestGraphAroundDeleted: a person looks at the middle of a long session, which another
// client deletes. They are told, and are at HEAD.
func TestGraphAroundDeleted(t *testing.T) {
	Each(t, func(t *testing.T, version string) {
		home := editor.NewHome(t)
		session := filledSession(t, home, 900, bench.Options{})
		n := Start(t, Options{Version: version, Home: home})
		n.Command("Convls chat " + session)
		n.AwaitLoaded()
		n.openGraph()
		n.AwaitGraph("the cursor at HEAD", "row.is_head")
		tip := n.Lua(`return require("convls.graph").current():row().id`)
		early := n.toRoot()
		// Back down, to the middle.
		n.Type("G")
		n.AwaitGraph("the next window", "graph.around == row.id and row.id ~= args[1]", early)
		ask[protocol.HeadResult](n, protocol.MethodBranchCheckout, map[string]any{"session_id": session, "node_id": early})
		turn := ask[protocol.TurnResult](n, protocol.MethodTurnSend, map[string]any{"session_id": session, "content": "count to 3", "wait": true})
		ask[protocol.BranchDeleteResult](n, protocol.MethodBranchDelete, map[string]any{"session_id": session, "tip": tip, "confirm": true})
		n.wantMessage("what the graph was at is not there any more; this is HEAD")
		n.AwaitGraph("the cursor at HEAD again", "row.is_head and row.id == args[1] and not graph.around", turn.ReplyID)
		n.wantFresh()
	})
}

// TestGraphWithoutServer: the server is killed and started again. The graph says so,
// starts none by itself, and goes on where the person is by then.
func TestGraphWithoutServer(t *testing.T) {
	Each(t, func(t *testing.T, version string) {
		home := editor.NewHome(t)
		session := filledSession(t, home, 900, bench.Options{})
		n := Start(t, Options{Version: version, Home: home})
		n.Command("Convls chat " + session)
		n.AwaitLoaded()
		n.openGraph()
		n.Command("only")
		n.AwaitGraph("the cursor at HEAD", "row.is_head")
		pid := n.serverPID()
		kill(t, pid)
		n.wantMessage(":Convls restart starts it again")
		n.Type("<CR>")
		n.wantScreen("the server has gone. Next: :Convls restart")
		n.Type("gg3j")
		n.AwaitGraph("the cursor at the top", "vim.fn.line('.') == 4")
		n.wantDrawing()
		if got := n.Lua(`return require("convls.server").status().state`); got != "off" {
			t.Errorf("the server is %v: moving the cursor must not start it", got)
		}
		id := n.Lua(`return require("convls.graph").current():row().id`)
		n.Command("Convls restart")
		n.AwaitGraph("the window around the cursor", "row.id == args[1] and graph.around == args[1]", id)
		n.AwaitScreen("the end of the warning", func(s string) bool { return !strings.Contains(s, "the server has gone") })
		n.wantFresh()
		n.Type("<CR>")
		n.AwaitGraph("HEAD at the cursor", "row.is_head and row.id == args[1]", id)
		n.wantFresh()
		if n.serverPID() == pid {
			t.Error("the server is the same one")
		}
	})
}
