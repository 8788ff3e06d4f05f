package store

import (
	"bytes"
	"errors"
	"fmt"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"convls/protocol"
)

// Tx is a mutation of one session that has not happened yet. What it writes goes
// in one batch; what it reads is the ledger as it will be with that batch. It is
// for one goroutine.
type Tx struct {
	view
	// State is the session's state after the mutation; only the methods of Tx
	// change it.
	State State

	sess   *Session
	before State
	req    Request
	batch  *pebble.Batch
	now    time.Time
	info   *Info
	events []protocol.Event
	chunks []chunked
	// receipts is the session number under which the receipt goes.
	receipts uint64
	creating bool // the session is being made
	removed  bool // the session itself goes
}

func newTx(s *Session, state State, req Request) *Tx {
	now := s.store.now()
	if !now.After(state.Updated) {
		now = state.Updated.Add(time.Millisecond)
	}
	// An indexed batch can be read: an operation in several steps sees its own, and
	// no step needs to know what the ones before it wrote.
	batch := s.store.db.NewIndexedBatch()
	return &Tx{
		view:  view{store: s.store, session: s.num, id: s.id, r: batch},
		State: state, before: state, sess: s, req: req, batch: batch, now: now, receipts: s.num,
	}
}

// Session returns the session that is changed.
func (tx *Tx) Session() *Session { return tx.sess }

// Now returns the time of the mutation.
func (tx *Tx) Now() time.Time { return tx.now }

// NodeSpec describes a node to append.
type NodeSpec struct {
	// ID is the node's id; a new one if it is empty.
	ID   string
	Kind protocol.Kind
	// Predecessor is the chain node that this one follows. Every node has one but
	// the root, and those that only have a Caller.
	Predecessor Seq
	Caller      Seq
	// Status is open, or final for a node that is whole.
	Status    protocol.Status
	Content   Content
	Tokens    int
	Tokenizer string
	// Created is the time of the mutation if it is zero.
	Created time.Time
	// HeadNeutral keeps HEAD where it is even if the node extends the chain at HEAD.
	HeadNeutral bool
	// Continues says that the node goes on with the turn that wrote Predecessor: the
	// names that refer to that by now are those of the turn's branch, and go along even
	// after HEAD has left.
	Continues bool
	Exposed   bool
}

// Append writes a node. If it is a chain node and its predecessor is HEAD, HEAD
// goes on to it, and so does the name that HEAD is attached to.
//
// A predecessor or caller that is not there gives unknown_node, a predecessor off
// the chain not_a_chain_node, one that is open turn_running. An id that is there
// already, with the same content, gives the node that is there; with other
// content, id_conflict. Summaries are written by [Tx.AppendSummary].
func (tx *Tx) Append(n NodeSpec) (Skeleton, error) {
	if n.Kind == protocol.KindSummary || n.Content.Covers != nil {
		return Skeleton{}, errors.New("what covers nodes is written by AppendSummary, which proves it")
	}
	return tx.append(n)
}

