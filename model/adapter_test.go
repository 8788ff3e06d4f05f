package model

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"convls/protocol"
)

func sse(events ...string) string { return "data: " + strings.Join(events, "\n\ndata: ") + "\n\n" }

const stopEvent = `{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`

func content(text string) string {
	return js(m{"choices": []m{{"index": 0, "delta": m{"content": text}}}})
}

// Event streams as real servers write them.
func TestEventStreams(t *testing.T) {
	long := strings.Repeat("漢", 400_000)
	for _, c := range []struct{ name, body, want string }{
		{"CRLF", strings.ReplaceAll(sse(content("hello"), stopEvent, "[DONE]"), "\n", "\r\n"), "hello"},
		{"lone CR", strings.ReplaceAll(sse(content("hello"), stopEvent, "[DONE]"), "\n", "\r"), "hello"},
		{"comments", ": OPENROUTER PROCESSING\n\n: x\n" + sse(content("he")) + ": again\n\n" + sse(content("llo"), stopEvent), "hello"},
		{"no [DONE]", sse(content("hello"), stopEvent), "hello"},
		{"no last empty line", strings.TrimRight(sse(content("hello"), stopEvent), "\n"), "hello"},
		{"no space after the colon", "data:" + content("hello") + "\n\ndata:" + stopEvent + "\n\n", "hello"},
		{"byte order mark", "\ufeff" + sse(content("hello"), stopEvent), "hello"},
		{"several data lines", "data: {\"choices\":[{\"index\":0,\ndata: \"delta\":{\"content\":\"hello\"}}]}\n\n" + sse(stopEvent), "hello"},
		{"ids, retry, event names", "id: 1\nretry: 5\nevent: message\n" + sse(content("hello"), stopEvent), "hello"},
		{"error: null", sse(`{"error":null,"choices":[{"index":0,"delta":{"content":"hello"}}]}`, stopEvent), "hello"},
		{"an event of a megabyte", sse(content(long), stopEvent), long},
		{"the word error in the text", sse(content(`{"error":"x"}`), stopEvent), `{"error":"x"}`},
		{"after [DONE]", sse(content("hello"), stopEvent, "[DONE]", content("more")), "hello"},
		{"other choices", sse(`{"choices":[{"index":1,"delta":{"content":"no"}},{"index":0,"delta":{"content":"hello"}}]}`, stopEvent), "hello"},
		{"finish reason with the text", sse(`{"choices":[{"index":0,"delta":{"content":"hello"},"finish_reason":"stop"}]}`), "hello"},
		{"a lone surrogate", sse(`{"choices":[{"index":0,"delta":{"content":"x\ud83d"}}]}`, stopEvent), "x\uFFFD"},
		{"a character cut between deltas", "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"\xf0\x9f\"}}]}\n\ndata: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"\x98\x80!\"}}]}\n\n" + sse(stopEvent), "😀!"},
		{"a character that is never whole", "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"x\xf0\x9f\"}}]}\n\n" + sse(stopEvent), "x\uFFFD"},
	} {
		a := ask(t, KindOpenAI, &fakeTransport{replies: []reply{body(c.body)}}, question())
		if a.err != nil || a.res.Parts[0].Text != c.want || a.text(protocol.DeltaText) != c.want {
			t.Errorf("%s: %+v, %v", c.name, a.res, a.err)
		}
	}
	for _, c := range []struct {
		name, body string
		class      Class
	}{
		{"an event that is no JSON", sse(content("he"), `{"choices":[{`, stopEvent), ClassStreamCut},
		{"nothing", "", ClassStreamCut},
		{"only comments", ": x\n\n: y\n\n", ClassStreamCut},
		{"only [DONE]", sse("[DONE]"), ClassStreamCut},
		{"[DONE] without a finish reason", sse(content("he"), "[DONE]"), ClassStreamCut},
		{"finish reason error", sse(content("he"), `{"choices":[{"index":0,"delta":{},"finish_reason":"error"}]}`), ClassStreamCut},
		{"a bare error line", sse(content("he")) + `{"error":{"message":"upstream failed","code":502}}` + "\n", ClassUnavailable},
		{"an error event", sse(content("he")) + "event: error\ndata: rate limit exceeded\n\n", ClassRateLimit},
		{"an error beside choices", sse(content("he"), `{"error":{"code":"server_error","message":"Provider disconnected"},"choices":[{"index":0,"delta":{"content":""},"finish_reason":"error"}]}`), ClassUnavailable},
	} {
		a := ask(t, KindOpenAI, &fakeTransport{replies: []reply{body(c.body)}}, question())
		if ClassOf(a.err) != c.class {
			t.Errorf("%s: %v, want %s", c.name, a.err, c.class)
		}
	}
}

