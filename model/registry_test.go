package model

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"convls/protocol"
	"convls/test/fakemodel"
)

func TestResolve(t *testing.T) {
	r := NewRegistry()
	defer r.Close()
	for _, c := range []struct {
		id, name, base string
		settings       map[string]protocol.ProviderSettings
	}{
		{"openai/gpt-4o", "gpt-4o", "https://api.openai.com/v1", nil},
		{"anthropic/claude-sonnet-4", "claude-sonnet-4", "https://api.anthropic.com", nil},
		{"gemini/gemini-2.5-pro", "gemini-2.5-pro", "https://generativelanguage.googleapis.com", nil},
		{"ollama/llama3.2:3b", "llama3.2:3b", "http://127.0.0.1:11434", nil},
		{"openrouter/openai/gpt-4o", "openai/gpt-4o", "https://openrouter.ai/api/v1", nil},
		{"local/m", "m", "http://127.0.0.1:8080/v1", map[string]protocol.ProviderSettings{"local": {BaseURL: "http://127.0.0.1:8080/v1/"}}},
		{"work/c", "c", "https://api.anthropic.com", map[string]protocol.ProviderSettings{"work": {Kind: "anthropic"}}},
	} {
		p, name, err := r.Resolve(protocol.Settings{Providers: c.settings}, c.id, nil)
		if err != nil || name != c.name || p.(*remote).baseURL != c.base {
			t.Errorf("%s: %q, %v", c.id, name, err)
		}
	}
	for _, id := range []string{"", "offline", "offline/offline"} {
		p, name, err := r.Resolve(protocol.Settings{}, id, nil)
		if _, ok := p.(*offline); !ok || name != "offline" || err != nil {
			t.Errorf("%q: %T, %q, %v", id, p, name, err)
		}
	}
	for _, c := range []struct {
		id       string
		settings protocol.ProviderSettings
		code     protocol.Code
		says     string
	}{
		{"nothing/m", protocol.ProviderSettings{}, protocol.CodeUnknownModel, "providers.nothing.base_url"},
		{"gpt-4o", protocol.ProviderSettings{}, protocol.CodeUnknownModel, "provider/name"},
		{"/m", protocol.ProviderSettings{}, protocol.CodeUnknownModel, "provider/name"},
		{"openai/", protocol.ProviderSettings{}, protocol.CodeUnknownModel, "provider/name"},
		{strings.Repeat("x", 1<<16) + "\xff\x00", protocol.ProviderSettings{}, protocol.CodeUnknownModel, "provider/name"},
		{"p/m", protocol.ProviderSettings{Kind: "smoke signals", BaseURL: "http://x"}, protocol.CodeInvalidParams, "providers.p.kind"},
		{"p/m", protocol.ProviderSettings{BaseURL: "ftp://x"}, protocol.CodeInvalidParams, "providers.p.base_url"},
		{"p/m", protocol.ProviderSettings{BaseURL: "localhost:8080"}, protocol.CodeInvalidParams, "providers.p.base_url"},
		{"p/m", protocol.ProviderSettings{BaseURL: "https://user:hunter2@x"}, protocol.CodeInvalidParams, "password"},
		{"p/m", protocol.ProviderSettings{BaseURL: "http://x", OverflowPatterns: []string{"["}}, protocol.CodeInvalidParams, "overflow_patterns"},
	} {
		s := protocol.Settings{Providers: map[string]protocol.ProviderSettings{"p": c.settings}}
		_, _, err := r.Resolve(s, c.id, nil)
		if protocol.CodeOf(err) != c.code || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "hunter2") || len(err.Error()) > 500 {
			t.Errorf("%.40q: %v", c.id, err)
		}
	}
}

