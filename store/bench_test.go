package store_test

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/batchrepr"
	"github.com/cockroachdb/pebble/v2/vfs"
	_ "modernc.org/sqlite"

	"convls/protocol"
	"convls/store"
)

// The benchmarks measure the ledger and its baselines in turn, in one run, and
// report how many times slower the ledger is: what else the machine does meanwhile
// slows both.

func openStore(b testing.TB, dir string, fs vfs.FS) *store.Store {
	b.Helper()
	s, err := store.Open(context.Background(), store.Options{Dir: dir, FS: fs})
	if err != nil {
		b.Fatal(err)
	}
	return s
}

func create(b testing.TB, s *store.Store) *store.Session {
	b.Helper()
	out, err := s.Create(context.Background(), store.Request{}, store.Info{Policy: "rolling"}, "be brief")
	if err != nil {
		b.Fatal(err)
	}
	sess, err := s.Session(out.Result)
	if err != nil {
		b.Fatal(err)
	}
	return sess
}

// message is what one durable append writes: a message of 1 KiB at HEAD.
var message = store.Content{Parts: []protocol.Part{{Type: protocol.PartText, Text: text(1 << 10)}}}

func text(n int) string {
	b := make([]byte, 0, n+8)
	for i := 0; len(b) < n; i++ {
		b = fmt.Appendf(b, "%x ", uint32(i)*2654435761)
	}
	return string(b[:n])
}

func appendMessage(tx *store.Tx) error {
	_, err := tx.Append(store.NodeSpec{Kind: protocol.KindUser, Predecessor: tx.State.Head, Status: protocol.StatusSealed, Content: message, Tokens: 256, Tokenizer: "estimate"})
	return err
}

// contender writes the records of one append durably, for one of many writers.
type contender interface {
	write(writer, i int) error
}

type ledger struct{ sessions []*store.Session }

func (l *ledger) write(writer, i int) error {
	_, err := store.Apply(context.Background(), l.sessions[writer], store.Request{ID: fmt.Sprint("r", i)}, func(tx *store.Tx) (int, error) {
		return 0, appendMessage(tx)
	})
	return err
}

// bare is Pebble with the same options and the same bytes.
type bare struct {
	db      *pebble.DB
	batches [][][]byte
}

func (p *bare) write(writer, i int) error {
	b := p.db.NewBatch()
	defer b.Close()
	if err := b.SetRepr(append([]byte(nil), p.batches[writer][i%len(p.batches[writer])]...)); err != nil {
		return err
	}
	return b.Commit(pebble.Sync)
}

// lite is SQLite with a write-ahead log and full synchronisation, and the same
// keys and values, one transaction an append.
type lite struct {
	mu      sync.Mutex
	db      *sql.DB
	put     *sql.Stmt
	batches [][][]byte
}

func openLite(b *testing.B, dir string, batches [][][]byte) *lite {
	b.Helper()
	db, err := sql.Open("sqlite", filepath.Join(dir, "db")+"?_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)")
	if err != nil {
		b.Fatal(err)
	}
	db.SetMaxOpenConns(1)
	if _, err := db.Exec("CREATE TABLE records (k BLOB PRIMARY KEY, v BLOB) WITHOUT ROWID"); err != nil {
		b.Fatal(err)
	}
	put, err := db.Prepare("INSERT OR REPLACE INTO records VALUES (?, ?)")
	if err != nil {
		b.Fatal(err)
	}
	return &lite{db: db, put: put, batches: batches}
}

func (l *lite) write(writer, i int) error {
	r := batchrepr.Read(l.batches[writer][i%len(l.batches[writer])])
	l.mu.Lock()
	defer l.mu.Unlock()
	tx, err := l.db.Begin()
	if err != nil {
		return err
	}
	put := tx.Stmt(l.put)
	for {
		_, k, v, ok, err := r.Next()
		if err != nil {
			return err
		}
		if !ok {
			return tx.Commit()
		}
		if v == nil {
			v = []byte{}
		}
		if _, err := put.Exec(k, v); err != nil {
			return err
		}
	}
}

// batches makes the batches of n appends for each writer.
func batches(b *testing.B, writers, n int) [][][]byte {
	b.Helper()
	s := openStore(b, "ledger", vfs.NewMem())
	defer s.Close()
	all := make([][][]byte, writers)
	for w := range all {
		sess := create(b, s)
		for range n {
			repr, err := store.BatchOf(sess, appendMessage)
			if err != nil {
				b.Fatal(err)
			}
			all[w] = append(all[w], repr)
		}
	}
	return all
}

// round lets each writer write n times and returns how long that took.
func round(b *testing.B, c contender, writers, from, n int) time.Duration {
	b.Helper()
	var wg sync.WaitGroup
	start := time.Now()
	for w := range writers {
		wg.Go(func() {
			for i := from; i < from+n; i++ {
				if err := c.write(w, i); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	return time.Since(start)
}

// BenchmarkAppend measures a durable append of 1 KiB, by one session and by 32 at
// once. x/pebble is the ledger against bare Pebble, x/sqlite SQLite against the
// ledger, x/one the rate of 32 sessions against that of one.
func BenchmarkAppend(b *testing.B) {
	const writers, perRound, each = 32, 64, 512
	dir := b.TempDir()
	all := batches(b, writers, each)
	s := openStore(b, filepath.Join(dir, "ledger"), nil)
	defer s.Close()
	l := &ledger{}
	for range writers {
		l.sessions = append(l.sessions, create(b, s))
	}
	o := store.PebbleOptions(s)
	db, err := pebble.Open(filepath.Join(dir, "pebble"), o)
	if err != nil {
		b.Fatal(err)
	}
	defer db.Close()
	defer o.Cache.Unref()
	sqlite := openLite(b, dir, all)
	defer sqlite.db.Close()
	contenders := []struct {
		name string
		c    contender
	}{{"ledger", l}, {"pebble", &bare{db, all}}, {"sqlite", sqlite}}
	next := 0
	var one, many [3]time.Duration
	rounds := 0
	for b.Loop() {
		for i, c := range contenders {
			one[i] += round(b, c.c, 1, next, perRound)
		}
		next += perRound
		for i, c := range contenders {
			many[i] += round(b, c.c, writers, next, perRound)
		}
		next += perRound
		rounds++
	}
	for i, c := range contenders {
		b.ReportMetric(float64(one[i].Microseconds())/float64(rounds*perRound), "µs/"+c.name)
		b.ReportMetric(float64(rounds*perRound*writers)/many[i].Seconds(), c.name+"32/s")
	}
	b.ReportMetric(float64(one[0])/float64(one[1]), "x/pebble")
	b.ReportMetric(float64(one[2])/float64(one[0]), "x/sqlite")
	b.ReportMetric(float64(many[0])/float64(many[1]), "x/pebble32")
	b.ReportMetric(float64(many[2])/float64(many[0]), "x/sqlite32")
	b.ReportMetric(float64(one[0])*writers/float64(many[0]), "x/one")
	b.ReportMetric(0, "ns/op") // a round of everything, which tells nothing
}
