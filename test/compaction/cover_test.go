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

// chain keeps the chain nodes of a view.
func chain(v protocol.ContextView) (out []string) {
	for _, e := range v.Entries {
		if e.Kind.OnChain() {
			out = append(out, e.ID)
		}
	}
	return out
}

func sum(v protocol.ContextView) (tokens int64) {
	for _, e := range v.Entries {
		tokens += e.Tokens
	}
	return tokens
}

// within returns the entries of the raw view from the first covered node to the
// last, with what they called.
func (c *chat) within(covered []string) (out []string) {
	inside := false
	for _, e := range c.raw("").Entries {
		if e.Kind.OnChain() {
			inside = slices.Contains(covered, e.ID)
		}
		if inside {
			out = append(out, e.ID)
		}
	}
	return out
}

// asked fails the test unless the summariser read exactly these nodes.
func (c *chat) asked(questions []string, want []string) {
	c.t.Helper()
	all := strings.Join(questions, "\n")
	for _, id := range ids(c.raw("")) {
		if is, should := strings.Contains(all, `"id":"`+id+`"`), slices.Contains(want, id); is != should {
			c.t.Errorf("node %s was read by the summariser: %v, want %v", id, is, should)
		}
	}
}

// TestCoverage compacts twice, with tool turns: what is covered and what is rendered
// make the spine together, the summariser read every newly covered node and what it
// called and nothing else, and the ledger holds one node more for each (faults 1, 14,
// 17; defects 1, 2, 3, 8 and 16).
func TestCoverage(t *testing.T) {
	c := newChat(t, nil)
	c.chat(1)
	c.work(long("Look at two pages.", 60), 2)
	c.chat(2)

	check := func(r protocol.CompactionResult, newly []string, previous string) {
		t.Helper()
		covered := c.covers(r.SummaryID)
		view := c.context("")
		same(t, "covered and rendered", slices.Concat(chain(view)[:1], covered, chain(view)[1:]), chain(c.raw("")))
		if r.Covered != int64(len(covered)) {
			t.Errorf("%d nodes are said to be covered, not %d", r.Covered, len(covered))
		}
		for _, id := range covered {
			if k := c.node(id).Kind; !k.OnChain() {
				t.Errorf("defect 3: %s, a %s, is covered", id, k)
			}
		}
		if got := sum(view); got != r.TokensAfter {
			t.Errorf("defect 8: %d tokens after, the view has %d", r.TokensAfter, got)
		}
		reads := newly
		if previous != "" {
			reads = slices.Concat([]string{previous}, newly)
		}
		same(t, "defect 16: the reads", c.node(r.SummaryID).Reads, reads)
	}

	before := sum(c.context(""))
	first := c.compacted(params{"keep_recent_tokens": 250})
	if first.TokensBefore != before {
		t.Errorf("%d tokens before, the view had %d", first.TokensBefore, before)
	}
	covered := c.covers(first.SummaryID)
	newly := c.within(covered)
	if !slices.ContainsFunc(newly, func(id string) bool { return c.node(id).Kind == protocol.KindTool }) {
		t.Fatal("no tool's result is covered")
	}
	c.asked(c.model.questions(), newly)
	check(first, newly, "")

	c.work(long("Look at one more.", 60), 1)
	c.chat(1)
	asked := len(c.model.questions())
	second := c.compacted(params{"keep_recent_tokens": 250})
	newly = c.within(slices.DeleteFunc(c.covers(second.SummaryID), func(id string) bool { return slices.Contains(covered, id) }))
	c.asked(c.model.questions()[asked:], newly)
	check(second, newly, first.SummaryID)

	if got, want := c.open().Session.Nodes, int64(len(ids(c.raw(""))))+2; got != want {
		t.Errorf("fault 14: %d nodes, want %d: the conversation's, and two summaries", got, want)
	}
	reply := c.send("And now?")
	reads := c.node(reply.ReplyID).Reads
	if !slices.Contains(reads, second.SummaryID) || slices.ContainsFunc(reads, func(id string) bool { return slices.Contains(c.covers(second.SummaryID), id) || id == first.SummaryID }) {
		t.Errorf("defect 16: the reply has read %v", reads)
	}
}

