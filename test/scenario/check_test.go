package scenario

import (
	"fmt"
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"

	"convls/protocol"
	"convls/test/editor"
	"convls/test/reference"
)

// check compares the present session with the reference: HEAD, branches, queue, what
// runs, the summaries, and the view of HEAD; in full every view (faults 59, 62).
func (w *world) check() {
	w.t.Helper()
	if w.now == nil {
		return
	}
	w.checkState(w.now)
	if w.full {
		w.checkViews(w.now)
	} else {
		w.checkView(w.now, w.now.Head)
		w.checkSummaries(w.now)
	}
	w.checkFaults()
}

// checkAll compares everything of all sessions.
func (w *world) checkAll() {
	w.t.Helper()
	for _, name := range w.sessionNames() {
		w.checkState(w.sessions[name])
		w.checkViews(w.sessions[name])
	}
	w.checkFaults()
}

func (w *world) checkFaults() {
	w.t.Helper()
	w.ed.Look(func(s *editor.Seen) {
		if len(s.Faults) > 0 {
			w.t.Fatalf("the server broke the protocol:\n%s", w.anonymous(strings.Join(s.Faults, "\n")))
		}
	})
}

func (w *world) differ(what string, got, want any) {
	w.t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		w.t.Fatalf("%s (- the reference, + the server):\n%s", what, w.anonymous(diff))
	}
}

// state is what is compared at every step.
type state struct {
	Title, Head, Branch string
	Policy              string
	Nodes               int64
	Active              []string
	Branches            []reference.Branch
	Queue, Open         []string
}

func (w *world) checkState(s *reference.Session) {
	w.t.Helper()
	tail := 0
	got := editor.Ask[protocol.SessionOpenResult](w.ed, protocol.MethodSessionOpen, protocol.SessionOpenParams{SessionID: s.ID, Tail: &tail})
	g := state{Title: got.Session.Title, Head: got.Session.Head, Branch: got.Session.Branch, Nodes: got.Session.Nodes, Policy: got.Session.Policy, Active: got.Session.ActiveSummaries}
	want := state{Title: s.Title, Head: s.Head.ID, Branch: s.Branch, Nodes: int64(len(s.Nodes)), Policy: s.Policy, Active: s.ActiveSummaries(), Branches: s.Branches()}
	for _, b := range got.Branches {
		g.Branches = append(g.Branches, reference.Branch{Tip: b.Tip, Name: b.Name, Renders: b.Renders, Depth: b.Depth, IsHead: b.IsHead, Spawned: b.Spawned})
	}
	for i, q := range got.Queue {
		g.Queue = append(g.Queue, fmt.Sprintf("%d %s %s %q held %v", q.Position, q.UserID, q.ReplyID, q.Preview, q.Held))
		if i+1 != q.Position {
			w.t.Fatalf("the send at place %d of the queue says that it is at place %d", i+1, q.Position)
		}
	}
	for _, n := range got.OpenNodes {
		g.Open = append(g.Open, n.NodeID)
	}
	for i, q := range s.Queue {
		want.Queue = append(want.Queue, fmt.Sprintf("%d %s %s %q held %v", i+1, q.UserID, q.ReplyID, q.Text, q.Held))
	}
	for _, n := range s.Nodes {
		if n.Status == protocol.StatusOpen && n.Kind == protocol.KindAssistant {
			want.Open = append(want.Open, n.ID)
		}
	}
	// Turns that go on at the same time write in no certain order.
	slices.Sort(g.Open)
	slices.Sort(want.Open)
	w.differ("the session", g, want)
}

// checkViews compares transcript and context of every branch, and every summary.
func (w *world) checkViews(s *reference.Session) {
	w.t.Helper()
	heads := s.Tips()
	if !slices.Contains(heads, s.Head) {
		heads = append(heads, s.Head)
	}
	for _, h := range heads {
		w.checkView(s, h)
	}
	w.checkSummaries(s)
}

