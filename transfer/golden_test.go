package transfer

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"convls/protocol"
	"convls/store"
)

var update = flag.Bool("update", false, "write the golden files")

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs (go test -update writes it anew); got:\n%s", name, got)
	}
}

// outline writes a session down for people: its nodes in order, numbered, with
// their edges as numbers.
func outline(t testing.TB, r *store.Reader) string {
	t.Helper()
	var b strings.Builder
	info, err := r.Info()
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(&b, "title %q model %q workspace %q created %s head %d active %d\n", info.Title, info.Model, info.Workspace,
		info.CreatedAt.Format("15:04:05.000"), r.State.Head, r.State.Active)
	names, err := r.Names()
	if err != nil {
		t.Fatal(err)
	}
	if len(names) > 0 {
		fmt.Fprintf(&b, "names %v\n", names)
	}
	for sk, err := range skeletons(context.Background(), r) {
		if err != nil {
			t.Fatal(err)
		}
		c, err := r.Content(sk.Seq)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "%d %s %s", sk.Seq, sk.Kind, sk.Status)
		if sk.Predecessor != 0 {
			fmt.Fprintf(&b, " after %d", sk.Predecessor)
		}
		if sk.Caller != 0 {
			fmt.Fprintf(&b, " called by %d", sk.Caller)
		}
		fmt.Fprintf(&b, " %s", sk.Created.Format("15:04:05.000"))
		if c.Covers != nil {
			fmt.Fprintf(&b, " covers %d-%d (%d)", c.Covers.First, c.Covers.Last, c.Covers.Count)
		}
		if c.Model != "" {
			fmt.Fprintf(&b, " %s %dms %q", c.Model, c.DurationMS, c.StopReason)
		}
		b.WriteByte('\n')
		for _, p := range c.Parts {
			if p.NodeID != "" {
				callee, err := r.Lookup(p.NodeID)
				if err != nil {
					t.Fatal(err)
				}
				p.NodeID = fmt.Sprint("#", callee.Seq)
			}
			part, err := protocol.Marshal(p)
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(&b, "  %s\n", part)
		}
		for _, v := range []any{c.Usage, c.Error, c.Metadata, c.Provenance} {
			s, err := protocol.Marshal(v)
			if err != nil {
				t.Fatal(err)
			}
			if string(s) != "null" && string(s) != "{}" {
				fmt.Fprintf(&b, "  %s\n", s)
			}
		}
	}
	return b.String()
}

func TestSamples(t *testing.T) {
	for _, name := range []string{"agent", "agent-tree", "trees"} {
		t.Run(name, func(t *testing.T) {
			s := openStore(t)
			report, err := Import(context.Background(), s, Source{Path: filepath.Join("testdata", name+".jsonl")}, nil)
			if err != nil {
				t.Fatal(err)
			}
			clean(t, s)
			out := ""
			for _, e := range report.Sessions {
				sess := session(t, s, e.SessionID)
				out += fmt.Sprintf("session %s: %d nodes, %d branches, %d summaries\n%s", e.SessionID, e.Nodes, e.Branches, e.Summaries, outline(t, reader(t, sess)))
				roundTrip(t, sess)
			}
			for _, e := range report.Skipped {
				out += fmt.Sprintf("skipped: line %d, %q: %s\n", e.Line, e.ID, e.Reason)
			}
			golden(t, name+".outline", out)
			golden(t, name+".md", export(t, session(t, s, report.Sessions[0].SessionID), Options{Format: FormatMarkdown}))
		})
	}
}
