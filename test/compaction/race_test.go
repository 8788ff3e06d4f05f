package compaction

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"convls/client"
	"convls/protocol"
	"convls/test/editor"
	"convls/test/fakemodel"
)

// held is a run whose summariser is in the middle of its answer.
type held struct {
	protocol.CompactionResult
	gate *fakemodel.Gate
}

// hold begins a run and returns when its summariser has begun to answer.
func (c *chat) hold(spec params) held {
	c.t.Helper()
	gate := c.model.Gate()
	c.t.Cleanup(gate.Release)
	c.model.script(fakemodel.Say(good[:20], good[20:]).Hold(gate, 1))
	p := params{"session_id": c.session, "keep_recent_tokens": 250}
	for k, v := range spec {
		p[k] = v
	}
	r := editor.Ask[protocol.CompactionResult](c.Editor, protocol.MethodCompactionRun, p)
	if r.State != protocol.RunRunning {
		c.t.Fatalf("the run is %s: %+v", r.State, r.Error)
	}
	gate.Wait(c.t)
	return held{r, gate}
}

// outcome waits for the event that ends a run.
func (c *chat) outcome(id string) (end protocol.Event) {
	c.t.Helper()
	c.Await("the end of "+id, func(s *editor.Seen) bool {
		for _, e := range s.Events[c.session] {
			if e.CompactionID == id && e.Type != started {
				end = e
				return true
			}
		}
		return false
	})
	return end
}

// mutate calls a method of the session.
func mutate[R any](c *chat, method string, p params) R {
	c.t.Helper()
	all := params{"session_id": c.session}
	for k, v := range p {
		all[k] = v
	}
	return editor.Ask[R](c.Editor, method, all)
}

