package store

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"

	"github.com/cockroachdb/pebble/v2"
	"go.uber.org/zap"

	"convls/protocol"
)

// view reads one session from a Pebble reader. [Reader] and [Tx] are built on it.
type view struct {
	store   *Store
	session uint64
	id      string
	r       pebble.Reader
	// kept are skeletons that were read or written, so that they need not be decoded
	// again: a picture does not change, and a transaction is the only one to change
	// its session. Questions about ancestors come by the same few nodes every time.
	kept map[Seq]Skeleton
}

// damaged says that a record of a node can not be used, and that all others still
// can. id may be "" where it is not known.
func (v *view) damaged(seq Seq, id, what string, err error) error {
	if id == "" {
		id = seq.placeholder()
	}
	return &protocol.Error{Code: protocol.CodeStoreDamaged,
		Message: fmt.Sprintf("%s of node %s of session %s is damaged: other branches are not affected; `convls doctor --check` lists all damage", what, id, v.id),
		Data:    protocol.ErrorData{NodeID: id}, Cause: err}
}

// placeholder stands for the id of a node whose record can not be read. No node
// has such an id.
func (s Seq) placeholder() string { return "#" + strconv.FormatUint(uint64(s), 10) }

// isDamage reports whether err is about records that are damaged or, against all
// rules, not there: what must not keep others from being used.
func isDamage(err error) bool {
	c := protocol.CodeOf(err)
	return c == protocol.CodeStoreDamaged || c == protocol.CodeUnknownNode
}

// Skeleton returns the skeleton of node seq; unknown_node if there is none.
func (v *view) Skeleton(seq Seq) (Skeleton, error) {
	if s, ok := v.kept[seq]; ok {
		return s, nil
	}
	b, closer, err := v.r.Get(key(famSkeleton, v.session, uint64(seq)))
	if err != nil {
		if errors.Is(err, pebble.ErrNotFound) {
			return Skeleton{}, protocol.Errorf(protocol.CodeUnknownNode, "session %s has no node %d", v.id, seq)
		}
		return Skeleton{}, v.damaged(seq, "", "the skeleton", err)
	}
	s, err := decodeSkeleton(seq, b)
	if cerr := closer.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return Skeleton{}, v.damaged(seq, "", "the skeleton", err)
	}
	v.keep(s)
	return s, nil
}

// maxKept bounds the skeletons that are kept at hand: 1 MiB.
const maxKept = 4_096

func (v *view) keep(s Skeleton) {
	switch {
	case v.kept == nil:
		v.kept = map[Seq]Skeleton{}
	case len(v.kept) >= maxKept:
		clear(v.kept)
	}
	v.kept[s.Seq] = s
}

// number reads a record made by [numberRecord].
func (v *view) number(k []byte) (uint64, error) {
	b, closer, err := v.r.Get(k)
	if err != nil {
		return 0, err
	}
	n, err := readNumber(b)
	return n, errors.Join(err, closer.Close())
}

// seqOf returns the number of the node with this id, 0 if there is none.
func (v *view) seqOf(id string) (Seq, error) {
	n, err := v.number(keyString(famID, v.session, id))
	switch {
	case errors.Is(err, pebble.ErrNotFound):
		return 0, nil
	case err != nil:
		return 0, v.damaged(0, id, "the id record", err)
	}
	return Seq(n), nil
}

// Lookup returns the skeleton of the node with this id; unknown_node if there is
// none.
func (v *view) Lookup(id string) (Skeleton, error) {
	seq, err := v.seqOf(id)
	if err != nil {
		return Skeleton{}, err
	}
	if seq == 0 {
		return Skeleton{}, protocol.Errorf(protocol.CodeUnknownNode, "session %s has no node %q", v.id, id)
	}
	s, err := v.Skeleton(seq)
	if err == nil && s.ID != id {
		return s, v.damaged(seq, id, "the id record", errUnknown)
	}
	return s, err
}

// LookupChain is [view.Lookup] for ids that must name a chain node;
// not_a_chain_node if they do not.
func (v *view) LookupChain(id string) (Skeleton, error) {
	s, err := v.Lookup(id)
	if err == nil && !s.Kind.OnChain() {
		err = protocol.Errorf(protocol.CodeNotAChainNode, "node %q is a %s: only the conversation's own nodes can be used here", id, s.Kind)
	}
	return s, err
}

