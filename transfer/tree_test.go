package transfer

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"convls/protocol"
)

func message(id, parent, role, text string) string {
	if parent == "" {
		return fmt.Sprintf(`{"message_id":%q,"parent_id":null,"role":%q,"text":%q}`, id, role, text)
	}
	return fmt.Sprintf(`{"message_id":%q,"parent_id":%q,"role":%q,"text":%q}`, id, parent, role, text)
}

// chain makes messages that answer each other, first to last.
func chain(prefix string, n int) []string {
	var out []string
	for i := range n {
		parent := ""
		if i > 0 {
			parent = fmt.Sprint(prefix, i-1)
		}
		out = append(out, message(fmt.Sprint(prefix, i), parent, "prompter", fmt.Sprint(i)))
	}
	return out
}

func TestTrees(t *testing.T) {
	circle := []string{}
	for i := range 1000 {
		circle = append(circle, message(fmt.Sprint("c", i), fmt.Sprint("c", (i+1)%1000), "prompter", "x"))
	}
	ab := []string{message("a", "", "prompter", "A"), message("b", "a", "assistant", "B"), message("c", "a", "assistant", "C"), message("d", "b", "prompter", "D")}
	for _, c := range []struct {
		name string
		text string
		// want is one session each, as brief writes it.
		want []string
		// skipped are parts of the reasons.
		skipped []string
	}{
		{"flat, parents first", strings.Join(ab, "\n"), []string{"2U:A 3A:B 4A:C 5U:D"}, nil},
		{"flat, children first (fault 57)", strings.Join([]string{ab[3], ab[2], ab[1], ab[0]}, "\n"), []string{"2U:A 3A:B 4U:D 5A:C"}, nil},
		{"one array", "[" + strings.Join(ab, ",") + "]", []string{"2U:A 3A:B 4A:C 5U:D"}, nil},
		{"array over many lines", "[\n  " + strings.Join(ab, ",\n  ") + "\n]\n", []string{"2U:A 3A:B 4A:C 5U:D"}, nil},
		{"array of trees", `[{"message_tree_id":"t1","prompt":` + ab[0] + `},{"message_tree_id":"t2","prompt":` + message("z", "", "prompter", "Z") + `}]`,
			[]string{"2U:A", "2U:Z"}, nil},
		{"one tree printed over lines", "{\n\"message_tree_id\": \"t\",\n\"prompt\":\n" + ab[0] + "\n}", []string{"2U:A"}, nil},
		{"two flat trees mixed", strings.Join([]string{ab[0], message("z", "", "prompter", "Z"), ab[1], message("y", "z", "assistant", "Y")}, "\n"),
			[]string{"2U:A 3A:B", "2U:Z 3A:Y"}, nil},
		{"a message with replies and no tree", `{"message_id":"a","role":"prompter","text":"A","replies":[` + ab[1] + `]}`, []string{"2U:A 3A:B"}, nil},
		{"two prompters and two assistants in a row", strings.Join([]string{ab[0], message("b", "a", "prompter", "B"), message("c", "b", "assistant", "C"), message("d", "c", "assistant", "D")}, "\n"),
			[]string{"2U:A 3U:B 4A:C 5A:D"}, nil},
		{"missing parent (fault 66)", strings.Join([]string{ab[0], message("x", "gone", "assistant", "X"), message("y", "x", "prompter", "Y"), ab[1]}, "\n"),
			[]string{"2U:A 3A:B"}, []string{`answers "gone", which is not there`}},
		{"own parent (fault 67)", strings.Join([]string{ab[0], message("x", "x", "assistant", "X")}, "\n"), []string{"2U:A"}, []string{"answers itself"}},
		{"circle of two (fault 67)", strings.Join([]string{message("x", "y", "assistant", "X"), ab[0], message("y", "x", "assistant", "Y"), message("w", "y", "prompter", "W")}, "\n"),
			[]string{"2U:A"}, []string{"answers itself"}},
		{"circle of a thousand (fault 67)", strings.Join(append(circle, ab[0]), "\n"), []string{"2U:A"}, []string{"answers itself"}},
		{"circle in a tree that has a name", strings.ReplaceAll(strings.Join([]string{message("x", "y", "assistant", "X"), message("y", "x", "assistant", "Y"), ab[0]}, "\n"), `"role"`, `"message_tree_id":"t","role"`),
			nil, []string{"answers itself"}},
		{"id twice", strings.Join([]string{ab[0], ab[1], ab[1]}, "\n"), nil, []string{`"b" occurs twice`}},
		{"unknown role", strings.Join([]string{ab[0], message("b", "a", "judge", "B"), message("z", "", "prompter", "Z")}, "\n"), []string{"2U:Z"}, []string{`has the role "judge"`}},
		{"reply that names another parent", `{"prompt":{"message_id":"a","role":"prompter","text":"A","replies":[{"message_id":"b","parent_id":"q","role":"assistant","text":"B"}]}}` + "\n" + ab[0],
			[]string{"2U:A"}, []string{"names another parent"}},
		{"null reply", `{"prompt":{"message_id":"a","role":"prompter","text":"A","replies":[null]}}` + "\n" + ab[0], []string{"2U:A"}, []string{"a reply is null"}},
		{"broken line", ab[0] + "\n" + `{"message_id":` + "\n" + ab[1], []string{"2U:A 3A:B"}, []string{"the last line is torn"}},
		{"invalid UTF-8 in one tree", ab[0] + "\n" + strings.Replace(message("z", "", "prompter", "Z"), `"Z"`, "\"\xff\"", 1), []string{"2U:A"}, []string{"the line can not be read"}},
		{"no message", ab[0] + "\n{}\n", []string{"2U:A"}, []string{"neither a message nor a tree"}},
		{"array that breaks off", "[" + ab[0] + "," + ab[1] + `,{"message_id":`, []string{"2U:A 3A:B"}, []string{"value 3 and what follows"}},
		{"too deep", `{"prompt":` + strings.Repeat(`{"message_id":"a","role":"prompter","text":"","replies":[`, 6000) + strings.Repeat(`]}`, 6000) + "}\n" + ab[0],
			[]string{"2U:A"}, []string{"the line can not be read"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := openStore(t)
			r, err := importText(t, s, c.text, "")
			clean(t, s)
			if len(c.want) == 0 {
				if protocol.CodeOf(err) != protocol.CodeImportRefused {
					t.Errorf("error %v, want import_refused", err)
				}
				empty(t, s)
			} else if err != nil {
				t.Fatal(err)
			}
			if len(r.Sessions) != len(c.want) {
				t.Fatalf("%+v, want %d sessions", r, len(c.want))
			}
			for i, want := range c.want {
				sess := session(t, s, r.Sessions[i].SessionID)
				if got := brief(t, reader(t, sess)); got != want {
					t.Errorf("session %d:\ngot  %s\nwant %s", i, got, want)
				}
				roundTrip(t, sess)
			}
			if int(r.SkippedCount) != len(c.skipped) {
				t.Fatalf("skipped %+v, want %q", r.Skipped, c.skipped)
			}
			for i, want := range c.skipped {
				if !strings.Contains(r.Skipped[i].Reason, want) {
					t.Errorf("skipped because %q, want %q", r.Skipped[i].Reason, want)
				}
			}
		})
	}
}