// TestChangesUnderARun changes the session while its summariser answers. What the
// summary was made on either still stands, and then it is committed and HEAD and the
// conversation are as the change left them, or the run ends as stale and changes
// nothing (faults 84 and 86; defects 6 and 10).
func TestChangesUnderARun(t *testing.T) {
	server := newChat(t, nil)
	for _, row := range []struct {
		name string
		do   func(c *chat, spine []string)
		want protocol.EventType
	}{
		{"a fork inside", func(c *chat, spine []string) {
			mutate[protocol.Raw](c, protocol.MethodBranchFork, params{"node_id": spine[2]})
		}, finished},
		{"a checkout of a covered node", func(c *chat, spine []string) { c.checkout(spine[2]) }, finished},
		{"a rewind into the covered part", func(c *chat, spine []string) {
			mutate[protocol.Raw](c, protocol.MethodBranchRewind, params{"node_id": spine[3]})
		}, finished},
		{"fault 86: an edit of a covered message", func(c *chat, spine []string) {
			mutate[protocol.Raw](c, protocol.MethodTurnEdit, params{"node_id": spine[1], "content": "Otherwise.", "wait": true})
		}, finished},
		{"fault 86: an edit of a covered reply", func(c *chat, spine []string) {
			mutate[protocol.Raw](c, protocol.MethodTurnEdit, params{"node_id": spine[2], "content": "Otherwise."})
		}, finished},
		{"fault 86: a retry of a covered reply", func(c *chat, spine []string) {
			mutate[protocol.Raw](c, protocol.MethodTurnRetry, params{"node_id": spine[2], "wait": true})
		}, finished},
		{"a send on another branch", func(c *chat, spine []string) { c.checkout(spine[2]); c.send("Otherwise.") }, finished},
		{"a rename", func(c *chat, _ []string) {
			mutate[protocol.Raw](c, protocol.MethodSessionRename, params{"title": "Another"})
		}, finished},
		{"another model", func(c *chat, _ []string) {
			mutate[protocol.Raw](c, protocol.MethodSessionConfigure, params{"model": "fake/small"})
		}, finished},
		{"another policy", func(c *chat, _ []string) {
			mutate[protocol.Raw](c, protocol.MethodSessionConfigure, params{"policy": "per-branch"})
		}, finished},
		{"a pin", func(c *chat, spine []string) {
			mutate[protocol.Raw](c, protocol.MethodNodePin, params{"node_id": spine[1]})
		}, finished},
		{"a redaction of what stays", func(c *chat, spine []string) {
			mutate[protocol.Raw](c, protocol.MethodNodeRedact, params{"node_id": spine[len(spine)-1], "confirm": true})
		}, finished},
		{"a redaction of a covered message", func(c *chat, spine []string) {
			mutate[protocol.Raw](c, protocol.MethodNodeRedact, params{"node_id": spine[1], "confirm": true})
		}, failed},
		{"a redaction of a covered tool's result", func(c *chat, _ []string) {
			for _, e := range c.raw("").Entries {
				if e.Kind == protocol.KindTool {
					mutate[protocol.Raw](c, protocol.MethodNodeRedact, params{"node_id": e.ID, "confirm": true})
				}
			}
		}, failed},
		{"defect 10: a delete of covered nodes", func(c *chat, spine []string) {
			c.checkout(spine[2])
			c.send("Otherwise.")
			mutate[protocol.Raw](c, protocol.MethodBranchDelete, params{"tip": spine[len(spine)-1], "confirm": true})
		}, failed},
		{"a delete of another branch", func(c *chat, spine []string) {
			c.checkout(spine[2])
			side := c.send("Otherwise.").ReplyID
			c.checkout(spine[len(spine)-1])
			mutate[protocol.Raw](c, protocol.MethodBranchDelete, params{"tip": side, "confirm": true})
		}, finished},
	} {
		t.Run(row.name, func(t *testing.T) {
			c := server.row(t, nil)
			c.chat(1)
			c.work(long("Look.", 60), 1)
			c.chat(2)
			spine := chain(c.raw(""))
			run := c.hold(nil)
			row.do(c, spine)
			before := c.views()
			run.gate.Release()
			end := c.outcome(run.CompactionID)
			if end.Type != row.want || end.Type == failed && end.Error.Code != protocol.CodeStaleCompaction {
				t.Fatalf("the run ended with %s, %+v", end.Type, end.Error)
			}
			if end.Type == failed {
				c.unchanged(before)
			} else {
				after := c.views()
				same(t, "the raw view", after.raw, before.raw)
				if after.head != before.head || len(after.summaries) != len(before.summaries)+1 {
					t.Errorf("HEAD went from %s to %s; %d summaries", before.head, after.head, len(after.summaries))
				}
				tip := c.context(spine[len(spine)-1])
				same(t, "the compacted branch", chain(tip), slices.Concat(spine[:1], spine[1+end.Covered:]))
				if v := c.verify(end.SummaryID); !v.OK {
					t.Errorf("the summary does not hold: %+v", v)
				}
			}
			same(t, "the events", c.events(), []protocol.EventType{started, row.want})
			if c.open().Compaction != nil {
				t.Error("a run is still shown")
			}
			c.send("Go on.")
		})
	}
}

// TestUndoUnderARun takes the summary away that a run builds on: the run is stale.
func TestUndoUnderARun(t *testing.T) {
	server := newChat(t, nil)
	for _, policy := range []string{protocol.PolicyRolling, protocol.PolicyPerBranch} {
		t.Run(policy, func(t *testing.T) {
			c := server.row(t, nil)
			mutate[protocol.SessionResult](c, protocol.MethodSessionConfigure, params{"policy": policy})
			c.chat(3)
			c.compacted(params{"keep_recent_tokens": 250})
			c.chat(2)
			run := c.hold(nil)
			mutate[protocol.CompactionActivateResult](c, protocol.MethodCompactionActivate, params{"summary_id": nil})
			before := c.views()
			run.gate.Release()
			if end := c.outcome(run.CompactionID); end.Type != failed || end.Error.Code != protocol.CodeStaleCompaction {
				t.Errorf("the run ended with %s, %+v", end.Type, end.Error)
			}
			c.unchanged(before)
		})
	}
}

