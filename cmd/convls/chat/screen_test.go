package chat

import (
	"context"
	"errors"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"convls/protocol"
	"convls/test/fakemodel"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
)

func TestScreenChats(t *testing.T) {
	r := newRig(t)
	d := newDriver(t, Options{Workspace: "/work/x"}, r.dial(nil))
	d.see("convls", "Write a message", "new conversation", "offline")
	d.enter("repeat: # Title\n\n- **one**\n- two")
	d.see("#1 you", "#2 offline", "Title", "• one", "• two", "unnamed branch", "% full")
	if got := d.m.session.Workspace; got != "/work/x" {
		t.Errorf("workspace %q", got)
	}
	if d.m.input.Value() != "" {
		t.Errorf("the input holds %q after sending", d.m.input.Value())
	}
}

func TestScreenStreamsAndCancels(t *testing.T) {
	r := newRig(t)
	fake := fakemodel.New(t)
	fake.Script(fakemodel.Say("first words ", "never").Hold(fake.Gate(), 1), fakemodel.Say("the answer to the second"))
	d := newDriver(t, Options{Model: "fake/m"}, r.dial(provider(fake)))
	d.enter("go")
	d.see("first words", "writing", "answering, Ctrl-C stops")
	d.enter("second")
	d.see("waiting · second", "1 queued")
	d.keys("ctrl+c")
	d.see("■ stopped here", "the answer to the second")
	d.gone("queued")
	d.gone("answering")
	if d.quit {
		t.Error("Ctrl-C left the program though an answer was written")
	}
	if strings.Contains(d.view(), "never") {
		t.Error("the answer went on after it was stopped")
	}
}

// TestScreenCancelsWhatWaits takes messages out of the queue and leaves the answer
// that is being written alone.
func TestScreenCancelsWhatWaits(t *testing.T) {
	r := newRig(t)
	fake := fakemodel.New(t)
	gate := fake.Gate()
	fake.Script(fakemodel.Say("first words ", "and the end").Hold(gate, 1), fakemodel.Say("the answer to the third"))
	d := newDriver(t, Options{Model: "fake/m"}, r.dial(provider(fake)))
	d.enter("go")
	d.see("first words", "writing")
	for _, text := range []string{"second", "third", "fourth"} {
		d.enter(text)
		d.see("waiting · "+text, "/cancel waiting takes it out")
	}
	d.see("3 queued")
	d.enter("/cancel waiting")
	d.see("taken out of the queue: fourth", "2 queued")
	d.enter("/cancel 3")
	d.see("there is no waiting message 3: 2 wait")
	d.enter("/cancel 1")
	d.see("taken out of the queue: second", "1 queued", "writing")
	gate.Release()
	d.see("first words and the end", "the answer to the third")
	d.gone("queued")
	for _, row := range d.m.rows {
		if text := partsText(row.Content); text == "second" || text == "fourth" {
			t.Errorf("%q was sent though it was taken out", text)
		}
	}
}

// TestScreenCopyOfNothing: the clipboard stays as it is, and the person hears why.
func TestScreenCopyOfNothing(t *testing.T) {
	r := newRig(t)
	fake := fakemodel.New(t)
	gate := fake.Gate()
	fake.Script(fakemodel.Say("words", " more").Hold(gate, 1), fakemodel.Fail(401, "no"))
	d := newDriver(t, Options{Model: "fake/m"}, r.dial(provider(fake)))
	d.enter("go")
	d.see("words", "writing")
	d.enter("/copy")
	d.see("✗ #2 is still being written")
	gate.Release()
	d.see("words more")
	d.enter("again")
	d.see("#4")
	d.answered()
	d.enter("/copy")
	d.see("✗ #4 has no text to copy")
	if d.clipboard != "" {
		t.Errorf("the clipboard holds %q", d.clipboard)
	}
	d.enter("/copy #2")
	d.see("#2 is in the clipboard")
	d.until("the clipboard", func() bool { return d.clipboard == "words more" })
}

// TestScreenWarning shows what is wrong with the settings when the chat begins.
func TestScreenWarning(t *testing.T) {
	r := newRig(t)
	d := newDriver(t, Options{Warning: "modek is no setting: did you mean model?"}, r.dial(nil))
	d.see("modek is no setting: did you mean model?")
	d.enter("repeat: hi")
	d.see("#2 offline")
	d.gone("modek")
}

