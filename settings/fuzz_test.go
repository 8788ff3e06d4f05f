package settings

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"convls/protocol"
)

// FuzzSpellings: whatever a client sends is refused whole or taken; what is taken
// means the same when it is spelt with one dotted name a value, and when it is
// sent back as it was understood.
func FuzzSpellings(f *testing.F) {
	for _, seed := range []string{
		`{}`, `[]`, `null`, `{"model":"a/b"}`, `{"convls":{"compaction.trigger":0.5}}`, `{"convls.models.openai/gpt-4.1.window":5}`,
		`{"models":{"openai/gpt-4":{"1":{"window":5}}}}`, `{"providers":{"my.llm":{},"x":{"kind":"ollama"}}}`, `{"providers.x.overflow_patterns":["a"]}`,
		`{"compaction":{"auto":false},"turn.max_retries":0}`, `{"workspace_settings":{"trusted":false,"providers.x.base_url":"http://h"}}`,
		`{"a":{"":{"b":{}}}}`, `{"providers":{"x":{"kind":{"base_url":"http://h"}}}}`, `{"compaction":{"trigger":1},"compaction.trigger":0.5}`,
	} {
		f.Add([]byte(seed))
	}
	base, _, err := Load("", []string{"HOME=/nowhere", "CONVLS_MODELS_A_B_WINDOW=3"})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		c := base.Connection()
		before := c.Settings()
		if _, err := c.Initialize(data); err != nil {
			if protocol.CodeOf(err) != protocol.CodeInvalidParams {
				t.Fatalf("error %v", err)
			}
			if diff := cmp.Diff(before, c.Settings()); diff != "" {
				t.Fatalf("refused, and changed: %s", diff)
			}
			return
		}
		got := c.Settings()
		nothing := cmpopts.EquateEmpty()

		// Dotted. Names that hold dots or stand under convls are spelt as they came;
		// where one name was given twice, the later value counts.
		entries, err := entriesOf(data)
		if err != nil {
			t.Fatal(err)
		}
		dotted := map[string]protocol.Raw{}
		for _, e := range entries {
			path := e.path
			if e.sectioned {
				path = section + "." + path
			}
			if _, ok := known().find(e.path); !ok && strings.HasPrefix(path, section+"."+section) {
				return // an entry named convls can not be told from the section
			}
			if old, ok := dotted[path]; ok && string(old) != string(e.value) {
				return
			}
			dotted[path] = e.value
		}
		raw, err := protocol.Marshal(dotted)
		if err != nil {
			t.Fatal(err)
		}
		again := base.Connection()
		if _, err := again.Initialize(raw); err != nil {
			t.Fatalf("%s is taken and %s is not: %v", data, raw, err)
		}
		if same := onlyOneWay(entries); same {
			if diff := cmp.Diff(got, again.Settings(), nothing); diff != "" {
				t.Fatalf("%s and %s differ: %s", data, raw, diff)
			}
		}

		// Sent back.
		raw, err = protocol.Marshal(got)
		if err != nil {
			t.Fatal(err)
		}
		back, err := Merge(protocol.Settings{}, raw)
		if err != nil {
			t.Fatalf("%s was understood as %s, which is refused: %v", data, raw, err)
		}
		if diff := cmp.Diff(got, back, nothing); diff != "" {
			t.Fatalf("%s: %s", raw, diff)
		}
	})
}

// onlyOneWay reports whether no setting is given twice, so that the order of the
// entries, which a map does not keep, can not matter.
func onlyOneWay(entries []entry) bool {
	seen := map[string]bool{}
	for _, e := range entries {
		path := strings.TrimPrefix(strings.TrimPrefix(strings.TrimPrefix(e.path, workspaceMember+"."), "settings."), section+".")
		if seen[path] {
			return false
		}
		seen[path] = true
	}
	return true
}

// FuzzFile: any file is refused with its path, or taken.
func FuzzFile(f *testing.F) {
	for _, seed := range []string{"", "model = 'a/b'", "[providers.x]\nkind='ollama'", "[models.'a/b.c']\nwindow = 5", "compaction.trigger = nan", "x = 1979-05-27"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		path := write(t, text)
		b, _, err := Load(path, nil)
		if err != nil && !strings.Contains(err.Error(), path) {
			t.Fatalf("error %v", err)
		}
		if b.Settings().Compaction.Trigger <= 0 {
			t.Fatalf("got %+v", b.Settings())
		}
	})
}
