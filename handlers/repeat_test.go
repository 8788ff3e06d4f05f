package handlers

import (
	"strings"
	"testing"

	"convls/protocol"
)

// A request that is sent again has the outcome of the first: its ids are the same,
// whatever has happened since, and what it shows is shown as it is by now.
func TestRepeatedRequests(t *testing.T) {
	v := serve(t)
	t.Run("another wait", func(t *testing.T) {
		const send = `{"session_id":"$s","content":"hello","request_id":"send"`
		first := do[*protocol.TurnResult](v, protocol.MethodTurnSend, send+`}`)
		again := do[*protocol.TurnResult](v, protocol.MethodTurnSend, send+`,"wait":true}`)
		if again.UserID != first.UserID || again.ReplyID != first.ReplyID || again.State != protocol.StatusSealed || again.Node == nil {
			t.Errorf("first %+v, then with wait %+v", first, again)
		}
		retry := `{"session_id":"$s","node_id":"` + first.UserID + `","request_id":"retry"`
		one := do[*protocol.TurnRetryResult](v, protocol.MethodTurnRetry, retry+`,"wait":true}`)
		two := do[*protocol.TurnRetryResult](v, protocol.MethodTurnRetry, retry+`,"wait":false}`)
		if one.Candidates[0].ReplyID != two.Candidates[0].ReplyID {
			t.Errorf("first %+v, then without wait %+v", one, two)
		}
		_, err := v.call(protocol.MethodTurnSend, send+`,"model":"offline"}`)
		if protocol.CodeOf(err) != protocol.CodeIDConflict {
			t.Errorf("another model under the same id: %v", err)
		}
	})
	t.Run("rename of a branch", func(t *testing.T) {
		const rename = `{"session_id":"$s","tip":"$a","name":"main","request_id":"name"}`
		first := do[*protocol.BranchResult](v, protocol.MethodBranchRename, rename)
		do[*protocol.BranchResult](v, protocol.MethodBranchRename, `{"session_id":"$s","branch":"main","name":"trunk"}`)
		again := do[*protocol.BranchResult](v, protocol.MethodBranchRename, rename)
		if again.Cursor != first.Cursor || again.Branch.Tip != first.Branch.Tip {
			t.Errorf("first %+v, then %+v", first, again)
		}
		if first.Branch.Name != "main" || again.Branch.Name != "" {
			t.Errorf("named %q, and shown as %q when it is not called that any more", first.Branch.Name, again.Branch.Name)
		}
	})
	t.Run("fork", func(t *testing.T) {
		const fork = `{"session_id":"$s","node_id":"$a","name":"side","request_id":"fork"}`
		first := do[*protocol.ForkResult](v, protocol.MethodBranchFork, fork)
		do[*protocol.TurnResult](v, protocol.MethodTurnSend, `{"session_id":"$s","content":"on","wait":true}`)
		again := do[*protocol.ForkResult](v, protocol.MethodBranchFork, fork)
		if again.Head != first.Head || again.Cursor != first.Cursor || again.Branch.Tip != first.Branch.Tip || !first.Branch.IsHead || again.Branch.IsHead {
			t.Errorf("first %+v, then %+v", first, again)
		}
	})
	t.Run("pin", func(t *testing.T) {
		const pin = `{"session_id":"$s","node_id":"$u","request_id":"pin"}`
		first := do[*protocol.NodeResult](v, protocol.MethodNodePin, pin)
		do[*protocol.NodeResult](v, protocol.MethodNodeUnpin, `{"session_id":"$s","node_id":"$u"}`)
		again := do[*protocol.NodeResult](v, protocol.MethodNodePin, pin)
		if again.ID != first.ID || again.Cursor != first.Cursor || !first.Pinned || again.Pinned {
			t.Errorf("first %+v, then %+v", first, again)
		}
	})
	t.Run("configure", func(t *testing.T) {
		const configure = `{"session_id":"$s","workspace":"file:///one","request_id":"configure"}`
		first := do[*protocol.SessionResult](v, protocol.MethodSessionConfigure, configure)
		do[*protocol.SessionResult](v, protocol.MethodSessionConfigure, `{"session_id":"$s","workspace":"file:///two"}`)
		again := do[*protocol.SessionResult](v, protocol.MethodSessionConfigure, configure)
		if again.SessionID != first.SessionID || again.Cursor != first.Cursor || again.Workspace != "file:///two" {
			t.Errorf("first %+v, then %+v", first, again)
		}
	})
	t.Run("create", func(t *testing.T) {
		const create = `{"title":"short-lived","request_id":"create"}`
		first := do[*protocol.SessionResult](v, protocol.MethodSessionCreate, create)
		do[*protocol.SessionResult](v, protocol.MethodSessionRename, `{"session_id":"`+first.SessionID+`","title":"renamed"}`)
		again := do[*protocol.SessionResult](v, protocol.MethodSessionCreate, create)
		if again.SessionID != first.SessionID || again.Cursor != first.Cursor || again.Title != "renamed" {
			t.Errorf("first %+v, then %+v", first, again)
		}
		do[*protocol.SessionDeleteResult](v, protocol.MethodSessionDelete, `{"session_id":"`+first.SessionID+`","confirm":true}`)
		_, err := v.call(protocol.MethodSessionCreate, create)
		if protocol.CodeOf(err) != protocol.CodeUnknownSession || !strings.Contains(err.Error(), "deleted") || !strings.Contains(err.Error(), first.SessionID) {
			t.Errorf("the session that it made is deleted: %v", err)
		}
	})
}

// A title of nothing that can be seen is none.
func TestBlankTitle(t *testing.T) {
	v := serve(t)
	_, err := v.call(protocol.MethodSessionRename, `{"session_id":"$s","title":" \u0000\n\u202e"}`)
	if protocol.CodeOf(err) != protocol.CodeInvalidParams {
		t.Errorf("a blank title: %v", err)
	}
}
