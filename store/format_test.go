package store

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"convls/protocol"
)

var update = flag.Bool("update", false, "write what the stores in testdata hold, and one of this format if there is none")

// dump is all that can be read of a session.
type dump struct {
	Info    Info               `json:"info"`
	State   State              `json:"state"`
	System  string             `json:"system"`
	Nodes   []dumpedNode       `json:"nodes"`
	Names   map[string]Seq     `json:"names"`
	Leaves  []Leaf             `json:"leaves"`
	Queue   []Queued           `json:"queue"`
	Events  []protocol.Event   `json:"events"`
	Voids   map[string]string  `json:"voids"`
	Covers  map[string]Covers  `json:"covers"`
	Receipt *Outcome[[]string] `json:"receipt"`
}

type dumpedNode struct {
	Skeleton Skeleton `json:"skeleton"`
	Content  *Content `json:"content"`
	Pinned   bool     `json:"pinned"`
}

func dumped(t testing.TB, s *Store, id string) dump {
	t.Helper()
	sess := session(t, s, id)
	d := read(t, sess, func(r *Reader) (dump, error) {
		d := dump{State: r.State, Voids: map[string]string{}, Covers: map[string]Covers{}}
		var errs [5]error
		d.Info, errs[0] = r.Info()
		d.System, errs[1] = r.Text(d.Info.SystemSHA256)
		d.Names, errs[2] = r.Names()
		d.Leaves, errs[3] = r.Leaves()
		d.Queue, errs[4] = r.Queue()
		for _, err := range errs {
			if err != nil {
				return d, err
			}
		}
		for seq := Root; seq < r.State.Next; seq++ {
			sk, err := r.Skeleton(seq)
			if protocol.CodeOf(err) == protocol.CodeUnknownNode {
				continue
			}
			if err != nil {
				return d, err
			}
			n := dumpedNode{Skeleton: sk}
			if n.Content, err = r.Content(seq); err != nil {
				return d, err
			}
			for i, p := range n.Content.Parts {
				if len(p.Text) > 100 {
					n.Content.Parts[i].Text = fmt.Sprintf("%d bytes, SHA-256 %s", len(p.Text), textSum(p.Text))
				}
			}
			if n.Pinned, err = r.Pinned(seq); err != nil {
				return d, err
			}
			d.Nodes = append(d.Nodes, n)
			if sk.Kind == protocol.KindSummary {
				if d.Covers[sk.ID], err = r.Covers(seq); err != nil {
					return d, err
				}
				if why, void, err := r.VoidReason(seq); err != nil {
					return d, err
				} else if void {
					d.Voids[sk.ID] = why
				}
			}
		}
		return d, nil
	})
	var err error
	if d.Events, _, _, err = sess.Events(context.Background(), s.cursor(0), 1_000); err != nil {
		t.Fatal(err)
	}
	for i := range d.Events {
		d.Events[i].Node = nil // told above
	}
	out, err := Apply(context.Background(), sess, Request{ID: "receipt", Hash: []byte("hash")}, func(*Tx) ([]string, error) {
		return nil, protocol.Errorf(protocol.CodeInternal, "the receipt is gone")
	})
	if err != nil {
		t.Error(err)
	}
	d.Receipt = &out
	return d
}

// goldenClock ticks, so that times in the store do not depend on the machine.
func goldenClock(from time.Time) func() time.Time {
	return func() time.Time { from = from.Add(time.Second); return from }
}

var goldenDay = time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)

const goldenSession = "ses_golden"