// A hosted provider without a key is not even asked; a local one needs none; one
// that turns out to need one says that it is missing.
func TestMissingKey(t *testing.T) {
	f := &fakeTransport{replies: []reply{{status: 401, chunks: []string{`{"error":"key required"}`}}}}
	r := fakeRegistry(f)
	s := protocol.Settings{Providers: map[string]protocol.ProviderSettings{"lan": {BaseURL: "http://10.0.0.5/v1"}, "local": {BaseURL: "http://localhost:1/v1"}}}
	try := func(id string) *Error {
		t.Helper()
		p, name, err := r.Resolve(s, id, NewSystemKeys(environment()))
		if err != nil {
			t.Fatal(err)
		}
		_, err = p.Stream(t.Context(), Request{Model: name, Messages: []Message{say(RoleUser, "x")}}, func(Delta) error { return nil })
		e, ok := errors.AsType[*Error](err)
		if !ok || e.Class != ClassAuth || e.Reason != ReasonMissing || !strings.Contains(e.Hint(), "API_KEY") {
			t.Errorf("%s: %v", id, err)
		}
		return e
	}
	for _, id := range []string{"openai/gpt-4o", "anthropic/c", "gemini/g", "openrouter/a/b"} {
		try(id)
	}
	if len(f.requests) != 0 {
		t.Errorf("%d requests without a key", len(f.requests))
	}
	for i, id := range []string{"lan/m", "local/m", "ollama/m"} {
		try(id)
		if len(f.requests) != i+1 || f.requests[i].Header.Get("Authorization") != "" {
			t.Errorf("%s: %d requests, the last with %v", id, len(f.requests), f.requests[len(f.requests)-1].Header)
		}
	}
}

// rejecting gives one key, and another one when that was rejected.
type rejecting struct {
	first, second string
	asked         []bool
}

func (k *rejecting) Key(_ context.Context, r KeyRequest) (string, error) {
	k.asked = append(k.asked, r.Rejected)
	if r.Rejected {
		return k.second, nil
	}
	return k.first, nil
}

func TestRejectedKey(t *testing.T) {
	eachWire(t, func(t *testing.T, w wire) {
		answer := w.stream(spoken{text: []string{"x"}, stop: StopStop})
		for _, c := range []struct {
			second   string
			requests int
			ok       bool
		}{{"new", 2, true}, {"old", 1, false}, {"", 1, false}} {
			f := &fakeTransport{replies: []reply{{status: 401, chunks: []string{`{"error":{"message":"bad key old"}}`}}, body(answer)}}
			keys := &rejecting{first: "old", second: c.second}
			s := protocol.Settings{Providers: map[string]protocol.ProviderSettings{"fake": {Kind: w.kind, BaseURL: "http://model.test"}}}
			p, _, err := fakeRegistry(f).Resolve(s, "fake/m", keys)
			if err != nil {
				t.Fatal(err)
			}
			_, err = p.Stream(t.Context(), question(), func(Delta) error { return nil })
			if (err == nil) != c.ok || len(f.requests) != c.requests || len(keys.asked) != 2 || !keys.asked[1] {
				t.Errorf("%q: %v after %d requests, asked %v", c.second, err, len(f.requests), keys.asked)
			}
			if e, ok := errors.AsType[*Error](err); ok && e.Reason != ReasonRejected {
				t.Errorf("%+v", e)
			}
		}
	})
}

func TestOddKeys(t *testing.T) {
	f := &fakeTransport{}
	p := fakeProvider(t, fakeRegistry(f), KindOpenAI).(*remote)
	for _, key := range []string{"a\nb", "ключ", "a b", "a\x00"} {
		p.keys = fixedKey(key)
		_, err := p.Stream(t.Context(), question(), nil)
		if ClassOf(err) != ClassAuth || len(f.requests) != 0 || strings.Contains(err.Error(), key) {
			t.Errorf("%q: %v", key, err)
		}
	}
}

