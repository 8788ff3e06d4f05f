package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"

	"github.com/cockroachdb/pebble/v2"
	"go.uber.org/zap"

	"convls/protocol"
)

// Listed is a session as its records describe it.
type Listed struct {
	Info  Info
	State State
	// HeadID is the id of HEAD, Active that of the active summary or "".
	HeadID, Active string
	num            uint64
}

// Filter chooses sessions. Zero members choose all.
type Filter struct {
	// Query is looked for in title and workspace, without regard to case.
	Query     string
	Workspace string
	// After is where the page before ended.
	After string
	Limit int
}

// Sessions returns sessions, newest activity first, and where the next page
// begins, "" at the end. It reads session records only: the heads of all, which
// are small, and the records of those that are returned or that a query is asked
// of. A session that is damaged is left out and logged, so that it hides no other.
func (s *Store) Sessions(ctx context.Context, f Filter) ([]Listed, string, error) {
	if err := s.enter(); err != nil {
		return nil, "", err
	}
	defer s.leave()
	heads := slices.Collect(s.heads())
	slices.SortFunc(heads, func(a, b Listed) int {
		return cmp.Or(b.State.Updated.Compare(a.State.Updated), cmp.Compare(b.num, a.num))
	})
	if f.After != "" {
		at, num, err := parsePage(f.After)
		if err != nil {
			return nil, "", err
		}
		i := slices.IndexFunc(heads, func(l Listed) bool {
			u := l.State.Updated.UnixMilli()
			return u < at || u == at && l.num < num
		})
		if i < 0 {
			return nil, "", nil
		}
		heads = heads[i:]
	}
	f.Query = strings.ToLower(f.Query)
	var page []Listed
	for _, l := range heads {
		if err := ctx.Err(); err != nil {
			return nil, "", err
		}
		if !s.choose(f, &l) {
			continue
		}
		if f.Limit > 0 && len(page) == f.Limit {
			last := page[len(page)-1]
			return page, fmt.Sprintf("%d.%d", last.State.Updated.UnixMilli(), last.num), nil
		}
		s.settle(l.Info.ID)
		v := view{store: s, session: l.num, id: l.Info.ID, r: s.db}
		var err1, err2 error
		l.HeadID, err1 = v.idOf(l.State.Head)
		l.Active, err2 = v.idOf(l.State.Active)
		if err := errors.Join(err1, err2); err != nil {
			return nil, "", err
		}
		page = append(page, l)
	}
	return page, "", nil
}

// choose reads a session's record and reports whether f chooses it.
func (s *Store) choose(f Filter, l *Listed) bool {
	b, err := s.get(key(famInfo, l.num))
	if err == nil {
		l.Info, err = readInfo(b)
	}
	if err != nil {
		s.log.Error("a session's record can not be read and is not listed", zap.Uint64("session", l.num), zap.Error(err))
		return false
	}
	return (f.Workspace == "" || l.Info.Workspace == f.Workspace) &&
		(f.Query == "" || strings.Contains(strings.ToLower(l.Info.Title+"\n"+l.Info.Workspace), f.Query))
}

// settle waits for a mutation that may have been seen before it was synced: what
// is listed must not be taken back by a crash.
func (s *Store) settle(id string) {
	s.mu.Lock()
	sess := s.sessions[id]
	s.mu.Unlock()
	if sess != nil {
		sess.commit.RLock()
		defer sess.commit.RUnlock()
	}
}

func parsePage(cursor string) (at int64, num uint64, err error) {
	a, b, ok := strings.Cut(cursor, ".")
	at, err1 := strconv.ParseInt(a, 10, 64)
	num, err2 := strconv.ParseUint(b, 10, 64)
	if !ok || err1 != nil || err2 != nil {
		return 0, 0, protocol.Errorf(protocol.CodeInvalidParams, "cursor %q is not one that session/list gave", cursor)
	}
	return at, num, nil
}

// heads yields the head records of all sessions, by number.
func (s *Store) heads() iter.Seq[Listed] {
	return func(yield func(Listed) bool) {
		next := uint64(1)
		each := func(num uint64, b []byte) bool {
			next = num + 1
			state, err := decodeState(b)
			if err != nil {
				s.log.Error("a session's head record can not be read", zap.Uint64("session", num), zap.Error(err))
				return true
			}
			return yield(Listed{num: num, State: state})
		}
		v := view{store: s, r: s.db}
		for n, err := range v.numbers([]byte{famHead}) {
			if err != nil {
				// A block of the disk is damaged. Each session is asked for by itself: those
				// in other blocks can be read.
				s.log.Error("the sessions can not be read in one go", zap.Error(err))
				s.eachHead(next, each)
				return
			}
			if !each(n.Number, n.Value) {
				return
			}
		}
	}
}

// eachHead reads the head records of the sessions from this number on, one by one,
// by the numbers that their ids are kept with.
func (s *Store) eachHead(from uint64, each func(uint64, []byte) bool) {
	it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: []byte{famSession}, UpperBound: []byte{famSession + 1}})
	if err != nil {
		s.log.Error("the sessions can not be read one by one", zap.Error(err))
		return
	}
	defer it.Close()
	for ok := it.First(); ok; ok = it.Next() {
		num, err := readNumber(it.Value())
		if err != nil || num < from {
			continue
		}
		b, err := s.get(key(famHead, num))
		if err != nil {
			s.log.Error("a session's head record can not be read", zap.Uint64("session", num), zap.Error(err))
			continue
		}
		if !each(num, b) {
			return
		}
	}
	if err := it.Error(); err != nil {
		s.log.Error("not all sessions can be listed", zap.Error(err))
	}
}

// Count returns how many sessions there are.
func (s *Store) Count(ctx context.Context) (int64, error) {
	if err := s.enter(); err != nil {
		return 0, err
	}
	defer s.leave()
	n := int64(0)
	for range s.heads() {
		n++
	}
	return n, ctx.Err()
}