// TestSendsUnderARun sends messages while a run is under way: each waits, begins when
// the run has ended however it ended, in order and once (faults 81 and 85).
func TestSendsUnderARun(t *testing.T) {
	server := newChat(t, nil)
	for _, row := range []struct {
		name string
		end  func(c *chat, run held)
		want protocol.EventType
	}{
		{"finished", func(_ *chat, run held) { run.gate.Release() }, finished},
		{"failed", func(c *chat, run held) {
			mutate[protocol.Raw](c, protocol.MethodNodeRedact, params{"node_id": chain(c.raw(""))[1], "confirm": true})
			run.gate.Release()
		}, failed},
		{"cancelled", func(c *chat, run held) {
			mutate[protocol.CompactionResult](c, protocol.MethodCompactionCancel, nil)
		}, cancelled},
	} {
		t.Run(row.name, func(t *testing.T) {
			c := server.row(t, nil)
			c.chat(3)
			run := c.hold(nil)
			asked := c.model.prompts()
			var sent []protocol.TurnResult
			for i := range 3 {
				r := mutate[protocol.TurnResult](c, protocol.MethodTurnSend, params{"content": fmt.Sprintf("Waiting %d.", i), "request_id": fmt.Sprintf("r%d", i)})
				if r.State != protocol.StatusQueued {
					t.Fatalf("message %d is %s", i, r.State)
				}
				again := mutate[protocol.TurnResult](c, protocol.MethodTurnSend, params{"content": fmt.Sprintf("Waiting %d.", i), "request_id": fmt.Sprintf("r%d", i)})
				if again.ReplyID != r.ReplyID {
					t.Errorf("the repeated message %d is another", i)
				}
				sent = append(sent, r)
			}
			if queue := c.open().Queue; len(queue) != 3 || c.model.prompts() != asked {
				t.Errorf("%d messages wait, %d calls were made", len(queue), c.model.prompts()-asked)
			}
			row.end(c, run)
			if end := c.outcome(run.CompactionID); end.Type != row.want {
				t.Errorf("the run ended with %s", end.Type)
			}
			for _, s := range sent {
				if end := c.AwaitEnd(c.session, s.ReplyID); end.Type != protocol.EventTurnFinished {
					t.Errorf("a turn ended with %s", end.Type)
				}
			}
			var said []string
			for _, e := range c.raw("").Entries {
				if e.Kind == protocol.KindUser && strings.HasPrefix(e.Text, "Waiting") {
					said = append(said, e.Text)
				}
			}
			same(t, "the messages", said, []string{"Waiting 0.", "Waiting 1.", "Waiting 2."})
			if c.head() != sent[2].ReplyID || c.model.prompts() != asked+3 || len(c.open().Queue) != 0 {
				t.Errorf("HEAD is %s after %d calls", c.head(), c.model.prompts()-asked)
			}
			if compacted := strings.Contains(c.model.lastPrompt()[1], protocol.SummaryMarker); compacted != (row.want == finished) {
				t.Errorf("the last prompt is compacted: %v", compacted)
			}
		})
	}
}

// TestCancel ends runs in the ways there are: one event tells the end, nothing
// changed, and the session goes on (faults 47, 81 to 83).
func TestCancel(t *testing.T) {
	server := newChat(t, nil)
	for _, row := range []struct {
		name   string
		cancel func(c *chat, run held) protocol.CompactionResult
	}{
		{"by the session", func(c *chat, _ held) protocol.CompactionResult {
			return mutate[protocol.CompactionResult](c, protocol.MethodCompactionCancel, nil)
		}},
		{"by its id", func(c *chat, run held) protocol.CompactionResult {
			return mutate[protocol.CompactionResult](c, protocol.MethodCompactionCancel, params{"compaction_id": run.CompactionID})
		}},
		{"twice", func(c *chat, run held) protocol.CompactionResult {
			mutate[protocol.CompactionResult](c, protocol.MethodCompactionCancel, params{"compaction_id": run.CompactionID})
			return mutate[protocol.CompactionResult](c, protocol.MethodCompactionCancel, params{"compaction_id": run.CompactionID})
		}},
	} {
		t.Run(row.name, func(t *testing.T) {
			c := server.row(t, nil)
			c.chat(3)
			before := c.views()
			run := c.hold(nil)
			if r := c.open().Compaction; r == nil || r.CompactionID != run.CompactionID {
				t.Errorf("the run that is shown is %+v", r)
			}
			if r := row.cancel(c, run); r.State != protocol.RunCancelled || r.CompactionID != run.CompactionID {
				t.Errorf("the run is %s: %+v", r.State, r.Error)
			}
			run.gate.Release()
			c.unchanged(before)
			same(t, "the events", c.events(), []protocol.EventType{started, cancelled})
			editor.Refused(c.Editor, protocol.CodeNothingToCompact, protocol.MethodCompactionCancel, params{"session_id": c.session})

			// Fault 83: the id of a run that has ended does nothing to the next one.
			next := c.hold(nil)
			if r := mutate[protocol.CompactionResult](c, protocol.MethodCompactionCancel, params{"compaction_id": run.CompactionID}); r.State != protocol.RunCancelled {
				t.Errorf("the first run is now %s", r.State)
			}
			next.gate.Release()
			if end := c.outcome(next.CompactionID); end.Type != finished {
				t.Errorf("the next run ended with %s", end.Type)
			}
			// Fault 82: a cancel after the commit.
			if r := mutate[protocol.CompactionResult](c, protocol.MethodCompactionCancel, params{"compaction_id": next.CompactionID}); r.State != protocol.RunFinished {
				t.Errorf("the next run is %s", r.State)
			}
			same(t, "the events", c.events(), []protocol.EventType{started, cancelled, started, finished})
			c.send("Go on.")
		})
	}
}