func TestCapabilities(t *testing.T) {
	r := NewRegistry()
	s := protocol.Settings{Models: map[string]protocol.ModelSettings{
		"openai/gpt-4o": {Window: 1000}, "ollama/m": {Window: 8192, MaxOutput: 9000, InputPrice: 1},
	}}
	for _, c := range []struct {
		id   string
		want Capabilities
	}{
		{"openai/gpt-4o-2024-08-06", Capabilities{Window: 128_000, MaxOutput: 16_384, Schema: true, InputPrice: 2.5, OutputPrice: 10, CacheReadPrice: 1.25}},
		{"openai/gpt-4o-mini", Capabilities{Window: 128_000, MaxOutput: 16_384, Schema: true, InputPrice: 0.15, OutputPrice: 0.6, CacheReadPrice: 0.075}},
		{"openai/gpt-4oh", Capabilities{Window: 32_768, MaxOutput: 4_096, Schema: true}},
		{"anthropic/claude-new", Capabilities{Window: 200_000, MaxOutput: 8_192, Schema: true}},
		{"ollama/llama3", Capabilities{Window: 32_768, MaxOutput: 4_096, Schema: true}},
		// A cap that leaves no room is none (fault 27).
		{"ollama/m", Capabilities{Window: 8192, MaxOutput: 1024, Schema: true, InputPrice: 1}},
		{"openai/gpt-4o", Capabilities{Window: 1000, MaxOutput: 125, Schema: true, InputPrice: 2.5, OutputPrice: 10, CacheReadPrice: 1.25}},
		{"offline", Capabilities{Window: OfflineWindow, MaxOutput: offlineMaxOutput}},
	} {
		p, name, err := r.Resolve(s, c.id, nil)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c.want, p.Capabilities(name)); diff != "" {
			t.Errorf("%s: %s", c.id, diff)
		}
	}
	cost := Capabilities{InputPrice: 2, OutputPrice: 10, CacheReadPrice: 1}.Cost(protocol.Usage{InputTokens: 1_500_000, CacheReadTokens: 500_000, OutputTokens: 100_000})
	if cost != 2+0.5+1 {
		t.Errorf("cost %f", cost)
	}
}

func TestList(t *testing.T) {
	for _, c := range []struct {
		kind    string
		replies []reply
		want    []protocol.Model
		paths   string
	}{
		{KindOpenAI, []reply{body(`{"data":[
			{"id":"z/router","context_length":1000,"top_provider":{"context_length":900,"max_completion_tokens":90},"pricing":{"prompt":"0.000002","completion":"0.00001","input_cache_read":"0.000001"}},
			{"id":"vllm","max_model_len":4096},{"id":"plain"},{"id":""},{"id":"llama","owned_by":"llamacpp","meta":{"n_ctx_train":131072}}]}`),
			body(`{"default_generation_settings":{"n_ctx":2048}}`)},
			[]protocol.Model{
				{ID: "fake/llama", Provider: "fake", Window: 2048, MaxOutput: 256},
				{ID: "fake/plain", Provider: "fake", Window: 32768, MaxOutput: 4096},
				{ID: "fake/vllm", Provider: "fake", Window: 4096, MaxOutput: 512},
				{ID: "fake/z/router", Provider: "fake", Window: 900, MaxOutput: 90, InputPrice: 2, OutputPrice: 10, CacheReadPrice: 1},
			}, "/models /props"},
		{KindAnthropic, []reply{
			body(`{"data":[{"id":"claude-a","max_input_tokens":200000,"max_tokens":64000}],"has_more":true,"last_id":"claude-a"}`),
			body(`{"data":[{"id":"claude-b"}],"has_more":false}`)},
			[]protocol.Model{
				{ID: "fake/claude-a", Provider: "fake", Window: 200000, MaxOutput: 64000},
				{ID: "fake/claude-b", Provider: "fake", Window: 200000, MaxOutput: 8192},
			}, "/v1/models /v1/models"},
		{KindGemini, []reply{
			body(`{"models":[{"name":"models/gemini-x","inputTokenLimit":5000,"outputTokenLimit":500,"supportedGenerationMethods":["generateContent"]},{"name":"models/embed","supportedGenerationMethods":["embedContent"]}],"nextPageToken":"n"}`),
			body(`{"models":[]}`)},
			[]protocol.Model{{ID: "fake/gemini-x", Provider: "fake", Window: 5000, MaxOutput: 500}}, "/v1beta/models /v1beta/models"},
		{KindOllama, []reply{body(`{"models":[{"name":"a:latest"},{"name":"b"}]}`), body(`{"models":[{"name":"b","context_length":8192}]}`)},
			[]protocol.Model{{ID: "fake/a:latest", Provider: "fake", Window: 32768, MaxOutput: 4096}, {ID: "fake/b", Provider: "fake", Window: 8192, MaxOutput: 1024}},
			"/api/tags /api/ps"},
	} {
		for i := range c.replies {
			c.replies[i].header = http.Header{"Content-Type": {"application/json"}}
		}
		f := &fakeTransport{replies: c.replies}
		p := fakeProvider(t, fakeRegistry(f), c.kind)
		models, err := p.List(t.Context())
		if err != nil {
			t.Errorf("%s: %v", c.kind, err)
			continue
		}
		if diff := cmp.Diff(c.want, models); diff != "" {
			t.Errorf("%s: %s", c.kind, diff)
		}
		var paths []string
		for _, r := range f.requests {
			paths = append(paths, r.URL.Path)
		}
		if got := strings.Join(paths, " "); got != c.paths {
			t.Errorf("%s: asked %s", c.kind, got)
		}
		// What the provider said is remembered.
		last := c.want[len(c.want)-1]
		if got := p.Capabilities(strings.TrimPrefix(last.ID, "fake/")).Window; got != last.Window {
			t.Errorf("%s: window %d", c.kind, got)
		}
	}
}

