package scenario

import (
	"testing"

	"golang.org/x/sys/unix"

	"convls/client"
	"convls/protocol"
	"convls/test/editor"
)

// fault 70: the store can not be written any more while the program runs. Whoever asks
// for a change is told at once, and nothing goes on in memory alone: what was
// acknowledged, and no more, is there at the next start.
func TestStoreThatCanNotBeWritten(t *testing.T) {
	home := editor.NewHome(t)
	start := func() *editor.Editor {
		return home.Start(t, editor.Options{Client: client.Options{Settings: map[string]any{"model": "offline"}}})
	}
	ed := start()
	made := editor.Ask[protocol.SessionResult](ed, protocol.MethodSessionCreate, protocol.SessionCreateParams{Title: "before"})
	if err := unix.Prlimit(ed.PID(), unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: 1, Max: 1}, nil); err != nil {
		t.Fatal(err)
	}
	for _, next := range []string{"one", "two", "three"} {
		_, err := editor.Try[protocol.SessionResult](ed, protocol.MethodSessionRename, protocol.SessionRenameParams{SessionID: made.SessionID, Title: next})
		if err == nil {
			t.Fatalf("the title %q is acknowledged, although nothing can be written", next)
		}
	}
	<-ed.Done() // a ledger that can not go on ends its process, and does not pretend
	ed = start()
	got := editor.Ask[protocol.SessionOpenResult](ed, protocol.MethodSessionOpen, protocol.SessionOpenParams{SessionID: made.SessionID})
	if got.Session.Title != "before" {
		t.Errorf("the title is %q, which was refused", got.Session.Title)
	}
	ed.Leave(t)
	home.Check(t)
}
