package scenario

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"convls/protocol"
	"convls/test/editor"
	"convls/test/reference"
)

// operations carry out one line each, on the server and on the reference, and
// return what came of it.
var operations = map[string]func(*world, arguments) string{
	"session": opSession, "use": opUse, "send": opSend, "retry": opRetry, "edit": opEdit, "cancel": opCancel, "release": opRelease,
	"exec": opExec, "spawn": opSpawn,
	"checkout": opCheckout, "fork": opFork, "rewind": opRewind, "delete": opDelete, "name": opName, "title": opTitle,
	"pin": opPin, "unpin": opUnpin, "redact": opRedact, "attach": opAttach, "remove": opRemove, "again": opAgain,
	"kill": opKill, "restart": opRestart, "import": opImport,
	"compact": opCompact, "activate": opActivate, "rebuild": opRebuild, "policy": opPolicy,
	"context": opContext, "transcript": opTranscript, "graph": opGraph, "branches": opBranches, "queue": opQueue, "sessions": opSessions, "node": opNode,
	"compare": opCompare, "events": opEvents, "search": opSearch,
	"views": opViews, "summaries": opSummaries,
}

type params = map[string]any

// outcome is the usual answer: a code, or where HEAD is.
func (w *world) outcome(code protocol.Code) string {
	if code != "" {
		return "refused: " + string(code)
	}
	out := "head " + w.now.Head.ID
	if w.now.Branch != "" {
		out += " on " + w.now.Branch
	}
	return out
}

func opSession(w *world, a arguments) string {
	r, code := change[protocol.SessionResult](w, protocol.MethodSessionCreate, params{"session_id": "", "system": a.text("system"), "title": a.text("title"), "policy": a.text("policy")})
	w.agree(code, "")
	w.enter(a.word(0), reference.New(r.SessionID, r.Head, a.text("title"), a.text("system")))
	w.now.Policy = cmp.Or(a.text("policy"), protocol.PolicyRolling)
	return w.outcome("")
}

// enter goes on in a session that the server has and follows it.
func (w *world) enter(name string, s *reference.Session) {
	w.sessions[name], w.now = s, s
	w.names[s.ID], w.ids[name] = name, s.ID
	w.follow(s, "")
}

func (w *world) follow(s *reference.Session, after string) {
	r := editor.Ask[protocol.SubscribeResult](w.ed, protocol.MethodSessionSubscribe, protocol.SubscribeParams{SessionID: s.ID, After: after})
	if r.Reset {
		w.t.Fatalf("the cursor %s of session %s is refused", after, w.names[s.ID])
	}
	if w.first[s.ID] == "" {
		w.first[s.ID] = r.Cursor
		w.cursors[s.ID] = r.Cursor
	}
}

func opUse(w *world, a arguments) string {
	w.now = w.sessions[a.word(0)]
	return w.outcome("")
}

// stale reports whether a request that expects HEAD to be at a node is to be
// refused: HEAD is elsewhere, and not further on in the same turn.
func (w *world) stale(expected string) bool {
	if expected == "" || expected == w.now.Head.ID {
		return false
	}
	for n := w.now.Head; n != nil && n.Kind == protocol.KindAssistant; n = n.Pred {
		if n.Pred.ID == expected {
			return false
		}
	}
	return true
}

func opSend(w *world, a arguments) string {
	p := params{"content": a.Input, "tools": tools(), "wait": a.HasArg("wait"), "expected_head": a.named("expect")}
	r, code := change[protocol.TurnResult](w, protocol.MethodTurnSend, p)
	if w.stale(a.named("expect")) {
		w.agree(code, protocol.CodeStaleHead)
		return w.outcome(code)
	}
	if strings.TrimSpace(a.Input) == "" {
		w.agree(code, protocol.CodeInvalidParams)
		return w.outcome(code)
	}
	w.agree(code, "")
	w.agree(code, w.now.Send(answer, a.Input, r.UserID, r.ReplyID))
	return w.began(r.UserID, []string{r.ReplyID}, r.State, r.Head)
}

