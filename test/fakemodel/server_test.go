package fakemodel

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"
)

func post(t *testing.T, s *Server, body string) (*http.Response, string, error) {
	t.Helper()
	res, err := http.Post(s.URL()+"/chat/completions", "application/json", bytes.NewReader([]byte(body)))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	return res, string(data), err
}

const ask = `{"model":"m","stream":true,"messages":[{"role":"user","content":"what is the weather"}]}`

func TestScript(t *testing.T) {
	s := New(t)
	s.Script(Say("a", "b").Usage(7, 2), Fail(429, "slow down").With("Retry-After", "3"), Say("cut").Cut(10))
	res, body, err := post(t, s, ask)
	if err != nil || res.StatusCode != http.StatusOK || !strings.HasSuffix(body, "data: [DONE]\n\n") || !strings.Contains(body, `"prompt_tokens":7`) {
		t.Errorf("status %d, error %v, body %s", res.StatusCode, err, body)
	}
	if n := strings.Count(body, `"content"`); n != 2 {
		t.Errorf("%d pieces, want 2", n)
	}
	res, body, _ = post(t, s, ask)
	if res.StatusCode != http.StatusTooManyRequests || body != "slow down" || res.Header.Get("Retry-After") != "3" {
		t.Errorf("status %d, body %q", res.StatusCode, body)
	}
	if _, body, err = post(t, s, ask); err == nil || len(body) != 10 {
		t.Errorf("a cut body has %d bytes and the error %v", len(body), err)
	}
	if _, body, _ = post(t, s, ask); !strings.Contains(body, `"ok"`) {
		t.Errorf("the default is %s", body)
	}
	requests := s.WaitRequests(t, 4)
	if requests[0].LastUser() != "what is the weather" || string(requests[3].Body) != ask {
		t.Errorf("recorded %+v", requests[0])
	}
}

func TestRules(t *testing.T) {
	s := New(t)
	s.On("weather", Call("get_weather", `{"city":"Oslo"}`))
	_, body, _ := post(t, s, ask)
	if !strings.Contains(body, `"name":"get_weather"`) || !strings.Contains(body, `"finish_reason":"tool_calls"`) {
		t.Error(body)
	}
}

func TestGate(t *testing.T) {
	s := New(t)
	g := s.Gate()
	s.Script(Say("one", "two").Hold(g, 1))
	done := make(chan string)
	go func() {
		_, body, _ := post(t, s, ask)
		done <- body
	}()
	g.Wait(t)
	select {
	case body := <-done:
		t.Fatalf("the reply went through: %s", body)
	default:
	}
	g.Release()
	if body := <-done; !strings.Contains(body, "two") {
		t.Error(body)
	}
}
