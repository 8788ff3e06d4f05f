package store

import (
	"fmt"
	"strings"

	"github.com/cockroachdb/pebble/v2"

	"convls/protocol"
)

var pieceKinds = map[protocol.DeltaKind]byte{protocol.DeltaText: 1, protocol.DeltaReasoning: 2, protocol.DeltaToolArgs: 3}

// Checkpoint keeps a piece of streamed text of an open node. It does not wait for
// the disk: a sync of its own follows within a quarter of a second. The seal
// writes the whole and drops the pieces. A node's caller must end its checkpoints
// before it seals.
func (s *Session) Checkpoint(seq Seq, part int, kind protocol.DeltaKind, text string) error {
	k := pieceKinds[kind]
	if k == 0 || part < 0 {
		return fmt.Errorf("keep streamed text of node %d: there is no %s part %d", seq, kind, part)
	}
	if err := s.store.enter(); err != nil {
		return err
	}
	defer s.store.leave()
	if s.store.ReadOnly() {
		return s.store.readOnlyError()
	}
	if err := s.store.db.Merge(pieceKey(s.num, seq, part, k), []byte(text), pebble.NoSync); err != nil {
		return fmt.Errorf("keep streamed text of node %d: %w", seq, err)
	}
	s.store.dirty.Store(true)
	return nil
}

// Partial returns the parts that the streamed text of an open node makes so far.
// Half a tool call is left out: without its end it calls nothing.
func (v *view) Partial(seq Seq) ([]protocol.Part, error) {
	prefix := key(famPiece, v.session, uint64(seq))
	it, err := v.r.NewIter(&pebble.IterOptions{LowerBound: prefix, UpperBound: after(prefix)})
	if err != nil {
		return nil, fmt.Errorf("read streamed text: %w", err)
	}
	defer it.Close()
	var parts []protocol.Part
	for ok := it.First(); ok; ok = it.Next() {
		k := it.Key()
		if len(k) != len(prefix)+5 {
			continue
		}
		text := strings.ToValidUTF8(string(it.Value()), "\uFFFD")
		switch k[len(k)-1] {
		case pieceKinds[protocol.DeltaText]:
			parts = append(parts, protocol.Part{Type: protocol.PartText, Text: text})
		case pieceKinds[protocol.DeltaReasoning]:
			parts = append(parts, protocol.Part{Type: protocol.PartReasoning, Text: text})
		}
	}
	if err := it.Error(); err != nil {
		return nil, fmt.Errorf("read streamed text: %w", err)
	}
	return parts, nil
}
