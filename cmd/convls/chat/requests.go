package chat

import (
	"context"
	"errors"

	"convls/client"
	"convls/protocol"

	tea "charm.land/bubbletea/v2"
)

// The messages of this program.
type (
	// noticesMsg is what a server sent, in order.
	noticesMsg struct {
		link  *link
		items []any
	}
	// downMsg tells that a connection ended.
	downMsg struct {
		link *link
		err  error
	}
	// jobMsg is the end of an entry.
	jobMsg struct {
		entry   *entry
		outcome outcome
		err     error
	}
	// asideMsg is the end of a job that no entry waits for; quiet ones tell no errors.
	asideMsg struct {
		outcome outcome
		err     error
		quiet   bool
	}
	snapshotMsg struct {
		sessionID string
		snapshot  *protocol.SessionOpenResult
		err       error
	}
	nodeMsg struct {
		sessionID, id string
		node          *protocol.Node
		err           error
	}
	olderMsg struct {
		sessionID string
		rows      *protocol.Transcript
		err       error
	}
	// dialedMsg is the end of /restart.
	dialedMsg struct {
		link    *link
		outcome outcome
		err     error
	}
)

// listen waits for what the server sends, and takes at once what is there.
func listen(l *link) tea.Cmd {
	return func() tea.Msg {
		msg := noticesMsg{link: l}
		select {
		case n := <-l.notices:
			msg.items = append(msg.items, n)
		case <-l.Done():
		}
		for len(msg.items) < noticeBuffer {
			select {
			case n := <-l.notices:
				msg.items = append(msg.items, n)
				continue
			default:
			}
			break
		}
		if len(msg.items) == 0 {
			return downMsg{link: l, err: l.Err()}
		}
		return msg
	}
}

// background runs a job whose only use is completion.
func (m *screen) background(j job) tea.Cmd {
	ctx, l := m.ctx, m.link
	return func() tea.Msg {
		o, err := j(ctx, l)
		return asideMsg{outcome: o, err: err, quiet: true}
	}
}

func prepareModels(ctx context.Context, c caller) (outcome, error) {
	r, err := call[protocol.ModelListResult](ctx, c, protocol.MethodModelList, protocol.Empty{})
	if err != nil {
		return outcome{}, err
	}
	return outcome{models: r.Models}, nil
}

func prepareSessionNames(ctx context.Context, c caller) (outcome, error) {
	r, err := call[protocol.SessionListResult](ctx, c, protocol.MethodSessionList, protocol.SessionListParams{Limit: 200})
	if err != nil {
		return outcome{}, err
	}
	return outcome{sessions: r.Sessions}, nil
}

// refresh takes a new snapshot. While one is on its way another is taken after it.
func (m *screen) refresh() tea.Cmd {
	if !m.exists() || m.down != "" {
		return nil
	}
	if m.refreshing {
		m.again = true
		return nil
	}
	m.refreshing = true
	ctx, l, id, rows := m.ctx, m.link, m.session.SessionID, len(m.rows)
	return func() tea.Msg {
		snap, err := open(ctx, l, id, false, rows)
		return snapshotMsg{id, snap, err}
	}
}

// catchUp reads an open node of which text is missing.
func (m *screen) catchUp(id string) tea.Cmd {
	if m.catching[id] || m.down != "" {
		return nil
	}
	m.catching[id] = true
	ctx, l, session := m.ctx, m.link, m.session.SessionID
	return func() tea.Msg {
		n, err := call[protocol.Node](ctx, l, protocol.MethodNodeGet, protocol.NodeGetParams{SessionID: session, NodeID: id})
		return nodeMsg{session, id, n, err}
	}
}

// loadOlder reads the rows before the first one.
func (m *screen) loadOlder() tea.Cmd {
	if m.loadingOlder || m.before == "" || m.down != "" {
		return nil
	}
	m.loadingOlder = true
	ctx, l, id, before := m.ctx, m.link, m.session.SessionID, m.before
	return func() tea.Msg {
		t, err := call[protocol.Transcript](ctx, l, protocol.MethodTranscriptGet, protocol.TranscriptParams{SessionID: id, Before: before, Limit: 100})
		return olderMsg{id, t, err}
	}
}

// restart starts a server and opens the session again.
func (m *screen) restart() tea.Cmd {
	m.tell("starting the server…")
	ctx, dial, old, id := m.ctx, m.dial, m.link, m.session.SessionID
	return func() tea.Msg {
		_ = old.end()
		l, err := dial(ctx)
		if err != nil {
			return dialedMsg{err: err}
		}
		o := outcome{}
		if id != "" {
			o, err = enter(ctx, l, id, "")
		}
		o.say = "the server is running again"
		return dialedMsg{link: l, outcome: o, err: err}
	}
}

// downText says why the connection ended.
func downText(err error) string {
	text := "the server is gone"
	if err != nil && !errors.Is(err, client.ErrClosed) {
		text += ": " + line(err.Error(), 300)
	}
	return text + " (/restart starts it again; everything that was said is kept)"
}
