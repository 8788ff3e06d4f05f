package compaction

import (
	"reflect"
	"testing"

	"convls/protocol"
	"convls/test/editor"
	"convls/test/llama"
)

// TestSmallModelIsRefused has a real small model summarise. What it writes is no
// memory of anything, so it has to be refused, and to leave everything as it was;
// with a fallback the built-in rules write the summary, marked.
func TestSmallModelIsRefused(t *testing.T) {
	server := llama.StartWindow(t, 32_768)
	small := params{"compaction.model": "llama/" + server.Model, "providers.llama.base_url": server.URL + "/v1",
		"models": params{"fake/x": params{"window": 8_000, "max_output": 2_000}, "llama/" + server.Model: params{"window": 32_768, "max_output": 600}}}
	c := newChat(t, small)
	c.chat(6)
	before := c.views()
	r := c.compact(params{"keep_recent_tokens": 250})
	if r.State != protocol.RunFailed || r.Error == nil || r.Error.Code != protocol.CodeSummaryRefused {
		t.Fatalf("the summary of a model that writes noise ended as %s: %+v", r.State, r.Error)
	}
	t.Logf("refused: %s %s", r.Error.Reason, r.Error.Message)
	if after := c.views(); !reflect.DeepEqual(before, after) {
		t.Errorf("a refused summary changed\n%+v\nto\n%+v", before, after)
	}
	editor.Ask[protocol.SessionResult](c.Editor, protocol.MethodSessionConfigure, params{"session_id": c.session, "settings": params{"compaction": params{"fallback": "extractive"}}})
	fell := c.compacted(params{"keep_recent_tokens": 250})
	if p := c.node(fell.SummaryID).Provenance; !p.FellBack || p.Model != "extractive" {
		t.Errorf("the fallback is recorded as %+v", p)
	}
}
