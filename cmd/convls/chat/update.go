package chat

import (
	"context"
	"strings"

	"convls/client"
	"convls/protocol"

	"charm.land/bubbles/v2/spinner"
	tea "charm.land/bubbletea/v2"
)

// Update takes in a message.
func (m *screen) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	cmd := m.update(msg)
	return m, cmd
}

func (m *screen) update(msg tea.Msg) tea.Cmd {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = msg.Width, msg.Height
		m.layout()
	case tea.BackgroundColorMsg:
		m.setTheme(msg.IsDark())
	case tea.KeyPressMsg:
		return m.key(msg)
	case tea.PasteMsg:
		return m.paste(msg)
	case tea.MouseWheelMsg:
		return m.wheel(msg)
	case spinner.TickMsg:
		return m.tick(msg)
	case noticesMsg:
		return m.notices(msg)
	case downMsg:
		m.disconnected(msg)
	case jobMsg:
		return m.done(msg)
	case asideMsg:
		if msg.err != nil {
			if !msg.quiet {
				m.fail(msg.err)
			}
			return nil
		}
		return m.apply(msg.outcome)
	case snapshotMsg:
		return m.snapshot(msg)
	case nodeMsg:
		delete(m.catching, msg.id)
		if msg.err != nil || msg.sessionID != m.session.SessionID {
			return nil
		}
		return m.effects(m.caughtUp(msg.node))
	case olderMsg:
		m.olderRows(msg)
	case dialedMsg:
		return m.dialed(msg)
	default:
		return m.overlay.update(msg)
	}
	return nil
}

func (m *screen) tick(msg spinner.TickMsg) tea.Cmd {
	if len(m.writing()) == 0 || m.down != "" {
		m.spinning = false
		return nil
	}
	var cmd tea.Cmd
	m.spinner, cmd = m.spinner.Update(msg)
	m.repaint()
	return cmd
}

func (m *screen) notices(msg noticesMsg) tea.Cmd {
	if msg.link != m.link {
		return nil // of a server that was replaced
	}
	var fx effects
	for _, n := range msg.items {
		switch n := n.(type) {
		case protocol.Event:
			fx.add(m.event(n))
		case protocol.Delta:
			fx.add(m.delta(n))
		case protocol.ResetNotification:
			m.order.lost()
			fx.refresh = true
		case client.LogMessage:
			fx.say = append(fx.say, note{text: n.Message, error: true})
		}
	}
	return tea.Batch(m.effects(fx), listen(m.link))
}

// effects carries out what a change asks for.
func (m *screen) effects(fx effects) tea.Cmd {
	var cmds []tea.Cmd
	for _, id := range fx.catchUp {
		cmds = append(cmds, m.catchUp(id))
	}
	if fx.refresh {
		cmds = append(cmds, m.refresh())
	}
	m.notes = append(m.notes, fx.say...)
	for _, e := range fx.ended {
		delete(m.cancelling, e.nodeID)
	}
	m.layout()
	return tea.Batch(append(cmds, m.spin())...)
}

func (m *screen) snapshot(msg snapshotMsg) tea.Cmd {
	m.refreshing = false
	again := m.again
	m.again = false
	var cmd tea.Cmd
	switch {
	case msg.sessionID != m.session.SessionID:
	case protocol.CodeOf(msg.err) == protocol.CodeUnknownSession:
		m.clear()
		m.tell("this conversation is gone; write a message to begin another, or /open one")
		m.layout()
	case msg.err != nil:
		if m.down == "" {
			m.fail(msg.err)
		}
	default:
		cmd = m.effects(m.load(msg.snapshot, false))
	}
	if again {
		cmd = tea.Batch(cmd, m.refresh())
	}
	return cmd
}

func (m *screen) olderRows(msg olderMsg) {
	m.loadingOlder = false
	if msg.err != nil || msg.sessionID != m.session.SessionID {
		return
	}
	before := len(m.transcript.lines)
	m.older(msg.rows)
	m.repaint()
	// What was in view stays in view.
	m.transcript.by(len(m.transcript.lines) - before)
}

