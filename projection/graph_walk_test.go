package projection

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"convls/protocol"
	"convls/store"
)

// TestGraphAgreesWithContext walks over random sessions. After every step, for every
// head, the nodes that the graph folds are those that the context view drops, the
// capsule stands where the summary is read, what is marked as in the context is what
// the context has, and lines and nodes have their places for themselves. What was
// drawn before the step is where it was, and pages give the same as the whole.
func TestGraphAgreesWithContext(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		l := newLedger(t)
		w := &graphWalk{ledger: l, rt: rt, places: map[string]rowPlace{}}
		defer func() {
			if w.open != nil {
				_ = w.open.Close()
			}
		}()
		for range rapid.IntRange(5, 25).Draw(rt, "steps") {
			before := w.view(GraphWindow{})
			w.step()
			w.check(before)
		}
	})
}

type rowPlace struct {
	row  int64
	lane int
}

type graphWalk struct {
	*ledger
	rt *rapid.T
	n  int
	// places are where the rows of chain nodes were drawn.
	places map[string]rowPlace
	// open is the reader of the present state.
	open *store.Reader
}

func (w *graphWalk) fresh(prefix string) string {
	w.n++
	return fmt.Sprint(prefix, w.n)
}

// chainNodes returns the chain nodes in the order they were written.
func (w *graphWalk) chainNodes() []store.Skeleton { return w.nodesThat(protocol.Kind.OnChain) }

func (w *graphWalk) nodesThat(ok func(protocol.Kind) bool) []store.Skeleton {
	var out []store.Skeleton
	for seq := store.Root; seq < w.open.State.Next; seq++ {
		if s, err := w.open.Skeleton(seq); err == nil && ok(s.Kind) {
			out = append(out, s)
		}
	}
	return out
}

func (w *graphWalk) pick(from []store.Skeleton, label string) store.Skeleton {
	return from[rapid.IntRange(0, len(from)-1).Draw(w.rt, label)]
}

func (w *graphWalk) head() store.Skeleton {
	s, err := w.open.Skeleton(w.open.State.Head)
	if err != nil {
		w.rt.Fatal(err)
	}
	return s
}

func (w *graphWalk) refresh() {
	if w.open != nil {
		_ = w.open.Close()
	}
	r, err := w.sess.Reader()
	if err != nil {
		w.rt.Fatal(err)
	}
	w.open = r
}