func TestScreenCtrlCTwiceLeaves(t *testing.T) {
	r := newRig(t)
	d := newDriver(t, Options{}, r.dial(nil))
	d.typed("a draft")
	d.keys("ctrl+c")
	d.see("press Ctrl-C again")
	if d.m.input.Value() != "" {
		t.Errorf("the input holds %q", d.m.input.Value())
	}
	d.keys("up")
	if d.m.input.Value() != "a draft" {
		t.Errorf("Up brings %q back", d.m.input.Value())
	}
	d.keys("ctrl+c") // another key came between
	if d.quit {
		t.Fatal("left after one Ctrl-C")
	}
	d.keys("ctrl+c")
	d.until("the end", func() bool { return d.quit })
}

func TestScreenCtrlDLeavesOnEmptyInput(t *testing.T) {
	r := newRig(t)
	d := newDriver(t, Options{}, r.dial(nil))
	d.typed("x")
	d.keys("home", "ctrl+d")
	if d.quit || d.m.input.Value() != "" {
		t.Errorf("Ctrl-D in a text: quit %v, text %q", d.quit, d.m.input.Value())
	}
	d.keys("ctrl+d")
	d.until("the end", func() bool { return d.quit })
}

func TestScreenBranches(t *testing.T) {
	r := newRig(t)
	d := newDriver(t, Options{}, r.dial(nil))
	d.enter("repeat: one")
	d.see("#2 offline")
	d.answered()
	d.enter("/retry")
	d.see("‹ 2/2 ›")
	d.keys("alt+p")
	d.see("‹ 1/2 ›", "version 1 of 2 of #2")
	d.keys("alt+p")
	d.see("✗ this is the first of 2 versions")
	d.keys("alt+n")
	d.see("‹ 2/2 ›")
	d.enter("/name main")
	d.see("branch main (2 branches)")
	d.enter("/fork #2 side")
	d.see("branch side")
	d.enter("repeat: two")
	d.see("#4 offline")
	d.enter("/branches")
	d.see("Branches", "side", "main", "Enter chooses")
	d.keys("esc")
	d.gone("Enter chooses")
	d.enter("/checkout main")
	d.see("on the branch main")
	if strings.Contains(d.view(), "#4") {
		t.Errorf("the other branch is still shown:\n%s", d.view())
	}
}

// TestScreenPicks: choosing in a list does what its command does.
func TestScreenPicks(t *testing.T) {
	r := newRig(t)
	d := newDriver(t, Options{Title: "Alpha"}, r.dial(nil))
	d.enter("repeat: in alpha")
	d.see("Alpha", "#2")
	d.enter("/new Beta")
	d.see("Beta", "a new conversation")
	d.enter("repeat: in beta")
	d.see("in beta", "#2")
	d.enter("/sessions")
	d.see("Conversations", "Alpha", "Beta ●")
	d.keys("down", "enter")
	d.see("in alpha", " Alpha")
	d.enter("/search beta")
	d.see("Messages with beta", "Enter chooses")
	d.keys("enter")
	d.see("in beta", " Beta")
	d.enter("/model")
	d.see("Models", "offline ●")
	d.keys("enter")
	d.see("from now on offline answers")
}

func TestScreenEdits(t *testing.T) {
	r := newRig(t)
	d := newDriver(t, Options{}, r.dial(nil))
	d.enter("repeat: before")
	d.see("#2 offline")
	d.enter("/edit")
	d.see("edit of #1")
	if d.m.input.Value() != "repeat: before" {
		t.Errorf("the input holds %q", d.m.input.Value())
	}
	d.keys("esc")
	d.see("the edit is given up")
	if d.m.input.Value() != "" || d.m.editing != nil {
		t.Error("the edit goes on")
	}
	d.enter("/edit 1")
	d.see("edit of #1")
	d.keys("ctrl+u")
	d.enter("repeat: after")
	d.see("‹ 2/2 ›", "after")
	d.gone("edit of")
	d.answered()
	d.enter("/edit 2")
	d.see("edit of the answer #2")
	d.keys("ctrl+u")
	d.enter("written by me")
	d.see("written by me", "edited by you", "stands beside the old one")
	d.enter("/rewind 1")
	d.see("back to before #1")
	if d.m.input.Value() != "repeat: after" || strings.Contains(d.view(), "#1 you") {
		t.Errorf("after the rewind the input holds %q:\n%s", d.m.input.Value(), d.view())
	}
}

