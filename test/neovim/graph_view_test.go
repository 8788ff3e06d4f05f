package neovim

import (
	"fmt"
	"strings"
	"testing"

	"convls/protocol"
	"convls/store"
	"convls/test/bench"
	"convls/test/editor"
)

// ask sends a request to Neovim's server, as another plugin would, and waits for the
// answer. For the graph it is another client's: it learns of the change by its events.
func ask[R any](n *Neovim, method string, params any) R {
	n.t.Helper()
	data, err := protocol.Marshal(params)
	if err != nil {
		n.t.Fatal(err)
	}
	reply, _ := n.Lua(`local method, params = ...
local answer
require("convls").request(method, vim.json.decode(params), function(err, result) answer = vim.json.encode(err and { err.message } or { 0, result }) end)
vim.wait(30000, function() return answer end, 5)
return answer`, method, string(data)).(string)
	rest, ok := strings.CutPrefix(reply, "[0,")
	if !ok {
		n.t.Fatalf("%s: %s", method, reply)
	}
	var r R
	// What Lua makes of empty lists is of no interest here.
	if err := protocol.Unmarshal([]byte(strings.ReplaceAll(strings.TrimSuffix(rest, "]"), ":{}", ":[]")), &r); err != nil {
		n.t.Fatalf("%s: %v in %s", method, err, reply)
	}
	return r
}

// discussed imports a session of so many turns, each about a number, and opens it. The
// third reply called a tool.
func discussed(t *testing.T, version string, turns int) (n *Neovim, session string) {
	t.Helper()
	lines := []string{`{"type":"convls","format":1}`, "", `{"type":"node","id":"root","kind":"root","status":"sealed","created_at":"2024-01-01T12:00:00Z","content":[]}`}
	before, filler := "root", strings.Repeat(" and so it goes on", 20)
	node := func(id, kind, edge, content string) {
		lines = append(lines, fmt.Sprintf(`{"type":"node","id":%q,"kind":%q,%s,"status":"sealed","created_at":"2024-01-01T12:00:00Z","content":[%s]}`, id, kind, edge, content))
	}
	for i := 1; i <= turns; i++ {
		for _, kind := range []string{"user", "assistant"} {
			id := fmt.Sprint(kind, i)
			text := map[string]string{"user": fmt.Sprintf("question %d", i), "assistant": fmt.Sprintf("answer %d", i)}[kind]
			node(id, kind, fmt.Sprintf(`"predecessor":%q`, before), fmt.Sprintf(`{"type":"text","text":%q}`, text+filler))
			before = id
		}
		if i == 3 {
			node("tool", "tool", `"caller":"assistant3"`, `{"type":"tool_call","call_id":"c","name":"look_up","arguments":{"word":"three"}},{"type":"tool_result","call_id":"c","text":"a number"}`)
		}
	}
	lines[1] = fmt.Sprintf(`{"type":"session","session_id":"discussed","title":"discussed","policy":"rolling","created_at":"2024-01-01T12:00:00Z","head":%q,"tips":[%q],"usage":{"input_tokens":0,"output_tokens":0,"calls":0,"cost_micro_usd":0},"nodes":%d}`,
		before, before, len(lines)-2)
	n = Start(t, Options{Version: version, Config: `vim.g.convls = { cmd = program, settings = { compaction = { model = "extractive", auto = false } } }`})
	report := ask[protocol.ImportReport](n, protocol.MethodSessionImport, protocol.ImportParams{Text: strings.Join(lines, "\n")})
	if len(report.Sessions) != 1 {
		t.Fatalf("nothing was imported: %+v", report)
	}
	session = report.Sessions[0].SessionID
	n.Command("Convls chat " + session)
	n.AwaitLoaded()
	n.openGraph()
	n.Command("only")
	return n, session
}

// wantFresh waits until the graph is what the server answers who asks for all of it
// now: what came in pieces is put together well.
func (n *Neovim) wantFresh() {
	n.t.Helper()
	n.AwaitGraph("all that is new", "graph.view.revision >= graph.session.revision")
	encoded, _ := n.Lua(`local graph = require("convls.graph").current()
local answer
require("convls").request("convls/graph/get", { session_id = graph.session.id, around = graph.around, reads_of = graph.reads_of,
  expanded = graph.expanded[1] and graph.expanded or nil, limit = require("convls.graph").LIMIT, covers = "count" },
  function(err, view) answer = vim.json.encode(view or err) end)
vim.wait(30000, function() return answer end, 5)
return answer`).(string)
	n.wantView(encoded)
}