// TestCancelOfTheRequest cancels the request that began a run and waits for it.
func TestCancelOfTheRequest(t *testing.T) {
	server := newChat(t, nil)
	c := server.row(t, nil)
	c.chat(3)
	before := c.views()
	gate := c.model.Gate()
	defer gate.Release()
	c.model.script(fakemodel.Say(good).Hold(gate, 0))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error, 1)
	go func() {
		_, err := client.Do[protocol.CompactionResult](ctx, c.Client, protocol.MethodCompactionRun, params{"session_id": c.session, "keep_recent_tokens": 250, "wait": true})
		done <- err
	}()
	gate.Wait(t)
	cancel()
	if err := <-done; err == nil {
		t.Error("the cancelled request was answered")
	}
	c.Await("the end of the run", func(s *editor.Seen) bool {
		return slices.ContainsFunc(s.Events[c.session], func(e protocol.Event) bool { return e.Type == cancelled })
	})
	c.unchanged(before)
	same(t, "the events", c.events(), []protocol.EventType{started, cancelled})
}

// status asks until f holds of the server's state; what it waits for comes by itself.
func (c *chat) status(f func(protocol.StatusResult) bool) {
	c.t.Helper()
	for !f(editor.Ask[protocol.StatusResult](c.Editor, protocol.MethodStatus, params{})) {
		if c.t.Context().Err() != nil {
			c.t.Fatal("what was waited for did not come")
		}
	}
}

// TestCancelAtAnyInstant lets the summariser's answer and a cancel run a race: the run
// ends once, as what it says, and the ledger agrees (fault 82).
func TestCancelAtAnyInstant(t *testing.T) {
	server := newChat(t, nil)
	c := server.row(t, nil)
	c.chat(3)
	ends := map[protocol.EventType]int{}
	for i := range 40 {
		run := c.hold(params{"keep_recent_tokens": 0})
		release := make(chan struct{})
		go func() {
			defer close(release)
			run.gate.Release()
		}()
		if i%2 == 0 {
			<-release
		}
		r := mutate[protocol.CompactionResult](c, protocol.MethodCompactionCancel, params{"compaction_id": run.CompactionID})
		<-release
		end := c.outcome(run.CompactionID)
		ends[end.Type]++
		summaries := c.list()
		committed := slices.ContainsFunc(summaries.Summaries, func(s protocol.SummaryInfo) bool { return s.Provenance.CompactionID == run.CompactionID })
		if committed != (end.Type == finished) || string(r.State) != strings.TrimPrefix(string(end.Type), "compaction_") {
			t.Errorf("the reply says %s, the event %s, the ledger has its summary: %v", r.State, end.Type, committed)
		}
		if end.Type == finished {
			mutate[protocol.CompactionActivateResult](c, protocol.MethodCompactionActivate, params{"summary_id": nil})
		}
	}
	if n := len(c.events()); n != 80 {
		t.Errorf("40 runs have %d events", n)
	}
	t.Log(ends)
}

