package settings

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"convls/protocol"
)

// base returns a Base with a file and an environment.
func base(t *testing.T, file string, environ ...string) *Base {
	t.Helper()
	path := write(t, file)
	b, warnings, err := Load(path, environ)
	if err != nil || len(warnings) > 0 {
		t.Fatalf("warnings %q, error %v", warnings, err)
	}
	return b
}

// provider and modelOf return one entry of the settings.
func provider(name string) func(protocol.Settings) any {
	return func(s protocol.Settings) any { return s.Providers[name] }
}

func modelOf(id string) func(protocol.Settings) any {
	return func(s protocol.Settings) any { return s.Models[id] }
}

func TestSpellings(t *testing.T) {
	model := func(s protocol.Settings) any { return s.Model }
	trigger := func(s protocol.Settings) any { return s.Compaction.Trigger }
	keep := func(s protocol.Settings) any { return s.Compaction.KeepRecentTokens }
	for _, tc := range []struct {
		name, options string
		get           func(protocol.Settings) any
		want          any
	}{
		{"nothing", ``, model, "offline"},
		{"null", `null`, model, "offline"},
		{"an empty array for an empty object", `[]`, model, "offline"},
		{"bare", `{"model":"a/b"}`, model, "a/b"},
		{"nested under convls", `{"convls":{"model":"a/b"}}`, model, "a/b"},
		{"dotted under convls", `{"convls.model":"a/b"}`, model, "a/b"},
		{"dotted", `{"compaction.trigger":0.5}`, trigger, 0.5},
		{"nested", `{"compaction":{"trigger":0.5}}`, trigger, 0.5},
		{"nested and dotted under convls", `{"convls":{"compaction.trigger":0.5}}`, trigger, 0.5},
		{"dotted all the way", `{"convls.compaction.trigger":0.5}`, trigger, 0.5},
		{"underscores in a name", `{"compaction.keep_recent_tokens":9000}`, keep, int64(9000)},
		{"a fraction that is none", `{"compaction.keep_recent_tokens":9000.0}`, keep, int64(9000)},
		{"a whole number for a share", `{"compaction.trigger":1}`, trigger, 1.0},
		{"an empty array for an empty group", `{"compaction":[],"model":"a/b"}`, model, "a/b"},
		{"convls empty as Lua has it", `{"convls":[]}`, model, "offline"},
		{"null for absent", `{"model":null,"compaction":{"trigger":null}}`, trigger, 0.8},
		{"an empty string is nothing", `{"model":""}`, model, "offline"},
		{"zero is nothing", `{"compaction.trigger":0}`, trigger, 0.8},
		{"false is a value", `{"compaction.auto":false}`, func(s protocol.Settings) any { return *s.Compaction.Auto }, false},
		{"zero retries is a value", `{"turn.max_retries":0}`, func(s protocol.Settings) any { return *s.Turn.MaxRetries }, 0},
		{"convls wins over bare", `{"convls":{"model":"a/b"},"model":"c/d"}`, model, "a/b"},
		{"the later spelling wins", `{"compaction":{"trigger":0.5},"compaction.trigger":0.6}`, trigger, 0.6},
		{"others' settings beside convls", `{"Lua":{"model":5},"convls":{"model":"a/b"}}`, model, "a/b"},

		{"an underscore in a provider's name", `{"providers":{"my_llm":{"base_url":"http://h/v1"}}}`, provider("my_llm"), protocol.ProviderSettings{BaseURL: "http://h/v1"}},
		{"a provider, dotted", `{"providers.my_llm.base_url":"http://h/v1"}`, provider("my_llm"), protocol.ProviderSettings{BaseURL: "http://h/v1"}},
		{"dots in a provider's name, dotted", `{"providers.my.llm.base_url":"http://h/v1"}`, provider("my.llm"), protocol.ProviderSettings{BaseURL: "http://h/v1"}},
		{"dots in a provider's name, nested", `{"providers":{"my.llm":{"base_url":"http://h/v1"}}}`, provider("my.llm"), protocol.ProviderSettings{BaseURL: "http://h/v1"}},
		{"dots in a provider's name, taken apart by the editor", `{"providers":{"my":{"llm":{"base_url":"http://h/v1"}}}}`, provider("my.llm"), protocol.ProviderSettings{BaseURL: "http://h/v1"}},
		{"a provider that is named like a setting", `{"providers":{"kind":{"kind":"ollama"}}}`, provider("kind"), protocol.ProviderSettings{Kind: "ollama"}},
		{"a provider without settings", `{"providers":{"openai":[]}}`, func(s protocol.Settings) any { _, ok := s.Providers["openai"]; return ok }, true},
		{"two members spelt differently", `{"providers":{"x":{"kind":"ollama"},"x.base_url":"http://h"}}`, provider("x"), protocol.ProviderSettings{Kind: "ollama", BaseURL: "http://h"}},
		{"an empty entry takes nothing away", `{"providers.x.kind":"ollama","providers":{"x":{}}}`, provider("x"), protocol.ProviderSettings{Kind: "ollama"}},
		{"a list", `{"providers.x.overflow_patterns":["a b","c"]}`, provider("x"), protocol.ProviderSettings{OverflowPatterns: []string{"a b", "c"}}},

		{"a model's id, nested", `{"models":{"openai/gpt-4.1":{"window":5}}}`, modelOf("openai/gpt-4.1"), protocol.ModelSettings{Window: 5}},
		{"a model's id, dotted", `{"models.openai/gpt-4.1.window":5}`, modelOf("openai/gpt-4.1"), protocol.ModelSettings{Window: 5}},
		{"a model's id, half dotted", `{"models":{"openai/gpt-4.1.window":5}}`, modelOf("openai/gpt-4.1"), protocol.ModelSettings{Window: 5}},
		{"a model's id, taken apart by the editor", `{"models":{"openai/gpt-4":{"1":{"window":5}}}}`, modelOf("openai/gpt-4.1"), protocol.ModelSettings{Window: 5}},
		{"two slashes and a colon", `{"convls.models.openrouter/meta/llama-3.1:free.max_output":7}`, modelOf("openrouter/meta/llama-3.1:free"), protocol.ModelSettings{MaxOutput: 7}},
		{"a temperature of zero is a value", `{"models.a/b.temperature":0}`, modelOf("a/b"), protocol.ModelSettings{Temperature: new(0.0)}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := base(t, "").Connection()
			warnings, err := c.Initialize(protocol.Raw(tc.options))
			if err != nil || len(warnings) > 0 {
				t.Fatalf("warnings %q, error %v", warnings, err)
			}
			if diff := cmp.Diff(tc.want, tc.get(c.Settings())); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestWrongValuesAreRefused(t *testing.T) {
	for _, tc := range []struct {
		options string
		want    []string
	}{
		{`5`, []string{"must be an object, not 5"}},
		{`[1]`, []string{"must be an object, not an array"}},
		{`{"convls":7}`, []string{"convls must be an object, not 7"}},
		{`{"model":5}`, []string{"model must be a string, not 5"}},
		{`{"model":["a"]}`, []string{"model must be a string, not an array"}},
		{`{"model":{"name":"x"}}`, []string{"model must be a string, not an object"}},
		{`{"model":{}}`, []string{"model must be a string, not an object"}},
		{`{"compaction":"often"}`, []string{"compaction must be an object, not a string"}},
		{`{"compaction.trigger":"0.8"}`, []string{"compaction.trigger must be a number, not a string"}},
		{`{"compaction.trigger":1.5}`, []string{"compaction.trigger", "at most 1, not 1.5"}},
		{`{"compaction.trigger":-0.1}`, []string{"compaction.trigger must not be negative"}},
		{`{"compaction.trigger":{"at":1}}`, []string{"compaction.trigger must be a number, not an object"}},
		{`{"compaction.keep_recent_tokens":1.5}`, []string{"compaction.keep_recent_tokens must be a whole number, not 1.5"}},
		{`{"compaction.keep_recent_tokens":-1}`, []string{"compaction.keep_recent_tokens must not be negative"}}, // fault 39
		{`{"compaction.keep_recent_tokens":1e300}`, []string{"compaction.keep_recent_tokens must be a whole number"}},
		{`{"compaction.auto":"yes"}`, []string{"compaction.auto must be true or false, not a string"}},
		{`{"compaction.fallback":"maybe"}`, []string{`compaction.fallback must be extractive or none, not "maybe"`}},
		{`{"log.level":"loud"}`, []string{`log.level must be debug, info, warn or error, not "loud"`}},
		{`{"turn.max_retries":-1}`, []string{"turn.max_retries must not be negative"}},
		{`{"models.a/b.temperature":-1}`, []string{"models.a/b.temperature must not be negative"}},
		{`{"models.openai/gpt-4.1.window":"big"}`, []string{"models.openai/gpt-4.1.window must be a whole number, not a string"}},
		{`{"providers":["x"]}`, []string{"providers must be an object, not an array"}},
		{`{"providers":{"x":"http://h"}}`, []string{"providers.x must be an object, not a string"}},
		{`{"providers.x.kind":"gopher"}`, []string{"providers.x.kind must be openai, anthropic"}},
		{`{"providers.x.base_url":"h:80"}`, []string{"providers.x.base_url must be an http or https address"}},
		{`{"providers.x.base_url":"https://u:hunter2@h"}`, []string{"providers.x.base_url", "user name or password"}},
		{`{"providers.x.overflow_patterns":"too long"}`, []string{"providers.x.overflow_patterns must be an array of strings, not a string"}},
		{`{"providers.x.overflow_patterns":[1]}`, []string{"providers.x.overflow_patterns must be an array of strings"}},
		{`{"providers.x.overflow_patterns":["("]}`, []string{"providers.x.overflow_patterns", "no regular expression"}},
		{`{"providers.x.overflow_patterns":[""]}`, []string{"providers.x.overflow_patterns", "empty pattern"}},
		{`{"providers":{"":{}}}`, []string{"has no name"}},
		{`{"providers":{"a/b":{"kind":"ollama"}}}`, []string{"provider name a/b has a slash"}},
		{`{"providers":{"a\u001fb":{"kind":"ollama"}}}`, []string{"control character"}},
		{`{"models":{"` + strings.Repeat("x", 300) + `":{"window":1}}}`, []string{"longer than 200 bytes"}},
		{`{"model":5,"log":{"level":1}}`, []string{"model must be", "log.level must be"}},
		{`{"model":"a","model":"b"}`, []string{"duplicate"}},
		{`{"model":"` + "\xff" + `"}`, []string{"UTF-8"}},
		{`{"model":`, []string{"read the settings"}},
		{`{} {}`, []string{"more than one value"}},
		// Keys are refused, and never repeated.
		{`{"providers":{"openai":{"api_key":"hunter2"}}}`, []string{"providers.openai.api_key looks like a key", "OPENAI_API_KEY", "keyring", "api_key_cmd"}},
		{`{"providers.my.llm.apiKey":"hunter2"}`, []string{"providers.my.llm.apiKey looks like a key", "MY_LLM_API_KEY"}},
		{`{"providers.x.headers":{"Authorization":"hunter2"}}`, []string{"providers.x.headers.Authorization looks like a key"}},
		{`{"convls":{"openai_api_key":"hunter2"}}`, []string{"openai_api_key looks like a key"}},
		{`{"providers.x.api_key_env":"sk-hunter2-hunter2-hunter2"}`, []string{"providers.x.api_key_env must be the name of an environment variable"}},
		{`{"providers.x.api_key_env":"gsk_hunter2hunter2hunter2"}`, []string{"providers.x.api_key_env must be the name of an environment variable"}},
		{`{"providers.x.api_key_cmd":"sk-hunter2-hunter2-hunter2"}`, []string{"providers.x.api_key_cmd must be a command"}},
		{`{"providers.x.kind":"sk-hunter2"}`, []string{"providers.x.kind must be"}},
		// A trusted workspace is held to the same.
		{`{"workspace_settings":{"trusted":true,"model":5}}`, []string{"workspace_settings: model must be a string"}},
		{`{"workspace_settings":{"trusted":"yes","model":"a/b"}}`, []string{"workspace_settings.trusted must be true or false"}},
		{`{"workspace_settings":7}`, []string{"workspace_settings must be an object, not 7"}},
		{`{"workspace_settings":{"settings":7}}`, []string{"workspace_settings.settings must be an object, not 7"}},
	} {
		t.Run(clip(tc.options), func(t *testing.T) {
			c := base(t, "").Connection()
			if _, err := c.Initialize(protocol.Raw(`{"model":"former/model","turn.max_retries":1}`)); err != nil {
				t.Fatal(err)
			}
			former := c.Settings()
			for name, f := range map[string]func(protocol.Raw) ([]string, error){"initialize": c.Initialize, "configure": c.Configure} {
				warnings, err := f(protocol.Raw(tc.options))
				if protocol.CodeOf(err) != protocol.CodeInvalidParams || len(warnings) > 0 {
					t.Fatalf("%s: warnings %q, error %v", name, warnings, err)
				}
				for _, want := range tc.want {
					if !strings.Contains(err.Error(), want) {
						t.Errorf("%s: %q does not say %q", name, err, want)
					}
				}
				if strings.Contains(err.Error(), "hunter2") && !strings.Contains(tc.options, "kind") {
					t.Errorf("%s: %q repeats a secret", name, err)
				}
				if diff := cmp.Diff(former, c.Settings()); diff != "" {
					t.Errorf("%s: the former settings are not in force: %s", name, diff)
				}
			}
		})
	}
}

func TestUnknownNamesAreWarnings(t *testing.T) {
	for _, tc := range []struct{ options, want string }{
		{`{"colour":"red"}`, "colour is no setting"},
		{`{"convls":{"colour":"red"}}`, "colour is no setting"},
		{`{"colour":{"of":{"cursor":"red"}}}`, "colour.of.cursor is no setting"},
		{`{"compaction":{"treshold":1}}`, "compaction.treshold is no setting"},
		{`{"compaction":{"trigge":1}}`, "compaction.trigge is no setting: did you mean compaction.trigger?"},
		{`{"modek":"offline"}`, "modek is no setting: did you mean model?"},
		{`{"trigger":0.5}`, "trigger is no setting: did you mean compaction.trigger?"},
		{`{"provider":{"x":{"base_ulr":"http://h"}}}`, "provider.x.base_ulr is no setting"},
		{`{"provider":{"x":{"base_url":"http://h"}}}`, "provider.x.base_url is no setting: did you mean providers.x.base_url?"},
		{`{"compaction":{"keepRecentTokens":1}}`, "compaction.keepRecentTokens is no setting: did you mean compaction.keep_recent_tokens?"},
		{`{"providers":{"x":{"baseUrl":"http://h"}}}`, "providers.x.baseUrl is no setting: did you mean providers.x.base_url?"},
		{`{"models.openai/gpt-4.1.windw":5}`, "models.openai/gpt-4.1.windw is no setting: did you mean models.openai/gpt-4.1.window?"},
		{`{"providers":{"":{"kind":"ollama"}}}`, "providers..kind is no setting"},
		{`{"models.gpt-4o.window":5}`, "models.gpt-4o.window has no effect: models are named provider/name"},
		{`{"trusted":true}`, "trusted is no setting"},
		{`{"":1}`, " is no setting"},
	} {
		c := base(t, "").Connection()
		warnings, err := c.Initialize(protocol.Raw(`{"system":"be kind",` + tc.options[1:]))
		if err != nil || len(warnings) != 1 || warnings[0] != tc.want {
			t.Errorf("%s: warnings %q, error %v, want %q", tc.options, warnings, err, tc.want)
		}
		// Only a client that keeps its settings under convls has others beside it.
		if c.Settings().System != "be kind" {
			t.Errorf("%s: the rest was not taken", tc.options)
		}
	}
}

func TestVSCodeTraceIsNoWarning(t *testing.T) {
	c := base(t, "").Connection()
	if warnings, err := c.Initialize(protocol.Raw(`{"convls":{"trace":{"server":"verbose"}}}`)); err != nil || len(warnings) > 0 {
		t.Errorf("warnings %q, error %v", warnings, err)
	}
}

func TestWarningsAreBounded(t *testing.T) {
	var b strings.Builder
	b.WriteString(`{"model":"a/b"`)
	for i := range 5000 {
		fmt.Fprintf(&b, `,"x%d":%d`, i, i)
	}
	b.WriteString(`,"` + strings.Repeat("y", 1<<20) + `":1}`)
	c := base(t, "").Connection()
	warnings, err := c.Initialize(protocol.Raw(b.String()))
	if err != nil || len(warnings) != maxReport+1 || warnings[maxReport] != "and 4981 more" {
		t.Errorf("%d warnings, the last %q, error %v", len(warnings), warnings[len(warnings)-1], err)
	}
	if c.Settings().Model != "a/b" {
		t.Errorf("model %q", c.Settings().Model)
	}
}

func TestDeepObjectsEndSomewhere(t *testing.T) {
	const depth = 5000
	raw := strings.Repeat(`{"a":`, depth) + "1" + strings.Repeat("}", depth)
	c := base(t, "").Connection()
	if warnings, err := c.Initialize(protocol.Raw(raw)); err != nil || len(warnings) != 1 {
		t.Errorf("warnings %q, error %v", warnings, err)
	}
}

func TestLaterLayersWin(t *testing.T) {
	b := base(t, "model = 'file/m'\nsystem = 'file'\npolicy = 'per-branch'\n[compaction]\ntrigger = 0.1\nmodel = 'file/c'\n[providers.x]\nkind = 'ollama'\nbase_url = 'http://file'\ntimeout_ms = 5\n",
		"CONVLS_SYSTEM=environment", "CONVLS_COMPACTION_TRIGGER=0.2", "CONVLS_COMPACTION_MODEL=environment/c", "CONVLS_PROVIDERS_X_BASE_URL=http://environment")
	c := b.Connection()
	step := func(name string, f func(protocol.Raw) ([]string, error), raw string) {
		t.Helper()
		if warnings, err := f(protocol.Raw(raw)); err != nil || len(warnings) > 0 {
			t.Fatalf("%s: warnings %q, error %v", name, warnings, err)
		}
	}
	type picture struct{ model, system, summariser, address, kind, level string }
	see := func(s protocol.Settings) picture {
		return picture{s.Model, s.System, s.Compaction.Model, s.Providers["x"].BaseURL, s.Providers["x"].Kind, s.Log.Level}
	}
	expect := func(s protocol.Settings, want picture) {
		t.Helper()
		if got := see(s); got != want {
			t.Errorf("got %v, want %v", got, want)
		}
	}
	expect(b.Settings(), picture{"file/m", "environment", "environment/c", "http://environment", "ollama", "info"})
	expect(c.Settings(), picture{"file/m", "environment", "environment/c", "http://environment", "ollama", "info"})
	step("initialize", c.Initialize, `{"compaction.model":"options/c","providers.x.base_url":"http://options","log.level":"warn"}`)
	expect(c.Settings(), picture{"file/m", "environment", "options/c", "http://options", "ollama", "warn"})
	step("configure", c.Configure, `{"convls":{"providers":{"x":{"base_url":"http://configured"}}}}`)
	expect(c.Settings(), picture{"file/m", "environment", "options/c", "http://configured", "ollama", "warn"})
	// The next change replaces the last one whole.
	step("configure again", c.Configure, `{"convls":{"system":"configured"}}`)
	expect(c.Settings(), picture{"file/m", "configured", "options/c", "http://options", "ollama", "warn"})
	step("configure null", c.Configure, `null`)
	expect(c.Settings(), picture{"file/m", "configured", "options/c", "http://options", "ollama", "warn"})
	step("configure nothing", c.Configure, `{}`)
	expect(c.Settings(), picture{"file/m", "environment", "options/c", "http://options", "ollama", "warn"})

	own, err := Merge(c.Settings(), protocol.Raw(`{"providers.x.base_url":"http://session","model":"session/m"}`))
	if err != nil {
		t.Fatal(err)
	}
	expect(own, picture{"session/m", "environment", "options/c", "http://session", "ollama", "warn"})
	expect(c.Settings(), picture{"file/m", "environment", "options/c", "http://options", "ollama", "warn"})
	if s := c.Settings(); s.Policy != "per-branch" || s.Providers["x"].TimeoutMS != 5 || s.Compaction.Trigger != 0.2 {
		t.Errorf("got %+v", s)
	}

	// Another client sees nothing of it (fault 43).
	expect(b.Connection().Settings(), picture{"file/m", "environment", "environment/c", "http://environment", "ollama", "info"})
}

func TestConnectionsAreSafeForConcurrentUse(t *testing.T) {
	c := base(t, "model = 'a/m.1'", "CONVLS_MODELS_A_M_1_WINDOW=7").Connection()
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			raw := protocol.Raw(fmt.Sprintf(`{"model":"a/m.%d","models.a/m.%d.window":%d}`, i, i, i+1))
			f := c.Configure
			if i%2 == 0 {
				f = c.Initialize
			}
			if _, err := f(raw); err != nil {
				t.Error(err)
			}
			s := c.Settings()
			if m, ok := s.Models[s.Model]; !ok || m.Window == 0 {
				t.Errorf("half of a change is seen: %+v", s)
			}
			if _, err := Merge(s, raw); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}