// to moves the cursor to the row with a text.
func (n *Neovim) to(text string) {
	n.t.Helper()
	n.Command(fmt.Sprintf("call cursor(1, 1) | call search('%s', 'c')", text))
	n.AwaitGraph("the row "+text, fmt.Sprintf("row and vim.api.nvim_get_current_line():find(%q, 1, true)", text))
}

// count counts the lines of the graph with a text.
func (n *Neovim) count(text string) (count int) {
	n.t.Helper()
	for _, l := range n.Lines(0) {
		if strings.Contains(l, text) {
			count++
		}
	}
	return count
}

// TestGraphCalls shows what a reply called, and folds it again, from each of its rows.
func TestGraphCalls(t *testing.T) {
	Each(t, func(t *testing.T, version string) {
		n, _ := discussed(t, version, 4)
		n.wantFresh()
		n.to("answer 3")
		if got := n.count("+1 call"); got != 1 {
			t.Errorf("%d rows tell of one call", got)
		}
		n.Type("za")
		n.AwaitGraph("the call", "#graph.view.rows == 10 and row.preview:find('answer 3')")
		n.wantScreen("└ ▪ look_up")
		n.wantFresh()
		n.Type("j")
		n.AwaitGraph("the cursor on the call", "row.kind == 'tool'")
		n.Type("<Tab>")
		n.AwaitGraph("the reply alone", "#graph.view.rows == 9 and row.preview:find('answer 3')")
		n.wantFresh()
		n.to("question 2")
		n.Type("za")
		n.wantMessage("nothing is folded here")
	})
}

// TestGraphSummary makes a summary: what it stands for goes into a capsule, comes back
// as ghosts and goes again, and the cursor stays where it was.
func TestGraphSummary(t *testing.T) {
	Each(t, func(t *testing.T, version string) {
		n, session := discussed(t, version, 6)
		n.to("question 2")
		r := ask[protocol.CompactionResult](n, protocol.MethodCompactionRun, map[string]any{"session_id": session, "wait": true, "keep_recent_tokens": 200})
		if r.State != protocol.RunFinished || r.Covered < 4 {
			t.Fatalf("the compaction ended as %+v", r)
		}
		folded := fmt.Sprintf("(%d messages folded)", r.Covered)
		n.AwaitGraph("the cursor on the capsule", "row.kind == 'summary' and row.fold.state == 'folded'")
		n.wantScreen(folded, "◎")
		n.wantFresh()
		if got := n.count("question 2"); got != 0 {
			t.Errorf("%d rows are there that are folded", got)
		}
		// Ghosts come above the capsule, which stays where it is on the screen.
		n.Type("za")
		n.AwaitGraph("the ghosts", "row.kind == 'summary' and row.fold.state == 'expanded'")
		n.wantScreen("┊ question 2", fmt.Sprintf("(%d messages, shown above)", r.Covered))
		n.wantFresh()
		if got := int64(n.count("┊")); got != r.Covered {
			t.Errorf("there are %d ghosts, want %d", got, r.Covered)
		}
		// A ghost folds what stands for it.
		n.to("question 2")
		n.Type("<Tab>")
		n.AwaitGraph("the capsule again", "row.kind == 'summary' and row.fold.state == 'folded'")
		n.wantFresh()
		n.Type("<Tab>")
		n.AwaitGraph("the ghosts again", "row.kind == 'summary' and row.fold.state == 'expanded'")
		n.Type("<Tab>")
		n.AwaitGraph("the capsule for good", "row.kind == 'summary' and row.fold.state == 'folded'")
		n.wantFresh()
	})
}