func TestListErrors(t *testing.T) {
	eachWire(t, func(t *testing.T, w wire) {
		for body, class := range map[string]Class{`<html><title>x</title></html>`: ClassInvalid, `{"data":`: ClassStreamCut} {
			f := &fakeTransport{replies: []reply{{status: 200, chunks: []string{body}, header: http.Header{"Content-Type": {"application/json"}}}}}
			if _, err := fakeProvider(t, fakeRegistry(f), w.kind).List(t.Context()); err == nil || (w.kind != KindAnthropic && ClassOf(err) != class) {
				t.Errorf("%s: %v", body, err)
			}
		}
		f := &fakeTransport{replies: []reply{{status: 403, chunks: []string{"no " + testKey}}}}
		_, err := fakeProvider(t, fakeRegistry(f), w.kind).List(t.Context())
		if ClassOf(err) != ClassAuth {
			t.Error(err)
		}
		mustNotLeak(t, err.Error())
	})
}

func TestCount(t *testing.T) {
	counted := func(s string) reply {
		return reply{status: 200, chunks: []string{s}, header: http.Header{"Content-Type": {"application/json"}}}
	}
	for _, c := range []struct {
		id     string
		reply  reply
		tokens int64
		exact  bool
	}{
		{"anthropic/claude-sonnet-4", counted(`{"input_tokens":42}`), 42, true},
		{"gemini/gemini-2.5-pro", counted(`{"totalTokens":43}`), 43, true},
		{"anthropic/claude-sonnet-4", reply{status: 500}, 15, false},
		{"openai/gpt-4o", reply{}, 14, true},
		{"fake/gpt-4o", reply{}, 14, false}, // another server may wrap it in anything
		{"offline", reply{}, 14, true},
	} {
		s := protocol.Settings{Providers: map[string]protocol.ProviderSettings{"fake": {BaseURL: "http://model.test"}}}
		p, name, err := fakeRegistry(&fakeTransport{replies: []reply{c.reply}}).Resolve(s, c.id, fixedKey(testKey))
		if err != nil {
			t.Fatal(err)
		}
		req := question()
		req.Model = name
		if n, exact, err := p.Count(t.Context(), req); n != c.tokens || exact != c.exact || err != nil {
			t.Errorf("%s: %d, %t, %v", c.id, n, exact, err)
		}
	}
}

// An answer teaches the counter; two models do not teach each other (fault 43).
func TestCountersLearn(t *testing.T) {
	f := &fakeTransport{replies: []reply{body(openaiStream(spoken{text: []string{"x"}, stop: StopStop, in: 400, out: 1}))}}
	r := fakeRegistry(f)
	s := protocol.Settings{Providers: map[string]protocol.ProviderSettings{"fake": {BaseURL: "http://model.test"}}}
	p, _, err := r.Resolve(s, "fake/a", nil)
	if err != nil {
		t.Fatal(err)
	}
	req := Request{Model: "a", Messages: []Message{say(RoleUser, strings.Repeat("word ", 160))}}
	a, _ := r.Counter(s, "fake/a")
	b, _ := r.Counter(s, "fake/b")
	before := a.Request(req)
	if _, err := p.Stream(t.Context(), req, func(Delta) error { return nil }); err != nil {
		t.Fatal(err)
	}
	if got := a.Adjust(before); got != 400 || a.Source() != SourceProvider {
		t.Errorf("%d (%d before), %s", got, before, a.Source())
	}
	if got := b.Adjust(before); got != before || b.Source() != SourceEstimate {
		t.Errorf("another model: %d, %s", got, b.Source())
	}
	if again, _ := r.Counter(s, "fake/a"); again != a {
		t.Error("another counter for the same model")
	}
	if _, err := r.Counter(s, "nowhere/a"); protocol.CodeOf(err) != protocol.CodeUnknownModel {
		t.Error(err)
	}
}

