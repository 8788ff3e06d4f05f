package scenario

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"convls/client"
	"convls/protocol"
	"convls/test/editor"
)

// TestFraming sends a real server what real editors send, and what they should
// not: lengths are bytes, header names have any case, there are headers that
// nobody knows, a header or a body comes in pieces, two messages in one write
// (fault 93).
func TestFraming(t *testing.T) {
	status := func(id int) string { return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"convls/status"}`, id) }
	answered := func(t *testing.T, w *editor.Wire, ids ...int) {
		t.Helper()
		for _, id := range ids {
			a, ok := w.Next()
			if !ok || string(a.ID) != strconv.Itoa(id) || a.Error != nil {
				t.Fatalf("request %d is answered by %s (%v)", id, a.Body, ok)
			}
		}
	}
	for _, tc := range []struct {
		name   string
		pieces []string
		ids    []int
	}{
		{"a header nobody knows", []string{"X-Odd: 1\r\n" + editor.Frame(status(101))}, []int{101}},
		{"content type", []string{strings.Replace(editor.Frame(status(101)), "\r\n\r\n", "\r\nContent-Type: application/vscode-jsonrpc; charset=utf-8\r\n\r\n", 1)}, []int{101}},
		{"header names in any case", []string{strings.Replace(editor.Frame(status(101)), "Content-Length", "cOnTeNt-lEnGtH", 1)}, []int{101}},
		{"no space after the colon", []string{strings.Replace(editor.Frame(status(101)), ": ", ":", 1)}, []int{101}},
		{"two messages in one write", []string{editor.Frame(status(101)) + editor.Frame(status(102))}, []int{101, 102}},
		{"a header split over writes", []string{"Content-Le", "ngth: ", strconv.Itoa(len(status(101))) + "\r", "\n\r\n", status(101)}, []int{101}},
		{"a body split in a character", splitAt(editor.Frame(`{"jsonrpc":"2.0","id":101,"method":"convls/session/list","params":{"query":"😀"}}`), "😀", 2), []int{101}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := editor.NewHome(t).Wire(t)
			w.Initialize()
			for _, p := range tc.pieces {
				w.Write(p)
			}
			answered(t, w, tc.ids...)
			w.Write(editor.Frame(status(199)))
			answered(t, w, 199)
		})
	}
}

// splitAt splits a text some bytes after the beginning of a part of it.
func splitAt(text, part string, offset int) []string {
	at := strings.Index(text, part) + offset
	return []string{text[:at], text[at:]}
}

// TestLongMessage sends a message of 20 MB with characters of every width, and
// reads it back.
func TestLongMessage(t *testing.T) {
	ed := editor.NewHome(t).Start(t, editor.Options{})
	s := editor.Ask[protocol.SessionResult](ed, protocol.MethodSessionCreate, protocol.SessionCreateParams{})
	text := "repeat: x " + strings.Repeat("aé漢😀", 20_000_000/10)
	// It does not fit in the model's window, which is the turn's failure, not the
	// message's.
	r := editor.Ask[protocol.TurnResult](ed, protocol.MethodTurnSend,
		protocol.TurnSendParams{SessionID: s.SessionID, Content: protocol.SendContent{{Type: protocol.PartText, Text: text}}, Wait: true})
	if r.State != protocol.StatusFailed || r.Node.Error.Code != protocol.CodeContextOverflow {
		t.Errorf("the turn ended as %s, %+v", r.State, r.Node.Error)
	}
	n := editor.Ask[protocol.Node](ed, protocol.MethodNodeGet, protocol.NodeGetParams{SessionID: s.SessionID, NodeID: r.UserID, MaxBytes: 7 << 20})
	if got := n.Content[0].Text; !n.Truncated || !strings.HasPrefix(text, got) || len(got) < 7<<20-4 {
		t.Errorf("of the message %d bytes are sent, cut: %v", len(got), n.Truncated)
	}
	huge := protocol.SendContent{{Type: protocol.PartText, Text: strings.Repeat("x", 50<<20)}}
	editor.Refused(ed, protocol.CodeBodyTooLarge, protocol.MethodTurnSend, protocol.TurnSendParams{SessionID: s.SessionID, Content: huge})
}

// TestBadLength sends lengths that are none: an error where the protocol has room
// for one, and the end of this connection.
func TestBadLength(t *testing.T) {
	for _, header := range []string{"Content-Length: many\r\n\r\n", "Content-Length: -5\r\n\r\n", "Content-Length: 99999999999999999999\r\n\r\n", "\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: x\r\n\r\n", "Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello"} {
		t.Run(header, func(t *testing.T) {
			home := editor.NewHome(t)
			w := home.Wire(t)
			w.Initialize()
			w.Write(header + editor.Frame(`{"jsonrpc":"2.0","id":7,"method":"convls/status"}`))
			w.CloseInput()
			w.Wait()
			home.Check(t)
		})
	}
}

// TestNoBody sends bodies that are no messages: each gets an error, with its id
// where that can be read, and the connection stays.
func TestNoBody(t *testing.T) {
	w := editor.NewHome(t).Wire(t)
	w.Initialize()
	for _, tc := range []struct {
		body, id string
		code     int
	}{
		{`hello`, "null", parseError},
		{`[]`, "null", invalidRequest},
		{`{}`, "null", invalidRequest},
		{`{"jsonrpc":"1.0","id":3,"method":"convls/status"}`, "3", invalidRequest},
		{`{"jsonrpc":"2.0","id":4,"method":5}`, "4", invalidRequest},
		{`{"jsonrpc":"2.0","id":5,"method":"convls/status","params":{"a":1,}}`, "5", parseError},
		{"{\"jsonrpc\":\"2.0\",\"id\":6,\"method\":\"convls/status\",\"params\":{\"a\":\"\xff\"}}", "6", parseError},
		{``, "null", parseError},
	} {
		w.Write(editor.Frame(tc.body))
		a, ok := w.Next()
		if !ok || a.Error == nil || a.Error.Code != tc.code || string(a.ID) != tc.id {
			t.Errorf("%q is answered by %s (%v), not with %d for id %s", tc.body, a.Body, ok, tc.code, tc.id)
		}
	}
	if a := w.Call("convls/status", `{}`); a.Error != nil {
		t.Errorf("after that status is refused: %+v", a.Error)
	}
}

// TestEnds ends servers in the ways that editors do.
func TestEnds(t *testing.T) {
	exit := editor.Frame(`{"jsonrpc":"2.0","method":"exit"}`)
	for _, tc := range []struct {
		name string
		end  func(*editor.Wire)
		code int
	}{
		{"end of input", func(w *editor.Wire) { w.CloseInput() }, 1},
		{"exit without shutdown", func(w *editor.Wire) { w.Write(exit) }, 1},
		{"shutdown and end of input", func(w *editor.Wire) { w.Call("shutdown", "null"); w.CloseInput() }, 0},
		{"shutdown and exit", func(w *editor.Wire) { w.Call("shutdown", "null"); w.Write(exit) }, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			home := editor.NewHome(t)
			w := home.Wire(t)
			w.Initialize()
			tc.end(w)
			if code := w.Wait(); code != tc.code {
				t.Errorf("the server ends with %d, not %d", code, tc.code)
			}
			home.Check(t)
		})
	}
}

// TestEndsInTheMiddle ends servers while one turn streams, one waits for a tool and
// a send waits for both: whatever way it ends but by kill -9, the text that had come
// is kept to the last byte, and nothing is left open (fault 68).
func TestEndsInTheMiddle(t *testing.T) {
	for _, tc := range []struct {
		name string
		end  func(*testing.T, *editor.Editor)
	}{
		{"killed after the reply to shutdown", func(t *testing.T, ed *editor.Editor) {
			if _, err := editor.Try[protocol.Raw](ed, "shutdown", nil); err != nil {
				t.Fatal(err)
			}
			ed.Kill(t)
		}},
		{"shutdown and exit", func(t *testing.T, ed *editor.Editor) { ed.Leave(t) }},
		{"end of input", func(_ *testing.T, ed *editor.Editor) { _ = ed.Close() }},
		{"terminated", func(t *testing.T, ed *editor.Editor) { ed.Terminate(t) }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := newWorld(t)
			w.run("session s", "")
			w.run("send", "slowly [hold]")
			w.run("send", "waits")
			w.run("session other", "")
			w.run("send", "look [holdtool]")
			tc.end(t, w.ed)
			w.resume()
			w.checkAll()
			w.run("use s", "")
			w.run("send wait", "still there?")
			w.ed.Leave(t)
			w.home.Check(t)
		})
	}
}

// TestCancelRequest cancels the request that waits for a reply: that cancels the
// turn, which keeps its text, and nothing else.
func TestCancelRequest(t *testing.T) {
	w := newWorld(t)
	w.run("session s", "")
	w.run("send", "first [hold]")
	ctx, cancel := context.WithCancel(t.Context())
	failed := make(chan error, 1)
	p := protocol.TurnRetryParams{SessionID: w.now.ID, NodeID: w.id("a1"), Wait: true}
	go func() { failed <- w.ed.Call(ctx, protocol.MethodTurnRetry, p, nil) }()
	var reply string
	w.ed.Await("the retry's text", func(s *editor.Seen) bool {
		for id, parts := range s.Texts {
			if id != w.id("a1") && len(parts) > 0 {
				reply = id
			}
		}
		return reply != ""
	})
	cancel()
	if err := <-failed; !errors.Is(err, context.Canceled) {
		t.Errorf("the cancelled request returns %v", err)
	}
	if end := w.ed.AwaitEnd(w.now.ID, reply); end.Type != protocol.EventTurnCancelled {
		t.Errorf("the turn ends with %s", end.Type)
	}
	n := editor.Ask[protocol.Node](w.ed, protocol.MethodNodeGet, protocol.NodeGetParams{SessionID: w.now.ID, NodeID: reply})
	if n.Status != protocol.StatusCancelled || textOf(&n) != "I think … " {
		t.Errorf("the reply is %s with %q", n.Status, textOf(&n))
	}
	first := editor.Ask[protocol.Node](w.ed, protocol.MethodNodeGet, protocol.NodeGetParams{SessionID: w.now.ID, NodeID: w.id("a1")})
	if first.Status != protocol.StatusOpen {
		t.Errorf("the other reply is %s", first.Status)
	}
	w.model.release()
	if end := w.ed.AwaitEnd(w.now.ID, w.id("a1")); end.Type != protocol.EventTurnFinished {
		t.Errorf("the other turn ends with %s", end.Type)
	}
}

// TestLock starts a second server on a store: it is told in its first reply who
// has it (faults 71, 72).
func TestLock(t *testing.T) {
	home := editor.NewHome(t)
	first := home.Start(t, editor.Options{})
	pid := editor.Ask[protocol.StatusResult](first, protocol.MethodStatus, struct{}{}).PID
	for range 2 {
		second, err := home.TryStart(t, editor.Options{})
		refusal, ok := errors.AsType[*protocol.Error](err)
		if !ok || refusal.Code != protocol.CodeStoreLocked {
			t.Fatalf("a second server on the store is answered %v", err)
		}
		if !strings.Contains(refusal.Data.Holder, strconv.Itoa(pid)) || !strings.Contains(refusal.Message, home.Data) || !refusal.Data.Retryable {
			t.Errorf("the refusal says %q, holder %q: it must name process %d and the folder", refusal.Message, refusal.Data.Holder, pid)
		}
		second.Kill(t)
	}
	editor.Ask[protocol.SessionResult](first, protocol.MethodSessionCreate, protocol.SessionCreateParams{})
	first.Kill(t)
	third := home.Start(t, editor.Options{}) // the lock goes with its holder
	if list := editor.Ask[protocol.SessionListResult](third, protocol.MethodSessionList, protocol.SessionListParams{}); len(list.Sessions) != 1 {
		t.Errorf("%d sessions are there, not one", len(list.Sessions))
	}
}

// TestFolderThatCanNotBe starts a server where no store can be: the first reply
// says so.
func TestFolderThatCanNotBe(t *testing.T) {
	home := editor.NewHome(t)
	if err := os.WriteFile(home.Data, []byte("a file"), 0o600); err != nil {
		t.Fatal(err)
	}
	ed, err := home.TryStart(t, editor.Options{Client: client.Options{}})
	if protocol.CodeOf(err) != protocol.CodeStoreUnavailable {
		t.Fatalf("a server whose folder is a file is answered %v", err)
	}
	if !strings.Contains(err.Error(), home.Data) {
		t.Errorf("the refusal does not name the folder: %v", err)
	}
	ed.Kill(t)
}
