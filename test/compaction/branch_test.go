package compaction

import (
	"slices"
	"strings"
	"testing"

	"convls/protocol"
	"convls/test/editor"
)

// TestMovesOverTheBoundary rewinds to every message and goes to every node, in front
// of the boundary of a compaction and behind it: the target is the same node as
// without a compaction, and the view is compacted exactly where all covered nodes are
// on the spine (faults 44 to 46, 49, 51).
func TestMovesOverTheBoundary(t *testing.T) {
	c := newChat(t, nil)
	c.chat(5)
	r := c.compacted(params{"keep_recent_tokens": 450})
	spine, covered := chain(c.raw("")), c.covers(r.SummaryID)
	head := c.head()
	last := slices.Index(spine, covered[len(covered)-1])
	if tail := c.node(spine[last+1]); tail.Predecessor != spine[last] {
		t.Errorf("fault 54: the first kept node follows %s", tail.Predecessor)
	}
	rendered := func(at int) []string {
		if at < last {
			return spine[:at+1]
		}
		return slices.Concat(spine[:1], spine[last+1:at+1])
	}
	for i := 1; i < len(spine); i++ {
		if i%2 == 1 { // a message of the user
			back := mutate[protocol.RewindResult](c, protocol.MethodBranchRewind, params{"node_id": spine[i]})
			if back.Head != spine[i-1] || c.head() != spine[i-1] || back.Content[0].Text != c.node(spine[i]).Content[0].Text {
				t.Errorf("rewind to before node %d: HEAD is %s, want %s", i, back.Head, spine[i-1])
			}
			same(t, "the view after a rewind", chain(c.context("")), rendered(i-1))
			c.checkout(head)
		}
		f := mutate[protocol.ForkResult](c, protocol.MethodBranchFork, params{"node_id": spine[i]})
		if f.Head != spine[i] {
			t.Errorf("a fork at node %d has HEAD %s", i, f.Head)
		}
		view := c.context("")
		same(t, "the view of a fork", chain(view), rendered(i))
		if (view.SummaryID == r.SummaryID) != (i >= last) {
			t.Errorf("fault 49: a fork at node %d carries the summary %q", i, view.SummaryID)
		}
		c.checkout(head)
	}
}

// TestErasOfAnOldSummary compacts three times and goes back to where each was made:
// under rolling the branch renders raw there, under per-branch as it did then, and
// the other policy is a view only (fault 48; spec/compaction, section 7).
func TestErasOfAnOldSummary(t *testing.T) {
	c := newChat(t, nil)
	type era struct {
		head    string
		view    []string
		summary string
	}
	var eras []era
	for range 3 {
		c.chat(3)
		r := c.compacted(params{"keep_recent_tokens": 250})
		eras = append(eras, era{c.head(), ids(c.context("")), r.SummaryID})
	}
	nodes := c.open().Session.Nodes
	for i, e := range eras {
		want := ids(c.raw(e.head))
		if i == len(eras)-1 {
			want = e.view
		}
		same(t, "rolling", ids(c.context(e.head)), want)
	}
	mutate[protocol.SessionResult](c, protocol.MethodSessionConfigure, params{"policy": "per-branch"})
	for _, e := range eras {
		same(t, "per-branch", ids(c.context(e.head)), e.view)
	}
	// What is undone is undone for the branches that HEAD is on.
	mutate[protocol.CompactionActivateResult](c, protocol.MethodCompactionActivate, params{"summary_id": eras[1].summary})
	if v := c.context(""); v.SummaryID != eras[1].summary {
		t.Errorf("after an undo under per-branch %s stands", v.SummaryID)
	}
	mutate[protocol.CompactionActivateResult](c, protocol.MethodCompactionActivate, params{"summary_id": eras[2].summary})
	mutate[protocol.SessionResult](c, protocol.MethodSessionConfigure, params{"policy": "rolling"})
	same(t, "rolling again", ids(c.context("")), eras[2].view)
	if n := c.open().Session.Nodes; n != nodes {
		t.Errorf("there were %d nodes, and are %d", nodes, n)
	}
}