// An event without an end does not grow without bound.
func TestEndlessEvent(t *testing.T) {
	chunk := strings.Repeat("x", 1<<20)
	chunks := []string{`data: "`}
	for range maxDocument>>20 + 2 {
		chunks = append(chunks, chunk)
	}
	a := ask(t, KindOpenAI, &fakeTransport{replies: []reply{{status: 200, chunks: chunks, hang: true}}}, question())
	if ClassOf(a.err) != ClassStreamCut {
		t.Error(a.err)
	}
}

func TestOpenAIToolCalls(t *testing.T) {
	call := func(s string) string {
		return `{"choices":[{"index":0,"delta":{"tool_calls":[` + s + `]}}]}`
	}
	for _, c := range []struct {
		name   string
		events []string
		want   string // names and arguments
	}{
		{"interleaved", []string{
			call(`{"index":0,"id":"a","function":{"name":"f","arguments":""}},{"index":1,"id":"b","function":{"name":"g","arguments":"{"}}`),
			call(`{"index":0,"function":{"arguments":"{\"x\""}}`), call(`{"index":1,"function":{"arguments":"}"}}`), call(`{"index":0,"function":{"arguments":":1}"}}`),
		}, `f{"x":1} g{}`},
		{"no index, whole calls", []string{
			call(`{"id":"a","function":{"name":"f","arguments":"{\"x\":1}"}}`), call(`{"id":"b","function":{"name":"f","arguments":"{\"x\":2}"}}`),
		}, `f{"x":1} f{"x":2}`},
		{"id and name in each piece", []string{
			call(`{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\""}}`), call(`{"index":0,"id":"a","function":{"name":"f","arguments":":1}"}}`),
		}, `f{"x":1}`},
		{"no id", []string{call(`{"index":0,"function":{"name":"f","arguments":"{}"}}`), call(`{"index":1,"function":{"name":"g","arguments":"{}"}}`)}, `f{} g{}`},
		{"the same id twice", []string{call(`{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}`), call(`{"index":1,"id":"a","function":{"name":"g","arguments":"{}"}}`)}, `f{} g{}`},
		{"arguments as an object", []string{call(`{"index":0,"id":"a","function":{"name":"f","arguments":{"x":1}}}`)}, `f{"x":1}`},
		{"no arguments", []string{call(`{"index":0,"id":"a","function":{"name":"f"}}`)}, `f{}`},
		{"arguments that are no JSON", []string{call(`{"index":0,"id":"a","function":{"name":"f","arguments":"x = 1"}}`)}, `f"x = 1"`},
		{"a member twice", []string{call(`{"index":0,"id":"a","function":{"name":"f","arguments":"{\"a\":1,\"a\":2}"}}`)}, `f"{\"a\":1,\"a\":2}"`},
	} {
		a := ask(t, KindOpenAI, &fakeTransport{replies: []reply{body(sse(append(c.events, stopEvent)...))}}, question())
		if a.err != nil {
			t.Errorf("%s: %v", c.name, a.err)
			continue
		}
		var calls []string
		ids := map[string]bool{}
		for _, p := range a.res.Parts {
			calls = append(calls, p.Name+string(p.Arguments))
			if p.CallID == "" || ids[p.CallID] {
				t.Errorf("%s: the id %q", c.name, p.CallID)
			}
			ids[p.CallID] = true
		}
		// A server that says stop after a call means tool_calls.
		if got := strings.Join(calls, " "); got != c.want || a.res.StopReason != StopToolCalls {
			t.Errorf("%s: %s, %s", c.name, got, a.res.StopReason)
		}
	}
}

func TestOpenAIReasoning(t *testing.T) {
	events := []string{
		`{"choices":[{"index":0,"delta":{"reasoning":"hm","reasoning_details":[]}}]}`,
		`{"choices":[{"index":0,"delta":{"reasoning":"m","content":""}}]}`, content("so"), stopEvent,
	}
	a := ask(t, KindOpenAI, &fakeTransport{replies: []reply{body(sse(events...))}}, question())
	if a.err != nil || len(a.res.Parts) != 2 || a.res.Parts[0].Text != "hmm" || a.res.Parts[0].Signature != "reasoning" || a.res.Parts[0].Provider != "fake" {
		t.Errorf("%+v, %v", a.res, a.err)
	}
	both := `{"choices":[{"index":0,"delta":{"reasoning":"hm","reasoning_content":"hm"}}]}`
	a = ask(t, KindOpenAI, &fakeTransport{replies: []reply{body(sse(both, content("x"), stopEvent))}}, question())
	if a.err != nil || a.res.Parts[0].Text != "hm" {
		t.Errorf("%+v, %v", a.res, a.err)
	}
}

