package chat

import (
	"testing"

	"convls/protocol"

	"github.com/google/go-cmp/cmp"
)

func row(id, predecessor string, kind protocol.Kind, depth int64, status protocol.Status, text string) protocol.Row {
	return protocol.Row{Node: protocol.Node{ID: id, Predecessor: predecessor, Kind: kind, Depth: depth, Status: status, Content: []protocol.Part{{Type: protocol.PartText, Text: text}}}}
}

// shown returns a conversation of a message and its answer; cursors are e1, e2, …
func shown() *conversation {
	c := &conversation{clientID: "me"}
	c.load(&protocol.SessionOpenResult{
		Session: protocol.Session{SessionID: "s", Head: "a1"}, Cursor: "e1",
		Transcript: protocol.Transcript{Rows: []protocol.Row{
			row("root", "", protocol.KindRoot, 0, protocol.StatusSealed, ""),
			row("u1", "root", protocol.KindUser, 1, protocol.StatusSealed, "hi"),
			row("a1", "u1", protocol.KindAssistant, 2, protocol.StatusSealed, "hello"),
		}},
	}, true)
	return c
}

func (c *conversation) texts() []string {
	var out []string
	for _, r := range c.rows {
		out = append(out, r.ID+":"+c.text(r))
	}
	return out
}

func appended(cursor string, r protocol.Row) protocol.Event {
	return protocol.Event{SessionID: "s", Cursor: cursor, Type: protocol.EventNodeAppended, Node: &r.Node}
}

func sealed(cursor string, r protocol.Row) protocol.Event {
	return protocol.Event{SessionID: "s", Cursor: cursor, Type: protocol.EventNodeSealed, Node: &r.Node}
}

func TestConversationFollowsATurn(t *testing.T) {
	c := shown()
	if fx := c.event(appended("e2", row("u2", "a1", protocol.KindUser, 3, protocol.StatusSealed, "more"))); !fx.refresh {
		t.Error("nobody asks for what only the server knows of a new message")
	}
	c.event(appended("e3", row("a2", "u2", protocol.KindAssistant, 4, protocol.StatusOpen, "")))
	c.delta(protocol.Delta{SessionID: "s", NodeID: "a2", Kind: protocol.DeltaText, Text: "so"})
	fx := c.delta(protocol.Delta{SessionID: "s", NodeID: "a2", Kind: protocol.DeltaText, Offset: 5, Text: "far"})
	if diff := cmp.Diff([]string{"a2"}, fx.catchUp); diff != "" {
		t.Errorf("a gap: (-want +got)\n%s", diff)
	}
	c.caughtUp(&protocol.Node{ID: "a2", Status: protocol.StatusOpen, Content: []protocol.Part{{Type: protocol.PartText, Text: "so is"}}})
	if got := c.texts()[4]; got != "a2:so isfar" {
		t.Errorf("streamed %q", got)
	}
	if len(c.open()) != 1 || c.session.Head != "a2" {
		t.Errorf("%d open, HEAD %s", len(c.open()), c.session.Head)
	}
	c.event(sealed("e4", row("a2", "u2", protocol.KindAssistant, 4, protocol.StatusSealed, "so it is")))
	fx = c.event(protocol.Event{SessionID: "s", Cursor: "e5", Type: protocol.EventTurnFinished, NodeID: "a2", ReplyID: "a2", Budget: &protocol.Budget{Used: 7}})
	want := []ending{{replyID: "a2", nodeID: "a2", status: protocol.StatusSealed}}
	if diff := cmp.Diff(want, fx.ended, cmp.AllowUnexported(ending{})); diff != "" {
		t.Errorf("the end: (-want +got)\n%s", diff)
	}
	if got := c.texts()[4]; got != "a2:so it is" || c.budget.Used != 7 || len(c.streams) != 0 {
		t.Errorf("at the end %q, budget %+v, %d streams", got, c.budget, len(c.streams))
	}
}

// TestConversationLeavesSpawnedTurnsOut: a turn that was spawned at the tip is another
// conversation, and is not mixed into this one.
func TestConversationLeavesSpawnedTurnsOut(t *testing.T) {
	c := shown()
	before := c.texts()
	spawned := row("s1", "a1", protocol.KindUser, 3, protocol.StatusSealed, "look into it")
	spawned.Caller = "a1"
	c.event(appended("e2", spawned))
	c.event(appended("e3", row("r1", "s1", protocol.KindAssistant, 4, protocol.StatusOpen, "")))
	if diff := cmp.Diff(before, c.texts()); diff != "" || c.session.Head != "a1" {
		t.Errorf("HEAD %s, rows: %s", c.session.Head, diff)
	}
}