// The order in which messages come makes no other tree (fault 57).
func TestShuffledTree(t *testing.T) {
	var list []string
	for i := range 200 {
		parent := ""
		if i > 0 {
			parent = fmt.Sprint("m", (i-1)/2)
		}
		list = append(list, message(fmt.Sprint("m", i), parent, "prompter", fmt.Sprint(i)))
	}
	rng := rand.New(rand.NewPCG(1, 2))
	rng.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	s := openStore(t)
	rep := mustImport(t, s, strings.Join(list, "\n"))
	r := reader(t, session(t, s, rep.Sessions[0].SessionID))
	for i := 1; i < 200; i++ {
		n, err1 := r.Lookup(fmt.Sprint("m", i))
		p, err2 := r.Lookup(fmt.Sprint("m", (i-1)/2))
		if err1 != nil || err2 != nil || n.Predecessor != p.Seq {
			t.Fatalf("message %d follows %d, want %d (%v, %v)", i, n.Predecessor, p.Seq, err1, err2)
		}
	}
	if rep.Sessions[0].Branches != 100 {
		t.Errorf("%d branches, want 100", rep.Sessions[0].Branches)
	}
}

// The list of what was skipped ends at a hundred; the count does not.
func TestSkippedIsCapped(t *testing.T) {
	s := openStore(t)
	r, err := importText(t, s, strings.Join(chain("a", 2), "\n")+"\n"+strings.Repeat("{\"message_id\":3}\n", 250), "")
	if err != nil || len(r.Skipped) != 100 || r.SkippedCount != 250 || r.Skipped[0].Line != 3 {
		t.Errorf("%d skipped of %d, first %+v, %v", len(r.Skipped), r.SkippedCount, r.Skipped[0], err)
	}
}

func TestDeepFlatChain(t *testing.T) {
	s := openStore(t)
	list := chain("m", 5_000)
	for i, j := 0, len(list)-1; i < j; i, j = i+1, j-1 {
		list[i], list[j] = list[j], list[i]
	}
	r := mustImport(t, s, strings.Join(list, "\n"))
	if r.Nodes != 5_001 || r.Sessions[0].Branches != 1 {
		t.Errorf("%+v", r)
	}
}
