package model

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/go-json-experiment/json"
	"go.uber.org/goleak"

	"convls/protocol"
)

func TestMain(m *testing.M) {
	// The Gemini SDK imports a library that starts this at the start of the process.
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("go.opencensus.io/stats/view.(*worker).start"))
}

// spoken is an answer that a wire puts into its provider's format.
type spoken struct {
	reasoning []string
	text      []string
	call      string // a tool's name
	args      string
	stop      string // in our words; "" for no finish reason
	in, out   int64
	// failure is an error object, in the provider's format, after the text.
	failure string
}

// wire is a provider's format.
type wire struct {
	kind string
	// stream is the body of a streamed answer, document that of a whole one ("" if
	// the provider has none).
	stream   func(s spoken) string
	document func(s spoken) string
	// failure is an error object as it comes in a stream.
	failure string
}

func js(v any) string {
	data, err := json.Marshal(v, json.Deterministic(true))
	if err != nil {
		panic(err)
	}
	return string(data)
}

type m = map[string]any

func wires() []wire {
	return []wire{
		{kind: KindOpenAI, stream: openaiStream, document: openaiDocument,
			failure: `{"error":{"message":"the server is overloaded","type":"server_error","code":503}}`},
		{kind: KindAnthropic, stream: anthropicStream, document: anthropicDocument,
			failure: `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`},
		{kind: KindGemini, stream: geminiStream, document: geminiDocument,
			failure: `{"error":{"code":503,"message":"The model is overloaded.","status":"UNAVAILABLE"}}`},
		{kind: KindOllama, stream: ollamaStream,
			failure: `{"error":"an unexpected error occurred while running the model"}`},
	}
}

func openaiStream(s spoken) string {
	var b strings.Builder
	event := func(v any) { b.WriteString("data: " + js(v) + "\n\n") }
	piece := func(delta m, finish any) {
		event(m{"id": "1", "model": "answering", "choices": []m{{"index": 0, "delta": delta, "finish_reason": finish}}})
	}
	for _, t := range s.reasoning {
		piece(m{"reasoning_content": t}, nil)
	}
	for _, t := range s.text {
		piece(m{"role": "assistant", "content": t}, nil)
	}
	if s.call != "" {
		piece(m{"tool_calls": []m{{"index": 0, "id": "call_a", "type": "function", "function": m{"name": s.call, "arguments": ""}}}}, nil)
		piece(m{"tool_calls": []m{{"index": 0, "function": m{"arguments": s.args}}}}, nil)
	}
	if s.failure != "" {
		b.WriteString("data: " + s.failure + "\n\n")
	}
	if s.stop != "" {
		piece(m{}, map[string]string{StopRefusal: "content_filter"}[s.stop]+strings.TrimPrefix(s.stop, StopRefusal))
		event(m{"id": "1", "choices": []m{}, "usage": m{"prompt_tokens": s.in, "completion_tokens": s.out, "total_tokens": s.in + s.out}})
		b.WriteString("data: [DONE]\n\n")
	}
	return b.String()
}

func openaiDocument(s spoken) string {
	msg := m{"role": "assistant", "content": strings.Join(s.text, "")}
	if s.call != "" {
		msg["tool_calls"] = []m{{"id": "call_a", "type": "function", "function": m{"name": s.call, "arguments": s.args}}}
	}
	return js(m{"id": "1", "model": "answering", "choices": []m{{"index": 0, "message": msg, "finish_reason": s.stop}},
		"usage": m{"prompt_tokens": s.in, "completion_tokens": s.out}})
}

var anthropicStops = map[string]string{StopStop: "end_turn", StopLength: "max_tokens", StopToolCalls: "tool_use", StopRefusal: "refusal"}

func anthropicStream(s spoken) string {
	var b strings.Builder
	event := func(v m) { fmt.Fprintf(&b, "event: %s\ndata: %s\n\n", v["type"], js(v)) }
	event(m{"type": "message_start", "message": m{"id": "m", "type": "message", "role": "assistant", "model": "answering", "content": []m{},
		"usage": m{"input_tokens": s.in, "output_tokens": 1}}})
	index := 0
	block := func(start m, deltas []m) {
		event(m{"type": "content_block_start", "index": index, "content_block": start})
		for _, d := range deltas {
			event(m{"type": "content_block_delta", "index": index, "delta": d})
		}
		event(m{"type": "content_block_stop", "index": index})
		index++
	}
	var deltas []m
	if len(s.reasoning) > 0 {
		for _, t := range s.reasoning {
			deltas = append(deltas, m{"type": "thinking_delta", "thinking": t})
		}
		block(m{"type": "thinking", "thinking": "", "signature": ""}, append(deltas, m{"type": "signature_delta", "signature": "signed"}))
	}
	deltas = nil
	for _, t := range s.text {
		deltas = append(deltas, m{"type": "text_delta", "text": t})
	}
	if len(deltas) > 0 {
		block(m{"type": "text", "text": ""}, deltas)
	}
	b.WriteString("event: ping\ndata: {\"type\": \"ping\"}\n\n")
	if s.call != "" {
		block(m{"type": "tool_use", "id": "call_a", "name": s.call, "input": m{}}, []m{{"type": "input_json_delta", "partial_json": s.args}})
	}
	if s.failure != "" {
		b.WriteString("event: error\ndata: " + s.failure + "\n\n")
	}
	if s.stop != "" {
		event(m{"type": "message_delta", "delta": m{"stop_reason": anthropicStops[s.stop]}, "usage": m{"output_tokens": s.out}})
		event(m{"type": "message_stop"})
	}
	return b.String()
}

