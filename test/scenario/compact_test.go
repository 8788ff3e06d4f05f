package scenario

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"convls/protocol"
	"convls/test/editor"
	"convls/test/reference"
)

// expected are the codes that a compaction can end with without a summary, besides
// those that its script asks for: the cut is the server's.
var expected = []protocol.Code{protocol.CodeNothingToCompact, protocol.CodeInvalidParams, protocol.CodeUnknownNode, protocol.CodeTurnRunning, protocol.CodeSummaryRefused}

// opCompact compacts HEAD's branch. Whether there is a summary and how much it
// covers is the server's choice; that it is lawful, and that nothing else changes,
// is checked here, by the reference, and by the checks that follow every operation.
func opCompact(w *world, a arguments) string {
	p := params{"instructions": a.Input, "from_id": a.named("from"), "up_to_id": a.named("upto")}
	if keep, err := strconv.Atoi(a.text("keep")); err == nil {
		p["keep_recent_tokens"] = keep
	}
	if a.HasArg("cancel") || a.HasArg("kill") || a.HasArg("undo") {
		return w.compactHeld(a, p)
	}
	return w.compact(protocol.MethodCompactionRun, p, func(c reference.Compaction) error {
		c.From, c.UpTo = a.named("from"), a.named("upto")
		return w.now.Compact(c)
	})
}

func opRebuild(w *world, a arguments) string {
	return w.compact(protocol.MethodCompactionRebuild, params{"summary_id": a.node(0), "instructions": a.Input}, func(c reference.Compaction) error {
		return w.now.Rebuild(a.node(0), c)
	})
}

// compact carries a run out. summarise has the reference write the same summary.
func (w *world) compact(method string, p params, summarise func(reference.Compaction) error) string {
	w.t.Helper()
	p["wait"] = true
	script, _ := p["instructions"].(string)
	raw, before, branches := w.rawViews(), w.tokens(), w.now.Branches()
	r, code := change[protocol.CompactionResult](w, method, p)
	if code == "" && r.State != protocol.RunFinished {
		if code = r.Error.Code; r.State != protocol.RunFailed || r.SummaryID != "" {
			w.t.Fatalf("the compaction ended as %+v", r)
		}
		w.checkTokens("before a run that failed", r.TokensBefore, before)
	}
	if code != "" {
		w.differ("the raw views after a compaction that changed nothing", w.rawViews(), raw)
		reason := string(code)
		if r.Error != nil && r.Error.Reason != "" {
			reason += " " + r.Error.Reason
		}
		if refusals[script] != reason && !slices.Contains(append(expected, protocol.CodeUnknownSummary), code) {
			w.t.Fatalf("the compaction failed with %s: %+v", reason, r.Error)
		}
		return "refused: " + reason
	}
	if refusals[script] != "" {
		w.t.Fatalf("the summariser did as %s says, and its summary was taken", script)
	}
	n := editor.Ask[protocol.Node](w.ed, protocol.MethodNodeGet, protocol.NodeGetParams{SessionID: w.now.ID, NodeID: r.SummaryID})
	covers := editor.Ask[protocol.CompactionCoversResult](w.ed, protocol.MethodCompactionCovers, protocol.CompactionCoversParams{SessionID: w.now.ID, SummaryID: r.SummaryID})
	if err := summarise(reference.Compaction{ID: r.SummaryID, Text: n.Content[0].Text, Covers: covers.CoversIDs}); err != nil {
		w.t.Fatalf("the summary is not lawful: %s\nit covers %s", w.anonymous(err.Error()), w.anonymous(strings.Join(covers.CoversIDs, " ")))
	}
	if r.Covered != covers.Count || int(covers.Count) != len(covers.CoversIDs) {
		w.t.Fatalf("the summary covers %d nodes, the answer says %d, the list %d", len(covers.CoversIDs), r.Covered, covers.Count)
	}
	w.differ("the raw views after a compaction", w.rawViews(), raw)
	w.differ("the branches that render raw now", slices.Sorted(slices.Values(r.RawTips)), w.now.RawSince(branches))
	w.checkTokens("before", r.TokensBefore, before)
	stands := w.now.Summary(w.now.Head).ID == r.SummaryID
	if stands {
		w.checkTokens("after", r.TokensAfter, w.tokens())
	}
	w.checkEvents(r, stands)
	if r.TokensAfter >= r.TokensBefore && method == protocol.MethodCompactionRun {
		w.t.Fatalf("the context has %d tokens after the compaction and had %d before", r.TokensAfter, r.TokensBefore)
	}
	w.name(r.SummaryID, protocol.KindSummary)
	w.checkNear()
	return fmt.Sprintf("%s covers %s; %s", r.SummaryID, strings.Join(covers.CoversIDs, " "), w.outcome(""))
}

