package store

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"pgregory.net/rapid"

	"convls/protocol"
)

// ledger is what a session should be, kept in maps and answered by walking.
type ledger struct {
	nodes  map[Seq]*imagined
	next   Seq
	head   Seq
	branch string
	names  map[string]Seq
	uses   uint64
	used   map[Seq]uint64 // tips
	active Seq
}

type imagined struct {
	seq, predecessor, caller Seq
	kind                     protocol.Kind
	status                   protocol.Status
	text                     string
	first, last              Seq // of a summary
	count                    int
	void                     bool
}

func newLedger() *ledger {
	l := &ledger{nodes: map[Seq]*imagined{}, next: 1, names: map[string]Seq{}, used: map[Seq]uint64{}}
	l.append(&imagined{kind: protocol.KindRoot, status: protocol.StatusSealed}, false)
	return l
}

func (l *ledger) append(n *imagined, neutral bool) {
	n.seq = l.next
	l.nodes[n.seq] = n
	l.next++
	if !n.kind.OnChain() {
		return
	}
	used := uint64(0)
	if n.caller == 0 {
		used = l.used[n.predecessor]
		delete(l.used, n.predecessor)
	}
	if n.predecessor == l.head && !neutral {
		l.uses++
		used = l.uses
		if l.branch != "" {
			l.names[l.branch] = n.seq
		}
		l.head = n.seq
	}
	l.used[n.seq] = used
}

func (l *ledger) setHead(seq Seq, branch string) {
	l.head, l.branch = seq, branch
	if _, tip := l.used[seq]; tip {
		l.uses++
		l.used[seq] = l.uses
	}
}

func (l *ledger) spine(seq Seq) []Seq {
	var s []Seq
	for ; seq != 0; seq = l.nodes[seq].predecessor {
		s = append(s, seq)
	}
	return s // from seq to the root
}

func (l *ledger) children(seq Seq) (c []Seq) {
	for _, n := range l.nodes {
		if n.predecessor == seq && n.kind.OnChain() {
			c = append(c, n.seq)
		}
	}
	slices.Sort(c)
	return c
}

// followers are the children that were not spawned.
func (l *ledger) followers(seq Seq) []Seq {
	return slices.DeleteFunc(l.children(seq), func(c Seq) bool { return l.nodes[c].caller != 0 })
}

// subtree is what goes with a node: what it called, what hangs off it, spawned turns
// among that, and, where whole is set, the chain after it.
func (l *ledger) subtree(seq Seq, whole bool, gone map[Seq]bool) {
	if gone[seq] {
		return
	}
	gone[seq] = true
	for _, n := range l.nodes {
		if n.caller == seq || n.predecessor == seq && (whole || !n.kind.OnChain() || n.caller != 0) {
			l.subtree(n.seq, true, gone)
		}
	}
}

// exclusive is what a delete of a tip's branch takes away, and the fork point: where
// a spawned turn begins, or more than one turn follows that was not spawned.
func (l *ledger) exclusive(tip Seq) (map[Seq]bool, Seq) {
	gone := map[Seq]bool{}
	spawned := false
	for at := tip; ; at = l.nodes[at].predecessor {
		if l.nodes[at].kind == protocol.KindRoot || at != tip && len(l.followers(at)) > 1 || spawned {
			return gone, at
		}
		spawned = l.nodes[at].caller != 0
		l.subtree(at, false, gone)
	}
}

func (l *ledger) remove(tip Seq) {
	gone, fork := l.exclusive(tip)
	used := l.used[tip]
	for _, n := range l.nodes {
		if n.kind == protocol.KindSummary && gone[n.last] {
			n.void = true
			if l.active == n.seq {
				l.active = 0
			}
		}
	}
	if gone[l.active] {
		l.active = 0
	}
	for seq := range gone {
		delete(l.nodes, seq)
		delete(l.used, seq)
	}
	for name, seq := range l.names {
		if gone[seq] {
			delete(l.names, name)
			if l.branch == name {
				l.branch = ""
			}
		}
	}
	for _, n := range l.nodes {
		if _, tip := l.used[n.seq]; n.kind.OnChain() && !tip && len(l.followers(n.seq)) == 0 {
			l.used[n.seq] = used
		}
	}
	if gone[l.head] {
		l.setHead(fork, "")
	}
}