func TestScreenDeleteAsks(t *testing.T) {
	r := newRig(t)
	d := newDriver(t, Options{}, r.dial(nil))
	d.enter("repeat: one")
	d.see("#2 offline")
	d.answered()
	d.enter("/retry")
	d.see("‹ 2/2 ›")
	d.enter("/delete")
	d.see("Delete this unnamed branch for good: 1 node", "y deletes it")
	d.keys("n")
	d.see("nothing was changed", "‹ 2/2 ›")
	d.enter("/delete")
	d.see("y deletes it")
	d.keys("y")
	d.see("deleted 1 node")
	d.gone("‹")
	// A branch that has no message by itself is only a name, and that is asked for too.
	d.enter("repeat: two")
	d.see("#3 offline")
	d.answered()
	d.enter("/fork #2 idea")
	d.see("goes to the branch idea")
	d.enter("/delete")
	d.see("Take the name idea away? No message goes, only the name.")
	d.keys("n")
	d.see("nothing was changed")
	d.enter("/delete idea")
	d.see("Take the name idea away?")
	d.keys("y")
	d.see("the name idea is gone")
	d.enter("/checkout idea")
	d.see("there is no branch")
}

func TestScreenErrorsKeepTheText(t *testing.T) {
	r := newRig(t)
	d := newDriver(t, Options{Model: "nobody/nothing"}, r.dial(nil))
	d.enter("an important message")
	d.see("✗ ", "/model lists the models")
	if d.m.input.Value() != "an important message" {
		t.Errorf("the input holds %q", d.m.input.Value())
	}
	d.enter("") // Enter again; the model is still wrong
	d.see("an important message", "✗")
	d.keys("ctrl+u")
	d.enter("/model offline")
	d.see("the first message goes to offline")
	d.enter("fail quota")
	d.see("#2 offline", "✗ ", "(")
	d.enter("/bogus")
	d.see("there is no command /bogus")
}

// TestScreenServerDies: what is being typed stays, and /restart goes on.
func TestScreenServerDies(t *testing.T) {
	r := newRig(t)
	d := newDriver(t, Options{}, r.dial(nil))
	d.enter("repeat: kept")
	d.see("#2 offline")
	d.typed("a draft")
	r.stop()
	d.see("the server is gone", "/restart", "no server")
	d.keys("enter")
	d.see("your text stays here")
	if d.m.input.Value() != "a draft" {
		t.Errorf("the input holds %q", d.m.input.Value())
	}
	d.keys("ctrl+c")
	working := d.m.dial
	d.m.dial = func(context.Context) (*link, error) { return nil, errors.New("no server today") }
	for range 2 {
		d.enter("/restart")
		d.see("no server today", "no server")
		d.keys("esc")
	}
	r.start()
	d.m.dial = working
	d.enter("/restart")
	d.see("the server is running again", "kept")
	d.gone("no server")
	if d.m.input.Value() != "a draft" {
		t.Errorf("the draft is lost: %q", d.m.input.Value())
	}
	d.keys("enter")
	d.see("#4 offline")
}

// TestScreenDraftSurvivesRestart: a new version of a message that was being written
// when the server died is one still when it is back, however /restart was entered.
func TestScreenDraftSurvivesRestart(t *testing.T) {
	for name, restart := range map[string]func(*driver){
		"after Ctrl-C":     func(d *driver) { d.keys("ctrl+c"); d.see("your text comes back after /restart"); d.enter("/restart") },
		"before the draft": func(d *driver) { d.keys("home"); d.enter("/restart ") },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			d := newDriver(t, Options{}, r.dial(nil))
			d.enter("repeat: kept")
			d.see("#2 offline")
			d.enter("/edit")
			d.see("repeat: kept")
			d.until("the draft", func() bool { return d.m.editing != nil })
			d.typed(" anew")
			r.stop()
			d.see("the server is gone")
			r.start()
			restart(d)
			d.see("the server is running again")
			if d.m.input.Value() != "repeat: kept anew" || d.m.editing == nil {
				t.Fatalf("the input holds %q, a new version: %v", d.m.input.Value(), d.m.editing != nil)
			}
			d.keys("enter")
			d.see("#2 offline", "kept anew", "‹ 2/2 ›")
		})
	}
}