func (m *screen) disconnected(msg downMsg) {
	if msg.link != m.link || m.down != "" {
		return
	}
	m.down = downText(msg.err)
	m.spinning, m.refreshing, m.again, m.loadingOlder = false, false, false, false
	for _, e := range m.waiting {
		if e.typed && m.input.Value() == "" {
			m.setInput(e.text) // the others are in the history
		}
	}
	m.waiting = nil
	m.notes = []note{{text: m.down, error: true}}
	m.layout()
}

func (m *screen) dialed(msg dialedMsg) tea.Cmd {
	if msg.link == nil {
		m.fail(msg.err)
		m.down = downText(msg.err)
		return nil
	}
	m.link, m.clientID, m.down = msg.link, msg.link.clientID, ""
	m.catching, m.cancelling = map[string]bool{}, map[string]bool{}
	m.streams, m.notes = nil, nil
	cmds := []tea.Cmd{listen(m.link), m.background(prepareModels), m.background(prepareSessionNames)}
	if msg.err != nil {
		m.fail(msg.err)
		return tea.Batch(cmds...)
	}
	cmds = append(cmds, m.apply(msg.outcome))
	m.release()
	return tea.Batch(cmds...)
}

// enter carries out what was entered, after what is being carried out.
func (m *screen) enter(e entry) tea.Cmd {
	m.notes = nil
	if m.running != nil {
		m.waiting = append(m.waiting, e)
		return nil
	}
	j := e.job
	if j == nil {
		var err error
		if j, err = prepareInput(&m.state, e.text); err != nil {
			m.refused(e, err)
			return m.following()
		}
	}
	ctx, l := m.ctx, m.link
	if waits(e.text) {
		ctx, e.stop = context.WithCancel(ctx)
		m.tell("waiting for the model (Ctrl-C stops it)")
	}
	m.running = &e
	m.expect()
	return func() tea.Msg {
		if e.stop != nil {
			defer e.stop()
		}
		o, err := j(ctx, l)
		return jobMsg{&e, o, err}
	}
}

// following carries out the entry that waits.
func (m *screen) following() tea.Cmd {
	if m.running != nil || len(m.waiting) == 0 {
		return nil
	}
	next := m.waiting[0]
	m.waiting = m.waiting[1:]
	notes := m.notes
	cmd := m.enter(next)
	m.notes = append(notes, m.notes...)
	return cmd
}

func (m *screen) done(msg jobMsg) tea.Cmd {
	if msg.entry != m.running {
		return nil
	}
	if m.running.stop != nil {
		m.notes = nil // it waits no more
	}
	m.running = nil
	cmd := m.apply(msg.outcome)
	if msg.err != nil {
		m.refused(*msg.entry, msg.err)
		if protocol.CodeOf(msg.err) == protocol.CodeStaleHead {
			cmd = tea.Batch(cmd, m.refresh())
		}
	}
	return tea.Batch(cmd, m.following())
}

// refused tells what went wrong, and gives the text back: nobody should have to
// type it again.
func (m *screen) refused(e entry, err error) {
	m.fail(err)
	if e.typed && m.input.Value() == "" && !strings.HasPrefix(e.text, "/") {
		m.setInput(e.text)
	}
	m.layout()
}

// apply shows what came of a job.
func (m *screen) apply(o outcome) tea.Cmd {
	session := m.session.SessionID
	cmds := []tea.Cmd{m.effects(m.take(o))}
	if m.session.SessionID != session || o.sent || o.fresh != nil {
		m.transcript.bottom()
	}
	switch {
	case o.page != nil:
		m.overlay.page(*o.page, m)
	case o.list != nil && len(o.list.items) == 0:
		m.tell("%s", o.list.empty)
	case o.list != nil:
		m.overlay.list(*o.list, m)
	}
	if o.draft != nil {
		m.setInput(o.draft.text)
	}
	if o.question != nil {
		m.ask = o.question
	}
	if o.say != "" {
		m.notes = append(m.notes, note{text: o.say})
	}
	if o.copy != "" {
		cmds = append(cmds, tea.SetClipboard(o.copy))
	}
	m.layout()
	if at, ok := m.begin[o.focus]; ok && o.focus != "" {
		m.transcript.to(at)
	}
	if o.restart {
		cmds = append(cmds, m.restart())
	}
	if o.quit {
		cmds = append(cmds, tea.Quit)
	}
	return tea.Batch(cmds...)
}
