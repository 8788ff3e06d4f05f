package transfer

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"

	"convls/protocol"
	"convls/store"
)

func apply(t testing.TB, sess *store.Session, f func(tx *store.Tx) error) {
	t.Helper()
	_, err := store.Apply(context.Background(), sess, store.Request{}, func(tx *store.Tx) (struct{}, error) { return struct{}{}, f(tx) })
	if err != nil {
		t.Fatal(err)
	}
}

func textParts(text string) store.Content {
	return store.Content{Parts: []protocol.Part{{Type: protocol.PartText, Text: text}}}
}

// rich makes a session that holds one of everything.
func rich(t testing.TB, s *store.Store) *store.Session {
	t.Helper()
	out, err := s.Create(context.Background(), store.Request{}, store.Info{ID: "rich", Title: "One of everything", Policy: "per-branch", Model: "p/m",
		Workspace: "file:///w", Settings: protocol.Raw(`{"model":"p/m"}`)}, "old prompt")
	if err != nil {
		t.Fatal(err)
	}
	sess := session(t, s, out.Result)
	apply(t, sess, func(tx *store.Tx) error { return tx.SetSystem("new prompt") })
	apply(t, sess, func(tx *store.Tx) error {
		info, err := tx.Info()
		if err != nil {
			return err
		}
		u, err := tx.Append(store.NodeSpec{ID: "u1", Kind: protocol.KindUser, Predecessor: store.Root, Status: protocol.StatusSealed, Content: textParts("hello"), Tokens: 3, Tokenizer: "t"})
		if err != nil {
			return err
		}
		info.TitleFrom = u.Seq
		return tx.SetInfo(info)
	})
	old := "6b0c3a4f" // a hash whose text the ledger never had
	apply(t, sess, func(tx *store.Tx) error {
		sum, err := tx.KeepText("old prompt")
		if err != nil {
			return err
		}
		u, err := tx.Lookup("u1")
		if err != nil {
			return err
		}
		a, err := tx.Append(store.NodeSpec{ID: "a1", Kind: protocol.KindAssistant, Predecessor: u.Seq, Status: protocol.StatusSealed, Content: store.Content{
			Parts: []protocol.Part{{Type: protocol.PartText, Text: "hi"}, {Type: protocol.PartToolCall, NodeID: "t1"}}, Model: "p/m", DurationMS: 5, StopReason: "tool_calls",
			Usage: &protocol.Usage{InputTokens: 10, OutputTokens: 2, CostUSD: 0.0000015}, Reads: []store.Run{{First: store.Root, Last: u.Seq}},
			Call: &protocol.CallRecord{Model: "p/m", SystemSHA256: sum, ToolsSHA256: old}, Metadata: map[string]protocol.Raw{"k": protocol.Raw(`[1,{"x":null}]`)}}})
		if err != nil {
			return err
		}
		tool, err := tx.Append(store.NodeSpec{ID: "t1", Kind: protocol.KindTool, Caller: a.Seq, Status: protocol.StatusSealed, Exposed: true, Content: store.Content{
			Parts: []protocol.Part{{Type: protocol.PartToolCall, CallID: "c", Name: "run", Arguments: protocol.Raw(`{"b":1,"a":2}`)}, {Type: protocol.PartToolResult, CallID: "c", Text: "out", IsError: true}}}})
		if err != nil {
			return err
		}
		a2, err := tx.Append(store.NodeSpec{ID: "a2", Kind: protocol.KindAssistant, Predecessor: a.Seq, Status: protocol.StatusFailed, Content: store.Content{
			Error: &protocol.NodeError{Code: protocol.CodeStreamCut, Message: "cut", Retryable: true}, Reads: []store.Run{{First: store.Root, Last: a.Seq}, {First: tool.Seq, Last: tool.Seq}}}})
		if err != nil {
			return err
		}
		if _, err := tx.Append(store.NodeSpec{ID: "n1", Kind: protocol.KindNotice, Predecessor: a2.Seq, Status: protocol.StatusSealed, Content: textParts("note")}); err != nil {
			return err
		}
		at, err := tx.Append(store.NodeSpec{ID: "x1", Kind: protocol.KindAttach, Predecessor: a2.Seq, Status: protocol.StatusSealed, Content: store.Content{
			Parts: []protocol.Part{{Type: protocol.PartText, Text: "from a1"}}, Source: &store.Source{SessionID: "rich", NodeID: "a1"}}})
		if err != nil {
			return err
		}
		return tx.Pin(at, true)
	})
	apply(t, sess, func(tx *store.Tx) error {
		u, err1 := tx.Lookup("u1")
		a, err2 := tx.Lookup("a1")
		a2, err3 := tx.Lookup("a2")
		if err1 != nil || err2 != nil || err3 != nil {
			t.Fatal(err1, err2, err3)
		}
		s1, err := tx.AppendSummary(store.SummarySpec{ID: "s1", First: u.Seq, Last: a.Seq, Content: textParts("summary one")})
		if err != nil {
			return err
		}
		if err := tx.Undo(s1, true); err != nil {
			return err
		}
		c := textParts("summary two")
		c.Manifest, c.Provenance = protocol.Raw(`{"goal":"x"}`), &protocol.Provenance{Trigger: "manual", TokensBefore: 100}
		_, err = tx.AppendSummary(store.SummarySpec{ID: "s2", First: u.Seq, Last: a2.Seq, Content: c, Activate: true})
		return err
	})
	apply(t, sess, func(tx *store.Tx) error {
		a, err := tx.Lookup("a1")
		if err != nil {
			return err
		}
		x, err := tx.Lookup("x1")
		if err != nil {
			return err
		}
		if err := tx.Name("main", x); err != nil {
			return err
		}
		if err := tx.SetHead(a, ""); err != nil {
			return err
		}
		b, err := tx.Append(store.NodeSpec{ID: "u2", Kind: protocol.KindUser, Predecessor: a.Seq, Status: protocol.StatusSealed, Content: textParts("other")})
		if err != nil {
			return err
		}
		return tx.Name("side", b)
	})
	apply(t, sess, func(tx *store.Tx) error {
		u2, err := tx.Lookup("u2")
		if err != nil {
			return err
		}
		return tx.SetHead(u2, "side")
	})
	return sess
}

