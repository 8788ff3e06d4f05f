package store_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"convls/store"
	"convls/test/bench"
)

// sizes are the histories that are measured, in nodes. CONVLS_BENCH_NODES caps
// them: the longest takes a minute to write.
func sizes(b *testing.B) []int {
	b.Helper()
	most := 1_000_000
	if v := os.Getenv("CONVLS_BENCH_NODES"); v != "" {
		var err error
		if most, err = strconv.Atoi(v); err != nil {
			b.Fatal(err)
		}
	}
	var sizes []int
	for n := 1_000; n <= most && n <= 1_000_000; n *= 10 {
		sizes = append(sizes, n)
	}
	return sizes
}

// The environment of a process that TestMain turns into one that opens, or fills, a
// store.
const (
	openDir     = "CONVLS_BENCH_OPEN"
	openSession = "CONVLS_BENCH_SESSION"
	fillDir     = "CONVLS_BENCH_FILL"
	fillNodes   = "CONVLS_BENCH_FILL_NODES"
)

// TestMain lets the test binary be the processes that BenchmarkOpen measures and
// kills.
func TestMain(m *testing.M) {
	if dir := os.Getenv(fillDir); dir != "" {
		if err := fillAndWait(dir, os.Getenv(fillNodes)); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		os.Exit(1)
	}
	if dir := os.Getenv(openDir); dir != "" {
		if err := openAndRead(dir, os.Getenv(openSession)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// openAndRead opens a store, reads the last 20 messages of a session, and prints
// how long both took, in µs, and what memory the process has, in KiB.
func openAndRead(dir, id string) error {
	ctx := context.Background()
	start := time.Now()
	s, err := store.Open(ctx, store.Options{Dir: dir})
	if err != nil {
		return err
	}
	opened := time.Since(start)
	sess, err := s.Session(id)
	if err != nil {
		return err
	}
	r, err := sess.Reader()
	if err != nil {
		return err
	}
	head, err := r.Skeleton(r.State.Head)
	if err != nil {
		return err
	}
	n := 0
	for sk, err := range r.Spine(head) {
		if err != nil {
			return err
		}
		if _, err := r.Node(sk); err != nil {
			return err
		}
		if n++; n == 20 {
			break
		}
	}
	read := time.Since(start) - opened
	fmt.Println(opened.Microseconds(), read.Microseconds(), resident())
	if err := r.Close(); err != nil {
		return err
	}
	return s.Close()
}

// resident returns the resident memory of the process, in KiB; 0 where /proc does
// not tell.
func resident() int {
	b, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(b)) {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			n, _ := strconv.Atoi(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")))
			return n
		}
	}
	return 0
}

// fillAndWait fills a session, prints its id, and waits to be killed.
func fillAndWait(dir, nodes string) error {
	n, err := strconv.Atoi(nodes)
	if err != nil {
		return err
	}
	ctx := context.Background()
	s, err := store.Open(ctx, store.Options{Dir: dir})
	if err != nil {
		return err
	}
	out, err := s.Create(ctx, store.Request{}, store.Info{}, "be brief")
	if err != nil {
		return err
	}
	sess, err := s.Session(out.Result)
	if err != nil {
		return err
	}
	if _, err := bench.Fill(ctx, sess, n, bench.Options{}); err != nil {
		return err
	}
	fmt.Println(sess.ID())
	select {}
}

// killed fills a store in another process, kills that, and returns the session's
// id.
func killed(b *testing.B, dir string, n int) string {
	b.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), fillDir+"="+dir, fillNodes+"="+strconv.Itoa(n))
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	id, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		b.Fatalf("fill %d nodes: %v", n, err)
	}
	if err := cmd.Process.Kill(); err != nil {
		b.Fatal(err)
	}
	if err := cmd.Wait(); err == nil {
		b.Fatal("it was not killed")
	}
	return strings.TrimSpace(id)
}