func (l *ledger) redact(seq Seq) {
	n := l.nodes[seq]
	n.text = RedactedText
	if n.kind == protocol.KindSummary {
		n.void = true
		if l.active == seq {
			l.active = 0
		}
		return
	}
	// Whose content may have been read as part of which chain nodes.
	holders := map[Seq]bool{}
	var hold func(Seq)
	hold = func(seq Seq) {
		for !l.nodes[seq].kind.OnChain() {
			n := l.nodes[seq]
			if seq = n.caller; seq == 0 {
				seq = n.predecessor
			}
		}
		if holders[seq] {
			return
		}
		holders[seq] = true
		for _, above := range l.spine(seq) {
			if c := l.nodes[above].caller; c != 0 {
				hold(c)
			}
		}
	}
	hold(seq)
	for _, s := range l.nodes {
		if s.kind != protocol.KindSummary {
			continue
		}
		for h := range holders {
			covered := false
			if _, there := l.nodes[s.last]; there {
				spine := l.spine(s.last)
				if at, from := slices.Index(spine, h), slices.Index(spine, s.first); at >= 0 && at <= from {
					covered = true
				}
			} else if at := slices.Index(l.spine(h), s.first); at >= 0 && at < s.count {
				covered = true // it can have been
			}
			if covered {
				s.void, s.text = true, RedactedText
				if l.active == s.seq {
					l.active = 0
				}
			}
		}
	}
}

func (l *ledger) interrupt() {
	for _, n := range l.nodes {
		if n.status == protocol.StatusOpen {
			n.status = protocol.StatusInterrupted
		}
	}
}

// machine runs the same operations on a store and on the model.
type machine struct {
	store  *Store
	sess   *Session
	model  *ledger
	names  int
	checks int
}

func (m *machine) pick(t *rapid.T, ok func(*imagined) bool) *imagined {
	var seqs []Seq
	for seq, n := range m.model.nodes {
		if ok(n) {
			seqs = append(seqs, seq)
		}
	}
	if len(seqs) == 0 {
		t.Skip("no such node")
	}
	slices.Sort(seqs)
	return m.model.nodes[rapid.SampledFrom(seqs).Draw(t, "node")]
}

func onChain(n *imagined) bool { return n.kind.OnChain() }

func (m *machine) apply(t *rapid.T, f func(*Tx) error) {
	if _, err := Apply(context.Background(), m.sess, Request{}, func(tx *Tx) (struct{}, error) { return struct{}{}, f(tx) }); err != nil {
		t.Fatal(err)
	}
}

func (m *machine) add(t *rapid.T, n *imagined, neutral bool) {
	n.text = fmt.Sprintf("text %d", m.model.next)
	m.apply(t, func(tx *Tx) error {
		sk, err := tx.Append(NodeSpec{Kind: n.kind, Predecessor: n.predecessor, Caller: n.caller, Status: n.status, HeadNeutral: neutral, Content: textContent(n.text)})
		if err == nil && sk.Seq != m.model.next {
			return fmt.Errorf("node %d, want %d", sk.Seq, m.model.next)
		}
		return err
	})
	m.model.append(n, neutral)
}

