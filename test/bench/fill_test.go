package bench_test

import (
	"context"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"convls/protocol"
	"convls/store"
	"convls/test/bench"
)

func TestFill(t *testing.T) {
	ctx := context.Background()
	s, err := store.Open(ctx, store.Options{Dir: "ledger", FS: vfs.NewMem()})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	out, err := s.Create(ctx, store.Request{}, store.Info{}, "")
	if err != nil {
		t.Fatal(err)
	}
	sess, err := s.Session(out.Result)
	if err != nil {
		t.Fatal(err)
	}
	nodes, err := bench.Fill(ctx, sess, 2_500, bench.Options{ForkEvery: 100, ToolEvery: 10, Text: 50})
	if err != nil {
		t.Fatal(err)
	}
	state := sess.State()
	if state.Nodes < 2_500 || state.Nodes > 2_503 {
		t.Errorf("%d nodes, want 2,500 and the root", state.Nodes)
	}
	last := nodes[len(nodes)-1]
	if state.Head != last.Seq {
		t.Errorf("HEAD is node %d, want %d", state.Head, last.Seq)
	}
	if err := s.Check(ctx, func(p store.Problem) { t.Error(p) }); err != nil {
		t.Fatal(err)
	}
	if nodes[0].Kind != protocol.KindUser || nodes[1].Kind != protocol.KindAssistant {
		t.Errorf("it begins with %s and %s", nodes[0].Kind, nodes[1].Kind)
	}
	r, err := sess.Reader()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	leaves, err := r.Leaves()
	if err != nil {
		t.Fatal(err)
	}
	if len(leaves) < 10 {
		t.Errorf("%d branches, want some", len(leaves))
	}
}
