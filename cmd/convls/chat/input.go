package chat

import (
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"
)

// popup is what the input could be completed to.
type popup struct {
	candidates []candidate
	at         int
	// chosen says that the person moved to one: Enter then takes it.
	chosen bool
	// closed keeps it away until the input changes.
	closed bool
}

// maxPopup is how many candidates are in view.
const maxPopup = 8

// key acts on a key.
func (m *screen) key(k tea.KeyPressMsg) tea.Cmd {
	name := k.String()
	if name == "ctrl+c" {
		return m.interrupt()
	}
	m.leaving = false
	if m.ask != nil {
		return m.answerQuestion(name)
	}
	if m.overlay.open() {
		return m.overlayKey(k)
	}
	switch name {
	case "enter":
		return m.submit()
	case "tab", "shift+tab":
		m.tab(name == "tab")
	case "up", "down":
		return m.vertical(k, name)
	case "esc":
		m.escape()
	case "pgup", "pgdown", "ctrl+up", "ctrl+down", "ctrl+home", "ctrl+end":
		return m.scroll(name)
	case "alt+p":
		return m.command("/prev")
	case "alt+n":
		return m.command("/next")
	case "ctrl+r":
		m.thoughts = !m.thoughts
		m.layout()
	case "ctrl+l":
		return tea.ClearScreen
	case "f1":
		return m.command("/help")
	case "ctrl+d":
		if m.input.Value() == "" {
			return tea.Quit
		}
		return m.edit(k)
	default:
		return m.edit(k)
	}
	return nil
}

// edit hands a key or a paste to the input.
func (m *screen) edit(msg tea.Msg) tea.Cmd {
	before := m.input.Value()
	var cmd tea.Cmd
	m.input, cmd = m.input.Update(msg)
	if after := m.input.Value(); after != before {
		m.popup = popup{candidates: m.complete(after)}
	}
	m.layout()
	return cmd
}

func (m *screen) paste(p tea.PasteMsg) tea.Cmd {
	if m.ask != nil || m.overlay.open() {
		return nil
	}
	p.Content = clean(strings.ReplaceAll(strings.ReplaceAll(p.Content, "\r\n", "\n"), "\r", "\n"))
	return m.edit(p)
}

// setInput replaces the text of the input.
func (m *screen) setInput(text string) {
	m.input.SetValue(clean(text))
	m.input.MoveToEnd()
	m.popup = popup{closed: true}
	m.layout()
}

// submit enters the text of the input, or takes what the popup points at.
func (m *screen) submit() tea.Cmd {
	if p := m.popup; p.chosen && !p.closed && p.at < len(p.candidates) {
		m.choose(p.candidates[p.at])
		return nil
	}
	text := m.input.Value()
	if strings.TrimSpace(text) == "" && len(m.attached) == 0 {
		m.notes = nil
		m.layout()
		return nil
	}
	name, arg, isCommand := parseInput(text)
	if m.down != "" && !isCommand {
		m.notes = []note{{text: m.down + "; your text stays here", error: true}}
		m.layout()
		return nil
	}
	if isCommand {
		// These must work while something else is stuck.
		if c, err := lookup(name); err == nil && (c.name == "quit" || c.name == "restart") {
			if m.down != "" && c.name == "restart" && arg != "" {
				m.hold(arg) // written before a draft
			}
			m.clearInput(text)
			return m.aside(text)
		}
	}
	e := entry{text: text, typed: true}
	m.clearInput(text)
	cmd := m.enter(e)
	m.layout()
	return cmd
}

// aside carries a command out at once, beside what is running.
func (m *screen) aside(text string) tea.Cmd {
	j, err := prepareInput(&m.state, text)
	if err != nil {
		m.fail(err)
		m.layout()
		return nil
	}
	ctx, l := m.ctx, m.link
	return func() tea.Msg {
		o, err := j(ctx, l)
		return asideMsg{outcome: o, err: err}
	}
}

// command enters a command that a key stands for.
func (m *screen) command(text string) tea.Cmd {
	cmd := m.enter(entry{text: text})
	m.layout()
	return cmd
}

// hold keeps a text, and what it is a new version of, until the server is back.
func (m *screen) hold(text string) {
	m.held = &draft{text: text}
	if m.editing != nil {
		d := *m.editing
		d.text = text
		m.held = &d
	}
}

// release puts what was held back into the input, if nothing else is there.
func (m *screen) release() {
	if m.held != nil && m.input.Value() == "" {
		m.setInput(m.held.text)
		if m.held.edits != "" {
			m.editing = m.held
		}
	}
	m.held = nil
}

// clearInput empties the input and keeps its text in the history.
func (m *screen) clearInput(text string) {
	if err := m.history.add(text); err != nil {
		m.fail(err)
	}
	m.input.Reset()
	m.popup = popup{}
}

