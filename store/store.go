package store

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/maphash"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/errors/oserror"
	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"
	"github.com/cockroachdb/pebble/v2/vfs"
	"go.uber.org/zap"

	"convls/protocol"
)

// Format is the version of the records and keys. A store with a greater one is
// refused with store_newer.
const Format = 2

// pebbleFormat is fixed, because upgrades are one-way and must be ours to choose.
// It is one below the version that moves values out of the tree, which made
// stores of conversations larger, not smaller.
const pebbleFormat = pebble.FormatTableFormatV6

// syncEvery is how often streamed text that is not sealed yet reaches the disk.
const syncEvery = 250 * time.Millisecond

// stuckAfter is when a commit counts as stuck if the disk is full or refuses files.
const stuckAfter = 2 * time.Second

// Options say how a store is opened. The zero value of each has a default.
type Options struct {
	// Dir is the store's folder; it is made if it is not there.
	Dir string
	// FS is the file system; the disk by default. Tests give a crashable one.
	FS vfs.FS
	// Logger gets what Pebble says and what the store finds; none by default.
	Logger *zap.Logger
	// Clock is the time; time.Now by default.
	Clock func() time.Time
	// CacheBytes is how much of the tables is kept in memory; 16 MiB by default.
	CacheBytes int64
	// MemTableBytes is Pebble's memtable; 16 MiB by default.
	MemTableBytes uint64
	// ReadOnly opens without writing anything: nothing is recovered, and mutations
	// are refused.
	ReadOnly bool
	// Program names the opener in the message that a second one gets.
	Program string
	// OnFatal is called once, when Pebble can not go on (its log can not be written).
	// It tells clients and ends the process, or returns and leaves that to others:
	// Pebble does not go on, and every use of the store is answered with the error. By
	// default the process exits with status 70.
	OnFatal func(error)
}

// Store is an open ledger. Its methods are safe for concurrent use.
type Store struct {
	opts  Options
	db    *pebble.DB
	cache *pebble.Cache
	lock  *pebble.Lock
	log   *zap.Logger
	epoch string
	seed  maphash.Seed // of the hashes of request ids
	// nearlyFull says that the store is read-only because the disk was below the
	// reserve; see regain.
	nearlyFull atomic.Bool
	stuckAfter time.Duration
	recovered  []Recovered

	mu       sync.Mutex
	sessions map[string]*Session
	running  map[string]chan struct{} // request ids of those that make or delete sessions
	nextNum  uint64

	clock    sync.Mutex
	lastTime time.Time

	life   sync.Mutex
	uses   int
	closed bool
	idle   chan struct{} // closed when a closed store is not used any more
	// quiet, if it is not nil, is closed when nobody uses the store.
	quiet chan struct{}
	// reopening is closed when the ledger was opened anew, nil at all other times.
	reopening chan struct{}
	fatal     error         // why Pebble can not go on
	dead      chan struct{} // closed with fatal

	opened   atomic.Bool // Pebble is
	listener atomic.Pointer[func(Commit)]
	stuck    atomic.Int32 // commits that wait for the disk
	// unwritable is why the last flush failed, nil once one succeeds.
	unwritable atomic.Pointer[error]

	dirty       atomic.Bool
	stop        chan struct{}
	synced      sync.WaitGroup
	receiptsDay uint64
}

// Commit is what a mutation changed, told after it was synced.
type Commit struct {
	SessionID string
	// Events are complete but for their nodes; see [Session.Events].
	Events []protocol.Event
}

// Recovered is a node that a dead process had left open.
type Recovered struct {
	SessionID string
	NodeID    string
}

