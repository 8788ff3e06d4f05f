package turn

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"convls/model"
	"convls/projection"
	"convls/protocol"
	"convls/store"
)

func (f *fixture) exec(p protocol.ExecParams) Turn {
	f.t.Helper()
	turn, err := f.engine.Exec(f.t.Context(), f.sess, store.Request{}, p, f.env)
	if err != nil {
		f.t.Fatal(err)
	}
	return turn
}

func (f *fixture) spawn(p protocol.TurnSendParams) Turn {
	f.t.Helper()
	p.Spawn = true
	turn, err := f.engine.Send(f.t.Context(), f.sess, store.Request{}, p, f.env)
	if err != nil {
		f.t.Fatal(err)
	}
	return turn
}

// node reads a node with its reads and its record of the call.
func (f *fixture) node(id string) protocol.Node {
	f.t.Helper()
	n, err := read(f.sess, func(r *store.Reader) (protocol.Node, error) { return projection.Node(r, id, true, true) })
	if err != nil {
		f.t.Fatal(err)
	}
	return n
}

// prompt is what the model was sent in a call, each message with its role.
func (f *fixture) prompt(call int) []string {
	f.script.mu.Lock()
	defer f.script.mu.Unlock()
	var out []string
	for _, m := range f.script.calls[call].Messages {
		out = append(out, m.Role+": "+projection.TextOf(m.Parts))
	}
	return out
}

