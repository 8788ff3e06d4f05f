package fakemodel

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// patience is how long a test waits for something that must come.
const patience = 30 * time.Second

// Request is a request that the server got.
type Request struct {
	Path   string
	Header http.Header
	// Body is the body as it came.
	Body []byte

	Model     string         `json:"model"`
	Stream    bool           `json:"stream"`
	Messages  []Message      `json:"messages"`
	MaxTokens int64          `json:"max_tokens"`
	Tools     jsontext.Value `json:"tools"`
}

// Message is a message of a prompt.
type Message struct {
	Role string `json:"role"`
	// Content is a string, an array of parts, or null.
	Content    jsontext.Value `json:"content"`
	ToolCallID string         `json:"tool_call_id"`
	ToolCalls  []struct {
		ID       string `json:"id"`
		Function struct {
			Name      string `json:"name"`
			Arguments string `json:"arguments"`
		} `json:"function"`
	} `json:"tool_calls"`
}

// Text returns the text of the content.
func (m Message) Text() string {
	var s string
	if json.Unmarshal(m.Content, &s) == nil {
		return s
	}
	var parts []struct {
		Text string `json:"text"`
	}
	var texts []string
	if json.Unmarshal(m.Content, &parts) == nil {
		for _, p := range parts {
			texts = append(texts, p.Text)
		}
	}
	return strings.Join(texts, "\n\n")
}

// LastUser returns the text of the last message of the user.
func (r Request) LastUser() string {
	for _, m := range slices.Backward(r.Messages) {
		if m.Role == "user" {
			return m.Text()
		}
	}
	return ""
}

// Texts returns role and text of each message, "user: hello", to compare with.
func (r Request) Texts() []string {
	texts := make([]string, len(r.Messages))
	for i, m := range r.Messages {
		texts[i] = m.Role + ": " + m.Text()
	}
	return texts
}

// Server is the fake. Its methods are safe for concurrent use.
type Server struct {
	http *httptest.Server
	stop chan struct{}

	mu       sync.Mutex
	changed  *sync.Cond
	script   []Reply
	rules    []rule
	fallback Reply
	respond  func(Request) Reply
	requests []Request
	models   string
	serial   int
}

type rule struct {
	text  string
	reply Reply
}

// New starts a server that ends with the test. Whatever it holds at a gate then
// is let go.
func New(t testing.TB) *Server {
	s := &Server{stop: make(chan struct{}), fallback: Say("ok"), models: `{"object":"list","data":[{"id":"fake","object":"model"}]}`}
	s.changed = sync.NewCond(&s.mu)
	s.http = httptest.NewServer(s)
	t.Cleanup(func() {
		close(s.stop)
		s.http.CloseClientConnections()
		s.http.Close()
	})
	return s
}

// URL is the base URL, for the setting providers.NAME.base_url.
func (s *Server) URL() string { return s.http.URL + "/v1" }

// Script adds replies for the requests to come, in order.
func (s *Server) Script(replies ...Reply) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.script = append(s.script, replies...)
}

// On answers every request whose last user message contains the text.
func (s *Server) On(text string, reply Reply) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rules = append(s.rules, rule{text, reply})
}

// Default sets the reply to requests that no rule and no script answers.
func (s *Server) Default(reply Reply) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fallback = reply
}

// Respond has f answer the requests that no rule and no script answers.
func (s *Server) Respond(f func(Request) Reply) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.respond = f
}

// Models sets the JSON that /models answers.
func (s *Server) Models(body string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.models = body
}

// Requests returns the chat requests so far, in the order they came.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// WaitRequests waits until n chat requests have come and returns them.
func (s *Server) WaitRequests(t testing.TB, n int) []Request {
	t.Helper()
	expired := time.AfterFunc(patience, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.changed.Broadcast()
	})
	defer expired.Stop()
	deadline := time.Now().Add(patience)
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.requests) < n {
		if time.Now().After(deadline) {
			t.Fatalf("%d requests came, %d were expected", len(s.requests), n)
		}
		s.changed.Wait()
	}
	return slices.Clone(s.requests)
}

// Gate makes a gate that replies can be held at; see [Reply.Hold].
func (s *Server) Gate() *Gate {
	return &Gate{arrived: make(chan struct{}), released: make(chan struct{})}
}

// Gate holds replies until it is released. The first reply that reaches it opens
// Arrived.
type Gate struct {
	arrived, released chan struct{}
	once, release     sync.Once
}

// Arrived is closed when a reply has reached the gate.
func (g *Gate) Arrived() <-chan struct{} { return g.arrived }