// TestGraphReads marks what a reply and a summary have read, and shows what they are.
func TestGraphReads(t *testing.T) {
	Each(t, func(t *testing.T, version string) {
		n, session := discussed(t, version, 6)
		r := ask[protocol.CompactionResult](n, protocol.MethodCompactionRun, map[string]any{"session_id": session, "wait": true, "keep_recent_tokens": 200})
		n.AwaitGraph("the capsule", "graph:line_of(args[1])", r.SummaryID)
		turn := ask[protocol.TurnResult](n, protocol.MethodTurnSend, map[string]any{"session_id": session, "content": "count to 3", "wait": true})
		n.AwaitGraph("the reply", "graph:line_of(args[1]) and graph:line_of_head() == graph:line_of(args[1]) and graph.drawing.rows[graph:line_of(args[1])].status == 'sealed'", turn.ReplyID)
		n.to("1 2 3")
		n.Type("m")
		n.AwaitGraph("the marks", "graph.view.rows[1].read")
		n.wantFresh()
		// The root, the capsule, what was kept, and the message: all but the reply itself.
		if got, want := n.count(" read"), len(n.Lines(0))-1; got != want {
			t.Errorf("%d rows are marked, want %d:\n%s", got, want, strings.Join(n.Lines(0), "\n"))
		}
		n.Type("m")
		n.AwaitGraph("no marks", "not graph.view.rows[1].read")
		n.wantFresh()
		// A summary has read what it stands for.
		n.to("messages folded")
		n.Type("za")
		n.AwaitGraph("the ghosts", "row.fold.state == 'expanded'")
		n.Type("m")
		n.AwaitGraph("the marks of the summary", "graph.reads_of == row.id")
		if got := int64(n.count(" read")); got < r.Covered {
			t.Errorf("%d rows are marked, want the %d that it stands for:\n%s", got, r.Covered, strings.Join(n.Lines(0), "\n"))
		}
		n.Type("m")
		n.AwaitGraph("no marks of the summary", "not graph.reads_of")
		// A message has read nothing: the person is told, and the graph goes on.
		n.to("question 2")
		n.Type("m")
		n.wantMessage("which reads nothing: name a reply")
		n.Type("<Esc>")
		n.AwaitGraph("no marks of the message", "not graph.reads_of and row.preview:find('question 2')")
		n.wantFresh()
		n.to("shown above")
		n.Type("K")
		n.wantScreen("╭ Summary")
		n.Type("q")
		n.AwaitGraph("the graph", "row.fold.state == 'expanded'")
		n.Type("za")
		n.AwaitGraph("the capsule", "row.kind == 'summary' and row.fold.state == 'folded'")
		n.Type("K")
		n.wantScreen("╭ Summary")
	})
}

// TestGraphPages goes through a session of 3,000 nodes with branches, to its beginning
// and back.
func TestGraphPages(t *testing.T) {
	Each(t, func(t *testing.T, version string) {
		home := editor.NewHome(t)
		session := filledSession(t, home, 3000, bench.Options{ForkEvery: 50})
		n := Start(t, Options{Version: version, Home: home})
		n.Command("Convls chat " + session)
		n.AwaitLoaded()
		n.openGraph()
		n.AwaitGraph("the cursor at HEAD", "row.is_head and #graph.view.rows == 400 and graph.view.before ~= ''")
		n.wantScreen("◀ HEAD")
		n.wantFresh()
		// Near an end of the window the next one comes, and what is looked at stays.
		n.Command("call cursor(30, 1) | normal! zt")
		place := n.place()
		n.AwaitGraph("the window around the cursor", "graph.around == row.id and vim.fn.line('.') > 100")
		if got := n.place(); got != place {
			t.Errorf("the cursor is on %s, was on %s", got, place)
		}
		n.Command("normal! G")
		n.AwaitGraph("HEAD", "graph.view.after == nil and graph.around == row.id")
		if got := n.pages("gg", "before"); got != 3001 {
			t.Errorf("%d rows were shown on the way up, want all 3001", got)
		}
		n.Type("gg")
		n.AwaitGraph("the root", "row.kind == 'root'")
		if got := n.pages("G", "after"); got != 3001 {
			t.Errorf("%d rows were shown on the way down, want all 3001", got)
		}
	})
}

