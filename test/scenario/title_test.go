package scenario

import (
	"strings"
	"testing"

	"convls/client"
	"convls/protocol"
	"convls/test/editor"
)

// A title is made fit to be shown in one line; a name, which people type, is refused
// if it could not be.
func TestTitlesAndNames(t *testing.T) {
	b := newBench(t, nil, client.Options{})
	const title = " two\n lines \x1b[31m\u202e \x00"
	made := editor.Ask[protocol.SessionResult](b.Editor, protocol.MethodSessionCreate, protocol.SessionCreateParams{Title: title})
	if made.Title != "two lines [31m" {
		t.Errorf("the title is %q", made.Title)
	}
	renamed := editor.Ask[protocol.SessionResult](b.Editor, protocol.MethodSessionRename, protocol.SessionRenameParams{SessionID: made.SessionID, Title: "a\tb"})
	if renamed.Title != "a b" {
		t.Errorf("the new title is %q", renamed.Title)
	}
	for _, bad := range []string{"", "\n\x00\u202e", strings.Repeat("x", 1001)} {
		editor.Refused(b.Editor, protocol.CodeInvalidParams, protocol.MethodSessionRename, params{"session_id": made.SessionID, "title": bad})
	}
	for _, bad := range []string{"a\nb", "a\x00b", "\x1b[1m", "a\u202eb", " a", "a ", strings.Repeat("x", 101)} {
		editor.Refused(b.Editor, protocol.CodeInvalidParams, protocol.MethodBranchFork, params{"session_id": made.SessionID, "node_id": made.Head, "name": bad})
		editor.Refused(b.Editor, protocol.CodeInvalidParams, protocol.MethodBranchRename, params{"session_id": made.SessionID, "tip": made.Head, "name": bad})
	}
	if got := editor.Ask[protocol.BranchListResult](b.Editor, protocol.MethodBranchList, params{"session_id": made.SessionID}); got.Branches[0].Name != "" {
		t.Errorf("a refused name is there: %+v", got.Branches)
	}
	// The title that a message gives.
	untitled := b.session(protocol.SessionCreateParams{})
	b.send(untitled, "\x07ring\u202e\nand more")
	if got := editor.Ask[protocol.SessionOpenResult](b.Editor, protocol.MethodSessionOpen, params{"session_id": untitled}); strings.ContainsAny(got.Session.Title, "\x07\n\u202e") || !strings.HasPrefix(got.Session.Title, "ring") {
		t.Errorf("the title of a message is %q", got.Session.Title)
	}
}