// writeGolden makes a store that has a record of every family: some in tables,
// some in the log only, and a reply and a send that a dead process left. It is
// copied as it is while it is open, as kill -9 would leave it.
func writeGolden(t *testing.T, to string) {
	t.Helper()
	ctx := context.Background()
	dir := t.TempDir()
	s, err := Open(ctx, Options{Dir: dir, Clock: goldenClock(goldenDay), MemTableBytes: 256 << 10})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Create(ctx, Request{}, Info{ID: goldenSession, Title: "Golden ✓", Policy: "rolling", Model: "offline", Workspace: "file:///w",
		Settings: protocol.Raw(`{"a":1}`)}, "be brief"); err != nil {
		t.Fatal(err)
	}
	sess := session(t, s, goldenSession)
	usage := &protocol.Usage{InputTokens: 10, OutputTokens: 5, CostUSD: 0.25}
	u1 := node(t, sess, NodeSpec{ID: "u1", Kind: protocol.KindUser, Predecessor: Root, Content: textContent("hello é漢😀"), Tokens: 3, Tokenizer: "o200k_base"})
	a1 := node(t, sess, NodeSpec{ID: "a1", Kind: protocol.KindAssistant, Predecessor: u1.Seq, Content: Content{
		Parts: []protocol.Part{{Type: protocol.PartText, Text: long(70_000)}, {Type: protocol.PartToolCall, NodeID: "t1"}},
		Model: "m", Usage: usage, StopReason: "tool_calls", Reads: []Run{{First: Root, Last: u1.Seq, Tools: true}},
		Call: &protocol.CallRecord{Model: "m", SystemSHA256: textSum("be brief")}}})
	node(t, sess, NodeSpec{ID: "t1", Kind: protocol.KindTool, Caller: a1.Seq, Exposed: true, Content: Content{Parts: []protocol.Part{
		{Type: protocol.PartToolCall, CallID: "c1", Name: "read", Arguments: protocol.Raw(`{"path":"x"}`)}, {Type: protocol.PartToolResult, CallID: "c1", Text: "x"}}}})
	a2 := reply(t, sess, a1.Seq, "done")
	if err := s.db.Flush(); err != nil {
		t.Fatal(err)
	}
	setHead(t, sess, u1, "")
	b1 := node(t, sess, NodeSpec{ID: "b1", Kind: protocol.KindAssistant, Predecessor: u1.Seq, Status: protocol.StatusFailed,
		Content: Content{Error: &protocol.NodeError{Code: protocol.CodeStreamCut, Message: "cut", Retryable: true}, Metadata: map[string]protocol.Raw{"k": protocol.Raw("true")}}})
	if _, err := Apply(ctx, sess, Request{ID: "receipt", Hash: []byte("hash"), Cause: "checkout", Origin: protocol.Origin{ClientID: "c", RequestID: "receipt"}}, func(tx *Tx) ([]string, error) {
		if _, err := tx.AppendSummary(SummarySpec{ID: "sum1", First: u1.Seq, Last: a1.Seq, Content: textContent("summary"), Activate: true}); err != nil {
			return nil, err
		}
		sum2, err := tx.AppendSummary(SummarySpec{ID: "sum2", First: u1.Seq, Last: b1.Seq, Content: textContent("void")})
		if err != nil {
			return nil, err
		}
		for _, err := range []error{tx.void(sum2.Seq, "a reason"), tx.Pin(u1, true), tx.Name("main", a2), tx.SetHead(a2, "main")} {
			if err != nil {
				return nil, err
			}
		}
		return []string{"the", "result"}, nil
	}); err != nil {
		t.Fatal(err)
	}
	redacted := user(t, sess, b1.Seq, "a secret")
	do(t, sess, func(tx *Tx) error { return tx.Redact(redacted) })
	gone := user(t, sess, u1.Seq, "deleted")
	remove(t, sess, gone)
	open := node(t, sess, NodeSpec{ID: "open", Kind: protocol.KindAssistant, Predecessor: b1.Seq, Status: protocol.StatusOpen})
	if err := sess.Checkpoint(open.Seq, 0, protocol.DeltaText, "half a re"); err != nil {
		t.Fatal(err)
	}
	do(t, sess, func(tx *Tx) error {
		_, err := tx.Enqueue(Queued{After: open.Seq, UserID: "qu", ReplyID: "qr", Content: textContent("later").Parts, Advance: true})
		return err
	})
	out, err := s.Create(ctx, Request{ID: "made and deleted"}, Info{ID: "ses_gone"}, "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.DeleteSession(ctx, out.Result, Request{}); err != nil {
		t.Fatal(err)
	}
	copyStore(t, dir, to)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// Every version opens the stores that former ones wrote, and reads in them what
// they meant. The stores in testdata are never written again; a new format adds
// one.
func TestFormat(t *testing.T) {
	dir := filepath.Join("testdata", fmt.Sprint("format", Format))
	if *update {
		if _, err := os.Stat(dir); errors.Is(err, os.ErrNotExist) { // a store is written once
			writeGolden(t, dir)
		}
	}
	stores, err := filepath.Glob(filepath.Join("testdata", "format*", "MANIFEST-*"))
	if err != nil || len(stores) == 0 {
		t.Fatalf("no stores in testdata (%v)", err)
	}
	for _, manifest := range stores {
		from := filepath.Dir(manifest)
		t.Run(filepath.Base(from), func(t *testing.T) {
			to := filepath.Join(t.TempDir(), "store")
			copyStore(t, from, to)
			s, err := Open(context.Background(), Options{Dir: to, Clock: func() time.Time { return goldenDay.Add(time.Hour) }})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := s.Close(); err != nil {
					t.Error(err)
				}
			})
			clean(t, s)
			b, err := protocol.Marshal(dumped(t, s, goldenSession))
			if err != nil {
				t.Fatal(err)
			}
			v := jsontext.Value(b)
			if err := v.Indent(jsontext.WithIndent("  ")); err != nil {
				t.Fatal(err)
			}
			file := from + ".json"
			if *update {
				if err := os.WriteFile(file, append(v, '\n'), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			golden, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(string(golden), string(v)+"\n"); d != "" {
				t.Errorf("the store reads otherwise (-want +got):\n%s", d)
			}
			if _, err := s.Session("ses_gone"); protocol.CodeOf(err) != protocol.CodeUnknownSession {
				t.Errorf("the deleted session: %v", err)
			}
			if sess := newSession(t, s); sess.num != 3 {
				t.Errorf("a new session has number %d, want 3", sess.num)
			}
			say(t, session(t, s, goldenSession), "on", "we go")
			clean(t, s)
		})
	}
}

// copyStore copies a store's files but those that only a process that has it open
// needs.
func copyStore(t *testing.T, from, to string) {
	t.Helper()
	if err := os.MkdirAll(to, 0o700); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(from)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if slices.Contains([]string{"LOCK", holderFile}, e.Name()) {
			continue
		}
		b, err := os.ReadFile(filepath.Join(from, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(to, e.Name()), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
