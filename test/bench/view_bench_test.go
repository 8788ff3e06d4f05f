package bench

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"convls/projection"
	"convls/protocol"
	"convls/store"
)

// sizes are the histories that views are measured on, in chain nodes. The longest
// takes a minute to write: CONVLS_BENCH_NODES caps them.
func sizes(b *testing.B) []int {
	b.Helper()
	most := 1_000_000
	if v := os.Getenv("CONVLS_BENCH_NODES"); v != "" {
		n, err := strconv.Atoi(v)
		if err != nil {
			b.Fatal(err)
		}
		most = n
	}
	var out []int
	for _, n := range []int{1_000, 10_000, 100_000, 1_000_000} {
		if n <= most {
			out = append(out, n)
		}
	}
	return out
}

func open(b *testing.B, dir string) *store.Store {
	b.Helper()
	s, err := store.Open(b.Context(), store.Options{Dir: dir})
	if err != nil {
		b.Fatal(err)
	}
	return s
}

// history writes a chain of n nodes and a summary of all but the last 20, and
// returns the store's folder and the session's id.
func history(b *testing.B, n int) (dir, id string) {
	b.Helper()
	dir = b.TempDir()
	s := open(b, dir)
	out, err := s.Create(b.Context(), store.Request{}, store.Info{Policy: "rolling"}, "You are brief.")
	if err != nil {
		b.Fatal(err)
	}
	id = out.Result
	sess, err := s.Session(id)
	if err != nil {
		b.Fatal(err)
	}
	text := strings.Repeat("Some words of a conversation about a build that fails. ", 6)
	kinds := []protocol.Kind{protocol.KindUser, protocol.KindAssistant}
	const batch = 10_000
	for done := 0; done < n; {
		_, err := store.Apply(b.Context(), sess, store.Request{}, func(tx *store.Tx) (struct{}, error) {
			for range min(batch, n-done) {
				_, err := tx.Append(store.NodeSpec{Kind: kinds[done%2], Predecessor: tx.State.Head, Status: protocol.StatusSealed,
					Content: store.Content{Parts: []protocol.Part{{Type: protocol.PartText, Text: text}}}, Tokens: 70, Tokenizer: "bench"})
				if err != nil {
					return struct{}{}, err
				}
				done++
			}
			return struct{}{}, nil
		})
		if err != nil {
			b.Fatal(err)
		}
	}
	_, err = store.Apply(b.Context(), sess, store.Request{}, func(tx *store.Tx) (struct{}, error) {
		head, err := tx.Skeleton(tx.State.Head)
		if err != nil {
			return struct{}{}, err
		}
		first, err := tx.AncestorAt(head, 1)
		if err != nil {
			return struct{}{}, err
		}
		last, err := tx.AncestorAt(head, head.Depth-20)
		if err != nil {
			return struct{}{}, err
		}
		_, err = tx.AppendSummary(store.SummarySpec{First: first.Seq, Last: last.Seq, Activate: true,
			Content: store.Content{Parts: []protocol.Part{{Type: protocol.PartText, Text: strings.Repeat("Summary. ", 100)}}}})
		return struct{}{}, err
	})
	if err != nil {
		b.Fatal(err)
	}
	if err := s.Close(); err != nil {
		b.Fatal(err)
	}
	return dir, id
}

func render(b *testing.B, s *store.Store, id string) *projection.Context {
	b.Helper()
	sess, err := s.Session(id)
	if err != nil {
		b.Fatal(err)
	}
	r, err := sess.Reader()
	if err != nil {
		b.Fatal(err)
	}
	defer r.Close()
	c, err := projection.Render(r, projection.Options{})
	if err != nil {
		b.Fatal(err)
	}
	return c
}

// BenchmarkOpenAndRender opens a closed store and renders the first context, whose
// summary leaves a tail of 20. The metric x1k is the time against that at 1,000
// nodes in the same run: it should stay flat.
func BenchmarkOpenAndRender(b *testing.B) {
	var base float64
	for _, n := range sizes(b) {
		dir, id := history(b, n)
		b.Run(fmt.Sprintf("nodes=%d", n), func(b *testing.B) {
			for b.Loop() {
				s := open(b, dir)
				if c := render(b, s, id); len(c.Entries) != 22 {
					b.Fatalf("%d entries, want root, summary and a tail of 20", len(c.Entries))
				}
				b.StopTimer()
				if err := s.Close(); err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
			}
			per := float64(b.Elapsed()) / float64(b.N)
			if base == 0 {
				base = per
			}
			b.ReportMetric(per/base, "x1k")
			b.ReportMetric(float64(rss(b)>>20), "rss-MiB")
		})
	}
}

// BenchmarkWarm measures single operations on an open store. checkout and fork are
// one durable move each, so the disk's sync is in them.
func BenchmarkWarm(b *testing.B) {
	base := map[string]float64{}
	for _, n := range sizes(b) {
		dir, id := history(b, n)
		s := open(b, dir)
		sess, err := s.Session(id)
		if err != nil {
			b.Fatal(err)
		}
		r, err := sess.Reader()
		if err != nil {
			b.Fatal(err)
		}
		head, err := r.Skeleton(r.State.Head)
		if err != nil {
			b.Fatal(err)
		}
		middle, err := r.AncestorAt(head, head.Depth/2)
		if err != nil {
			b.Fatal(err)
		}
		if err := r.Close(); err != nil {
			b.Fatal(err)
		}
		at, moves := "", 0
		measure := func(name string, f func(b *testing.B)) {
			b.Run(fmt.Sprintf("%s/nodes=%d", name, n), func(b *testing.B) {
				for b.Loop() {
					f(b)
				}
				per := float64(b.Elapsed()) / float64(b.N)
				if base[name] == 0 {
					base[name] = per
				}
				b.ReportMetric(per/base[name], "x1k")
			})
		}
		measure("render", func(b *testing.B) { render(b, s, id) })
		measure("transcript", func(b *testing.B) {
			r, err := sess.Reader()
			if err != nil {
				b.Fatal(err)
			}
			defer r.Close()
			if _, err := projection.Transcript(r, projection.Window{Limit: 50}); err != nil {
				b.Fatal(err)
			}
		})
		// Moves are measured where they write: each changes HEAD or makes a name, and
		// returns when it is on disk.
		written := func(b *testing.B, cursor string, err error) {
			b.Helper()
			if err != nil {
				b.Fatal(err)
			}
			if cursor == at {
				b.Fatal("the move wrote nothing")
			}
			at = cursor
		}
		to := []string{middle.ID, head.ID}
		measure("checkout", func(b *testing.B) {
			out, err := store.Checkout(b.Context(), sess, store.Request{}, to[moves%2], "", false)
			written(b, out.Cursor, err)
			moves++
		})
		measure("fork", func(b *testing.B) {
			out, err := store.Fork(b.Context(), sess, store.Request{}, middle.ID, fmt.Sprintf("fork %d", moves))
			written(b, out.Cursor, err)
			moves++
		})
		if err := s.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

// rss returns the resident memory of this process in bytes, after a collection.
func rss(b *testing.B) int64 {
	b.Helper()
	runtime.GC()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		b.Skip("no /proc here")
	}
	var kib int64
	for line := range strings.Lines(string(status)) {
		if _, err := fmt.Sscanf(line, "VmRSS: %d", &kib); err == nil {
			break
		}
	}
	return kib << 10
}
