package compaction

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"convls/protocol"
	"convls/test/editor"
)

// TestRealSession compacts a real session of a coding agent twice, if it is there:
// it is not part of the project. What it covered, and the tokens, are logged.
func TestRealSession(t *testing.T) {
	for _, name := range []string{"pi-session-914-messages.jsonl", "pi-session-two-compactions.jsonl"} {
		t.Run(name, func(t *testing.T) {
			path, err := filepath.Abs(filepath.Join("..", "..", "..", "shared", "data", name))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := os.Stat(path); err != nil {
				t.Skipf("the session is not there: %v", err)
			}
			c := newChat(t, params{"compaction.model": "extractive", "models": params{"fake/x": params{"window": 200_000, "max_output": 8_000}}})
			report := editor.Ask[protocol.ImportReport](c.Editor, protocol.MethodSessionImport, params{"path": path})
			c.session = report.Sessions[0].SessionID
			c.subscribe("")
			editor.Ask[protocol.SessionResult](c.Editor, protocol.MethodSessionConfigure, params{"session_id": c.session, "model": "fake/x"})
			raw := c.all(true)
			for _, keep := range []int{20_000, 5_000} {
				before := c.all(false)
				r := c.compacted(params{"keep_recent_tokens": keep})
				after := c.all(false)
				t.Logf("keep %d: covers %d, %d entries became %d, %d tokens became %d", keep, r.Covered, len(before), len(after), r.TokensBefore, r.TokensAfter)
				whole(t, c, raw, after, r)
			}
			v := editor.Ask[protocol.CompactionVerifyResult](c.Editor, protocol.MethodCompactionVerify, params{"session_id": c.session, "summary_id": c.list().Summaries[0].SummaryID})
			if !v.OK {
				t.Errorf("the summary does not verify: %+v", v)
			}
			c.Leave(t)
			c.home.Check(t)
		})
	}
}

// all returns all entries of HEAD's context.
func (c *chat) all(raw bool) (entries []protocol.ContextEntry) {
	c.t.Helper()
	for cursor := ""; ; {
		v := editor.Ask[protocol.ContextView](c.Editor, protocol.MethodContextGet, params{"session_id": c.session, "raw": raw, "cursor": cursor, "limit": 5_000})
		entries = append(entries, v.Entries...)
		if cursor = v.Next; cursor == "" {
			return entries
		}
	}
}

// whole checks that what a summary covers and what is rendered beside it are the
// whole conversation, with no call parted from its result.
func whole(t *testing.T, c *chat, raw, now []protocol.ContextEntry, r protocol.CompactionResult) {
	t.Helper()
	covered := map[string]bool{}
	for cursor := ""; ; {
		p := editor.Ask[protocol.CompactionCoversResult](c.Editor, protocol.MethodCompactionCovers, params{"session_id": c.session, "summary_id": r.SummaryID, "limit": 10_000, "cursor": cursor})
		for _, id := range p.CoversIDs {
			covered[id] = true
		}
		if cursor = p.Next; cursor == "" {
			break
		}
	}
	if int64(len(covered)) != r.Covered {
		t.Errorf("%d ids of %d covered nodes", len(covered), r.Covered)
	}
	var want []string
	owner := ""
	for _, e := range raw {
		if e.Why != protocol.WhySubtree {
			owner = e.ID
		}
		if !covered[owner] {
			want = append(want, e.ID)
		}
	}
	var got []string
	for _, e := range now {
		if e.ID != r.SummaryID {
			got = append(got, e.ID)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("%d entries beside the summary, want %d", len(got), len(want))
	}
}
