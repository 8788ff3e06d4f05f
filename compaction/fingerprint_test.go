package compaction

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"convls/projection"
	"convls/protocol"
	"convls/store"
)

// vector is one of the fixed vectors of source_sha256: messages as they are on the
// wire, the canonical JSON that stands for them, and its digest. They were computed by
// the recipe of spec/checkpoints.md, step 6, and never change: a digest in a ledger
// has to be found again by every later version.
type vector struct {
	Name     string `json:"name"`
	Previous string `json:"previous"`
	Messages []struct {
		Role    protocol.Kind   `json:"role"`
		Content []protocol.Part `json:"content"`
	} `json:"messages"`
	Canonical string `json:"canonical"`
	SHA256    string `json:"sha256"`
}

const vectorFile = "testdata/fingerprint.json"

func vectors(t *testing.T, into any) {
	t.Helper()
	data, err := os.ReadFile(vectorFile)
	if err != nil {
		t.Fatal(err)
	}
	if err := protocol.Unmarshal(data, into); err != nil {
		t.Fatal(err)
	}
}

func TestFingerprint(t *testing.T) {
	var all []vector
	vectors(t, &all)
	if len(all) < 6 {
		t.Fatalf("%d vectors", len(all))
	}
	for _, v := range all {
		t.Run(v.Name, func(t *testing.T) {
			f := newFingerprint()
			for _, m := range v.Messages {
				w := projection.Whole{Node: store.Skeleton{Kind: m.Role}, Content: &store.Content{Parts: m.Content}}
				if err := f.add(w); err != nil {
					t.Fatal(err)
				}
			}
			if got := f.sum(v.Previous); got != v.SHA256 || f.count != int64(len(v.Messages)) {
				t.Errorf("%s after %d messages, want %s of %s", got, f.count, v.SHA256, v.Canonical)
			}
		})
	}
}

// TestFingerprintElsewhere computes the digests as a program in another language
// would: from maps, with another encoder.
func TestFingerprintElsewhere(t *testing.T) {
	data, err := os.ReadFile(vectorFile)
	if err != nil {
		t.Fatal(err)
	}
	var all []struct {
		Name, Previous, Canonical, SHA256 string
		Messages                          []struct {
			Role    string
			Content []map[string]json.RawMessage
		}
	}
	if err := json.Unmarshal(data, &all); err != nil {
		t.Fatal(err)
	}
	for _, v := range all {
		t.Run(v.Name, func(t *testing.T) {
			messages := []any{}
			for _, m := range v.Messages {
				content := []any{}
				for _, p := range m.Content {
					part := map[string]any{}
					for _, member := range []string{"call_id", "data", "is_error", "mime_type", "name", "text", "type", "uri"} {
						if raw, ok := p[member]; ok {
							part[member] = raw
						}
					}
					if raw, ok := p["arguments"]; ok {
						part["arguments"] = string(raw)
					}
					content = append(content, part)
				}
				messages = append(messages, map[string]any{"content": content, "role": m.Role})
			}
			var b bytes.Buffer
			enc := json.NewEncoder(&b)
			enc.SetEscapeHTML(false)
			if err := enc.Encode(plain(t, map[string]any{"messages": messages, "previous": v.Previous})); err != nil {
				t.Fatal(err)
			}
			// This encoder escapes two characters that JSON does not require to be.
			canonical := strings.NewReplacer(`\u2028`, "\u2028", `\u2029`, "\u2029").Replace(strings.TrimSuffix(b.String(), "\n"))
			if canonical != v.Canonical {
				t.Errorf("%s\nwant\n%s", canonical, v.Canonical)
			}
			if sum := sha256.Sum256([]byte(canonical)); hex.EncodeToString(sum[:]) != v.SHA256 {
				t.Errorf("%x, want %s", sum, v.SHA256)
			}
		})
	}
}

// plain turns raw JSON inside a value into maps, lists and strings.
func plain(t *testing.T, v any) any {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	var out any
	if err := json.Unmarshal(b, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// TestFingerprintOfForeignSummary: the digest of a summary that another program
// made can be any text, and is quoted as JSON is.
func TestFingerprintOfForeignSummary(t *testing.T) {
	const previous = "md5:\a\x7f\"é\u2028"
	quoted, err := protocol.Marshal(previous)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256([]byte(`{"messages":[],"previous":` + string(quoted) + `}`))
	if got := newFingerprint().sum(previous); got != hex.EncodeToString(sum[:]) {
		t.Errorf("%s, want %x", got, sum)
	}
}
