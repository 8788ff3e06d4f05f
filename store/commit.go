package store

import (
	"fmt"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"go.uber.org/zap"

	"convls/protocol"
)

// nothing reports whether the transaction changed nothing.
func (tx *Tx) nothing() bool {
	return tx.batch.Empty() && len(tx.events) == 0 && tx.State == tx.before
}

// finish adds events and the head record to the batch.
func (tx *Tx) finish() error {
	if err := tx.putEvents(); err != nil {
		return err
	}
	tx.State.Updated = tx.now
	if tx.removed {
		return nil
	}
	return tx.batch.Set(key(famHead, tx.session), tx.State.encode(), nil)
}

// commit syncs the batch, and only then publishes: Pebble shows a batch before it
// is durable. end is called once, when the batch is durable and published.
//
// A commit can be stuck: on a disk that is full, or takes no new files, Pebble tries
// to flush for ever. Then, after two seconds, whoever asked is told so. The session
// stays locked until the commit returns, which it does when there is room again;
// whether it did before the process ended is told by the request's receipt.
func (tx *Tx) commit(end func()) error {
	s := tx.sess
	s.commit.Lock()
	result := make(chan error, 1)
	go func() { result <- tx.batch.Commit(pebble.Sync) }()
	timer := time.NewTimer(s.store.stuckAfter)
	defer timer.Stop()
	for {
		select {
		case err := <-result:
			return tx.publish(err, end)
		case <-s.store.dead:
			s.stuck = true
			s.commit.Unlock()
			return s.store.failed()
		case <-timer.C:
			if s.store.hindrance() == nil {
				timer.Reset(s.store.stuckAfter) // it is only slow
				continue
			}
			s.stuck = true
			s.commit.Unlock()
			await := func() error {
				select {
				case err := <-result:
					s.commit.Lock()
					s.stuck = false
					return tx.publish(err, end)
				case <-s.store.dead:
					return s.store.failed()
				}
			}
			if tx.req.Unreserved {
				return await() // a turn that ends; nobody waits for an answer
			}
			s.store.stuck.Add(1)
			go func() {
				defer s.store.stuck.Add(-1)
				if err := await(); err != nil {
					s.store.log.Error("a commit that was stuck failed", zap.String("session", s.id), zap.Error(err))
				}
			}()
			return s.stuckError()
		}
	}
}

// publish ends a commit; the session's commit lock is held and gets released.
func (tx *Tx) publish(err error, end func()) error {
	defer end()
	defer tx.sess.commit.Unlock()
	defer tx.batch.Close()
	if err != nil {
		return fmt.Errorf("write to the ledger: %w", err)
	}
	tx.sess.state = tx.State
	tx.sess.live.Store(!tx.removed)
	if f := tx.store.listener.Load(); f != nil && len(tx.events) > 0 {
		(*f)(Commit{SessionID: tx.id, Events: tx.events})
	}
	return nil
}

// stuckError answers for a session whose last batch has not reached the disk.
func (s *Session) stuckError() error {
	why := "it is full"
	if err := s.store.hindrance(); err != nil {
		why = err.Error()
	}
	return &protocol.Error{Code: protocol.CodeDiskFull,
		Message: fmt.Sprintf("the last change of session %s has not reached the disk (%s): sending the request again, with its request_id, tells what became of it", s.id, why),
		Data:    protocol.ErrorData{Retryable: true}}
}
