package transfer

import (
	"context"
	"math"
	"testing"

	"convls/protocol"
	"convls/store"
)

func importReal(t *testing.T, name string) (*store.Store, protocol.ImportReport) {
	t.Helper()
	s := openStore(t)
	var done, total int64
	r, err := Import(context.Background(), s, Source{Path: sharedFile(t, name)}, func(d, of int64) {
		if d < done {
			t.Errorf("progress went back from %d to %d", done, d)
		}
		done, total = d, of
	})
	if err != nil {
		t.Fatal(err)
	}
	if done != total || total == 0 {
		t.Errorf("progress ended at %d of %d", done, total)
	}
	clean(t, s)
	return s, r
}

func TestRealTrees(t *testing.T) {
	s, report := importReal(t, "oasst-100-trees.jsonl")
	if len(report.Sessions) != 100 || report.SkippedCount != 0 || report.Format != FormatTree {
		t.Fatalf("%d sessions, %d skipped, format %s", len(report.Sessions), report.SkippedCount, report.Format)
	}
	messages, forks, branches, users, replies := 0, 0, 0, 0, 0
	for _, e := range report.Sessions {
		sess := session(t, s, e.SessionID)
		r := reader(t, sess)
		n := kinds(t, r)
		messages += n["user"] + n["assistant"]
		users, replies = users+n["user"], replies+n["assistant"]
		leaves, err := r.Leaves()
		if err != nil {
			t.Fatal(err)
		}
		if int64(len(leaves)) != e.Branches || e.Nodes != int64(n["user"]+n["assistant"]+1) || e.Title == "" {
			t.Errorf("report says %+v, the session has %d tips and %v", e, len(leaves), n)
		}
		branches += len(leaves)
		for _, l := range leaves {
			tip, err := r.Skeleton(l.Seq)
			if err != nil {
				t.Fatal(err)
			}
			depth := tip.Depth
			for sk, err := range r.Spine(tip) {
				if err != nil || sk.Depth != depth {
					t.Fatalf("the walk from tip %s: %v at depth %d, want %d", tip.ID, err, sk.Depth, depth)
				}
				depth--
				if sk.Predecessor == 0 && sk.Kind != protocol.KindRoot {
					t.Errorf("the walk from tip %s ends at a %s", tip.ID, sk.Kind)
				}
			}
		}
		for sk, err := range skeletons(context.Background(), r) {
			if err != nil {
				t.Fatal(err)
			}
			children := 0
			for range r.Children(sk.Seq) {
				children++
			}
			if children > 1 {
				forks++
			}
		}
		if tip, err := r.IsTip(r.State.Head); err != nil || !tip {
			t.Errorf("HEAD of %s is not at a tip (%v)", e.SessionID, err)
		}
		roundTrip(t, sess)
	}
	t.Logf("%d sessions, %d messages (%d users', %d assistants'), %d with several replies, %d branches", len(report.Sessions), messages, users, replies, forks, branches)
	if messages != 1167 || forks != 260 || users != 480 || replies != 687 {
		t.Errorf("%d messages, %d forks, %d users, %d replies; the README says 1,167 and 260", messages, forks, users, replies)
	}
}

func TestRealAgentSession(t *testing.T) {
	s, report := importReal(t, "pi-session-914-messages.jsonl")
	if len(report.Sessions) != 1 || report.SkippedCount != 0 || report.Format != FormatAgent {
		t.Fatalf("%+v", report)
	}
	sess := session(t, s, report.Sessions[0].SessionID)
	r := reader(t, sess)
	n := kinds(t, r)
	t.Logf("%v, %s", n, report.Sessions[0].Title)
	for kind, want := range map[string]int{"user": 88, "assistant": 453, "tool": 391, "tool sealed": 373, "tool interrupted": 18,
		"assistant cancelled": 21, "assistant failed": 1, "assistant sealed": 431, "notice": 0, "summary": 0} {
		if n[kind] != want {
			t.Errorf("%d nodes %q, want %d", n[kind], kind, want)
		}
	}
	if cost := r.State.Total.Usage().CostUSD; math.Abs(cost-30.3302) > 0.001 {
		t.Errorf("cost %f, want 30.3302", cost)
	}
	models := map[string]int{}
	for sk, err := range skeletons(context.Background(), r) {
		if err != nil {
			t.Fatal(err)
		}
		c, err := r.Content(sk.Seq)
		if err != nil {
			t.Fatal(err)
		}
		if sk.Kind == protocol.KindAssistant {
			models[c.Model]++
		}
	}
	if models["anthropic/claude-sonnet-4-5"] != 452 || models["openai/gpt-5.1-codex"] != 1 {
		t.Errorf("models %v", models)
	}
	roundTrip(t, sess)
	if md := export(t, sess, Options{Format: FormatMarkdown}); len(md) < 500_000 {
		t.Errorf("the branch as Markdown has %d bytes", len(md))
	}
}

func TestRealCompactions(t *testing.T) {
	s, report := importReal(t, "pi-session-two-compactions.jsonl")
	sess := session(t, s, report.Sessions[0].SessionID)
	r := reader(t, sess)
	n := kinds(t, r)
	t.Logf("%v, skipped %v", n, report.Skipped)
	for kind, want := range map[string]int{"user": 55 + 3, "assistant": 484, "tool": 454, "tool sealed": 448, "summary": 2, "notice": 0} {
		if n[kind] != want {
			t.Errorf("%d nodes %q, want %d", n[kind], kind, want)
		}
	}
	if report.SkippedCount != 0 || report.Sessions[0].Summaries != 2 {
		t.Errorf("%+v", report)
	}
	// The entry that each compaction keeps first is a user's message, which follows
	// the last covered node. Counts are of user, assistant and bash entries before.
	kept := []string{"i reviwed what we have, it's good. continue", "can leave it"}
	count := []uint64{151, 289}
	i := 0
	for seq, err := range r.Summaries() {
		if err != nil {
			t.Fatal(err)
		}
		c, err := r.Content(seq)
		if err != nil {
			t.Fatal(err)
		}
		first, err1 := r.Skeleton(c.Covers.First)
		last, err2 := r.Skeleton(c.Covers.Last)
		if err1 != nil || err2 != nil || first.Depth != 1 {
			t.Fatalf("covers %+v: %v %v", c.Covers, err1, err2)
		}
		for next, err := range r.Children(last.Seq) {
			nc, cerr := r.Content(next)
			if err != nil || cerr != nil || store.Text(nc.Parts) != kept[i] {
				t.Errorf("the first kept message is %q (%v, %v), want %q", store.Text(nc.Parts), err, cerr, kept[i])
			}
		}
		t.Logf("summary covers %d messages, tokens before %d", c.Covers.Count, c.Provenance.TokensBefore)
		if c.Covers.Count != count[i] || c.Provenance.Trigger != "import" {
			t.Errorf("summary %d covers %d, want %d", i, c.Covers.Count, count[i])
		}
		if active := r.State.Active == seq; active != (i == 1) {
			t.Errorf("summary %d active: %v", i, active)
		}
		i++
	}
	roundTrip(t, sess)
}