func TestOpenAIRequest(t *testing.T) {
	half := 0.5
	req := question()
	req.MaxOutput, req.Temperature = 77, &half
	req.Schema = protocol.Raw(`{"type":"object","properties":{"a":{"type":"string"}},"required":["a"],"additionalProperties":false}`)
	f := &fakeTransport{replies: []reply{body(sse(content("x"), stopEvent))}}
	if a := ask(t, KindOpenAI, f, req); a.err != nil {
		t.Fatal(a.err)
	}
	sent := jsonOf(string(f.bodies[0])).(map[string]any)
	format := sent["response_format"].(map[string]any)["json_schema"].(map[string]any)
	if sent["max_tokens"] != 77.0 || sent["max_completion_tokens"] != nil || sent["temperature"] != 0.5 || format["strict"] != true ||
		js(sent["stream_options"]) != `{"include_usage":true}` || sent["model"] != "some-model" {
		t.Errorf("%s", f.bodies[0])
	}
	r := f.requests[0]
	if r.URL.String() != "http://model.test/chat/completions" || r.Header.Get("Authorization") != "Bearer "+testKey {
		t.Errorf("%s with %v", r.URL, r.Header)
	}
	// OpenAI itself wants another name for the cap.
	reg := fakeRegistry(&fakeTransport{replies: f.replies})
	p, name, err := reg.Resolve(protocol.Settings{}, "openai/o3", fixedKey(testKey))
	if err != nil {
		t.Fatal(err)
	}
	req.Model = name
	if _, err := p.Stream(t.Context(), req, func(Delta) error { return nil }); err != nil {
		t.Fatal(err)
	}
	own := reg.client.Transport.(transport).base.(*fakeTransport)
	sent = jsonOf(string(own.bodies[0])).(map[string]any)
	if sent["max_completion_tokens"] != 77.0 || sent["max_tokens"] != nil || own.requests[0].URL.Host != "api.openai.com" {
		t.Errorf("%s", own.bodies[0])
	}
}

func TestStrictSchema(t *testing.T) {
	for schema, want := range map[string]bool{
		`{"type":"object","properties":{"a":{"type":"string"}},"required":["a"],"additionalProperties":false}`: true,
		`{"type":"object","properties":{"a":{"type":"string"}},"additionalProperties":false}`:                  false,
		`{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]}`:                              false,
		`{"type":"array","items":{"type":"object","properties":{"a":{}},"required":[]}}`:                       false,
		`{"anyOf":[{"type":"string"},{"type":"object","properties":{"a":{}}}]}`:                                false,
	} {
		if got := strictSchema(jsonOf(schema)); got != want {
			t.Errorf("%s: %t", schema, got)
		}
	}
}