func (m *machine) actions() map[string]func(*rapid.T) {
	sealed := func(n *imagined) bool { return n.kind.OnChain() && n.status != protocol.StatusOpen }
	isTip := func(n *imagined) bool { _, tip := m.model.used[n.seq]; return tip }
	return map[string]func(*rapid.T){
		"append at HEAD": func(t *rapid.T) {
			if !sealed(m.model.nodes[m.model.head]) {
				t.Skip("HEAD is open")
			}
			m.add(t, &imagined{kind: protocol.KindUser, status: protocol.StatusSealed, predecessor: m.model.head}, false)
		},
		"append anywhere": func(t *rapid.T) {
			status := rapid.SampledFrom([]protocol.Status{protocol.StatusSealed, protocol.StatusOpen}).Draw(t, "status")
			m.add(t, &imagined{kind: protocol.KindAssistant, status: status, predecessor: m.pick(t, sealed).seq}, rapid.Bool().Draw(t, "neutral"))
		},
		"append off the chain": func(t *rapid.T) {
			kind := rapid.SampledFrom([]protocol.Kind{protocol.KindTool, protocol.KindCall, protocol.KindNotice}).Draw(t, "kind")
			n := &imagined{kind: kind, status: protocol.StatusSealed}
			if kind != protocol.KindTool {
				n.predecessor = m.pick(t, onChain).seq
			}
			if kind != protocol.KindNotice {
				n.caller = m.pick(t, func(n *imagined) bool { return n.kind != protocol.KindRoot && n.kind != protocol.KindSummary }).seq
			}
			m.add(t, n, false)
		},
		"spawn": func(t *rapid.T) {
			caller := m.pick(t, func(n *imagined) bool { return n.kind == protocol.KindTool })
			m.add(t, &imagined{kind: protocol.KindUser, status: protocol.StatusSealed, predecessor: m.pick(t, sealed).seq, caller: caller.seq}, true)
		},
		"seal": func(t *rapid.T) {
			n := m.pick(t, func(n *imagined) bool { return n.status == protocol.StatusOpen })
			n.status = rapid.SampledFrom([]protocol.Status{protocol.StatusSealed, protocol.StatusFailed, protocol.StatusCancelled}).Draw(t, "status")
			n.text = fmt.Sprintf("sealed %d", n.seq)
			m.apply(t, func(tx *Tx) error {
				_, err := tx.Seal(n.seq, Final{Status: n.status, Content: textContent(n.text)})
				return err
			})
		},
		"set HEAD": func(t *rapid.T) {
			n := m.pick(t, onChain)
			branch := ""
			for _, name := range slices.Sorted(maps.Keys(m.model.names)) {
				if m.model.names[name] == n.seq {
					branch = name
				}
			}
			m.apply(t, func(tx *Tx) error { return tx.SetHead(Skeleton{Seq: n.seq}, branch) })
			m.model.setHead(n.seq, branch)
		},
		"name": func(t *rapid.T) {
			n := m.pick(t, onChain)
			m.names++
			name := fmt.Sprint("b", m.names)
			m.apply(t, func(tx *Tx) error { return tx.Name(name, Skeleton{Seq: n.seq}) })
			m.model.names[name] = n.seq
		},
		"unname": func(t *rapid.T) {
			if len(m.model.names) == 0 {
				t.Skip("no names")
			}
			name := rapid.SampledFrom(slices.Sorted(maps.Keys(m.model.names))).Draw(t, "name")
			m.apply(t, func(tx *Tx) error { return tx.Unname(name) })
			delete(m.model.names, name)
			if m.model.branch == name {
				m.model.branch = ""
			}
		},
		"delete": func(t *rapid.T) {
			tip := m.pick(t, func(n *imagined) bool {
				if !isTip(n) || n.kind == protocol.KindRoot {
					return false
				}
				gone, _ := m.model.exclusive(n.seq)
				for seq := range gone {
					if m.model.nodes[seq].status == protocol.StatusOpen {
						return false
					}
				}
				return true
			})
			gone, fork := m.model.exclusive(tip.seq)
			m.apply(t, func(tx *Tx) error {
				rm, err := tx.Exclusive(Skeleton{Seq: tip.seq, Predecessor: tip.predecessor, Caller: tip.caller, Depth: uint64(len(m.model.spine(tip.seq)) - 1), Kind: tip.kind})
				if err != nil {
					return err
				}
				if rm.Count != int64(len(gone)) || rm.ForkPoint.Seq != fork {
					return fmt.Errorf("%d nodes from node %d, want %d from %d", rm.Count, rm.ForkPoint.Seq, len(gone), fork)
				}
				return tx.Delete(rm)
			})
			m.model.remove(tip.seq)
		},
		"summarise": func(t *rapid.T) {
			last := m.pick(t, func(n *imagined) bool { return sealed(n) && n.kind != protocol.KindRoot })
			spine := m.model.spine(last.seq)
			count := rapid.IntRange(1, len(spine)-1).Draw(t, "count")
			first := spine[count-1]
			activate := rapid.Bool().Draw(t, "activate")
			n := &imagined{kind: protocol.KindSummary, status: protocol.StatusSealed, first: first, last: last.seq, count: count,
				predecessor: m.model.nodes[first].predecessor, text: fmt.Sprint("summary ", m.model.next)}
			m.apply(t, func(tx *Tx) error {
				_, err := tx.AppendSummary(SummarySpec{First: first, Last: last.seq, Activate: activate, Content: textContent(n.text)})
				return err
			})
			m.model.append(n, false)
			if activate {
				m.model.active = n.seq
			}
		},
		"redact": func(t *rapid.T) {
			n := m.pick(t, func(n *imagined) bool {
				return n.kind != protocol.KindRoot && n.status != protocol.StatusOpen && n.kind != protocol.KindTool
			})
			if n.text != RedactedText {
				m.model.redact(n.seq)
			}
			m.apply(t, func(tx *Tx) error { return tx.Redact(Skeleton{Seq: n.seq}) })
		},
		"reopen": func(t *rapid.T) {
			if err := m.store.Close(); err != nil {
				t.Fatal(err)
			}
			m.open(t)
			m.model.interrupt()
		},
		"": m.check,
	}
}