// clone copies the files of a store that nobody has open. Tables never change and
// are linked.
func clone(b *testing.B, from, to string) {
	b.Helper()
	if err := os.MkdirAll(to, 0o700); err != nil {
		b.Fatal(err)
	}
	entries, err := os.ReadDir(from)
	if err != nil {
		b.Fatal(err)
	}
	for _, e := range entries {
		a, z := filepath.Join(from, e.Name()), filepath.Join(to, e.Name())
		if strings.HasSuffix(e.Name(), ".sst") {
			err = os.Link(a, z)
		} else {
			var data []byte
			if data, err = os.ReadFile(a); err == nil {
				err = os.WriteFile(z, data, 0o600)
			}
		}
		if err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkOpen measures a new process that opens the store of a session with so
// many nodes and reads its last 20 messages: after a clean close, and after kill
// -9. Expected: flat, at most 10 ms and 500 ms, and less than 100 MiB.
func BenchmarkOpen(b *testing.B) {
	for _, n := range sizes(b) {
		left := filepath.Join(b.TempDir(), "killed")
		id := killed(b, left, n)
		closed := filepath.Join(b.TempDir(), "closed")
		clone(b, left, closed)
		if err := openStore(b, closed, nil).Close(); err != nil {
			b.Fatal(err)
		}
		for _, c := range []struct{ name, dir string }{{"closed", closed}, {"killed", left}} {
			b.Run(fmt.Sprintf("%s/nodes=%d", c.name, n), func(b *testing.B) {
				var opened, read, kib, runs int
				var cpu time.Duration
				for b.Loop() {
					b.StopTimer()
					at := filepath.Join(b.TempDir(), "again")
					clone(b, c.dir, at)
					cmd := exec.Command(os.Args[0])
					cmd.Env = append(os.Environ(), openDir+"="+at, openSession+"="+id)
					cmd.Stderr = os.Stderr
					b.StartTimer()
					out, err := cmd.Output()
					if err != nil {
						b.Fatalf("%v: %s", err, out)
					}
					var o, r, k int
					if _, err := fmt.Sscan(string(out), &o, &r, &k); err != nil {
						b.Fatalf("%q: %v", out, err)
					}
					opened, read, kib, runs = opened+o, read+r, kib+k, runs+1
					cpu += cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
				}
				b.ReportMetric(float64(opened)/float64(runs)/1e3, "ms/open")
				b.ReportMetric(float64(read)/float64(runs)/1e3, "ms/read")
				b.ReportMetric(float64(kib)/float64(runs)/1024, "MiB")
				b.ReportMetric(float64(cpu.Milliseconds())/float64(runs), "ms/cpu") // of the whole process
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}

// BenchmarkMoves measures forks, checkouts and questions about ancestors at
// sessions of so many nodes. A move waits for the disk: x/append is its time
// against that of an append on the same disk in the same run.
func BenchmarkMoves(b *testing.B) {
	for _, n := range sizes(b) {
		s := openStore(b, filepath.Join(b.TempDir(), "store"), nil)
		sess := create(b, s)
		nodes, err := bench.Fill(b.Context(), sess, n, bench.Options{ForkEvery: max(n/50, 2)})
		if err != nil {
			b.Fatal(err)
		}
		for name, move := range map[string]func(at store.Skeleton) error{
			"fork": func(at store.Skeleton) error {
				_, err := store.Fork(b.Context(), sess, store.Request{}, at.ID, "")
				return err
			},
			"checkout": func(at store.Skeleton) error {
				_, err := store.Checkout(b.Context(), sess, store.Request{}, at.ID, "", true)
				return err
			},
		} {
			b.Run(fmt.Sprintf("%s/nodes=%d", name, n), func(b *testing.B) {
				var moves, appends time.Duration
				i := 0
				for b.Loop() {
					i++
					start := time.Now()
					if err := move(nodes[(i*7919)%len(nodes)]); err != nil {
						b.Fatal(err)
					}
					moves += time.Since(start)
					start = time.Now()
					if _, err := store.Apply(b.Context(), sess, store.Request{}, func(tx *store.Tx) (int, error) { return 0, appendMessage(tx) }); err != nil {
						b.Fatal(err)
					}
					appends += time.Since(start)
				}
				b.ReportMetric(float64(moves.Microseconds())/float64(i), "µs/"+name)
				b.ReportMetric(float64(moves)/float64(appends), "x/append")
				b.ReportMetric(0, "ns/op")
			})
		}
		b.Run(fmt.Sprintf("ancestor/nodes=%d", n), func(b *testing.B) {
			r, err := sess.Reader()
			if err != nil {
				b.Fatal(err)
			}
			defer r.Close()
			i := 0
			for b.Loop() {
				i++
				if _, err := r.CommonAncestor(nodes[(i*7919)%len(nodes)], nodes[(i*104_729)%len(nodes)]); err != nil {
					b.Fatal(err)
				}
			}
		})
		if err := s.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkFill measures how fast an import can write: many nodes in one mutation.
func BenchmarkFill(b *testing.B) {
	for _, batch := range []int{1, 1_000, 100_000} {
		b.Run(fmt.Sprintf("batch=%d", batch), func(b *testing.B) {
			s := openStore(b, filepath.Join(b.TempDir(), "store"), nil)
			defer s.Close()
			sess := create(b, s)
			n := max(batch, 1_000)
			rounds := 0
			for b.Loop() {
				if _, err := bench.Fill(b.Context(), sess, n, bench.Options{Batch: batch}); err != nil {
					b.Fatal(err)
				}
				rounds++
			}
			b.ReportMetric(float64(n*rounds)/b.Elapsed().Seconds(), "nodes/s")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// BenchmarkSessions measures the list of 10,000 sessions: its first page, and a
// query.
func BenchmarkSessions(b *testing.B) {
	s := openStore(b, filepath.Join(b.TempDir(), "store"), nil)
	defer s.Close()
	const n = 10_000
	work := make(chan int)
	done := make(chan error, 32)
	for range cap(done) {
		go func() {
			var err error
			for i := range work {
				if err == nil {
					_, err = s.Create(context.Background(), store.Request{}, store.Info{Title: fmt.Sprint("session ", i)}, "")
				}
			}
			done <- err
		}()
	}
	for i := range n {
		work <- i
	}
	close(work)
	for range cap(done) {
		if err := <-done; err != nil {
			b.Fatal(err)
		}
	}
	for name, f := range map[string]store.Filter{"page": {Limit: 50}, "query": {Limit: 50, Query: "session 42"}} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				page, _, err := s.Sessions(b.Context(), f)
				if err != nil || len(page) == 0 {
					b.Fatal(len(page), err)
				}
			}
		})
	}
}
