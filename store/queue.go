package store

import (
	"convls/protocol"
)

// Enqueue adds a send that waits and returns its place, from 1.
func (tx *Tx) Enqueue(q Queued) (int, error) {
	q.Number, q.At = 1, tx.now
	place := 1
	for n, err := range tx.numbers(key(famQueue, tx.session)) {
		if err != nil {
			return 0, err
		}
		q.Number = n.Number + 1
		place++
	}
	tx.Emit(protocol.Event{Type: protocol.EventTurnQueued, ReplyID: q.ReplyID, UserID: q.UserID, Position: place})
	return place, tx.putQueued(q)
}

func (tx *Tx) putQueued(q Queued) error {
	b, err := protocol.Marshal(q)
	if err != nil {
		return &protocol.Error{Code: protocol.CodeInvalidParams, Message: "the message can not be stored: " + err.Error()}
	}
	return tx.batch.Set(key(famQueue, tx.session, q.Number), frame(b), nil)
}

// Requeue replaces a waiting send.
func (tx *Tx) Requeue(q Queued) error {
	tx.Emit(protocol.Event{Type: protocol.EventQueueChanged})
	return tx.putQueued(q)
}

// Dequeue takes a send out of the queue.
func (tx *Tx) Dequeue(q Queued) error {
	tx.Emit(protocol.Event{Type: protocol.EventQueueChanged})
	return tx.batch.Delete(key(famQueue, tx.session, q.Number), nil)
}

// HoldQueue holds every send that waits: the turn before it did not succeed.
func (tx *Tx) HoldQueue() error {
	queue, err := tx.Queue()
	if err != nil {
		return err
	}
	changed := false
	for _, q := range queue {
		if q.Held {
			continue
		}
		q.Held, changed = true, true
		if err := tx.putQueued(q); err != nil {
			return err
		}
	}
	if changed {
		tx.Emit(protocol.Event{Type: protocol.EventQueueChanged})
	}
	return nil
}
