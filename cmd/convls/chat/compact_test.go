package chat

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"convls/test/fakemodel"
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

// TestPlainTellsOfCompaction: a compaction that nobody asked for is told in one line,
// beside the answers.
func TestPlainTellsOfCompaction(t *testing.T) {
	r := newRig(t)
	fake := fakemodel.New(t)
	settings := provider(fake).(map[string]any)
	settings["models"] = map[string]any{"fake/m": map[string]any{"window": 3_000, "max_output": 500}}
	settings["compaction"] = map[string]any{"auto": true, "trigger": 0.4, "keep_recent_tokens": 250, "model": "extractive"}
	var lines []string
	want := ""
	for i := range 6 {
		lines = append(lines, strings.Repeat("We talk about the build and how it goes. ", 20))
		answer := fmt.Sprintf("answer %d", i+1)
		fake.Script(fakemodel.Say(answer))
		want += answer + "\n"
	}
	out, errs, err := r.script(t, Options{Model: "fake/m"}, settings, lines...)
	if err != nil || out != want {
		t.Errorf("%v, printed %q, want %q", err, out, want)
	}
	if !regexp.MustCompile(`^(compacted: a summary stands for \d+ messages, the context went from [\d,]+ to [\d,]+ tokens\n)+$`).MatchString(errs) {
		t.Errorf("stderr %q", errs)
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