// TestConversationIgnoresWhatIsOld: events that a snapshot holds already, and text
// of answers that are complete, change nothing.
func TestConversationIgnoresWhatIsOld(t *testing.T) {
	c := shown()
	snap := &protocol.SessionOpenResult{Session: protocol.Session{SessionID: "s", Head: "u1"}, Cursor: "e9",
		Transcript: protocol.Transcript{Rows: []protocol.Row{row("root", "", protocol.KindRoot, 0, protocol.StatusSealed, ""), row("u1", "root", protocol.KindUser, 1, protocol.StatusSealed, "hi")}}}
	c.load(snap, false)
	for _, e := range []protocol.Event{appended("e7", row("x", "u1", protocol.KindAssistant, 2, protocol.StatusOpen, "")), {SessionID: "s", Cursor: "e9", Type: protocol.EventHeadMoved, Head: "a1"}} {
		if fx := c.event(e); fx.refresh {
			t.Errorf("%s asks for a new snapshot", e.Type)
		}
	}
	if diff := cmp.Diff([]string{"root:", "u1:hi"}, c.texts()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	c = shown()
	c.delta(protocol.Delta{SessionID: "s", NodeID: "a1", Offset: 5, Text: " again"})
	c.event(appended("e2", row("a1", "u1", protocol.KindAssistant, 2, protocol.StatusOpen, "")))
	c.event(protocol.Event{SessionID: "other", Cursor: "e1", Type: protocol.EventHeadMoved, Head: "z"})
	if diff := cmp.Diff([]string{"root:", "u1:hi", "a1:hello"}, c.texts()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestConversationRefusesASnapshotFromBefore(t *testing.T) {
	c := shown()
	c.event(appended("e2", row("u2", "a1", protocol.KindUser, 3, protocol.StatusSealed, "more")))
	fx := c.load(&protocol.SessionOpenResult{Session: protocol.Session{SessionID: "s", Head: "a1"}, Cursor: "e1"}, false)
	if !fx.refresh || len(c.rows) != 4 {
		t.Errorf("refresh %v, %d rows: a message vanished", fx.refresh, len(c.rows))
	}
}

func TestConversationTellsWhatOthersDid(t *testing.T) {
	me, other := &protocol.Origin{ClientID: "me"}, &protocol.Origin{ClientID: "you"}
	for _, tc := range []struct {
		event protocol.Event
		says  int
	}{
		{protocol.Event{Type: protocol.EventHeadMoved, Head: "u1", Cause: "checkout", Origin: other}, 1},
		{protocol.Event{Type: protocol.EventHeadMoved, Head: "u1", Cause: "checkout", Origin: me}, 0},
		{protocol.Event{Type: protocol.EventHeadMoved, Head: "u1", Cause: "send", Origin: other}, 0},
		{protocol.Event{Type: protocol.EventModelChanged, Model: "m", Origin: other}, 1},
		{protocol.Event{Type: protocol.EventModelChanged, Model: "m", Origin: me}, 0},
		{protocol.Event{Type: protocol.EventBranchDeleted, Origin: other}, 1},
		{protocol.Event{Type: protocol.EventCompactFinished, Covered: 4}, 1},
		{protocol.Event{Type: "a type of a later version"}, 0},
	} {
		c := shown()
		tc.event.SessionID, tc.event.Cursor = "s", "e2"
		fx := c.event(tc.event)
		if len(fx.say) != tc.says || !fx.refresh {
			t.Errorf("%s (%s): says %v, refresh %v", tc.event.Type, tc.event.Cause, fx.say, fx.refresh)
		}
	}
	c := shown()
	c.event(protocol.Event{SessionID: "s", Cursor: "e2", Type: protocol.EventSessionDeleted})
	if c.session.SessionID != "" || len(c.rows) != 0 || c.clientID != "me" {
		t.Errorf("a deleted session is still there: %+v", c.session)
	}
}

func TestConversationTakesEarlyEvents(t *testing.T) {
	c := &conversation{}
	c.event(appended("e2", row("u1", "root", protocol.KindUser, 1, protocol.StatusSealed, "hi")))
	c.load(&protocol.SessionOpenResult{Session: protocol.Session{SessionID: "s", Head: "root"}, Cursor: "e1",
		Transcript: protocol.Transcript{Rows: []protocol.Row{row("root", "", protocol.KindRoot, 0, protocol.StatusSealed, "")}}}, true)
	if diff := cmp.Diff([]string{"root:", "u1:hi"}, c.texts()); diff != "" {
		t.Errorf("what came before the snapshot was on the screen is lost (-want +got)\n%s", diff)
	}
}

func TestConversationOlderRows(t *testing.T) {
	c := shown()
	c.rows, c.before = c.rows[2:], "cursor"
	n := c.older(&protocol.Transcript{Rows: []protocol.Row{row("u1", "root", protocol.KindUser, 1, protocol.StatusSealed, "hi"), row("a1", "u1", protocol.KindAssistant, 2, protocol.StatusSealed, "hello")}})
	if n != 1 || c.before != "" {
		t.Errorf("%d new rows, before %q", n, c.before)
	}
	if diff := cmp.Diff([]string{"u1:hi", "a1:hello"}, c.texts()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
