package settings

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"convls/protocol"
)

// row is a setting as docs/settings.md, which is generated, describes it.
type row struct{ setting, typ, value, variable string }

func documented(t *testing.T) []row {
	t.Helper()
	data, err := os.ReadFile("../docs/settings.md")
	if err != nil {
		t.Fatal(err)
	}
	var rows []row
	for line := range strings.Lines(string(data)) {
		if !strings.HasPrefix(line, "| `") {
			continue
		}
		cells := strings.Split(line, "|")
		for i, c := range cells {
			cells[i] = strings.Trim(strings.TrimSpace(c), "`")
		}
		rows = append(rows, row{cells[1], cells[2], cells[3], cells[4]})
	}
	if len(rows) < 20 {
		t.Fatalf("docs/settings.md has %d settings", len(rows))
	}
	return rows
}

// TestDocumentedVariablesAreAccepted sets every variable that docs/settings.md
// names, and finds its value under the name that stands beside it.
func TestDocumentedVariablesAreAccepted(t *testing.T) {
	rows := documented(t)
	seen := 0
	for _, r := range rows {
		spelled, name := "MY_LLM", "my_llm"
		if strings.HasPrefix(r.setting, "models.") {
			spelled, name = "OPENAI_GPT_4_1", "openai/gpt-4.1"
		}
		setting := strings.Replace(r.setting, "NAME", name, 1)
		variable := strings.Replace(r.variable, "_NAME_", "_"+spelled+"_", 1)
		value, want := "1", any(1.0)
		switch r.typ {
		case "boolean":
			value, want = "true", true
		case "string":
			value = map[string]string{"log.level": "warn", "compaction.fallback": "extractive", "providers.NAME.kind": "ollama", "providers.NAME.base_url": "http://h"}[r.setting]
			if value == "" {
				value = "some_text"
			}
			want = value
		case "array of string":
			value, want = "x", []any{"x"}
		}
		b := base(t, "[models.'openai/gpt-4.1']", variable+"="+value)
		raw, err := protocol.Marshal(b.Settings())
		if err != nil {
			t.Fatal(err)
		}
		entries, err := entriesOf(raw)
		if err != nil {
			t.Fatal(err)
		}
		found := false
		for _, e := range entries {
			if e.path != setting {
				continue
			}
			found = true
			var got any
			if err := protocol.Unmarshal(e.value, &got); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s=%s: %s", variable, value, diff)
			}
		}
		if !found {
			t.Errorf("%s=%s did not set %s: %s", variable, value, setting, raw)
		}
		seen++
	}
	if all := len(known().fixed) + len(known().named[groupProviders]) + len(known().named[groupModels]); seen != all {
		t.Errorf("docs/settings.md has %d settings, and there are %d", seen, all)
	}
}

// TestDocumentedDefaultsAreBuiltIn compares the defaults that are plain values.
func TestDocumentedDefaultsAreBuiltIn(t *testing.T) {
	want := layer{}
	for _, r := range documented(t) {
		if strings.Contains(r.setting, "NAME") {
			continue
		}
		var value any
		switch r.typ {
		case "string":
			// Words, not one word, tell where the default comes from.
			if strings.Contains(r.value, " ") || r.value == "none" && r.setting != "compaction.fallback" {
				continue
			}
			value = r.value
		case "boolean":
			value = r.value == "true"
		default:
			n, err := strconv.ParseFloat(r.value, 64)
			if err != nil {
				continue
			}
			value = n
			if r.typ == "integer" {
				value = int(n)
			}
		}
		want.put(strings.Split(r.setting, "."), value)
	}
	if diff := cmp.Diff(want, builtIn()); diff != "" {
		t.Error(diff)
	}
}

// TestVariablesAreDistinct: two settings must not share a variable.
func TestVariablesAreDistinct(t *testing.T) {
	seen := map[string]string{}
	for path := range known().fixed {
		name := inCapitals(path)
		if other, ok := seen[name]; ok {
			t.Errorf("%s and %s are both %s", path, other, name)
		}
		seen[name] = path
		for group := range known().named {
			if strings.HasPrefix(name, inCapitals(group)+"_") {
				t.Errorf("%s is in the group %s", path, group)
			}
		}
	}
	// The rule by which a name ends needs members without dots.
	for group, members := range known().named {
		for member := range members {
			if strings.Contains(member, ".") || member == "" {
				t.Errorf("%s has a member %q", group, member)
			}
		}
	}
}