// Open opens the ledger, and seals as interrupted, with the text that had reached
// the disk, what a dead process left open.
//
// With less than [Reserve] left on the disk the ledger is opened read-only, because
// Pebble would wait for room for ever; see [Store.ReadOnly]. The first mutation that
// is asked for when there is room again opens it for writing, and then seals what
// was left open.
//
// Errors: store_locked names the process that has the store, store_newer says
// that a newer program wrote it. Nothing is ever deleted or truncated here.
func Open(ctx context.Context, opts Options) (*Store, error) {
	if opts.FS == nil {
		opts.FS = vfs.Default
	}
	if opts.Logger == nil {
		opts.Logger = zap.NewNop()
	}
	if opts.Clock == nil {
		opts.Clock = time.Now
	}
	if opts.CacheBytes == 0 {
		opts.CacheBytes = 16 << 20
	}
	if opts.MemTableBytes == 0 {
		opts.MemTableBytes = 16 << 20
	}
	if opts.Program == "" {
		opts.Program = "convls"
	}
	if opts.OnFatal == nil {
		opts.OnFatal = func(error) { os.Exit(70) } //nolint:forbidigo // Pebble must not go on, and there is nobody to return to
	}
	if err := opts.FS.MkdirAll(opts.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the store's folder: %w", err)
	}
	lock, err := lockStore(opts)
	if err != nil {
		return nil, err
	}
	s := &Store{opts: opts, lock: lock, log: opts.Logger, seed: maphash.MakeSeed(), stuckAfter: stuckAfter, sessions: map[string]*Session{},
		running: map[string]chan struct{}{}, idle: make(chan struct{}), dead: make(chan struct{}), stop: make(chan struct{})}
	if err := s.open(ctx); err != nil {
		return nil, errors.Join(err, s.release())
	}
	if !s.ReadOnly() {
		s.begin()
	}
	return s, nil
}

// begin starts what goes on in the background while the store is open for writing.
func (s *Store) begin() {
	s.synced.Add(1)
	go s.syncLoop()
}

func (s *Store) open(ctx context.Context) error {
	desc, err := pebble.Peek(s.opts.Dir, s.opts.FS)
	if err != nil && !errors.Is(err, oserror.ErrNotExist) {
		return fmt.Errorf("look at the store %s: %w", s.opts.Dir, err)
	}
	there := desc != nil && desc.Exists
	if there && desc.FormatMajorVersion > pebbleFormat {
		return s.newerError("Pebble's format %d", desc.FormatMajorVersion)
	}
	if full := s.space(); full != nil && !s.opts.ReadOnly {
		if !there {
			return full
		}
		s.log.Warn("the store is opened read-only", zap.Error(full))
		s.nearlyFull.Store(true)
	}
	if s.db, err = pebble.Open(s.opts.Dir, s.pebbleOptions()); err != nil {
		return fmt.Errorf("open the store %s: %w", s.opts.Dir, err)
	}
	s.opened.Store(true)
	if err := s.readMeta(); err != nil {
		return err
	}
	if s.ReadOnly() {
		return nil
	}
	// What is damaged is left as it is, and does not keep the rest from being used.
	for _, step := range []func() error{s.dropOldReceipts, s.dropUnfinished, func() error { return s.recover(ctx) }} {
		err := step()
		if err != nil && !isBadRecord(err) {
			return err
		}
		if err != nil {
			s.log.Error("a part of the store is damaged", zap.Error(err))
		}
	}
	return nil
}

// newerError refuses a store that this program would not understand.
func (s *Store) newerError(format string, args ...any) error {
	needs := fmt.Sprintf(format, args...)
	return &protocol.Error{Code: protocol.CodeStoreNewer,
		Message: fmt.Sprintf("the store %s has %s, and was written by a newer convls: use that", s.opts.Dir, needs),
		Data:    protocol.ErrorData{Needs: needs}}
}

func (s *Store) pebbleOptions() *pebble.Options {
	// Pebble takes the memory of its memtables out of the cache, and there are two of
	// them while one is flushed: without room for both, no block would ever be kept.
	s.cache = pebble.NewCache(s.opts.CacheBytes + 2*int64(s.opts.MemTableBytes))
	o := &pebble.Options{
		FS:                         s.opts.FS,
		Lock:                       s.lock,
		Cache:                      s.cache,
		FormatMajorVersion:         pebbleFormat,
		MemTableSize:               s.opts.MemTableBytes,
		ReadOnly:                   s.ReadOnly(),
		Logger:                     pebbleLogger{s},
		CompactionConcurrencyRange: s.compactions,
		// By default one damaged block ends the process. What it holds is refused to
		// who asks for it, and the rest goes on.
		EventListener: &pebble.EventListener{
			DataCorruption: func(i pebble.DataCorruptionInfo) {
				s.log.Error("a file of the store is damaged", zap.String("file", i.Path), zap.Error(i.Details))
			},
			BackgroundError: func(err error) {
				s.log.Error("a file of the store can not be written", zap.Error(err))
				s.unwritable.Store(&err)
			},
			FlushEnd: func(i pebble.FlushInfo) {
				if i.Err == nil {
					s.unwritable.Store(nil)
				}
			},
		},
	}
	// Filters on every level make asking for a missing key four times cheaper, and
	// receipts and names are mostly missing.
	for i := range o.Levels {
		o.Levels[i].FilterPolicy = bloom.FilterPolicy(10)
	}
	o.ApplyCompressionSettings(func() pebble.DBCompressionSettings { return pebble.DBCompressionBalanced })
	return o
}

