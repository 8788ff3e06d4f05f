package store

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"go.uber.org/zap"

	"convls/protocol"
)

// holderFile lies beside Pebble's lock and says who has it; the lock alone counts.
const holderFile = "convls-holder.json"

type holder struct {
	PID     int       `json:"pid"`
	Program string    `json:"program"`
	Since   time.Time `json:"since"`
}

// String names the holder, for people.
func (h holder) String() string {
	return fmt.Sprintf("%s, process %d, since %s", h.Program, h.PID, h.Since.Local().Format(time.DateTime))
}

// lockStore takes Pebble's directory lock ourselves, because Pebble's own error
// names neither the path nor the holder.
func lockStore(opts Options) (*pebble.Lock, error) {
	lock, err := pebble.LockDirectory(opts.Dir, opts.FS)
	if err != nil && !held(err) {
		return nil, protocol.Errorf(protocol.CodeStoreUnavailable, "the store %s can not be locked: %v: let this user write there, or choose another store with --data-dir", opts.Dir, err)
	}
	if err != nil {
		who := "another process"
		if h, err := readHolder(opts); err == nil && h.PID > 0 {
			who = h.String()
		}
		return nil, &protocol.Error{Code: protocol.CodeStoreLocked,
			Message: fmt.Sprintf("the store %s is in use by %s: close the editor or chat that uses it, or choose another store with --data-dir", opts.Dir, who),
			Data:    protocol.ErrorData{Holder: who, Retryable: true}, Cause: err}
	}
	if !opts.ReadOnly {
		if err := writeHolder(opts); err != nil {
			opts.Logger.Warn("the holder of the store's lock is not recorded", zap.Error(err))
		}
	}
	return lock, nil
}

// held reports whether a lock failed because somebody has it: any other reason,
// such as a folder that can not be written, is not cured by waiting.
func held(err error) bool {
	return !errors.Is(err, fs.ErrPermission) && !errors.Is(err, syscall.EROFS) && !errors.Is(err, fs.ErrNotExist)
}

func readHolder(opts Options) (h holder, err error) {
	f, err := opts.FS.Open(opts.FS.PathJoin(opts.Dir, holderFile))
	if err != nil {
		return h, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, 4096))
	if err == nil {
		err = protocol.Unmarshal(b, &h)
	}
	return h, err
}

func writeHolder(opts Options) error {
	b, err := protocol.Marshal(holder{os.Getpid(), opts.Program, opts.Clock()})
	if err != nil {
		return err
	}
	f, err := opts.FS.Create(opts.FS.PathJoin(opts.Dir, holderFile), vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	return err
}
