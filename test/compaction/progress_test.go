package compaction

import (
	"strings"
	"testing"

	"convls/protocol"
	"convls/test/editor"
)

// TestProgress checks that a client that waits for a compaction sees its progress
// begin and end.
func TestProgress(t *testing.T) {
	home, model := editor.NewHome(t), newScripted(t)
	w := home.Wire(t)
	w.Initialize()
	settings := `{"model":"fake/x","compaction":{"model":"fake/small","auto":false},"providers":{"fake":{"base_url":"` + model.URL() + `"}},
		"models":{"fake/x":{"window":8000,"max_output":2000},"fake/small":{"window":4000,"max_output":500}}}`
	made := w.Call(protocol.MethodSessionCreate, `{"settings":`+settings+`}`)
	var s protocol.SessionResult
	if err := protocol.Unmarshal(made.Result, &s); err != nil {
		t.Fatal(err)
	}
	for range 8 {
		w.Call(protocol.MethodTurnSend, `{"session_id":"`+s.SessionID+`","wait":true,"content":"`+long("A message.", 200)+`"}`)
	}
	w.Send(`{"jsonrpc":"2.0","id":"run","method":"`+protocol.MethodCompactionRun+`","params":{"session_id":"`+s.SessionID+`","wait":true,"keep_recent_tokens":100,"workDoneToken":"t"}}`, `"run"`)
	var values []string
	for _, n := range w.Notices {
		if n.Method == "$/progress" {
			values = append(values, string(n.Params))
		}
	}
	if len(values) < 2 || !strings.Contains(values[0], `"begin"`) || !strings.Contains(values[len(values)-1], `"end"`) {
		t.Errorf("the progress is %v", values)
	}
}
