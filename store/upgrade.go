package store

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/cockroachdb/pebble/v2"
	"go.uber.org/zap"
)

// upgrade brings a store of an older format to the present one. Each step can be
// done twice, and the format is written last, so a process that dies on the way
// leaves a store that the next start upgrades. What can not be read stays as it is.
//
//   - 1 to 2: chain nodes get lanes.
func (s *Store) upgrade(from int) error {
	s.log.Info("the store is brought to the present format", zap.Int("from", from), zap.Int("to", Format))
	v := view{store: s, r: s.db}
	for num, err := range v.owners(famSkeleton) {
		if err == nil {
			err = s.layOut(num)
		}
		if err != nil {
			return fmt.Errorf("bring the store to format %d: %w", Format, err)
		}
	}
	b := s.db.NewBatch()
	defer func() { _ = b.Close() }()
	if err := errors.Join(
		b.Set(metaKey("format"), strconv.AppendInt(nil, Format, 10), nil),
		b.Commit(pebble.Sync),
	); err != nil {
		return fmt.Errorf("write the store's format: %w", err)
	}
	return nil
}
