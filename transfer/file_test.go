package transfer

import (
	"os"
	"path/filepath"
	"testing"

	"convls/protocol"
)

func TestExportFile(t *testing.T) {
	s := openStore(t)
	sess := rich(t, s)
	dir := t.TempDir()
	path := filepath.Join(dir, "talk.jsonl")
	if err := os.WriteFile(path, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	size, err := ExportFile(t.Context(), sess, Options{Format: FormatJSONL}, path)
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(path)
	if err != nil || int64(len(got)) != size || string(got) != export(t, sess, Options{Format: FormatJSONL}) {
		t.Errorf("the file has %d bytes, %d were reported (%v)", len(got), size, err)
	}
	// What fails leaves the file as it was, and nothing beside it.
	if _, err := ExportFile(t.Context(), sess, Options{Format: "pdf"}, path); protocol.CodeOf(err) != protocol.CodeInvalidParams {
		t.Errorf("error %v", err)
	}
	if _, err := ExportFile(t.Context(), sess, Options{Format: FormatJSONL}, filepath.Join(dir, "no", "where")); protocol.CodeOf(err) != protocol.CodeInvalidParams {
		t.Errorf("error %v", err)
	}
	again, err := os.ReadFile(path)
	files, derr := os.ReadDir(dir)
	if err != nil || derr != nil || string(again) != string(got) || len(files) != 1 {
		t.Errorf("%d files, %v %v", len(files), err, derr)
	}
}

func TestClosed(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"plain\n\n", "plain"},
		{"```go\nx", "```go\nx\n```"},
		{"```go\nx\n```\n", "```go\nx\n```"},
		{"````\n```\nx", "````\n```\nx\n````"},
		{"~~~\n```", "~~~\n```\n~~~"},
		{"```\nx\n``` y", "```\nx\n``` y\n```"},
		{"``` a`b", "``` a`b"},
		{"    ```\nindented", "    ```\nindented"},
		{"<!-- note\nmore", "<!-- note\nmore\n-->"},
		{"<!-- note -->\nmore", "<!-- note -->\nmore"},
		{"<PRE>\n```", "<PRE>\n```\n</pre>"},
	} {
		if got := closed(c.text); got != c.want {
			t.Errorf("closed(%q) = %q, want %q", c.text, got, c.want)
		}
	}
	for _, c := range []struct{ text, want string }{
		{"x", "```\nx\n```"}, {"a ``` b", "````\na ``` b\n````"}, {"`````\n", "``````\n`````\n``````"}, {"", "```\n\n```"},
	} {
		if got := fenced(c.text, ""); got != c.want {
			t.Errorf("fenced(%q) = %q, want %q", c.text, got, c.want)
		}
	}
}
