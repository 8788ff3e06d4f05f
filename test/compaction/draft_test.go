package compaction

import (
	"slices"
	"strings"
	"testing"

	"convls/compaction/manifest"
	"convls/protocol"
	"convls/test/editor"
)

// draft has a summary made that waits for a person.
func (c *chat) draft() (protocol.CompactionResult, *manifest.Manifest) {
	c.t.Helper()
	r := c.compact(params{"keep_recent_tokens": 250, "draft": true})
	if r.State != protocol.RunDrafted || r.Draft == nil {
		c.t.Fatalf("the draft is %s: %+v", r.State, r.Error)
	}
	m, err := manifest.Decode(r.Draft.Manifest)
	if err != nil {
		c.t.Fatal(err)
	}
	return r, m
}

func (c *chat) commit(draft string, p params) (protocol.CompactionResult, error) {
	all := params{"session_id": c.session, "draft_id": draft}
	for k, v := range p {
		all[k] = v
	}
	return editor.Try[protocol.CompactionResult](c.Editor, protocol.MethodCompactionCommit, all)
}

// TestDraft makes a draft, which changes nothing, and commits it as it is, once.
func TestDraft(t *testing.T) {
	server := newChat(t, nil)
	c := server.row(t, nil)
	c.chat(4)
	before := c.views()
	draft, _ := c.draft()
	c.unchanged(before)
	same(t, "the events of a draft", c.events(), nil)
	if draft.Draft.Head != before.head || draft.Draft.ExpiresAt.IsZero() || !strings.HasPrefix(draft.Draft.Text, protocol.SummaryMarker) {
		t.Errorf("the draft is %+v", draft.Draft)
	}
	c.send("One more.") // what is appended does not make it stale
	asked := len(c.model.questions())
	r, err := c.commit(draft.Draft.DraftID, params{"request_id": "once"})
	if err != nil || r.State != protocol.RunFinished || r.Covered != draft.Covered || len(c.model.questions()) != asked {
		t.Fatalf("the commit got %+v, %v", r, err)
	}
	n := c.node(r.SummaryID)
	if n.Content[0].Text != draft.Draft.Text || n.Provenance.Edited || n.Provenance.Trigger != protocol.TriggerDraft {
		t.Errorf("the summary is %+v of %+v", n.Content, n.Provenance)
	}
	if v := c.verify(r.SummaryID); !v.OK {
		t.Errorf("it does not hold: %+v", v)
	}
	same(t, "the events", c.events(), []protocol.EventType{started, finished})
	if again, err := c.commit(draft.Draft.DraftID, params{"request_id": "once"}); err != nil || again.SummaryID != r.SummaryID {
		t.Errorf("the repeated commit got %+v, %v", again, err)
	}
	if _, err := c.commit(draft.Draft.DraftID, nil); protocol.CodeOf(err) != protocol.CodeUnknownDraft {
		t.Errorf("a second commit got %v", err)
	}
}