// checkEvents waits for the event that a compaction finished, and compares it with
// the answer; that a summary is active is told only of one that stands.
func (w *world) checkEvents(r protocol.CompactionResult, stands bool) {
	w.t.Helper()
	told := false
	w.ed.Await("the end of the compaction", func(s *editor.Seen) bool {
		return slices.ContainsFunc(s.Events[w.now.ID], func(e protocol.Event) bool {
			told = told || e.Type == protocol.EventSummaryActive && e.SummaryID == r.SummaryID
			return e.Type == protocol.EventCompactFinished && e.CompactionID == r.CompactionID && e.SummaryID == r.SummaryID &&
				e.Covered == r.Covered && e.TokensBefore == r.TokensBefore && e.TokensAfter == r.TokensAfter
		})
	})
	if told != stands {
		w.t.Fatalf("the summary stands: %v; the events tell that it is active: %v", stands, told)
	}
}

// compactHeld begins a run and cancels it, kills the server, or takes the summary
// that it builds on back, while its summariser is at work: the run changes nothing
// (fault 47).
func (w *world) compactHeld(a arguments, p params) string {
	p["instructions"] = "[hold]"
	raw := w.rawViews()
	r, code := change[protocol.CompactionResult](w, protocol.MethodCompactionRun, p)
	if code != "" {
		if !slices.Contains(expected, code) {
			w.t.Fatalf("the compaction is refused with %s", code)
		}
		return "refused: " + string(code)
	}
	gate := <-w.model.summarising
	state := protocol.RunFailed
	switch {
	case a.HasArg("kill"):
		opKill(w, a)
	case a.HasArg("undo"):
		_, code = change[protocol.CompactionActivateResult](w, protocol.MethodCompactionActivate, params{"summary_id": nil})
		w.agree(code, w.now.Activate(""))
		gate.Release()
		w.ed.Await("the failure of the compaction", func(s *editor.Seen) bool {
			return slices.ContainsFunc(s.Events[w.now.ID], func(e protocol.Event) bool {
				return e.Type == protocol.EventCompactFailed && e.CompactionID == r.CompactionID && e.Error.Code == protocol.CodeStaleCompaction
			})
		})
	default:
		state = protocol.RunCancelled
		r, code = change[protocol.CompactionResult](w, protocol.MethodCompactionCancel, params{"compaction_id": r.CompactionID})
		w.agree(code, "")
		if r.State != state || r.SummaryID != "" {
			w.t.Fatalf("the compaction is cancelled, and ended as %+v", r)
		}
		w.differ("the raw views after a compaction that was cancelled", w.rawViews(), raw)
	}
	gate.Release()
	w.settle()
	w.checkNear()
	return string(state) + "; " + w.outcome("")
}

// rawViews are the ids of the raw view of each branch. No compaction changes them.
func (w *world) rawViews() map[string][]string {
	w.t.Helper()
	views := map[string][]string{}
	for _, h := range w.near() {
		for _, e := range w.entries(w.now, h.ID, true) {
			views[h.ID] = append(views[h.ID], e.ID)
		}
	}
	return views
}

// near are HEAD and the tips of the present session: all in full, else those that
// were used last. The others are looked at every now and then.
func (w *world) near() []*reference.Node {
	heads := w.now.Tips()
	if most := 3; !w.full && len(heads) > most {
		heads = heads[:most]
	}
	if !slices.Contains(heads, w.now.Head) {
		heads = append(heads, w.now.Head)
	}
	return heads
}

