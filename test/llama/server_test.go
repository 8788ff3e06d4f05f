package llama

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"convls/protocol"
)

// post sends a chat request with one user message.
func post(t *testing.T, s *Server, message string, maxTokens int, stream bool) *http.Response {
	t.Helper()
	body, err := protocol.Marshal(map[string]any{
		"model": s.Model, "stream": stream, "max_tokens": maxTokens,
		"messages": []map[string]string{{"role": "user", "content": message}},
	})
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL+"/v1/chat/completions", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = res.Body.Close() })
	return res
}

func TestModelIsTheSameForTheSameSeed(t *testing.T) {
	digest := func(seed uint64) string {
		h := sha256.New()
		if err := WriteModel(h, seed, ContextTokens); err != nil {
			t.Fatal(err)
		}
		return fmt.Sprintf("%x", h.Sum(nil))
	}
	first, again, other := digest(1), digest(1), digest(2)
	if first != again {
		t.Error("one seed gave two models")
	}
	if first == other {
		t.Error("two seeds gave the same model")
	}
}

func TestServer(t *testing.T) {
	s := Start(t)

	t.Run("streams", func(t *testing.T) {
		const want = 12
		res := post(t, s, "Hello there", want, true)
		if res.StatusCode != http.StatusOK {
			t.Fatalf("status %s", res.Status)
		}
		var text, finish string
		chunks, done := 0, false
		in := bufio.NewScanner(res.Body)
		for in.Scan() {
			data, ok := strings.CutPrefix(in.Text(), "data: ")
			if !ok {
				continue
			}
			if done = data == "[DONE]"; done {
				break
			}
			var chunk struct {
				Choices []struct {
					Delta struct {
						Content string `json:"content"`
					} `json:"delta"`
					FinishReason string `json:"finish_reason"`
				} `json:"choices"`
			}
			if err := protocol.Unmarshal([]byte(data), &chunk); err != nil {
				t.Fatalf("%s: %v", data, err)
			}
			for _, c := range chunk.Choices {
				if c.Delta.Content != "" {
					chunks++
				}
				text += c.Delta.Content
				finish = c.FinishReason
			}
		}
		if err := in.Err(); err != nil {
			t.Fatal(err)
		}
		if chunks < 2 || text == "" || finish != "length" || !done {
			t.Errorf("%d chunks, text %q, finish reason %q, done %v; want several, some, length, true", chunks, text, finish, done)
		}
	})

	t.Run("refuses a prompt above its context", func(t *testing.T) {
		res := post(t, s, strings.Repeat("0123456789", ContextTokens/5), 1, false)
		var got struct {
			Error struct {
				Type         string `json:"type"`
				PromptTokens int    `json:"n_prompt_tokens"`
				Context      int    `json:"n_ctx"`
			} `json:"error"`
		}
		var body bytes.Buffer
		if _, err := body.ReadFrom(res.Body); err != nil {
			t.Fatal(err)
		}
		if err := protocol.Unmarshal(body.Bytes(), &got); err != nil {
			t.Fatalf("%s: %v", body.Bytes(), err)
		}
		if res.StatusCode != http.StatusBadRequest || got.Error.Type != "exceed_context_size_error" {
			t.Errorf("status %s, error type %q, want 400 and exceed_context_size_error: %s", res.Status, got.Error.Type, body.Bytes())
		}
		if got.Error.Context != ContextTokens || got.Error.PromptTokens <= ContextTokens {
			t.Errorf("%d tokens of %d, want more than all of %d", got.Error.PromptTokens, got.Error.Context, ContextTokens)
		}
	})
}