func (m *machine) open(t *rapid.T) {
	o := m.store.opts
	s, err := Open(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	m.store = s
	if m.sess, err = s.Session(m.sess.ID()); err != nil {
		t.Fatal(err)
	}
}

// check compares everything that can be asked.
func (m *machine) check(t *rapid.T) {
	r, err := m.sess.Reader()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	l := m.model
	equal := func(what string, got, want any) {
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Fatalf("%s: %v, want %v", what, got, want)
		}
	}
	equal("HEAD", r.State.Head, l.head)
	equal("branch of HEAD", r.State.Branch, l.branch)
	equal("active summary", r.State.Active, l.active)
	equal("number of nodes", r.State.Nodes, len(l.nodes))
	names, err := r.Names()
	if err != nil {
		t.Fatal(err)
	}
	equal("names", names, l.names)
	leaves, err := r.Leaves()
	if err != nil {
		t.Fatal(err)
	}
	used := map[Seq]uint64{}
	for _, leaf := range leaves {
		used[leaf.Seq] = leaf.Used
	}
	equal("tips", used, l.used)

	var chain []Skeleton
	for _, seq := range slices.Sorted(maps.Keys(l.nodes)) {
		n := l.nodes[seq]
		sk, err := r.Skeleton(seq)
		if err != nil {
			t.Fatal(err)
		}
		equal("edges and state", []any{sk.Predecessor, sk.Caller, sk.Kind, sk.Status}, []any{n.predecessor, n.caller, n.kind, n.status})
		if n.kind != protocol.KindRoot {
			c, err := r.Content(seq)
			if err != nil {
				t.Fatal(err)
			}
			equal("text", Text(c.Parts), n.text)
		}
		if n.kind == protocol.KindSummary {
			void, err := r.Void(seq)
			if err != nil {
				t.Fatal(err)
			}
			equal("void", void, n.void)
		}
		if n.kind.OnChain() {
			chain = append(chain, sk)
			equal("depth", sk.Depth, len(l.spine(seq))-1)
			var children []Seq
			for c, err := range r.Children(seq) {
				if err != nil {
					t.Fatal(err)
				}
				children = append(children, c)
			}
			equal("children", children, l.children(seq))
			m.checkLastTip(t, r, sk)
		}
	}
	for range 4 {
		a, b := rapid.IntRange(0, len(chain)-1).Draw(t, "a"), rapid.IntRange(0, len(chain)-1).Draw(t, "b")
		m.checkAncestors(t, r, chain[a], chain[b])
	}
	if m.checks++; m.checks%8 != 0 {
		return // the store's own check takes longer than all of this
	}
	if err := m.store.Check(context.Background(), func(p Problem) { t.Error(p) }); err != nil {
		t.Fatal(err)
	}
}