// began tells of turns that were admitted.
func (w *world) began(user string, replies []string, state protocol.Status, head string) string {
	w.settle()
	w.name(user, protocol.KindUser)
	for _, id := range replies {
		w.name(id, protocol.KindAssistant)
	}
	var out []string
	for _, id := range replies {
		if n := w.now.Find(id); n != nil {
			state = n.Status
		}
		out = append(out, fmt.Sprintf("%s %s", id, state))
	}
	text := strings.Join(out, ", ")
	if user != "" {
		text = user + ", " + text
	}
	return text + "; " + w.outcome("")
}

// side reads the arguments of a call off the chain or of a spawned turn.
func (w *world) side(a arguments) (reference.Side, params) {
	o := reference.Side{Text: a.Input, Head: a.named("head"), Caller: a.named("caller"), Exposed: a.HasArg("expose")}
	p := params{"head": o.Head, "caller": o.Caller, "expose": o.Exposed, "wait": a.HasArg("wait")}
	if n, err := strconv.Atoi(a.text("range")); err == nil {
		o.Range, p["render_range"] = &n, n
	}
	return o, p
}

func opExec(w *world, a arguments) string {
	o, p := w.side(a)
	p["prompt"] = a.Input
	head := w.now.Head
	r, code := change[protocol.ExecResult](w, protocol.MethodExec, p)
	w.agree(code, w.now.Exec(answer, o, r.NodeID))
	if code != "" {
		return w.outcome(code)
	}
	if r.Head != head.ID || w.now.Head != head {
		w.t.Fatalf("a call moved HEAD from %s to %s", w.anonymous(head.ID), w.anonymous(r.Head))
	}
	w.settle()
	n := w.now.Find(r.NodeID)
	if a.HasArg("wait") && r.State != n.Status {
		w.t.Fatalf("the call is %s, the reference says %s", r.State, n.Status)
	}
	w.checkCall(n)
	return fmt.Sprintf("%s %s; %s", n.ID, n.Status, w.outcome(""))
}

// checkCall compares a call node with the reference.
func (w *world) checkCall(n *reference.Node) {
	w.t.Helper()
	got := editor.Ask[protocol.Node](w.ed, protocol.MethodNodeGet, protocol.NodeGetParams{SessionID: w.now.ID, NodeID: n.ID, Include: []string{"content", "reads"}})
	said := func(parts []protocol.Part) string {
		var texts []string
		for _, p := range parts {
			texts = append(texts, p.Text)
		}
		return strings.Join(texts, "\n\n")
	}
	if got.Kind != protocol.KindCall || got.Status != n.Status || said(got.Prompt) != n.Prompt {
		w.t.Fatalf("the call is %+v, the reference says %+v", got, *n)
	}
	if n.Status != protocol.StatusOpen && said(got.Content) != n.Text {
		w.t.Fatalf("the call answered %q, the reference says %q", said(got.Content), n.Text)
	}
	if n.Status == protocol.StatusSealed && len(got.Reads) == 0 {
		w.t.Fatalf("the call %s says nothing of what it read", w.anonymous(n.ID))
	}
}

func opSpawn(w *world, a arguments) string {
	o, p := w.side(a)
	p["content"], p["spawn"], p["tools"] = a.Input, true, tools()
	head := w.now.Head
	r, code := change[protocol.TurnResult](w, protocol.MethodTurnSend, p)
	w.agree(code, w.now.Spawn(answer, o, r.UserID, r.ReplyID))
	if code != "" {
		return w.outcome(code)
	}
	if r.Head != head.ID || w.now.Head != head {
		w.t.Fatalf("a spawned turn moved HEAD from %s to %s", w.anonymous(head.ID), w.anonymous(r.Head))
	}
	return w.began(r.UserID, []string{r.ReplyID}, r.State, r.Head)
}

