package transfer

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"convls/protocol"
	"convls/store"
)

// ExportFile exports a session to a file and returns its size in bytes. The file
// appears whole or not at all, and replaces one that is there.
func ExportFile(ctx context.Context, s *store.Session, o Options, path string) (size int64, err error) {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return 0, protocol.Errorf(protocol.CodeInvalidParams, "nothing can be written at %s: %v", path, err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(f.Name()))
		}
	}()
	if err := Export(ctx, s, o, f); err != nil {
		return 0, errors.Join(err, f.Close())
	}
	info, statErr := f.Stat()
	if err := errors.Join(statErr, f.Sync(), f.Close()); err != nil {
		return 0, fmt.Errorf("write the export: %w", err)
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return 0, protocol.Errorf(protocol.CodeInvalidParams, "the export can not be put at %s: %s", path, reasonOf(err, path))
	}
	return info.Size(), nil
}
