package store

import (
	"bytes"
	"errors"
	"fmt"
	"hash/maphash"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"go.uber.org/zap"

	"convls/protocol"
)

// receipt remembers a mutation for those who send it again.
type receipt struct {
	Hash   []byte       `json:"hash"`
	Cursor uint64       `json:"cursor"`
	Result protocol.Raw `json:"result"`
}

// storeWide is the session number under which receipts of making and deleting
// sessions are kept: they outlive the session, or come before it.
const storeWide = 0

// receiptDay is the day that a receipt is kept under, so that old ones go by
// range: they stay for 24 hours at least, for 48 at most.
func receiptDay(t time.Time) uint64 { return uint64(max(t.Unix()/86400, 1)) }

// receiptDays are the days whose receipts count on a day. That is one day ahead,
// too: a clock that was set back over midnight must not make a request happen
// twice.
func receiptDays(day uint64) [3]uint64 { return [...]uint64{day, day - 1, day + 1} }

// requests are the request ids that a session has receipts of, as hashes. Nearly
// every request is new, and asking the ledger three times for what is not there
// was a third of the cost of an append.
type requests struct {
	day    uint64
	hashes map[uint64]struct{}
}

func (s *Store) requestHash(id string) uint64 { return maphash.String(s.seed, id) }

// known reports whether the session may have a receipt of this request. It is
// called with the session locked for writing.
func (s *Session) known(id string) (bool, error) {
	day := receiptDay(s.store.opts.Clock())
	if s.requests.day != day {
		hashes := map[uint64]struct{}{}
		for _, d := range receiptDays(day) {
			prefix := receiptKey(d, s.num, "")
			it, err := s.store.db.NewIter(&pebble.IterOptions{LowerBound: prefix, UpperBound: after(prefix)})
			if err != nil {
				return false, fmt.Errorf("look for receipts: %w", err)
			}
			for ok := it.First(); ok; ok = it.Next() {
				hashes[s.store.requestHash(string(it.Key()[len(prefix):]))] = struct{}{}
			}
			if err := it.Close(); err != nil {
				// Better a request can be carried out twice than none any more.
				s.store.log.Error("receipts can not be read", zap.String("session", s.id), zap.Error(err))
			}
		}
		s.requests = requests{day, hashes}
	}
	_, known := s.requests.hashes[s.store.requestHash(id)]
	return known, nil
}

// receiptOf returns the receipt of a request to this session, nil if there is none.
func (s *Session) receiptOf(id string) (*receipt, error) {
	known, err := s.known(id)
	if err != nil || !known {
		return nil, err
	}
	return s.store.receipt(s.num, id)
}

// receipt returns the receipt of a request, nil if there is none.
func (s *Store) receipt(session uint64, id string) (*receipt, error) {
	for _, d := range receiptDays(receiptDay(s.opts.Clock())) {
		b, err := s.get(receiptKey(d, session, id))
		if errors.Is(err, pebble.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("look for the receipt of request %q: %w", id, err)
		}
		r := &receipt{}
		body, err := unframe(b)
		if err == nil {
			err = protocol.Unmarshal(body, r)
		}
		if err != nil {
			return nil, &protocol.Error{Code: protocol.CodeStoreDamaged, Message: fmt.Sprintf("request %q was carried out, and its receipt is damaged", id), Cause: err}
		}
		return r, nil
	}
	return nil, nil
}

func repeat[R any](s *Store, req Request, old *receipt) (Outcome[R], error) {
	var out Outcome[R]
	if !bytes.Equal(old.Hash, req.Hash) {
		return out, protocol.Errorf(protocol.CodeIDConflict,
			"request_id %q was used for another request: use a new id for each request, and the same only to send one again", req.ID)
	}
	if err := protocol.Unmarshal(old.Result, &out.Result); err != nil {
		return out, fmt.Errorf("read the receipt of request %q: %w", req.ID, err)
	}
	out.Cursor, out.Repeated = s.cursor(old.Cursor), true
	return out, nil
}

func (tx *Tx) putReceipt(result any) error {
	b, err := protocol.Marshal(result)
	if err != nil {
		return fmt.Errorf("encode the result: %w", err)
	}
	cursor := tx.State.Events + uint64(len(tx.events))
	r, err := protocol.Marshal(receipt{Hash: tx.req.Hash, Cursor: cursor, Result: b})
	if err != nil {
		return fmt.Errorf("encode the receipt: %w", err)
	}
	if tx.receipts == tx.session {
		// Before the commit, which may end unseen: what is known too much costs a look.
		tx.sess.requests.hashes[tx.store.requestHash(tx.req.ID)] = struct{}{}
	}
	return tx.batch.Set(receiptKey(receiptDay(tx.store.opts.Clock()), tx.receipts, tx.req.ID), frame(r), nil)
}

// dropOldReceipts drops, once a day, what is older than yesterday.
func (s *Store) dropOldReceipts() error {
	day := receiptDay(s.opts.Clock())
	if day == s.receiptsDay {
		return nil
	}
	end := receiptKey(day-1, 0, "")
	it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: []byte{famReceipt}, UpperBound: end})
	if err != nil {
		return fmt.Errorf("look for old receipts: %w", err)
	}
	some := it.First()
	if err := it.Close(); err != nil {
		return fmt.Errorf("look for old receipts: %w", err)
	}
	if some {
		if err := s.db.DeleteRange([]byte{famReceipt}, end, pebble.NoSync); err != nil {
			return fmt.Errorf("drop old receipts: %w", err)
		}
	}
	s.receiptsDay = day
	return nil
}