func opRetry(w *world, a arguments) string {
	count := 1
	a.MaybeScanArgs(w.t, "count", &count)
	r, code := change[protocol.TurnRetryResult](w, protocol.MethodTurnRetry, params{"node_id": a.node(0), "count": count, "tools": tools()})
	var ids []string
	for _, c := range r.Candidates {
		ids = append(ids, c.ReplyID)
	}
	w.agree(code, w.now.Retry(answer, a.node(0), ids...))
	if code != "" {
		return w.outcome(code)
	}
	return w.began("", ids, protocol.StatusRunning, r.Head)
}

func opEdit(w *world, a arguments) string {
	id := a.node(0)
	r, code := change[protocol.TurnEditResult](w, protocol.MethodTurnEdit, params{"node_id": id, "content": a.Input, "tools": tools()})
	n := w.now.Find(id)
	want := protocol.Code("")
	switch {
	case n == nil:
		want = protocol.CodeUnknownNode
	case !n.Kind.OnChain():
		want = protocol.CodeNotAChainNode
	case n.Kind != protocol.KindUser && n.Kind != protocol.KindAssistant, strings.TrimSpace(a.Input) == "":
		want = protocol.CodeInvalidParams
	}
	w.agree(code, want)
	switch {
	case code != "":
		return w.outcome(code)
	case n.Kind == protocol.KindUser:
		w.now.EditUser(answer, id, a.Input, r.UserID, r.ReplyID)
		return w.began(r.UserID, []string{r.ReplyID}, r.State, r.Head)
	}
	w.now.EditReply(id, a.Input, r.NodeID)
	return w.began("", []string{r.NodeID}, r.State, r.Head)
}

func opCancel(w *world, a arguments) string {
	r, code := change[protocol.TurnCancelResult](w, protocol.MethodTurnCancel, params{"reply_id": a.node(0)})
	state, want := w.now.Cancel(answer, a.node(0))
	w.agree(code, want)
	if r.State != state {
		w.t.Fatalf("cancel tells that %s is %q, the reference says %q", a.word(0), r.State, state)
	}
	w.settle()
	if code != "" {
		return w.outcome(code)
	}
	return string(state) + "; " + w.outcome("")
}

func opRelease(w *world, _ arguments) string {
	w.model.release()
	for _, s := range w.sessions {
		s.Release(answer)
	}
	w.settle()
	return w.outcome("")
}

func opCheckout(w *world, a arguments) string {
	p := params{"node_id": a.node(0), "branch": a.text("branch"), "descend": a.HasArg("descend"), "expected_head": a.named("expect")}
	if a.word(0) == "descend" {
		p["node_id"] = ""
	}
	r, code := change[protocol.HeadResult](w, protocol.MethodBranchCheckout, p)
	if w.stale(a.named("expect")) {
		w.agree(code, protocol.CodeStaleHead)
		return w.outcome(code)
	}
	id, _ := p["node_id"].(string)
	w.agree(code, w.now.Checkout(id, a.text("branch"), a.HasArg("descend")))
	return w.moved(code, r.Head, r.Branch)
}

// moved checks the answer to a move of HEAD.
func (w *world) moved(code protocol.Code, head, branch string) string {
	if code == "" && (head != w.now.Head.ID || branch != w.now.Branch) {
		w.t.Fatalf("the answer says that HEAD is %s on %q, the reference %s on %q", w.anonymous(head), branch, w.anonymous(w.now.Head.ID), w.now.Branch)
	}
	return w.outcome(code)
}

func opFork(w *world, a arguments) string {
	r, code := change[protocol.ForkResult](w, protocol.MethodBranchFork, params{"node_id": a.node(0), "name": a.text("name")})
	w.agree(code, w.now.Fork(a.node(0), a.text("name")))
	return w.moved(code, r.Head, r.Branch.Name)
}

func opRewind(w *world, a arguments) string {
	r, code := change[protocol.RewindResult](w, protocol.MethodBranchRewind, params{"node_id": a.node(0)})
	w.agree(code, w.now.Rewind(a.node(0)))
	if code != "" {
		return w.outcome(code)
	}
	text := r.Content[0].Text
	if want := w.now.Find(a.node(0)).Text; text != want {
		w.t.Fatalf("rewind hands back %q, and the message was %q", text, want)
	}
	return fmt.Sprintf("%q; %s", text, w.moved(code, r.Head, w.now.Branch))
}