// TestCancelOfATurn cancels a turn while the context before it is compacted: both end,
// and the session goes on.
func TestCancelOfATurn(t *testing.T) {
	server := newChat(t, nil)
	c := server.row(t, eager(nil))
	gate := c.model.Gate()
	defer gate.Release()
	c.model.script(fakemodel.Say(good).Hold(gate, 0))
	var r protocol.TurnResult
	for i := 0; ; i++ {
		r = mutate[protocol.TurnResult](c, protocol.MethodTurnSend, params{"content": long("Message.", 200)})
		ended, held := make(chan struct{}), false
		go func() {
			defer close(ended)
			c.AwaitEnd(c.session, r.ReplyID)
		}()
		select {
		case <-gate.Arrived():
			held = true
		case <-ended:
		}
		if held {
			break
		}
		if i > 20 {
			t.Fatal("no compaction")
		}
	}
	// Fault 34: a run by hand is told of the other one.
	e := editor.Refused(c.Editor, protocol.CodeCompactionRunning, protocol.MethodCompactionRun, params{"session_id": c.session})
	if running := c.open().Compaction; running == nil || running.Trigger != protocol.TriggerAuto || e.Data.CompactionID != running.CompactionID {
		t.Errorf("the run that is shown is %+v, the one that is told %s", running, e.Data.CompactionID)
	}
	if s := mutate[protocol.TurnCancelResult](c, protocol.MethodTurnCancel, params{"reply_id": r.ReplyID}); s.State != protocol.StatusCancelled {
		t.Errorf("the turn is %s", s.State)
	}
	same(t, "the events", c.events(), []protocol.EventType{started, cancelled})
	gate.Release()
	c.send("Go on.")
	if c.event(finished) == nil {
		t.Errorf("the events are %v", c.events())
	}
}

// TestJoin asks for a compaction while one is under way: the same is joined, any other
// is told of it (fault 34); and a request that is repeated gets the run it began, or
// joined, however late (design.md, "Ledger").
func TestJoin(t *testing.T) {
	server := newChat(t, nil)
	c := server.row(t, nil)
	c.chat(4)
	spec := params{"keep_recent_tokens": 250, "request_id": "first"}
	run := c.hold(spec)
	ask := func(p params) (protocol.CompactionResult, error) {
		t.Helper()
		all := params{"session_id": c.session, "keep_recent_tokens": 250}
		for k, v := range p {
			all[k] = v
		}
		return editor.Try[protocol.CompactionResult](c.Editor, protocol.MethodCompactionRun, all)
	}
	for _, id := range []string{"first", "second", ""} {
		p := params{}
		if id != "" {
			p["request_id"] = id
		}
		if r, err := ask(p); err != nil || r.CompactionID != run.CompactionID || r.State != protocol.RunRunning {
			t.Errorf("the request %q got %+v, %v", id, r, err)
		}
	}
	if _, err := ask(params{"keep_recent_tokens": 100}); protocol.CodeOf(err) != protocol.CodeCompactionRunning {
		t.Errorf("another request got %v", err)
	}
	if _, err := ask(params{"draft": true}); protocol.CodeOf(err) != protocol.CodeCompactionRunning {
		t.Errorf("a draft got %v", err)
	}
	if _, err := ask(params{"keep_recent_tokens": 100, "request_id": "first"}); protocol.CodeOf(err) != protocol.CodeIDConflict {
		t.Errorf("the id of the first request with other parameters got %v", err)
	}
	run.gate.Release()
	end := c.outcome(run.CompactionID)
	for _, id := range []string{"first", "second"} {
		if r, err := ask(params{"request_id": id}); err != nil || r.CompactionID != run.CompactionID || r.SummaryID != end.SummaryID || r.State != protocol.RunFinished {
			t.Errorf("the repeated request %q got %+v, %v", id, r, err)
		}
	}
	same(t, "the events", c.events(), []protocol.EventType{started, finished})
	// A repeated request is answered while another run is under way.
	c.chat(2)
	other := c.hold(params{"keep_recent_tokens": 0})
	if r, err := ask(params{"request_id": "first"}); err != nil || r.CompactionID != run.CompactionID || r.State != protocol.RunFinished {
		t.Errorf("under another run the repeated request got %+v, %v", r, err)
	}
	other.gate.Release()
	c.outcome(other.CompactionID)
}