// TestScreenFollowsAnotherClient: what happens elsewhere is shown here.
func TestScreenFollowsAnotherClient(t *testing.T) {
	r := newRig(t)
	d := newDriver(t, Options{}, r.dial(nil))
	d.enter("repeat: mine")
	d.see("#2 offline")
	other := r.other()
	id := d.m.session.SessionID
	sent, err := call[protocol.TurnResult](t.Context(), other, protocol.MethodTurnSend, protocol.TurnSendParams{Mutation: mutation(), SessionID: id,
		Content: protocol.SendContent{{Type: protocol.PartText, Text: "repeat: theirs"}}})
	if err != nil {
		t.Fatal(err)
	}
	d.see("#3 you", "#4 offline", "theirs")
	user := d.m.rows[1].ID
	if _, err := call[protocol.HeadResult](t.Context(), other, protocol.MethodBranchCheckout, protocol.CheckoutParams{Mutation: mutation(), SessionID: id, NodeID: user}); err != nil {
		t.Fatal(err)
	}
	d.see("another window moved this conversation (checkout)")
	d.gone("theirs")
	if _, err := call[protocol.SessionResult](t.Context(), other, protocol.MethodSessionRename, protocol.SessionRenameParams{Mutation: mutation(), SessionID: id, Title: "Theirs"}); err != nil {
		t.Fatal(err)
	}
	d.see(" Theirs  ")
	if _, err := call[protocol.SessionDeleteResult](t.Context(), other, protocol.MethodSessionDelete, protocol.SessionDeleteParams{Mutation: mutation(), SessionID: id, Confirm: true}); err != nil {
		t.Fatal(err)
	}
	d.see("this conversation was deleted", "new conversation")
	d.enter("repeat: a new one")
	d.see("#2 offline", "a new one")
	_ = sent
}

// TestScreenStaleHead: a message is not sent to a place that the person does not
// see.
func TestScreenStaleHead(t *testing.T) {
	r := newRig(t)
	d := newDriver(t, Options{}, r.dial(nil))
	d.enter("repeat: one")
	d.see("#2 offline")
	d.answered()
	old := d.m.session.Head
	d.enter("/retry")
	d.see("‹ 2/2 ›")
	d.answered()
	d.m.session.Head = old // as if the news had not come yet
	d.enter("repeat: two")
	d.see("the conversation went on elsewhere")
	if d.m.input.Value() != "repeat: two" || strings.Contains(d.view(), "#3") {
		t.Errorf("the input holds %q:\n%s", d.m.input.Value(), d.view())
	}
	d.keys("enter")
	d.see("#4 offline")
}

func TestScreenCompletes(t *testing.T) {
	r := newRig(t)
	d := newDriver(t, Options{}, r.dial(nil))
	d.typed("/re")
	d.see("/retry [#n] [model]", "/restart")
	d.keys("tab", "tab")
	if d.m.input.Value() != "/re" || !d.m.popup.chosen {
		t.Errorf("two Tabs: input %q, chosen %v", d.m.input.Value(), d.m.popup.chosen)
	}
	d.keys("down", "enter")
	if d.m.input.Value() != "/rewind " {
		t.Errorf("the second or third candidate: %q", d.m.input.Value())
	}
	d.keys("ctrl+u")
	d.typed("/che")
	d.keys("tab")
	if d.m.input.Value() != "/checkout " {
		t.Errorf("a single candidate: %q", d.m.input.Value())
	}
	d.keys("ctrl+u")
	d.typed("/h")
	d.keys("esc", "enter")
	d.see("Help", "Esc closes", "/retry")
	d.keys("pgdown", "esc")
	d.gone("Esc closes")
}

func TestScreenHistory(t *testing.T) {
	r := newRig(t)
	file := filepath.Join(t.TempDir(), "history")
	d := newDriver(t, Options{HistoryFile: file}, r.dial(nil))
	d.enter("repeat: one\nmore")
	d.see("#2 offline")
	d.typed("draft")
	d.keys("up")
	if d.m.input.Value() != "repeat: one\nmore" {
		t.Errorf("Up: %q", d.m.input.Value())
	}
	d.keys("down")
	if d.m.input.Value() != "draft" {
		t.Errorf("Down: %q", d.m.input.Value())
	}
	e := newDriver(t, Options{HistoryFile: file}, r.dial(nil))
	e.keys("up")
	if e.m.input.Value() != "repeat: one\nmore" {
		t.Errorf("in the next run: %q", e.m.input.Value())
	}
	e.keys("up") // within the text, to its first line
	if e.m.input.Value() != "repeat: one\nmore" || e.m.input.Line() != 0 {
		t.Errorf("Up in two lines: %q, line %d", e.m.input.Value(), e.m.input.Line())
	}
}