// two makes a session with two branches that part after the second message, and
// returns their tips. HEAD is on the first.
func (c *chat) two() (a, b string) {
	c.t.Helper()
	start := c.chat(2)
	c.send("Alpha is the word here. " + long("So it is.", 120))
	a = c.chat(2)[1]
	c.checkout(start[1])
	c.send("Beta is the word here. " + long("So it is.", 120))
	b = c.chat(2)[1]
	c.checkout(a)
	return a, b
}

// TestTwoBranches compacts one branch, then the other. Under rolling the second
// summary knows nothing of the first, which is told to stand nowhere from then on;
// under per-branch both stand (defects 5 and 7).
func TestTwoBranches(t *testing.T) {
	server := newChat(t, nil)
	for _, policy := range []string{"rolling", "per-branch"} {
		t.Run(policy, func(t *testing.T) {
			c := server.row(t, nil)
			mutate[protocol.SessionResult](c, protocol.MethodSessionConfigure, params{"policy": policy})
			a, b := c.two()
			first := c.compacted(params{"keep_recent_tokens": 250})
			if len(first.RawTips) != 0 || c.context(b).SummaryID != "" {
				t.Errorf("the first summary stands in the other branch: %q, %v", c.context(b).SummaryID, first.RawTips)
			}
			viewA, asked := ids(c.context(a)), len(c.model.questions())
			c.checkout(b)
			second := c.compacted(params{"keep_recent_tokens": 250})
			for _, q := range c.model.questions()[asked:] {
				if strings.Contains(q, "Alpha") || !strings.Contains(q, "The memory so far is empty") {
					t.Errorf("defect 7: the other branch's summary is in %s", q)
				}
			}
			if strings.Contains(c.context(b).Entries[1].Text, "Alpha") {
				t.Error("defect 7: the other branch's words are in the summary")
			}
			onWire := 0
			for _, s := range []string{first.SummaryID, second.SummaryID} {
				if n := c.node(s); n.CoversIDs != nil {
					onWire++
				} else if !n.SupersededSummary {
					t.Errorf("%s is neither active nor superseded", s)
				}
			}
			if policy == "rolling" {
				same(t, "the tips that render raw", second.RawTips, []string{a})
				same(t, "the first branch", ids(c.context(a)), ids(c.raw(a)))
				if onWire != 1 {
					t.Errorf("defect 5: %d summaries have covers_ids", onWire)
				}
			} else {
				same(t, "the tips that render raw", second.RawTips, nil)
				same(t, "the first branch", ids(c.context(a)), viewA)
				// An undo on one branch leaves the other.
				mutate[protocol.CompactionActivateResult](c, protocol.MethodCompactionActivate, params{"summary_id": nil})
				if c.context(a).SummaryID != first.SummaryID || c.context(b).SummaryID != "" {
					t.Errorf("after an undo on the second branch: %q and %q", c.context(a).SummaryID, c.context(b).SummaryID)
				}
			}
		})
	}
}

// TestStaleBranch goes to a branch that the present summary serves while a run on
// another is under way: the run is stale, because that branch would render raw
// without a word (design.md, "HEAD, operation by operation").
func TestStaleBranch(t *testing.T) {
	server := newChat(t, nil)
	c := server.row(t, nil)
	a, b := c.two()
	first := c.compacted(params{"keep_recent_tokens": 250})
	c.checkout(b)
	run := c.hold(nil)
	c.checkout(a)
	before := c.views()
	run.gate.Release()
	if end := c.outcome(run.CompactionID); end.Type != failed || end.Error.Code != protocol.CodeStaleCompaction {
		t.Errorf("the run ended with %s: %+v", end.Type, end.Error)
	}
	c.unchanged(before)
	if v := c.context(a); v.SummaryID != first.SummaryID {
		t.Errorf("the first branch has the summary %q", v.SummaryID)
	}
}

