package chat

import (
	"slices"
	"strings"
	"testing"
)

// TestPlainSummaryStates: a summary that was taken back is told as undone, and as
// superseded only when a newer one has its place.
func TestPlainSummaryStates(t *testing.T) {
	r := newRig(t)
	lines := []string{}
	talk := func() {
		for range 5 {
			lines = append(lines, "repeat: "+strings.Repeat("We talk about the build and how it goes. ", 20))
		}
	}
	var want []string
	list := func(states ...string) {
		want = append(want, states...)
		lines = append(lines, "/summary list")
	}
	talk()
	lines = append(lines, "/compact")
	list("stands here")
	lines = append(lines, "/undo-compact")
	list("undone")
	lines = append(lines, "/redo-compact")
	talk()
	lines = append(lines, "/compact")
	list("stands here", "superseded")
	lines = append(lines, "/undo-compact")
	list("undone", "stands here")
	out, errs, err := r.script(t, Options{}, nil, lines...)
	if err != nil {
		t.Fatalf("%v, stderr %q", err, errs)
	}
	var got []string
	for l := range strings.Lines(out) {
		for _, state := range []string{"stands here", "superseded", "undone "} {
			if strings.Contains(l, state) && strings.Contains(l, "manual, extractive") {
				got = append(got, strings.TrimSpace(state))
			}
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("the lists say %q, want %q\n%s", got, want, out)
	}
}
