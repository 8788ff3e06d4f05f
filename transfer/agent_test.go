package transfer

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"convls/protocol"
	"convls/store"
)

const header = `{"type":"session","id":"s","timestamp":"2025-03-01T10:00:00.000Z"}`

func entryLine(message string) string {
	return `{"type":"message","timestamp":"2025-03-01T10:00:01.000Z","message":` + message + `}`
}

func said(role, text string) string {
	return entryLine(fmt.Sprintf(`{"role":%q,"content":[{"type":"text","text":%q}],"stopReason":"stop"}`, role, text))
}

func calls(ids ...string) string {
	var blocks []string
	for _, id := range ids {
		blocks = append(blocks, fmt.Sprintf(`{"type":"toolCall","id":%q,"name":"run","arguments":{"id":%q}}`, id, id))
	}
	return entryLine(`{"role":"assistant","stopReason":"toolUse","content":[` + strings.Join(blocks, ",") + `]}`)
}

func gave(id, text string) string {
	return entryLine(fmt.Sprintf(`{"role":"toolResult","toolCallId":%q,"toolName":"run","content":[{"type":"text","text":%q}]}`, id, text))
}

func compacted(index int) string {
	return fmt.Sprintf(`{"type":"compaction","summary":"so far","firstKeptEntryIndex":%d,"tokensBefore":9}`, index)
}

// brief writes a session in one line: U, A, T for user, assistant and tool nodes
// with their texts, S for summaries with how many nodes they cover, N for notices.
func brief(t *testing.T, r *store.Reader) string {
	t.Helper()
	var out []string
	for seq := store.Root + 1; seq < r.State.Next; seq++ {
		sk, err1 := r.Skeleton(seq)
		c, err2 := r.Content(seq)
		if err1 != nil || err2 != nil {
			t.Fatal(err1, err2)
		}
		text := store.Text(c.Parts)
		for _, p := range c.Parts {
			if p.Type == protocol.PartToolResult {
				text = p.Text
			}
		}
		mark := map[protocol.Kind]string{protocol.KindUser: "U", protocol.KindAssistant: "A", protocol.KindTool: "T",
			protocol.KindSummary: "S", protocol.KindNotice: "N"}[sk.Kind]
		switch sk.Kind {
		case protocol.KindSummary:
			text = fmt.Sprint(c.Covers.Count)
		case protocol.KindNotice:
			_, text, _ = strings.Cut(text, "\n\n")
		case protocol.KindTool:
			text += fmt.Sprintf("<%d", sk.Caller)
		}
		if sk.Status != protocol.StatusSealed {
			text += "!" + string(sk.Status)
		}
		out = append(out, fmt.Sprintf("%d%s:%s", seq, mark, text))
	}
	return strings.Join(out, " ")
}