func (w *world) checkView(s *reference.Session, h *reference.Node) {
	w.t.Helper()
	w.differ("the transcript of "+h.ID, w.transcript(s, h.ID), s.Transcript(h))
	w.differ("the context of "+h.ID, w.context(s, h.ID, false), s.Context(h, false))
	w.checkGraph(s, h)
	if s.Summary(h) != nil {
		w.differ("the raw context of "+h.ID, w.context(s, h.ID, true), s.Context(h, true))
		w.checkCovered(s, h)
	}
}

// context is entries without the tokens, which the reference does not count.
func (w *world) context(s *reference.Session, head string, raw bool) []protocol.ContextEntry {
	w.t.Helper()
	out := w.entries(s, head, raw)
	for i := range out {
		if out[i].Text != "" && out[i].Tokens == 0 {
			w.t.Fatalf("entry %s of the context has text and no tokens", w.anonymous(out[i].ID))
		}
		out[i].Tokens = 0
	}
	return out
}

// entries reads the context view of a branch, page by page.
func (w *world) entries(s *reference.Session, head string, raw bool) []protocol.ContextEntry {
	w.t.Helper()
	var out []protocol.ContextEntry
	p := protocol.ContextGetParams{SessionID: s.ID, Head: head, Raw: raw, Limit: 200}
	for {
		v := editor.Ask[protocol.ContextView](w.ed, protocol.MethodContextGet, p)
		out = append(out, v.Entries...)
		if v.Next == "" {
			if v.Total != len(out) {
				w.t.Fatalf("the context says that it has %d entries, and gave %d", v.Total, len(out))
			}
			return out
		}
		p.Cursor = v.Next
	}
}

// transcript reads a branch from its end, page by page.
func (w *world) transcript(s *reference.Session, head string) []reference.Row {
	w.t.Helper()
	var out []reference.Row
	p := protocol.TranscriptParams{SessionID: s.ID, Head: head, Limit: 40}
	for {
		page := editor.Ask[protocol.Transcript](w.ed, protocol.MethodTranscriptGet, p)
		var rows []reference.Row
		for _, r := range page.Rows {
			rows = append(rows, row(r))
		}
		out = append(rows, out...)
		if page.Before == "" {
			return out
		}
		p.Before = page.Before
	}
}

// row is a row as the reference has it.
func row(r protocol.Row) reference.Row {
	out := reference.Row{ID: r.ID, Predecessor: r.Predecessor, Caller: r.Caller, Kind: r.Kind, Status: r.Status, Depth: r.Depth, OnHead: r.OnHead,
		InContext: r.InContext, Pinned: r.Pinned, Redacted: r.Redacted, Void: r.Void, CoveredBy: r.CoveredBy, Covers: r.CoversIDs, Branch: r.Branch}
	if r.Error != nil && r.Status == protocol.StatusFailed {
		out.Error = r.Error.Code
	}
	var texts []string
	for _, p := range r.Content {
		switch p.Type {
		case protocol.PartText:
			texts = append(texts, p.Text)
		case protocol.PartToolCall:
			if r.Kind == protocol.KindTool {
				texts = append(texts, p.Name+"("+string(p.Arguments)+")")
			}
		case protocol.PartToolResult:
			text := p.Text
			if p.IsError {
				text = "error: " + text
			}
			texts[len(texts)-1] += "=" + text
		default:
			texts = append(texts, string(p.Type))
		}
	}
	out.Text = strings.Join(texts, "\n\n")
	if r.Fold != nil {
		out.Fold = fmt.Sprintf("%s %d", r.Fold.State, r.Fold.Count)
	}
	if s := r.Siblings; s != nil {
		out.Siblings = fmt.Sprintf("%d/%d", s.Index, s.Count)
		if s.Prev != nil {
			out.Siblings += fmt.Sprintf(" prev %s>%s", s.Prev.ID, s.Prev.Tip)
		}
		if s.Next != nil {
			out.Siblings += fmt.Sprintf(" next %s>%s", s.Next.ID, s.Next.Tip)
		}
	}
	return out
}
