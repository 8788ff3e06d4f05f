package chat

import (
	"fmt"
	"slices"
	"strings"

	"convls/protocol"
)

// conversation is what the client knows of the session on the screen. It is
// changed by snapshots, events and deltas alone, never by what the client hopes
// that a request does: two clients of one session show the same.
type conversation struct {
	session  protocol.Session
	branches []protocol.Branch
	// rows are a window on the branch of HEAD, which ends there; before is the
	// cursor of the rows before it, empty at the beginning.
	rows   []protocol.Row
	before string
	queue  []protocol.QueuedSend
	budget *protocol.Budget
	// streams are the replies that are being written, by node id. A delta may come
	// before the event that tells of its node.
	streams map[string]*stream
	// retries tell of model calls that are tried again, by the reply's id.
	retries map[string]string
	// competitors are answers that were asked for together; see compete.
	competitors []competitor
	// clientID is how the server names this connection in origins.
	clientID string
	order    order
	// early are events of a session whose snapshot is still on its way to the screen.
	early []protocol.Event
}

// maxEarly bounds early: far more than happen while a session is opened.
const maxEarly = 1_000

// maxRows is how many rows of a session are asked for at once (the protocol's
// limit).
const maxRows = 500

// effects are what the caller has to do after a change.
type effects struct {
	// refresh: the snapshot is out of date in ways that only the server can tell.
	refresh bool
	// catchUp are open replies whose text has to be read.
	catchUp []string
	// say are lines for the person.
	say []note
	// ended are turns that ended, by the id of their first reply.
	ended []ending
}

// ending is how a turn ended.
type ending struct {
	replyID string
	nodeID  string
	status  protocol.Status
	err     *protocol.NodeError
}

// note is a line for the person.
type note struct {
	text  string
	error bool
	// compaction says that it tells what happened to the context unasked: whoever reads
	// the answers is told too, where nobody is at a prompt.
	compaction bool
}

func (e *effects) add(o effects) {
	e.refresh = e.refresh || o.refresh
	e.catchUp = append(e.catchUp, o.catchUp...)
	e.say = append(e.say, o.say...)
	e.ended = append(e.ended, o.ended...)
}

func (e *effects) tell(format string, args ...any) {
	e.say = append(e.say, note{text: fmt.Sprintf(format, args...)})
}

// load replaces everything by a snapshot. Texts that are being streamed stay.
// followed says that the events after the snapshot, and only these, will come
// because it was taken together with a subscription.
func (c *conversation) load(snap *protocol.SessionOpenResult, followed bool) effects {
	var fx effects
	other := snap.Session.SessionID != c.session.SessionID
	if !c.order.snapshot(snap.Cursor, followed || other) {
		fx.refresh = true
		return fx
	}
	if other {
		c.streams, c.retries, c.competitors = nil, nil, nil
	}
	c.session, c.branches, c.queue = snap.Session, snap.Branches, snap.Queue
	c.rows, c.before = snap.Transcript.Rows, snap.Transcript.Before
	if b := snap.Session.Budget; b != nil || other {
		c.budget = b
	}
	open := map[string]bool{}
	for _, o := range snap.OpenNodes {
		open[o.NodeID] = true
		if s := c.streams[o.NodeID]; s == nil || int64(s.bytes()) < o.Bytes {
			c.stream(o.NodeID)
			fx.catchUp = append(fx.catchUp, o.NodeID)
		}
	}
	for id := range c.streams {
		if i := c.index(id); !open[id] && (i < 0 || c.rows[i].Status.Final()) {
			delete(c.streams, id)
			delete(c.retries, id)
		}
	}
	early := c.early
	c.early = nil
	for _, e := range early {
		if other && followed && e.SessionID == c.session.SessionID {
			fx.add(c.event(e))
		}
	}
	return fx
}

// older puts rows before those that are there. It returns how many.
func (c *conversation) older(t *protocol.Transcript) int {
	var add []protocol.Row
	for _, r := range t.Rows {
		if c.index(r.ID) < 0 {
			add = append(add, r)
		}
	}
	c.rows = append(add, c.rows...)
	c.before = t.Before
	return len(add)
}

func (c *conversation) stream(id string) *stream {
	if c.streams == nil {
		c.streams = map[string]*stream{}
	}
	s := c.streams[id]
	if s == nil {
		s = &stream{}
		c.streams[id] = s
	}
	return s
}

// delta joins streamed text.
func (c *conversation) delta(d protocol.Delta) effects {
	if d.SessionID != c.session.SessionID {
		return effects{}
	}
	if i := c.index(d.NodeID); i >= 0 && c.rows[i].Status.Final() {
		return effects{} // the seal came first and has everything
	}
	delete(c.retries, d.NodeID)
	if c.stream(d.NodeID).add(d) {
		return effects{catchUp: []string{d.NodeID}}
	}
	return effects{}
}

// caughtUp takes an open node that was read because of a gap.
func (c *conversation) caughtUp(n *protocol.Node) effects {
	c.competes(n)
	if n.Status.Final() {
		c.put(n)
		return effects{}
	}
	if c.stream(n.ID).catchUp(n.Content) {
		return effects{catchUp: []string{n.ID}}
	}
	return effects{}
}

// clear forgets the session; the client is as if it had just been started.
func (c *conversation) clear() { *c = conversation{clientID: c.clientID} }

// expect is called before a session may be opened: what came of others before is
// of no use.
func (c *conversation) expect() { c.early = nil }

// index returns the place of the node's row, or -1.
func (c *conversation) index(id string) int {
	for i, r := range slices.Backward(c.rows) {
		if r.ID == id {
			return i
		}
	}
	return -1
}

// tip is the last chain node that is shown: HEAD, unless the screen is behind.
func (c *conversation) tip() string {
	for _, r := range slices.Backward(c.rows) {
		if r.Kind.OnChain() {
			return r.ID
		}
	}
	return c.session.Head
}

// open returns the replies that are being written on this branch, oldest first.
func (c *conversation) open() []protocol.Row {
	var open []protocol.Row
	for _, r := range c.rows {
		if r.Kind == protocol.KindAssistant && !r.Status.Final() {
			open = append(open, r)
		}
	}
	return open
}

// numbered returns the row of message n: the number is its depth, which is the
// same however much of the conversation is loaded.
func (c *conversation) numbered(n int64) (protocol.Row, bool) {
	for _, r := range c.rows {
		if r.Kind.OnChain() && r.Depth == n {
			return r, true
		}
	}
	return protocol.Row{}, false
}

// last returns the last row that want accepts.
func (c *conversation) last(want func(protocol.Row) bool) (protocol.Row, bool) {
	for _, r := range slices.Backward(c.rows) {
		if want(r) {
			return r, true
		}
	}
	return protocol.Row{}, false
}

// branchName tells the branch of HEAD.
func (c *conversation) branchName() string {
	if c.session.Branch != "" {
		return "branch " + c.session.Branch
	}
	return "unnamed branch"
}

// text returns what a row says, as Markdown: streamed text while it is written.
func (c *conversation) text(r protocol.Row) string {
	if s := c.streams[r.ID]; s != nil && !r.Status.Final() {
		return s.text()
	}
	return partsText(r.Content)
}

// partsText joins the text parts of content.
func partsText(content []protocol.Part) string {
	var b strings.Builder
	for _, p := range content {
		if p.Type == protocol.PartText {
			b.WriteString(p.Text)
		}
	}
	return b.String()
}