func (w *graphWalk) step() {
	chain := w.chainNodes()
	switch op := rapid.SampledFrom([]string{"send", "send", "send", "send", "fork", "fork", "tool", "call", "attach", "spawn", "summary", "summary", "undo",
		"delete", "checkout", "name", "policy", "redact", "pin", "empty"}).Draw(w.rt, "op"); op {
	case "send":
		at := w.head().ID
		for range rapid.IntRange(1, 3).Draw(w.rt, "turns") {
			u, a := w.fresh("u"), w.fresh("a")
			w.nodes[at] = must(w.rt)(w.open.Lookup(at))
			w.add(u, at, store.NodeSpec{})
			w.add(a, u, store.NodeSpec{})
			w.refresh()
			at = a
		}
	case "fork":
		at := w.pick(chain, "fork at")
		w.nodes[at.ID] = at
		w.apply(func(tx *store.Tx) error { return tx.SetHead(at, "") })
		w.add(w.fresh("a"), at.ID, store.NodeSpec{})
	case "empty":
		w.nodes["at"] = w.head()
		w.add(w.fresh("a"), "at", store.NodeSpec{Status: protocol.StatusFailed, Content: store.Content{Parts: []protocol.Part{{Type: protocol.PartText, Text: " "}}}})
	case "tool", "call":
		from := w.nodesThat(func(k protocol.Kind) bool {
			return k == protocol.KindAssistant || k == protocol.KindTool || k == protocol.KindCall
		})
		if len(from) == 0 {
			return
		}
		caller := w.pick(from, "caller")
		spec := toolNode("c", protocol.Part{Type: protocol.PartToolResult, CallID: "c", Text: "r"})
		if op == "call" {
			spec = store.NodeSpec{Kind: protocol.KindCall, Content: say("answer"), Exposed: rapid.Bool().Draw(w.rt, "exposed")}
		}
		spec.Caller = caller.Seq
		if op == "call" && rapid.Bool().Draw(w.rt, "hangs") {
			w.nodes["at"] = w.pick(chain, "hangs at")
			spec.Caller = 0
		}
		w.add(w.fresh("t"), "at", spec)
	case "spawn":
		from := w.nodesThat(func(k protocol.Kind) bool { return k == protocol.KindTool })
		if len(from) == 0 {
			return
		}
		tool := w.pick(from, "caller")
		owner := must(w.rt)(w.open.Owner(tool))
		u, a := w.fresh("u"), w.fresh("a")
		w.apply(func(tx *store.Tx) error {
			sk, err := tx.Append(store.NodeSpec{ID: u, Kind: protocol.KindUser, Predecessor: owner.Seq, Caller: tool.Seq, Status: protocol.StatusSealed,
				Content: say(u), HeadNeutral: true, Exposed: rapid.Bool().Draw(w.rt, "exposed")})
			if err != nil {
				return err
			}
			_, err = tx.Append(store.NodeSpec{ID: a, Kind: protocol.KindAssistant, Predecessor: sk.Seq, Status: protocol.StatusSealed, Content: say(a), HeadNeutral: true})
			return err
		})
	case "attach":
		from := w.nodesThat(func(k protocol.Kind) bool { return k == protocol.KindAssistant || k == protocol.KindSummary })
		if len(from) == 0 {
			return
		}
		w.nodes["at"] = w.head()
		w.add(w.fresh("x"), "at", store.NodeSpec{Kind: protocol.KindAttach, Content: store.Content{Source: &store.Source{SessionID: w.sess.ID(), NodeID: w.pick(from, "source").ID}}})
	case "summary":
		last := w.pick(chain, "last")
		if last.Depth == 0 {
			return
		}
		first := must(w.rt)(w.open.AncestorAt(last, uint64(rapid.IntRange(1, int(last.Depth)).Draw(w.rt, "first"))))
		w.nodes["first"], w.nodes["last"] = first, last
		w.summary(w.fresh("s"), "first", "last")
	case "undo":
		from := append(w.nodesThat(func(k protocol.Kind) bool { return k == protocol.KindSummary }), store.Skeleton{})
		s := w.pick(from, "summary")
		w.apply(func(tx *store.Tx) error {
			if s.Seq == 0 {
				return tx.Activate(s)
			}
			if err := tx.Undo(s, rapid.Bool().Draw(w.rt, "undone")); err != nil {
				return err
			}
			if void, err := tx.Void(s.Seq); err != nil || void {
				return err
			}
			return tx.Activate(s)
		})
	case "delete":
		var tips []store.Skeleton
		for _, s := range chain {
			if tip, err := w.open.IsTip(s.Seq); err == nil && tip && s.Depth > 0 {
				tips = append(tips, s)
			}
		}
		if len(tips) < 2 {
			return
		}
		r, err := w.open.Exclusive(w.pick(tips, "tip"))
		if err != nil {
			w.rt.Fatal(err)
		}
		w.apply(func(tx *store.Tx) error { return tx.Delete(r) })
	case "checkout":
		w.apply(func(tx *store.Tx) error { return tx.SetHead(w.pick(chain, "to"), "") })
	case "name":
		w.apply(func(tx *store.Tx) error { return tx.Name(w.fresh("branch"), w.pick(chain, "named")) })
	case "policy":
		w.apply(func(tx *store.Tx) error {
			info, err := tx.Info()
			info.Policy = rapid.SampledFrom([]string{protocol.PolicyRolling, protocol.PolicyPerBranch}).Draw(w.rt, "policy")
			return cmp.Or(err, tx.SetInfo(info))
		})
	case "redact":
		if s := w.pick(chain, "redacted"); s.Depth > 0 {
			w.apply(func(tx *store.Tx) error { return tx.Redact(s) })
		}
	case "pin":
		w.apply(func(tx *store.Tx) error { return tx.Pin(w.pick(chain, "pinned"), true) })
	}
}

func must(rt *rapid.T) func(store.Skeleton, error) store.Skeleton {
	return func(s store.Skeleton, err error) store.Skeleton {
		if err != nil {
			rt.Fatal(err)
		}
		return s
	}
}

func (w *graphWalk) view(win GraphWindow) *protocol.GraphView {
	if w.open == nil {
		w.refresh()
	}
	if win.Limit == 0 {
		win.Limit = 10_000
	}
	v, err := Graph(w.open, win)
	if err != nil {
		w.rt.Fatal(err)
	}
	return v
}

func (w *graphWalk) check(before *protocol.GraphView) {
	w.refresh()
	var owners []string
	for _, s := range w.nodesThat(protocol.Kind.OnChain) {
		owners = append(owners, s.ID)
	}
	chain := w.chainNodes()
	heads := []store.Skeleton{w.head(), chain[len(chain)-1]}
	for range 3 {
		heads = append(heads, w.pick(chain, "seen from"))
	}
	for _, head := range heads {
		folded := w.view(GraphWindow{Head: head})
		w.agree(head, folded, w.view(GraphWindow{Head: head, Expanded: owners}))
		checkPicture(w.rt, folded)
	}
	w.stays(w.view(GraphWindow{Expanded: nil, Head: w.chainNodes()[0]}))
	now := w.view(GraphWindow{})
	w.pages(now)
	w.since(before, now)
}

