package chat

import (
	"errors"
	"os"
	"strings"
	"testing"

	"convls/protocol"
	"convls/test/fakemodel"
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

// TestSideStops: Ctrl-C ends a question to the model, on the server too, and what had
// arrived is kept.
func TestSideStops(t *testing.T) {
	for _, command := range []string{"/exec", "/spawn"} {
		r := newRig(t)
		fake := fakemodel.New(t)
		fake.Script(fakemodel.Say("hello"))
		fake.Script(fakemodel.Say("one ", "two").Hold(fake.Gate(), 1))
		d := newDriver(t, Options{Model: "fake/m"}, r.dial(provider(fake)))
		d.enter("hi")
		d.see("#2 fake/m")
		d.answered()
		d.m.input.SetValue(command + " what")
		d.keys("enter")
		if v := d.view(); !strings.Contains(v, "waiting for the model (Ctrl-C stops it)") {
			t.Errorf("%s: it does not say that it waits:\n%s", command, v)
		}
		fake.WaitRequests(t, 2)
		d.keys("ctrl+c")
		d.see("it was stopped")
		d.gone("waiting for the model")
		if d.m.leaving {
			t.Errorf("%s: the next Ctrl-C would leave", command)
		}
		r.cancelledAside(t)
	}
}

// TestPlainSideStops does so without a screen.
func TestPlainSideStops(t *testing.T) {
	r := newRig(t)
	fake := fakemodel.New(t)
	fake.Script(fakemodel.Say("hello"))
	fake.Script(fakemodel.Say("one ", "two").Hold(fake.Gate(), 1))
	l, err := r.dial(provider(fake))(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.end() }()
	var out strings.Builder
	p := &plain{o: Options{Stdout: &out, Stderr: &out}, link: l, printed: map[string]int{}, ended: map[string]ending{}, interrupts: make(chan os.Signal, 1)}
	p.clientID, p.next.model = l.clientID, "fake/m"
	if err := p.line(t.Context(), input{text: "hi"}); err != nil {
		t.Fatal(err)
	}
	go func() {
		fake.WaitRequests(t, 2)
		p.interrupts <- os.Interrupt
	}()
	if err := p.line(t.Context(), input{text: "/exec what"}); err == nil || !strings.Contains(err.Error(), "it was stopped") {
		t.Errorf("err %v", err)
	}
	if len(p.interrupts) != 0 {
		t.Error("the interrupt is still to come")
	}
	r.cancelledAside(t)
}

// cancelledAside waits until the call or spawned turn of the session that was used last
// has ended, and fails unless it was cancelled.
func (r *rig) cancelledAside(t *testing.T) {
	t.Helper()
	id := r.last(t).Session.SessionID
	v, err := call[protocol.GraphView](t.Context(), r.other(), protocol.MethodGraphGet, protocol.GraphGetParams{SessionID: id, Expanded: []string{r.last(t).Session.Head}})
	if err != nil {
		t.Fatal(err)
	}
	sess, err := r.store.Session(id)
	if err != nil {
		t.Fatal(err)
	}
	found := false
	for _, row := range v.Rows {
		if row.Kind != protocol.KindCall && (!row.Spawned || row.Kind != protocol.KindAssistant) {
			continue
		}
		found = true
		if state, _, err := r.engine.Wait(t.Context(), sess, row.ID); err != nil || state != protocol.StatusCancelled {
			t.Errorf("the answer is %s (%v)", state, err)
		}
	}
	if !found {
		t.Error("nothing was asked aside")
	}
}