// TestStreamCut breaks the summariser's stream after every few bytes: nothing changes,
// and the session can be used and compacted afterwards (fault 88).
func TestStreamCut(t *testing.T) {
	server := newChat(t, nil)
	c := server.row(t, nil)
	c.chat(3)
	before := c.views()
	cut := 0
	for k := 1; ; k += 23 {
		c.model.script(fakemodel.Say(good).Cut(k))
		r := c.compact(params{"keep_recent_tokens": 250})
		if r.State == protocol.RunFinished {
			break // all but the last bytes of the stream came, with the finish reason
		}
		if cut++; r.Error.Code != protocol.CodeStreamCut {
			t.Errorf("cut after %d bytes: %+v", k, r.Error)
		}
		if k%5 == 0 {
			c.unchanged(before)
		}
	}
	if cut < 10 || len(c.list().Summaries) != 1 {
		t.Errorf("%d streams were cut, %d summaries", cut, len(c.list().Summaries))
	}
	c.send("Go on.")
}

// TestEndOfTheServer ends the server while the summariser answers: after the start the
// session is as it was, an event says how the run ended, and what was asked is
// answered (faults 2, 22, 68, 89).
func TestEndOfTheServer(t *testing.T) {
	for _, row := range []struct {
		name string
		end  func(*chat) func(testing.TB)
	}{
		{"kill", func(c *chat) func(testing.TB) { return c.Kill }},
		{"terminate", func(c *chat) func(testing.TB) { return c.Terminate }},
		{"leave", func(c *chat) func(testing.TB) { return c.Leave }},
	} {
		t.Run(row.name, func(t *testing.T) {
			c := newChat(t, nil)
			c.chat(3)
			before := c.views()
			run := c.hold(params{"request_id": "first"})
			queued := mutate[protocol.TurnResult](c, protocol.MethodTurnSend, params{"content": "Waiting."})
			c.settle()
			c.restart(row.end(c))
			end := c.outcome(run.CompactionID)
			if end.Type != failed || end.Error == nil || end.Error.Code != protocol.CodeServerRestarted {
				t.Errorf("the run ended with %s, %+v", end.Type, end.Error)
			}
			c.unchanged(before)
			if o := c.open(); o.Compaction != nil || len(o.Queue) != 1 || !o.Queue[0].Held || o.Queue[0].ReplyID != queued.ReplyID {
				t.Errorf("a run %+v is shown, and the queue %+v", o.Compaction, o.Queue)
			}
			again := mutate[protocol.CompactionResult](c, protocol.MethodCompactionRun, params{"keep_recent_tokens": 250, "request_id": "first", "wait": true})
			if again.CompactionID != run.CompactionID || again.State != protocol.RunFailed || again.Error.Code != protocol.CodeServerRestarted {
				t.Errorf("the repeated request got %+v, %+v", again, again.Error)
			}
			r := c.compacted(params{"keep_recent_tokens": 250, "request_id": "second"})
			seen := c.views()
			c.restart(row.end(c))
			c.unchanged(seen)
			if again := c.compact(params{"keep_recent_tokens": 250, "request_id": "second"}); again.SummaryID != r.SummaryID || again.State != protocol.RunFinished || again.TokensAfter != r.TokensAfter {
				t.Errorf("the repeated request got %+v, want %+v", again, r)
			}
			c.Leave(t)
			c.home.Check(t)
		})
	}
}

// TestDeletedSession deletes a session while it is compacted: the server goes on.
func TestDeletedSession(t *testing.T) {
	server := newChat(t, nil)
	c := server.row(t, nil)
	c.chat(3)
	run := c.hold(nil)
	mutate[protocol.SessionDeleteResult](c, protocol.MethodSessionDelete, params{"confirm": true})
	run.gate.Release()
	c.status(func(s protocol.StatusResult) bool { return len(s.RunningCompactions) == 0 })
	next := server.row(t, nil)
	next.chat(3)
	next.compacted(params{"keep_recent_tokens": 250})
}
