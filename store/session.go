package store

import (
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"
	"github.com/oklog/ulid/v2"

	"convls/protocol"
)

// Session is one conversation of an open store. Its mutations are admitted one at
// a time; different sessions do not wait for each other, and share the disk's
// syncs.
type Session struct {
	store *Store
	num   uint64
	id    string

	// write admits one mutation at a time: who has put something in may write.
	write    chan struct{}
	requests requests // guarded by write
	// commit is held while a batch is visible and not yet synced, so that no reader
	// is told of what a crash could take back.
	commit sync.RWMutex
	state  State // guarded by commit
	// stuck says that a batch is visible and not synced, although commit is not held:
	// the disk is full, and who asks is told so instead of having to wait.
	stuck bool // guarded by commit
	// live is false before the session is made and after it is deleted.
	live atomic.Bool
}

func (s *Store) newSession(id string, num uint64, state State) *Session {
	return &Session{store: s, num: num, id: id, state: state, write: make(chan struct{}, 1)}
}

// ID returns the session's id.
func (s *Session) ID() string { return s.id }

// Session returns the session with this id; unknown_session if there is none.
func (s *Store) Session(id string) (*Session, error) {
	if err := s.enter(); err != nil {
		return nil, err
	}
	defer s.leave()
	return s.session(id)
}

// session is [Store.Session] for who is within the store.
func (s *Store) session(id string) (*Session, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if sess := s.sessions[id]; sess != nil {
		if !sess.live.Load() {
			return nil, unknownSession(id)
		}
		return sess, nil
	}
	b, err := s.get(sessionKey(id))
	if errors.Is(err, pebble.ErrNotFound) {
		return nil, unknownSession(id)
	}
	if err != nil {
		return nil, fmt.Errorf("look up session %q: %w", id, err)
	}
	num, err := readNumber(b)
	if err != nil {
		return nil, &protocol.Error{Code: protocol.CodeStoreDamaged, Message: fmt.Sprintf("the record of the id of session %q is damaged", id), Cause: err}
	}
	head, err := s.get(key(famHead, num))
	var state State
	if err == nil {
		state, err = decodeState(head)
	}
	if err != nil {
		return nil, &protocol.Error{Code: protocol.CodeStoreDamaged, Message: fmt.Sprintf("the head record of session %q is damaged", id), Cause: err}
	}
	sess := s.newSession(id, num, state)
	sess.live.Store(true)
	s.sessions[id] = sess
	return sess, nil
}

func unknownSession(id string) error {
	if id == "" {
		return protocol.Errorf(protocol.CodeUnknownSession, "session_id is missing or empty")
	}
	return protocol.Errorf(protocol.CodeUnknownSession, "there is no session %q: convls sessions, or convls/session/list, names them all", id)
}

// NewID returns a new node or session id with this prefix. Ids are never used
// twice and never say anything about order.
func NewID(prefix string) string { return prefix + ulid.Make().String() }

// idPrefix makes a summary's id tell what it is, for people; programs ask the kind.
func idPrefix(k protocol.Kind) string {
	if k == protocol.KindSummary {
		return "sum_"
	}
	return ""
}

// Reader returns a consistent picture of the session as it is on disk now; it
// waits for a mutation that is being synced. It must be closed, soon: it keeps old
// versions of records from being dropped, and the store from being closed.
func (s *Session) Reader() (*Reader, error) {
	if err := s.store.enter(); err != nil {
		return nil, err
	}
	r, err := s.picture()
	if err != nil {
		s.store.leave()
	}
	return r, err
}

func (s *Session) picture() (*Reader, error) {
	s.commit.RLock()
	defer s.commit.RUnlock()
	if !s.live.Load() {
		return nil, unknownSession(s.id)
	}
	if s.stuck {
		return nil, s.stuckError()
	}
	snap := s.store.db.NewSnapshot()
	return &Reader{view: view{store: s.store, session: s.num, id: s.id, r: snap}, State: s.state, snap: snap}, nil
}

// State returns the session's state as it is on disk now.
func (s *Session) State() State {
	s.commit.RLock()
	defer s.commit.RUnlock()
	return s.state
}

// Reader is a consistent picture of a session. It is for one goroutine.
type Reader struct {
	view
	State State
	snap  *pebble.Snapshot
}

// Close releases the picture. It is called once.
func (r *Reader) Close() error {
	defer r.store.leave()
	var err error
	if s, ok := r.r.(*sequential); ok {
		err = s.close()
	}
	return errors.Join(err, r.snap.Close())
}

// Cursor returns the cursor of the newest event in the picture.
func (r *Reader) Cursor() string { return r.store.cursor(r.State.Events) }

// Other takes a picture of another session of the same store. The caller closes it.
func (r *Reader) Other(id string) (*Reader, error) {
	s, err := r.store.Session(id)
	if err != nil {
		return nil, err
	}
	return s.Reader()
}

// SessionID returns the id of the session that is read.
func (r *Reader) SessionID() string { return r.id }

// checkID refuses ids that could not be used in keys, file names and URIs.
func checkID(id string) error {
	if id == "" || len(id) > 128 {
		return protocol.Errorf(protocol.CodeInvalidParams, "an id has 1 to 128 characters, %q has %d", id, len(id))
	}
	for _, c := range []byte(id) {
		ok := c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' || c == '-' || c == '.'
		if !ok {
			return protocol.Errorf(protocol.CodeInvalidParams, "id %s has characters other than letters, digits, '_', '-' and '.'", strconv.Quote(id))
		}
	}
	return nil
}