func TestRoundTripOfEverything(t *testing.T) {
	s := openStore(t)
	sess := rich(t, s)
	clean(t, s)
	roundTrip(t, sess)
	golden(t, "rich.md", export(t, sess, Options{Format: FormatMarkdown, Head: "x1"}))
}

// What a redaction and a delete leave behind goes along: tombstones, void
// summaries, the usage of what is gone, gaps in the numbers.
func TestRoundTripAfterRemovals(t *testing.T) {
	s := openStore(t)
	sess := rich(t, s)
	apply(t, sess, func(tx *store.Tx) error {
		u2, err := tx.Lookup("u2")
		if err != nil {
			return err
		}
		rm, err := tx.Exclusive(u2)
		if err != nil {
			return err
		}
		return tx.Delete(rm)
	})
	roundTrip(t, sess)
	apply(t, sess, func(tx *store.Tx) error {
		u1, err := tx.Lookup("u1")
		if err != nil {
			return err
		}
		return tx.Redact(u1)
	})
	clean(t, s)
	r := reader(t, sess)
	if void, err := r.Void(9); err != nil || !void {
		t.Fatalf("the summary is not void (%v): the test does not test what it says", err)
	}
	roundTrip(t, sess)
	apply(t, sess, func(tx *store.Tx) error {
		x1, err := tx.Lookup("x1")
		if err != nil {
			return err
		}
		rm, err := tx.Exclusive(x1)
		if err != nil {
			return err
		}
		return tx.Delete(rm)
	})
	clean(t, s)
	roundTrip(t, sess)
}

// An export into the store it came from makes a second session that is equal; what
// was attached from the session itself is attached from the new one.
func TestImportBesideItself(t *testing.T) {
	s := openStore(t)
	sess := rich(t, s)
	r := mustImport(t, s, export(t, sess, Options{Format: FormatJSONL}))
	e := r.Sessions[0]
	if e.SessionID == "rich" || e.OriginalID != "rich" || e.Summaries != 2 || e.Branches != 2 || e.Title != "One of everything" {
		t.Fatalf("%+v", e)
	}
	copied := session(t, s, e.SessionID)
	if diff, err := Equal(sess, copied); err != nil || diff != "" {
		t.Error(diff, err)
	}
	rd := reader(t, copied)
	x1, err := rd.Lookup("x1")
	if err != nil {
		t.Fatal(err)
	}
	c, err := rd.Content(x1.Seq)
	if err != nil || c.Source.SessionID != e.SessionID {
		t.Errorf("attached from %+v (%v)", c.Source, err)
	}
	apply(t, copied, func(tx *store.Tx) error { return tx.Pin(x1, false) })
	if diff, err := Equal(sess, copied); err != nil || !strings.Contains(diff, "x1") {
		t.Errorf("Equal did not see that a pin is gone: %q %v", diff, err)
	}
}

