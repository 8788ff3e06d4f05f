package compaction

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"convls/protocol"
	"convls/test/editor"
	"convls/test/fakemodel"
)

// try sends a message and waits for the end of its turn, whatever that is.
func (c *chat) try(text string) protocol.TurnResult {
	c.t.Helper()
	return editor.Ask[protocol.TurnResult](c.Editor, protocol.MethodTurnSend, params{"session_id": c.session, "content": text, "wait": true})
}

// event returns the last event of a type, nil if none came.
func (c *chat) event(typ protocol.EventType) (found *protocol.Event) {
	c.t.Helper()
	c.settle()
	c.Look(func(s *editor.Seen) {
		for _, e := range s.Events[c.session] {
			if e.Type == typ {
				found = &e
			}
		}
	})
	return found
}

// eager are settings by which a few messages pass the trigger: at 1,200 tokens of
// 6,000.
func eager(more params) params {
	all := params{"compaction.auto": true, "compaction.trigger": 0.2, "compaction.keep_recent_tokens": 250}
	for k, v := range more {
		all[k] = v
	}
	return all
}

// TestAutomatic compacts before the turn that would pass 80 %, no earlier, aims at
// 55 %, and does not begin again at once (design.md, "Compaction"; faults 8 and 29;
// spec/checkpoints, exercise A).
func TestAutomatic(t *testing.T) {
	server := newChat(t, nil)
	c := server.row(t, params{"compaction.auto": true})
	c.model.answer(func(fakemodel.Request) fakemodel.Reply { return fakemodel.Say(long("Answer.", 200)) })
	for i := 0; ; i++ {
		budget := c.open().Session.Budget
		message := long(fmt.Sprintf("Message %d.", i), 200)
		c.send(message)
		if c.event(finished) == nil {
			if n := len(c.events()); n != 0 && c.event(protocol.EventCompactAdvised) == nil || n > 1 {
				t.Fatalf("before the trigger there were %v", c.events())
			}
			if i > 60 {
				t.Fatalf("no compaction at %+v", budget)
			}
			continue
		}
		same(t, "the events", c.events(), []protocol.EventType{protocol.EventCompactAdvised, started, finished})
		e := c.event(finished)
		if e.Trigger != protocol.TriggerAuto || e.TokensAfter > budget.Limit*55/100 {
			t.Errorf("of a limit of %d tokens, the compaction by %s left %d", budget.Limit, e.Trigger, e.TokensAfter)
		}
		// The message that passed the trigger has about 170 tokens.
		if budget.Used+300 < budget.TriggerAt || budget.Used >= budget.TriggerAt {
			t.Errorf("the compaction came at %d tokens, the trigger is at %d", budget.Used, budget.TriggerAt)
		}
		prompt := c.model.lastPrompt()
		if !strings.Contains(prompt[1], protocol.SummaryMarker) || !strings.HasSuffix(prompt[len(prompt)-1], message) {
			t.Errorf("the prompt is %q", prompt)
		}
		break
	}
	c.send("And now?")
	same(t, "the events after one more message", c.events(), []protocol.EventType{protocol.EventCompactAdvised, started, finished})
}

// TestAutomaticInsideATurn has one turn with tools grow beyond the trigger: it is
// compacted between its model calls, its own message stays word for word, and it
// ends (fault 32).
func TestAutomaticInsideATurn(t *testing.T) {
	server := newChat(t, nil)
	c := server.row(t, params{"compaction.auto": true})
	c.model.result = long("A page.", 800)
	message := "Look at all the pages, and count the words that begin with a q."
	replies := c.work(message, 10)
	if c.event(finished) == nil {
		t.Fatalf("nothing was compacted: %v", c.events())
	}
	for _, r := range c.model.Requests() {
		if r.Messages[0].Text() == "Be brief." {
			pairs(t, r)
		}
	}
	covered := c.covers(c.event(finished).SummaryID)
	if !slices.Contains(covered, replies[0]) {
		t.Errorf("%v is covered, of the turn's %v", covered, replies)
	}
	if prompt := strings.Join(c.model.lastPrompt(), "\n"); !strings.Contains(prompt, message) {
		t.Errorf("the turn's message is not in the prompt: %s", prompt)
	}
	for _, typ := range c.events() {
		if typ == failed {
			t.Errorf("the events are %v", c.events())
		}
	}
}

