package chat

import (
	"context"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
)

// driver runs the screen as Bubble Tea does, without a terminal: commands run
// beside, their messages come back one at a time, and the test looks at the view.
type driver struct {
	t    *testing.T
	m    *screen
	msgs chan tea.Msg
	ctx  context.Context
	wg   sync.WaitGroup
	quit bool
	// clipboard is what was copied last.
	clipboard string
}

// patience is how long a test waits for what must come. It asserts nothing.
const patience = 20 * time.Second

// newDriver connects a screen of 100 by 30 to a server.
func newDriver(t *testing.T, o Options, dial dialer) *driver {
	t.Helper()
	l, err := dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	d := &driver{t: t, ctx: ctx, msgs: make(chan tea.Msg)}
	d.m = newScreen(ctx, o, dial, l)
	out, err := o.begin()(ctx, l)
	if err != nil {
		t.Fatal(err)
	}
	d.m.apply(out)
	t.Cleanup(func() {
		cancel()
		_ = d.m.link.end()
		d.wg.Wait()
	})
	d.send(tea.WindowSizeMsg{Width: 100, Height: 30})
	d.run(d.m.Init())
	return d
}

// run carries a command out as the program would.
func (d *driver) run(cmd tea.Cmd) {
	if cmd == nil {
		return
	}
	d.wg.Go(func() {
		msg := cmd()
		if msg == nil {
			return
		}
		select {
		case d.msgs <- msg:
		case <-d.ctx.Done():
		}
	})
}

// send hands a message to the screen.
func (d *driver) send(msg tea.Msg) {
	switch msg := msg.(type) {
	case tea.BatchMsg:
		for _, c := range msg {
			d.run(c)
		}
		return
	case tea.QuitMsg:
		d.quit = true
		return
	}
	if v := reflect.ValueOf(msg); v.Kind() == reflect.String && v.Type().Name() == "setClipboardMsg" {
		d.clipboard = v.String()
		return
	}
	_, cmd := d.m.Update(msg)
	d.run(cmd)
}

// view is what the terminal would show, without colours.
func (d *driver) view() string { return ansi.Strip(d.m.View().Content) }

// until handles messages until ok.
func (d *driver) until(what string, ok func() bool) {
	d.t.Helper()
	deadline := time.After(patience)
	for !ok() {
		select {
		case msg := <-d.msgs:
			d.send(msg)
		case <-deadline:
			d.t.Fatalf("%s never came; the screen:\n%s", what, d.view())
		}
	}
}

// see waits until the view holds all texts, and no request is under way.
func (d *driver) see(texts ...string) {
	d.t.Helper()
	d.until(strings.Join(texts, " and "), func() bool {
		v := d.view()
		unwrapped := strings.Join(strings.Fields(v), " ")
		for _, text := range texts {
			if !strings.Contains(v, text) && !strings.Contains(unwrapped, text) {
				return false
			}
		}
		return d.m.running == nil && !d.m.refreshing
	})
}

// answered waits until nothing is being written.
func (d *driver) answered() {
	d.t.Helper()
	d.until("the end of the answer", func() bool { return len(d.m.open()) == 0 && d.m.running == nil && !d.m.refreshing })
}

// gone waits until the view does not hold a text.
func (d *driver) gone(text string) {
	d.t.Helper()
	d.until("the end of "+text, func() bool { return !strings.Contains(d.view(), text) && d.m.running == nil && !d.m.refreshing })
}

// keys presses keys by their names; see keyPress.
func (d *driver) keys(names ...string) {
	for _, n := range names {
		d.send(keyPress(n))
	}
}

// enter types a text and presses Enter.
func (d *driver) enter(text string) {
	d.typed(text)
	d.keys("enter")
}

// typed types a text.
func (d *driver) typed(text string) {
	for _, r := range text {
		if r == '\n' {
			d.keys("alt+enter")
			continue
		}
		d.send(tea.KeyPressMsg{Code: r, Text: string(r)})
	}
}

func keyPress(name string) tea.KeyPressMsg {
	k := tea.KeyPressMsg{}
	for {
		mod, rest, ok := strings.Cut(name, "+")
		if !ok {
			break
		}
		k.Mod |= map[string]tea.KeyMod{"ctrl": tea.ModCtrl, "alt": tea.ModAlt, "shift": tea.ModShift}[mod]
		name = rest
	}
	named := map[string]rune{"enter": tea.KeyEnter, "tab": tea.KeyTab, "esc": tea.KeyEscape, "up": tea.KeyUp, "down": tea.KeyDown, "pgup": tea.KeyPgUp, "pgdown": tea.KeyPgDown,
		"home": tea.KeyHome, "end": tea.KeyEnd, "f1": tea.KeyF1, "backspace": tea.KeyBackspace}
	if c, ok := named[name]; ok {
		k.Code = c
		return k
	}
	k.Code = []rune(name)[0]
	if k.Mod == 0 {
		k.Text = name
	}
	return k
}