// ID returns the id of node seq, "" for 0.
func (v *view) ID(seq Seq) (string, error) {
	if seq == 0 {
		return "", nil
	}
	s, err := v.Skeleton(seq)
	return s.ID, err
}

// idOf is [view.ID] with a placeholder where the id can not be read, so that
// damage to one node does not spread to its neighbours.
func (v *view) idOf(seq Seq) (string, error) {
	id, err := v.ID(seq)
	if isDamage(err) {
		return seq.placeholder(), nil
	}
	return id, err
}

// Content returns the content of node seq; unknown_node if there is no such node.
func (v *view) Content(seq Seq) (*Content, error) {
	c, err := v.readContent(seq)
	if err == nil {
		return c, nil
	}
	sk, serr := v.Skeleton(seq)
	if protocol.CodeOf(serr) == protocol.CodeUnknownNode {
		return nil, serr
	}
	return nil, v.damaged(seq, sk.ID, "the content", err)
}

func (v *view) readContent(seq Seq) (*Content, error) {
	b, closer, err := v.r.Get(key(famContent, v.session, uint64(seq)))
	if err != nil {
		return nil, err
	}
	defer closer.Close()
	return readContent(b, func(generation, index uint64) ([]byte, error) {
		return getCopy(v.r, key(famChunk, v.session, uint64(seq), generation, index))
	})
}

// numbers yields the last numbers and the values of the keys with this prefix,
// beginning at the numbers in from. The value is only valid until the next step.
func (v *view) numbers(prefix []byte, from ...uint64) iter.Seq2[Numbered, error] {
	return func(yield func(Numbered, error) bool) {
		lower := slices.Clip(prefix)
		for _, n := range from {
			lower = binary.BigEndian.AppendUint64(lower, n)
		}
		if near, ok := v.r.(*sequential); ok {
			near.numbers(prefix, lower, func(n Numbered, err error) bool {
				if err != nil {
					err = v.readError(err)
				}
				return yield(n, err)
			})
			return
		}
		it, err := v.r.NewIter(&pebble.IterOptions{LowerBound: lower, UpperBound: after(prefix)})
		if err != nil {
			yield(Numbered{}, v.readError(err))
			return
		}
		defer it.Close()
		for ok := it.First(); ok; ok = it.Next() {
			value, err := it.ValueAndErr()
			if !yield(Numbered{lastNumber(it.Key()), value}, err) {
				return
			}
		}
		if err := it.Error(); err != nil {
			yield(Numbered{}, v.readError(err))
		}
	}
}

// Numbered is a record under a number.
type Numbered struct {
	Number uint64
	Value  []byte
}

// linked yields the nodes under an edge family, skipping those a kind test
// refuses.
func (v *view) linked(family byte, from Seq, want func(protocol.Kind) bool) iter.Seq2[Seq, error] {
	return func(yield func(Seq, error) bool) {
		for n, err := range v.numbers(key(family, v.session, uint64(from))) {
			if err != nil {
				yield(0, err)
				return
			}
			if len(n.Value) == 1 {
				if k, ok := kindOf(n.Value[0]); ok && !want(k) {
					continue
				}
			}
			if !yield(Seq(n.Number), nil) {
				return
			}
		}
	}
}

// Children yields the chain nodes that follow seq, in the order they were
// written.
func (v *view) Children(seq Seq) iter.Seq2[Seq, error] {
	return v.linked(famChild, seq, protocol.Kind.OnChain)
}

// Hanging yields the nodes off the chain that have seq as their predecessor:
// summaries, calls and notices.
func (v *view) Hanging(seq Seq) iter.Seq2[Seq, error] {
	return v.linked(famChild, seq, func(k protocol.Kind) bool { return !k.OnChain() })
}

// Callees yields the nodes that seq invoked, in the order they were written.
func (v *view) Callees(seq Seq) iter.Seq2[Seq, error] {
	return v.linked(famCallee, seq, func(protocol.Kind) bool { return true })
}