// tokens is what the context view of HEAD measures, -1 where a message in it waits
// for its answer.
func (w *world) tokens() int64 {
	w.t.Helper()
	sum := int64(0)
	entries := w.entries(w.now, w.now.Head.ID, false)
	for _, e := range entries {
		sum += e.Tokens
	}
	for _, e := range slices.Backward(entries) {
		if e.Why != protocol.WhySubtree {
			if e.Kind == protocol.KindUser {
				return -1
			}
			break
		}
	}
	return sum
}

func (w *world) checkTokens(when string, said, measured int64) {
	w.t.Helper()
	if measured >= 0 && said != measured {
		w.t.Fatalf("the compaction says that the context has %d tokens %s, and it measures %d", said, when, measured)
	}
}

// opActivate chooses a summary, or none.
func opActivate(w *world, a arguments) string {
	id, p := a.node(0), params{"summary_id": a.node(0)}
	if id == "none" {
		id, p["summary_id"] = "", nil
	}
	raw := w.rawViews()
	r, code := change[protocol.CompactionActivateResult](w, protocol.MethodCompactionActivate, p)
	w.agree(code, w.now.Activate(id))
	w.differ("the raw views after another summary is chosen", w.rawViews(), raw)
	w.checkNear()
	if code == "" {
		w.differ("the active summaries", r.ActiveSummaries, w.now.ActiveSummaries())
	}
	return w.outcome(code)
}

// opPolicy switches the policy.
func opPolicy(w *world, a arguments) string {
	raw := w.rawViews()
	_, code := change[protocol.SessionResult](w, protocol.MethodSessionConfigure, params{"policy": a.word(0)})
	w.agree(code, "")
	w.now.Policy = a.word(0)
	w.differ("the raw views after a switch of the policy", w.rawViews(), raw)
	w.checkNear()
	return w.outcome("")
}

// checkNear compares the views and summaries that an operation on them changes.
func (w *world) checkNear() {
	w.t.Helper()
	for _, h := range w.near() {
		w.checkView(w.now, h)
	}
	w.checkSummaries(w.now)
}

// checkCovered holds the context of a branch against the rule by what the server
// says alone: put in the place of the summary what that covers, and it is the
// branch, all of it and in order; and no call is without its result.
func (w *world) checkCovered(s *reference.Session, head *reference.Node) {
	w.t.Helper()
	var ids []string
	calls := 0
	for _, e := range w.entries(s, head.ID, false) {
		if e.Kind == protocol.KindTool {
			if calls--; !strings.Contains(e.Text, ")\n") {
				w.t.Fatalf("the context of %s has the call %s without a result", w.anonymous(head.ID), w.anonymous(e.ID))
			}
			continue
		}
		if calls != 0 {
			w.t.Fatalf("the context of %s parts a call from its reply before %s", w.anonymous(head.ID), w.anonymous(e.ID))
		}
		calls = strings.Count(e.Text, "[calls a tool]")
		if e.Why == protocol.WhySubtree {
			continue // a call off the chain, or a spawned turn
		}
		if e.Kind != protocol.KindSummary {
			ids = append(ids, e.ID)
			continue
		}
		calls = 0
		covers := editor.Ask[protocol.CompactionCoversResult](w.ed, protocol.MethodCompactionCovers, protocol.CompactionCoversParams{SessionID: s.ID, SummaryID: e.ID})
		ids = append(ids, covers.CoversIDs...)
	}
	var spine []string
	for _, n := range reference.Spine(head) {
		if !n.Empty() {
			spine = append(spine, n.ID)
		} else if i := slices.Index(ids, n.ID); i >= 0 {
			ids = slices.Delete(ids, i, i+1) // covered, and not to be seen in a raw view
		}
	}
	w.differ("what the context of "+head.ID+" covers and shows", ids, spine)
}

// summary is what is compared of a summary.
type summary struct {
	ID, First, Last               string
	Covered                       int64
	Active, Applies, Void, Undone bool
	// Covers are on its row where it is live, Superseded says that it is retired.
	Covers     []string
	Superseded bool
}

