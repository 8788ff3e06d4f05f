package chat

import (
	"errors"
	"os"
	"strings"
	"testing"

	"convls/protocol"
	"convls/test/fakemodel"

	"github.com/charmbracelet/x/ansi"
)

// TestPlainGraph draws a session, from two heads.
func TestPlainGraph(t *testing.T) {
	r := newRig(t)
	out, errs, err := r.script(t, Options{}, nil, "repeat: one", "/retry", "/name again", "repeat: two", "/fork #2 other", "/graph", "/graph again", "/graph #1")
	if err != nil {
		t.Fatalf("err %v, stderr %q", err, errs)
	}
	const want = `◆   (beginning)
○─╮ repeat: one
● │ one
  ● [other] ◀ HEAD one
  ○ repeat: two
  ● [again] two
`
	if n := strings.Count(out, want); n != 3 {
		t.Errorf("the graph is there %d times, want 3 times\n%s\nin:\n%s", n, want, out)
	}
}

func TestPlainGraphRefusals(t *testing.T) {
	r := newRig(t)
	_, errs, err := r.script(t, Options{}, nil, "/graph", "repeat: one", "/graph nowhere", "/graph #9", "/graph expand", "/graph expand #9", "/attach branch", "/attach branch nowhere", "/attach branch 1", "/candidates",
		"/candidates 1", "/candidates 9", "/candidates two", "/candidates 2 #9", "/candidates 2 nobody/nothing")
	if !errors.Is(err, ErrFailed) {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(errs), "\n")
	want := []string{"there is no conversation yet", `no branch "nowhere"`, "no message #9", "there is nothing to expand", "no message #9", "which branch? /attach branch", `no branch "nowhere"`, "that is the branch you are on",
		"how many answers?", "how many answers?", "how many answers?", "how many answers?", "no message #9", "nobody"}
	if len(lines) != len(want) {
		t.Fatalf("%d errors, want %d:\n%s", len(lines), len(want), errs)
	}
	for i := range want {
		if !strings.Contains(lines[i], want[i]) {
			t.Errorf("error %d: %q, want %q", i, lines[i], want[i])
		}
	}
}

// TestPlainGraphExpand shows what a summary stands for.
func TestPlainGraphExpand(t *testing.T) {
	r := newRig(t)
	long := "repeat: You must not touch prod. " + strings.Repeat("We talk about the build and how it goes. ", 20)
	out, errs, err := r.script(t, Options{}, nil, long, long, long, long, "/compact #4", "/graph", "/graph expand")
	if err != nil {
		t.Fatalf("err %v, stderr %q", err, errs)
	}
	_, out, _ = strings.Cut(out, "compacted:")
	_, out, _ = strings.Cut(out, "◆")
	folded, expanded, _ := strings.Cut(out, "◆")
	for _, tc := range []struct{ where, what string }{
		{folded, "\n◎ (4 messages folded) "}, {expanded, "\n○ ┊ repeat: You must not"}, {expanded, "\n● ┊ You must not"}, {expanded, "\n◎ (4 messages, shown above) "},
	} {
		if !strings.Contains(tc.where, tc.what) {
			t.Errorf("%q is missing in\n%s", tc.what, tc.where)
		}
	}
	if strings.Contains(folded, "┊") {
		t.Errorf("folded messages are shown:\n%s", folded)
	}
}

// TestScreenGraph shows the graph in the place of the transcript, with HEAD in view,
// as wide as the screen.
func TestScreenGraph(t *testing.T) {
	r := newRig(t)
	var talk []string
	for range 30 {
		talk = append(talk, "repeat: "+strings.Repeat("word ", 40))
	}
	if _, _, err := r.script(t, Options{Title: "long"}, nil, append(talk, "/fork #2 early", "repeat: the end")...); err != nil {
		t.Fatal(err)
	}
	d := newDriver(t, Options{Session: "long"}, r.dial(nil))
	d.see("the end")
	d.enter("/graph")
	d.see("Graph, 63 rows", "[early] ◀ HEAD the end", "Esc closes")
	for _, width := range []int{100, 40} {
		d.m.width = width
		d.m.layout()
		for l := range strings.Lines(d.view()) {
			if w := ansi.StringWidth(strings.TrimRight(l, "\n")); w > width {
				t.Errorf("%d columns on a screen of %d: %q", w, width, l)
			}
		}
		d.see("◀ HEAD", "…")
	}
	if v := d.m.View().Content; !strings.Contains(v, "\x1b[") {
		t.Error("the graph has no colours")
	}
	d.keys("esc")
	d.gone("Graph, 63 rows")
}

// TestCandidates has answers written side by side: HEAD is at the first, all are
// shown while they are written, and the next one is a key away.
func TestCandidates(t *testing.T) {
	r := newRig(t)
	fake := fakemodel.New(t)
	gates := []*fakemodel.Gate{fake.Gate(), fake.Gate()}
	fake.Script(fakemodel.Say("the old answer"), fakemodel.Say("words ", "of one").Hold(gates[0], 1), fakemodel.Say("words ", "of another").Hold(gates[1], 1))
	d := newDriver(t, Options{Model: "fake/m"}, r.dial(provider(fake)))
	d.enter("go")
	d.see("the old answer")
	d.answered()
	d.enter("/candidates 2")
	d.see("‹ 2/3 ›", "▸ 2/3", "3/3", "writing words", "side by side")
	gates[0].Release()
	gates[1].Release()
	d.answered()
	d.see("done (shown above)", "done words of")
	first := partsText(d.m.rows[len(d.m.rows)-1].Content)
	d.keys("alt+n")
	d.see("‹ 3/3 ›", "▸ 3/3")
	second := partsText(d.m.rows[len(d.m.rows)-1].Content)
	if first == second || first+second != "words of onewords of another" && first+second != "words of anotherwords of one" {
		t.Errorf("the answers are %q and %q", first, second)
	}
	d.enter("/prev")
	d.see("▸ 2/3")
	fake.Script(fakemodel.Say("on we go"))
	d.enter("go on")
	d.see("on we go")
	d.gone("side by side")
}