func anthropicDocument(s spoken) string {
	content := []m{{"type": "text", "text": strings.Join(s.text, "")}}
	if s.call != "" {
		content = append(content, m{"type": "tool_use", "id": "call_a", "name": s.call, "input": jsonOf(s.args)})
	}
	return js(m{"id": "m", "type": "message", "role": "assistant", "model": "answering", "content": content,
		"stop_reason": anthropicStops[s.stop], "usage": m{"input_tokens": s.in, "output_tokens": s.out}})
}

func jsonOf(text string) (v any) {
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		panic(err)
	}
	return v
}

var geminiStops = map[string]string{StopStop: "STOP", StopLength: "MAX_TOKENS", StopToolCalls: "STOP", StopRefusal: "SAFETY"}

func geminiChunks(s spoken) []any {
	var chunks []any
	chunk := func(parts []m, finish string) {
		cand := m{"index": 0, "content": m{"role": "model", "parts": parts}}
		c := m{"modelVersion": "answering", "candidates": []m{cand}}
		if finish != "" {
			cand["finishReason"] = finish
			c["usageMetadata"] = m{"promptTokenCount": s.in, "candidatesTokenCount": s.out, "totalTokenCount": s.in + s.out}
		}
		chunks = append(chunks, c)
	}
	for _, t := range s.reasoning {
		chunk([]m{{"text": t, "thought": true}}, "")
	}
	for _, t := range s.text {
		chunk([]m{{"text": t}}, "")
	}
	if s.call != "" {
		chunk([]m{{"functionCall": m{"name": s.call, "args": jsonOf(s.args)}, "thoughtSignature": "c2lnbmVk"}}, "")
	}
	if s.failure != "" {
		chunks = append(chunks, jsonOf(s.failure))
	}
	if s.stop != "" {
		chunk([]m{{"text": ""}}, geminiStops[s.stop])
	}
	return chunks
}

func geminiStream(s spoken) string {
	var b strings.Builder
	for _, c := range geminiChunks(s) {
		b.WriteString("data: " + js(c) + "\r\n\r\n")
	}
	return b.String()
}

func geminiDocument(s spoken) string { return js(geminiChunks(s)) }

func ollamaStream(s spoken) string {
	var b strings.Builder
	line := func(v m) {
		v["model"] = "answering"
		v["created_at"] = "2026-01-01T00:00:00Z"
		b.WriteString(js(v) + "\n")
	}
	for _, t := range s.reasoning {
		line(m{"message": m{"role": "assistant", "content": "", "thinking": t}, "done": false})
	}
	for _, t := range s.text {
		line(m{"message": m{"role": "assistant", "content": t}, "done": false})
	}
	if s.call != "" {
		line(m{"message": m{"role": "assistant", "content": "", "tool_calls": []m{{"function": m{"name": s.call, "arguments": jsonOf(s.args)}}}}, "done": false})
	}
	if s.failure != "" {
		b.WriteString(s.failure + "\n")
	}
	if s.stop != "" {
		line(m{"message": m{"role": "assistant", "content": ""}, "done": true,
			"done_reason":       map[string]string{StopLength: "length"}[s.stop] + map[bool]string{true: "stop"}[s.stop != StopLength],
			"prompt_eval_count": s.in, "eval_count": s.out})
	}
	return b.String()
}

// reply is what the fake transport answers.
type reply struct {
	status int
	header http.Header
	// chunks are what single reads return; the body then ends with err, or EOF.
	chunks []string
	err    error
	// hang makes the body wait, after the chunks, until the request is cancelled.
	hang bool
	// fail fails the request itself; wait makes it wait for cancellation.
	fail error
	wait bool
}

func body(chunks ...string) reply { return reply{status: 200, chunks: chunks} }

// fakeTransport answers requests without a network, so that every read returns
// exactly what the test says.
type fakeTransport struct {
	mu       sync.Mutex
	replies  []reply
	requests []*http.Request
	bodies   [][]byte
}