// pages goes from window to window by a key until there are no more rows before or after
// the window, and returns how many rows it has seen.
func (n *Neovim) pages(key, end string) int64 {
	n.t.Helper()
	n.Lua(`seen = {}`)
	for range 100 {
		if n.Lua(`local graph = require("convls.graph").current()
for _, row in ipairs(graph.view.rows) do seen[row.id] = true end
first = graph.view.rows[1].id
return (graph.view[...] or "") == ""`, end) == true {
			break
		}
		n.Type(key)
		n.AwaitGraph("the next window", "graph.view.rows[1].id ~= first and graph.around == row.id")
		n.wantDrawing()
	}
	n.wantFresh()
	return whole(n.Lua(`return vim.tbl_count(seen)`))
}

// toRoot goes to the first window, and returns the id of a node near its beginning.
func (n *Neovim) toRoot() string {
	n.t.Helper()
	n.pages("gg", "before")
	n.Type("gg")
	n.AwaitGraph("the root", "row.kind == 'root'")
	id, _ := n.Lua(`return require("convls.graph").current().view.rows[11].id`).(string)
	return id
}

// filledSession makes a session of so many nodes.
func filledSession(t testing.TB, home *editor.Home, nodes int, o bench.Options) string {
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
	out, err := s.Create(t.Context(), store.Request{}, store.Info{Title: "filled", Model: "offline"}, "")
	if err != nil {
		t.Fatal(err)
	}
	sess, err := s.Session(out.Result)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := bench.Fill(t.Context(), sess, nodes, o); err != nil {
		t.Fatal(err)
	}
	return out.Result
}

// TestGraphGoTo leads to nodes: to one that is folded, to one of another window, and to
// none, which is told.
func TestGraphGoTo(t *testing.T) {
	Each(t, func(t *testing.T, version string) {
		n, session := discussed(t, version, 6)
		folded := n.Lua(`return require("convls.graph").current().view.rows[2].id`)
		ask[protocol.CompactionResult](n, protocol.MethodCompactionRun, map[string]any{"session_id": session, "wait": true, "keep_recent_tokens": 200})
		n.AwaitGraph("the capsule", "not graph:line_of(args[1])", folded)
		n.to("HEAD")
		n.Lua(`require("convls.graph").current():go_to(...)`, folded)
		n.AwaitGraph("the ghost", "row.id == args[1] and row.ghost", folded)
		n.wantFresh()
		n.Lua(`require("convls.graph").current():go_to("nowhere")`)
		n.wantMessage("that message is not there any more")
		n.AwaitGraph("the cursor where it was", "row.id == args[1]", folded)
		n.wantFresh()

		home := editor.NewHome(t)
		session = filledSession(t, home, 1500, bench.Options{})
		n = Start(t, Options{Version: version, Home: home})
		n.Command("Convls chat " + session)
		n.AwaitLoaded()
		n.openGraph()
		early := n.Lua(`local id
require("convls").request("convls/graph/get", { session_id = ..., limit = 1500 }, function(_, view) id = view.rows[100].id end)
vim.wait(30000, function() return id end, 5)
return id`, session)
		n.Lua(`require("convls.graph").current():go_to(...)`, early)
		n.AwaitGraph("the node far above", "row.id == args[1]", early)
		n.wantFresh()
	})
}

// TestGraphByName opens the graph by the name of its buffer, and reads it again.
func TestGraphByName(t *testing.T) {
	Each(t, func(t *testing.T, version string) {
		n := forked(t, version)
		n.Lua(`vim.cmd.edit("convls:/session/" .. require("convls.chat").current().session.id .. "/graph")`)
		n.AwaitGraph("the graph", "row.is_head")
		n.wantFresh()
		n.Command("edit")
		n.AwaitGraph("the graph again", "row and row.kind")
		n.wantFresh()
	})
}

// place is the node at the cursor and the line of the window that it stands in.
func (n *Neovim) place() string {
	n.t.Helper()
	v, _ := n.Lua(`return ("%s in line %d"):format(require("convls.graph").current():row().id, vim.fn.winline())`).(string)
	return v
}