func opDelete(w *world, a arguments) string {
	p := params{"tip": a.node(0), "branch": a.text("branch"), "confirm": a.HasArg("confirm"), "cancel": a.HasArg("cancel")}
	tip := a.node(0)
	if a.text("branch") != "" {
		p["tip"], tip = "", ""
	}
	p["session_id"], p["request_id"] = w.now.ID, "delete"
	r, code := change[protocol.BranchDeleteResult](w, protocol.MethodBranchDelete, p)
	count, want := w.now.Delete(tip, a.text("branch"), a.HasArg("confirm"), a.HasArg("cancel"), func(t *reference.Turn) { w.now.Abandon(answer, t) })
	w.agree(code, want)
	if code == protocol.CodeConfirmRequired {
		p["request_id"] = "delete"
		if e := editor.Refused(w.ed, code, protocol.MethodBranchDelete, p); e.Data.Count != int64(count) {
			w.t.Fatalf("delete would take %d nodes away, the reference says %d", e.Data.Count, count)
		}
		return fmt.Sprintf("%s: %d", w.outcome(code), count)
	}
	if code != "" {
		return w.outcome(code)
	}
	if r.Removed != int64(count) || r.Head != w.now.Head.ID {
		w.t.Fatalf("delete took %d nodes away, HEAD is %s; the reference says %d and %s", r.Removed, w.anonymous(r.Head), count, w.anonymous(w.now.Head.ID))
	}
	return fmt.Sprintf("removed %d; %s", count, w.outcome(""))
}

func opName(w *world, a arguments) string {
	p := params{"tip": a.node(0), "branch": a.text("branch")}
	tip := a.node(0)
	if a.text("branch") != "" {
		p["tip"], tip = "", ""
	}
	to := a.text("to")
	if to != "" {
		p["name"] = to
	}
	r, code := change[protocol.BranchResult](w, protocol.MethodBranchRename, p)
	w.agree(code, w.now.Rename(tip, a.text("branch"), to))
	if code == "" && r.Branch.Name != to {
		w.t.Fatalf("the branch is named %q, not %q", r.Branch.Name, to)
	}
	return w.outcome(code)
}

func opTitle(w *world, a arguments) string {
	r, code := change[protocol.SessionResult](w, protocol.MethodSessionRename, params{"title": a.Input})
	w.agree(code, "")
	w.now.Retitle(a.Input)
	return r.Title
}

func opPin(w *world, a arguments) string   { return w.pin(a, protocol.MethodNodePin, true) }
func opUnpin(w *world, a arguments) string { return w.pin(a, protocol.MethodNodeUnpin, false) }

func (w *world) pin(a arguments, method string, pinned bool) string {
	r, code := change[protocol.NodeResult](w, method, params{"node_id": a.node(0)})
	w.agree(code, w.now.Pin(a.node(0), pinned))
	if code == "" && r.Pinned != pinned {
		w.t.Fatalf("after %s the node says pinned: %v", method, r.Pinned)
	}
	return w.outcome(code)
}

func opRedact(w *world, a arguments) string {
	r, code := change[protocol.NodeResult](w, protocol.MethodNodeRedact, params{"node_id": a.node(0), "confirm": a.HasArg("confirm")})
	w.agree(code, w.now.Redact(a.node(0), a.HasArg("confirm")))
	if code == "" && !r.Redacted {
		w.t.Fatalf("after redact the node is not marked")
	}
	return w.outcome(code)
}

func opAttach(w *world, a arguments) string {
	from := w.now
	if name := a.text("from"); name != "" {
		from = w.sessions[name]
	}
	r, code := change[protocol.NodeResult](w, protocol.MethodBranchAttach,
		params{"anchor_id": a.node(0), "source_id": a.named("source"), "from_session_id": from.ID})
	n, want := w.now.Attach(r.ID, a.node(0), from, a.named("source"))
	w.agree(code, want)
	if code != "" {
		return w.outcome(code)
	}
	if n.ID != r.ID {
		w.t.Fatalf("attach made node %s, and the same attachment was there: %s", r.ID, n.ID)
	}
	w.name(r.ID, protocol.KindAttach)
	return r.ID + "; " + w.outcome("")
}