// interrupt is Ctrl-C: it stops the answer; else it clears the input; the second
// one leaves.
func (m *screen) interrupt() tea.Cmd {
	if m.leaving {
		return tea.Quit
	}
	running := slices.DeleteFunc(m.writing(), func(id string) bool { return m.cancelling[id] })
	switch {
	case m.ask != nil:
		m.ask = nil
		m.tell("nothing was changed")
	case m.overlay.open():
		m.overlay.close()
	case len(running) > 0 && m.down == "":
		for _, id := range running {
			m.cancelling[id] = true
		}
		m.notes = nil
		return m.aside("/cancel")
	case m.running != nil && m.running.stop != nil:
		m.running.stop()
	default:
		m.leaving = true
		text := "press Ctrl-C again to leave"
		if v := m.input.Value(); strings.TrimSpace(v) != "" {
			if text += " (Up brings the text back)"; m.down != "" {
				m.hold(v)
				text = "your text comes back after /restart; " + text
			}
			m.clearInput(v)
		}
		m.editing = nil
		m.tell("%s", text)
	}
	m.layout()
	return nil
}

func (m *screen) answerQuestion(key string) tea.Cmd {
	q := m.ask
	switch strings.ToLower(key) {
	case "y":
		m.ask = nil
		cmd := m.enter(entry{job: q.yes})
		m.layout()
		return cmd
	case "n", "esc", "enter", "q":
		m.ask = nil
		m.tell("nothing was changed")
		m.layout()
	}
	return nil
}

// tab completes: what all candidates have in common, then one after the other.
func (m *screen) tab(forward bool) {
	if len(m.popup.candidates) == 0 || m.popup.closed {
		m.popup = popup{candidates: m.complete(m.input.Value())}
		if len(m.popup.candidates) == 0 {
			m.layout()
			return
		}
	}
	p := &m.popup
	if len(p.candidates) == 1 {
		m.choose(p.candidates[0])
		return
	}
	if p.chosen {
		m.move(map[bool]int{true: 1, false: -1}[forward])
		return
	}
	if c := common(p.candidates); len(c) > len(m.input.Value()) {
		m.setInput(c)
		m.popup = popup{candidates: m.complete(c)}
		m.layout()
		return
	}
	p.chosen = true
	m.layout()
}

// choose puts a candidate into the input and offers what can follow it.
func (m *screen) choose(c candidate) {
	m.setInput(c.input)
	m.popup = popup{candidates: m.complete(c.input)}
	m.layout()
}

func (m *screen) move(by int) {
	p := &m.popup
	n := len(p.candidates)
	if !p.chosen {
		p.chosen = true
		if by < 0 {
			p.at = n - 1
		}
	} else {
		p.at = (p.at + by + n) % n
	}
	m.layout()
}

// vertical is Up or Down: in the popup, in the text, or in the history.
func (m *screen) vertical(k tea.KeyPressMsg, name string) tea.Cmd {
	if len(m.popup.candidates) > 0 && !m.popup.closed {
		m.move(map[string]int{"up": -1, "down": 1}[name])
		return nil
	}
	info := m.input.LineInfo()
	switch {
	case name == "up" && m.input.Line() == 0 && info.RowOffset == 0:
		if text, ok := m.history.back(m.input.Value()); ok {
			m.setInput(text)
		}
	case name == "down" && m.input.Line() == m.input.LineCount()-1 && info.RowOffset >= info.Height-1:
		if text, ok := m.history.forward(); ok {
			m.setInput(text)
		}
	default:
		return m.edit(k)
	}
	return nil
}

func (m *screen) escape() {
	switch {
	case len(m.popup.candidates) > 0 && !m.popup.closed:
		m.popup.closed = true
	case m.editing != nil:
		m.editing = nil
		m.input.Reset()
		m.tell("the edit is given up; nothing was changed")
	default:
		m.notes = nil
	}
	m.layout()
}

// scroll moves the transcript, and reads what comes before it when its beginning
// comes into view.
func (m *screen) scroll(key string) tea.Cmd {
	page := max(m.transcript.height-2, 1)
	switch key {
	case "pgup":
		m.transcript.by(-page)
	case "pgdown":
		m.transcript.by(page)
	case "ctrl+up":
		m.transcript.by(-1)
	case "ctrl+down":
		m.transcript.by(1)
	case "ctrl+home":
		m.transcript.to(0)
	case "ctrl+end":
		m.transcript.bottom()
	}
	if m.transcript.top == 0 {
		return m.loadOlder()
	}
	return nil
}

// wheelLines is how many lines one step of the wheel moves.
const wheelLines = 3

func (m *screen) wheel(w tea.MouseWheelMsg) tea.Cmd {
	by := wheelLines
	if w.Button == tea.MouseWheelUp {
		by = -by
	} else if w.Button != tea.MouseWheelDown {
		return nil
	}
	if m.overlay.open() {
		m.overlay.scroll(by)
		return nil
	}
	m.transcript.by(by)
	if m.transcript.top == 0 {
		return m.loadOlder()
	}
	return nil
}
