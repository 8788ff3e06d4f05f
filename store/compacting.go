package store

import (
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"convls/protocol"
)

// BeginCompaction notes that a compaction is under way, so that clients are told
// of its end even if this process does not live to see it.
func (tx *Tx) BeginCompaction(id string, e protocol.Event) error {
	e.Type, e.CompactionID = protocol.EventCompactStarted, id
	tx.Emit(e)
	return tx.batch.Set(key(famRun, tx.session), frame([]byte(id)), nil)
}

// EndCompaction notes that the compaction has ended as the event says.
func (tx *Tx) EndCompaction(e protocol.Event) error {
	tx.Emit(e)
	return tx.batch.Delete(key(famRun, tx.session), nil)
}

// interruptCompaction tells of the end of a compaction that a dead process left
// under way. It had written nothing else.
func (tx *Tx) interruptCompaction() error {
	b, err := getCopy(tx.r, key(famRun, tx.session))
	if errors.Is(err, pebble.ErrNotFound) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read which compaction was under way: %w", err)
	}
	id, err := unframe(b)
	if err != nil {
		id = nil // the record is damaged: what matters is that it ends
	}
	return tx.EndCompaction(protocol.Event{Type: protocol.EventCompactFailed, CompactionID: string(id), Error: &protocol.NodeError{
		Code: protocol.CodeServerRestarted, Message: "convls ended while this compaction was under way, and nothing was changed", Retryable: true}})
}

// Undo takes a summary back for the policies that consult every summary, or, with
// undone false, gives it back.
func (tx *Tx) Undo(summary Skeleton, undone bool) error {
	k := key(famUndone, tx.session, uint64(summary.Seq))
	if !undone {
		return tx.batch.Delete(k, nil)
	}
	return tx.batch.Set(k, numberRecord(uint64(tx.now.UnixNano())), nil)
}

// Undone reports whether a person took a summary back.
func (v *view) Undone(seq Seq) (bool, error) { return v.has(key(famUndone, v.session, uint64(seq))) }

// Breaker is why automatic compaction does not run in a session.
type Breaker struct {
	// Failures are those in a row, with Model as the summariser.
	Failures int    `json:"failures,omitzero"`
	Model    string `json:"model,omitzero"`
	// Undone says that a person undid a compaction: what they took back is not done
	// again unasked.
	Undone bool `json:"undone,omitzero"`
}

// SetBreaker replaces the session's breaker.
func (tx *Tx) SetBreaker(b Breaker) error {
	k := key(famBreaker, tx.session)
	if b == (Breaker{}) {
		return tx.batch.Delete(k, nil)
	}
	body, err := protocol.Marshal(b)
	if err != nil {
		return fmt.Errorf("encode why compaction is off: %w", err)
	}
	return tx.batch.Set(k, frame(body), nil)
}

// Breaker returns the session's breaker. One that can not be read is no reason to
// stop.
func (v *view) Breaker() (Breaker, error) {
	var out Breaker
	b, err := getCopy(v.r, key(famBreaker, v.session))
	if errors.Is(err, pebble.ErrNotFound) {
		return out, nil
	}
	if err != nil {
		return out, fmt.Errorf("read why compaction is off: %w", err)
	}
	if body, err := unframe(b); err == nil && protocol.Unmarshal(body, &out) != nil {
		out = Breaker{}
	}
	return out, nil
}