// TestEditedDraft commits what a person made of a draft; what does not hold is refused
// and leaves the draft (spec/checkpoints, exercise D).
func TestEditedDraft(t *testing.T) {
	server := newChat(t, nil)
	c := server.row(t, nil)
	c.send("Never touch the file legacy/billing.go. " + long("Because.", 100))
	c.chat(3)
	draft, m := c.draft()
	if len(m.Constraints) == 0 {
		t.Fatalf("the draft has no constraint: %s", draft.Draft.Text)
	}
	encode := func(v any) protocol.Raw {
		t.Helper()
		b, err := protocol.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	without := func(member string) protocol.Raw {
		var all map[string]protocol.Raw
		if err := protocol.Unmarshal(draft.Draft.Manifest, &all); err != nil {
			t.Fatal(err)
		}
		delete(all, member)
		return encode(all)
	}
	item := manifest.Item{ID: "d9", Text: "The release is on Friday.", Status: manifest.Decision, Sources: []string{manifest.EditSource}}
	stranger := item
	stranger.Sources = []string{"01ARZ3NDEKTSV4RRFFQ69G5FAV"}
	with := func(i manifest.Item) protocol.Raw {
		edited := *m
		edited.Decisions = append(slices.Clone(m.Decisions), i)
		return encode(edited)
	}
	before := c.views()
	for _, row := range []struct {
		name string
		p    params
		code protocol.Code
	}{
		{"exercise D: no constraints", params{"manifest": without("constraints")}, protocol.CodeInvalidParams},
		{"exercise D: no source range", params{"manifest": without("source_range")}, protocol.CodeInvalidParams},
		{"no unknowns", params{"manifest": without("unknowns")}, protocol.CodeInvalidParams},
		{"a source that is no covered message", params{"manifest": with(stranger)}, protocol.CodeInvalidParams},
		{"another shape", params{"manifest": []int{1}}, protocol.CodeInvalidParams},
		{"not smaller", params{"text": long("And on it goes.", 2_000)}, protocol.CodeSummaryRefused},
		{"white space", params{"text": " \n\t"}, protocol.CodeSummaryRefused},
		{"emptied", params{"text": ""}, protocol.CodeSummaryRefused},
	} {
		if _, err := c.commit(draft.Draft.DraftID, row.p); protocol.CodeOf(err) != row.code {
			t.Errorf("%s: got %v, want %s", row.name, err, row.code)
		}
		c.unchanged(before)
	}
	r, err := c.commit(draft.Draft.DraftID, params{"manifest": with(item)})
	if err != nil || r.State != protocol.RunFinished {
		t.Fatalf("the edited draft got %+v, %v", r, err)
	}
	if n := c.node(r.SummaryID); !n.Provenance.Edited || !strings.Contains(n.Content[0].Text, item.Text) || !strings.Contains(n.Content[0].Text, "legacy/billing.go") {
		t.Errorf("the summary is %s", n.Content[0].Text)
	}
	// What a person wrote is carried on.
	c.chat(2)
	c.compacted(params{"keep_recent_tokens": 250})
	if said := c.context("").Entries[1].Text; !strings.Contains(said, item.Text) {
		t.Errorf("the next summary is %s", said)
	}
	// Prose alone can be edited too; secrets in it are masked.
	c.chat(2)
	next, _ := c.draft()
	_, err = c.commit(next.Draft.DraftID, params{"text": "We talked, and the key is " + secret + "."})
	if err != nil || strings.Contains(c.context("").Entries[1].Text, secret) || !strings.Contains(c.context("").Entries[1].Text, "We talked") {
		t.Errorf("the edited prose is %s, %v", c.context("").Entries[1].Text, err)
	}
}

// TestLostDrafts commits drafts that are gone, or whose messages are.
func TestLostDrafts(t *testing.T) {
	server := newChat(t, nil)
	for _, row := range []struct {
		name string
		lose func(c *chat, draft string) string
		code protocol.Code
	}{
		{"an unknown one", func(*chat, string) string { return "dft_x" }, protocol.CodeUnknownDraft},
		{"a discarded one", func(c *chat, draft string) string {
			for range 2 { // repeated, it is answered as before
				mutate[protocol.CompactionDiscardResult](c, protocol.MethodCompactionDiscard, params{"draft_id": draft, "request_id": "once"})
			}
			editor.Refused(c.Editor, protocol.CodeUnknownDraft, protocol.MethodCompactionDiscard, params{"session_id": c.session, "draft_id": draft})
			return draft
		}, protocol.CodeUnknownDraft},
		{"another session's", func(c *chat, draft string) string {
			c.session = server.row(c.t, nil).session
			return draft
		}, protocol.CodeUnknownDraft},
		{"one of too many", func(c *chat, draft string) string {
			for range 8 {
				c.draft()
			}
			return draft
		}, protocol.CodeUnknownDraft},
		{"a message was redacted", func(c *chat, draft string) string {
			mutate[protocol.NodeResult](c, protocol.MethodNodeRedact, params{"node_id": chain(c.raw(""))[1], "confirm": true})
			return draft
		}, protocol.CodeStaleCompaction},
		{"a message was deleted", func(c *chat, draft string) string {
			spine := chain(c.raw(""))
			c.checkout(spine[0])
			mutate[protocol.BranchDeleteResult](c, protocol.MethodBranchDelete, params{"tip": spine[len(spine)-1], "confirm": true})
			return draft
		}, protocol.CodeStaleCompaction},
		{"another summary came", func(c *chat, draft string) string {
			c.compacted(params{"keep_recent_tokens": 250})
			return draft
		}, protocol.CodeStaleCompaction},
	} {
		t.Run(row.name, func(t *testing.T) {
			c := server.row(t, nil)
			c.chat(3)
			r, _ := c.draft()
			id := row.lose(c, r.Draft.DraftID)
			before := c.views()
			if res, err := c.commit(id, nil); protocol.CodeOf(err) != row.code {
				t.Errorf("the commit got %+v, %v", res, err)
			}
			c.unchanged(before)
		})
	}
	c := newChat(t, nil)
	c.chat(3)
	r, _ := c.draft()
	c.restart(c.Leave)
	if _, err := c.commit(r.Draft.DraftID, nil); protocol.CodeOf(err) != protocol.CodeUnknownDraft {
		t.Errorf("after a restart the commit got %v", err)
	}
}

// TestPreview says, without a model, what a run then covers.
func TestPreview(t *testing.T) {
	server := newChat(t, nil)
	for _, row := range []struct {
		name string
		// spec may name the nodes of the spine by their place.
		spec func(spine []string) params
		// twice has a summary before it.
		twice bool
	}{
		{name: "as it comes", spec: func([]string) params { return params{} }},
		{name: "a tail", spec: func([]string) params { return params{"keep_recent_tokens": 250} }},
		{name: "the last node alone", spec: func([]string) params { return params{"keep_recent_tokens": 0} }},
		{name: "up to here", spec: func(s []string) params { return params{"up_to_id": s[6]} }},
		{name: "from here", spec: func(s []string) params { return params{"from_id": s[3], "keep_recent_tokens": 250} }},
		{name: "from here up to there", spec: func(s []string) params { return params{"from_id": s[3], "up_to_id": s[8]} }},
		{name: "a second time", spec: func([]string) params { return params{"keep_recent_tokens": 250} }, twice: true},
	} {
		t.Run(row.name, func(t *testing.T) {
			c := server.row(t, nil)
			c.chat(2)
			c.work(long("Look.", 60), 1)
			c.chat(2)
			if row.twice {
				c.compacted(params{"keep_recent_tokens": 250})
				c.chat(2)
			}
			asked, before := len(c.model.questions()), c.views()
			spec := row.spec(chain(c.raw("")))
			p := mutate[protocol.CompactionPreview](c, protocol.MethodCompactionPreview, spec)
			c.unchanged(before)
			if n := len(c.model.questions()); n != asked || p.WhyNot != "" || p.Head != before.head {
				t.Errorf("%d calls for the preview %+v", n-asked, p)
			}
			r := c.compacted(spec)
			same(t, "the covered nodes", p.CoveredIDs, c.covers(r.SummaryID))
			view := chain(c.context(""))
			if row.twice == (p.PreviousID == "") || p.Covered != r.Covered || p.TokensBefore != r.TokensBefore || p.Calls != len(c.model.questions())-asked || p.Summariser != "fake/x" {
				t.Errorf("the preview is %+v, the run %+v", p, r)
			}
			if !slices.Equal(p.KeptIDs, view[len(view)-len(p.KeptIDs):]) || len(view)-len(p.KeptIDs) != 1+slices.Index(chain(c.raw("")), p.CoveredIDs[0])-1 {
				t.Errorf("the preview keeps %v, the view has %v", p.KeptIDs, view)
			}
		})
	}
	c := server.row(t, nil)
	c.chat(1)
	if p := mutate[protocol.CompactionPreview](c, protocol.MethodCompactionPreview, nil); p.WhyNot == "" || len(p.CoveredIDs) != 0 {
		t.Errorf("with nothing to compact: %+v", p)
	}
}

// TestUndo goes back to the summary before, to none, and forth again: nothing but the
// choice is written. An undo stops automatic compaction until a person compacts, or
// does the undone again.
func TestUndo(t *testing.T) {
	server := newChat(t, nil)
	for _, row := range []struct {
		name  string
		again func(c *chat, second string)
	}{
		{"redo", func(c *chat, second string) {
			mutate[protocol.CompactionActivateResult](c, protocol.MethodCompactionActivate, params{"summary_id": second})
		}},
		{"by hand", func(c *chat, _ string) { c.compacted(params{"keep_recent_tokens": 250}) }},
	} {
		t.Run(row.name, func(t *testing.T) {
			c := server.row(t, eager(params{"compaction.trigger": 0.3}))
			c.chat(3)
			first := c.compacted(params{"keep_recent_tokens": 250})
			one := ids(c.context(""))
			c.chat(2)
			second := c.compacted(params{"keep_recent_tokens": 250})
			two, nodes, head := ids(c.context("")), c.open().Session.Nodes, c.head()
			activate := func(id any, want []string) {
				t.Helper()
				r := mutate[protocol.CompactionActivateResult](c, protocol.MethodCompactionActivate, params{"summary_id": id})
				view := ids(c.context(""))
				if id != nil && !slices.Equal(r.ActiveSummaries, []string{id.(string)}) || id == nil && len(r.ActiveSummaries) != 0 {
					t.Errorf("active are %v", r.ActiveSummaries)
				}
				same(t, "the view", view[:len(want)], want)
				if c.head() != head || c.open().Session.Nodes != nodes {
					t.Error("more than the choice was written")
				}
			}
			// The list tells where undo and redo lead: "-" for nowhere, "" for no summary.
			steps := func(undo, redo string) {
				t.Helper()
				to := func(s *protocol.SummaryStep) string {
					if s == nil {
						return "-"
					}
					return s.SummaryID
				}
				l := c.list()
				if to(l.Undo) != undo || to(l.Redo) != redo {
					t.Errorf("undo and redo lead to %q and %q, want %q and %q", to(l.Undo), to(l.Redo), undo, redo)
				}
				if l.Undo != nil && undo == first.SummaryID && l.Undo.Covered != second.Covered {
					t.Errorf("undo takes back %d messages, want %d", l.Undo.Covered, second.Covered)
				}
			}
			steps(first.SummaryID, "-")
			activate(first.SummaryID, one)
			steps("", second.SummaryID)
			activate(nil, ids(c.raw("")))
			steps("-", first.SummaryID)
			activate(second.SummaryID, two)
			if why := c.open().AutoCompaction; why != "" {
				t.Errorf("after a redo automatic compaction does not run: %s", why)
			}
			for _, id := range []string{"x", head} {
				editor.Refused(c.Editor, protocol.CodeUnknownSummary, protocol.MethodCompactionActivate, params{"session_id": c.session, "summary_id": id})
			}
			activate(nil, ids(c.raw("")))
			if why := c.open().AutoCompaction; why == "" {
				t.Error("nobody is told that automatic compaction has stopped")
			}
			n := len(c.events())
			for range 4 {
				c.send(long("Another message.", 300))
			}
			if got := c.events()[n:]; slices.Contains(got, started) {
				t.Errorf("what was undone is done again: %v", got)
			}
			row.again(c, second.SummaryID)
			n = len(c.events())
			for i := 0; !slices.Contains(c.events()[n:], finished); i++ {
				if i > 10 {
					t.Fatalf("no automatic compaction any more: %v, %s", c.events(), c.open().AutoCompaction)
				}
				c.send(long("Another message.", 300))
			}
		})
	}
}

// TestVerify computes fingerprints anew: of a chain of summaries, of one that lost a
// message, and of one that never had one.
func TestVerify(t *testing.T) {
	server := newChat(t, nil)
	c := server.row(t, nil)
	c.chat(3)
	first := c.compacted(params{"keep_recent_tokens": 250})
	c.work(long("Look.", 60), 1)
	c.chat(1)
	second := c.compacted(params{"keep_recent_tokens": 250})
	for _, id := range []string{first.SummaryID, second.SummaryID} {
		if v := c.verify(id); !v.OK || len(v.Problems) != 0 || len(v.Recorded) != 64 || v.Recorded != v.Computed || v.Messages == 0 {
			t.Errorf("%+v", v)
		}
	}
	prov := c.node(second.SummaryID).Provenance
	if prov.PreviousID != first.SummaryID || prov.FromID == "" || prov.PromptSHA256 == "" || prov.Model != "fake/x" || prov.PolicyVersion == "" || prov.Policy != "rolling" || prov.Usage == nil {
		t.Errorf("the provenance is %+v", prov)
	}
	covered := c.covers(second.SummaryID)
	mutate[protocol.NodeResult](c, protocol.MethodNodeRedact, params{"node_id": covered[len(covered)-1], "confirm": true})
	if v := c.verify(first.SummaryID); !v.OK {
		t.Errorf("the first does not hold: %+v", v)
	}
	if v := c.verify(second.SummaryID); v.OK || len(v.Problems) == 0 {
		t.Errorf("after a redaction the second holds: %+v", v)
	}
	editor.Refused(c.Editor, protocol.CodeUnknownSummary, protocol.MethodCompactionVerify, params{"session_id": c.session, "summary_id": covered[0]})
}

// TestRebuild makes the latest of a chain of summaries again from the messages: the
// same nodes are covered, all of them were read, and it takes the old one's place.
func TestRebuild(t *testing.T) {
	server := newChat(t, nil)
	c := server.row(t, nil)
	c.chat(3)
	c.compacted(params{"keep_recent_tokens": 250})
	c.chat(2)
	second := c.compacted(params{"keep_recent_tokens": 250})
	covered, before, asked := c.covers(second.SummaryID), c.views(), len(c.model.questions())
	r := mutate[protocol.CompactionResult](c, protocol.MethodCompactionRebuild, params{"summary_id": second.SummaryID, "wait": true})
	if r.State != protocol.RunFinished {
		t.Fatalf("the rebuild is %s: %+v", r.State, r.Error)
	}
	same(t, "the covered nodes", c.covers(r.SummaryID), covered)
	c.asked(c.model.questions()[asked:], covered)
	n := c.node(r.SummaryID)
	if n.Provenance.Trigger != protocol.TriggerRebuild || n.Provenance.PreviousID != "" || !slices.Equal(n.Reads, covered) {
		t.Errorf("the provenance is %+v", n.Provenance)
	}
	after := c.views()
	same(t, "the raw view", after.raw, before.raw)
	if after.head != before.head || c.context("").SummaryID != r.SummaryID || !c.verify(r.SummaryID).OK {
		t.Errorf("HEAD is %s, the summary %s", after.head, c.context("").SummaryID)
	}
	if !c.node(second.SummaryID).SupersededSummary {
		t.Error("the old one is not superseded")
	}
	editor.Refused(c.Editor, protocol.CodeUnknownSummary, protocol.MethodCompactionRebuild, params{"session_id": c.session, "summary_id": "x"})
	// A summary of a branch that HEAD is not on is not made again there.
	c.checkout(chain(c.raw(""))[1])
	c.send("Otherwise.")
	editor.Refused(c.Editor, protocol.CodeInvalidParams, protocol.MethodCompactionRebuild, params{"session_id": c.session, "summary_id": r.SummaryID})
}
