package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/dustin/go-humanize"

	"convls/protocol"
	"convls/store"
)

// maxProblems is how many problems of the ledger a report repeats.
const maxProblems = 1000

// examineStore describes the store in dir, from inside if it can be opened.
func (x *examination) examineStore(ctx context.Context, dir string) {
	r := &x.report
	r.Store = Store{Path: dir, FreeBytes: freeSpace(dir), ReserveBytes: store.Reserve}
	r.judgeSpace(r.Store.FreeBytes)

	entries, err := os.ReadDir(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		x.noStore("there is no store yet", "it is made when convls first starts")
		return
	case err != nil:
		r.problem("store", "check the path and its permissions, or choose another folder with --data-dir", "%v", err)
		return
	case !isStore(entries):
		x.noStore("the folder "+dir+" holds no store", "it is made there when convls first starts")
		return
	}
	r.Store.Found, r.Store.Bytes = true, size(dir)

	s, err := store.Open(ctx, store.Options{Dir: dir, ReadOnly: true, Program: "convls doctor"})
	if err != nil {
		x.unopened(err)
		return
	}
	// It was opened read-only: closing it can lose nothing.
	defer func() { _ = s.Close() }()
	r.Store.Opened, r.Store.Format = true, store.Format
	if r.Store.Sessions, err = s.Count(ctx); err != nil {
		r.problem("store", "run convls doctor --check", "the sessions can not be counted: %v", err)
	}
	if x.check {
		x.checkLedger(ctx, s)
	}
}

// judgeSpace says whether the disk has enough left; -1 is not known.
func (r *Report) judgeSpace(free int64) {
	switch {
	case free < 0:
	case free < store.Reserve:
		r.problem("store", "make room on that disk, or move the store with --data-dir or CONVLS_DATA_DIR",
			"the disk has %s left, and nothing new is stored below %s", bytes(free), bytes(store.Reserve))
	case free < 4*store.Reserve:
		r.note("store", "make room on that disk", "the disk has only %s left", bytes(free))
	}
}

// noStore notes that there is none, which is as it should be before the first
// start, but not when it should be checked.
func (x *examination) noStore(what, next string) {
	if x.check {
		x.report.problem("check", "name the right folder with --data-dir or CONVLS_DATA_DIR", "%s, so there is nothing to check", what)
		return
	}
	x.report.note("store", next, "%s", what)
}

// unopened says why the store was not opened.
func (x *examination) unopened(err error) {
	r := &x.report
	refused, _ := errors.AsType[*protocol.Error](err)
	switch {
	case refused != nil && refused.Code == protocol.CodeStoreLocked:
		r.Store.Holder = refused.Data.Holder
		if x.check {
			r.problem("check", "close the editors that use convls, wait until that process has ended, and try again", "the store is in use by %s, so it can not be checked", refused.Data.Holder)
			return
		}
		r.note("store", "", "the store is in use by %s: what is in it was not looked at", refused.Data.Holder)
	case refused != nil && refused.Code == protocol.CodeStoreNewer:
		r.problem("store", "update convls: a newer one has written this store", "%s", refused.Message)
	case errors.Is(err, fs.ErrPermission):
		r.problem("store", "give this user the right to read and write the folder", "%v", err)
	default:
		r.problem("store", "nothing was changed: copy the folder before anything else, then compare with a backup, or begin a new store with --data-dir", "the store can not be opened: %v", err)
	}
}

// checkLedger reads everything in the store.
func (x *examination) checkLedger(ctx context.Context, s *store.Store) {
	r := &x.report
	c := &Check{Sessions: r.Store.Sessions, Problems: []store.Problem{}}
	r.Check = c
	began := time.Now()
	progress := x.tell(fmt.Sprintf("reading %d %s, %s", c.Sessions, plural(int(c.Sessions), "session"), bytes(r.Store.Bytes)))
	err := s.CheckEach(ctx, func(p store.Problem) {
		c.ProblemCount++
		if len(c.Problems) < maxProblems {
			c.Problems = append(c.Problems, p)
		}
	}, progress.reached)
	progress.end()
	c.DurationMS = time.Since(began).Milliseconds()
	c.Complete = err == nil
	if err != nil && ctx.Err() == nil {
		r.problem("check", "nothing was changed: copy the folder before anything else", "the store could not be read to its end: %v", err)
	}
	if c.ProblemCount > 0 {
		r.problem("check", "nothing was changed, and the rest of the ledger works: copy the folder, then save what you need with convls export",
			"the ledger has %d %s", c.ProblemCount, plural(c.ProblemCount, "fault"))
	}
}

// isStore reports whether the files of a folder are those of a store. One that has
// none must not be opened: that would put a lock into it.
func isStore(entries []os.DirEntry) bool {
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), "MANIFEST-") {
			return true
		}
	}
	return false
}

// size returns the space that the files in a folder take. Files come and go while
// another process has the store, so those that are gone count nothing.
func size(dir string) int64 {
	var sum int64
	// The function never returns an error, so there is none.
	_ = filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return nil
		}
		if info, err := e.Info(); err == nil {
			sum += info.Size()
		}
		return nil
	})
	return sum
}

// freeSpace returns what the disk of dir, or of the nearest folder above that is
// there, has left for this user; -1 if that is not known.
func freeSpace(dir string) int64 {
	for {
		if usage, err := vfs.Default.GetDiskUsage(dir); err == nil {
			return int64(usage.AvailBytes)
		} else if !errors.Is(err, fs.ErrNotExist) || filepath.Dir(dir) == dir {
			return -1
		}
		dir = filepath.Dir(dir)
	}
}

func bytes(n int64) string { return humanize.IBytes(uint64(max(n, 0))) }

func plural(n int, word string) string {
	if n == 1 {
		return word
	}
	return word + "s"
}