func (f *fakeTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.requests = append(f.requests, req)
	var sent []byte
	if req.Body != nil {
		sent, _ = io.ReadAll(req.Body)
		req.Body.Close()
	}
	f.bodies = append(f.bodies, sent)
	if len(f.replies) == 0 {
		return nil, errors.New("no reply is left")
	}
	r := f.replies[0]
	if len(f.replies) > 1 {
		f.replies = f.replies[1:]
	}
	if r.wait {
		<-req.Context().Done()
		return nil, req.Context().Err()
	}
	if r.fail != nil {
		return nil, r.fail
	}
	h := r.header.Clone()
	if h == nil {
		h = http.Header{}
	}
	if h.Get("Content-Type") == "" {
		h.Set("Content-Type", "text/event-stream")
	}
	return &http.Response{
		StatusCode: r.status, Status: http.StatusText(r.status), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: h, Request: req, ContentLength: -1,
		Body: &chunkBody{ctx: req.Context(), chunks: slices.Clone(r.chunks), err: r.err, hang: r.hang},
	}, nil
}

type chunkBody struct {
	ctx    context.Context
	chunks []string
	err    error
	hang   bool
}

func (b *chunkBody) Read(p []byte) (int, error) {
	for len(b.chunks) > 0 && b.chunks[0] == "" {
		b.chunks = b.chunks[1:]
	}
	if b.ctx.Err() != nil {
		return 0, b.ctx.Err()
	}
	if len(b.chunks) == 0 {
		if b.hang {
			<-b.ctx.Done()
			return 0, b.ctx.Err()
		}
		if b.err != nil {
			return 0, b.err
		}
		return 0, io.EOF
	}
	n := copy(p, b.chunks[0])
	b.chunks[0] = b.chunks[0][n:]
	return n, nil
}

func (b *chunkBody) Close() error { return nil }

// testKey is the key in tests: a string that is easy to find.
const testKey = "topsecret-Zq9-key"

// fixedKey always gives the same key.
type fixedKey string

func (k fixedKey) Key(context.Context, KeyRequest) (string, error) {
	return string(k), nil
}

// ask sends req to a provider of that kind behind the fake transport.
type asked struct {
	res    *Response
	err    error
	deltas []Delta
}

func fakeRegistry(f *fakeTransport) *Registry {
	r := NewRegistry()
	r.client.Transport = transport{f}
	return r
}

func fakeProvider(t *testing.T, r *Registry, kind string) Provider {
	t.Helper()
	s := protocol.Settings{Providers: map[string]protocol.ProviderSettings{
		"fake": {Kind: kind, BaseURL: "http://model.test", OverflowPatterns: []string{`das ist zu lang`}},
	}}
	p, name, err := r.Resolve(s, "fake/some-model", fixedKey(testKey))
	if err != nil || name != "some-model" {
		t.Fatalf("resolve: %q, %v", name, err)
	}
	return p
}

func ask(t *testing.T, kind string, f *fakeTransport, req Request) asked {
	t.Helper()
	var a asked
	p := fakeProvider(t, fakeRegistry(f), kind)
	a.res, a.err = p.Stream(t.Context(), req, func(d Delta) error {
		a.deltas = append(a.deltas, d)
		return nil
	})
	return a
}

// text joins the deltas of a kind.
func (a asked) text(kind protocol.DeltaKind) string {
	var b strings.Builder
	for _, d := range a.deltas {
		if d.Kind == kind {
			b.WriteString(d.Text)
		}
	}
	return b.String()
}

func say(role, text string) Message {
	return Message{Role: role, Parts: []protocol.Part{{Type: protocol.PartText, Text: text}}}
}

func question() Request {
	return Request{Model: "some-model", System: "be brief", Messages: []Message{say(RoleUser, "hello")}}
}

// eachWire runs a test for every provider.
func eachWire(t *testing.T, test func(t *testing.T, w wire)) {
	for _, w := range wires() {
		t.Run(w.kind, func(t *testing.T) { test(t, w) })
	}
}

func mustNotLeak(t *testing.T, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if strings.Contains(text, testKey) {
			t.Errorf("the key is in %q", text)
		}
	}
}

// indented returns JSON in a form that is good to compare.
func indented(t *testing.T, data []byte) string {
	t.Helper()
	var v any
	if err := json.Unmarshal(data, &v); err != nil {
		t.Fatalf("the request is no JSON: %v: %s", err, data)
	}
	return js(v)
}

func joined(chunks []string) string { return strings.Join(chunks, "") }

// bytewise splits a body into its bytes.
func bytewise(s string) []string {
	var chunks []string
	for _, c := range []byte(s) {
		chunks = append(chunks, string(bytes.Clone([]byte{c})))
	}
	return chunks
}
