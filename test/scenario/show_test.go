package scenario

import (
	"fmt"
	"slices"
	"strings"

	"convls/protocol"
	"convls/test/editor"
)

func (w *world) head(a arguments) string {
	if h := a.named("head"); h != "" {
		return h
	}
	return w.now.Head.ID
}

// oneLine makes a text fit for a line: without filler, and without what a
// compaction wrote.
func oneLine(text string) string {
	if before, rest, ok := strings.Cut(text, protocol.SummaryMarker); ok {
		_, after, _ := strings.Cut(rest, "\n[End of the record")
		text = before + "…\n[End of the record" + after
	}
	return strings.ReplaceAll(strings.ReplaceAll(text, filler, " …"), "\n", " / ")
}

func opContext(w *world, a arguments) string {
	var out []string
	for _, e := range w.context(w.now, w.head(a), a.HasArg("raw")) {
		out = append(out, strings.TrimRight(fmt.Sprintf("%-4s %-9s %s", w.anonymous(e.ID), e.Role, oneLine(e.Text)), " "))
	}
	return strings.Join(out, "\n")
}

func opTranscript(w *world, a arguments) string {
	var out []string
	for _, r := range w.transcript(w.now, w.head(a)) {
		line := fmt.Sprintf("%-4s %-11s %s", w.anonymous(r.ID), r.Status, oneLine(r.Text))
		for _, mark := range []struct {
			on   bool
			text string
		}{{r.Siblings != "", r.Siblings}, {r.Branch != "", "branch " + r.Branch}, {r.Fold != "", r.Fold}, {r.Error != "", string(r.Error)},
			{r.Pinned, "pinned"}, {!r.OnHead, "off"}} {
			if mark.on {
				line += " [" + mark.text + "]"
			}
		}
		out = append(out, strings.TrimRight(line, " "))
	}
	return strings.Join(out, "\n")
}

func opBranches(w *world, _ arguments) string {
	var out []string
	for _, b := range editor.Ask[protocol.BranchListResult](w.ed, protocol.MethodBranchList, protocol.SessionParams{SessionID: w.now.ID}).Branches {
		line := fmt.Sprintf("%-4s depth %d %s", w.anonymous(b.Tip), b.Depth, b.Renders)
		if b.Name != "" {
			line += " " + b.Name
		}
		if b.IsHead {
			line += " HEAD"
		}
		out = append(out, line)
	}
	return strings.Join(out, "\n")
}

func opQueue(w *world, _ arguments) string {
	tail := 0
	open := editor.Ask[protocol.SessionOpenResult](w.ed, protocol.MethodSessionOpen, protocol.SessionOpenParams{SessionID: w.now.ID, Tail: &tail})
	var out []string
	for _, q := range open.Queue {
		w.name(q.UserID, protocol.KindUser)
		w.name(q.ReplyID, protocol.KindAssistant)
		out = append(out, fmt.Sprintf("%d %s %s %q held %v", q.Position, q.UserID, q.ReplyID, q.Preview, q.Held))
	}
	for _, n := range open.OpenNodes {
		out = append(out, fmt.Sprintf("open %s after %s, %d bytes", n.NodeID, n.UserID, n.Bytes))
	}
	return strings.Join(out, "\n")
}

func opSessions(w *world, _ arguments) string {
	var out []string
	for _, s := range editor.Ask[protocol.SessionListResult](w.ed, protocol.MethodSessionList, protocol.SessionListParams{}).Sessions {
		out = append(out, fmt.Sprintf("%s %q, %d nodes, head %s", s.SessionID, s.Title, s.Nodes, s.Head))
	}
	return strings.Join(out, "\n")
}

func opNode(w *world, a arguments) string {
	n := editor.Ask[protocol.Node](w.ed, protocol.MethodNodeGet,
		protocol.NodeGetParams{SessionID: w.now.ID, NodeID: a.node(0), Include: []string{"content", "reads"}})
	out := []string{fmt.Sprintf("%s %s %s", n.ID, n.Kind, n.Status)}
	for _, p := range n.Content {
		out = append(out, strings.TrimRight(fmt.Sprintf("%s %s%s%s %s", p.Type, oneLine(p.Text), p.Name, string(p.Arguments), p.NodeID), " "))
	}
	if len(n.Reads) > 0 {
		out = append(out, "reads "+strings.Join(n.Reads, " "))
	}
	if n.Error != nil {
		out = append(out, fmt.Sprintf("error %s, retryable %v", n.Error.Code, n.Error.Retryable))
	}
	return strings.Join(out, "\n")
}

func opCompare(w *world, a arguments) string {
	r := editor.Ask[protocol.CompareResult](w.ed, protocol.MethodBranchCompare, protocol.CompareParams{SessionID: w.now.ID, AID: a.node(0), BID: a.node(1)})
	out := []string{"ancestor " + r.AncestorID}
	for _, side := range []protocol.CompareSide{r.A, r.B} {
		var ids []string
		for _, row := range side.Rows {
			ids = append(ids, row.ID)
		}
		out = append(out, fmt.Sprintf("%s adds %d: %s", side.ID, side.Count, strings.Join(ids, " ")))
	}
	return strings.Join(out, "\n")
}

// opEvents replays the events after the nth on another connection's terms:
// unsubscribed and subscribed again.
func opEvents(w *world, a arguments) string {
	after := 0
	a.MaybeScanArgs(w.t, "after", &after)
	var before []protocol.Event
	w.ed.Look(func(s *editor.Seen) { before = slices.Clone(s.Events[w.now.ID]) })
	editor.Ask[protocol.Empty](w.ed, protocol.MethodSessionUnsubscribe, protocol.SessionParams{SessionID: w.now.ID})
	w.ed.Forget(w.now.ID)
	cursor := w.first[w.now.ID]
	if after > 0 {
		cursor = before[after-1].Cursor
	}
	w.follow(w.now, cursor)
	var out []string
	w.ed.Await("the replay", func(s *editor.Seen) bool { return len(s.Events[w.now.ID]) >= len(before)-after })
	w.ed.Look(func(s *editor.Seen) {
		for i, e := range s.Events[w.now.ID] {
			if was := before[after+i]; e.Cursor != was.Cursor || e.Type != was.Type || e.NodeID != was.NodeID || e.Head != was.Head {
				w.t.Fatalf("event %d is replayed as %+v, and was %+v", after+i, e, was)
			}
			line := string(e.Type)
			for _, s := range []string{e.NodeID, e.Head, e.Branch, e.Cause, string(e.Status)} {
				if s != "" {
					line += " " + s
				}
			}
			out = append(out, line)
		}
	})
	return strings.Join(out, "\n")
}

func opSearch(w *world, a arguments) string {
	r := editor.Ask[protocol.SearchResult](w.ed, protocol.MethodSessionSearch, protocol.SearchParams{Query: a.Input, SessionID: w.now.ID})
	var out []string
	for _, h := range r.Hits {
		out = append(out, fmt.Sprintf("%s %s; on %s", h.NodeID, oneLine(h.Snippet), strings.Join(h.Tips, " ")))
	}
	return strings.Join(out, "\n")
}
