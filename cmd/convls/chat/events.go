package chat

import (
	"fmt"
	"time"

	"convls/protocol"
)

// event takes in what happened.
func (c *conversation) event(e protocol.Event) effects {
	var fx effects
	if e.SessionID != c.session.SessionID {
		if len(c.early) < maxEarly {
			c.early = append(c.early, e)
		}
		return fx
	}
	c.competes(e.Node)
	if !c.order.event(e.Cursor) {
		// The snapshot on the screen knows of it. That a turn ended is still news to
		// whoever waits for it.
		if c.turnEnded(e, &fx) {
			fx.refresh = false
		}
		return fx
	}
	foreign := e.Origin != nil && e.Origin.ClientID != "" && e.Origin.ClientID != c.clientID
	if c.turnEnded(e, &fx) {
		if e.Budget != nil {
			c.budget = e.Budget
		}
		return fx
	}
	// The end of what this window asked for is told by its command.
	own := !foreign && e.Origin != nil && e.Trigger != protocol.TriggerAuto && e.Trigger != protocol.TriggerReactive
	switch e.Type {
	case protocol.EventNodeAppended, protocol.EventNodeSealed:
		fx.refresh = !c.take(e.Node)
	case protocol.EventTurnRetrying:
		c.retrying(e)
	case protocol.EventTurnStarted:
		// Its nodes come with events of their own.
	case protocol.EventHeadMoved:
		if e.Head == c.tip() {
			c.session.Head = e.Head
		} else {
			fx.refresh = true
		}
		if foreign && e.Cause != "" && e.Cause != "turn" && e.Cause != "send" {
			fx.tell("another window moved this conversation (%s)", e.Cause)
		}
	case protocol.EventModelChanged:
		fx.refresh = true
		if foreign {
			fx.tell("another window chose the model %s", e.Model)
		}
	case protocol.EventSessionDeleted:
		fx.tell("this conversation was deleted; write a message to begin another, or /open one")
		c.clear()
	case protocol.EventBranchDeleted:
		fx.refresh = true
		if foreign {
			fx.tell("another window deleted a branch (%s)", count(e.Count, "node"))
		}
	case protocol.EventLocalCommand:
		fx.tell("%s", e.Text)
	case protocol.EventCompactStarted:
		fx.tell("compacting the context…")
	case protocol.EventCompactFinished:
		fx.refresh = true
		if own {
			break
		}
		text := fmt.Sprintf("compacted: a summary stands for %s, the context went from %s to %s tokens", count(e.Covered, "message"), thousands(e.TokensBefore), thousands(e.TokensAfter))
		fx.say = append(fx.say, note{text: text, compaction: true})
	case protocol.EventCompactFailed:
		if e.Error != nil && !own {
			fx.say = append(fx.say, note{text: "the compaction failed, nothing was changed: " + e.Error.Message, error: true, compaction: true})
		}
	case protocol.EventCompactCancel:
		if own {
			break
		}
		fx.tell("the compaction was cancelled, nothing was changed")
	case protocol.EventCompactAdvised:
		fx.tell("the context is %.0f %% full: /compact makes room", e.Percent)
	default:
		fx.refresh = true
	}
	return fx
}

// take puts a node in its place and reports whether that place is known.
func (c *conversation) take(n *protocol.Node) bool {
	if n == nil {
		return false
	}
	if c.put(n) {
		return true
	}
	if !n.Kind.OnChain() || n.Caller != "" || n.Predecessor == "" || n.Predecessor != c.tip() {
		return false // a spawned turn that hangs off the tip is not what goes on there
	}
	c.rows = append(c.rows, protocol.Row{Node: *n, OnHead: true, InContext: true})
	c.session.Head = n.ID
	// Sibling counts, names and totals are the server's to tell, but they can wait
	// for the end of the turn.
	return n.Status == protocol.StatusOpen
}

// put updates the row of a node and reports whether there is one. A node that
// reached its final state never goes back: events can be older than the snapshot.
func (c *conversation) put(n *protocol.Node) bool {
	i := c.index(n.ID)
	if i < 0 {
		return false
	}
	if n.Status.Final() {
		delete(c.streams, n.ID)
		delete(c.retries, n.ID)
	} else if c.rows[i].Status.Final() {
		return true
	}
	c.rows[i].Node = *n
	return true
}

// turnEnded reports whether e tells that a turn ended, and notes how.
func (c *conversation) turnEnded(e protocol.Event, fx *effects) bool {
	status := e.Status
	switch e.Type {
	case protocol.EventTurnFinished:
		if status == "" {
			status = protocol.StatusSealed
		}
	case protocol.EventTurnFailed:
		status = protocol.StatusFailed
	case protocol.EventTurnCancelled:
		status = protocol.StatusCancelled
	case protocol.EventTurnInterrupted:
		status = protocol.StatusInterrupted
	default:
		return false
	}
	node, reply := e.NodeID, e.ReplyID
	if node == "" {
		node = reply
	}
	if reply == "" {
		reply = node
	}
	delete(c.retries, node)
	fx.refresh = true
	fx.ended = append(fx.ended, ending{replyID: reply, nodeID: node, status: status, err: e.Error})
	return true
}

func (c *conversation) retrying(e protocol.Event) {
	if c.retries == nil {
		c.retries = map[string]string{}
	}
	text := fmt.Sprintf("trying again in %s", (time.Duration(e.AfterMS) * time.Millisecond).Round(100*time.Millisecond))
	if e.Error != nil {
		text = e.Error.Message + "; " + text
	}
	id := e.NodeID
	if id == "" {
		id = e.ReplyID
	}
	c.retries[id] = text
}