func opRemove(w *world, a arguments) string {
	s := w.sessions[a.word(0)]
	_, code := change[protocol.SessionDeleteResult](w, protocol.MethodSessionDelete, params{"session_id": s.ID, "confirm": a.HasArg("confirm")})
	want := protocol.Code("")
	switch {
	case !a.HasArg("confirm"):
		want = protocol.CodeConfirmRequired
	case len(s.Turns) > 0:
		want = protocol.CodeTurnRunning
	}
	w.agree(code, want)
	if code != "" {
		return "refused: " + string(code)
	}
	s.Nodes = nil // what is attached from it is gone
	delete(w.sessions, a.word(0))
	if w.now == s {
		w.now = nil
	}
	return "removed"
}

// opAgain sends the last change once more: the same request, so the same answer,
// and nothing happens.
func opAgain(w *world, _ arguments) string {
	raw := editor.Ask[protocol.Raw](w.ed, w.last.method, w.last.params)
	var was, is params
	if err := protocol.Unmarshal(w.last.result, &was); err != nil {
		w.t.Fatal(err)
	}
	if err := protocol.Unmarshal(raw, &is); err != nil {
		w.t.Fatal(err)
	}
	for k, v := range was {
		// A node may have changed since; what was done may not.
		if _, ok := v.(string); ok && fmt.Sprint(is[k]) != fmt.Sprint(v) && k != "updated_at" {
			w.t.Fatalf("the same request was answered %s the first time and %s now", w.last.result, raw)
		}
	}
	other := params{}
	for k, v := range w.last.params {
		other[k] = v
	}
	other["expected_head"] = "another"
	editor.Refused(w.ed, protocol.CodeIDConflict, w.last.method, other)
	return w.outcome("")
}

func opKill(w *world, _ arguments) string {
	w.ed.Kill(w.t)
	open := map[*reference.Node]string{}
	for _, s := range w.sessions {
		for _, t := range s.Turns {
			if t.Reply.Status == protocol.StatusOpen {
				open[t.Reply] = t.Partial()
			}
		}
	}
	w.resume()
	for _, s := range w.sessions {
		for _, n := range s.Nodes {
			streamed, was := open[n]
			if !was {
				continue
			}
			// How much of it had reached the disk nobody can tell; nothing else may be there.
			got := editor.Ask[protocol.Node](w.ed, protocol.MethodNodeGet, protocol.NodeGetParams{SessionID: s.ID, NodeID: n.ID})
			n.Text = ""
			for _, p := range got.Content {
				n.Text += p.Text
			}
			if !strings.HasPrefix(streamed, n.Text) {
				w.t.Fatalf("reply %s is %q after the crash, and %q was streamed", w.anonymous(n.ID), n.Text, streamed)
			}
		}
	}
	return w.outcome("")
}

func opRestart(w *world, _ arguments) string {
	w.ed.Leave(w.t)
	w.resume()
	return w.outcome("")
}

// resume starts the next server, follows every session from where the last one
// left off, and compares everything.
func (w *world) resume() {
	former := w.ed
	w.model.release()
	for len(w.calls) > 0 {
		<-w.calls
	}
	w.start()
	for _, s := range w.sessions {
		s.Stop()
		s.Over = nil
		after := former.Cursor(s.ID)
		if after == "" {
			after = w.cursors[s.ID]
		}
		w.cursors[s.ID] = after
		w.follow(s, after)
	}
}

// opImport imports the input as a session that is known by the word.
func opImport(w *world, a arguments) string {
	report := editor.Ask[protocol.ImportReport](w.ed, protocol.MethodSessionImport, protocol.ImportParams{Text: a.Input})
	for _, s := range report.Skipped {
		w.t.Fatalf("the import left out line %d: %s", s.Line, s.Reason)
	}
	w.enter(a.word(0), imported(w, report.Sessions[0].SessionID, a.Input))
	return w.outcome("")
}