// Summaries yields all summaries of the session, oldest first.
func (v *view) Summaries() iter.Seq2[Seq, error] {
	return func(yield func(Seq, error) bool) {
		for n, err := range v.numbers(key(famSummary, v.session)) {
			if !yield(Seq(n.Number), err) {
				return
			}
		}
	}
}

// has reports whether there is a record under k.
func (v *view) has(k []byte) (bool, error) {
	_, closer, err := v.r.Get(k)
	if errors.Is(err, pebble.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, v.readError(err)
	}
	return true, closer.Close()
}

// readError is an error of Pebble's: store_damaged where a block of the disk is.
func (v *view) readError(err error) error {
	if pebble.IsCorruptionError(err) {
		return &protocol.Error{Code: protocol.CodeStoreDamaged, Message: "a part of the store is damaged: `convls doctor --check` lists all damage", Cause: err}
	}
	return fmt.Errorf("read the store: %w", err)
}

// Void reports whether summary seq lost a covered node to a delete or a
// redaction.
func (v *view) Void(seq Seq) (bool, error) { return v.has(key(famVoid, v.session, uint64(seq))) }

// Pinned reports whether node seq is pinned.
func (v *view) Pinned(seq Seq) (bool, error) { return v.has(key(famPin, v.session, uint64(seq))) }

// Pins yields the pinned nodes in the order of the chain's numbers.
func (v *view) Pins() iter.Seq2[Seq, error] {
	return func(yield func(Seq, error) bool) {
		for n, err := range v.numbers(key(famPin, v.session)) {
			if !yield(Seq(n.Number), err) {
				return
			}
		}
	}
}

// OpenNodes yields the nodes that are being written.
func (v *view) OpenNodes() iter.Seq2[Seq, error] {
	return func(yield func(Seq, error) bool) {
		for n, err := range v.numbers(key(famOpen, v.session)) {
			if !yield(Seq(n.Number), err) {
				return
			}
		}
	}
}

// Queue returns the sends that wait, first to start first. One whose record is
// damaged is left out, so that it does not hold up the others; Check reports it.
func (v *view) Queue() ([]Queued, error) {
	var queue []Queued
	for n, err := range v.numbers(key(famQueue, v.session)) {
		if err != nil {
			return nil, err
		}
		q, err := readQueued(n)
		if err != nil {
			v.store.log.Error("a queued send can not be read and is left out", zap.String("session", v.id), zap.Uint64("number", n.Number), zap.Error(err))
			continue
		}
		queue = append(queue, q)
	}
	return queue, nil
}

func readQueued(n Numbered) (Queued, error) {
	q := Queued{Number: n.Number}
	body, err := unframe(n.Value)
	if err == nil {
		err = protocol.Unmarshal(body, &q)
	}
	return q, err
}

// Info returns the session's record.
func (v *view) Info() (Info, error) {
	b, err := getCopy(v.r, key(famInfo, v.session))
	var info Info
	if err == nil {
		info, err = readInfo(b)
	}
	if err != nil {
		return info, &protocol.Error{Code: protocol.CodeStoreDamaged, Message: "the record of session " + v.id + " is damaged", Cause: err}
	}
	return info, nil
}

func readInfo(b []byte) (Info, error) {
	var info Info
	body, err := unframe(b)
	if err == nil {
		err = protocol.Unmarshal(body, &info)
	}
	info.Policy = cmp.Or(info.Policy, protocol.PolicyRolling)
	return info, err
}

// Text returns the text with this SHA-256 (hex), such as a system prompt; "" for
// "".
func (v *view) Text(sum string) (string, error) {
	if sum == "" {
		return "", nil
	}
	b, err := getCopy(v.r, textKey(sum))
	if err == nil && textSum(string(b)) != sum {
		err = errChecksum
	}
	if err != nil {
		return "", &protocol.Error{Code: protocol.CodeStoreDamaged, Message: "the text " + sum + " can not be read", Cause: err}
	}
	return string(b), nil
}

// textSum returns the SHA-256 (hex) that a text is kept under.
func textSum(text string) string {
	h := sha256.Sum256([]byte(text))
	return hex.EncodeToString(h[:])
}
