package settings

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"convls/protocol"
)

// write makes a settings file.
func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config.toml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestFile(t *testing.T) {
	b := base(t, "\ufeff"+`
model = "openai/gpt-4.1"

[compaction]
trigger = 0.5
keep_recent_tokens = 9_000
auto = false

[providers.my_llm]
base_url = "http://127.0.0.1:8080/v1"
overflow_patterns = ["too long", "[Pp]rompt"]

[providers.my.llm]
kind = "ollama"

[models."openai/gpt-4.1"]
window = 1000
input_price = 2

[convls.log]
level = "debug"
`)
	want, err := merge(builtIn(), layer{
		"model":      "openai/gpt-4.1",
		"compaction": map[string]any{"trigger": 0.5, "keep_recent_tokens": 9000, "auto": false},
		"providers": map[string]any{
			"my_llm": map[string]any{"base_url": "http://127.0.0.1:8080/v1", "overflow_patterns": []string{"too long", "[Pp]rompt"}},
			"my.llm": map[string]any{"kind": "ollama"},
		},
		"models": map[string]any{"openai/gpt-4.1": map[string]any{"window": 1000, "input_price": 2.0}},
		"log":    map[string]any{"level": "debug"},
	})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, b.Settings()); diff != "" {
		t.Error(diff)
	}
	if got := b.Settings().Models["openai/gpt-4.1"]; got.Window != 1000 || got.InputPrice != 2 {
		t.Errorf("got %+v", got)
	}
}

func TestFileFaults(t *testing.T) {
	for _, tc := range []struct {
		name, text string
		want       []string
	}{
		{"syntax", "model = \n", []string{"config.toml:1:", "toml"}},
		{"a key twice", "model = 'a'\nmodel = 'b'\n", []string{"config.toml"}},
		{"wrong type", "[compaction]\ntrigger = 'often'\n", []string{"config.toml: compaction.trigger must be a number, not a string"}},
		{"no number", "[compaction]\ntrigger = nan\n", []string{"config.toml", "/compaction/trigger"}},
		{"a key", "[providers.openai]\napi_key = 'hunter2'\n", []string{"config.toml: providers.openai.api_key looks like a key", "OPENAI_API_KEY"}},
		{"two faults", "model = 5\n[log]\nlevel = 'loud'\n", []string{"model must be a string", "log.level must be"}},
		{"no text", "model = '\xff'\n", []string{"config.toml"}},
		{"huge", "system = '" + strings.Repeat("x", maxFile) + "'\n", []string{"config.toml is longer than"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			path := write(t, tc.text)
			b, _, err := Load(path, []string{"CONVLS_SYSTEM=environment"})
			if err == nil {
				t.Fatal("no error")
			}
			for _, want := range append(tc.want, path) {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q does not say %q", err, want)
				}
			}
			if strings.Contains(err.Error(), "hunter2") {
				t.Errorf("%q repeats a secret", err)
			}
			// The rest is in force.
			if s := b.Settings(); s.Model != "offline" || s.System != "environment" || s.Log.Level != "info" {
				t.Errorf("got %+v", s)
			}
		})
	}
}

