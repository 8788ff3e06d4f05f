package projection

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/google/go-cmp/cmp"

	"convls/protocol"
	"convls/store"
)

// ledger is a session under test, with names for its nodes.
type ledger struct {
	t     *testing.T
	store *store.Store
	sess  *store.Session
	nodes map[string]store.Skeleton
}

func newLedger(t *testing.T) *ledger {
	t.Helper()
	s, err := store.Open(t.Context(), store.Options{Dir: "ledger", FS: vfs.NewMem()})
	if err != nil {
		t.Fatal(err)
	}
	l := &ledger{t: t, store: s, nodes: map[string]store.Skeleton{}}
	t.Cleanup(func() {
		if err := s.Check(context.Background(), func(p store.Problem) { t.Error(p) }); err != nil {
			t.Error(err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	l.sess = l.session("be brief")
	root, err := l.reader().Skeleton(store.Root)
	if err != nil {
		t.Fatal(err)
	}
	l.nodes["root"] = root
	return l
}

func (l *ledger) session(system string) *store.Session {
	l.t.Helper()
	out, err := l.store.Create(l.t.Context(), store.Request{}, store.Info{Policy: "rolling"}, system)
	if err != nil {
		l.t.Fatal(err)
	}
	sess, err := l.store.Session(out.Result)
	if err != nil {
		l.t.Fatal(err)
	}
	return sess
}

// reader is closed at the end of the test.
func (l *ledger) reader() *store.Reader {
	l.t.Helper()
	r, err := l.sess.Reader()
	if err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(func() { _ = r.Close() })
	return r
}

func (l *ledger) apply(f func(tx *store.Tx) error) {
	l.t.Helper()
	_, err := store.Apply(l.t.Context(), l.sess, store.Request{}, func(tx *store.Tx) (struct{}, error) { return struct{}{}, f(tx) })
	if err != nil {
		l.t.Fatal(err)
	}
}

func say(text string) store.Content {
	return store.Content{Parts: []protocol.Part{{Type: protocol.PartText, Text: text}}}
}

// add appends a sealed node named name after the node named after.
func (l *ledger) add(name, after string, spec store.NodeSpec) {
	l.t.Helper()
	if spec.Kind == "" {
		spec.Kind = protocol.KindUser
		if strings.HasPrefix(name, "a") {
			spec.Kind = protocol.KindAssistant
		}
	}
	if spec.Status == "" {
		spec.Status = protocol.StatusSealed
	}
	if spec.Content.Parts == nil && spec.Content.Source == nil {
		spec.Content = say(name)
	}
	spec.ID = name
	if spec.Caller == 0 {
		spec.Predecessor = l.nodes[after].Seq
	}
	l.apply(func(tx *store.Tx) error {
		sk, err := tx.Append(spec)
		l.nodes[name] = sk
		return err
	})
}

// chain appends nodes one after the other.
func (l *ledger) chain(after string, names ...string) {
	l.t.Helper()
	for _, n := range names {
		l.add(n, after, store.NodeSpec{})
		after = n
	}
}

func (l *ledger) summary(name, first, last string) {
	l.t.Helper()
	l.apply(func(tx *store.Tx) error {
		sk, err := tx.AppendSummary(store.SummarySpec{ID: name, First: l.nodes[first].Seq, Last: l.nodes[last].Seq, Content: say("what " + name + " says"), Activate: true})
		l.nodes[name] = sk
		return err
	})
}

func (l *ledger) render(head string, o Options) *Context {
	l.t.Helper()
	o.Head = l.nodes[head]
	c, err := Render(l.reader(), o)
	if err != nil {
		l.t.Fatal(err)
	}
	return c
}

func ids(c *Context) string {
	var out []string
	for _, e := range c.Entries {
		id := e.Node.ID
		if e.Why == protocol.WhySystem {
			id = "root"
		}
		out = append(out, id)
	}
	return strings.Join(out, " ")
}

func TestSummaryStandsInThePlaceOfWhatItCovers(t *testing.T) {
	l := newLedger(t)
	l.chain("root", "u1", "a1", "u2", "a2", "u3", "a3")
	l.chain("a1", "u2b", "a2b") // forks inside what will be covered
	l.chain("a2", "u3b", "a3b") // forks at its end
	l.chain("a3", "u4b", "a4b") // forks after it
	l.summary("s1", "u1", "a2")
	for _, tc := range []struct{ head, want string }{
		{"a3", "root s1 u3 a3"},
		{"a2", "root s1"},
		{"u2", "root u1 a1 u2"},
		{"a2b", "root u1 a1 u2b a2b"},
		{"a3b", "root s1 u3b a3b"},
		{"a4b", "root s1 u3 a3 u4b a4b"},
		{"root", "root"},
	} {
		if got := ids(l.render(tc.head, Options{})); got != tc.want {
			t.Errorf("from %s: %s, want %s", tc.head, got, tc.want)
		}
	}
	if got := ids(l.render("a3", Options{Raw: true})); got != "root u1 a1 u2 a2 u3 a3" {
		t.Errorf("raw: %s", got)
	}
	// fault 12: a summary is a record, not somebody's turn.
	text := l.render("a3", Options{}).Entries[1].Parts[0].Text
	if !strings.Contains(text, "reference data") || !strings.Contains(text, "what s1 says") {
		t.Errorf("the summary is framed as %q", text)
	}
	// A summary may begin in the middle of a branch, and stands there.
	l.summary("s2", "u2", "u3")
	if got := ids(l.render("a3", Options{})); got != "root u1 a1 s2 a3" {
		t.Errorf("a summary in the middle: %s", got)
	}
	// The former one is superseded: nothing consults it, so its branch is raw again.
	if got := ids(l.render("a3b", Options{})); got != "root u1 a1 u2 a2 u3b a3b" {
		t.Errorf("after it was superseded: %s", got)
	}
}

func TestVoidSummaryRendersRaw(t *testing.T) {
	l := newLedger(t)
	l.chain("root", "u1", "a1", "u2", "a2")
	l.chain("a1", "u2b", "a2b")
	l.summary("s1", "u1", "u2")
	l.apply(func(tx *store.Tx) error {
		r, err := tx.Exclusive(l.nodes["a2"])
		if err != nil {
			return err
		}
		return tx.Delete(r)
	})
	if got := ids(l.render("a2b", Options{})); got != "root u1 a1 u2b a2b" {
		t.Errorf("rendered %s", got)
	}
}

// The test by one ancestor must answer as the specification's "every node of L
// lies on H's spine" does, on any tree (spec/compaction, section 3).
func TestAppliesIsTheSubsetTest(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for round := range 30 {
		l := newLedger(t)
		names := []string{"root"}
		for i := range 40 {
			name := fmt.Sprintf("u%d", i)
			l.chain(names[rng.IntN(len(names))], name)
			names = append(names, name)
		}
		r := l.reader()
		spine := func(name string) []string {
			var out []string
			for s, err := range r.Spine(l.nodes[name]) {
				if err != nil {
					t.Fatal(err)
				}
				out = append(out, s.ID)
			}
			return out // newest first
		}
		last := names[1+rng.IntN(len(names)-1)]
		up := spine(last)
		first := up[rng.IntN(len(up)-1)] // not the root
		l.summary("s", first, last)
		covered := up[:slices.Index(up, first)+1]
		for _, head := range names {
			sub, err := Applies(l.reader(), l.nodes["s"].Seq, l.nodes[head])
			if err != nil {
				t.Fatal(err)
			}
			on := spine(head)
			want := !slices.ContainsFunc(covered, func(id string) bool { return !slices.Contains(on, id) })
			if (sub != nil) != want {
				t.Fatalf("round %d: %s..%s applies to %s: %v, want %v", round, first, last, head, sub != nil, want)
			}
		}
	}
}

func toolNode(call string, result ...protocol.Part) store.NodeSpec {
	parts := []protocol.Part{{Type: protocol.PartToolCall, CallID: call, Name: "read", Arguments: protocol.Raw(`{"path":"x"}`)}}
	return store.NodeSpec{Kind: protocol.KindTool, Content: store.Content{Parts: append(parts, result...)}}
}

func TestSubtreesPartialRepliesAndMarks(t *testing.T) {
	l := newLedger(t)
	l.chain("root", "u1")
	l.add("a1", "u1", store.NodeSpec{Content: store.Content{Parts: []protocol.Part{{Type: protocol.PartToolCall, NodeID: "t1"}, {Type: protocol.PartToolCall, NodeID: "t2"}}}})
	for _, n := range []struct {
		name, caller string
		spec         store.NodeSpec
	}{
		{"t1", "a1", toolNode("c1", protocol.Part{Type: protocol.PartToolResult, CallID: "c1", Text: strings.Repeat("é", 1000)})},
		{"t2", "a1", toolNode("c2")},
		{"nested", "t1", toolNode("c3", protocol.Part{Type: protocol.PartToolResult, CallID: "c3", Text: "in"})},
		{"hidden", "a1", store.NodeSpec{Kind: protocol.KindCall}},
		{"shown", "a1", store.NodeSpec{Kind: protocol.KindCall, Exposed: true}},
	} {
		n.spec.Caller = l.nodes[n.caller].Seq
		l.add(n.name, "", n.spec)
	}
	l.chain("a1", "u2")
	l.add("aEmpty", "u2", store.NodeSpec{Status: protocol.StatusFailed, Content: store.Content{Parts: []protocol.Part{{Type: protocol.PartReasoning, Text: "hm"}}}})
	l.add("aHalf", "aEmpty", store.NodeSpec{Status: protocol.StatusCancelled, Content: say("half")})
	c := l.render("aHalf", Options{ToolResultBytes: 100})
	if got := ids(c); got != "root u1 a1 t1 nested t2 shown u2 aHalf" {
		t.Fatalf("rendered %s", got)
	}
	clipped := c.Entries[3].Parts[1].Text
	if !strings.Contains(clipped, "left out") || len(clipped) > 300 || strings.ContainsRune(clipped, '\uFFFD') {
		t.Errorf("a long result is shown as %q", clipped)
	}
	// fault 95: a call without a result renders with one.
	if p := c.Entries[5].Parts; len(p) != 2 || p[1].Type != protocol.PartToolResult || p[1].CallID != "c2" || !p[1].IsError {
		t.Errorf("a call without result renders as %+v", p)
	}
	if text := TextOf(c.Entries[8].Parts); !strings.Contains(text, "half") || !strings.Contains(text, "stopped") {
		t.Errorf("a cancelled reply renders as %q", text)
	}
	// Reads must name exactly what was rendered, in order.
	r := l.reader()
	got, err := r.Reads(&store.Content{Reads: c.Reads()})
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, e := range c.Entries {
		want = append(want, e.Node.ID)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestAttachedRepliesAndTheirLoss(t *testing.T) {
	l := newLedger(t)
	l.chain("root", "u1", "a1")
	l.add("x", "a1", store.NodeSpec{Kind: protocol.KindAttach, Content: store.Content{Source: &store.Source{SessionID: l.sess.ID(), NodeID: "a1"}}})
	l.add("y", "x", store.NodeSpec{Kind: protocol.KindAttach, Content: store.Content{Source: &store.Source{SessionID: "ses_gone", NodeID: "a9"}}})
	c := l.render("y", Options{Other: l.store.Session})
	if text := TextOf(c.Entries[3].Parts); !strings.Contains(text, "a1") || !strings.Contains(text, "reference") {
		t.Errorf("attached: %q", text)
	}
	if text := TextOf(c.Entries[4].Parts); !strings.Contains(text, "is gone") {
		t.Errorf("lost: %q", text)
	}
}

// words counts words, so that tests can tell counts apart.
type words struct{ calls int }

func (*words) ID() string           { return "words" }
func (*words) Text(text string) int { return len(strings.Fields(text)) }
func (w *words) Parts(parts []protocol.Part) int {
	w.calls++
	return w.Text(TextOf(parts))
}

func TestTokensAreStoredOrCounted(t *testing.T) {
	l := newLedger(t)
	l.add("u1", "root", store.NodeSpec{Content: say("one two three"), Tokens: 70, Tokenizer: "words"})
	l.add("a1", "u1", store.NodeSpec{Content: say("one two"), Tokens: 99, Tokenizer: "another"})
	k := &words{}
	c := l.render("a1", Options{Counter: k, Draft: say("four words are here").Parts})
	var got []int
	for _, e := range c.Entries {
		got = append(got, e.Tokens)
	}
	if want := []int{2, 70, 2, 4}; !slices.Equal(got, want) || c.Tokens != 78 {
		t.Errorf("tokens %v, in all %d; want %v and 78", got, c.Tokens, want)
	}
	if last := c.Entries[3]; last.Why != protocol.WhyDraft || last.Node.Seq != 0 {
		t.Errorf("the draft is %+v", last)
	}
}

func TestTranscriptWindows(t *testing.T) {
	l := newLedger(t)
	l.chain("root", "u1", "a1", "u2", "a2", "u3", "a3")
	l.chain("u2", "a2b", "u3b", "a3b")
	l.summary("s1", "u1", "a1")
	l.apply(func(tx *store.Tx) error { return tx.SetHead(l.nodes["a3"], "") })
	rows := func(w Window) string {
		t.Helper()
		w.Head = l.nodes["a3"]
		if w.Limit == 0 {
			w.Limit = 50
		}
		tr, err := Transcript(l.reader(), w)
		if err != nil {
			t.Fatal(err)
		}
		var out []string
		for _, r := range tr.Rows {
			s := r.ID
			if r.Kind == protocol.KindRoot {
				s = "root"
			}
			if r.Ghost {
				s += "~"
			}
			if r.Siblings != nil {
				s += fmt.Sprintf("(%d/%d)", r.Siblings.Index, r.Siblings.Count)
			}
			out = append(out, s)
		}
		return strings.Join(out, " ")
	}
	for _, tc := range []struct {
		w    Window
		want string
	}{
		{Window{}, "root s1 u2 a2(1/2) u3 a3"},
		{Window{Expanded: []string{"s1"}}, "root u1~ a1~ s1 u2 a2(1/2) u3 a3"},
		{Window{Limit: 2}, "u3 a3"},
		{Window{Before: "u3", Limit: 2}, "u2 a2(1/2)"},
		{Window{Before: "u2"}, "root s1"},
		{Window{Before: "s1"}, "root"},
		{Window{After: "u2", Limit: 2}, "a2(1/2) u3"},
		{Window{After: "a3"}, ""},
		{Window{Around: "a2", Limit: 2}, "a2(1/2) u3"},
	} {
		if got := rows(tc.w); got != tc.want {
			t.Errorf("%+v: %s, want %s", tc.w, got, tc.want)
		}
	}
	tr, err := Transcript(l.reader(), Window{Limit: 3})
	if err != nil {
		t.Fatal(err)
	}
	a2 := tr.Rows[0]
	if a2.Siblings.Next == nil || a2.Siblings.Next.ID != "a2b" || a2.Siblings.Next.Tip != "a3b" {
		t.Errorf("the next sibling is %+v, want a2b with tip a3b", a2.Siblings.Next)
	}
	if _, err := Transcript(l.reader(), Window{Around: "a3b", Limit: 3}); protocol.CodeOf(err) != protocol.CodeUnknownNode {
		t.Errorf("a node of another branch: %v", err)
	}
}

func TestPreviewIsOneShortLine(t *testing.T) {
	if got := Preview([]protocol.Part{{Type: protocol.PartText, Text: "  a\n\n b\tc  "}}); got != "a b c" {
		t.Errorf("preview %q", got)
	}
	long := Preview([]protocol.Part{{Type: protocol.PartText, Text: strings.Repeat("漢", 500)}})
	if n := len([]rune(long)); n != 200 || !strings.HasSuffix(long, "…") {
		t.Errorf("a long preview has %d characters", n)
	}
}
