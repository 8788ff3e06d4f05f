package chat

import (
	"strings"
	"testing"
)

func TestReadCompactArgs(t *testing.T) {
	for arg, want := range map[string]compactArgs{
		"":                       {},
		"preview":                {verb: "preview"},
		"cancel":                 {verb: "cancel"},
		"#4":                     {upTo: "#4"},
		"preview #4 keep names":  {verb: "preview", upTo: "#4", matters: "keep names"},
		"keep the preview names": {matters: "keep the preview names"},
	} {
		if got := readCompactArgs(arg); got != want {
			t.Errorf("%q: %+v, want %+v", arg, got, want)
		}
	}
}

// TestPlainCompacts goes through the commands as a person does.
func TestPlainCompacts(t *testing.T) {
	r := newRig(t)
	talk := func(n int) (lines []string) {
		for range n {
			lines = append(lines, "repeat: You must not touch config/prod.yaml. "+strings.Repeat("We talk about the build and how it goes. ", 20))
		}
		return lines
	}
	out, errs, err := r.script(t, Options{Title: "talk"}, nil, append([]string{"/compact", "hello", "/compact", "/summary", "/undo-compact"}, append(talk(5),
		"/compact preview", "/compact the config", "/summary", "/summary list", "/context", "/undo-compact", "/undo-compact", "/redo-compact", "/redo-compact", "/compact nonsense #9",
		"/pin #3", "/compact preview #3", "/redact --yes #3", "/summary")...)...)
	if err == nil {
		t.Error("refused commands, and no error at the end")
	}
	for _, want := range []string{
		"A summary would stand for", "no model is asked",
		"compacted: a summary stands for",
		"## Constraints", "You must not touch config/prod.yaml.",
		"* ", "stands here", "manual, extractive",
		"a summary stands for", "undone: the model reads the", "the summary of", "do not read what you said", "#3 is pinned", "#3 is redacted",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("it never says %q", want)
		}
	}
	for _, want := range []string{"there is no conversation yet", "4 at least are needed", "no summary stands here: the model reads every message", "no summary stands here: there is nothing to undo", "there is no later summary", "message #3 is in the present summary already"} {
		if !strings.Contains(errs, want) {
			t.Errorf("it never complains that %q", want)
		}
	}
	if t.Failed() {
		t.Logf("stdout:\n%s\nstderr:\n%s", out, errs)
	}
}