// compactions tells Pebble how many compactions may run at once: one, and none
// while the store is opened, unless it is in a bad way. After a crash Pebble
// flushes what was in the log, which makes a compaction due, and then waits for
// it: a second, after many writes. It can as well come with the next flush.
func (s *Store) compactions() (lower, upper int) {
	if s.opened.Load() {
		return 1, 1
	}
	return 0, 1
}

// readMeta reads or writes the store's own facts: format, epoch, next number.
func (s *Store) readMeta() error {
	format, err := s.get(metaKey("format"))
	switch {
	case errors.Is(err, pebble.ErrNotFound) && s.ReadOnly():
		return errors.New("the store is empty, and opened read-only")
	case errors.Is(err, pebble.ErrNotFound):
		return s.initMeta()
	case isBadRecord(err):
		s.log.Error("the store's format can not be read, and is taken for the present one", zap.Error(err))
	case err != nil:
		return fmt.Errorf("read the store's format: %w", err)
	default:
		if n, err := strconv.Atoi(string(format)); err != nil {
			return protocol.Errorf(protocol.CodeStoreDamaged, "the store's format record reads %q", format)
		} else if n > Format {
			return s.newerError("store format %d", n)
		} else if n < Format && !s.ReadOnly() {
			if err := s.upgrade(n); err != nil {
				return err
			}
		}
	}
	epoch, err := s.get(metaKey("epoch"))
	switch {
	case s.epoch != "":
		return s.findNext() // opened anew: clients have cursors of this epoch
	case isBadRecord(err):
		s.log.Error("the store's epoch can not be read, and clients have to take snapshots", zap.Error(err))
		epoch = newEpoch()
	case err != nil:
		return fmt.Errorf("read the store's epoch: %w", err)
	}
	s.epoch = string(epoch)
	return s.findNext()
}

// findNext finds the next session number: one more than the greatest ever given
// out.
func (s *Store) findNext() error {
	s.nextNum = max(s.nextNum, 1)
	for _, family := range []byte{famHead, famGone, famInfo, famSkeleton} {
		it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: []byte{family}, UpperBound: []byte{family + 1}})
		if err != nil {
			return fmt.Errorf("look for sessions: %w", err)
		}
		if it.Last() {
			s.nextNum = max(s.nextNum, lastNumber(it.Key()[:9])+1)
		}
		err = it.Close()
		switch {
		case isBadRecord(err):
			// One that can not be seen must not get a second session: leave room.
			s.log.Error("the sessions can not be counted", zap.Error(err))
			s.nextNum += 1 << 20
		case err != nil:
			return fmt.Errorf("look for sessions: %w", err)
		}
	}
	return nil
}

func newEpoch() []byte {
	var r [6]byte
	_, _ = rand.Read(r[:]) // it never fails
	return hex.AppendEncode(nil, r[:])
}

func (s *Store) initMeta() error {
	s.epoch, s.nextNum = string(newEpoch()), 1
	b := s.db.NewBatch()
	defer b.Close()
	if err := errors.Join(
		b.Set(metaKey("format"), strconv.AppendInt(nil, Format, 10), nil),
		b.Set(metaKey("epoch"), []byte(s.epoch), nil),
		b.Commit(pebble.Sync),
	); err != nil {
		return fmt.Errorf("write the store's first records: %w", err)
	}
	return nil
}

// Close waits for the mutations that are under way and for the readers that are
// open, refuses new ones, and closes the ledger. It seals nothing: what is open
// stays open and is found by the next Open. Callers end their turns first. A second
// Close does nothing.
func (s *Store) Close() error {
	s.life.Lock()
	again, used, fatal := s.closed, s.uses > 0, s.fatal
	s.closed = true
	s.life.Unlock()
	if again {
		return nil
	}
	close(s.stop)
	if fatal != nil {
		return fatal // Pebble would wait for ever; the process ends
	}
	if used {
		<-s.idle
	}
	s.synced.Wait()
	if s.stuck.Load() > 0 {
		return s.space() // as above: commits that could not be written end with the process
	}
	var err error
	if !s.ReadOnly() && s.hindrance() == nil {
		// So that the next start has no log to read: it takes a few ms, whatever was
		// written before.
		if err = s.db.Flush(); err != nil {
			err = fmt.Errorf("write the last records to their tables: %w", err)
		}
	}
	return errors.Join(err, s.release())
}