func (c *chat) open() protocol.SessionOpenResult {
	c.t.Helper()
	return editor.Ask[protocol.SessionOpenResult](c.Editor, protocol.MethodSessionOpen, params{"session_id": c.session})
}

// TestPromptAfterCompaction looks at what the model reads in the turns after: the
// system prompt, the summary as a record and not as anybody's word, and the tail,
// each time (faults 12 and 18).
func TestPromptAfterCompaction(t *testing.T) {
	c := newChat(t, nil)
	c.send("Delete the folder build. " + long("It is old.", 60))
	c.chat(3)
	r := c.compacted(params{"keep_recent_tokens": 250})
	tail := chain(c.context(""))[1:]
	for i := range 3 {
		message := fmt.Sprintf("Next %d.", i)
		c.send(message)
		prompt := c.model.lastPrompt()
		if len(prompt) < 4 || prompt[0] != "system: Be brief." || !strings.HasPrefix(prompt[1], "user: [Record of the earlier conversation") ||
			!strings.Contains(prompt[1], "not a message from the user") || strings.Count(strings.Join(prompt, "\n"), protocol.SummaryMarker) != 1 {
			t.Fatalf("the prompt is %q", prompt)
		}
		if !strings.HasSuffix(prompt[len(prompt)-1], message) {
			t.Errorf("the prompt ends with %q", prompt[len(prompt)-1])
		}
		for _, id := range tail {
			if text := c.node(id).Content[0].Text; !strings.Contains(strings.Join(prompt, "\n"), text) {
				t.Errorf("the prompt lacks %q", text)
			}
		}
	}
	for _, e := range c.raw("").Entries {
		if e.Kind == protocol.KindUser && !strings.HasPrefix(e.Text, "Delete") && !strings.HasPrefix(e.Text, "Message") && !strings.HasPrefix(e.Text, "Next") {
			t.Errorf("fault 12: nobody wrote %q", e.Text)
		}
	}
	if n := c.node(r.SummaryID); n.Kind != protocol.KindSummary || n.Role == "user" || string(n.Metadata["compaction"]) != "true" || !strings.HasPrefix(n.Content[0].Text, protocol.SummaryMarker) {
		t.Errorf("the summary node is %+v", n)
	}
}

// pairs fails the test if a prompt has a tool call without its result, or a result
// without its call.
func pairs(t *testing.T, r fakemodel.Request) {
	t.Helper()
	open := map[string]bool{}
	for _, m := range r.Messages {
		if m.Role == "tool" {
			if !open[m.ToolCallID] {
				t.Errorf("the result of %s has no call", m.ToolCallID)
			}
			delete(open, m.ToolCallID)
			continue
		}
		if len(open) > 0 {
			t.Errorf("the calls %v have no result", open)
		}
		for _, call := range m.ToolCalls {
			open[call.ID] = true
		}
	}
}

// TestToolPairs cuts a conversation with tool turns after every of its nodes, and
// then after every later one: no prompt ever holds a call without its result
// (faults 6 to 9; spec/checkpoints, exercise E).
func TestToolPairs(t *testing.T) {
	server := newChat(t, nil)
	build := func(t *testing.T) (*chat, []string) {
		c := server.row(t, nil)
		c.chat(1)
		c.work(long("Look at two pages.", 300), 2)
		return c, chain(c.raw(""))[1:]
	}
	_, nodes := build(t)
	done := 0
	for i := 1; i < len(nodes)-1; i++ {
		t.Run(fmt.Sprintf("after node %d", i), func(t *testing.T) {
			c, nodes := build(t)
			check := func(upTo string) {
				t.Helper()
				r := c.compact(params{"up_to_id": upTo})
				if r.State != protocol.RunFinished && r.Error.Reason != "not_smaller" {
					t.Fatalf("the run ended as %s: %+v", r.State, r.Error)
				}
				if r.State == protocol.RunFinished {
					done++
				}
				head := c.head()
				c.send("Go on.")
				pairs(t, c.model.last())
				c.checkout(head)
			}
			for _, node := range nodes[i : len(nodes)-1] {
				check(node)
			}
		})
	}
	if done < len(nodes)-2 {
		t.Errorf("only %d runs have covered anything", done)
	}
}

