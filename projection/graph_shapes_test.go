package projection

import (
	"cmp"
	"flag"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"convls/projection/drawing"
	"convls/protocol"
	"convls/store"
)

var update = flag.Bool("update", false, "write the drawings in testdata/graph anew")

// TestGraphShapes draws what the files in testdata/graph describe: a script, a line
// "----", and for each draw of the script what it gives. The commands of a script:
//
//	chain AFTER NAME...          nodes one after the other: u… a message, others replies
//	empty NAME AFTER             a reply that failed without text
//	attach NAME AFTER SOURCE     an attach node that points at SOURCE
//	tool NAME CALLER             a tool call
//	call NAME AT [exposed]       a call (convls/exec) that hangs off AT
//	callby NAME CALLER [exposed] a call that CALLER made
//	spawn NAME REPLY AFTER CALLER [exposed]
//	summary NAME FIRST LAST      the active summary
//	active NAME|none, undo NAME, redo NAME, policy POLICY
//	head NODE, name BRANCH NODE, pin NODE, redact NODE, delete TIP
//	draw [head=N] [expand=N,N] [around=N|before=N|after=N] [limit=N] [reads_of=N]
func TestGraphShapes(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("testdata", "graph", "*.txt"))
	if err != nil || len(files) < 30 {
		t.Fatalf("%d shapes (%v), want 30 at least", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			b, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			script, want, _ := strings.Cut(string(b), "----\n")
			s := &shape{ledger: newLedger(t)}
			for line := range strings.Lines(script) {
				if words := strings.Fields(line); len(words) > 0 && words[0] != "#" {
					s.do(words)
				}
			}
			got := strings.TrimPrefix(s.out.String(), "\n")
			if *update {
				if err := os.WriteFile(file, []byte(script+"----\n"+got), 0o600); err != nil {
					t.Fatal(err)
				}
				return
			}
			if d := gocmp.Diff(want, got); d != "" {
				t.Errorf("the drawing changed (-want +got):\n%s", d)
			}
		})
	}
}

type shape struct {
	*ledger
	out strings.Builder
}

func (s *shape) do(words []string) {
	s.t.Helper()
	arg := func(i int) string {
		if i < len(words) {
			return words[i]
		}
		return ""
	}
	node := func(i int) store.Skeleton {
		n, ok := s.nodes[arg(i)]
		if !ok {
			s.t.Fatalf("%q: no node %q", strings.Join(words, " "), arg(i))
		}
		return n
	}
	exposed := words[len(words)-1] == "exposed"
	switch words[0] {
	case "chain":
		s.chainOf(arg(1), words[2:])
	case "empty":
		s.add(arg(1), arg(2), store.NodeSpec{Kind: protocol.KindAssistant, Status: protocol.StatusFailed,
			Content: store.Content{Parts: []protocol.Part{}, Error: &protocol.NodeError{Code: protocol.CodeStreamCut, Message: "the stream was cut"}}})
	case "attach":
		s.add(arg(1), arg(2), store.NodeSpec{Kind: protocol.KindAttach, Content: store.Content{Source: &store.Source{SessionID: s.sess.ID(), NodeID: node(3).ID}}})
	case "tool":
		spec := toolNode(arg(1), protocol.Part{Type: protocol.PartToolResult, CallID: arg(1), Text: "result"})
		spec.Caller = node(2).Seq
		s.add(arg(1), "", spec)
	case "call", "callby":
		spec := store.NodeSpec{Kind: protocol.KindCall, Content: say(arg(1)), Exposed: exposed}
		if words[0] == "callby" {
			spec.Caller = node(2).Seq
		}
		s.add(arg(1), arg(2), spec)
	case "spawn":
		s.apply(func(tx *store.Tx) error {
			u, err := tx.Append(store.NodeSpec{ID: arg(1), Kind: protocol.KindUser, Predecessor: node(3).Seq, Caller: node(4).Seq, Status: protocol.StatusSealed,
				Content: say(arg(1)), HeadNeutral: true, Exposed: exposed})
			if err != nil {
				return err
			}
			a, err := tx.Append(store.NodeSpec{ID: arg(2), Kind: protocol.KindAssistant, Predecessor: u.Seq, Status: protocol.StatusSealed, Content: say(arg(2)), HeadNeutral: true})
			s.nodes[arg(1)], s.nodes[arg(2)] = u, a
			return err
		})
	case "summary":
		s.summary(arg(1), arg(2), arg(3))
	case "active":
		s.apply(func(tx *store.Tx) error { return tx.Activate(s.nodes[arg(1)]) })
	case "undo", "redo":
		s.apply(func(tx *store.Tx) error { return tx.Undo(node(1), words[0] == "undo") })
	case "policy":
		s.apply(func(tx *store.Tx) error {
			info, err := tx.Info()
			info.Policy = arg(1)
			return cmp.Or(err, tx.SetInfo(info))
		})
	case "head":
		s.apply(func(tx *store.Tx) error { return tx.SetHead(node(1), "") })
	case "name":
		s.apply(func(tx *store.Tx) error { return tx.Name(arg(1), node(2)) })
	case "pin":
		s.apply(func(tx *store.Tx) error { return tx.Pin(node(1), true) })
	case "redact":
		s.apply(func(tx *store.Tx) error { return tx.Redact(node(1)) })
	case "delete":
		r, err := s.reader().Exclusive(node(1))
		if err != nil {
			s.t.Fatal(err)
		}
		s.apply(func(tx *store.Tx) error { return tx.Delete(r) })
	case "draw":
		s.draw(words)
	default:
		s.t.Fatalf("there is no command %q", words[0])
	}
}

// chainOf appends nodes at which HEAD may be or not: it goes along if it is.
func (s *shape) chainOf(after string, names []string) {
	s.t.Helper()
	for _, n := range names {
		kind := protocol.KindAssistant
		if strings.HasPrefix(n, "u") {
			kind = protocol.KindUser
		}
		s.add(n, after, store.NodeSpec{Kind: kind})
		after = n
	}
}

func (s *shape) draw(words []string) {
	s.t.Helper()
	w := GraphWindow{Limit: 200}
	for _, word := range words[1:] {
		key, value, _ := strings.Cut(word, "=")
		switch key {
		case "head":
			w.Head = s.nodes[value]
		case "expand":
			for _, n := range strings.Split(value, ",") {
				w.Expanded = append(w.Expanded, s.nodes[n].ID)
			}
		case "around", "before", "after":
			id := s.nodes[value].ID
			switch key {
			case "around":
				w.Around = id
			case "before":
				w.Before = id
			default:
				w.After = id
			}
		case "limit":
			n, err := strconv.Atoi(value)
			if err != nil {
				s.t.Fatal(err)
			}
			w.Limit = n
		case "reads_of":
			w.ReadsOf = s.nodes[value].ID
		default:
			s.t.Fatalf("draw has no argument %q", word)
		}
	}
	v, err := Graph(s.reader(), w)
	if err != nil {
		s.t.Fatal(err)
	}
	if w.Around == "" && w.Before == "" && w.After == "" && w.Limit == 200 {
		checkPicture(s.t, v)
	}
	s.out.WriteString("\n" + strings.Join(words, " ") + "\n")
	if err := drawing.Text(&s.out, v, drawing.Options{}); err != nil {
		s.t.Fatal(err)
	}
}
