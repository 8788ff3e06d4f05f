package bench

import (
	"fmt"
	"testing"

	"convls/projection"
	"convls/protocol"
	"convls/store"
)

// BenchmarkGraph measures windows of the graph on an open store, each read from a
// picture of its own: 200 rows around HEAD of a history with a branch every hundred
// nodes at 1,000 nodes and one every 1/10 of it above, folded behind a summary and
// raw; a page from the middle; what changed since the last look. The metric x1k is
// the time against that at 1,000 nodes in the same run: it should stay flat. bytes/row
// is what a row takes on the wire, with its share of the edges.
func BenchmarkGraph(b *testing.B) {
	base := map[string]float64{}
	for _, n := range sizes(b) {
		s, id, middle := branched(b, n)
		sess, err := s.Session(id)
		if err != nil {
			b.Fatal(err)
		}
		revision := int64(0)
		const some = -1 // as many rows as there are
		measure := func(name string, rows int, w projection.GraphWindow) {
			b.Run(fmt.Sprintf("%s/nodes=%d", name, n), func(b *testing.B) {
				size, count := 0, 0
				for b.Loop() {
					v := graph(b, sess, w)
					if rows != some && len(v.Rows) != rows {
						b.Fatalf("%d rows, want %d", len(v.Rows), rows)
					}
					if revision, count = v.Revision, len(v.Rows); size == 0 {
						b.StopTimer()
						size = wireSize(b, v)
						b.StartTimer()
					}
				}
				per := float64(b.Elapsed()) / float64(b.N)
				if base[name] == 0 {
					base[name] = per
				}
				b.ReportMetric(per/base[name], "x1k")
				if rows = count; rows > 0 {
					b.ReportMetric(float64(size)/float64(rows), "bytes/row")
				}
			})
		}
		root := projection.GraphWindow{Head: middle.root, Limit: 200}
		measure("head", 200, projection.GraphWindow{Limit: 200, Expanded: []string{middle.summary}})
		measure("folded", some, projection.GraphWindow{Limit: 200})
		root.Around = middle.node
		measure("middle", 200, root)
		root.Around, root.After = "", middle.node
		measure("after", 200, root)
		root.After, root.Since = "", revision
		measure("unchanged", 0, root)
		if n == 10_000 {
			measure("whole-folded", some, projection.GraphWindow{Limit: 2_000})
			measure("whole-raw", 2_000, projection.GraphWindow{Head: middle.root, Limit: 2_000})
		}
		if err := s.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkGraphWide measures 200 rows in the middle of ten thousand forks of one
// node.
func BenchmarkGraphWide(b *testing.B) {
	const forks = 10_000
	s := open(b, b.TempDir())
	sess := newSession(b, s)
	var around string
	_, err := store.Apply(b.Context(), sess, store.Request{}, func(tx *store.Tx) (struct{}, error) {
		for i := range forks {
			sk, err := tx.Append(store.NodeSpec{Kind: protocol.KindUser, Predecessor: store.Root, Status: protocol.StatusSealed,
				Content: store.Content{Parts: []protocol.Part{{Type: protocol.PartText, Text: fmt.Sprint("variant ", i)}}}})
			if err != nil {
				return struct{}{}, err
			}
			if i == forks/2 {
				around = sk.ID
			}
		}
		return struct{}{}, nil
	})
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if v := graph(b, sess, projection.GraphWindow{Around: around, Limit: 200}); len(v.Rows) != 200 || v.Passing < 4_000 {
			b.Fatalf("%d rows, %d edges pass", len(v.Rows), v.Passing)
		}
	}
	if err := s.Close(); err != nil {
		b.Fatal(err)
	}
}

func newSession(b *testing.B, s *store.Store) *store.Session {
	b.Helper()
	out, err := s.Create(b.Context(), store.Request{}, store.Info{Policy: protocol.PolicyRolling}, "")
	if err != nil {
		b.Fatal(err)
	}
	sess, err := s.Session(out.Result)
	if err != nil {
		b.Fatal(err)
	}
	return sess
}

func graph(b *testing.B, sess *store.Session, w projection.GraphWindow) *protocol.GraphView {
	b.Helper()
	r, err := sess.Reader()
	if err != nil {
		b.Fatal(err)
	}
	defer r.Close()
	v, err := projection.Graph(r, w)
	if err != nil {
		b.Fatal(err)
	}
	return v
}

func wireSize(b *testing.B, v *protocol.GraphView) int {
	b.Helper()
	wire, err := protocol.Marshal(v)
	if err != nil {
		b.Fatal(err)
	}
	return len(wire)
}

// landmarks are nodes of a history.
type landmarks struct {
	root          store.Skeleton
	node, summary string
}

// branched writes a history of n nodes with ten branches, and a summary of all but
// the last 20 nodes of HEAD's.
func branched(b *testing.B, n int) (s *store.Store, id string, at landmarks) {
	b.Helper()
	s = open(b, b.TempDir())
	sess := newSession(b, s)
	nodes, err := Fill(b.Context(), sess, n, Options{ForkEvery: n / 10})
	if err != nil {
		b.Fatal(err)
	}
	out, err := store.Apply(b.Context(), sess, store.Request{}, func(tx *store.Tx) (string, error) {
		head, err := tx.Skeleton(tx.State.Head)
		if err != nil {
			return "", err
		}
		if at.root, err = tx.Skeleton(store.Root); err != nil {
			return "", err
		}
		first, err := tx.AncestorAt(head, 1)
		if err != nil {
			return "", err
		}
		last, err := tx.AncestorAt(head, head.Depth-20)
		if err != nil {
			return "", err
		}
		sk, err := tx.AppendSummary(store.SummarySpec{First: first.Seq, Last: last.Seq, Activate: true,
			Content: store.Content{Parts: []protocol.Part{{Type: protocol.PartText, Text: "Summary."}}}})
		return sk.ID, err
	})
	if err != nil {
		b.Fatal(err)
	}
	at.node, at.summary = nodes[n/2].ID, out.Result
	return s, sess.ID(), at
}
