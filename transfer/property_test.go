package transfer

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"pgregory.net/rapid"

	"convls/protocol"
	"convls/store"
)

// world grows a session by random operations.
type world struct {
	t     *rapid.T
	s     *store.Store
	sess  *store.Session
	count int
}

// apply runs f; what the store refuses is an operation that was not possible.
func (w *world) apply(f func(tx *store.Tx) error) {
	_, err := store.Apply(context.Background(), w.sess, store.Request{}, func(tx *store.Tx) (struct{}, error) { return struct{}{}, f(tx) })
	if err != nil && protocol.CodeOf(err) == "" {
		w.t.Fatal(err)
	}
}

func (w *world) id() string {
	w.count++
	return fmt.Sprintf("n%d", w.count)
}

// nodes returns the session's nodes that want chooses.
func (w *world) nodes(want func(store.Skeleton) bool) []store.Skeleton {
	r, err := w.sess.Reader()
	if err != nil {
		w.t.Fatal(err)
	}
	defer r.Close()
	var nodes []store.Skeleton
	for sk, err := range skeletons(context.Background(), r) {
		if err != nil {
			w.t.Fatal(err)
		}
		if want(sk) {
			nodes = append(nodes, sk)
		}
	}
	return nodes
}

func (w *world) pick(label string, want func(store.Skeleton) bool) (store.Skeleton, bool) {
	nodes := w.nodes(want)
	if len(nodes) == 0 {
		return store.Skeleton{}, false
	}
	return rapid.SampledFrom(nodes).Draw(w.t, label), true
}

func onChain(sk store.Skeleton) bool { return sk.Kind.OnChain() }

func (w *world) content() store.Content {
	texts := []string{"", "a", "émoji 👩‍👩‍👧", "``` open", "<!-- \\ \u0000 \u2028", "line\nline"}
	return textParts(rapid.SampledFrom(texts).Draw(w.t, "text"))
}

// grow appends one chain node, with tools if it is a reply.
func (w *world) grow() {
	pred, _ := w.pick("predecessor", onChain)
	kind := rapid.SampledFrom([]protocol.Kind{protocol.KindUser, protocol.KindAssistant, protocol.KindAssistant, protocol.KindAttach}).Draw(w.t, "kind")
	n := store.NodeSpec{ID: w.id(), Kind: kind, Predecessor: pred.Seq, Content: w.content(),
		Status:      rapid.SampledFrom([]protocol.Status{protocol.StatusSealed, protocol.StatusFailed, protocol.StatusCancelled, protocol.StatusInterrupted}).Draw(w.t, "status"),
		Tokens:      rapid.IntRange(0, 9).Draw(w.t, "tokens"),
		HeadNeutral: rapid.Bool().Draw(w.t, "neutral"), Exposed: rapid.Bool().Draw(w.t, "exposed")}
	tools := 0
	switch kind {
	case protocol.KindAttach:
		n.Content.Source = &store.Source{SessionID: rapid.SampledFrom([]string{w.sess.ID(), "elsewhere"}).Draw(w.t, "source"), NodeID: pred.ID}
	case protocol.KindAssistant:
		tools = rapid.IntRange(0, 3).Draw(w.t, "tools")
		n.Content.Model, n.Content.Usage = "p/m", &protocol.Usage{InputTokens: 7, CostUSD: rapid.SampledFrom([]float64{0, 0.0000004, 0.1}).Draw(w.t, "cost")}
		n.Content.Reads = []store.Run{{First: store.Root, Last: pred.Seq}}
	}
	w.apply(func(tx *store.Tx) error {
		var ids []string
		for range tools {
			ids = append(ids, w.id())
			n.Content.Parts = append(n.Content.Parts, protocol.Part{Type: protocol.PartToolCall, NodeID: ids[len(ids)-1]})
		}
		sk, err := tx.Append(n)
		for _, id := range ids {
			if err == nil {
				_, err = tx.Append(store.NodeSpec{ID: id, Kind: protocol.KindTool, Caller: sk.Seq, Status: protocol.StatusSealed, Content: store.Content{
					Parts: []protocol.Part{{Type: protocol.PartToolCall, CallID: "c", Name: "x", Arguments: protocol.Raw(`{"a":[1.50,"\u00e9"]}`)}}}})
			}
		}
		return err
	})
}

func (w *world) hang() {
	pred, _ := w.pick("anchor", onChain)
	kind := rapid.SampledFrom([]protocol.Kind{protocol.KindNotice, protocol.KindCall}).Draw(w.t, "kind")
	n := store.NodeSpec{ID: w.id(), Kind: kind, Predecessor: pred.Seq, Status: protocol.StatusSealed, Content: w.content()}
	if caller, ok := w.pick("caller", func(sk store.Skeleton) bool { return sk.Kind == protocol.KindTool }); ok && rapid.Bool().Draw(w.t, "called") {
		n.Caller = caller.Seq
		if rapid.Bool().Draw(w.t, "spawned") {
			n.Kind, n.HeadNeutral = protocol.KindUser, true
		}
	}
	if n.Kind == protocol.KindCall {
		n.Content.Prompt = textParts("asked " + n.ID).Parts
	}
	w.apply(func(tx *store.Tx) error {
		_, err := tx.Append(n)
		return err
	})
}