// TestCutInsideATurn has one turn be larger than what may stay: it is cut between its
// model calls, what the summary before held goes into the new one, and the turn's
// own message stays word for word (fault 4).
func TestCutInsideATurn(t *testing.T) {
	c := newChat(t, nil)
	c.send("Never touch the file legacy/billing.go. " + long("Because.", 100))
	c.chat(2)
	first := c.compacted(params{"keep_recent_tokens": 250})
	message := long("Read all of the five pages, one after the other.", 40)
	replies := c.work(message, 5)
	asked := len(c.model.questions())
	second := c.compacted(params{"keep_recent_tokens": 200})
	if q := c.model.questions()[asked]; !strings.Contains(q, "legacy/billing.go") {
		t.Errorf("the summariser did not get the summary before: %s", q)
	}
	covered := c.covers(second.SummaryID)
	if old := c.covers(first.SummaryID); !slices.Equal(covered[:len(old)], old) {
		t.Errorf("%v does not extend %v", covered, old)
	}
	if !slices.Contains(covered, replies[0]) || slices.Contains(covered, replies[len(replies)-1]) {
		t.Errorf("the cut is not inside the turn: %v of %v is covered", covered, replies)
	}
	if text := c.context("").Entries[1].Text; !strings.Contains(text, "legacy/billing.go") || !strings.Contains(text, message) {
		t.Errorf("the summary is %s", text)
	}
	c.send("Go on.")
	pairs(t, c.model.last())
	if r, err := editor.Try[protocol.CompactionResult](c.Editor, protocol.MethodCompactionRun, params{"session_id": c.session, "wait": true, "keep_recent_tokens": 100_000}); protocol.CodeOf(err) != protocol.CodeNothingToCompact {
		t.Errorf("fault 8: with nothing new to cover: %+v, %v", r, err)
	}
}

// TestSummariesDoNotPileUp compacts again and again: one summary in every view, the
// prompt does not grow, and a node a compaction is added (faults 13, 14 and 21).
func TestSummariesDoNotPileUp(t *testing.T) {
	c := newChat(t, nil)
	c.chat(2)
	most := int64(0)
	for i := range 6 {
		c.chat(1)
		r := c.compacted(params{"keep_recent_tokens": 250})
		view := c.context("")
		n := 0
		for _, e := range view.Entries {
			if e.Kind == protocol.KindSummary {
				n++
			}
		}
		if n != 1 {
			t.Errorf("fault 13: %d summaries are rendered", n)
		}
		if i == 1 {
			most = r.TokensAfter * 3 / 2
		}
		if i > 1 && r.TokensAfter > most {
			t.Errorf("fault 13: %d tokens after compaction %d, %d after the second", r.TokensAfter, i+1, most*2/3)
		}
		if got, want := c.open().Session.Nodes, int64(len(ids(c.raw(""))))+int64(i+1); got != want {
			t.Errorf("fault 14: %d nodes, want %d", got, want)
		}
	}
	active := 0
	for _, s := range c.list().Summaries {
		if s.Active {
			active++
		}
	}
	if active != 1 {
		t.Errorf("%d summaries are active", active)
	}
}

// TestHeadOnTheLastCovered goes on from the last covered node: what follows it there
// follows that node, not the summary (defect 6).
func TestHeadOnTheLastCovered(t *testing.T) {
	c := newChat(t, nil)
	c.chat(4)
	r := c.compacted(params{"keep_recent_tokens": 250})
	covered := c.covers(r.SummaryID)
	last := covered[len(covered)-1]
	c.checkout(last)
	sent := c.send("Another way.")
	if p := c.node(sent.UserID).Predecessor; p != last {
		t.Errorf("the message follows %s, want %s", p, last)
	}
	root := ids(c.raw(""))[0]
	same(t, "the view", ids(c.context("")), []string{root, r.SummaryID, sent.UserID, sent.ReplyID})
	editor.Refused(c.Editor, protocol.CodeNotAChainNode, protocol.MethodBranchCheckout, params{"session_id": c.session, "node_id": r.SummaryID})
}