// Settings of a model reach the request, and cost the answer.
func TestModelSettings(t *testing.T) {
	f := &fakeTransport{replies: []reply{body(openaiStream(spoken{text: []string{"x"}, stop: StopStop, in: 1_000_000, out: 1_000_000}))}}
	temperature := 0.25
	s := protocol.Settings{
		Providers: map[string]protocol.ProviderSettings{"fake": {BaseURL: "http://model.test"}},
		Models:    map[string]protocol.ModelSettings{"fake/a": {Temperature: &temperature, MaxOutput: 321, InputPrice: 1, OutputPrice: 2}},
	}
	p, _, err := fakeRegistry(f).Resolve(s, "fake/a", nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := p.Stream(t.Context(), Request{Model: "a", Messages: []Message{say(RoleUser, "x")}}, func(Delta) error { return nil })
	if err != nil || res.Usage.CostUSD != 3 {
		t.Errorf("%+v, %v", res, err)
	}
	sent := jsonOf(string(f.bodies[0])).(map[string]any)
	if sent["max_tokens"] != 321.0 || sent["temperature"] != 0.25 {
		t.Errorf("%s", f.bodies[0])
	}
}

// All providers side by side, over real HTTP.
func TestModels(t *testing.T) {
	fake := fakemodel.New(t)
	r := NewRegistry()
	defer r.Close()
	s := protocol.Settings{Model: "good/fake", Providers: map[string]protocol.ProviderSettings{
		"good":   {BaseURL: fake.URL()},
		"broken": {Kind: "x"},
		"ollama": {BaseURL: "http://127.0.0.1:1"},
	}}
	got := r.Models(t.Context(), s, NewSystemKeys(environment()))
	var ids, errs []string
	for _, m := range got.Models {
		ids = append(ids, m.ID)
		if m.IsDefault != (m.ID == "good/fake") {
			t.Errorf("%+v", m)
		}
	}
	for _, e := range got.Errors {
		errs = append(errs, e.Provider+" "+string(e.Error.Code))
	}
	if strings.Join(ids, " ") != "good/fake offline" {
		t.Errorf("models %v", ids)
	}
	if strings.Join(errs, ",") != "broken invalid_params,ollama provider_unavailable" {
		t.Errorf("errors %v", errs)
	}
}

// A whole call over real HTTP: streaming, cutting, cancelling while it is held.
func TestOverHTTP(t *testing.T) {
	fake := fakemodel.New(t)
	r := NewRegistry()
	defer r.Close()
	s := protocol.Settings{Providers: map[string]protocol.ProviderSettings{"fake": {BaseURL: fake.URL()}}}
	p, name, err := r.Resolve(s, "fake/m", nil)
	if err != nil {
		t.Fatal(err)
	}
	req := Request{Model: name, Messages: []Message{say(RoleUser, "hello")}}
	gate := fake.Gate()
	fake.Script(
		fakemodel.Say("Hel", "lo 😀").Usage(11, 2), fakemodel.Say("cut in the middle").Cut(150), fakemodel.Overflow(5000, 4096),
		fakemodel.Say("one ", "two").Hold(gate, 1),
	)
	ignore := func(Delta) error { return nil }
	res, err := p.Stream(t.Context(), req, ignore)
	if err != nil || res.Parts[0].Text != "Hello 😀" || res.Usage.InputTokens != 11 {
		t.Fatalf("%+v, %v", res, err)
	}
	if _, err = p.Stream(t.Context(), req, ignore); ClassOf(err) != ClassStreamCut {
		t.Error(err)
	}
	if _, err = p.Stream(t.Context(), req, ignore); ClassOf(err) != ClassContextOverflow {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		gate.Wait(t)
		cancel()
	}()
	res, err = p.Stream(ctx, req, ignore)
	cancel()
	if ClassOf(err) != ClassCancelled {
		t.Errorf("%+v, %v", res, err)
	}
	if n := len(fake.Requests()); n != 4 {
		t.Errorf("%d requests", n)
	}
}