func TestAgentJoins(t *testing.T) {
	for _, c := range []struct {
		name    string
		entries []string
		want    string
		skipped []string // beginnings of reasons
	}{
		{"empty", nil, "", nil},
		{"results in another order than the calls", []string{said("user", "go"), calls("a", "b"), gave("b", "B"), gave("a", "A")},
			"2U:go 3A: 4T:A<3 5T:B<3", nil},
		{"same id in two turns (fault 96)", []string{said("user", "1"), calls("a"), gave("a", "first"), said("user", "2"), calls("a"), gave("a", "second")},
			"2U:1 3A: 4T:first<3 5U:2 6A: 7T:second<6", nil},
		{"same id twice in one reply", []string{calls("a", "a"), gave("a", "first"), gave("a", "second")},
			"2A: 3T:first<2 4T:second<2", nil},
		{"a result is not given to an older reply (fault 96)", []string{calls("a"), said("assistant", "no"), calls("b"), gave("a", "late")},
			"2A: 3T:<2!interrupted 4A:no 5A: 6T:<5!interrupted 7N:late", []string{"a tool's result without its call"}},
		{"result before its call (fault 10)", []string{said("user", "go"), gave("a", "early"), calls("a")},
			"2U:go 3A: 4T:early<3", nil},
		{"early result does not skip a reply", []string{gave("a", "early"), said("assistant", "no"), calls("a")},
			"2N:early 3A:no 4A: 5T:<4!interrupted", []string{"a tool's result without its call"}},
		{"result without a call", []string{said("user", "go"), gave("x", "lost")},
			"2U:go 3N:lost", []string{"a tool's result without its call"}},
		{"second result for one call", []string{calls("a"), gave("a", "1"), gave("a", "2")},
			"2A: 3T:1<2 4N:2", []string{"a tool's result without its call"}},
		{"result after a message that was sent meanwhile", []string{calls("a"), said("user", "wait"), gave("a", "done")},
			"2A: 3T:done<2 4U:wait", nil},
		{"user message with text and a result (fault 9)", []string{calls("a"),
			entryLine(`{"role":"user","content":[{"type":"toolResult","toolCallId":"a","content":"in the message"},{"type":"text","text":"and this"}]}`)},
			"2A: 3T:in the message<2 4U:and this", nil},
		{"user message that is a result only", []string{calls("a"), entryLine(`{"role":"user","content":[{"type":"toolResult","toolCallId":"a","content":"r"}]}`)},
			"2A: 3T:r<2", nil},
		{"two users and two replies in a row", []string{said("user", "1"), said("user", "2"), said("assistant", "3"), said("assistant", "4")},
			"2U:1 3U:2 4A:3 5A:4", nil},
		{"unknown role", []string{said("oracle", "hm"), said("user", "1")},
			"2N: 3U:1", []string{"a message of the unknown role"}},
		{"unknown entry", []string{`{"type":"later","x":[1]}`, said("user", "1")}, "2U:1", []string{"an entry of the unknown type"}},
		{"unknown block and bad image", []string{entryLine(`{"role":"user","content":[{"type":"smell"},{"type":"image","data":"???"},{"type":"text","text":"x"}]}`)},
			"2U:x", []string{"a piece of content of the unknown type", "an image was left out"}},
		{"half a character (fault 91)", []string{entryLine(`{"role":"user","content":"cut \ud83d here"}`)}, "2U:cut \uFFFD here", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := openStore(t)
			r := mustImport(t, s, header+"\n"+strings.Join(c.entries, "\n")+"\n")
			sess := session(t, s, "s")
			if got := brief(t, reader(t, sess)); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
			checkReasons(t, r, c.skipped)
			roundTrip(t, sess)
		})
	}
}

func checkReasons(t *testing.T, r protocol.ImportReport, want []string) {
	t.Helper()
	if int(r.SkippedCount) != len(want) || len(r.Skipped) != len(want) {
		t.Fatalf("skipped %+v, want %q", r.Skipped, want)
	}
	for i, w := range want {
		if !strings.HasPrefix(r.Skipped[i].Reason, w) {
			t.Errorf("skipped because %q, want %q", r.Skipped[i].Reason, w)
		}
	}
}

func TestAgentCompactions(t *testing.T) {
	// Indexes: 0 header, 1 U1, 2 A1 with a call, 3 its result, 4 U2, 5 A2, then what
	// the case adds.
	base := []string{said("user", "u1"), calls("a"), gave("a", "r"), said("user", "u2"), said("assistant", "a2")}
	const nodes = "2U:u1 3A: 4T:r<3 5U:u2 6A:a2"
	for _, c := range []struct {
		name    string
		more    []string
		want    string
		active  store.Seq
		skipped []string
	}{
		{"keeps from a user's message", []string{compacted(4)}, " 7S:2", 7, nil},
		{"keeps from a reply", []string{compacted(2)}, " 7S:1", 7, nil},
		{"cut between call and result: the reply is kept whole", []string{compacted(3)}, " 7S:1", 7, nil},
		{"keeps nothing", []string{compacted(6)}, " 7S:4", 7, nil},
		{"second extends the first", []string{compacted(4), said("user", "u3"), compacted(5)}, " 7S:2 8U:u3 9S:3", 9, nil},
		{"cut at an entry that is no message", []string{`{"type":"model_change","provider":"p","modelId":"m"}`, said("user", "u3"), compacted(6)}, " 7U:u3 8S:4", 8, nil},
		{"keeps all", []string{compacted(1)}, "", 0, []string{"a compaction was left out: it keeps everything"}},
		{"names the header", []string{compacted(0)}, "", 0, []string{"a compaction was left out: it keeps everything"}},
		{"names a later entry", []string{compacted(9), said("user", "u3")}, " 7U:u3", 0, []string{"a compaction was left out: the first entry"}},
		{"negative", []string{compacted(-1)}, "", 0, []string{"a compaction was left out: the first entry"}},
		{"names nothing", []string{`{"type":"compaction","summary":"x"}`}, "", 0, []string{"a compaction was left out: the first entry"}},
		{"a bad one does not replace a good one", []string{compacted(4), compacted(1)}, " 7S:2", 7, []string{"a compaction was left out"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := openStore(t)
			r := mustImport(t, s, strings.Join(append(append([]string{header}, base...), c.more...), "\n"))
			sess := session(t, s, "s")
			rd := reader(t, sess)
			if got := brief(t, rd); got != nodes+c.want {
				t.Errorf("got  %s\nwant %s", got, nodes+c.want)
			}
			if rd.State.Active != c.active {
				t.Errorf("active is %d, want %d", rd.State.Active, c.active)
			}
			checkReasons(t, r, c.skipped)
			roundTrip(t, sess)
		})
	}
}