// TestScreenReset: after a reset a snapshot is taken, whatever was known before.
func TestScreenReset(t *testing.T) {
	r := newRig(t)
	d := newDriver(t, Options{}, r.dial(nil))
	d.enter("repeat: one")
	d.see("#2 offline")
	d.answered()
	d.m.rows = d.m.rows[:2]
	d.m.link.notices <- protocol.ResetNotification{SessionID: d.m.session.SessionID}
	d.see("#2 offline")
}

func TestScreenContext(t *testing.T) {
	r := newRig(t)
	d := newDriver(t, Options{System: "Be brief."}, r.dial(nil))
	d.enter("/context")
	d.see("there is no conversation yet")
	d.enter("repeat: one")
	d.see("#2 offline", "system  Be brief.")
	d.enter("/system Be very brief.")
	d.see("system  Be very brief.")
	d.enter("/system Be brief.")
	d.see("system  Be brief.")
	d.enter("/context")
	d.see("What the model reads", "tokens  why", "spine", "Be brief.", "repeat: one")
	d.keys("q")
	d.gone("What the model reads")
}

func TestScreenCopies(t *testing.T) {
	r := newRig(t)
	d := newDriver(t, Options{}, r.dial(nil))
	d.enter("repeat: *copy me*")
	d.see("#2 offline")
	d.answered()
	d.enter("/copy")
	d.until("the copy", func() bool { return d.clipboard != "" })
	if d.clipboard != "*copy me*" {
		t.Errorf("copied %q", d.clipboard)
	}
}

func TestScreenThoughts(t *testing.T) {
	r := newRig(t)
	fake := fakemodel.New(t)
	fake.Script(fakemodel.Say("so").Think("hmm, let me ", "see"))
	d := newDriver(t, Options{Model: "fake/m"}, r.dial(provider(fake)))
	d.enter("think")
	d.see("thought: 4 words (Ctrl-R shows it)")
	d.keys("ctrl+r")
	d.see("┆ hmm, let me see")
}

// TestScreenIsAlwaysOfItsSize: whatever is shown, at any size, there are as many
// lines as the terminal has, none wider than it is, and the cursor is inside.
func TestScreenIsAlwaysOfItsSize(t *testing.T) {
	r := newRig(t)
	d := newDriver(t, Options{Title: "漢字 " + strings.Repeat("long title ", 20)}, r.dial(nil))
	d.enter("repeat: " + strings.Repeat("漢字 👩‍👩‍👧 word ", 60) + "\n\n| a | b |\n|---|---|\n| " + strings.Repeat("x", 150) + " | y |\n\n    code " + strings.Repeat("y", 150))
	d.see("#2 offline")
	check := func(what string) {
		t.Helper()
		for _, size := range [][2]int{{100, 30}, {80, 24}, {40, 12}, {20, 8}, {11, 5}, {5, 3}, {1, 1}, {200, 60}} {
			d.send(tea.WindowSizeMsg{Width: size[0], Height: size[1]})
			v := d.m.View()
			lines := strings.Split(v.Content, "\n")
			if len(lines) > size[1] {
				t.Errorf("%s at %v: %d lines", what, size, len(lines))
			}
			for _, l := range lines {
				if w := ansi.StringWidth(l); w > size[0] {
					t.Errorf("%s at %v: a line of %d cells: %q", what, size, w, ansi.Strip(l))
				}
			}
			if v.Cursor == nil && !d.m.overlay.open() && size[1] >= 12 {
				t.Errorf("%s at %v: the cursor is not to be seen", what, size)
			}
			if c := v.Cursor; c != nil && (c.Y >= size[1] || c.Y < 0 || c.X < 0) {
				t.Errorf("%s at %v: the cursor is at %v", what, size, c.Position)
			}
		}
		d.send(tea.WindowSizeMsg{Width: 100, Height: 30})
	}
	check("the conversation")
	d.typed(strings.Repeat("typed 漢字 ", 40) + "\n\n\n\n\n\n\n\n\n\n\nlines")
	check("a long input")
	d.keys("ctrl+c")
	d.typed("/")
	check("the popup")
	d.keys("ctrl+c")
	d.m.fail(protocol.Errorf(protocol.CodeBusy, "%s", strings.Repeat("a long error ", 60)))
	d.m.layout()
	check("a long error")
	d.enter("/help")
	d.see("Esc closes")
	check("the help")
	d.keys("esc")
	d.enter("/sessions")
	d.see("Conversations")
	check("a list")
}

