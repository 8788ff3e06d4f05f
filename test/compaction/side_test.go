package compaction

import (
	"slices"
	"strings"
	"testing"

	"convls/protocol"
)

// TestAsidesAreRead compacts messages that a call and a spawned turn hang off, exposed:
// the summariser reads them, the summary says so, its fingerprint holds them, and
// whatever hangs there later changes nothing of that. A redaction of one voids it.
func TestAsidesAreRead(t *testing.T) {
	server := newChat(t, nil)
	c := server.row(t, nil)
	replies := c.chat(4)
	call := mutate[protocol.ExecResult](c, protocol.MethodExec, params{"prompt": "What hangs aside?", "head": replies[0], "expose": true, "wait": true})
	hidden := mutate[protocol.ExecResult](c, protocol.MethodExec, params{"prompt": "A hidden question", "head": replies[0], "wait": true})
	spawned := mutate[protocol.TurnResult](c, protocol.MethodTurnSend, params{"content": "A side task", "spawn": true, "head": replies[0], "expose": true, "wait": true})
	for state, got := range map[string]protocol.Status{"the call": call.State, "the hidden call": hidden.State, "the spawned turn": spawned.State} {
		if got != protocol.StatusSealed {
			t.Fatalf("%s is %s", state, got)
		}
	}
	asked := len(c.model.questions())
	s := c.compacted(params{"keep_recent_tokens": 250})
	if covered := c.covers(s.SummaryID); !slices.Contains(covered, replies[0]) || slices.Contains(covered, spawned.UserID) {
		t.Fatalf("it covers %q", covered)
	}
	read := strings.Join(c.model.questions()[asked:], "\n")
	if !strings.Contains(read, "What hangs aside?") || !strings.Contains(read, "A side task") || strings.Contains(read, "A hidden question") {
		t.Errorf("the summariser read: %s", read)
	}
	reads := c.node(s.SummaryID).Reads
	for id, want := range map[string]bool{call.NodeID: true, spawned.UserID: true, spawned.ReplyID: true, hidden.NodeID: false} {
		if slices.Contains(reads, id) != want {
			t.Errorf("reads name %s: %v, want %v", id, !want, want)
		}
	}
	if v := c.verify(s.SummaryID); !v.OK || len(v.Problems) != 0 {
		t.Errorf("%+v", v)
	}
	mutate[protocol.ExecResult](c, protocol.MethodExec, params{"prompt": "Later", "head": replies[0], "expose": true, "wait": true})
	if v := c.verify(s.SummaryID); !v.OK || len(v.Problems) != 0 {
		t.Errorf("after a later call: %+v", v)
	}
	mutate[protocol.NodeResult](c, protocol.MethodNodeRedact, params{"node_id": call.NodeID, "confirm": true})
	if v := c.verify(s.SummaryID); v.OK || len(v.Problems) == 0 {
		t.Errorf("after a redaction of the call the summary holds: %+v", v)
	}
	if entries := c.context("").Entries; slices.ContainsFunc(entries, func(e protocol.ContextEntry) bool { return strings.Contains(e.Text, "What hangs aside?") }) {
		t.Error("what was redacted is in the context")
	}
}