func (w *world) move() {
	to, _ := w.pick("head", onChain)
	w.apply(func(tx *store.Tx) error {
		name := ""
		if rapid.Bool().Draw(w.t, "named") {
			name = "b-" + w.id()
			if err := tx.Name(name, to); err != nil {
				return err
			}
		}
		return tx.SetHead(to, name)
	})
}

func (w *world) summarise() {
	last, ok := w.pick("last", func(sk store.Skeleton) bool { return sk.Kind.OnChain() && sk.Depth > 0 })
	if !ok {
		return
	}
	depth := rapid.Uint64Range(1, last.Depth).Draw(w.t, "first")
	w.apply(func(tx *store.Tx) error {
		first, err := tx.AncestorAt(last, depth)
		if err == nil {
			_, err = tx.AppendSummary(store.SummarySpec{ID: w.id(), First: first.Seq, Last: last.Seq, Content: w.content(), Activate: rapid.Bool().Draw(w.t, "active")})
		}
		return err
	})
}

func (w *world) remove() {
	sk, _ := w.pick("removed", func(store.Skeleton) bool { return true })
	redact := rapid.Bool().Draw(w.t, "redact")
	w.apply(func(tx *store.Tx) error {
		if redact {
			return tx.Redact(sk)
		}
		rm, err := tx.Exclusive(sk)
		if err == nil {
			err = tx.Delete(rm)
		}
		return err
	})
}

func (w *world) pin() {
	sk, _ := w.pick("pinned", func(store.Skeleton) bool { return true })
	w.apply(func(tx *store.Tx) error { return tx.Pin(sk, true) })
}

func (w *world) rename() {
	sk, _ := w.pick("title", func(store.Skeleton) bool { return true })
	w.apply(func(tx *store.Tx) error {
		info, err := tx.Info()
		if err != nil {
			return err
		}
		info.Title, info.TitleFrom, info.Settings = w.id(), sk.Seq, protocol.Raw(`{"model":"x"}`)
		if err := tx.SetInfo(info); err != nil {
			return err
		}
		return tx.SetSystem(rapid.SampledFrom([]string{"", "be brief", "be \"long\""}).Draw(w.t, "system"))
	})
}

// Whatever a session went through, its export makes an equal one, and Markdown of
// any branch can be written.
func TestRoundTripProperty(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		now := time.Date(2025, 6, 1, 0, 0, 0, 0, time.UTC)
		open := func() *store.Store {
			s, err := store.Open(context.Background(), store.Options{Dir: "ledger", FS: vfs.NewMem(), Clock: func() time.Time { return now }})
			if err != nil {
				rt.Fatal(err)
			}
			return s
		}
		a, b := open(), open()
		defer func() { _, _ = a.Close(), b.Close() }()
		out, err := a.Create(context.Background(), store.Request{}, store.Info{Policy: "rolling"}, "be brief")
		if err != nil {
			rt.Fatal(err)
		}
		w := &world{t: rt, s: a}
		if w.sess, err = a.Session(out.Result); err != nil {
			rt.Fatal(err)
		}
		operations := []func(){w.grow, w.grow, w.grow, w.grow, w.hang, w.move, w.summarise, w.remove, w.pin, w.rename}
		for range rapid.IntRange(0, 40).Draw(rt, "operations") {
			operations[rapid.IntRange(0, len(operations)-1).Draw(rt, "operation")]()
		}
		healthy := true
		if err := a.Check(context.Background(), func(p store.Problem) { healthy = false; rt.Log("before the export: ", p) }); err != nil || !healthy {
			rt.Fatalf("the ledger itself is not well (%v)", err)
		}
		text := export(t, w.sess, Options{Format: FormatJSONL})
		report, err := importText(t, b, text, "")
		if err != nil || report.SkippedCount != 0 || len(report.Sessions) != 1 {
			rt.Fatalf("%+v %v\n%s", report, err, text)
		}
		if err := b.Check(context.Background(), func(p store.Problem) { rt.Error(p) }); err != nil {
			rt.Fatal(err)
		}
		got, err := b.Session(report.Sessions[0].SessionID)
		if err != nil {
			rt.Fatal(err)
		}
		if diff, err := Equal(w.sess, got); err != nil || diff != "" {
			rt.Fatalf("%s (%v)\n%s", diff, err, text)
		}
		if tip, ok := w.pick("branch", onChain); ok {
			if md := export(t, w.sess, Options{Format: FormatMarkdown, Head: tip.ID}); md == "" {
				rt.Fatal("no Markdown")
			}
		}
	})
}