// TestCandidatesStop: Ctrl-C stops all answers that are written side by side.
func TestCandidatesStop(t *testing.T) {
	r := newRig(t)
	fake := fakemodel.New(t)
	fake.Script(fakemodel.Say("the old answer"), fakemodel.Say("words", " never").Hold(fake.Gate(), 1), fakemodel.Say("words", " never").Hold(fake.Gate(), 1), fakemodel.Say("words", " never").Hold(fake.Gate(), 1))
	d := newDriver(t, Options{Model: "fake/m"}, r.dial(provider(fake)))
	d.enter("go")
	d.see("the old answer")
	d.answered()
	d.enter("/candidates 3")
	d.until("all answers", func() bool { return strings.Count(d.view(), "writing") == 4 })
	d.keys("ctrl+c")
	d.until("the end of all answers", func() bool { return strings.Count(d.view(), "cancelled") == 3 })
	if d.quit || strings.Contains(d.view(), "never") {
		t.Errorf("Ctrl-C left the program, or an answer went on:\n%s", d.view())
	}
}

// TestPlainCandidates prints one answer after the other, none into another.
func TestPlainCandidates(t *testing.T) {
	r := newRig(t)
	fake := fakemodel.New(t)
	fake.Respond(func(fakemodel.Request) fakemodel.Reply { return fakemodel.Words("a long answer of many words") })
	out, errs, err := r.script(t, Options{Model: "fake/m"}, provider(fake), "go", "/candidates 3", "/graph")
	if err != nil {
		t.Fatalf("err %v, stderr %q", err, errs)
	}
	const answer = "a long answer of many words\n"
	want := answer + "[answer 1 of 3]\n" + answer + "[answer 2 of 3]\n" + answer + "[answer 3 of 3]\n" + answer
	if !strings.HasPrefix(out, want) {
		t.Errorf("printed %q, want %q", out, want)
	}
	if !strings.Contains(out, "○─┬─┬─╮ go\n●") || strings.Count(out, "◀ HEAD") != 1 {
		t.Errorf("the graph is\n%s", strings.TrimPrefix(out, want))
	}
}

// TestPlainAttachBranch brings what a branch came to into another, and takes a file
// for a file where both have the name.
func TestPlainAttachBranch(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, command := range []string{"/attach branch side", "/attach side"} {
		r := newRig(t)
		out, errs, err := r.script(t, Options{}, nil, "repeat: one", "/fork side", "repeat: what it came to", "/checkout #2", "repeat: three", command, "/context", "/graph")
		if err != nil {
			t.Fatalf("%s: %v, stderr %q", command, err, errs)
		}
		for _, want := range []string{"#5 is what that branch came to: the model reads it from now on", "attached", "◀ HEAD <- side what it came to"} {
			if !strings.Contains(out, want) {
				t.Errorf("%s: %q is missing in:\n%s", command, want, out)
			}
		}
		if rows := r.last(t).Transcript.Rows; rows[len(rows)-1].Kind != protocol.KindAttach {
			t.Errorf("%s: the last row is a %s", command, rows[len(rows)-1].Kind)
		}
	}
	if err := os.WriteFile("side", []byte("a file"), 0o600); err != nil {
		t.Fatal(err)
	}
	out, _, err := newRig(t).script(t, Options{}, nil, "repeat: one", "/fork side", "repeat: two", "/checkout #2", "/attach side")
	if err != nil || !strings.Contains(out, "side goes with the next message") {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestExcerpt(t *testing.T) {
	for _, tc := range []struct {
		text     string
		width    int
		complete bool
		want     string
	}{
		{"beginning and end", 9, true, "beginnin…"},
		{"beginning and end", 9, false, "… and end"},
		{"short", 9, false, "short"},
		{"two\nlines\x1b[31m", 20, false, "two lines"},
		{strings.Repeat("漢", 2_000), 5, false, "…漢漢"},
		{"text", 0, false, ""},
		{"", 5, false, ""},
	} {
		if got := excerpt(tc.text, tc.width, tc.complete); got != tc.want {
			t.Errorf("%.20q in %d: %q, want %q", tc.text, tc.width, got, tc.want)
		}
	}
}

// TestPlainPrintsWhatIsComplete: of an answer that is not on the branch, and of which
// no stream is left, what is not out yet is printed.
func TestPlainPrintsWhatIsComplete(t *testing.T) {
	var out strings.Builder
	p := &plain{o: Options{Stdout: &out}, printed: map[string]int{}, wanted: []string{"b"}}
	p.compete([]string{"a", "b"})
	p.stream("b").parts = []streamPart{{protocol.DeltaText, []byte("half")}}
	p.print("b")
	p.streams = nil
	p.competes(&protocol.Node{ID: "b", Status: protocol.StatusSealed, Content: []protocol.Part{{Type: protocol.PartText, Text: "half and whole"}}})
	p.print("b")
	p.newline("b")
	if out.String() != "half and whole\n" {
		t.Errorf("printed %q", out.String())
	}
}