func TestOpenNodesAreExportedAsInterrupted(t *testing.T) {
	s := openStore(t)
	sess := rich(t, s)
	apply(t, sess, func(tx *store.Tx) error {
		u2, err := tx.Lookup("u2")
		if err != nil {
			return err
		}
		_, err = tx.Append(store.NodeSpec{ID: "run", Kind: protocol.KindAssistant, Predecessor: u2.Seq, Status: protocol.StatusOpen})
		return err
	})
	open, err := reader(t, sess).Lookup("run")
	if err != nil {
		t.Fatal(err)
	}
	if err := sess.Checkpoint(open.Seq, 0, protocol.DeltaText, "half a rep"); err != nil {
		t.Fatal(err)
	}
	apply(t, sess, func(tx *store.Tx) error {
		_, err := tx.Enqueue(store.Queued{After: open.Seq, UserID: "qu", ReplyID: "qa", Content: textParts("next").Parts, Advance: true})
		return err
	})
	other := openStore(t)
	rep := mustImport(t, other, export(t, sess, Options{Format: FormatJSONL}))
	copied := session(t, other, rep.Sessions[0].SessionID)
	r := reader(t, copied)
	run, err := r.Lookup("run")
	if err != nil {
		t.Fatal(err)
	}
	c, err := r.Content(run.Seq)
	if err != nil || run.Status != protocol.StatusInterrupted || store.Text(c.Parts) != "half a rep" || c.Error == nil || !c.Error.Retryable {
		t.Errorf("%+v %+v %v", run, c, err)
	}
	queue, err := r.Queue()
	if err != nil || len(queue) != 1 || !queue[0].Held || queue[0].After != run.Seq || queue[0].ReplyID != "qa" {
		t.Errorf("queue %+v %v", queue, err)
	}
	if md := export(t, sess, Options{Format: FormatMarkdown}); !strings.Contains(md, "half a rep") {
		t.Errorf("the Markdown leaves out what is being written:\n%s", md)
	}
	roundTrip(t, copied)
}