func (m *machine) checkLastTip(t *rapid.T, r *Reader, sk Skeleton) {
	tip, err := r.LastTip(sk)
	if err != nil {
		t.Fatal(err)
	}
	best := Seq(0)
	for seq, used := range m.model.used {
		if !slices.Contains(m.model.spine(seq), sk.Seq) {
			continue
		}
		if b := m.model.used[best]; best == 0 || used > b || used == b && seq > best {
			best = seq
		}
	}
	if tip.Seq != best {
		t.Fatalf("last tip below node %d: %d, want %d", sk.Seq, tip.Seq, best)
	}
}

func (m *machine) checkAncestors(t *rapid.T, r *Reader, a, b Skeleton) {
	sa, sb := m.model.spine(a.Seq), m.model.spine(b.Seq)
	is, err := r.IsAncestor(a, b)
	if err != nil {
		t.Fatal(err)
	}
	if want := slices.Contains(sb, a.Seq); is != want {
		t.Fatalf("node %d is an ancestor of node %d: %v, want %v", a.Seq, b.Seq, is, want)
	}
	common, err := r.CommonAncestor(a, b)
	if err != nil {
		t.Fatal(err)
	}
	want := sb[slices.IndexFunc(sb, func(s Seq) bool { return slices.Contains(sa, s) })]
	if common.Seq != want {
		t.Fatalf("common ancestor of nodes %d and %d: %d, want %d", a.Seq, b.Seq, common.Seq, want)
	}
	depth := rapid.Uint64Range(0, b.Depth+1).Draw(t, "depth")
	at, err := r.AncestorAt(b, depth)
	if err != nil {
		t.Fatal(err)
	}
	if want := sb[len(sb)-1-int(min(depth, b.Depth))]; at.Seq != want {
		t.Fatalf("ancestor of node %d at depth %d: %d, want %d", b.Seq, depth, at.Seq, want)
	}
}

// fault 100, and all that design.md says of the tree: random operations, and the
// store is as a simple model after each of them.
func TestAgainstModel(t *testing.T) {
	if checks := flag.Lookup("rapid.checks"); sized(100) < 100 && checks.Value.String() == checks.DefValue {
		if err := flag.Set("rapid.checks", "20"); err != nil {
			t.Fatal(err)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		s, err := Open(context.Background(), Options{Dir: "ledger", FS: vfs.NewMem(), MemTableBytes: 256 << 10})
		if err != nil {
			t.Fatal(err)
		}
		m := &machine{store: s, model: newLedger()}
		defer func() { _ = m.store.Close() }()
		out, err := s.Create(context.Background(), Request{}, Info{}, "")
		if err != nil {
			t.Fatal(err)
		}
		if m.sess, err = s.Session(out.Result); err != nil {
			t.Fatal(err)
		}
		t.Repeat(m.actions())
	})
}

// Jump pointers at sizes that random operations do not reach: each node's jump has
// the length that skew-binary numbers give it, and walks are logarithmic.
func TestLongChain(t *testing.T) {
	s := openTest(t, vfs.NewMem())
	sess := newSession(t, s)
	n := sized(5_000)
	var at []Seq
	do(t, sess, func(tx *Tx) error {
		at = append(at, Root)
		for range n {
			sk, err := tx.Append(NodeSpec{Kind: protocol.KindUser, Predecessor: tx.State.Head, Status: protocol.StatusSealed})
			if err != nil {
				return err
			}
			at = append(at, sk.Seq)
		}
		return nil
	})
	r := snapshotUntilEnd(t, sess)
	head, err := r.Skeleton(at[n])
	if err != nil {
		t.Fatal(err)
	}
	for depth := range uint64(n + 1) {
		got, err := r.AncestorAt(head, depth)
		if err != nil || got.Seq != at[depth] {
			t.Fatalf("ancestor at depth %d: %d (%v), want %d", depth, got.Seq, err, at[depth])
		}
	}
	steps := 0
	for s := head; s.Depth > 0; steps++ {
		if s, err = r.Skeleton(s.Jump); err != nil {
			t.Fatal(err)
		}
	}
	if steps > 26 {
		t.Errorf("%d jumps to the root of a chain of %d", steps, n)
	}
}