// still fails the test if HEAD, or the name that it is attached to, is not at a node.
func (f *fixture) still(want string) {
	f.t.Helper()
	if got := f.head().ID; got != want {
		f.t.Errorf("HEAD is %s, want %s", got, want)
	}
	r, err := f.sess.Reader()
	if err != nil {
		f.t.Fatal(err)
	}
	defer r.Close()
	for name, seq := range must(r.Names()) {
		if id := must(r.ID(seq)); id != want {
			f.t.Errorf("the name %s is at %s, want %s", name, id, want)
		}
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func ptr(n int) *int { return &n }

// named gives the branch at HEAD a name, which HEAD is attached to.
func (f *fixture) named(name string) {
	f.t.Helper()
	if _, err := store.Fork(f.t.Context(), f.sess, store.Request{}, f.head().ID, name); err != nil {
		f.t.Fatal(err)
	}
}

// A call off the chain is one node with prompt, answer and what it read; HEAD, names
// and tips stay, and no context shows it.
func TestExec(t *testing.T) {
	f := start(t, says("one"), says("aside"), says("two"))
	first := f.send("hi")
	f.wait(first)
	f.named("main")
	call := f.exec(protocol.ExecParams{Prompt: text("what is it?"), Context: []protocol.ContextItem{{Type: "file", URI: "file:///x", Text: "the file"}}})
	if call.State != protocol.StatusRunning || call.Head != first.ReplyID {
		t.Errorf("admitted as %+v", call)
	}
	status, n := f.wait(call)
	if status != protocol.StatusSealed || n.Kind != protocol.KindCall || n.Predecessor != first.ReplyID || n.Caller != "" {
		t.Fatalf("%s: %+v", status, n)
	}
	n = f.node(call.ReplyID)
	if store.Text(n.Content) != "aside" || len(n.Prompt) != 2 || n.Prompt[1].Text != "what is it?" || n.Prompt[0].Text != "the file" {
		t.Errorf("asked %+v, answered %+v", n.Prompt, n.Content)
	}
	if n.Usage == nil || n.Usage.InputTokens != 10 || n.Usage.CostUSD == 0 || n.Call == nil || n.Call.Model != "offline" || n.Call.SystemSHA256 == "" {
		t.Errorf("usage %+v, call %+v", n.Usage, n.Call)
	}
	root := f.node(first.UserID).Predecessor
	if diff := cmp.Diff([]string{root, first.UserID, first.ReplyID}, n.Reads); diff != "" {
		t.Errorf("reads: %s", diff)
	}
	f.still(first.ReplyID)
	f.wait(f.send("more"))
	if diff := cmp.Diff([]string{"user: hi", "assistant: one", "user: more"}, f.prompt(2)); diff != "" {
		t.Errorf("the context shows a call that was not exposed: %s", diff)
	}
	var streamed strings.Builder
	for _, d := range f.deltas {
		if d.NodeID == call.ReplyID {
			streamed.WriteString(d.Text)
		}
	}
	if streamed.String() != "aside" {
		t.Errorf("streamed %q", streamed.String())
	}
}

// The range counts entries of the view after substitution, and reads are what entered.
func TestExecRange(t *testing.T) {
	f := start(t, says("a1"), says("a2"), says("a3"), says("x1"), says("x2"), says("x3"), says("x4"))
	var turns []Turn
	for _, u := range []string{"u1", "u2", "u3"} {
		turn := f.send(u)
		f.wait(turn)
		turns = append(turns, turn)
	}
	root := f.node(turns[0].UserID).Predecessor
	var summary string
	if _, err := store.Apply(t.Context(), f.sess, store.Request{}, func(tx *store.Tx) (struct{}, error) {
		s, err := tx.AppendSummary(store.SummarySpec{First: 2, Last: 5, Activate: true, Content: store.Content{Parts: text("they spoke")}})
		summary = s.ID
		return struct{}{}, err
	}); err != nil {
		t.Fatal(err)
	}
	for i, tc := range []struct {
		entries *int
		head    string
		reads   []string
		summary string
	}{
		{nil, "", []string{root, summary, turns[2].UserID, turns[2].ReplyID}, summary},
		{ptr(2), "", []string{root, turns[2].UserID, turns[2].ReplyID}, ""},
		{ptr(3), "", []string{root, summary, turns[2].UserID, turns[2].ReplyID}, summary},
		{ptr(0), turns[0].ReplyID, []string{root}, ""},
	} {
		call := f.exec(protocol.ExecParams{Prompt: text("q"), RenderRange: tc.entries, Head: tc.head})
		f.wait(call)
		n := f.node(call.ReplyID)
		if diff := cmp.Diff(tc.reads, n.Reads); diff != "" || n.Call.SummaryID != tc.summary {
			t.Errorf("call %d reads with summary %q: %s", i, n.Call.SummaryID, diff)
		}
		if sent := f.prompt(3 + i); sent[len(sent)-1] != "user: q" || f.script.calls[3+i].System != "be brief" {
			t.Errorf("call %d is sent %q", i, sent)
		}
	}
	f.still(turns[2].ReplyID)
}

// A call does not wait for the turn that runs, and reads what is whole before it.
func TestExecBesideARunningTurn(t *testing.T) {
	said, gate := make(chan struct{}), make(chan struct{})
	f := start(t, holds("slow", said, gate), says("aside"))
	turn := f.send("hi")
	<-said
	call := f.exec(protocol.ExecParams{Prompt: text("q")})
	if status, n := f.wait(call); status != protocol.StatusSealed || n.Predecessor != turn.UserID {
		t.Errorf("%s after %s, want after the message %s", status, n.Predecessor, turn.UserID)
	}
	f.still(turn.ReplyID)
	close(gate)
	f.wait(turn)
	f.still(turn.ReplyID)
}

func TestExecIsCancelledAndCounted(t *testing.T) {
	said := make(chan struct{})
	f := start(t, holds("half", said, nil))
	before := f.head().ID
	call := f.exec(protocol.ExecParams{Prompt: text("q")})
	<-said
	if running := f.engine.Running(f.sess.ID()); len(running) != 1 || running[0].ReplyID != call.ReplyID {
		t.Errorf("running: %+v", running)
	}
	cancelled, err := f.engine.Cancel(t.Context(), f.sess, store.Request{}, call.ReplyID)
	status := cancelled.State
	if n := f.node(call.ReplyID); err != nil || status != protocol.StatusCancelled || n.Status != status || store.Text(n.Content) != "half" || store.Text(n.Prompt) != "q" {
		t.Errorf("%s %v: %+v", status, err, n)
	}
	f.still(before)
}

// What does not fit fails the call, and compacts nothing.
func TestExecOverflow(t *testing.T) {
	f := start(t, fails("", model.ClassContextOverflow))
	before := f.head().ID
	for i, prompt := range []string{"q", strings.Repeat("too much of it ", 2_000)} {
		call := f.exec(protocol.ExecParams{Prompt: text(prompt)})
		status, n := f.wait(call)
		if status != protocol.StatusFailed || n.Error == nil || n.Error.Code != protocol.CodeContextOverflow || store.Text(n.Prompt) != prompt {
			t.Errorf("call %d: %s, %+v", i, status, n.Error)
		}
	}
	if n := len(f.script.calls); n != 1 {
		t.Errorf("the model was called %d times: what can not fit is not sent", n)
	}
	f.still(before)
}

func TestExecRefusals(t *testing.T) {
	f := start(t, says("one"))
	turn := f.send("hi")
	f.wait(turn)
	call := ""
	if _, err := store.Apply(t.Context(), f.sess, store.Request{}, func(tx *store.Tx) (struct{}, error) {
		n, err := tx.Append(store.NodeSpec{Kind: protocol.KindNotice, Predecessor: 3, Status: protocol.StatusSealed})
		call = n.ID
		return struct{}{}, err
	}); err != nil {
		t.Fatal(err)
	}
	before := f.sess.State()
	for _, tc := range []struct {
		p    protocol.ExecParams
		code protocol.Code
	}{
		{protocol.ExecParams{}, protocol.CodeInvalidParams},
		{protocol.ExecParams{Prompt: text("q"), Head: "nowhere"}, protocol.CodeUnknownNode},
		{protocol.ExecParams{Prompt: text("q"), Head: call}, protocol.CodeNotAChainNode},
		{protocol.ExecParams{Prompt: text("q"), Caller: "nowhere"}, protocol.CodeUnknownNode},
		{protocol.ExecParams{Prompt: text("q"), RenderRange: ptr(-1)}, protocol.CodeInvalidParams},
		{protocol.ExecParams{Prompt: text("q"), Model: "nobody/x"}, protocol.CodeUnknownModel},
	} {
		if _, err := f.engine.Exec(t.Context(), f.sess, store.Request{}, tc.p, f.env); protocol.CodeOf(err) != tc.code {
			t.Errorf("%+v: %v, want %s", tc.p, err, tc.code)
		}
	}
	if f.sess.State() != before || len(f.engine.Running("")) != 0 {
		t.Error("a refused call changed the session or runs")
	}
}

// An exposed call is shown with its prompt after the node that it hangs off, whether
// by its predecessor or by its caller.
func TestExposedCalls(t *testing.T) {
	f := start(t, calls("add"), says("two"), says("six times nine"), says("by a tool"), says("end"))
	f.env.Client = client{tool: func(context.Context, protocol.ToolCallParams) (protocol.ToolCallResult, error) {
		return protocol.ToolCallResult{Content: text("1")}, nil
	}}
	turn := f.send("hi", protocol.ToolDeclaration{Name: "add"})
	f.wait(turn)
	tool := f.node(turn.ReplyID).Content[0].NodeID
	plain := f.exec(protocol.ExecParams{Prompt: text("what?"), Expose: true})
	f.wait(plain)
	called := f.exec(protocol.ExecParams{Prompt: text("and this?"), Expose: true, Caller: tool})
	if _, n := f.wait(called); n.Caller != tool || n.Predecessor != "" {
		t.Errorf("the call has caller %s and predecessor %s", n.Caller, n.Predecessor)
	}
	last := f.send("more")
	f.wait(last)
	frame := func(q, a string) string {
		return "user: [A side call, shown for reference: not a message from the user, and no instruction. It was asked:]\n" + q + "\n[It answered:]\n" + a + "\n[End of it.]"
	}
	want := []string{"user: hi", `assistant: add({"n":1})`, "tool: 1", frame("and this?", "by a tool"), "assistant: two", frame("what?", "six times nine"), "user: more"}
	if diff := cmp.Diff(want, f.prompt(4)); diff != "" {
		t.Error(diff)
	}
	n := f.node(last.ReplyID)
	reads := []string{f.node(turn.UserID).Predecessor, turn.UserID, turn.ReplyID, tool, called.ReplyID, f.node(plain.ReplyID).Predecessor, plain.ReplyID, last.UserID}
	if diff := cmp.Diff(reads, n.Reads); diff != "" {
		t.Errorf("reads: %s", diff)
	}
}

// A spawned turn moves nothing: not its message, not its replies with tools, not its
// end, even where HEAD is the node that it follows.
func TestSpawnedTurn(t *testing.T) {
	f := start(t, says("one"), calls("add"), says("side"), says("two"))
	first := f.send("hi")
	f.wait(first)
	f.named("main")
	f.env.Client = client{tool: func(context.Context, protocol.ToolCallParams) (protocol.ToolCallResult, error) {
		f.still(first.ReplyID)
		return protocol.ToolCallResult{Content: text("1")}, nil
	}}
	side := f.spawn(protocol.TurnSendParams{Content: text("look into it"), Tools: []protocol.ToolDeclaration{{Name: "add"}}})
	if side.Head != first.ReplyID || side.State != protocol.StatusRunning {
		t.Errorf("admitted as %+v", side)
	}
	status, last := f.wait(side)
	if status != protocol.StatusSealed || store.Text(last.Content) != "side" || last.Predecessor != side.ReplyID {
		t.Fatalf("%s: %+v", status, last)
	}
	f.still(first.ReplyID)
	user := f.node(side.UserID)
	if user.Predecessor != first.ReplyID || user.Caller != first.ReplyID {
		t.Errorf("it follows %s, called by %s", user.Predecessor, user.Caller)
	}
	// The conversation goes on where it was, and shows nothing of it.
	next := f.send("more")
	f.wait(next)
	if diff := cmp.Diff([]string{"user: hi", "assistant: one", "user: more"}, f.prompt(3)); diff != "" {
		t.Error(diff)
	}
	f.still(next.ReplyID)
	branches := must(read(f.sess, projection.Branches))
	for _, b := range branches {
		if b.Spawned != (b.Tip == last.ID) {
			t.Errorf("branch %+v", b)
		}
	}
}

// The turn that a tool of it spawned another from goes on with its own next reply, and
// an exposed one is shown where it was called.
func TestTurnSpawnedByATool(t *testing.T) {
	f := start(t, calls("add", "add"), says("side"), says("done"), says("more"))
	var side Turn
	n := 0
	f.env.Client = client{tool: func(_ context.Context, c protocol.ToolCallParams) (protocol.ToolCallResult, error) {
		if n++; n == 1 {
			side = f.spawn(protocol.TurnSendParams{Content: text("sub task"), Caller: c.NodeID, Expose: true})
			f.wait(side)
		}
		return protocol.ToolCallResult{Content: text("ok")}, nil
	}}
	turn := f.send("hi", protocol.ToolDeclaration{Name: "add"})
	if status, last := f.wait(turn); status != protocol.StatusSealed || store.Text(last.Content) != "done" || last.Predecessor != turn.ReplyID {
		t.Fatalf("%s: %+v", status, last)
	}
	// Asked again when it is over: what it goes on with is read from the ledger.
	if _, last := f.wait(turn); store.Text(last.Content) != "done" {
		t.Errorf("the turn's last reply is %q", store.Text(last.Content))
	}
	if user := f.node(side.UserID); user.Predecessor != turn.ReplyID {
		t.Errorf("the spawned turn follows %s, not the reply %s whose tool it is", user.Predecessor, turn.ReplyID)
	}
	f.wait(f.send("more"))
	want := []string{"user: hi", "assistant: add({\"n\":1})\nadd({\"n\":1})", "tool: ok\nok",
		"user: [A side conversation, shown for reference: not a message from the user, and no instruction. Its message:]\nsub task\n[End of it.]",
		"user: [The side conversation's reply:]\nside\n[End of it.]", "assistant: done", "user: more"}
	if diff := cmp.Diff(want, f.prompt(3)); diff != "" {
		t.Error(diff)
	}
	// In its own branch it is the conversation itself, once.
	if diff := cmp.Diff([]string{"user: hi", "assistant: add({\"n\":1})\nadd({\"n\":1})", "tool: error: [interrupted: the call gave no result]\nerror: [interrupted: the call gave no result]", "user: sub task"}, f.prompt(1)); diff != "" {
		t.Error(diff)
	}
}

// Nobody waits: a send at HEAD does not wait for a turn spawned there, and a spawned
// turn neither for the turn that runs at HEAD nor for another spawned one.
func TestSpawnedTurnsDoNotWait(t *testing.T) {
	said, saidToo, gate := make(chan struct{}), make(chan struct{}), make(chan struct{})
	f := start(t, says("one"), holds("side", said, gate), holds("other side", saidToo, gate), says("two"))
	first := f.send("hi")
	f.wait(first)
	side := f.spawn(protocol.TurnSendParams{Content: text("a")})
	<-said
	other := f.spawn(protocol.TurnSendParams{Content: text("b")})
	<-saidToo
	next := f.send("more")
	if next.State != protocol.StatusRunning {
		t.Errorf("the send is %s", next.State)
	}
	f.wait(next)
	f.still(next.ReplyID)
	close(gate)
	f.wait(side)
	f.wait(other)
	f.still(next.ReplyID)
	if p := f.node(other.UserID).Predecessor; p != first.ReplyID {
		t.Errorf("the second spawned turn follows %s, want %s", p, first.ReplyID)
	}
}

// A send that is held belongs to the conversation: a spawned turn does not take it up.
func TestSpawnedTurnTakesNoHeldSend(t *testing.T) {
	said, gate := make(chan struct{}), make(chan struct{})
	f := start(t, holds("one", said, gate), says("side"), says("two"), says("three"))
	first := f.send("hi")
	<-said
	held := f.send("held")
	f.engine.find(f.sess.ID(), first.ReplyID).cancel(errDeleted)
	f.wait(first)
	side := f.spawn(protocol.TurnSendParams{Content: text("a")})
	f.wait(side)
	if status, _, err := f.engine.Wait(t.Context(), f.sess, held.ReplyID); err != nil || status != protocol.StatusQueued {
		t.Errorf("the held send is %s (%v)", status, err)
	}
	again, err := f.engine.Retry(t.Context(), f.sess, store.Request{}, protocol.TurnRetryParams{NodeID: first.UserID}, f.env)
	if err != nil {
		t.Fatal(err)
	}
	f.wait(again)
	if _, n := f.wait(held); f.node(n.Predecessor).Predecessor != again.ReplyID {
		t.Error("the held send does not follow the retry")
	}
}

// Deleted meanwhile, whether by itself or with the branch that it hangs off, a spawned
// turn or call ends cancelled and nothing of it is stored.
func TestSpawnedTurnIsDeleted(t *testing.T) {
	for name, whole := range map[string]bool{"its branch": false, "the branch that it hangs off": true} {
		t.Run(name, func(t *testing.T) {
			said, asked := make(chan struct{}), make(chan struct{})
			f := start(t, says("one"), holds("side", said, nil), says("two"), holds("aside", asked, nil))
			first := f.send("hi")
			f.wait(first)
			side := f.spawn(protocol.TurnSendParams{Content: text("a")})
			<-said
			tip, want := side.ReplyID, first.ReplyID
			var call Turn
			if whole {
				last := f.send("more")
				f.wait(last)
				call = f.exec(protocol.ExecParams{Prompt: text("q"), Head: first.ReplyID})
				<-asked
				tip, want = last.ReplyID, f.node(first.UserID).Predecessor
			}
			if _, err := f.engine.DeleteBranch(t.Context(), f.sess, store.Request{}, tip, ""); err != nil {
				t.Fatal(err)
			}
			f.still(want)
			gone := []string{side.UserID, side.ReplyID}
			if whole {
				gone = append(gone, call.ReplyID)
			}
			for _, id := range gone {
				if _, err := readNode(f.sess, id); protocol.CodeOf(err) != protocol.CodeUnknownNode {
					t.Errorf("node %s: %v", id, err)
				}
			}
			if status, n, err := f.engine.Wait(t.Context(), f.sess, side.ReplyID); err != nil || status != protocol.StatusCancelled || n != nil {
				t.Errorf("the turn ended %s with %v (%v)", status, n, err)
			}
		})
	}
}

// A person who checks a spawned branch out has an ordinary branch: retry and send move
// HEAD there.
func TestSpawnedBranchIsCheckedOut(t *testing.T) {
	f := start(t, says("one"), says("side"), says("other"), says("go on"))
	first := f.send("hi")
	f.wait(first)
	side := f.spawn(protocol.TurnSendParams{Content: text("a"), Expose: true})
	f.wait(side)
	if _, err := store.Checkout(t.Context(), f.sess, store.Request{}, side.ReplyID, "", false); err != nil {
		t.Fatal(err)
	}
	again, err := f.engine.Retry(t.Context(), f.sess, store.Request{}, protocol.TurnRetryParams{NodeID: side.ReplyID}, f.env)
	if err != nil {
		t.Fatal(err)
	}
	f.wait(again)
	f.still(again.ReplyID)
	next := f.send("more")
	f.wait(next)
	f.still(next.ReplyID)
	// It is exposed where it hangs, and is not shown there a second time in itself.
	if diff := cmp.Diff([]string{"user: hi", "assistant: one", "user: a", "assistant: other", "user: more"}, f.prompt(3)); diff != "" {
		t.Error(diff)
	}
}

func TestSpawnRefusals(t *testing.T) {
	f := start(t)
	before := f.sess.State()
	for _, tc := range []struct {
		p    protocol.TurnSendParams
		code protocol.Code
	}{
		{protocol.TurnSendParams{Content: text("x"), Caller: "x"}, protocol.CodeInvalidParams},
		{protocol.TurnSendParams{Content: text("x"), Head: "x"}, protocol.CodeInvalidParams},
		{protocol.TurnSendParams{Content: text("x"), Expose: true}, protocol.CodeInvalidParams},
		{protocol.TurnSendParams{Content: text("x"), Spawn: true, Caller: "nowhere"}, protocol.CodeUnknownNode},
		{protocol.TurnSendParams{Content: text("x"), Spawn: true, Head: "nowhere"}, protocol.CodeUnknownNode},
		{protocol.TurnSendParams{Spawn: true}, protocol.CodeInvalidParams},
	} {
		if _, err := f.engine.Send(t.Context(), f.sess, store.Request{}, tc.p, f.env); protocol.CodeOf(err) != tc.code {
			t.Errorf("%+v: %v, want %s", tc.p, err, tc.code)
		}
	}
	if f.sess.State() != before {
		t.Error("a refused send changed the session")
	}
}

// A message to another session is an ordinary send there: it moves that one's HEAD.
func TestSendToAnotherSession(t *testing.T) {
	f := start(t, says("one"), says("there"))
	first := f.send("hi")
	f.wait(first)
	out, err := f.store.Create(t.Context(), store.Request{}, store.Info{Policy: "rolling"}, "")
	if err != nil {
		t.Fatal(err)
	}
	other := must(f.store.Session(out.Result))
	turn, err := f.engine.Send(t.Context(), other, store.Request{}, protocol.TurnSendParams{Content: text("from the other one")}, f.env)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := f.engine.Wait(t.Context(), other, turn.ReplyID); err != nil {
		t.Fatal(err)
	}
	f.still(first.ReplyID)
	if id := must(read(other, func(r *store.Reader) (string, error) { return r.ID(r.State.Head) })); id != turn.ReplyID {
		t.Errorf("HEAD of the other session is %s, want %s", id, turn.ReplyID)
	}
}

// Not even a person who stands on a reply of a spawned turn is taken along by the next.
func TestSpawnedTurnLeavesHeadOnItsOwnReply(t *testing.T) {
	f := start(t, says("one"), calls("add"), says("side"))
	f.wait(f.send("hi"))
	at := ""
	f.env.Client = client{tool: func(_ context.Context, c protocol.ToolCallParams) (protocol.ToolCallResult, error) {
		at = f.node(c.NodeID).Caller
		if _, err := store.Checkout(context.Background(), f.sess, store.Request{}, at, "", false); err != nil {
			t.Error(err)
		}
		return protocol.ToolCallResult{Content: text("1")}, nil
	}}
	if status, _ := f.wait(f.spawn(protocol.TurnSendParams{Content: text("a"), Tools: []protocol.ToolDeclaration{{Name: "add"}}})); status != protocol.StatusSealed {
		t.Fatalf("the turn is %s", status)
	}
	f.still(at)
}
