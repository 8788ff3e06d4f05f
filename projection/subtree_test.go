package projection

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"convls/protocol"
	"convls/store"
)

// spawn appends a called message and its reply.
func (l *ledger) spawn(user, reply, after, caller string, exposed bool) {
	l.t.Helper()
	l.apply(func(tx *store.Tx) error {
		u, err := tx.Append(store.NodeSpec{ID: user, Kind: protocol.KindUser, Predecessor: l.nodes[after].Seq, Caller: l.nodes[caller].Seq, Exposed: exposed,
			Status: protocol.StatusSealed, HeadNeutral: true, Content: say(user)})
		if err != nil {
			return err
		}
		a, err := tx.Append(store.NodeSpec{ID: reply, Kind: protocol.KindAssistant, Predecessor: u.Seq, Status: protocol.StatusSealed, HeadNeutral: true, Content: say(reply)})
		l.nodes[user], l.nodes[reply] = u, a
		return err
	})
}

// Calls and spawned turns are shown where they hang, if they were exposed, each with
// what it exposed in turn; the spine goes its own way.
func TestAsides(t *testing.T) {
	l := newLedger(t)
	l.chain("root", "u1", "a1")
	l.spawn("s1", "as1", "a1", "a1", true)
	l.add("exec", "a1", store.NodeSpec{Kind: protocol.KindCall, Exposed: true, Content: store.Content{Prompt: say("why?").Parts, Parts: say("so").Parts}})
	l.add("secret", "a1", store.NodeSpec{Kind: protocol.KindCall, Content: say("hidden")})
	l.add("open", "a1", store.NodeSpec{Kind: protocol.KindCall, Exposed: true, Status: protocol.StatusOpen, Content: say("half")})
	l.spawn("s2", "as2", "a1", "as1", true)  // called by the spawned turn
	l.spawn("s3", "as3", "a1", "as1", false) // not exposed
	l.spawn("s4", "as4", "a1", "s3", true)   // inside what is not exposed
	l.chain("a1", "u2", "a2")
	l.chain("as1", "u9") // a person went on there: that is no part of the spawned turn
	for head, want := range map[string]string{
		"a2":  "root u1 a1 exec s1 as1 s2 as2 u2 a2",
		"as1": "root u1 a1 exec s1 as1 s2 as2",
		"as3": "root u1 a1 exec s1 as1 s2 as2 s3 s4 as4 as3",
		"u9":  "root u1 a1 exec s1 as1 s2 as2 u9",
	} {
		c := l.render(head, Options{})
		if got := ids(c); got != want {
			t.Errorf("from %s: %s, want %s", head, got, want)
		}
		reads, err := l.reader().Reads(&store.Content{Reads: c.Reads()})
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(reads, " "); got != strings.Replace(want, "root", l.nodes["root"].ID, 1) {
			t.Errorf("reads from %s: %s, want %s", head, got, want)
		}
	}
	c := l.render("a2", Options{})
	if text := TextOf(c.Entries[3].Parts); !strings.Contains(text, "why?") || !strings.Contains(text, "so") || !strings.Contains(text, "no instruction") {
		t.Errorf("the call is shown as %q", text)
	}
	// A compaction reads the same, but for what is still being written, and nothing that
	// was not there.
	stretch := func(o Options) string {
		var got []string
		for w, err := range Stretch(l.reader(), l.nodes["u1"], l.nodes["a1"], o) {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, w.Node.ID)
			if w.Aside != (w.Why == protocol.WhySubtree) || len(w.Parts) == 0 {
				t.Errorf("%s: aside %v, parts %+v", w.Node.ID, w.Aside, w.Parts)
			}
		}
		return strings.Join(got, " ")
	}
	if got := stretch(Options{}); got != "u1 a1 exec s1 as1 s2 as2" {
		t.Errorf("a stretch is %s", got)
	}
	if got := stretch(Options{Head: l.nodes["as1"]}); got != "u1 a1 exec" {
		t.Errorf("a stretch of the spawned branch is %s", got)
	}
	if got := stretch(Options{Asides: map[store.Seq]bool{l.nodes["exec"].Seq: true}}); got != "u1 a1 exec" {
		t.Errorf("a stretch with the call alone is %s", got)
	}
	if diff := cmp.Diff("root u2 a2", ids(l.render("a2", Options{Range: ptr(2)}))); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff("root a1 exec s1 as1 s2 as2 u2 a2", ids(l.render("a2", Options{Range: ptr(3)}))); diff != "" {
		t.Error(diff)
	}
}

func ptr(n int) *int { return &n }

// fault 57: a spawned turn of any number of replies, and calls within calls to any
// depth, are walked with a stack.
func TestDeepAsides(t *testing.T) {
	l := newLedger(t)
	l.chain("root", "u1", "a1")
	const deep = 20_000
	l.apply(func(tx *store.Tx) error {
		at := l.nodes["a1"]
		for range deep {
			n, err := tx.Append(store.NodeSpec{Kind: protocol.KindCall, Caller: at.Seq, Exposed: true, Status: protocol.StatusSealed, Content: say("x")})
			if err != nil {
				return err
			}
			at = n
		}
		at, err := tx.Append(store.NodeSpec{Kind: protocol.KindUser, Predecessor: l.nodes["a1"].Seq, Caller: l.nodes["a1"].Seq, Exposed: true,
			Status: protocol.StatusSealed, HeadNeutral: true, Content: say("x")})
		for range deep {
			if err != nil {
				return err
			}
			at, err = tx.Append(store.NodeSpec{Kind: protocol.KindAssistant, Predecessor: at.Seq, Status: protocol.StatusSealed, HeadNeutral: true, Content: say("x")})
		}
		return err
	})
	if n := len(l.render("a1", Options{}).Entries); n != 3+2*deep+1 {
		t.Errorf("%d entries, want %d", n, 3+2*deep+1)
	}
}

// What is spawned is nobody's sibling, and no transcript takes it for what goes on.
func TestSpawnedTurnsAreNoSiblings(t *testing.T) {
	l := newLedger(t)
	l.chain("root", "u1", "a1")
	l.spawn("s1", "as1", "a1", "a1", true)
	l.chain("a1", "u2", "a2")
	siblings := func(head string) string {
		tr, err := Transcript(l.reader(), Window{Head: l.nodes[head], Limit: 10})
		if err != nil {
			t.Fatal(err)
		}
		var out []string
		for _, r := range tr.Rows {
			if r.Siblings != nil {
				out = append(out, fmt.Sprintf("%s %d/%d", r.ID, r.Siblings.Index, r.Siblings.Count))
			}
		}
		return strings.Join(out, ", ")
	}
	if got := siblings("a2") + siblings("as1"); got != "" {
		t.Errorf("siblings: %s", got)
	}
	l.chain("a1", "u3")
	if got := siblings("a2"); got != "u2 1/2" {
		t.Errorf("siblings: %s", got)
	}
	next, err := NextReply(l.reader(), l.nodes["a1"])
	if err != nil || next.Seq != 0 {
		t.Errorf("after a1 the turn goes on with %q (%v)", next.ID, err)
	}
}