func (s *Store) release() error { return errors.Join(s.closePebble(), s.lock.Close()) }

func (s *Store) closePebble() error {
	var err error
	if s.db != nil {
		err = s.db.Close()
		s.db = nil
	}
	if s.cache != nil {
		s.cache.Unref()
		s.cache = nil
	}
	return err
}

// OnCommit sets the function that is told of every mutation, in the order of each
// session, after it is on disk. It is called with the session locked: it must not
// block, and must not call the store. Set it before the first mutation.
func (s *Store) OnCommit(f func(Commit)) { s.listener.Store(&f) }

// Recovered returns the nodes that Open had to seal as interrupted.
func (s *Store) Recovered() []Recovered { return s.recovered }

// Dir returns the store's folder.
func (s *Store) Dir() string { return s.opts.Dir }

// ReadOnly reports whether mutations are refused: because Options say so, or because
// the disk was below the reserve when the store was opened, and nobody has asked for
// a mutation since there is room again.
func (s *Store) ReadOnly() bool { return s.opts.ReadOnly || s.nearlyFull.Load() }

// Epoch names this ledger's history: cursors of another epoch are foreign.
func (s *Store) Epoch() string { return s.epoch }

// Bytes returns the space that the store takes on disk, 0 if it is closed.
func (s *Store) Bytes() int64 {
	if s.enter() != nil {
		return 0
	}
	defer s.leave()
	return int64(s.db.Metrics().DiskSpaceUsage())
}

// now returns the time, always later than the time before, so that what is
// ordered by time keeps the order in which it happened when a clock is set back,
// in this process or before it was started.
func (s *Store) now() time.Time {
	t := s.opts.Clock().UTC().Truncate(time.Millisecond)
	s.clock.Lock()
	defer s.clock.Unlock()
	if s.lastTime.IsZero() {
		s.lastTime = s.newestUpdate()
	}
	if !t.After(s.lastTime) {
		t = s.lastTime.Add(time.Millisecond)
	}
	s.lastTime = t
	return t
}

// newestUpdate returns when the last mutation of any session was.
func (s *Store) newestUpdate() time.Time {
	newest := time.UnixMilli(0).UTC()
	for head := range s.heads() {
		if head.State.Updated.After(newest) {
			newest = head.State.Updated
		}
	}
	return newest
}

// get returns a copy of the value under k.
func (s *Store) get(k []byte) ([]byte, error) { return getCopy(s.db, k) }

func getCopy(r pebble.Reader, k []byte) ([]byte, error) {
	v, closer, err := r.Get(k)
	if err != nil {
		return nil, err
	}
	c := append([]byte(nil), v...)
	return c, closer.Close()
}

// cursor returns the wire form of event number n.
func (s *Store) cursor(n uint64) string { return s.epoch + "." + strconv.FormatUint(n, 10) }

// parseCursor returns the event number of a cursor, and false if it is not one of
// this store's epoch.
func (s *Store) parseCursor(c string) (uint64, bool) {
	epoch, number, ok := strings.Cut(c, ".")
	n, err := strconv.ParseUint(number, 10, 64)
	return n, ok && err == nil && epoch == s.epoch
}

// syncLoop brings streamed text to the disk: pieces are merged unsynced, and
// while there are any, one log sync a quarter of a second covers those of all
// sessions.
func (s *Store) syncLoop() {
	defer s.synced.Done()
	tick := time.NewTicker(syncEvery)
	defer tick.Stop()
	for {
		select {
		case <-s.stop:
			return
		case <-s.dead:
			return
		case <-tick.C:
			if err := s.dropOldReceipts(); err != nil {
				s.log.Error("old receipts are not dropped", zap.Error(err))
			}
			if !s.dirty.Swap(false) {
				continue
			}
			if err := s.db.LogData(nil, pebble.Sync); err != nil {
				s.dirty.Store(true)
				s.log.Error("sync of streamed text failed", zap.Error(err))
			}
		}
	}
}
