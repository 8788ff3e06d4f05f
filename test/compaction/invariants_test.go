package compaction

import (
	"slices"
	"strings"
	"testing"

	"convls/protocol"
	"convls/test/editor"
)

// TestInvariants goes through the flow of spec/compaction, section 8: chat, fork,
// checkout, compact, chat, compact, chat, restart, load; and checks HEAD and what
// is rendered after every step. The numbers are those of spec/recovered.
func TestInvariants(t *testing.T) {
	c := newChat(t, nil)
	replies := c.chat(4)
	root := ids(c.context(""))[0]

	// fork: a branch from inside what will be covered, and back.
	c.checkout(replies[1])
	side := c.send(long("Another way.", 60)).ReplyID
	c.checkout(replies[3])
	spine := ids(c.raw(""))
	rawSide := ids(c.raw(side))

	first := c.compacted(params{"keep_recent_tokens": 250})
	if got := c.head(); got != replies[3] {
		t.Fatalf("invariant 2: HEAD went from %s to %s", replies[3], got)
	}
	covered := c.covers(first.SummaryID)
	same(t, "the covered nodes", covered, spine[1:1+len(covered)])
	// Invariant 1: ROOT, S, kept tail.
	want := slices.Concat([]string{root, first.SummaryID}, spine[1+len(covered):])
	same(t, "invariant 1", ids(c.context("")), want)
	if len(want) < 4 || len(covered) < 4 {
		t.Fatalf("%d covered, %d rendered: the test compacts too little", len(covered), len(want))
	}
	// Invariant 3: a branch that lacks a part of the stretch renders raw.
	same(t, "invariant 3", ids(c.context(side)), rawSide)
	// Every node that was there is there, with its edges.
	same(t, "the raw view", ids(c.raw("")), spine)

	c.chat(3)
	questions := len(c.model.questions())
	before := c.head()
	second := c.compacted(params{"keep_recent_tokens": 250})
	if got := c.head(); got != before {
		t.Fatalf("invariant 2: HEAD went from %s to %s", before, got)
	}
	// Invariant 4: no covered turn is summarised again, and the stretch is extended.
	for _, q := range c.model.questions()[questions:] {
		for _, id := range covered {
			if strings.Contains(q, `"id":"`+id+`"`) {
				t.Errorf("invariant 4: %s is summarised again", id)
			}
		}
	}
	covered2 := c.covers(second.SummaryID)
	if len(covered2) <= len(covered) || !slices.Equal(covered2[:len(covered)], covered) {
		t.Errorf("invariant 4: %v does not extend %v", covered2, covered)
	}
	// Invariant 5: one row carries covers_ids, the other is superseded.
	old, now := c.node(first.SummaryID), c.node(second.SummaryID)
	if old.CoversIDs != nil || !old.SupersededSummary || now.SupersededSummary || !slices.Equal(now.CoversIDs, covered2) {
		t.Errorf("invariant 5: %v superseded %v, %v superseded %v", old.CoversIDs, old.SupersededSummary, now.CoversIDs, now.SupersededSummary)
	}
	// Invariant 6: dead forks stay out.
	if slices.Contains(covered2, side) {
		t.Error("invariant 6: a dead fork is covered")
	}

	c.chat(1)
	seen := c.views()
	c.restart(c.Leave)
	// Invariants 7 and 8: the same after a restart, and nothing was written back.
	if got := c.views(); got.head != seen.head || !slices.EqualFunc(got.context, seen.context, sameEntry) || !slices.Equal(got.raw, seen.raw) {
		t.Errorf("invariant 7: after a restart\n%+v\nwant\n%+v", got, seen)
	}
	c.restart(c.Kill)
	if got := c.views(); got.head != seen.head || !slices.EqualFunc(got.context, seen.context, sameEntry) {
		t.Errorf("invariant 7: after a kill\n%+v\nwant\n%+v", got, seen)
	}
	editor.Ask[protocol.SessionResult](c.Editor, protocol.MethodSessionConfigure, params{"session_id": c.session, "model": "fake/other"})
	if got := c.head(); got != seen.head {
		t.Errorf("invariant 7: a model switch moved HEAD to %s", got)
	}
	c.checkout(side)
	same(t, "the other branch", ids(c.context("")), rawSide)
	c.Leave(t)
	c.home.Check(t)
}

func sameEntry(a, b protocol.ContextEntry) bool {
	return a.ID == b.ID && a.Text == b.Text && a.Why == b.Why
}