func TestAnthropicDetails(t *testing.T) {
	start := `{"type":"message_start","message":{"id":"m","type":"message","role":"assistant","model":"c","content":[],"usage":{"input_tokens":10,"cache_read_input_tokens":100,"cache_creation_input_tokens":1000,"output_tokens":1}}}`
	events := func(list ...string) string { return sse(append([]string{start}, list...)...) } // no event: lines, as some gateways
	end := func(reason string) []string {
		return []string{`{"type":"message_delta","delta":{"stop_reason":"` + reason + `"},"usage":{"output_tokens":7}}`, `{"type":"message_stop"}`}
	}
	text := []string{`{"type":"content_block_start","index":1,"content_block":{"type":"text","text":""}}`, `{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"hi"}}`, `{"type":"content_block_stop","index":1}`}
	ask := func(list ...string) asked {
		return ask(t, KindAnthropic, &fakeTransport{replies: []reply{body(events(list...))}}, question())
	}

	a := ask(append(append([]string{
		`{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}`,
		`{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"hm"}}`,
		`{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"SIG"}}`,
		`{"type":"content_block_stop","index":0}`,
	}, text...), end("end_turn")...)...)
	if a.err != nil {
		t.Fatal(a.err)
	}
	r := a.res.Parts[0]
	if r.Text != "hm" || r.Signature != "SIG" || r.Provider != "fake" || a.res.Parts[1].Text != "hi" {
		t.Errorf("%+v", a.res.Parts)
	}
	// Fault 42: what the cache held and took is input too.
	if u := a.res.Usage; u.InputTokens != 1110 || u.CacheReadTokens != 100 || u.CacheWriteTokens != 1000 || u.OutputTokens != 7 {
		t.Errorf("%+v", u)
	}

	a = ask(append(append([]string{`{"type":"content_block_start","index":0,"content_block":{"type":"redacted_thinking","data":"XYZ"}}`}, text...), end("end_turn")...)...)
	if a.err != nil || a.res.Parts[0].Signature != "redacted:XYZ" || a.res.Parts[0].Type != protocol.PartReasoning {
		t.Errorf("%+v, %v", a.res, a.err)
	}
	if b := anthropicBlock(a.res.Parts[0]); b.OfRedactedThinking == nil || b.OfRedactedThinking.Data != "XYZ" {
		t.Errorf("sent back as %+v", b)
	}

	// The stop reason that says overflow: with no answer it is one, with some it is
	// an answer cut for length.
	a = ask(end("model_context_window_exceeded")...)
	if ClassOf(a.err) != ClassContextOverflow {
		t.Errorf("%+v, %v", a.res, a.err)
	}
	a = ask(append(text, end("model_context_window_exceeded")...)...)
	if a.err != nil || a.res.StopReason != StopLength {
		t.Errorf("%+v, %v", a.res, a.err)
	}
	// message_delta alone is no end.
	a = ask(append(text, end("end_turn")[0])...)
	if ClassOf(a.err) != ClassStreamCut {
		t.Errorf("%+v, %v", a.res, a.err)
	}
	// A cut stream keeps the usage that was known.
	if a.res.Usage.InputTokens != 1110 || a.res.Usage.Estimated {
		t.Errorf("%+v", a.res.Usage)
	}
}

func TestAnthropicRequest(t *testing.T) {
	half := 0.5
	req := question()
	req.Temperature = &half
	req.Schema = protocol.Raw(`{"type":"object"}`)
	req.Messages = append(req.Messages, say(RoleAssistant, "go on \n"))
	req.Tools = []protocol.ToolDeclaration{{Name: "f", Schema: protocol.Raw(`{"type":"object","properties":{"a":{"enum":[1,2]}},"$defs":{"x":{}}}`)}, {Name: "g"}}
	f := &fakeTransport{replies: []reply{body(anthropicStream(spoken{text: []string{"x"}, stop: StopStop}))}}
	if a := ask(t, KindAnthropic, f, req); a.err != nil {
		t.Fatal(a.err)
	}
	sent := jsonOf(string(f.bodies[0])).(map[string]any)
	if sent["temperature"] != 0.5 || sent["max_tokens"] != 4096.0 || sent["cache_control"] != nil ||
		js(sent["tools"]) != `[{"input_schema":{"$defs":{"x":{}},"properties":{"a":{"enum":[1,2]}},"type":"object"},"name":"f"},{"input_schema":{"properties":{},"type":"object"},"name":"g"}]` ||
		js(sent["output_config"]) != `{"format":{"schema":{"type":"object"},"type":"json_schema"}}` ||
		!strings.Contains(string(f.bodies[0]), `"go on"`) {
		t.Errorf("%s", f.bodies[0])
	}
	r := f.requests[0]
	if r.URL.Path != "/v1/messages" || r.Header.Get("Authorization") != "Bearer "+testKey || r.Header.Get("Anthropic-Version") == "" {
		t.Errorf("%s with %v", r.URL, r.Header)
	}
}

