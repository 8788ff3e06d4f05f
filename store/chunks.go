package store

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/cockroachdb/pebble/v2"
)

// chunkSize is where content is cut. A value of many megabytes in one batch would
// stall the commits of other sessions for a quarter of a second; in pieces that go
// ahead of the batch it costs them 14 ms.
const chunkSize = 64 << 10

// chunked names the chunks of one version of a node's content. A generation is
// drawn at random, so that what a crash left behind is never taken for what came
// after it.
type chunked struct {
	seq        Seq
	generation uint64
}

func (c chunked) prefix(session uint64) []byte {
	return key(famChunk, session, uint64(c.seq), c.generation)
}

func (c chunked) mark(session uint64) []byte {
	return key(famWriting, session, uint64(c.seq), c.generation)
}

// putChunks writes a long content ahead of the batch and returns its generation.
// Until the batch with the content record is there nothing refers to the chunks; a
// mark, which the batch takes away, says so, and lets [Store.dropUnfinished] find
// what a crash leaves.
func (tx *Tx) putChunks(seq Seq, body []byte) (uint64, error) {
	c := chunked{seq, 1 + rand.Uint64N(1<<62)}
	tx.chunks = append(tx.chunks, c)
	if err := tx.store.db.Set(c.mark(tx.session), nil, pebble.NoSync); err != nil {
		return 0, fmt.Errorf("mark the chunks of node %d: %w", seq, err)
	}
	prefix := c.prefix(tx.session)
	for i := uint64(0); len(body) > 0; i++ {
		n := min(len(body), chunkSize)
		k := binary.BigEndian.AppendUint64(slices.Clip(prefix), i)
		if err := tx.store.db.Set(k, body[:n], pebble.NoSync); err != nil {
			return 0, fmt.Errorf("write a chunk of node %d: %w", seq, err)
		}
		body = body[n:]
	}
	return c.generation, tx.batch.Delete(c.mark(tx.session), nil)
}

// abandon takes the chunks of a transaction that failed away.
func (tx *Tx) abandon() error {
	var errs []error
	for _, c := range tx.chunks {
		errs = append(errs, tx.store.dropChunks(tx.session, c))
	}
	tx.chunks = nil
	return errors.Join(errs...)
}

func (s *Store) dropChunks(session uint64, c chunked) error {
	b := s.db.NewBatch()
	defer b.Close()
	prefix := c.prefix(session)
	if err := errors.Join(
		b.DeleteRange(prefix, after(prefix), nil),
		b.Delete(c.mark(session), nil),
		b.Commit(pebble.NoSync),
	); err != nil {
		return fmt.Errorf("drop the chunks of node %d, which was not stored: %w", c.seq, err)
	}
	return nil
}

// dropUnfinished takes away the chunks that a dead process wrote for a batch that
// never came. No reader could ever see them.
func (s *Store) dropUnfinished() error {
	it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: []byte{famWriting}, UpperBound: []byte{famWriting + 1}})
	if err != nil {
		return fmt.Errorf("look for unfinished contents: %w", err)
	}
	defer it.Close()
	for ok := it.First(); ok; ok = it.Next() {
		k := it.Key()
		if len(k) != 25 {
			continue
		}
		c := chunked{Seq(lastNumber(k[:17])), lastNumber(k)}
		if err := s.dropChunks(lastNumber(k[:9]), c); err != nil {
			return err
		}
	}
	if err := it.Error(); err != nil {
		return fmt.Errorf("look for unfinished contents: %w", err)
	}
	return nil
}

// generationOf returns the generation of the chunks of a node's content, 0 if it
// has none.
func (tx *Tx) generationOf(seq Seq) uint64 {
	b, err := getCopy(tx.r, key(famContent, tx.session, uint64(seq)))
	if err != nil || len(b) < contentHeader || b[1] != contentChunked {
		return 0
	}
	_, generation, err := readChunked(b)
	if err != nil {
		return 0
	}
	return generation
}