// TestSmallerWindow switches to a model with a smaller window: it is compacted before
// the next message, by the new model, whose own window every call fits (fault 30).
func TestSmallerWindow(t *testing.T) {
	server := newChat(t, nil)
	for _, row := range []struct {
		name             string
		window           int64
		messages, tokens int
	}{
		{"from a larger one", 8_000, 10, 250},
		{"from a very large one", 200_000, 30, 1_200},
	} {
		t.Run(row.name, func(t *testing.T) {
			c := server.row(t, params{"compaction.auto": true, "models": params{"fake/x": params{"window": row.window}}})
			for i := range row.messages {
				c.send(long(fmt.Sprintf("Message %d.", i), row.tokens))
			}
			same(t, "the events", c.events(), nil)
			mutate[protocol.SessionResult](c, protocol.MethodSessionConfigure, params{"model": "fake/small"})
			r := c.send("And now?")
			if e := c.event(finished); e == nil || e.Trigger != protocol.TriggerAuto {
				t.Fatalf("the events are %v", c.events())
			}
			for _, q := range c.model.Requests() {
				if n := len(q.Body) / 4; q.Model == "small" && n > 3_000 {
					t.Errorf("a call of about %d tokens went to a window of %d", n, 3_000)
				}
			}
			if q := c.model.last(); q.Model != "small" {
				t.Errorf("%s answered", q.Model)
			}
			// What no summary covers was said to the model.
			covered := c.covers(c.context("").SummaryID)
			view := chain(c.context(r.UserID))
			same(t, "covered and rendered", slices.Concat(view[:1], covered, view[1:]), chain(c.raw(r.UserID)))
		})
	}
}

// TestProviderErrors has a provider refuse the conversation's call. Only an overflow
// is answered by a compaction, once and with one more call (faults 24, 26, 27, 31).
func TestProviderErrors(t *testing.T) {
	server := newChat(t, nil)
	overflow := fakemodel.Overflow(9_000, 8_000)
	for _, row := range []struct {
		name     string
		settings params
		messages int
		replies  []fakemodel.Reply
		state    protocol.Status
		code     protocol.Code
		calls    int
		events   []protocol.EventType
	}{
		{name: "an overflow", messages: 3, replies: []fakemodel.Reply{overflow}, state: protocol.StatusSealed, calls: 2, events: []protocol.EventType{started, finished}},
		{name: "an overflow, and again", messages: 3, replies: []fakemodel.Reply{overflow, overflow, overflow}, state: protocol.StatusFailed, code: protocol.CodeContextOverflow, calls: 2,
			events: []protocol.EventType{started, finished}},
		{name: "an overflow of a gateway's wording", settings: params{"providers": params{"fake": params{"overflow_patterns": []string{"das ist zu lang"}}}}, messages: 3,
			replies: []fakemodel.Reply{fakemodel.Fail(400, "das ist zu lang")}, state: protocol.StatusSealed, calls: 2, events: []protocol.EventType{started, finished}},
		{name: "an overflow with nothing to compact", messages: 0, replies: []fakemodel.Reply{overflow, overflow}, state: protocol.StatusFailed, code: protocol.CodeContextOverflow, calls: 1},
		{name: "fault 31: an overflow without automatic compaction", settings: params{"compaction.auto": false}, messages: 3, replies: []fakemodel.Reply{overflow, overflow}, state: protocol.StatusFailed,
			code: protocol.CodeContextOverflow, calls: 1},
		{name: "fault 24: a rate limit", messages: 3, replies: []fakemodel.Reply{fakemodel.Fail(429, `{"error":{"message":"too many tokens per day"}}`)}, state: protocol.StatusFailed,
			code: protocol.CodeProviderRateLimit, calls: 1},
		{name: "fault 26: a body that is too large", messages: 3, replies: []fakemodel.Reply{fakemodel.Fail(413, "prompt is too long")}, state: protocol.StatusFailed, code: protocol.CodeBodyTooLarge, calls: 1},
	} {
		t.Run(row.name, func(t *testing.T) {
			settings := params{"compaction.auto": true, "compaction.keep_recent_tokens": 250}
			for k, v := range row.settings {
				settings[k] = v
			}
			c := server.row(t, settings)
			c.chat(row.messages)
			left := row.replies
			c.model.answer(func(fakemodel.Request) fakemodel.Reply {
				if len(left) == 0 {
					return fakemodel.Say("Yes.")
				}
				reply := left[0]
				left = left[1:]
				return reply
			})
			before, asked := c.context(""), c.model.prompts()
			r := c.try("And now?")
			if r.State != row.state || row.code != "" && (r.Node.Error == nil || r.Node.Error.Code != row.code) {
				t.Errorf("the turn ended as %s: %+v", r.State, r.Node.Error)
			}
			if n := c.model.prompts() - asked; n != row.calls {
				t.Errorf("%d calls were made, want %d", n, row.calls)
			}
			same(t, "the events", c.events(), row.events)
			if e := c.event(finished); e != nil && e.Trigger != protocol.TriggerReactive {
				t.Errorf("the trigger was %s", e.Trigger)
			}
			if row.events == nil && c.context(c.node(r.UserID).Predecessor).Budget.Used != before.Budget.Used {
				t.Error("the context is another")
			}
			if row.code == protocol.CodeContextOverflow && r.Node.Error.Hint == "" {
				t.Error("the error does not say what to do")
			}
		})
	}
}