// A mixed message at the cut holds a result of the reply before it: both are kept.
func TestAgentCutAtMixedMessage(t *testing.T) {
	s := openStore(t)
	mustImport(t, s, strings.Join([]string{header, said("user", "u1"), calls("a"),
		entryLine(`{"role":"user","content":[{"type":"toolResult","toolCallId":"a","content":"r"},{"type":"text","text":"u2"}]}`), compacted(3)}, "\n"))
	if got, want := brief(t, reader(t, session(t, s, "s"))), "2U:u1 3A: 4T:r<3 5U:u2 6S:1"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestAgentLines(t *testing.T) {
	u := said("user", "u")
	for _, c := range []struct {
		name, text, want string
		skipped          []string
		refused          string
	}{
		{name: "byte order mark and CRLF", text: "\uFEFF" + header + "\r\n" + u + "\r\n\r\n", want: "2U:u"},
		{name: "torn last line", text: header + "\n" + u + "\n" + u[:len(u)/2], want: "2U:u", skipped: []string{"the last line is torn"}},
		{name: "torn inside of a character", text: header + "\n" + u + "\n" + strings.Replace(u, `"u"`, "\"\xC3", 1)[:strings.Index(u, `"u"`)+2],
			want: "2U:u", skipped: []string{"the last line is torn"}},
		{name: "broken line in the middle", text: header + "\n" + u[:20] + "\n" + u, refused: "line 2: the line can not be read"},
		{name: "broken last line that is not torn", text: header + "\n" + u + "\n}{\n", refused: "line 3: the line can not be read"},
		{name: "invalid UTF-8", text: header + "\n" + strings.Replace(u, `"u"`, "\"\xff\"", 1) + "\n" + u, refused: "line 2"},
		{name: "member twice", text: header + "\n" + strings.Replace(u, `"role"`, `"role":"user","role"`, 1), refused: "line 2"},
		{name: "no header", text: u, refused: "line 1: the message entry belongs to no session"},
		{name: "two sessions, the first refused", text: header + "\n" + u[:20] + "\n" + u + "\n" + strings.Replace(header, `"s"`, `"s2"`, 1) + "\n" + u, want: "2U:u",
			skipped: []string{"the line can not be read"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := openStore(t)
			r, err := importText(t, s, c.text, "")
			clean(t, s)
			if c.refused != "" {
				if protocol.CodeOf(err) != protocol.CodeImportRefused || !strings.Contains(err.Error(), c.refused) {
					t.Errorf("error %v, want import_refused with %q", err, c.refused)
				}
				empty(t, s)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := brief(t, reader(t, session(t, s, r.Sessions[0].SessionID))); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
			checkReasons(t, r, c.skipped)
		})
	}
}

func empty(t *testing.T, s *store.Store) {
	t.Helper()
	n, err := s.Count(t.Context())
	if err != nil || n != 0 {
		t.Errorf("there are %d sessions (%v) after a refused import", n, err)
	}
}

// Where entries name their parents, a lost line is safe if nobody names it.
func TestAgentTreeFaults(t *testing.T) {
	e := func(id, parent string) string {
		return fmt.Sprintf(`{"type":"message","id":%q,"parentId":%s,"message":{"role":"user","content":%q}}`, id, parent, id)
	}
	head := strings.Replace(header, `"type":"session",`, `"type":"session","version":3,`, 1)
	circle := []string{head}
	for i := range 1000 {
		circle = append(circle, e(fmt.Sprint("n", i), fmt.Sprintf(`"n%d"`, (i+1)%1000)))
	}
	for _, c := range []struct {
		name    string
		lines   []string
		want    string
		skipped int64
		refused string
	}{
		{name: "broken line that nobody follows", lines: []string{head, e("a", "null"), e("b", `"a"`)[:30], e("c", `"a"`)}, want: "2U:a 3U:c", skipped: 1},
		{name: "broken line that one follows", lines: []string{head, e("a", "null"), e("b", `"a"`)[:30], e("c", `"b"`)}, refused: `follows "b", which is not there`},
		{name: "children before parents", lines: []string{head, e("c", `"b"`), e("b", `"a"`), e("a", "null")}, want: "2U:a 3U:b 4U:c"},
		{name: "own parent (fault 67)", lines: []string{head, e("a", `"a"`)}, refused: "its own ancestor"},
		{name: "circle of two (fault 67)", lines: []string{head, e("a", `"b"`), e("b", `"a"`)}, refused: "its own ancestor"},
		{name: "circle of a thousand (fault 67)", lines: circle, refused: "its own ancestor"},
		{name: "id twice", lines: []string{head, e("a", "null"), e("a", "null")}, refused: "occurs twice"},
		{name: "two roots", lines: []string{head, e("a", "null"), e("b", "null")}, want: "2U:a 3U:b"},
		{name: "the header as parent", lines: []string{head, e("a", `"s"`)}, want: "2U:a"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := openStore(t)
			r, err := importText(t, s, strings.Join(c.lines, "\n"), "")
			clean(t, s)
			if c.refused != "" {
				if protocol.CodeOf(err) != protocol.CodeImportRefused || !strings.Contains(err.Error(), c.refused) {
					t.Errorf("error %v, want import_refused with %q", err, c.refused)
				}
				empty(t, s)
				return
			}
			if err != nil || r.SkippedCount != c.skipped {
				t.Fatalf("%v, skipped %+v", err, r.Skipped)
			}
			if got := brief(t, reader(t, session(t, s, "s"))); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

func TestAgentHugeLine(t *testing.T) {
	text := strings.Repeat("x", 20<<20)
	s := openStore(t)
	mustImport(t, s, header+"\n"+said("user", text)+"\n"+said("assistant", "ok"))
	r := reader(t, session(t, s, "s"))
	c, err := r.Content(2)
	if err != nil || store.Text(c.Parts) != text {
		t.Errorf("the text has %d bytes (%v)", len(store.Text(c.Parts)), err)
	}
}

// An id that the store has already: the second import makes a session of its own
// and says so.
func TestImportTwice(t *testing.T) {
	s := openStore(t)
	text := header + "\n" + said("user", "u")
	if r := mustImport(t, s, text); r.Sessions[0].SessionID != "s" || r.Sessions[0].OriginalID != "" {
		t.Errorf("first: %+v", r.Sessions)
	}
	r := mustImport(t, s, text)
	if r.Sessions[0].SessionID == "s" || r.Sessions[0].OriginalID != "s" {
		t.Errorf("second: %+v", r.Sessions)
	}
	// A repeated request makes nothing new.
	src := func() Source {
		return Source{Reader: strings.NewReader(text), Request: store.Request{ID: "r1", Hash: []byte{1}}}
	}
	a, err1 := Import(t.Context(), s, src(), nil)
	b, err2 := Import(t.Context(), s, src(), nil)
	if err1 != nil || err2 != nil || !slices.Equal(a.Sessions, b.Sessions) {
		t.Errorf("repeated request: %+v (%v), %+v (%v)", a.Sessions, err1, b.Sessions, err2)
	}
	if n, err := s.Count(t.Context()); err != nil || n != 3 {
		t.Errorf("%d sessions (%v), want 3", n, err)
	}
}

func TestTokenCounts(t *testing.T) {
	s := openStore(t)
	count := func(parts []protocol.Part) int { return 10 * len(parts) }
	_, err := Import(t.Context(), s, Source{Reader: strings.NewReader(header + "\n" + said("user", "u") + "\n" + calls("a") + "\n" + gave("a", "r") + "\n" + compacted(2)),
		Count: count, Tokenizer: "tens"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	clean(t, s)
	r := reader(t, session(t, s, "s"))
	for seq, want := range map[store.Seq]uint64{1: 0, 2: 10, 3: 10, 4: 20, 5: 10} {
		sk, err := r.Skeleton(seq)
		if err != nil || sk.Tokens != want || (want > 0) != (sk.Tokenizer == "tens") {
			t.Errorf("node %d has %d tokens by %q (%v), want %d", seq, sk.Tokens, sk.Tokenizer, err, want)
		}
	}
	if c, err := r.Covers(5); err != nil || c.Tokens != 10 {
		t.Errorf("the summary covers %d tokens (%v), want 10", c.Tokens, err)
	}
}
