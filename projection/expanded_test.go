package projection

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"convls/protocol"
	"convls/store"
)

// TestExpandedOfDeletedNodes: what a client holds expanded may have been deleted. The
// views are those without it.
func TestExpandedOfDeletedNodes(t *testing.T) {
	l := newLedger(t)
	l.chain("root", "u1", "a1", "u2", "a2")
	l.summary("s1", "u1", "a1")
	l.chain("a1", "u3", "a3")
	l.apply(func(tx *store.Tx) error { return tx.SetHead(l.nodes["a2"], "") })
	if _, err := store.DeleteBranch(t.Context(), l.sess, store.Request{}, "a3", "", true); err != nil {
		t.Fatal(err)
	}
	r := l.reader()
	for _, expanded := range [][]string{nil, {"s1"}} {
		with := append([]string{"a3", "never"}, expanded...)
		g1, err1 := Graph(r, GraphWindow{Limit: 50, Expanded: expanded})
		g2, err2 := Graph(r, GraphWindow{Limit: 50, Expanded: with})
		t1, err3 := Transcript(r, Window{Limit: 50, Expanded: expanded})
		t2, err4 := Transcript(r, Window{Limit: 50, Expanded: with})
		if err1 != nil || err2 != nil || err3 != nil || err4 != nil {
			t.Fatal(err1, err2, err3, err4)
		}
		if diff := cmp.Diff(g1, g2) + cmp.Diff(t1, t2); diff != "" {
			t.Errorf("expanded %q: %s", expanded, diff)
		}
		ghosts := 0
		for _, row := range t2.Rows {
			if row.Kind != protocol.KindSummary && row.Ghost {
				ghosts++
			}
		}
		if want := 2 * len(expanded); ghosts != want {
			t.Errorf("expanded %q: %d ghosts, want %d", expanded, ghosts, want)
		}
	}
}