// Wait waits until a reply has reached the gate.
func (g *Gate) Wait(t testing.TB) {
	t.Helper()
	select {
	case <-g.arrived:
	case <-time.After(patience):
		t.Fatal("no reply has reached the gate")
	}
}

// Release lets every reply through, now and later.
func (g *Gate) Release() { g.release.Do(func() { close(g.released) }) }

// Released is closed once [Gate.Release] was called.
func (g *Gate) Released() <-chan struct{} { return g.released }

// ServeHTTP answers chat completions and the list of models.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case strings.HasSuffix(r.URL.Path, "/models"):
		s.mu.Lock()
		models := s.models
		s.mu.Unlock()
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, models)
	case strings.HasSuffix(r.URL.Path, "/chat/completions"):
		s.chat(w, r)
	default:
		http.NotFound(w, r)
	}
}

func (s *Server) chat(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client has gone
	}
	req := Request{Path: r.URL.Path, Header: r.Header.Clone(), Body: body}
	if err := json.Unmarshal(body, &req); err != nil {
		http.Error(w, `{"error":{"message":"the body is no JSON"}}`, http.StatusBadRequest)
		return
	}
	reply, id := s.take(req)
	if reply.gate != nil && reply.gateAfter == 0 && !s.pass(r, reply.gate) {
		return
	}
	maps.Copy(w.Header(), reply.Header)
	out := &writer{w: w, reply: reply}
	switch {
	case reply.Status != 0:
		out.header(reply.Status, bodyType(reply))
		out.write(reply.Body)
	case reply.Document || !req.Stream:
		out.header(http.StatusOK, "application/json")
		out.write(reply.document(id, req.Model, len(body)))
	default:
		out.header(http.StatusOK, "text/event-stream")
		for i, event := range reply.events(id, req.Model, len(body)) {
			if reply.gate != nil && reply.gateAfter == i && i > 0 && !s.pass(r, reply.gate) {
				return
			}
			out.write(event)
		}
	}
	out.end()
}

// take records a request and chooses its reply.
func (s *Server) take(req Request) (Reply, string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, req)
	s.serial++
	s.changed.Broadcast()
	id := fmt.Sprintf("fake%d", s.serial)
	last := req.LastUser()
	for _, r := range s.rules {
		if strings.Contains(last, r.text) {
			return r.reply, id
		}
	}
	if len(s.script) > 0 {
		reply := s.script[0]
		s.script = s.script[1:]
		return reply, id
	}
	if s.respond != nil {
		return s.respond(req), id
	}
	return s.fallback, id
}

// pass waits at a gate; false if the client or the test has gone meanwhile.
func (s *Server) pass(r *http.Request, g *Gate) bool {
	g.once.Do(func() { close(g.arrived) })
	select {
	case <-g.released:
		return true
	case <-r.Context().Done():
	case <-s.stop:
	}
	return false
}

func bodyType(r Reply) string {
	switch body := strings.TrimSpace(r.Body); {
	case strings.HasPrefix(body, "{"), strings.HasPrefix(body, "["):
		return "application/json"
	case strings.HasPrefix(body, "<"):
		return "text/html"
	case r.Status == http.StatusOK:
		return "text/event-stream"
	}
	return "text/plain"
}

// writer writes a body in the chunks that the reply asks for, and cuts it where
// it says.
type writer struct {
	w       http.ResponseWriter
	reply   Reply
	written int
	cut     bool
}

func (o *writer) header(status int, contentType string) {
	if o.w.Header().Get("Content-Type") == "" {
		o.w.Header().Set("Content-Type", contentType)
	}
	o.w.WriteHeader(status)
	o.flush()
}

func (o *writer) write(s string) {
	if o.cut {
		return
	}
	if n := o.reply.CutAfter; n > 0 && o.written+len(s) >= n {
		s = s[:n-o.written]
		o.cut = true
	}
	o.written += len(s)
	size := len(s)
	if o.reply.ChunkBytes > 0 {
		size = o.reply.ChunkBytes
	}
	for len(s) > 0 {
		n := min(size, len(s))
		if _, err := io.WriteString(o.w, s[:n]); err != nil {
			return
		}
		o.flush()
		s = s[n:]
	}
}

func (o *writer) flush() {
	if f, ok := o.w.(http.Flusher); ok {
		f.Flush()
	}
}

// end breaks the connection if the body was cut.
func (o *writer) end() {
	if o.cut {
		panic(http.ErrAbortHandler)
	}
}