// TestGraphElsewhere: a person looks at the beginning of a long session while HEAD
// moves and rows come at its end. What they look at stays where it is.
func TestGraphElsewhere(t *testing.T) {
	Each(t, func(t *testing.T, version string) {
		home := editor.NewHome(t)
		session := filledSession(t, home, 1500, bench.Options{ForkEvery: 50})
		n := Start(t, Options{Version: version, Home: home})
		n.Command("Convls chat " + session)
		n.AwaitLoaded()
		n.openGraph()
		n.Command("only")
		at := n.toRoot()
		n.Type("gg20j5<C-E>")
		n.AwaitGraph("the cursor in the middle", "vim.fn.line('.') == 21 and vim.fn.winline() == 16")
		place := n.place()
		ask[protocol.HeadResult](n, protocol.MethodBranchCheckout, map[string]any{"session_id": session, "node_id": at})
		n.AwaitGraph("HEAD", "graph.drawing.rows[graph:line_of_head() or 0] and graph.drawing.rows[graph:line_of_head()].id == args[1]", at)
		if got := n.place(); got != place {
			t.Errorf("the cursor is on %s, was on %s", got, place)
		}
		n.wantFresh()
		turn := ask[protocol.TurnResult](n, protocol.MethodTurnSend, map[string]any{"session_id": session, "content": "count to 3", "wait": true})
		n.wantFresh()
		if got := n.place(); got != place {
			t.Errorf("the cursor is on %s, was on %s", got, place)
		}
		// The new end is where it belongs.
		n.pages("G", "after")
		n.AwaitGraph("the reply", "graph.view.rows[#graph.view.rows].id == args[1]", turn.ReplyID)
		n.wantFresh()
	})
}

// TestGraphOfTwoWindows: each window keeps its cursor on its node when another client
// moves HEAD, sends a message, and deletes the branch that one of them is on.
func TestGraphOfTwoWindows(t *testing.T) {
	Each(t, func(t *testing.T, version string) {
		n := forked(t, version)
		session := n.Lua(`return require("convls.chat").current().session.id`)
		n.openGraph()
		n.Command("split")
		n.to("◆")
		n.Command("wincmd w")
		n.to("left")
		places := func() string {
			v, _ := n.Lua(`local out = {}
for _, win in ipairs(vim.fn.win_findbuf(vim.fn.bufnr())) do
  local row = require("convls.graph").current().drawing.rows[vim.api.nvim_win_get_cursor(win)[1]]
  out[#out + 1] = row.kind
end
table.sort(out)
return table.concat(out, " ")`).(string)
			return v
		}
		ask[protocol.HeadResult](n, protocol.MethodBranchCheckout, map[string]any{"session_id": session, "branch": "left"})
		n.AwaitGraph("HEAD at left", "row.is_head and row.branches[1] == 'left'")
		n.wantFresh()
		ask[protocol.TurnResult](n, protocol.MethodTurnSend, map[string]any{"session_id": session, "content": "count to 2", "wait": true})
		n.AwaitGraph("the reply", "#graph.view.rows == 6 and graph.view.rows[6].is_head and graph.view.rows[6].status == 'sealed'")
		n.wantFresh()
		if got := places(); got != "assistant root" {
			t.Errorf("the cursors are on %s", got)
		}
		n.Type("m")
		n.AwaitGraph("the marks", "graph.reads_of == row.id")
		// HEAD goes to the other answer, and what was left goes for good: the marks with it.
		ask[protocol.HeadResult](n, protocol.MethodBranchCheckout, map[string]any{"session_id": session, "node_id": n.Lua(`for _, row in ipairs(require("convls.graph").current().view.rows) do
  if row.kind == "assistant" and not row.on_head then return row.id end
end`)})
		ask[protocol.BranchDeleteResult](n, protocol.MethodBranchDelete, map[string]any{"session_id": session, "tip": n.Lua(`return require("convls.graph").current().view.rows[6].id`), "confirm": true})
		n.AwaitGraph("the rows to go", "#graph.view.rows == 3 and not graph.reads_of")
		n.wantFresh()
		if got := places(); got != "assistant root" {
			t.Errorf("the cursors are on %s", got)
		}
		if messages := n.Messages(); strings.Contains(messages, "reading the graph") {
			t.Errorf("the person was told of what the graph helped itself: %s", messages)
		}
	})
}
