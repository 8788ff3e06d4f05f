package store

import (
	"context"
	"errors"
	"time"

	"convls/protocol"
)

// Request is what a mutation carries besides its own parameters. The zero value
// is a mutation that nobody will repeat.
type Request struct {
	// ID and Hash make it idempotent: a second mutation with this id gets the first
	// one's result if the hash of the parameters is the same, and id_conflict if not.
	ID   string
	Hash []byte
	// ExpectedHead is the id of the node that the client believes to be HEAD.
	ExpectedHead string
	Origin       protocol.Origin
	// Cause is what head_moved events will give as their cause.
	Cause string
	// Unreserved lets a mutation use the disk space that is kept back for sealing
	// what runs.
	Unreserved bool
	// within says that the caller has entered the store.
	within bool
}

// Outcome is what [Apply] returns beside an error.
type Outcome[R any] struct {
	Result R
	// Cursor is that of the mutation's last event.
	Cursor string
	// Repeated says that the result is that of an earlier request with the same id.
	Repeated bool
}

// maxRequestID bounds request ids, in bytes.
const maxRequestID = 200

// Apply runs f in a transaction and returns when its one batch is synced. If f
// returns an error nothing was changed. R is kept, as JSON, for those who send
// the request again, for a day: it should name nodes, and hold nothing of what
// they say, because a redaction does not reach it.
func Apply[R any](ctx context.Context, s *Session, req Request, f func(*Tx) (R, error)) (Outcome[R], error) {
	return apply(ctx, s, req, false, func() {}, f)
}

// apply is [Apply], and also makes sessions. done is called once, when the
// mutation has ended: where its commit is stuck, after apply has returned.
func apply[R any](ctx context.Context, s *Session, req Request, creating bool, done func(), f func(*Tx) (R, error)) (out Outcome[R], err error) {
	release := done
	defer func() {
		if release != nil {
			release()
		}
	}()
	if !req.within {
		if err := s.store.regain(ctx); err != nil {
			return out, err
		}
		if err := s.store.enter(); err != nil {
			return out, err
		}
		defer s.store.leave()
	}
	if err := s.store.admit(ctx, req); err != nil {
		return out, err
	}
	if err := s.lock(ctx); err != nil {
		return out, err
	}
	release = func() { <-s.write; done() }
	if !creating && !s.live.Load() {
		return out, unknownSession(s.id)
	}
	if req.ID != "" {
		old, err := s.receiptOf(req.ID)
		if err != nil {
			return out, err
		}
		if old != nil {
			return repeat[R](s.store, req, old)
		}
	}
	tx := newTx(s, s.State(), req)
	tx.creating = creating
	committed := false
	defer func() {
		if committed {
			return
		}
		if cerr := errors.Join(tx.abandon(), tx.batch.Close()); cerr != nil {
			err = errors.Join(err, cerr)
		}
	}()
	if err := tx.checkExpectedHead(); err != nil {
		return out, err
	}
	result, err := f(tx)
	if err != nil {
		return out, err
	}
	if err := tx.checkHead(); err != nil {
		return out, err
	}
	if req.ID != "" {
		if err := tx.putReceipt(result); err != nil {
			return out, err
		}
	}
	if tx.nothing() {
		return Outcome[R]{Result: result, Cursor: s.store.cursor(tx.State.Events)}, nil
	}
	if err := tx.finish(); err != nil {
		return out, err
	}
	committed = true
	end := release
	release = nil // from here on, it is commit that ends the mutation
	if err := tx.commit(end); err != nil {
		return out, err
	}
	return Outcome[R]{Result: result, Cursor: s.store.cursor(tx.State.Events)}, nil
}

// admit refuses mutations that are not to begin at all.
func (s *Store) admit(ctx context.Context, req Request) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if s.ReadOnly() {
		return s.readOnlyError()
	}
	if len(req.ID) > maxRequestID {
		return protocol.Errorf(protocol.CodeInvalidParams, "request_id is longer than %d bytes", maxRequestID)
	}
	if req.Unreserved {
		return nil
	}
	return s.space()
}

// lock waits until no other mutation of the session is under way, or nothing
// would come of waiting.
func (s *Session) lock(ctx context.Context) error {
	select {
	case s.write <- struct{}{}:
		return nil
	default:
	}
	tick := time.NewTicker(s.store.stuckAfter)
	defer tick.Stop()
	for {
		select {
		case s.write <- struct{}{}:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		case <-s.store.dead:
			return s.store.failed()
		case <-tick.C:
			s.commit.RLock()
			stuck := s.stuck
			s.commit.RUnlock()
			if stuck {
				return s.stuckError()
			}
		}
	}
}