// TestScreenShowsNoEscapeCodes: what a model sends can not control the terminal.
func TestScreenShowsNoEscapeCodes(t *testing.T) {
	r := newRig(t)
	fake := fakemodel.New(t)
	fake.Script(fakemodel.Say("\x1b]0;owned\x07", "\x1b[2J", "text \u009b31m"))
	d := newDriver(t, Options{Model: "fake/m", Title: "\x1b[2Jtitle\x07"}, r.dial(provider(fake)))
	d.enter("hi \x1b[2J")
	d.see("#2", "text")
	content := d.m.View().Content
	for _, bad := range []string{"\x1b]0;", "\x1b[2J", "\x07", "\u009b"} {
		if strings.Contains(content, bad) {
			t.Errorf("the view holds %q", bad)
		}
	}
	if strings.Contains(d.m.View().WindowTitle, "\x1b") {
		t.Error("the window title holds an escape code")
	}
}

func TestScreenScrolls(t *testing.T) {
	r := newRig(t)
	d := newDriver(t, Options{}, r.dial(nil))
	for i := range 30 {
		d.enter("repeat: line")
		d.until("the answer", func() bool {
			tip := d.m.rows[max(len(d.m.rows)-1, 0):]
			return len(tip) == 1 && tip[0].Depth == int64(2*i+2) && tip[0].Status.Final() && d.m.running == nil && !d.m.refreshing
		})
	}
	e := newDriver(t, Options{Continue: true}, r.dial(nil))
	e.see("#60 offline")
	if e.m.before == "" {
		t.Fatal("everything was loaded at once")
	}
	e.send(tea.MouseWheelMsg{Button: tea.MouseWheelUp})
	e.see("3 lines below")
	e.keys("ctrl+end")
	e.gone("below")
	for range 20 {
		e.keys("pgup")
	}
	e.until("what comes before", func() bool { return e.m.before == "" })
	e.keys("ctrl+home")
	e.see("#1 you")
	e.enter("/retry 2") // it is far back
	e.see("‹ 2/2 ›")
	e.enter("/checkout #40")
	e.see("✗ there is no message #40 on this branch")
}

func TestScreenAttachmentsAndExport(t *testing.T) {
	r := newRig(t)
	d := newDriver(t, Options{}, r.dial(nil))
	file := filepath.Join(t.TempDir(), "out.md")
	d.enter("repeat: one")
	d.see("#2 offline")
	d.enter("/export " + file)
	d.see("wrote ")
	d.enter("/attach-file " + file)
	d.see("+ out.md")
	d.enter("what is this?")
	d.see("+ " + filepath.Dir(file))
	d.gone("+ out.md ─")
	d.enter("/attach-file " + filepath.Dir(file))
	d.see("is not a file")
}

// TestProgram runs the whole program on pipes instead of a terminal.
func TestProgram(t *testing.T) {
	r := newRig(t)
	in, keyboard := io.Pipe()
	out := newWatched("turn 1")
	done := make(chan error, 1)
	go func() {
		done <- runScreen(t.Context(), Options{Stdin: in, Stdout: out, Stderr: io.Discard, NoColor: true, Message: "hello"}, r.dial(nil), tea.WithWindowSize(100, 30))
	}()
	select {
	case <-out.seen:
	case <-time.After(patience):
		t.Fatalf("the answer never came: %q", out.String())
	}
	if _, err := keyboard.Write([]byte{4}); err != nil { // Ctrl-D
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	_ = keyboard.Close()
	if !strings.Contains(out.String(), "To go on: convls chat --session ses_") {
		t.Error("the program does not say how to come back")
	}
}
