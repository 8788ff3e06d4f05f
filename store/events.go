package store

import (
	"context"
	"fmt"
	"iter"
	"slices"

	"convls/protocol"
)

// Events are kept for clients that come back: the newest keptEvents of a session.
// Older ones are dropped by range, trimEvery at a time.
const (
	keptEvents = 10_000
	trimEvery  = 1_000
)

// maxEventText bounds the text of a node in an event, in bytes; the whole is
// convls/node/get's to give.
const maxEventText = 64 << 10

// putEvents numbers the events and writes those that will be kept. The events of
// a session's deletion are told and not kept.
func (tx *Tx) putEvents() error {
	first := tx.State.Events + 1
	tx.State.Events += uint64(len(tx.events))
	origin := &tx.req.Origin
	if *origin == (protocol.Origin{}) {
		origin = nil
	}
	for i := range tx.events {
		e, number := &tx.events[i], first+uint64(i)
		e.SessionID, e.Cursor, e.At, e.Revision, e.Origin = "", "", tx.now, int64(number), origin
		if !tx.removed && number+keptEvents > tx.State.Events {
			b, err := protocol.Marshal(e)
			if err != nil {
				return fmt.Errorf("encode event %s: %w", e.Type, err)
			}
			if err := tx.batch.Set(key(famEvent, tx.session, number), frame(b), nil); err != nil {
				return err
			}
		}
		e.SessionID, e.Cursor = tx.id, tx.store.cursor(number)
	}
	last := tx.State.Events
	if tx.removed || last < keptEvents+trimEvery || (first-1)/trimEvery == last/trimEvery {
		return nil
	}
	return tx.batch.DeleteRange(key(famEvent, tx.session, 0), key(famEvent, tx.session, last-keptEvents+1), nil)
}

// Events returns the events after a cursor, oldest first, limit at most, and the
// cursor of the last one. reset is true for a cursor that is not this ledger's,
// lies in the future, or whose events were dropped or are damaged: the client
// takes a snapshot and goes on from there.
func (s *Session) Events(ctx context.Context, cursor string, limit int) (events []protocol.Event, next string, reset bool, err error) {
	r, err := s.Reader()
	if err != nil {
		return nil, "", false, err
	}
	defer r.Close()
	n, ok := s.store.parseCursor(cursor)
	if !ok || n > r.State.Events {
		return nil, r.Cursor(), true, nil
	}
	for at, err := range r.numbers(key(famEvent, s.num), n+1) {
		if err != nil {
			return nil, "", false, err
		}
		if len(events) >= limit {
			return events, s.store.cursor(n), false, nil
		}
		if ctx.Err() != nil {
			return nil, "", false, ctx.Err()
		}
		e, err := readEvent(at.Value)
		if at.Number != n+1 || err != nil {
			return nil, r.Cursor(), true, nil
		}
		n++
		e.SessionID, e.Cursor = s.id, s.store.cursor(n)
		r.hydrate(&e)
		events = append(events, e)
	}
	if n != r.State.Events {
		return nil, r.Cursor(), true, nil
	}
	return events, s.store.cursor(n), false, nil
}

func readEvent(b []byte) (protocol.Event, error) {
	var e protocol.Event
	body, err := unframe(b)
	if err == nil {
		err = protocol.Unmarshal(body, &e)
	}
	return e, err
}

// EventsSince returns the events after a number, oldest first, as they are kept: with
// references, without nodes. It ends before one that can not be read.
func (r *Reader) EventsSince(number uint64) ([]protocol.Event, error) {
	var events []protocol.Event
	for at, err := range r.numbers(key(famEvent, r.session), number+1) {
		if err != nil {
			return nil, err
		}
		e, err := readEvent(at.Value)
		if err != nil {
			break
		}
		events = append(events, e)
	}
	return events, nil
}

// Behind returns how many events there are after a cursor, and false if the
// cursor is not this ledger's.
func (s *Session) Behind(cursor string) (uint64, bool) {
	n, ok := s.store.parseCursor(cursor)
	newest := s.State().Events
	return newest - min(n, newest), ok && n <= newest
}

// Cursor returns the cursor of the newest event.
func (s *Session) Cursor() string { return s.store.cursor(s.State().Events) }

// hydrate puts the node into the events that tell of one. A node that was deleted
// since, or can not be read, is left out: the event still tells its id.
func (r *Reader) hydrate(e *protocol.Event) {
	if e.Type != protocol.EventNodeAppended && e.Type != protocol.EventNodeSealed {
		return
	}
	sk, err := r.Lookup(e.NodeID)
	if err != nil {
		return
	}
	n, err := r.Node(sk)
	if err != nil {
		return
	}
	TruncateText(&n, maxEventText)
	e.Node = &n
}

// lastMove returns the newest head_moved event among the last few.
func (tx *Tx) lastMove() (move protocol.Event, ok bool) {
	const look = 64
	for n, err := range tx.numbers(key(famEvent, tx.session), tx.before.Events-min(tx.before.Events, look)) {
		if err != nil {
			return move, ok
		}
		if e, err := readEvent(n.Value); err == nil && e.Type == protocol.EventHeadMoved {
			move, ok = e, true
		}
	}
	return move, ok
}

