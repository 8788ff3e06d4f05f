package settings

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"convls/protocol"
)

func TestWorkspace(t *testing.T) {
	const reach = `"providers":{"x":{"base_url":"http://evil","api_key_env":"AWS_SECRET","api_key_cmd":"touch /tmp/x","kind":"ollama","timeout_ms":5}},"model":"a/b"`
	mine := protocol.ProviderSettings{BaseURL: "http://mine", Kind: "openai"}
	safe := mine
	safe.TimeoutMS = 5
	all := protocol.ProviderSettings{BaseURL: "http://evil", APIKeyEnv: "AWS_SECRET", APIKeyCmd: "touch /tmp/x", Kind: "ollama", TimeoutMS: 5}
	for _, tc := range []struct {
		name, options string
		model         string
		x             protocol.ProviderSettings
		warnings      int
	}{
		{"untrusted", `{"workspace_settings":{"trusted":false,` + reach + `}}`, "a/b", safe, 4},
		{"unsaid is untrusted", `{"workspace_settings":{` + reach + `}}`, "a/b", safe, 4},
		{"trusted", `{"workspace_settings":{"trusted":true,` + reach + `}}`, "a/b", all, 0},
		{"settings in their own member", `{"workspace_settings":{"trusted":false,"settings":{` + reach + `}}}`, "a/b", safe, 4},
		{"under convls", `{"convls":{"workspace_settings":{"trusted":false,"convls":{` + reach + `}}}}`, "a/b", safe, 4},
		{"dotted", `{"convls.workspace_settings.trusted":false,"convls.workspace_settings.providers.x.base_url":"http://evil","convls.workspace_settings.model":"a/b"}`, "a/b", mine, 1},
		{"trusted beside it", `{"trusted":true,"workspace_settings":{` + reach + `}}`, "a/b", all, 0},
		{"one no is a no", `{"trusted":true,"workspace_settings":{"trusted":false,` + reach + `}}`, "a/b", safe, 4},
		{"trusted null", `{"workspace_settings":{"trusted":null,` + reach + `}}`, "a/b", safe, 4},
		{"it wins over what stands beside it", `{"model":"c/d","workspace_settings":{"trusted":false,"model":"a/b"}}`, "a/b", mine, 0},
		{"nothing", `{"model":"c/d","workspace_settings":[]}`, "c/d", mine, 0},
		{"nothing, trusted", `{"model":"c/d","workspace_settings":{"trusted":true,"settings":[]}}`, "c/d", mine, 0},
		{"its faults are left out", `{"model":"c/d","workspace_settings":{"model":5,"log.level":"loud","providers.x.api_key":"k","providers.x.timeout_ms":5}}`, "c/d", safe, 3},
		{"another spelling does not get through", `{"workspace_settings":{"providers.x":{"base_url":"http://evil"},"providers":{"x.api_key_cmd":"touch"},"settings":{"convls.providers.x.api_key_env":"E"}}}`, "offline", mine, 3},
		{"a new provider can not borrow an address", `{"workspace_settings":{"providers.y.kind":"openai","model":"y/m"}}`, "y/m", mine, 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := base(t, "[providers.x]\nbase_url = 'http://mine'\nkind = 'openai'").Connection()
			for name, f := range map[string]func(protocol.Raw) ([]string, error){"initialize": c.Initialize, "configure": c.Configure} {
				warnings, err := f(protocol.Raw(tc.options))
				if err != nil || len(warnings) != tc.warnings {
					t.Fatalf("%s: warnings %q, error %v", name, warnings, err)
				}
				for _, w := range warnings {
					if !strings.HasPrefix(w, "workspace_settings: ") {
						t.Errorf("%s: warning %q", name, w)
					}
				}
				s := c.Settings()
				if s.Model != tc.model {
					t.Errorf("%s: model %q", name, s.Model)
				}
				if diff := cmp.Diff(tc.x, s.Providers["x"]); diff != "" {
					t.Error(name, diff)
				}
				if s.Providers["y"].Kind != "" {
					t.Errorf("%s: %+v", name, s.Providers["y"])
				}
			}
		})
	}
}

// TestEveryProviderSettingIsJudged makes whoever adds a setting decide whether an
// untrusted workspace may have it.
func TestEveryProviderSettingIsJudged(t *testing.T) {
	want := map[string]bool{
		"providers.NAME.kind": true, "providers.NAME.base_url": true, "providers.NAME.api_key_env": true, "providers.NAME.api_key_cmd": true,
		"providers.NAME.timeout_ms": false, "providers.NAME.overflow_patterns": false,
	}
	got := map[string]bool{}
	for member, typ := range known().named[groupProviders] {
		target := known().member(groupProviders, "x", member, typ)
		got[target.pattern] = reaches(target)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestUntrusted(t *testing.T) {
	clean, warnings, err := Untrusted(protocol.Raw(`{"model":"a/b","convls.providers.x":{"base_url":"http://evil","timeout_ms":5},"log":{"level":7},"colour":1}`))
	if err != nil || len(warnings) != 2 {
		t.Errorf("warnings %q, error %v", warnings, err)
	}
	if want := `{"model":"a/b","providers":{"x":{"timeout_ms":5}}}`; string(clean) != want {
		t.Errorf("got %s, want %s", clean, want)
	}
	if clean, _, err := Untrusted(nil); err != nil || string(clean) != "{}" {
		t.Errorf("got %s, %v", clean, err)
	}
	if _, _, err := Untrusted(protocol.Raw(`"x"`)); protocol.CodeOf(err) != protocol.CodeInvalidParams {
		t.Errorf("got %v", err)
	}
}
