package settings

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"convls/protocol"
)

// full has every kind of setting.
func full() protocol.Settings {
	return protocol.Settings{
		Model:  "a/b.c",
		System: "be kind",
		Compaction: protocol.CompactionSettings{
			Auto: new(false), Trigger: 0.5, KeepRecentTokens: 1<<60 + 1,
		},
		Providers: map[string]protocol.ProviderSettings{
			"my.llm": {BaseURL: "http://h", TimeoutMS: 5, OverflowPatterns: []string{"a", "b"}},
			"empty":  {},
		},
		Models: map[string]protocol.ModelSettings{"a/b.c": {Window: 7, Temperature: new(0.0)}},
		Turn:   protocol.TurnSettings{MaxRetries: new(0)},
	}
}

func TestMerge(t *testing.T) {
	for _, tc := range []struct {
		name, session string
		change        func(*protocol.Settings)
	}{
		{"nothing", ``, func(*protocol.Settings) {}},
		{"null", ` null `, func(*protocol.Settings) {}},
		{"an empty object", "{ }", func(*protocol.Settings) {}},
		{"an empty array", `[]`, func(*protocol.Settings) {}},
		{"an unknown name", `{"colour":1}`, func(*protocol.Settings) {}},
		{"a string", `{"model":"x/y"}`, func(s *protocol.Settings) { s.Model = "x/y" }},
		{"a pointer", `{"compaction":{"auto":true}}`, func(s *protocol.Settings) { s.Compaction.Auto = new(true) }},
		{"a temperature", `{"models.a/b.c.temperature":1}`, func(s *protocol.Settings) {
			s.Models = map[string]protocol.ModelSettings{"a/b.c": {Window: 7, Temperature: new(1.0)}}
		}},
		{"a list is replaced", `{"providers.my.llm.overflow_patterns":["c"]}`, func(s *protocol.Settings) {
			s.Providers = map[string]protocol.ProviderSettings{"my.llm": {BaseURL: "http://h", TimeoutMS: 5, OverflowPatterns: []string{"c"}}, "empty": {}}
		}},
		{"a new model", `{"models":{"d/e":{"window":9}}}`, func(s *protocol.Settings) { s.Models["d/e"] = protocol.ModelSettings{Window: 9} }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			client, want := full(), full()
			tc.change(&want)
			got, err := Merge(client, protocol.Raw(tc.session))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(full(), client); diff != "" {
				t.Errorf("the client's settings changed: %s", diff)
			}
		})
	}
}

func TestMergeOverNothing(t *testing.T) {
	got, err := Merge(protocol.Settings{}, protocol.Raw(`{"model":"x/y"}`))
	if diff := cmp.Diff(protocol.Settings{Model: "x/y"}, got); diff != "" || err != nil {
		t.Error(diff, err)
	}
}

func TestMergeOfNothingAllocatesNothing(t *testing.T) {
	client, session := full(), protocol.Raw(`{}`)
	if n := testing.AllocsPerRun(100, func() {
		if _, err := Merge(client, session); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestSessionFaults(t *testing.T) {
	for _, raw := range []string{`5`, `{"model":5}`, `{"providers.x.api_key":"hunter2"}`, `{"model":`} {
		got, err := Merge(full(), protocol.Raw(raw))
		if protocol.CodeOf(err) != protocol.CodeInvalidParams || !strings.Contains(err.Error(), "the session's settings: ") || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", raw, err)
		}
		if diff := cmp.Diff(full(), got); diff != "" {
			t.Errorf("%s: %s", raw, diff)
		}
		if _, err := Check(protocol.Raw(raw)); protocol.CodeOf(err) != protocol.CodeInvalidParams {
			t.Errorf("%s: %v", raw, err)
		}
	}
	if warnings, err := Check(protocol.Raw(`{"colour":1,"model":"a/b"}`)); err != nil || len(warnings) != 1 || warnings[0] != "the session's settings: colour is no setting" {
		t.Errorf("warnings %q, error %v", warnings, err)
	}
}
