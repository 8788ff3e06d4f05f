package projection

import (
	"fmt"
	"os"
	"testing"

	"convls/protocol"
	"convls/store"
)

// Shapes that a recursion, or a walk over everything, would not get through (known
// defect 13; fault 75). Longer chains are in the benchmarks.
func TestGraphOfLargeSessions(t *testing.T) {
	// The race detector makes appends slow: all of it is run with CONVLS_LARGE set.
	scale := 1
	if os.Getenv("CONVLS_LARGE") != "" {
		scale = 10
	}
	appendAll := func(l *ledger, n int, spec func(tx *store.Tx, i int) store.NodeSpec) {
		for done := 0; done < n; {
			batch := min(n-done, 10_000)
			l.apply(func(tx *store.Tx) error {
				for range batch {
					s := spec(tx, done)
					s.Status = protocol.StatusSealed
					if s.Content.Parts == nil {
						s.Content = say(fmt.Sprint("node ", done))
					}
					if _, err := tx.Append(s); err != nil {
						return err
					}
					done++
				}
				return nil
			})
		}
	}
	view := func(l *ledger, w GraphWindow) *protocol.GraphView {
		v, err := Graph(l.reader(), w)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	t.Run("one chain", func(t *testing.T) {
		n := 5_000 * scale
		l := newLedger(t)
		appendAll(l, n, func(tx *store.Tx, _ int) store.NodeSpec {
			return store.NodeSpec{Kind: protocol.KindUser, Predecessor: tx.State.Head}
		})
		v := view(l, GraphWindow{Limit: 200})
		if len(v.Rows) != 200 || v.TotalRows != int64(n+1) || v.Before == "" || v.After != "" || v.Lanes != 1 {
			t.Errorf("%d rows of %d, %d lanes, before %q, after %q", len(v.Rows), v.TotalRows, v.Lanes, v.Before, v.After)
		}
		l.apply(func(tx *store.Tx) error {
			_, err := tx.AppendSummary(store.SummarySpec{ID: "s", First: 2, Last: store.Seq(n - 10), Content: say("s"), Activate: true})
			return err
		})
		v = view(l, GraphWindow{Limit: 200})
		if len(v.Rows) != 13 || v.TotalRows != 13 || v.Rows[1].Fold == nil || v.Rows[1].CoversCount != int64(n-11) || v.Rows[1].CoversIDs != nil {
			t.Errorf("folded: %d rows of %d, the second %+v", len(v.Rows), v.TotalRows, v.Rows[1])
		}
	})
	t.Run("forks of one node", func(t *testing.T) {
		n := 1_000 * scale
		l := newLedger(t)
		appendAll(l, n, func(*store.Tx, int) store.NodeSpec {
			return store.NodeSpec{Kind: protocol.KindUser, Predecessor: store.Root, HeadNeutral: true}
		})
		r := l.reader()
		middle, err := r.Skeleton(store.Seq(n / 2))
		if err != nil {
			t.Fatal(err)
		}
		v := view(l, GraphWindow{Limit: 100, Around: middle.ID})
		if len(v.Rows) != 100 || v.TotalRows != int64(n+1) || v.Lanes != n || v.Passing < n/2-100 || len(v.Edges) != 100+maxPassing {
			t.Errorf("%d rows of %d in %d lanes, %d edges, %d pass", len(v.Rows), v.TotalRows, v.Lanes, len(v.Edges), v.Passing)
		}
	})
	t.Run("tool nodes of one turn", func(t *testing.T) {
		n := 10_000 * scale
		l := newLedger(t)
		l.chain("root", "u1", "a1")
		// One in a thousand calls the next ones: a chain of calls a hundred deep.
		caller := l.nodes["a1"].Seq
		appendAll(l, n, func(tx *store.Tx, i int) store.NodeSpec {
			s := toolNode("c", protocol.Part{Type: protocol.PartToolResult, CallID: "c", Text: "r"})
			s.Kind, s.Caller = protocol.KindTool, caller
			if i%1_000 == 0 {
				caller = tx.State.Next
			}
			return s
		})
		l.chain("a1", "a2")
		v := view(l, GraphWindow{Limit: 200})
		if len(v.Rows) != 4 || v.Rows[2].Calls != maxCallCount {
			t.Errorf("%d rows, %d calls", len(v.Rows), v.Rows[2].Calls)
		}
		w := GraphWindow{Limit: 2_000, Expanded: []string{"a1"}, After: "a1"}
		v = view(l, w)
		if len(v.Rows) != 2_000 || v.Rows[1_999].Tier < 2 || v.After != v.Rows[1_999].ID {
			t.Errorf("expanded: %d rows, the last %+v", len(v.Rows), v.Rows[len(v.Rows)-1])
		}
		w.After = ""
		w.Before = "a2"
		if v = view(l, w); len(v.Rows) != 2_000 || v.Before == "" || v.After == "" {
			t.Errorf("from below: %d rows", len(v.Rows))
		}
	})
}
