package store

import (
	"context"
	"errors"

	"convls/protocol"
)

// Create makes a session with its root node and returns its id. An info without an
// id gets a new one; id_conflict if there is such a session.
func (s *Store) Create(ctx context.Context, req Request, info Info, system string) (Outcome[string], error) {
	return CreateWith(ctx, s, req, info, system, NodeSpec{}, func(tx *Tx) (string, error) { return tx.id, nil })
}

// CreateWith makes a session and all that fill writes in one batch: an import
// stores a whole session or nothing of it. root is the root node's spec; its kind
// and status are set here. HEAD begins at the root and is not moved by appends
// that say HeadNeutral.
//
// A session that nobody knew has no reader who could follow its events, so
// session_created is the only one that is kept.
func CreateWith[R any](ctx context.Context, s *Store, req Request, info Info, system string, root NodeSpec, fill func(*Tx) (R, error)) (Outcome[R], error) {
	release, old, err := s.claim(ctx, req.ID)
	if err != nil {
		return Outcome[R]{}, err
	}
	if old != nil {
		release()
		return repeat[R](s, req, old)
	}
	sess, err := s.reserve(&info)
	if err != nil {
		release()
		return Outcome[R]{}, err
	}
	done := func() {
		if !sess.live.Load() { // it failed
			s.forget(sess)
		}
		release()
	}
	return apply(ctx, sess, req, true, done, func(tx *Tx) (R, error) {
		var none R
		if info.CreatedAt.IsZero() {
			info.CreatedAt = tx.now
		}
		tx.receipts, tx.info = storeWide, &info
		root.Kind, root.Status, root.Predecessor, root.Caller = protocol.KindRoot, protocol.StatusSealed, 0, 0
		if root.Created.IsZero() {
			root.Created = info.CreatedAt
		}
		if _, err := tx.Append(root); err != nil {
			return none, err
		}
		if err := errors.Join(tx.batch.Set(sessionKey(info.ID), numberRecord(sess.num), nil), tx.SetSystem(system)); err != nil {
			return none, err
		}
		r, err := fill(tx)
		tx.creating = false
		tx.Emit(protocol.Event{Type: protocol.EventSessionCreated})
		return r, err
	})
}

// claim waits until no other request with this id makes or deletes a session, and
// returns the receipt of one that has. release must be called in the end, unless
// there is an error.
func (s *Store) claim(ctx context.Context, id string) (release func(), old *receipt, err error) {
	if id == "" {
		return func() {}, nil, nil
	}
	for {
		s.mu.Lock()
		running := s.running[id]
		if running == nil {
			break
		}
		s.mu.Unlock()
		select {
		case <-running:
		case <-ctx.Done():
			return nil, nil, ctx.Err()
		}
	}
	running := make(chan struct{})
	s.running[id] = running
	s.mu.Unlock()
	release = func() {
		s.mu.Lock()
		delete(s.running, id)
		s.mu.Unlock()
		close(running)
	}
	if err = s.enter(); err == nil {
		old, err = s.receipt(storeWide, id)
		s.leave()
	}
	if err != nil {
		release()
		return nil, nil, err
	}
	return release, old, nil
}

// reserve gives a session that is about to be made its id and number.
func (s *Store) reserve(info *Info) (*Session, error) {
	if info.ID == "" {
		info.ID = NewID("ses_")
	} else if err := checkID(info.ID); err != nil {
		return nil, err
	}
	if err := s.enter(); err != nil {
		return nil, err
	}
	defer s.leave()
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, err := s.get(sessionKey(info.ID)); err == nil || s.sessions[info.ID] != nil {
		return nil, protocol.Errorf(protocol.CodeIDConflict, "there is a session %q already", info.ID)
	}
	sess := s.newSession(info.ID, s.nextNum, State{Next: Root})
	s.nextNum++
	s.sessions[info.ID] = sess
	return sess, nil
}

func (s *Store) forget(sess *Session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sessions[sess.id] == sess {
		delete(s.sessions, sess.id)
	}
}

// DeleteSession takes a whole session away. Nothing of it may be open.
func (s *Store) DeleteSession(ctx context.Context, id string, req Request) (Outcome[string], error) {
	release, old, err := s.claim(ctx, req.ID)
	if err != nil {
		return Outcome[string]{}, err
	}
	if old != nil {
		release()
		return repeat[string](s, req, old)
	}
	sess, err := s.Session(id)
	if err != nil {
		release()
		return Outcome[string]{}, err
	}
	done := func() {
		if !sess.live.Load() {
			s.forget(sess)
		}
		release()
	}
	return apply(ctx, sess, req, false, done, func(tx *Tx) (string, error) {
		for seq, err := range tx.OpenNodes() {
			if err != nil {
				return "", err
			}
			return "", protocol.Errorf(protocol.CodeTurnRunning, "node %d of session %s is being written: cancel its turn first", seq, id)
		}
		for _, family := range sessionFamilies {
			if err := tx.dropRange(key(family, tx.session)); err != nil {
				return "", err
			}
		}
		tx.removed = true
		tx.receipts = storeWide
		tx.Emit(protocol.Event{Type: protocol.EventSessionDeleted})
		// The number is kept from being given out again: what the process that
		// deletes does not see, such as receipts, would be taken for the new one's.
		return id, errors.Join(
			tx.batch.Delete(sessionKey(id), nil),
			tx.batch.Set(key(famGone, tx.session), nil, nil),
		)
	})
}