// checkExpectedHead refuses a mutation whose sender believes HEAD to be elsewhere.
// That the turn of the expected node went on, by more model calls, is not stale:
// the person saw that turn and knows that it runs.
func (tx *Tx) checkExpectedHead() error {
	want := tx.req.ExpectedHead
	if want == "" {
		return nil
	}
	// By number: a HEAD that is damaged can be left by who knows that it is there.
	if seq, err := tx.seqOf(want); err == nil && seq != 0 && seq == tx.State.Head {
		return nil
	}
	head, err := tx.Skeleton(tx.State.Head)
	switch {
	case isDamage(err):
		head.ID = tx.State.Head.placeholder()
	case err != nil:
		return err
	default:
		if same, err := tx.sameTurn(want, head); err != nil || same {
			return err
		}
	}
	data := protocol.ErrorData{Expected: want, Head: head.ID, Cursor: tx.store.cursor(tx.State.Events), Retryable: true}
	if move, ok := tx.lastMove(); ok {
		data.HeadCause, data.Origin = move.Cause, move.Origin
	}
	return &protocol.Error{Code: protocol.CodeStaleHead,
		Message: fmt.Sprintf("HEAD is at node %q, not at %q as this request expects: look at what changed and send it again", head.ID, want), Data: data}
}

// maxTurn bounds the walk over the model calls of one turn.
const maxTurn = 1_000

// sameTurn reports whether head is a later reply of the turn that the node with
// the id want belongs to.
func (tx *Tx) sameTurn(want string, head Skeleton) (bool, error) {
	sk, err := tx.LookupChain(want)
	if err != nil || sk.Depth >= head.Depth || head.Depth-sk.Depth > maxTurn {
		return false, nil
	}
	for s, err := range tx.Spine(head) {
		switch {
		case isDamage(err):
			return false, nil
		case err != nil:
			return false, err
		case s.Seq == sk.Seq:
			return true, nil
		case s.Kind != protocol.KindAssistant || s.Depth <= sk.Depth:
			return false, nil
		}
	}
	return false, nil
}

// Node returns a node in the wire's form, with its whole content.
func (v *view) Node(sk Skeleton) (protocol.Node, error) {
	c, err := v.Content(sk.Seq)
	if err != nil {
		return protocol.Node{}, err
	}
	return v.NodeOf(sk, c)
}

// NodeOf is [view.Node] with the content given. A predecessor or caller whose
// record is damaged stands there as # and its number.
func (v *view) NodeOf(sk Skeleton, c *Content) (protocol.Node, error) {
	n := protocol.Node{ID: sk.ID, Seq: int64(sk.Seq), Kind: sk.Kind, Role: sk.Kind.Role(), Depth: int64(sk.Depth), Status: sk.Status,
		Content: slices.Clone(c.Parts), Prompt: slices.Clone(c.Prompt), Model: c.Model, CreatedAt: sk.Created, DurationMS: c.DurationMS, StopReason: c.StopReason,
		Error: c.Error, Usage: c.Usage, Redacted: sk.Redacted, Metadata: c.Metadata, Manifest: c.Manifest, Provenance: c.Provenance}
	var err error
	if n.Predecessor, err = v.idOf(sk.Predecessor); err != nil {
		return n, err
	}
	if n.Caller, err = v.idOf(sk.Caller); err != nil {
		return n, err
	}
	n.Pinned, err = v.Pinned(sk.Seq)
	return n, err
}

// Reads returns the ids of the nodes whose content entered the call of c, in
// order. Ids of nodes that were deleted since are left out.
func (v *view) Reads(c *Content) ([]string, error) {
	var ids []string
	for _, run := range c.Reads {
		last, err := v.Skeleton(run.Last)
		if err != nil {
			if protocol.CodeOf(err) == protocol.CodeUnknownNode {
				continue
			}
			return nil, err
		}
		nodes := []Skeleton{last}
		if run.First != run.Last {
			first, err := v.Skeleton(run.First)
			if err != nil {
				return nil, err
			}
			nodes = nodes[:0]
			for s, err := range v.Path(first, last) {
				if err != nil {
					return nil, err
				}
				nodes = append(nodes, s)
			}
			slices.Reverse(nodes)
		}
		for _, s := range nodes {
			ids = append(ids, s.ID)
			if !run.Tools {
				continue
			}
			for tool, err := range v.Tools(s.Seq) {
				if err != nil {
					return nil, err
				}
				ids = append(ids, tool.ID)
			}
		}
	}
	return ids, nil
}

// Tools yields the tool nodes that seq called, each followed by the tool nodes
// that it called.
func (v *view) Tools(seq Seq) iter.Seq2[Skeleton, error] {
	return func(yield func(Skeleton, error) bool) {
		stack := []Seq{seq}
		for len(stack) > 0 {
			at := stack[len(stack)-1]
			stack = stack[:len(stack)-1]
			if at != seq {
				s, err := v.Skeleton(at)
				if !yield(s, err) || err != nil {
					return
				}
			}
			from := len(stack)
			for callee, err := range v.linked(famCallee, at, func(k protocol.Kind) bool { return k == protocol.KindTool }) {
				if err != nil {
					yield(Skeleton{}, err)
					return
				}
				stack = append(stack, callee)
			}
			slices.Reverse(stack[from:])
		}
	}
}