// TestLostNodes takes covered nodes away, by deletion and by redaction: the summary is
// void for every consumer at once, the branch renders raw, and a new compaction takes
// nothing of the void one on (defect 4; faults 16 and 50).
func TestLostNodes(t *testing.T) {
	server := newChat(t, nil)
	for _, row := range []struct {
		name string
		lose func(c *chat, covered []string)
	}{
		{"a delete", func(c *chat, covered []string) {
			c.checkout(covered[1])
			c.chat(3)
			tip := ""
			for _, b := range c.open().Branches {
				if !b.IsHead {
					tip = b.Tip
				}
			}
			mutate[protocol.BranchDeleteResult](c, protocol.MethodBranchDelete, params{"tip": tip, "confirm": true})
		}},
		{"a redaction", func(c *chat, covered []string) {
			mutate[protocol.NodeResult](c, protocol.MethodNodeRedact, params{"node_id": covered[0], "confirm": true})
		}},
	} {
		t.Run(row.name, func(t *testing.T) {
			c := server.row(t, eager(nil))
			mutate[protocol.SessionResult](c, protocol.MethodSessionConfigure, params{"settings": params{"compaction.auto": false}})
			c.send("We decided to use Gamma. " + long("So it is.", 100))
			c.chat(3)
			mutate[protocol.ForkResult](c, protocol.MethodBranchFork, params{"node_id": chain(c.raw(""))[3], "name": "label"})
			c.checkout(c.leaf())
			r := c.compacted(params{"keep_recent_tokens": 250})
			if !strings.Contains(said(c.node(r.SummaryID)), "Gamma") {
				t.Fatalf("the summary lacks the word: %s", said(c.node(r.SummaryID)))
			}
			covered := c.covers(r.SummaryID)
			mutate[protocol.BranchResult](c, protocol.MethodBranchRename, params{"branch": "label", "name": ""})
			if c.context("").SummaryID != r.SummaryID {
				t.Error("fault 50: the summary does not stand after a name is gone")
			}
			row.lose(c, covered)
			info := c.list().Summaries[0]
			n := c.node(r.SummaryID)
			if !info.Void || info.VoidReason == "" || info.Active || info.Applies || !n.Void || n.CoversIDs != nil {
				t.Errorf("the summary is listed as %+v", info)
			}
			same(t, "the view", ids(c.context("")), ids(c.raw("")))
			if row.name == "a redaction" && (strings.Contains(said(n), "Gamma") || strings.Contains(string(n.Manifest), "Gamma")) {
				t.Errorf("what was redacted is in the summary: %s", said(n))
			}
			editor.Refused(c.Editor, protocol.CodeUnknownSummary, protocol.MethodCompactionActivate, params{"session_id": c.session, "summary_id": r.SummaryID})
			editor.Refused(c.Editor, protocol.CodeUnknownSummary, protocol.MethodCompactionRebuild, params{"session_id": c.session, "summary_id": r.SummaryID})
			asked := len(c.model.questions())
			again := c.compacted(params{"keep_recent_tokens": 250})
			for _, q := range c.model.questions()[asked:] {
				if strings.Contains(q, "Gamma") && row.name == "a redaction" || !strings.Contains(q, "The memory so far is empty") {
					t.Errorf("the void summary is in %s", q)
				}
			}
			if again.SummaryID == r.SummaryID || c.context("").SummaryID != again.SummaryID {
				t.Errorf("the new summary does not stand: %+v", c.list())
			}
		})
	}
}

// leaf returns the deepest tip.
func (c *chat) leaf() (tip string) {
	depth := int64(-1)
	for _, b := range c.open().Branches {
		if d := c.node(b.Tip).Depth; d > depth {
			tip, depth = b.Tip, d
		}
	}
	return tip
}

// said is the text of a node.
func said(n protocol.Node) (text string) {
	for _, p := range n.Content {
		text += p.Text
	}
	return text
}