// checkSummaries compares the list of summaries, and the row of each.
func (w *world) checkSummaries(s *reference.Session) {
	w.t.Helper()
	var got, want []summary
	list := editor.Ask[protocol.CompactionListResult](w.ed, protocol.MethodCompactionList, protocol.SessionParams{SessionID: s.ID})
	for _, i := range list.Summaries {
		n := editor.Ask[protocol.Node](w.ed, protocol.MethodNodeGet, protocol.NodeGetParams{SessionID: s.ID, NodeID: i.SummaryID})
		got = append(got, summary{ID: i.SummaryID, First: i.FirstID, Last: i.LastID, Covered: i.Covered, Active: i.Active, Applies: i.Applies, Void: i.Void,
			Undone: i.Undone, Covers: n.CoversIDs, Superseded: n.SupersededSummary})
		if n.Void != i.Void {
			w.t.Fatalf("the list says of %s void %v, and the node %v", w.anonymous(i.SummaryID), i.Void, n.Void)
		}
	}
	carry := 0
	for _, n := range slices.Backward(s.Summaries()) {
		v := summary{ID: n.ID, First: s.Here(n.First), Last: s.Here(n.Last), Covered: int64(len(reference.Covered(n))), Active: s.Live(n),
			Applies: s.Summary(s.Head) == n, Void: n.Void, Undone: s.Undone(n), Superseded: !n.Void && !s.Live(n)}
		if s.Live(n) {
			v.Covers = reference.IDs(reference.Covered(n))
			carry++
		}
		want = append(want, v)
	}
	w.differ("the summaries", got, want)
	if s.Policy != protocol.PolicyPerBranch && carry > 1 {
		w.t.Fatalf("%d summaries carry what they cover", carry)
	}
	w.differ("the active summaries", list.ActiveSummaries, s.ActiveSummaries())
}

// opViews shows, for each branch and for HEAD, what of it is read as it is, and
// what a summary stands for.
func opViews(w *world, _ arguments) string {
	heads := slices.Clone(w.now.Tips())
	if !slices.Contains(heads, w.now.Head) {
		heads = append(heads, w.now.Head)
	}
	var out []string
	for _, h := range heads {
		var words []string
		for _, e := range w.entries(w.now, h.ID, false) {
			word := w.anonymous(e.ID)
			if e.Kind == protocol.KindSummary {
				word += "(" + strings.Join(w.covers(e.ID), " ") + ")"
			}
			words = append(words, word)
		}
		line := strings.Join(words, " ")
		if h == w.now.Head {
			line += " <- HEAD"
		}
		out = append(out, line)
	}
	return strings.Join(out, "\n")
}

func (w *world) covers(summary string) []string {
	covers := editor.Ask[protocol.CompactionCoversResult](w.ed, protocol.MethodCompactionCovers, protocol.CompactionCoversParams{SessionID: w.now.ID, SummaryID: summary})
	out := make([]string, 0, len(covers.CoversIDs))
	for _, id := range covers.CoversIDs {
		out = append(out, w.anonymous(id))
	}
	return out
}

func opSummaries(w *world, _ arguments) string {
	list := editor.Ask[protocol.CompactionListResult](w.ed, protocol.MethodCompactionList, protocol.SessionParams{SessionID: w.now.ID})
	out := []string{list.Policy}
	for _, i := range list.Summaries {
		n := editor.Ask[protocol.Node](w.ed, protocol.MethodNodeGet, protocol.NodeGetParams{SessionID: w.now.ID, NodeID: i.SummaryID})
		line := fmt.Sprintf("%s covers %d, %s to %s", i.SummaryID, i.Covered, i.FirstID, i.LastID)
		for _, mark := range []struct {
			on   bool
			text string
		}{{i.Active, "active"}, {i.Applies, "stands at HEAD"}, {n.SupersededSummary, "superseded"}, {i.Void, "void: " + i.VoidReason}, {i.Undone, "undone"}} {
			if mark.on {
				line += ", " + mark.text
			}
		}
		out = append(out, line)
	}
	return strings.Join(out, "\n")
}