// Whatever is wrong with an export, nothing of the session is stored, and the
// session after it is.
func TestDamagedExports(t *testing.T) {
	whole := export(t, rich(t, openStore(t)), Options{Format: FormatJSONL})
	lines := strings.SplitAfter(strings.TrimSuffix(whole, "\n"), "\n")
	node := func(id string) int {
		for i, l := range lines {
			if strings.HasPrefix(l, `{"type":"node","id":"`+id+`"`) {
				return i
			}
		}
		t.Fatalf("no node %s", id)
		return 0
	}
	change := func(id, old, with string) string {
		c := append([]string(nil), lines...)
		i := node(id)
		if !strings.Contains(c[i], old) {
			t.Fatalf("%s has no %s", c[i], old)
		}
		c[i] = strings.Replace(c[i], old, with, 1)
		return strings.Join(c, "")
	}
	record := func(old, with string) string {
		if !strings.Contains(lines[1], old) {
			t.Fatalf("%s has no %s", lines[1], old)
		}
		return lines[0] + strings.Replace(lines[1], old, with, 1) + strings.Join(lines[2:], "")
	}
	cases := map[string][2]string{
		"predecessor that is not there": {change("a1", `"predecessor":"u1"`, `"predecessor":"u9"`), `predecessor "u9" is not there`},
		"predecessor that comes later":  {change("a1", `"predecessor":"u1"`, `"predecessor":"a2"`), `predecessor "a2" is not there`},
		"own predecessor":               {change("a1", `"predecessor":"u1"`, `"predecessor":"a1"`), `predecessor "a1" is not there`},
		"predecessor off the chain":     {change("a2", `"predecessor":"a1"`, `"predecessor":"t1"`), "can not be followed"},
		"no predecessor":                {change("a2", `"predecessor":"a1",`, ""), "is not there"},
		"caller that is not there":      {change("t1", `"caller":"a1"`, `"caller":"a9"`), `caller "a9" is not there`},
		"tool of another reply":         {change("a1", `{"type":"tool_call","node_id":"t1"}`, `{"type":"tool_call","node_id":"a2"}`), "another node than its caller"},
		"tool that is not there":        {change("a1", `{"type":"tool_call","node_id":"t1"}`, `{"type":"tool_call","node_id":"t9"}`), `tool node "t9" is named and not there`},
		"node twice":                    {change("a2", `"id":"a2"`, `"id":"a1"`), "occurs twice"},
		"bad node id":                   {change("u2", `"id":"u2"`, `"id":"u 2"`), "has characters other than"},
		"no node id":                    {change("u2", `"id":"u2"`, `"id":""`), "has no id"},
		"open node":                     {change("u2", `"status":"sealed"`, `"status":"open"`), "only whole nodes"},
		"unknown status":                {change("u2", `"status":"sealed"`, `"status":"lost"`), "only whole nodes"},
		"unknown kind":                  {change("u2", `"kind":"user"`, `"kind":"ghost"`), `unknown kind "ghost"`},
		"second root":                   {change("u2", `"kind":"user"`, `"kind":"root"`), "second root"},
		"covers other nodes":            {change("s2", `"last":"a2"`, `"last":"a1"`), "does not cover the nodes"},
		"covers what is not a chain":    {change("s2", `"first":"u1"`, `"first":"t1"`), "chain nodes"},
		"covers turned round":           {change("s2", `"first":"u1","last":"a2"`, `"first":"a2","last":"u1"`), "is not on the chain"},
		"changed digest":                {change("s2", `"digest":"`, `"digest":"00`), "does not cover the nodes"},
		"summary without covers":        {change("s2", `"covers"`, `"hides"`), "covers nothing"},
		"reply that covers":             {change("a2", `"kind":"assistant"`, `"kind":"assistant","void":true`), "is no summary"},
		"reads what is not there":       {change("a1", `"last":"u1"`, `"last":"u9"`), `read node "u9" is not there`},
		"reads no stretch":              {change("a2", `{"first":"t1","last":"t1"}`, `{"first":"t1","last":"a1"}`), "is not on the chain"},
		"changed text":                  {strings.Replace(whole, `"text":"old prompt"`, `"text":"odd prompt"`, 1), "it was changed"},
		"HEAD that is not there":        {record(`"head":"u2"`, `"head":"u9"`), `HEAD "u9" is not there`},
		"HEAD off the chain":            {record(`"head":"u2","branch":"side"`, `"head":"t1"`), "can not be HEAD"},
		"HEAD on another branch":        {record(`"branch":"side"`, `"branch":"main"`), "HEAD is attached to branch"},
		"branch that is not there":      {record(`"main":"x1"`, `"main":"x9"`), `branch main "x9" is not there`},
		"branch off the chain":          {record(`"main":"x1"`, `"main":"t1"`), "refers to a tool"},
		"bad branch name":               {record(`"main":"x1"`, `" main":"x1"`), "begins or ends with a space"},
		"active that is no summary":     {record(`"active_summary":"s2"`, `"active_summary":"a1"`), "not a summary"},
		"tip that is none":              {record(`"tips":["x1"`, `"tips":["a1"`), "is listed as a tip"},
		"title of nothing":              {record(`"title_from":"u1"`, `"title_from":"u9"`), "is not there"},
		"no root":                       {lines[0] + lines[1] + strings.Join(lines[3:], ""), "does not begin with its root"},
		"line of another kind":          {lines[0] + lines[1] + lines[2] + "{}\n" + strings.Join(lines[3:], ""), "the line is no record"},
		"newer format":                  {strings.Replace(whole, `"format":1`, `"format":2`, 1), "use the newer convls"},
	}
	for i := range lines {
		if i > 1 { // a header alone is no session at all
			cases[fmt.Sprintf("cut before line %d", i+1)] = [2]string{strings.Join(lines[:i], ""), ""}
		}
		cases[fmt.Sprintf("cut inside of line %d", i+1)] = [2]string{strings.Join(lines[:i], "") + lines[i][:len(lines[i])/2], ""}
		if i > 1 {
			cases[fmt.Sprintf("without line %d", i+1)] = [2]string{strings.Join(lines[:i], "") + strings.Join(lines[i+1:], ""), ""}
			cases[fmt.Sprintf("bad UTF-8 in line %d", i+1)] = [2]string{strings.Join(lines[:i], "") + lines[i][:30] + "\xff" + lines[i][30:] + strings.Join(lines[i+1:], ""), ""}
		}
	}
	// A text that nobody proves the need of may be missing.
	delete(cases, fmt.Sprintf("without line %d", node("a1")))
	good := export(t, session(t, func() *store.Store { s := openStore(t); mustImport(t, s, header+"\n"+said("user", "u")); return s }(), "s"), Options{Format: FormatJSONL})
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			s := openStore(t)
			r, err := importText(t, s, c[0], FormatConvls)
			if protocol.CodeOf(err) != protocol.CodeImportRefused || !strings.Contains(err.Error(), c[1]) {
				t.Errorf("error %v, want import_refused with %q", err, c[1])
			}
			if len(r.Sessions) != 0 || r.SkippedCount == 0 {
				t.Errorf("%+v", r)
			}
			empty(t, s)
			if r, err = importText(t, s, strings.TrimSuffix(c[0], "\n")+"\n"+good, FormatConvls); err != nil || len(r.Sessions) != 1 || r.Sessions[0].SessionID != "s" {
				t.Errorf("the session after it: %+v %v", r, err)
			}
			clean(t, s)
		})
	}
}

