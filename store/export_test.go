package store

import (
	"slices"

	"github.com/cockroachdb/pebble/v2"
)

// BatchOf returns the bytes of the batch that a mutation would commit, and commits
// it without a sync: what the benchmarks give to others to write.
func BatchOf(s *Session, f func(*Tx) error) ([]byte, error) {
	tx := newTx(s, s.State(), Request{})
	defer tx.batch.Close()
	if err := f(tx); err != nil {
		return nil, err
	}
	if err := tx.finish(); err != nil {
		return nil, err
	}
	b := slices.Clone(tx.batch.Repr())
	if err := tx.batch.Commit(pebble.NoSync); err != nil {
		return nil, err
	}
	s.state = tx.State
	return b, nil
}

// PebbleOptions returns the options that a store at dir opens Pebble with, for a
// bare one beside it.
func PebbleOptions(s *Store) *pebble.Options {
	cache := s.cache
	o := s.pebbleOptions()
	s.cache, o.Lock = cache, nil
	return o
}