func (tx *Tx) append(n NodeSpec) (Skeleton, error) {
	if kindByte(n.Kind) == 0 || statusByte(n.Status) == 0 {
		return Skeleton{}, protocol.Errorf(protocol.CodeInvalidParams, "a node can not have the kind %q and the status %q", n.Kind, n.Status)
	}
	body, err := encodeContent(&n.Content)
	if err != nil {
		return Skeleton{}, err
	}
	if n.ID == "" {
		n.ID = NewID(idPrefix(n.Kind))
	} else if err := checkID(n.ID); err != nil {
		return Skeleton{}, err
	} else if old, err := tx.Lookup(n.ID); err == nil {
		return tx.sameNode(old, n, body)
	} else if protocol.CodeOf(err) != protocol.CodeUnknownNode {
		return Skeleton{}, err
	}
	sk := Skeleton{Seq: tx.State.Next, ID: n.ID, Kind: n.Kind, Status: n.Status, Predecessor: n.Predecessor, Caller: n.Caller,
		Created: n.Created, Tokens: uint64(max(n.Tokens, 0)), Tokenizer: n.Tokenizer, Exposed: n.Exposed}
	if sk.Created.IsZero() {
		sk.Created = tx.now
	}
	sk.Created = sk.Created.UTC().Truncate(time.Millisecond)
	if err := tx.link(&sk); err != nil {
		return Skeleton{}, err
	}
	sk.Total = sk.Total.add(n.Content.Usage)
	if err := errors.Join(
		tx.putNode(sk, body, 0),
		tx.batch.Set(keyString(famID, tx.session, sk.ID), numberRecord(uint64(sk.Seq)), nil),
	); err != nil {
		return Skeleton{}, err
	}
	if sk.Status == protocol.StatusOpen {
		if err := tx.batch.Set(key(famOpen, tx.session, uint64(sk.Seq)), nil, nil); err != nil {
			return Skeleton{}, err
		}
	}
	tx.State.Next++
	tx.State.Nodes++
	tx.State.Total = tx.State.Total.add(n.Content.Usage)
	tx.Emit(protocol.Event{Type: protocol.EventNodeAppended, NodeID: sk.ID, Status: sk.Status})
	if !sk.Kind.OnChain() {
		return sk, nil
	}
	return sk, tx.extend(sk, n)
}

// sameNode answers an append of an id that is there.
func (tx *Tx) sameNode(old Skeleton, n NodeSpec, body []byte) (Skeleton, error) {
	same := old.Kind == n.Kind && old.Predecessor == n.Predecessor && old.Caller == n.Caller && old.Status == n.Status
	if same {
		have, err := tx.Content(old.Seq)
		if err != nil {
			return Skeleton{}, err
		}
		b, err := encodeContent(have)
		if err != nil {
			return Skeleton{}, err
		}
		same = bytes.Equal(b, body)
	}
	if !same {
		return Skeleton{}, protocol.Errorf(protocol.CodeIDConflict, "node %q is there already, with other content", n.ID)
	}
	return old, nil
}

// link checks a new node's edges, sets its depth and jump pointer, and writes the
// edges' index records.
func (tx *Tx) link(sk *Skeleton) error {
	if sk.Kind == protocol.KindRoot {
		if sk.Seq != Root || sk.Predecessor != 0 {
			return protocol.Errorf(protocol.CodeInvalidParams, "a session has one root, its first node")
		}
		sk.Run = sk.Seq
		return tx.putLane(0, sk.Seq)
	}
	if sk.Predecessor == 0 && sk.Caller == 0 || sk.Predecessor == 0 && sk.Kind.OnChain() {
		return protocol.Errorf(protocol.CodeInvalidParams, "a %s node needs a predecessor", sk.Kind)
	}
	kind := []byte{kindByte(sk.Kind)}
	if sk.Caller != 0 {
		caller, err := tx.Skeleton(sk.Caller)
		if err != nil {
			return err
		}
		if caller.Seq >= sk.Seq {
			return protocol.Errorf(protocol.CodeInvalidParams, "node %q can not be called by a later node", sk.ID)
		}
		sk.Depth = caller.Depth + 1
		sk.Called = sk.Kind.OnChain()
		if err := tx.batch.Set(key(famCallee, tx.session, uint64(sk.Caller), uint64(sk.Seq)), kind, nil); err != nil {
			return err
		}
	}
	if sk.Predecessor == 0 {
		return nil
	}
	pred, err := tx.Skeleton(sk.Predecessor)
	if err != nil {
		return err
	}
	if !pred.Kind.OnChain() {
		return protocol.Errorf(protocol.CodeNotAChainNode, "node %q is a %s and can not be followed", pred.ID, pred.Kind)
	}
	sk.Depth = pred.Depth + 1
	if sk.Kind.OnChain() {
		if pred.Status == protocol.StatusOpen {
			return protocol.Errorf(protocol.CodeTurnRunning, "node %q is being written and can not be followed yet", pred.ID)
		}
		sk.Total = pred.Total
		sk.Called = sk.Called || pred.Called
		jump, err := tx.jumpFrom(pred, jumpDepth(sk.Depth))
		if err != nil {
			return err
		}
		sk.Jump = jump
		if err := tx.setLane(sk, pred); err != nil {
			return err
		}
	}
	return tx.batch.Set(key(famChild, tx.session, uint64(sk.Predecessor), uint64(sk.Seq)), kind, nil)
}