func TestTwoExportsInOneFile(t *testing.T) {
	s := openStore(t)
	sess := rich(t, s)
	one := export(t, sess, Options{Format: FormatJSONL})
	other := openStore(t)
	r := mustImport(t, other, one+"\r\n"+strings.ReplaceAll(one, "\n", "\r\n"))
	if len(r.Sessions) != 2 || r.SkippedCount != 0 {
		t.Fatalf("%+v", r)
	}
	for _, e := range r.Sessions {
		if diff, err := Equal(sess, session(t, other, e.SessionID)); err != nil || diff != "" {
			t.Error(diff, err)
		}
	}
}

func TestExportRefuses(t *testing.T) {
	s := openStore(t)
	sess := rich(t, s)
	for _, c := range []struct {
		o    Options
		want protocol.Code
	}{
		{Options{}, protocol.CodeInvalidParams},
		{Options{Format: "pdf"}, protocol.CodeInvalidParams},
		{Options{Format: FormatMarkdown, Head: "nobody"}, protocol.CodeUnknownNode},
		{Options{Format: FormatMarkdown, Head: "t1"}, protocol.CodeNotAChainNode},
	} {
		var b strings.Builder
		if err := Export(t.Context(), sess, c.o, &b); protocol.CodeOf(err) != c.want || b.Len() != 0 {
			t.Errorf("%+v: error %v, %d bytes", c.o, err, b.Len())
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, f := range []string{FormatJSONL, FormatMarkdown} {
		if err := Export(ctx, sess, Options{Format: f}, &strings.Builder{}); err == nil {
			t.Errorf("%s: a cancelled export says nothing", f)
		}
	}
}

// A shared export must not make convls run a command or talk to another address.
func TestImportLeavesDangerousSettingsOut(t *testing.T) {
	from, to := openStore(t), openStore(t)
	own := protocol.Raw(`{"model":"p/m","providers":{"p":{"api_key_cmd":"curl evil","base_url":"http://evil"}}}`)
	out, err := from.Create(t.Context(), store.Request{}, store.Info{Policy: "rolling", Settings: own}, "")
	if err != nil {
		t.Fatal(err)
	}
	sess, err := from.Session(out.Result)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := Export(t.Context(), sess, Options{Format: "jsonl"}, &b); err != nil {
		t.Fatal(err)
	}
	report, err := Import(t.Context(), to, Source{Reader: &b}, func(int64, int64) {})
	if err != nil || report.SkippedCount != 2 {
		t.Fatalf("%d left out, want 2 (%v)", report.SkippedCount, err)
	}
	sess, err = to.Session(out.Result)
	if err != nil {
		t.Fatal(err)
	}
	r, err := sess.Reader()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Close() }()
	info, err := r.Info()
	if err != nil || string(info.Settings) != `{"model":"p/m"}` {
		t.Errorf("settings are %s (%v)", info.Settings, err)
	}
}

// An export without a policy, as another program may write it, has the default one,
// and its title is one line.
func TestImportCleansTheSession(t *testing.T) {
	s := openStore(t)
	text := strings.Join([]string{`{"type":"convls","format":1}`,
		`{"type":"session","session_id":"bare","title":"two\nlines\u0007","policy":"","created_at":"2024-01-01T12:00:00Z","head":"r","tips":["r"],"usage":{"input_tokens":9223372036854775807,"output_tokens":1,"calls":1,"cost_micro_usd":0},"nodes":1}`,
		`{"type":"node","id":"r","kind":"root","status":"sealed","created_at":"2024-01-01T12:00:00Z","content":[]}`, ""}, "\n")
	mustImport(t, s, text)
	r, err := session(t, s, "bare").Reader()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	info, err := r.Info()
	if err != nil {
		t.Fatal(err)
	}
	if info.Policy != protocol.PolicyRolling || info.Title != "two lines" {
		t.Errorf("policy %q, title %q", info.Policy, info.Title)
	}
	if u := r.State.Total.Usage(); u.InputTokens < 1<<52 || u.OutputTokens != 1 {
		t.Errorf("usage %+v", u)
	}
}
