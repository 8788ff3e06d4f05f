package store

import (
	"bytes"
	"errors"
	"io"

	"github.com/cockroachdb/pebble/v2"
)

// Sequential makes a picture quick for many reads near each other, such as those
// of a window of a graph: one iterator a kind of record stays where the last read
// left it, and skeletons are read with their neighbours. A single read is slower
// for it. It lasts until the picture is closed.
func (r *Reader) Sequential() {
	if _, ok := r.r.(*sequential); ok {
		return
	}
	r.r = &sequential{Reader: r.snap, session: r.session, iterators: map[byte]*pebble.Iterator{}}
}

// skeletonsBehind is how many numbers before a predecessor that is near are read with
// it: walks go up.
const skeletonsBehind = 24

// sequential answers Get by iterators that stay open.
type sequential struct {
	pebble.Reader
	session   uint64
	iterators map[byte]*pebble.Iterator
}

// iterator returns the iterator of the family of a session's key.
func (s *sequential) iterator(family byte) (*pebble.Iterator, error) {
	if it, ok := s.iterators[family]; ok {
		return it, nil
	}
	prefix := key(family, s.session)
	it, err := s.NewIter(&pebble.IterOptions{LowerBound: prefix, UpperBound: after(prefix)})
	if err != nil {
		return nil, err
	}
	s.iterators[family] = it
	return it, nil
}

// Get returns a record, valid until the next read of its family.
func (s *sequential) Get(k []byte) ([]byte, io.Closer, error) {
	if !bytes.HasPrefix(k[1:], key(0, s.session)[1:]) || k[0] == famReceipt {
		return s.Reader.Get(k) // the store's own
	}
	it, err := s.iterator(k[0])
	if err != nil {
		return nil, nil, err
	}
	if !it.SeekGE(k) || !bytes.Equal(it.Key(), k) {
		if err := it.Error(); err != nil {
			return nil, nil, err
		}
		return nil, nil, pebble.ErrNotFound
	}
	v, err := it.ValueAndErr()
	return v, io.NopCloser(nil), err
}

// numbersAtOnce is how many records a walk over a family takes before it hands them
// out, because who gets them may read the same family.
const numbersAtOnce = 64

// numbers yields the records whose keys begin with prefix, from the key lower on.
func (s *sequential) numbers(prefix, lower []byte, yield func(Numbered, error) bool) {
	it, err := s.iterator(prefix[0])
	if err != nil {
		yield(Numbered{}, err)
		return
	}
	for {
		var some []Numbered
		ok := it.SeekGE(lower)
		for ; ok && len(some) < numbersAtOnce && bytes.HasPrefix(it.Key(), prefix); ok = it.Next() {
			value, err := it.ValueAndErr()
			if err != nil {
				yield(Numbered{}, err)
				return
			}
			some = append(some, Numbered{lastNumber(it.Key()), bytes.Clone(value)})
			lower = append(lower[:0:0], it.Key()...)
		}
		if err := it.Error(); err != nil {
			yield(Numbered{}, err)
			return
		}
		for _, n := range some {
			if !yield(n, nil) {
				return
			}
		}
		if len(some) < numbersAtOnce {
			return
		}
		lower = append(lower, 0)
	}
}

func (s *sequential) close() error {
	var errs []error
	for _, it := range s.iterators {
		errs = append(errs, it.Close())
	}
	return errors.Join(errs...)
}

// readBehind keeps the skeletons of the numbers up to seq. What is damaged, or not
// there, is left to who asks for it.
func (v *view) readBehind(seq Seq) {
	near, ok := v.r.(*sequential)
	if _, kept := v.kept[seq]; !ok || kept {
		return
	}
	it, err := near.iterator(famSkeleton)
	if err != nil {
		return
	}
	from := seq - min(seq, skeletonsBehind)
	end := key(famSkeleton, v.session, uint64(seq))
	for ok := it.SeekGE(key(famSkeleton, v.session, uint64(from))); ok && bytes.Compare(it.Key(), end) <= 0; ok = it.Next() {
		b, err := it.ValueAndErr()
		if err != nil {
			return
		}
		if sk, err := decodeSkeleton(Seq(lastNumber(it.Key())), b); err == nil {
			v.keep(sk)
		}
	}
}