// agree compares the graph with the context view.
func (w *graphWalk) agree(head store.Skeleton, folded, whole *protocol.GraphView) {
	compacted, err1 := Render(w.open, Options{Head: head})
	raw, err2 := Render(w.open, Options{Head: head, Raw: true})
	if err := cmp.Or(err1, err2); err != nil {
		w.rt.Fatal(err)
	}
	shown := map[string]protocol.GraphRow{}
	for _, r := range folded.Rows {
		shown[r.ID] = r
	}
	dropped := map[string]bool{}
	kept := entryIDs(compacted)
	for id := range entryIDs(raw) {
		s := must(w.rt)(w.open.Lookup(id))
		if !kept[id] && s.Kind.OnChain() && !s.Called {
			dropped[id] = true
		}
	}
	hidden := map[string]bool{}
	for _, s := range w.chainNodes() {
		if _, ok := shown[s.ID]; !ok {
			hidden[s.ID] = true
		}
	}
	for id := range dropped {
		if !hidden[id] {
			w.rt.Fatalf("from %s, context drops %s and the graph shows it", head.ID, id)
		}
	}
	for id := range hidden {
		s := must(w.rt)(w.open.Lookup(id))
		content, err := w.open.Content(s.Seq)
		if err != nil {
			w.rt.Fatal(err)
		}
		if !dropped[id] && !Skipped(s, content) && !s.Called {
			w.rt.Fatalf("from %s, the graph folds %s and the context keeps it", head.ID, id)
		}
	}
	for _, r := range folded.Rows {
		if r.Fold != nil && r.Fold.State == "folded" != (compacted.Substitution != nil && compacted.Substitution.Summary.ID == r.ID) {
			w.rt.Fatalf("from %s, capsule %s is %s", head.ID, r.ID, r.Fold.State)
		}
	}
	if sub := compacted.Substitution; sub != nil {
		row, ok := shown[sub.Summary.ID]
		if !ok || row.Row != int64(sub.Last.Seq) || row.Fold.Count != int64(len(hidden)) {
			w.rt.Fatalf("from %s, summary %s stands for %d nodes up to %d, the graph has %+v and hides %d", head.ID, sub.Summary.ID, sub.Covers.Count, sub.Last.Seq, row, len(hidden))
		}
	}
	var marked, read []string
	for _, r := range whole.Rows {
		if r.InContext {
			marked = append(marked, r.ID)
		}
	}
	for id := range kept {
		read = append(read, id)
	}
	slices.Sort(marked)
	slices.Sort(read)
	if d := gocmp.Diff(read, marked); d != "" {
		w.rt.Fatalf("from %s, in context (-context +graph):\n%s", head.ID, d)
	}
}

func entryIDs(c *Context) map[string]bool {
	out := map[string]bool{}
	for _, e := range c.Entries {
		out[e.Node.ID] = true
	}
	return out
}

// checkPicture draws the lines of a whole graph, and finds two in one place.
func checkPicture(t interface{ Fatalf(string, ...any) }, v *protocol.GraphView) {
	type cell struct {
		row  int
		lane int
	}
	index := map[string]int{}
	taken := map[cell]string{}
	for i, r := range v.Rows {
		index[r.ID] = i
		if r.Kind.OnChain() || r.Fold != nil && r.Fold.State == "folded" {
			taken[cell{i, r.Lane}] = r.ID
		}
	}
	for _, e := range v.Edges {
		if e.Style == protocol.EdgeAttach {
			continue
		}
		to, ok := index[e.To]
		from, ok2 := index[e.From]
		if !ok || !ok2 {
			t.Fatalf("edge %+v begins or ends nowhere", e)
		}
		if e.FromRow == e.ToRow {
			continue
		}
		if from >= to {
			t.Fatalf("edge %+v leads up", e)
		}
		for i := from + 1; i < to; i++ {
			lane := e.ToLane
			for _, b := range slices.Backward(e.Bends) {
				if v.Rows[i].Row < b.Row {
					lane = b.From
				}
			}
			c := cell{i, lane}
			name := e.From + "-" + e.To
			if other, ok := taken[c]; ok {
				t.Fatalf("%s and %s are both in lane %d of row %d (%s)", name, other, lane, i, v.Rows[i].ID)
			}
			taken[c] = name
		}
	}
}

