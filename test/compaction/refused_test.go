package compaction

import (
	"reflect"
	"strings"
	"testing"

	"convls/protocol"
	"convls/test/editor"
	"convls/test/fakemodel"
)

// unchanged fails the test if something that had to change nothing changed what is
// seen of a session.
func (c *chat) unchanged(before views) {
	c.t.Helper()
	if after := c.views(); !reflect.DeepEqual(after, before) {
		c.t.Errorf("the session was\n%+v\nand is\n%+v", before, after)
	}
}

// ended fails the test if the events of compaction are not these.
func (c *chat) ended(want ...protocol.EventType) {
	c.t.Helper()
	same(c.t, "the events", c.events(), want)
}

var (
	started   = protocol.EventCompactStarted
	finished  = protocol.EventCompactFinished
	failed    = protocol.EventCompactFailed
	cancelled = protocol.EventCompactCancel
)

const (
	invented = `{"changes":[{"op":"add","section":"decisions","id":"","text":"Use PostgreSQL","status":"decision","sources":["nobody"],"quote":"","kind":"none","handle":""}],"narrative":""}`
	good     = `{"changes":[],"narrative":"They talked about several messages."}`
)

// TestRefusedSummaries has a summariser misbehave. Whatever it says, a summary that
// does not hold leaves the session exactly as it was, and one event tells of it
// (faults 2, 3, 5, 11, 15, 23; defect 9; spec/checkpoints, exercise C).
func TestRefusedSummaries(t *testing.T) {
	server := newChat(t, nil)
	held := server.model.Gate()
	defer held.Release()
	for _, row := range []struct {
		name     string
		settings params
		spec     params
		replies  []fakemodel.Reply
		code     protocol.Code
		reason   string
		calls    int
	}{
		{name: "fault 2: an error", replies: []fakemodel.Reply{fakemodel.Fail(500, "broken")}, code: protocol.CodeProviderDown, calls: 1},
		{name: "fault 2: empty", replies: []fakemodel.Reply{fakemodel.Say("")}, code: protocol.CodeSummaryRefused, reason: "empty", calls: 1},
		{name: "fault 2: white space", replies: []fakemodel.Reply{fakemodel.Say("  \n")}, code: protocol.CodeSummaryRefused, reason: "empty", calls: 1},
		{name: "fault 3: headings", replies: []fakemodel.Reply{fakemodel.Say("## Goal\n\n## Constraints\n"), fakemodel.Say("## Goal\n")}, code: protocol.CodeSummaryRefused, reason: "invalid_schema", calls: 2},
		{name: "fault 3: a skeleton", replies: []fakemodel.Reply{fakemodel.Say(`{"changes":[],"narrative":" "}`)}, code: protocol.CodeSummaryRefused, reason: "skeleton", calls: 1},
		{name: "fault 11: private notes", replies: []fakemodel.Reply{fakemodel.Say("<analysis>hm</analysis><summary>so</summary>"), fakemodel.Say("<think>hm</think>" + good)},
			code: protocol.CodeSummaryRefused, reason: "scratch", calls: 2},
		{name: "cut for length", replies: []fakemodel.Reply{{Pieces: []string{good}, Finish: "length"}}, code: protocol.CodeSummaryRefused, reason: "cut", calls: 1},
		{name: "invalid twice", replies: []fakemodel.Reply{fakemodel.Say(`{"summary":"x"}`), fakemodel.Say(`{"changes":1}`)}, code: protocol.CodeSummaryRefused, reason: "invalid_schema", calls: 2},
		{name: "prose around it", replies: []fakemodel.Reply{fakemodel.Say("Here it is: " + good), fakemodel.Say("Sure. " + good)}, code: protocol.CodeSummaryRefused, reason: "invalid_schema", calls: 2},
		{name: "unknown sources", replies: []fakemodel.Reply{fakemodel.Say(invented), fakemodel.Say(invented)}, code: protocol.CodeSummaryRefused, reason: "unknown_sources", calls: 2},
		{name: "fault 15: not smaller", spec: params{"up_to_id": "first"}, replies: []fakemodel.Reply{fakemodel.Say(`{"changes":[],"narrative":"` + strings.Repeat("They talked, and talked on. ", 60) + `"}`)},
			code: protocol.CodeSummaryRefused, reason: "not_smaller", calls: 1},
		{name: "no finish reason", replies: []fakemodel.Reply{{Pieces: []string{good}, Finish: "-"}}, code: protocol.CodeStreamCut, calls: 1},
		{name: "refused by the provider", replies: []fakemodel.Reply{{Pieces: []string{""}, Finish: "content_filter"}}, code: protocol.CodeProviderRefused, calls: 1},
		{name: "fault 24: a rate limit", replies: []fakemodel.Reply{fakemodel.Fail(429, `{"error":{"message":"too many tokens per day"}}`)}, code: protocol.CodeProviderRateLimit, calls: 1},
		{name: "fault 36: an overflow of its own", replies: []fakemodel.Reply{fakemodel.Overflow(9_000, 8_000)}, code: protocol.CodeContextOverflow, calls: 1},
		{name: "too slow", settings: params{"compaction.timeout_ms": 200}, replies: []fakemodel.Reply{fakemodel.Say(good).Hold(held, 0)}, code: protocol.CodeProviderDown, calls: 1},
		{name: "retried, and failed again", settings: params{"compaction.max_retries": 1}, replies: []fakemodel.Reply{fakemodel.Fail(503, "busy").With("Retry-After", "0"), fakemodel.Fail(503, "busy")},
			code: protocol.CodeProviderDown, calls: 2},
	} {
		t.Run(row.name, func(t *testing.T) {
			c := server.row(t, row.settings)
			replies := c.chat(3)
			spec := params{"keep_recent_tokens": 250}
			if row.spec != nil {
				spec = params{"up_to_id": replies[0]}
			}
			before := c.views()
			c.model.script(row.replies...)
			r := c.compact(spec)
			if r.State != protocol.RunFailed || r.SummaryID != "" || r.Error == nil || r.Error.Code != row.code || r.Error.Reason != row.reason {
				t.Errorf("the run ended as %s, %+v", r.State, r.Error)
			}
			if n := len(c.model.questions()); n != row.calls {
				t.Errorf("the summariser was asked %d times, want %d", n, row.calls)
			}
			c.unchanged(before)
			c.ended(started, failed)
			if e := c.event(failed); e.CompactionID != r.CompactionID || e.Error == nil || e.Error.Code != row.code {
				t.Errorf("the event is %+v", e)
			}
		})
	}
}