func TestGeminiDetails(t *testing.T) {
	ask := func(body string, req Request) (asked, *fakeTransport) {
		f := &fakeTransport{replies: []reply{{status: 200, chunks: []string{body}}}}
		return ask(t, KindGemini, f, req), f
	}
	a, f := ask(sse(`{"promptFeedback":{"blockReason":"PROHIBITED_CONTENT"},"usageMetadata":{"promptTokenCount":3}}`), question())
	if e, ok := errors.AsType[*Error](a.err); !ok || e.Class != ClassRefused || e.Code != "PROHIBITED_CONTENT" {
		t.Error(a.err)
	}
	if r := f.requests[0]; r.URL.String() != "http://model.test/v1beta/models/some-model:streamGenerateContent?alt=sse" || r.Header.Get("X-Goog-Api-Key") != testKey {
		t.Errorf("%s with %v", r.URL, r.Header)
	}
	// Thoughts are output, the cache is part of the input, calls have no ids.
	a, _ = ask(sse(
		`{"candidates":[{"content":{"parts":[{"text":"hm","thought":true}]}}]}`,
		`{"candidates":[{"content":{"parts":[{"functionCall":{"name":"f","args":{"b":1,"a":2}},"thoughtSignature":"c2ln"},{"functionCall":{"name":"f"}}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":50,"cachedContentTokenCount":20,"candidatesTokenCount":5,"thoughtsTokenCount":7}}`,
	), question())
	if a.err != nil {
		t.Fatal(a.err)
	}
	if u := a.res.Usage; u.InputTokens != 50 || u.CacheReadTokens != 20 || u.OutputTokens != 12 || u.ReasoningTokens != 7 {
		t.Errorf("%+v", u)
	}
	p := a.res.Parts
	if len(p) != 3 || p[1].Signature != "c2ln" || p[1].Provider != "fake" || string(p[1].Arguments) != `{"a":2,"b":1}` || string(p[2].Arguments) != `{}` || p[1].CallID == p[2].CallID || p[1].CallID == "" {
		t.Errorf("%+v", p)
	}
	for reason, class := range map[string]Class{"MALFORMED_FUNCTION_CALL": ClassStreamCut, "OTHER": ClassStreamCut} {
		a, _ = ask(sse(`{"candidates":[{"content":{"parts":[{"text":"x"}]},"finishReason":"`+reason+`"}]}`), question())
		if ClassOf(a.err) != class {
			t.Errorf("%s: %v", reason, a.err)
		}
	}
	// Gemini 3 refuses a call of another model that it did not sign.
	req := question()
	req.Model = "gemini-3-pro"
	req.Messages = append(req.Messages, assistant(toolCall("c", "f", "{}")), toolResult("c", "F"))
	_, f = ask(geminiStream(spoken{text: []string{"x"}, stop: StopStop}), req)
	if !strings.Contains(string(f.bodies[0]), `"thoughtSignature":"c2tpcF90aG91Z2h0X3NpZ25hdHVyZV92YWxpZGF0b3I="`) || !strings.Contains(string(f.bodies[0]), `"includeThoughts":true`) {
		t.Errorf("%s", f.bodies[0])
	}
}

func TestOllamaDetails(t *testing.T) {
	f := &fakeTransport{replies: []reply{body(ollamaStream(spoken{text: []string{"x"}, stop: StopStop, in: 30, out: 1}))}}
	req := question()
	req.MaxOutput = 9
	if a := ask(t, KindOllama, f, req); a.err != nil {
		t.Fatal(a.err)
	}
	sent := jsonOf(string(f.bodies[0])).(map[string]any)
	if sent["truncate"] != false || sent["shift"] != false || js(sent["options"]) != `{"num_ctx":32768,"num_predict":9}` || f.requests[0].URL.Path != "/api/chat" {
		t.Errorf("%s", f.bodies[0])
	}
	if got := f.requests[0].Header.Get("Authorization"); got != "Bearer "+testKey {
		t.Errorf("authorization %q", got)
	}
	// A server that does not know truncate:false drops messages without a word.
	req.Messages[0] = say(RoleUser, strings.Repeat("many words of prose that fill the window. ", 400))
	f = &fakeTransport{replies: []reply{body(ollamaStream(spoken{text: []string{"an answer"}, stop: StopStop, in: 500, out: 1}))}}
	a := ask(t, KindOllama, f, req)
	if ClassOf(a.err) != ClassContextOverflow || a.res == nil || a.res.Parts[0].Text != "an answer" {
		t.Errorf("%+v, %v", a.res, a.err)
	}
	f = &fakeTransport{replies: []reply{body(ollamaStream(spoken{text: []string{"an answer"}, stop: StopStop, in: 3000, out: 1}))}}
	if a := ask(t, KindOllama, f, req); a.err != nil {
		t.Errorf("an estimate that is a little off: %v", a.err)
	}
	// Loading a model is no answer.
	f = &fakeTransport{replies: []reply{body(`{"model":"x","message":{"role":"assistant","content":""},"done":true,"done_reason":"load"}` + "\n")}}
	if a := ask(t, KindOllama, f, question()); ClassOf(a.err) != ClassStreamCut {
		t.Error(a.err)
	}
}

// No provider follows a redirect, which would carry the key elsewhere.
func TestNoRedirect(t *testing.T) {
	eachWire(t, func(t *testing.T, w wire) {
		f := &fakeTransport{replies: []reply{{status: 307, header: http.Header{"Location": {"http://evil.test/v1"}}}}}
		a := ask(t, w.kind, f, question())
		if ClassOf(a.err) != ClassInvalid || len(f.requests) != 1 {
			t.Errorf("%v after %d requests", a.err, len(f.requests))
		}
	})
}
