package compaction

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"convls/compaction/manifest"
	"convls/protocol"
	"convls/test/editor"
)

// TestForeignSummary imports a coding agent's session, with the summaries that the
// agent made, and compacts it: the agent's summary, which has no manifest, is carried
// on word for word, from one compaction to the next.
func TestForeignSummary(t *testing.T) {
	c := newChat(t, nil)
	path, err := filepath.Abs("../../transfer/testdata/agent.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	report := editor.Ask[protocol.ImportReport](c.Editor, protocol.MethodSessionImport, params{"path": path})
	c.session = report.Sessions[0].SessionID
	c.subscribe("")
	mutate[protocol.SessionResult](c, protocol.MethodSessionConfigure, params{"model": "fake/x"})
	// Of the agent's two summaries the later one is active.
	const text = "The person asked about drift."
	foreign := c.context("").SummaryID
	if foreign == "" || !strings.Contains(c.context("").Entries[1].Text, text) {
		t.Fatalf("the view is %+v", c.context("").Entries)
	}
	if v := c.verify(foreign); v.OK || len(v.Problems) == 0 {
		t.Errorf("a summary without a fingerprint is verified: %+v", v)
	}
	old := c.covers(foreign)
	c.chat(3)
	for i := range 2 {
		asked := len(c.model.questions())
		r := c.compacted(params{"keep_recent_tokens": 250})
		if said := c.context("").Entries[1].Text; !strings.Contains(said, text) {
			t.Errorf("summary %d lacks the agent's: %s", i+1, said)
		}
		covered := c.covers(r.SummaryID)
		if len(covered) <= len(old) || !slices.Equal(covered[:len(old)], old) {
			t.Errorf("%v does not extend %v", covered, old)
		}
		for _, q := range c.model.questions()[asked:] {
			for _, id := range old {
				if strings.Contains(q, `"id":"`+id+`"`) {
					t.Errorf("%s is summarised again", id)
				}
			}
		}
		m := manifestOf(t, c.node(r.SummaryID))
		if n := len(slices.DeleteFunc(slices.Clone(m.Pinned), func(v manifest.Verbatim) bool { return !strings.Contains(v.Text, text) })); n != 1 {
			t.Errorf("the agent's summary is carried %d times", n)
		}
		if v := c.verify(r.SummaryID); !v.OK {
			t.Errorf("summary %d does not hold: %+v", i+1, v)
		}
		old = covered
		c.chat(2)
	}
	// Made again from the messages themselves, it needs the agent's no more.
	last := c.context("").SummaryID
	r := mutate[protocol.CompactionResult](c, protocol.MethodCompactionRebuild, params{"summary_id": last, "wait": true})
	if r.State != protocol.RunFinished || strings.Contains(c.context("").Entries[1].Text, text) {
		t.Errorf("the rebuilt summary is %s, %+v: %s", r.State, r.Error, c.context("").Entries[1].Text)
	}
}