// TestRepair has a summariser answer what can be put right, and put it right: it is
// told once what was wrong.
func TestRepair(t *testing.T) {
	server := newChat(t, nil)
	for _, row := range []struct {
		name, first, told string
	}{
		{"no JSON", "The person greeted me.", "expected one JSON object"},
		{"another shape", `{"changes":[{"op":"forget","section":"goal"}],"narrative":""}`, "unknown op"},
		{"private notes", "<think>hm</think>" + good, "private block"},
		{"unknown sources", invented, "nobody"},
	} {
		t.Run(row.name, func(t *testing.T) {
			c := server.row(t, nil)
			c.chat(3)
			c.model.script(fakemodel.Say(row.first))
			r := c.compacted(params{"keep_recent_tokens": 250})
			questions := c.model.questions()
			if len(questions) != 2 || !strings.Contains(questions[1], row.first) || !strings.Contains(questions[1], row.told) {
				t.Errorf("the second question is: %s", questions[len(questions)-1])
			}
			if usage := c.node(r.SummaryID).Provenance.Usage; usage == nil || usage.Calls != 2 {
				t.Errorf("the usage is %+v, want that of two calls", usage)
			}
			c.ended(started, finished)
		})
	}
}

// TestFallback has the built-in summariser write what a model could not, by setting
// only, and marked so; what the model used is kept.
func TestFallback(t *testing.T) {
	server := newChat(t, nil)
	c := server.row(t, params{"compaction.fallback": "extractive"})
	c.send("Never touch the file legacy/billing.go. " + long("Because.", 60))
	c.chat(3)
	c.model.script(fakemodel.Say("nonsense"), fakemodel.Say("nonsense"))
	r := c.compacted(params{"keep_recent_tokens": 250})
	n := c.node(r.SummaryID)
	if !n.Provenance.FellBack || n.Provenance.Model != "extractive" || n.Provenance.Usage == nil || n.Provenance.Usage.Calls != 2 {
		t.Errorf("the provenance is %+v with the usage %+v", n.Provenance, n.Provenance.Usage)
	}
	if !strings.Contains(c.context("").Entries[1].Text, "legacy/billing.go") {
		t.Errorf("the summary is %s", c.context("").Entries[1].Text)
	}
	c.ended(started, finished)
}

// TestWithoutAnything compacts a session that has nothing to compact: a notice for
// the other windows, and no run (spec/compaction, section 4.5; fault 38).
func TestWithoutAnything(t *testing.T) {
	server := newChat(t, nil)
	for _, row := range []struct {
		name     string
		messages int
		spec     params
		code     protocol.Code
	}{
		{"no message", 0, nil, protocol.CodeNothingToCompact},
		{"fewer than four entries", 1, nil, protocol.CodeNothingToCompact},
		{"fault 39: all is recent", 3, params{"keep_recent_tokens": 1_000_000}, protocol.CodeNothingToCompact},
		{"fault 39: less than none", 3, params{"keep_recent_tokens": -1}, protocol.CodeInvalidParams},
		{"an end twice", 3, params{"keep_recent_tokens": 100, "up_to_id": "x"}, protocol.CodeInvalidParams},
		{"an end that nothing has", 3, params{"up_to_id": "x"}, protocol.CodeUnknownNode},
	} {
		t.Run(row.name, func(t *testing.T) {
			c := server.row(t, nil)
			c.chat(row.messages)
			before := c.views()
			p := params{"session_id": c.session, "wait": true}
			for k, v := range row.spec {
				p[k] = v
			}
			editor.Refused(c.Editor, row.code, protocol.MethodCompactionRun, p)
			c.unchanged(before)
			if row.code == protocol.CodeNothingToCompact {
				if e := c.event(protocol.EventLocalCommand); e == nil || !strings.Contains(e.Text, "Nothing was compacted") {
					t.Errorf("the notice is %+v", e)
				}
			}
			if n := len(c.events()); n != 0 || len(c.model.questions()) != 0 {
				t.Errorf("%v events, %d questions", c.events(), len(c.model.questions()))
			}
		})
	}
}