// TestBreaker stops automatic compaction after three failures in a row, until one by
// hand succeeds or the model changes; the turns themselves go on (faults 23 and 28).
func TestBreaker(t *testing.T) {
	server := newChat(t, nil)
	for _, row := range []struct {
		name  string
		reset func(c *chat)
	}{
		{"by hand", func(c *chat) { c.compacted(params{"keep_recent_tokens": 0}) }},
		{"another model", func(c *chat) {
			editor.Ask[protocol.SessionResult](c.Editor, protocol.MethodSessionConfigure, params{"session_id": c.session, "model": "fake/y"})
		}},
	} {
		t.Run(row.name, func(t *testing.T) {
			c := server.row(t, eager(params{"models": params{"fake/y": params{"window": 8_000, "max_output": 2_000}}}))
			fail := fakemodel.Fail(500, "broken")
			c.model.script(fail, fail, fail, fail)
			for i := 0; len(c.events()) < 6; i++ {
				if i > 20 {
					t.Fatalf("the events are %v", c.events())
				}
				c.send(long(fmt.Sprintf("Message %d.", i), 200))
			}
			same(t, "the events", c.events(), []protocol.EventType{started, failed, started, failed, started, failed})
			if c.open().AutoCompaction == "" {
				t.Error("nobody is told that automatic compaction has stopped")
			}
			c.send(long("One more.", 200))
			if n := len(c.events()); n != 6 {
				t.Errorf("after three failures it was tried again: %v", c.events())
			}
			same(t, "the view", ids(c.context("")), ids(c.raw("")))
			c.model.script()
			row.reset(c)
			if why := c.open().AutoCompaction; why != "" {
				t.Errorf("automatic compaction does not run: %s", why)
			}
			n := len(c.events())
			for i := 0; len(c.events()) == n; i++ {
				if i > 20 {
					t.Fatal("no automatic compaction any more")
				}
				c.send(long("And more.", 200))
			}
			if c.event(finished) == nil || c.event(finished).Trigger != protocol.TriggerAuto {
				t.Errorf("the events are %v", c.events())
			}
		})
	}
}

// TestIrreducible has what can not be summarised be larger than the window: one
// attempt at most, and an error that says what to do (faults 27, 33, 38).
func TestIrreducible(t *testing.T) {
	server := newChat(t, nil)
	for _, row := range []struct {
		name     string
		settings params
		messages int
		tokens   int
		state    protocol.Status
		runs     int
		calls    int
	}{
		{name: "one message larger than the window", tokens: 20_000, state: protocol.StatusFailed},
		{name: "one message larger than the window, after others", messages: 4, tokens: 20_000, state: protocol.StatusFailed, runs: 1},
		{name: "one message at the trigger", tokens: 5_500, state: protocol.StatusSealed, calls: 1},
		{name: "no output limit", settings: params{"models": params{"fake/x": params{"max_output": 0}}}, messages: 3, tokens: 100, state: protocol.StatusSealed, calls: 1},
		{name: "an output limit of the window", settings: params{"models": params{"fake/x": params{"max_output": 8_000}}}, messages: 3, tokens: 100, state: protocol.StatusSealed, calls: 1},
		{name: "an output limit beyond the window", settings: params{"models": params{"fake/x": params{"max_output": 100_000}}}, messages: 3, tokens: 100, state: protocol.StatusSealed, calls: 1},
	} {
		t.Run(row.name, func(t *testing.T) {
			settings := params{"compaction.auto": true}
			for k, v := range row.settings {
				settings[k] = v
			}
			c := server.row(t, settings)
			c.chat(row.messages)
			asked := c.model.prompts()
			r := c.try(long("A long one.", row.tokens))
			if r.State != row.state || row.state == protocol.StatusFailed && (r.Node.Error.Code != protocol.CodeContextOverflow || r.Node.Error.Hint == "") {
				t.Errorf("the turn ended as %s: %+v", r.State, r.Node.Error)
			}
			runs := 0
			for _, typ := range c.events() {
				if typ == started {
					runs++
				}
			}
			if n := c.model.prompts() - asked; n != row.calls || runs != row.runs {
				t.Errorf("%d calls and %d runs, want %d and %d: %v", n, runs, row.calls, row.runs, c.events())
			}
		})
	}
}
