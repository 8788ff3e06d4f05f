package projection

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"convls/protocol"
	"convls/store"
)

// TestSources: transcript, graph and branches tell of an attach node where it points,
// what is said there, and that it was deleted.
func TestSources(t *testing.T) {
	l := newLedger(t)
	here := l.sess.ID()
	l.chain("root", "u1", "a1")
	l.chain("a1", "u2", "a2") // side
	l.chain("a1", "u3", "a3")
	attach := func(name, after string, src store.Source) {
		l.add(name, after, store.NodeSpec{Kind: protocol.KindAttach, Content: store.Content{Source: &src}})
	}
	attach("x", "a3", store.Source{SessionID: here, NodeID: "a2"})
	made, err := l.store.Create(t.Context(), store.Request{}, store.Info{Policy: "rolling", Title: "Elsewhere"}, "")
	if err != nil {
		t.Fatal(err)
	}
	other, err := l.store.Session(made.Result)
	if err != nil {
		t.Fatal(err)
	}
	_, err = store.Apply(t.Context(), other, store.Request{}, func(tx *store.Tx) (struct{}, error) {
		root, err := tx.Skeleton(store.Root)
		if err != nil {
			return struct{}{}, err
		}
		_, err = tx.Append(store.NodeSpec{ID: "b1", Kind: protocol.KindAssistant, Predecessor: root.Seq, Status: protocol.StatusSealed, Content: say("said elsewhere")})
		return struct{}{}, err
	})
	if err != nil {
		t.Fatal(err)
	}
	attach("y", "x", store.Source{SessionID: other.ID(), NodeID: "b1"})

	want := map[string]*protocol.GraphSource{
		"x": {SessionID: here, NodeID: "a2", Kind: protocol.KindAssistant, Depth: 4},
		"y": {SessionID: other.ID(), NodeID: "b1", Title: "Elsewhere", Kind: protocol.KindAssistant, Depth: 1},
	}
	previews := map[string]string{"x": "a2", "y": "said elsewhere"}
	check := func(when string) {
		t.Helper()
		r := l.reader()
		sources, texts := map[string]*protocol.GraphSource{}, map[string]string{}
		tr, err := Transcript(r, Window{Head: l.nodes["y"], Limit: 50})
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range tr.Rows {
			if row.Kind == protocol.KindAttach {
				sources[row.ID], texts[row.ID] = row.Source, row.Preview
			} else if row.Source != nil {
				t.Errorf("%s: row %s has a source", when, row.ID)
			}
		}
		if diff := cmp.Diff(want, sources) + cmp.Diff(previews, texts); diff != "" {
			t.Errorf("%s, transcript: %s", when, diff)
		}
		v, err := Graph(r, GraphWindow{Limit: 50})
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range v.Rows {
			if row.Kind == protocol.KindAttach {
				sources[row.ID], texts[row.ID] = row.Source, row.Preview
			}
		}
		if diff := cmp.Diff(want, sources) + cmp.Diff(previews, texts); diff != "" {
			t.Errorf("%s, graph: %s", when, diff)
		}
		b, err := BranchAt(r, "y", "")
		if err != nil || b.Preview != previews["y"] {
			t.Errorf("%s: the branch begins with %q (%v)", when, b.Preview, err)
		}
	}
	check("unnamed")

	// A name on the source, and then the nearest after it.
	name := func(branch, at string) {
		t.Helper()
		l.apply(func(tx *store.Tx) error { return tx.Name(branch, l.nodes[at]) })
	}
	l.chain("a2", "u4")
	name("far", "u4")
	want["x"].Branch = "far"
	check("named further on")
	name("near", "a2")
	want["x"].Branch = "near"
	check("named")

	if _, err := store.DeleteBranch(t.Context(), l.sess, store.Request{}, "", "far", true); err != nil {
		t.Fatal(err)
	}
	if _, err := l.store.DeleteSession(t.Context(), other.ID(), store.Request{}); err != nil {
		t.Fatal(err)
	}
	want["x"] = &protocol.GraphSource{SessionID: here, NodeID: "a2", Deleted: true}
	want["y"] = &protocol.GraphSource{SessionID: other.ID(), NodeID: "b1", Deleted: true}
	previews = map[string]string{"x": "", "y": ""}
	check("deleted")
}
