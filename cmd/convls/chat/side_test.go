package chat

import (
	"errors"
	"strings"
	"testing"

	"convls/protocol"
)

// TestPlainSide: /exec and /spawn print an answer and leave the conversation as it was.
func TestPlainSide(t *testing.T) {
	r := newRig(t)
	out, errs, err := r.script(t, Options{}, nil, "repeat: one", "/exec repeat: beside", "/spawn repeat: aside", "/branches", "/context", "/graph")
	if err != nil {
		t.Fatalf("%v, stderr %q", err, errs)
	}
	if !strings.HasPrefix(out, "one\nbeside\naside\n* ") {
		t.Errorf("printed %q", out)
	}
	list, after, _ := strings.Cut(out, "tokens")
	if strings.Count(list, "unnamed") != 2 || !strings.Contains(list, "aside") {
		t.Errorf("the branches are\n%s", list)
	}
	context, graph, _ := strings.Cut(after, "◆")
	if strings.Contains(context, "aside") || strings.Contains(context, "beside") {
		t.Errorf("the model reads\n%s", context)
	}
	if !strings.Contains(graph, "aside") || !strings.Contains(graph, "+1 call") {
		t.Errorf("the graph is\n%s", graph)
	}
	rows := r.last(t).Transcript.Rows
	if last := rows[len(rows)-1]; last.Depth != 2 || last.Kind != protocol.KindAssistant {
		t.Errorf("HEAD is at #%d, a %s", last.Depth, last.Kind)
	}
}

func TestPlainSideFails(t *testing.T) {
	r := newRig(t)
	out, errs, err := r.script(t, Options{}, nil, "/exec what", "/spawn what", "repeat: one", "/exec", "/spawn", "/exec fail quota after 2 words", "/spawn fail quota", "repeat: two")
	if !errors.Is(err, ErrFailed) || strings.Count(errs, "error: ") != 6 {
		t.Errorf("%v, stderr %q", err, errs)
	}
	for _, want := range []string{"there is no conversation yet", "ask what? /exec <prompt>", "send what? /spawn <prompt>"} {
		if !strings.Contains(errs, want) {
			t.Errorf("%q is missing in:\n%s", want, errs)
		}
	}
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if len(lines) != 3 || lines[0] != "one" || len(strings.Fields(lines[1])) != 2 || lines[2] != "two" {
		t.Errorf("printed %q: want two words of the failed answer between the others", out)
	}
}

// TestScreenSide: on the screen the answer is a page, and the way to a spawned branch
// is told.
func TestScreenSide(t *testing.T) {
	r := newRig(t)
	d := newDriver(t, Options{}, r.dial(nil))
	d.enter("repeat: one")
	d.see("#2 offline")
	d.answered()
	d.enter("/spawn repeat: on the side")
	d.see("Answered on a side branch", "on the side")
	d.keys("esc")
	d.see("it has a side branch of its own: /checkout ")
	d.gone("#4")
}
