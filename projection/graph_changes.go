package projection

import (
	"cmp"

	"convls/protocol"
	"convls/store"
)

// maxChanges is how many events are asked what they changed: a client that is
// further behind takes the whole window.
const maxChanges = 1_000

// changes tells what of the graph changed after a revision: nothing, these rows, or
// anything. It reads the events, not the nodes.
func (g *grapher) changes(since uint64) (protocol.GraphChange, map[string]bool, error) {
	if since == g.State.Events {
		return protocol.GraphUnchanged, nil, nil
	}
	if since > g.State.Events {
		return "", nil, protocol.Errorf(protocol.CodeInvalidParams, "since %d is no revision of this session, which is at %d: ask without since", since, g.State.Events)
	}
	if g.State.Events-since > maxChanges {
		return protocol.GraphAll, nil, nil
	}
	events, err := g.EventsSince(since)
	if err != nil {
		return "", nil, err
	}
	if len(events) != int(g.State.Events-since) {
		return protocol.GraphAll, nil, nil // some were dropped, or can not be read
	}
	c := changes{grapher: g, ids: map[string]bool{}}
	for _, e := range events {
		some, err := c.event(e)
		if err != nil && !g.pass(err) {
			return "", nil, err
		}
		if err != nil || !some {
			return protocol.GraphAll, nil, nil
		}
	}
	if len(c.ids) == 0 {
		return protocol.GraphUnchanged, nil, nil
	}
	return protocol.GraphRows, c.ids, nil
}

// changes collects the rows that events changed.
type changes struct {
	*grapher
	ids map[string]bool
}

// event adds the rows that one event changed. It returns false for one after which
// any row can look otherwise.
func (c *changes) event(e protocol.Event) (bool, error) {
	switch e.Type {
	case protocol.EventTurnStarted, protocol.EventTurnQueued, protocol.EventTurnRetrying, protocol.EventTurnFinished, protocol.EventTurnFailed,
		protocol.EventTurnCancelled, protocol.EventTurnInterrupted, protocol.EventQueueChanged, protocol.EventModelChanged, protocol.EventLocalCommand,
		protocol.EventCompactStarted, protocol.EventCompactFailed, protocol.EventCompactCancel, protocol.EventCompactAdvised:
		return true, nil
	case protocol.EventNodeSealed, protocol.EventNodePinned, protocol.EventNodeUnpinned:
		return true, c.add(e.NodeID)
	case protocol.EventNodeAppended:
		return true, c.appended(e.NodeID)
	case protocol.EventHeadMoved:
		return c.headMoved(e)
	case protocol.EventBranchChanged:
		return c.branchMoved(e.Tip)
	}
	return false, nil
}

// add adds the row of a node, or the one that it is folded into.
func (c *changes) add(id string) error {
	s, err := c.Lookup(id)
	if err != nil {
		return err
	}
	return c.addNode(s)
}

func (c *changes) addNode(s store.Skeleton) error {
	c.ids[s.ID] = true
	owner := s
	if s.Kind != protocol.KindSummary {
		var err error
		if owner, err = c.Owner(s); err != nil {
			return err
		}
	}
	c.ids[owner.ID] = true // its count
	if in, err := c.folded(owner); err != nil {
		return err
	} else if in {
		c.ids[c.sub.Summary.ID] = true
	}
	return nil
}

// appended adds a new node, and the one before it, which is no tip any more.
func (c *changes) appended(id string) error {
	s, err := c.Lookup(id)
	if err != nil {
		return err
	}
	if s.Kind.OnChain() && s.Predecessor != 0 {
		before, err := c.Skeleton(s.Predecessor)
		if err != nil {
			return err
		}
		if err := c.addNode(before); err != nil {
			return err
		}
	}
	if !s.Kind.OnChain() && s.Kind != protocol.KindSummary {
		if err := c.addCapsules(s); err != nil {
			return err
		}
	}
	return c.addNode(s)
}

// addCapsules adds the summaries that cover the owner of a new call: their rows tell
// its id.
func (c *changes) addCapsules(call store.Skeleton) error {
	owner, err := c.Owner(call)
	if err != nil {
		return err
	}
	for seq, err := range c.Summaries() {
		if err != nil {
			return err
		}
		in, err := stretchHas(c.Reader, seq, owner)
		if c.pass(err) || err == nil && !in {
			continue
		}
		if err != nil {
			return err
		}
		s, err := c.Skeleton(seq)
		if err != nil {
			return err
		}
		c.ids[s.ID] = true
	}
	return nil
}

// stretchHas reports whether a summary covers a chain node, whatever is made of that.
func stretchHas(r *store.Reader, summary store.Seq, s store.Skeleton) (bool, error) {
	covers, err := r.Covers(summary)
	if err != nil {
		return false, err
	}
	first, err1 := r.Skeleton(covers.First)
	last, err2 := r.Skeleton(covers.Last)
	if err := cmp.Or(err1, err2); err != nil {
		return false, err
	}
	return inStretch(r, first, last, s)
}

// headMoved adds the old and the new HEAD. If HEAD went on along its own branch no
// other row of the view changed; if the view is of HEAD and that went elsewhere, any
// can have.
func (c *changes) headMoved(e protocol.Event) (bool, error) {
	from, err := c.Lookup(e.Previous)
	if err != nil {
		return false, err
	}
	to, err := c.Lookup(e.Head)
	if err != nil {
		return false, err
	}
	if c.w.Head.Seq == 0 {
		if to.Predecessor != from.Seq {
			return false, nil
		}
		// What applies there may not have applied here.
		sub, _, err := Substituted(c.Reader, from)
		if err != nil || (sub == nil) != (c.sub == nil) || sub != nil && sub.Summary.Seq != c.sub.Summary.Seq {
			return false, err
		}
	}
	if err := c.addNode(from); err != nil {
		return false, err
	}
	return true, c.addNode(to)
}

// branchMoved adds the rows of a name that went on to a node. Where a name that was
// taken away had stood is not known.
func (c *changes) branchMoved(tip string) (bool, error) {
	if tip == "" {
		return false, nil
	}
	s, err := c.Lookup(tip)
	if err != nil {
		return false, err
	}
	if err := c.addNode(s); err != nil || s.Predecessor == 0 {
		return err == nil, err
	}
	before, err := c.Skeleton(s.Predecessor)
	if err != nil {
		return false, err
	}
	return true, c.addNode(before)
}