// jumpFrom returns the ancestor of pred at this depth, in two reads at most: a
// jump either ends at pred, or joins the jumps of pred and of pred's jump.
func (tx *Tx) jumpFrom(pred Skeleton, depth uint64) (Seq, error) {
	for s := pred; ; {
		if s.Depth == depth {
			return s.Seq, nil
		}
		var err error
		if s, err = tx.ancestor(s, s.Jump); err != nil {
			return 0, err
		}
	}
}

// Final is how an open node ends.
type Final struct {
	Status    protocol.Status
	Content   Content
	Tokens    int
	Tokenizer string
}

// Seal ends an open node. A sealed node is refused: it never changes.
func (tx *Tx) Seal(seq Seq, f Final) (Skeleton, error) {
	sk, err := tx.Skeleton(seq)
	if err != nil {
		return sk, err
	}
	if sk.Status != protocol.StatusOpen || !f.Status.Final() {
		return sk, fmt.Errorf("node %q is %s and can not become %s", sk.ID, sk.Status, f.Status)
	}
	body, err := encodeContent(&f.Content)
	if err != nil {
		return sk, err
	}
	sk.Status, sk.Tokens, sk.Tokenizer = f.Status, uint64(max(f.Tokens, 0)), f.Tokenizer
	sk.Total = sk.Total.add(f.Content.Usage)
	tx.State.Total = tx.State.Total.add(f.Content.Usage)
	if err := errors.Join(
		tx.putNode(sk, body, tx.generationOf(seq)),
		tx.batch.Delete(key(famOpen, tx.session, uint64(seq)), nil),
		tx.dropRange(key(famPiece, tx.session, uint64(seq))),
	); err != nil {
		return sk, err
	}
	tx.Emit(protocol.Event{Type: protocol.EventNodeSealed, NodeID: sk.ID, Status: sk.Status})
	return sk, nil
}

// putNode writes a node's two records. old is the generation of the chunks that
// they replace, 0 for none.
func (tx *Tx) putNode(sk Skeleton, body []byte, old uint64) error {
	if old != 0 {
		if err := tx.dropRange(chunked{sk.Seq, old}.prefix(tx.session)); err != nil {
			return err
		}
	}
	record := inlineRecord(body)
	if len(body) > chunkSize {
		generation, err := tx.putChunks(sk.Seq, body)
		if err != nil {
			return err
		}
		record = chunkedRecord(body, generation)
	}
	return errors.Join(
		tx.putSkeleton(sk),
		tx.batch.Set(key(famContent, tx.session, uint64(sk.Seq)), record, nil),
	)
}

func (tx *Tx) putSkeleton(sk Skeleton) error {
	tx.keep(sk)
	return tx.batch.Set(key(famSkeleton, tx.session, uint64(sk.Seq)), sk.encode(), nil)
}

func (tx *Tx) dropRange(prefix []byte) error { return tx.batch.DeleteRange(prefix, after(prefix), nil) }

// Emit adds an event to the batch. Cursor, time and origin are set when it is
// written. Events hold references: no text of a conversation belongs in one. While
// a session is made there is nobody to be told.
func (tx *Tx) Emit(e protocol.Event) {
	if !tx.creating {
		tx.events = append(tx.events, e)
	}
}