// stays compares the places of rows with where they were. raw is a graph that folds
// nothing.
func (w *graphWalk) stays(raw *protocol.GraphView) {
	now := map[string]rowPlace{}
	for _, r := range raw.Rows {
		if !r.Kind.OnChain() {
			continue
		}
		now[r.ID] = rowPlace{r.Row, r.Lane}
		if was, ok := w.places[r.ID]; ok && was != now[r.ID] {
			w.rt.Fatalf("%s was at %+v and is at %+v", r.ID, was, now[r.ID])
		}
	}
	w.places = now
}

// pages reads the whole graph in windows, down and up, and around each row.
func (w *graphWalk) pages(all *protocol.GraphView) {
	limit := rapid.IntRange(1, 7).Draw(w.rt, "limit")
	rows := func(v *protocol.GraphView) []string {
		var out []string
		for _, r := range v.Rows {
			out = append(out, r.ID)
		}
		return out
	}
	want := rows(all)
	edges := map[string]protocol.GraphEdge{}
	name := func(e protocol.GraphEdge) string { return e.From + " " + e.To + string(e.Style) }
	for _, e := range all.Edges {
		edges[name(e)] = e
	}
	got := want[:1]
	for after := want[0]; after != ""; {
		v := w.view(GraphWindow{After: after, Limit: limit})
		got = append(slices.Clip(got), rows(v)...)
		after = v.After
		for _, e := range v.Edges {
			whole, ok := edges[name(e)]
			whole.Bends, e.Bends = nil, nil
			if d := gocmp.Diff(whole, e); !ok || d != "" {
				w.rt.Fatalf("edge %v of a page:\n%s", e, d)
			}
		}
		passing := 0
		for _, e := range all.Edges {
			top, bottom := slices.Index(want, v.Rows[0].ID), slices.Index(want, v.Rows[len(v.Rows)-1].ID)
			touches := slices.ContainsFunc(v.Rows, func(r protocol.GraphRow) bool {
				return e.To == r.ID || e.From == r.ID && e.FromRow != e.ToRow // a line beside a row is that row's
			})
			passes := e.FromRow != e.ToRow && slices.Index(want, e.From) < top && slices.Index(want, e.To) > bottom
			if passes && e.Style != protocol.EdgeAttach {
				passing++
			}
			if e.Style != protocol.EdgeAttach && (touches || passes) && !slices.ContainsFunc(v.Edges, func(x protocol.GraphEdge) bool { return name(x) == name(e) }) {
				w.rt.Fatalf("the page %v lacks edge %+v", rows(v), e)
			}
		}
		if v.Passing != passing {
			w.rt.Fatalf("%d edges pass %v, the page says %d", passing, rows(v), v.Passing)
		}
	}
	if d := gocmp.Diff(want, got); d != "" {
		w.rt.Fatalf("pages down (-whole +pages):\n%s", d)
	}
	got = want[len(want)-1:]
	for before := got[0]; before != ""; {
		v := w.view(GraphWindow{Before: before, Limit: limit})
		got = append(rows(v), got...)
		before = v.Before
	}
	if d := gocmp.Diff(want, got); d != "" {
		w.rt.Fatalf("pages up (-whole +pages):\n%s", d)
	}
	for i := rapid.IntRange(0, len(want)-1).Draw(w.rt, "around"); i < len(want); i += 5 {
		id := want[i]
		got := rows(w.view(GraphWindow{Around: id, Limit: limit}))
		at := slices.Index(got, id)
		if at < 0 || len(got) != min(limit, len(want)) || !slices.Equal(got, want[i-at:i-at+len(got)]) {
			w.rt.Fatalf("around %s: %v of %v", id, got, want)
		}
	}
	if int(all.TotalRows) != len(want) {
		w.rt.Fatalf("%d rows in all, the graph says %d", len(want), all.TotalRows)
	}
}

// since brings an older view up to date by what changed.
func (w *graphWalk) since(before, now *protocol.GraphView) {
	v := w.view(GraphWindow{Since: before.Revision})
	rows := map[string]protocol.GraphRow{}
	switch v.Changed {
	case protocol.GraphAll:
		if len(v.Rows) != len(now.Rows) {
			w.rt.Fatalf("all of %d rows are %d", len(now.Rows), len(v.Rows))
		}
		return
	default:
		for _, r := range before.Rows {
			rows[r.ID] = r
		}
	}
	for _, r := range v.Rows {
		rows[r.ID] = r
	}
	got := slices.SortedFunc(maps.Values(rows), func(a, b protocol.GraphRow) int { return cmp.Or(cmp.Compare(a.Row, b.Row), cmp.Compare(a.Seq, b.Seq)) })
	if d := gocmp.Diff(now.Rows, got); d != "" {
		w.rt.Fatalf("rows brought up to date since %d (%s; -now +got):\n%s", before.Revision, v.Changed, d)
	}
}