func TestWhichFile(t *testing.T) {
	home := t.TempDir()
	standard := filepath.Join(home, ".config", "convls", "config.toml")
	environ := []string{"HOME=" + home}

	// Where the file is looked for, it may be missing.
	if _, warnings, err := Load("", environ); err != nil || len(warnings) > 0 {
		t.Fatalf("warnings %q, error %v", warnings, err)
	}
	if _, _, err := Load(standard, environ); err != nil {
		t.Fatal(err)
	}
	// A file that somebody names must be there, and be a file.
	for _, path := range []string{filepath.Join(home, "none.toml"), home} {
		if _, _, err := Load(path, environ); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v", path, err)
		}
		if _, _, err := Load("", append(environ, "CONVLS_CONFIG="+path)); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v", path, err)
		}
	}

	if err := os.MkdirAll(filepath.Dir(standard), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(standard, []byte("model = 'standard/m'"), 0o600); err != nil {
		t.Fatal(err)
	}
	other := write(t, "model = 'other/m'")
	named := write(t, "model = 'named/m'")
	for _, tc := range []struct{ path, variable, want string }{
		{"", "", "standard/m"},
		{"", "CONVLS_CONFIG=" + other, "other/m"},
		{named, "CONVLS_CONFIG=" + other, "named/m"},
		{"", "XDG_CONFIG_HOME=" + filepath.Join(home, ".config"), "standard/m"},
		{"", "XDG_CONFIG_HOME=" + home, "offline"},
	} {
		b, warnings, err := Load(tc.path, append(environ, tc.variable))
		if err != nil || len(warnings) > 0 {
			t.Fatalf("%v: warnings %q, error %v", tc, warnings, err)
		}
		if got := b.Settings().Model; got != tc.want {
			t.Errorf("%v: model %q", tc, got)
		}
	}

	// A file of another format is not passed over in silence.
	yaml := filepath.Join(filepath.Dir(standard), "config.yaml")
	if err := os.WriteFile(yaml, []byte("model: x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, warnings, err := Load("", environ); err != nil || len(warnings) != 1 || !strings.Contains(warnings[0], yaml+" is not read") {
		t.Errorf("warnings %q, error %v", warnings, err)
	}
}

func TestEnvironment(t *testing.T) {
	for _, tc := range []struct {
		name    string
		file    string
		environ []string
		options string
		get     func(protocol.Settings) any
		want    any
	}{
		{"a string", "", []string{"CONVLS_MODEL=a/b"}, "", func(s protocol.Settings) any { return s.Model }, "a/b"},
		{"a level", "", []string{"CONVLS_LOG_LEVEL=debug"}, "", func(s protocol.Settings) any { return s.Log.Level }, "debug"},
		{"a share", "", []string{"CONVLS_COMPACTION_TRIGGER=0.5"}, "", func(s protocol.Settings) any { return s.Compaction.Trigger }, 0.5},
		{"underscores", "", []string{"CONVLS_COMPACTION_KEEP_RECENT_TOKENS=9000"}, "", func(s protocol.Settings) any { return s.Compaction.KeepRecentTokens }, int64(9000)},
		{"a boolean", "", []string{"CONVLS_COMPACTION_AUTO=0"}, "", func(s protocol.Settings) any { return *s.Compaction.Auto }, false},
		{"zero is a value", "", []string{"CONVLS_TURN_MAX_RETRIES=0"}, "", func(s protocol.Settings) any { return *s.Turn.MaxRetries }, 0},
		{"empty is unset", "model = 'a/b'", []string{"CONVLS_MODEL=", "CONVLS_COMPACTION_TRIGGER="}, "", func(s protocol.Settings) any { return s.Model }, "a/b"},
		{"text that looks like a number", "", []string{"CONVLS_SYSTEM=5"}, "", func(s protocol.Settings) any { return s.System }, "5"},
		{"an equals sign in a value", "", []string{"CONVLS_SYSTEM=a=b"}, "", func(s protocol.Settings) any { return s.System }, "a=b"},
		{"a provider", "", []string{"CONVLS_PROVIDERS_MY_LLM_BASE_URL=http://h"}, "", provider("my_llm"), protocol.ProviderSettings{BaseURL: "http://h"}},
		{"a provider's key", "", []string{"CONVLS_PROVIDERS_MY_LLM_API_KEY_ENV=K", "CONVLS_PROVIDERS_MY_LLM_API_KEY_CMD=pass k"}, "", provider("my_llm"), protocol.ProviderSettings{APIKeyEnv: "K", APIKeyCmd: "pass k"}},
		{"a provider that the file spells otherwise", "[providers.'My.LLM']\nkind = 'ollama'", []string{"CONVLS_PROVIDERS_MY_LLM_BASE_URL=http://h"}, "", provider("My.LLM"), protocol.ProviderSettings{Kind: "ollama", BaseURL: "http://h"}},
		{"a provider that a client spells otherwise", "", []string{"CONVLS_PROVIDERS_MY_LLM_BASE_URL=http://h"}, `{"providers.my-llm.kind":"ollama"}`, provider("my-llm"), protocol.ProviderSettings{Kind: "ollama", BaseURL: "http://h"}},
		{"the plain spelling is preferred", "[providers.my-llm]\nkind = 'ollama'\n[providers.my_llm]\nkind = 'openai'", []string{"CONVLS_PROVIDERS_MY_LLM_TIMEOUT_MS=5"}, "", provider("my_llm"), protocol.ProviderSettings{Kind: "openai", TimeoutMS: 5}},
		{"one pattern", "", []string{"CONVLS_PROVIDERS_X_OVERFLOW_PATTERNS=[Tt]oo long, really"}, "", provider("x"), protocol.ProviderSettings{OverflowPatterns: []string{"[Tt]oo long, really"}}},
		{"two patterns", "", []string{`CONVLS_PROVIDERS_X_OVERFLOW_PATTERNS=["a","b"]`}, "", provider("x"), protocol.ProviderSettings{OverflowPatterns: []string{"a", "b"}}},
		{"a model that the file names", "model = 'openai/gpt-4.1'", []string{"CONVLS_MODELS_OPENAI_GPT_4_1_WINDOW=5"}, "", modelOf("openai/gpt-4.1"), protocol.ModelSettings{Window: 5}},
		{"a model that the environment names", "", []string{"CONVLS_MODEL=openai/gpt-4.1", "CONVLS_MODELS_OPENAI_GPT_4_1_MAX_OUTPUT=5"}, "", modelOf("openai/gpt-4.1"), protocol.ModelSettings{MaxOutput: 5}},
		{"a summariser", "compaction.model = 'x/s-1'", []string{"CONVLS_MODELS_X_S_1_CACHE_READ_PRICE=0.5"}, "", modelOf("x/s-1"), protocol.ModelSettings{CacheReadPrice: 0.5}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := base(t, tc.file, tc.environ...).Connection()
			if _, err := c.Initialize(protocol.Raw(tc.options)); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, tc.get(c.Settings())); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestModelsGuessedFromTheEnvironment(t *testing.T) {
	b, warnings, err := Load(write(t, "[providers.my_llm]\nkind = 'openai'"),
		[]string{"CONVLS_MODELS_OLLAMA_LLAMA3_WINDOW=1", "CONVLS_MODELS_MY_LLM_BIG_ONE_WINDOW=2", "CONVLS_MODELS_SMALL_ONE_WINDOW=3"})
	if err != nil || len(warnings) != 3 || !strings.Contains(warnings[1], "CONVLS_MODELS_OLLAMA_LLAMA3_WINDOW is taken for models.ollama/llama3.window") {
		t.Fatalf("warnings %q, error %v", warnings, err)
	}
	want := map[string]protocol.ModelSettings{"ollama/llama3": {Window: 1}, "my_llm/big_one": {Window: 2}, "small/one": {Window: 3}}
	if diff := cmp.Diff(want, b.Settings().Models); diff != "" {
		t.Error(diff)
	}
	// A client that names the model says which one is meant.
	c := b.Connection()
	if _, err := c.Initialize(protocol.Raw(`{"model":"ollama/LLaMA.3"}`)); err != nil {
		t.Fatal(err)
	}
	if c.Settings().Models["ollama/LLaMA.3"].Window != 0 {
		t.Errorf("LLAMA_3 is not LLAMA3")
	}
	if _, err := c.Initialize(protocol.Raw(`{"model":"small-one/x","compaction.model":"my_llm/Big.One"}`)); err != nil {
		t.Fatal(err)
	}
	if got := c.Settings().Models["my_llm/Big.One"].Window; got != 2 {
		t.Errorf("window %d", got)
	}
}

func TestEnvironmentFaults(t *testing.T) {
	for _, tc := range []struct{ variable, want string }{
		{"CONVLS_COMPACTION_TRIGGER=often", "the environment variable CONVLS_COMPACTION_TRIGGER: compaction.trigger must be a number, not a string"},
		{"CONVLS_COMPACTION_TRIGGER=NaN", "compaction.trigger must be a number"},
		{"CONVLS_COMPACTION_TRIGGER=2", "compaction.trigger is a share"},
		{"CONVLS_COMPACTION_AUTO=maybe", "compaction.auto must be true or false"},
		{"CONVLS_COMPACTION_KEEP_RECENT_TOKENS=1.5", "must be a whole number, not 1.5"},
		{"CONVLS_LOG_LEVEL=loud", "log.level must be debug"},
		{"CONVLS_SYSTEM=\xff", "system must be a string"},
		{"CONVLS_PROVIDERS_X_BASE_URL=h", "providers.X.base_url must be an http"},
		{"CONVLS_PROVIDERS_OPENAI_API_KEY=hunter2", "providers.openai.api_key looks like a key"},
	} {
		b, _, err := Load(write(t, ""), []string{tc.variable, "CONVLS_MODEL=a/b"})
		if err == nil || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v, want %q", tc.variable, err, tc.want)
		}
		if b.Settings().Model != "a/b" {
			t.Errorf("%s: the other variables are not in force", tc.variable)
		}
	}
	environ := []string{"CONVLS_COLOUR=red", "CONVLS_DATA_DIR=/x", "CONVLS_PROVIDER=y", "CONVLSX=1", "convls_model=z/z", "CONVLS_PROVIDERS__KIND=ollama", "nonsense", "=C:=C:\\"}
	b, warnings, err := Load(write(t, ""), environ)
	if err != nil || len(warnings) != 2 || !strings.Contains(warnings[0], "CONVLS_COLOUR is no setting") || !strings.Contains(warnings[1], "CONVLS_PROVIDERS__KIND is no setting") {
		t.Errorf("warnings %q, error %v", warnings, err)
	}
	if b.Settings().Model != "offline" {
		t.Errorf("model %q", b.Settings().Model)
	}
	_, warnings, err = Load(write(t, ""), []string{"CONVLS_MODEK=x", "CONVLS_COMPACTION_KEEP_RECENT_TOKEN=5"})
	want := []string{"the environment variable CONVLS_COMPACTION_KEEP_RECENT_TOKEN is no setting: did you mean CONVLS_COMPACTION_KEEP_RECENT_TOKENS?",
		"the environment variable CONVLS_MODEK is no setting: did you mean CONVLS_MODEL?"}
	if err != nil || !slices.Equal(warnings, want) {
		t.Errorf("warnings %q, error %v, want %q", warnings, err, want)
	}
}
