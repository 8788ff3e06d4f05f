package model

import (
	"net/http"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"convls/protocol"
)

// The shapes are those of real servers and gateways (faults 24, 25, 26).
var classifyCases = []struct {
	name   string
	status int
	body   string
	class  Class
}{
	// Context overflow by provider.
	{"OpenAI", 400, `{"error":{"message":"This model's maximum context length is 128000 tokens. However, your messages resulted in 130000 tokens.","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}`, ClassContextOverflow},
	{"OpenAI, code alone", 400, `{"error":{"message":"Your input is not good.","type":"invalid_request_error","code":"context_length_exceeded"}}`, ClassContextOverflow},
	{"vLLM", 400, `{"error":{"message":"This model's maximum context length is 4096 tokens. However, you requested 5000 tokens","type":"BadRequestError","param":null,"code":400}}`, ClassContextOverflow},
	{"vLLM, older, flat", 400, `{"object":"error","message":"This model's maximum context length is 4096 tokens. However, you requested 5000 tokens","type":"BadRequestError","param":null,"code":400}`, ClassContextOverflow},
	{"llama.cpp", 400, `{"error":{"code":400,"message":"the request exceeds the available context size, try increasing it","type":"exceed_context_size_error","n_prompt_tokens":5000,"n_ctx":4096}}`, ClassContextOverflow},
	{"llama.cpp, older", 500, `{"error":{"code":500,"message":"the request exceeds the available context size. try increasing the context size or enable context shift","type":"server_error"}}`, ClassContextOverflow},
	{"LM Studio", 400, `{"error":"Trying to keep the first 5000 tokens when context the overflows. However, the model is loaded with context length of only 4096 tokens, which is not enough."}`, ClassContextOverflow},
	{"LM Studio, in a stream", 200, `{"error":"Trying to keep the first 5000 tokens when context the overflows. However, the model is loaded with context length of only 4096 tokens"}`, ClassContextOverflow},
	{"Ollama, truncate off", 400, `{"error":"the input length exceeds the context length"}`, ClassContextOverflow},
	{"Ollama, cloud", 400, `{"error":"prompt too long; exceeded max context length by 1000 tokens"}`, ClassContextOverflow},
	{"Anthropic", 400, `{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 210000 tokens > 200000 maximum"},"request_id":"req_1"}`, ClassContextOverflow},
	{"Anthropic, output", 400, "{\"type\":\"error\",\"error\":{\"type\":\"invalid_request_error\",\"message\":\"input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000\"}}", ClassContextOverflow},
	{"Gemini", 400, `{"error":{"code":400,"message":"The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).","status":"INVALID_ARGUMENT"}}`, ClassContextOverflow},
	{"Gemini, in a list", 400, `[{"error":{"code":400,"message":"The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).","status":"INVALID_ARGUMENT"}}]`, ClassContextOverflow},
	// Gateways and other services (fault 25).
	{"litellm", 400, `{"error":{"message":"litellm.ContextWindowExceededError: litellm.BadRequestError: ContextWindowExceededError: OpenAIException - This model's maximum context length is 8192 tokens.","type":null,"param":null,"code":"400"}}`, ClassContextOverflow},
	{"litellm, upstream as JSON in text", 400, `{"error":{"message":"litellm.BadRequestError: AnthropicException - {\"type\":\"error\",\"error\":{\"type\":\"invalid_request_error\",\"message\":\"prompt is too long: 210000 tokens > 200000 maximum\"}}","type":"None","code":"400"}}`, ClassContextOverflow},
	{"litellm, 500", 500, `{"error":{"message":"litellm.APIError: APIError: OpenAIException - {\"error\":{\"message\":\"too long\",\"code\":\"context_length_exceeded\"}}","code":"500"}}`, ClassContextOverflow},
	{"OpenRouter", 400, `{"error":{"message":"This endpoint's maximum context length is 128000 tokens. However, you requested about 150000 tokens (150000 of text input).","code":400,"metadata":{"provider_name":null}}}`, ClassContextOverflow},
	{"OpenRouter, upstream raw", 400, `{"error":{"message":"Provider returned error","code":400,"metadata":{"raw":"{\"error\":{\"message\":\"Prompt too long\",\"code\":\"context_length_exceeded\"}}","provider_name":"X"}}}`, ClassContextOverflow},
	{"Mistral", 400, `{"object":"error","message":"Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length","type":"invalid_request_prompt","code":"3051"}`, ClassContextOverflow},
	{"Groq", 400, `{"error":{"message":"Please reduce the length of the messages or completion.","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}`, ClassContextOverflow},
	{"xAI", 400, `{"code":"Client specified an invalid argument","error":"This model's maximum prompt length is 131072 but the request contains 140000 tokens."}`, ClassContextOverflow},
	{"Bedrock", 400, `{"message":"Input is too long for requested model."}`, ClassContextOverflow},
	{"Cohere", 400, `{"message":"too many tokens: total number of tokens in the prompt cannot exceed 128000 - received 130000."}`, ClassContextOverflow},
	{"TGI", 422, "{\"error\":\"Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: 5000 `inputs` tokens\",\"error_type\":\"validation\"}", ClassContextOverflow},
	{"TGI, inputs", 422, "{\"error\":\"Input validation error: `inputs` must have less than 4096 tokens. Given: 5000\"}", ClassContextOverflow},
	{"Kimi", 400, `{"error":{"message":"Invalid request: Your request exceeded model token limit: 262144","type":"invalid_request_error"}}`, ClassContextOverflow},
	{"Copilot", 400, `{"error":{"message":"prompt token count of 130000 exceeds the limit of 128000","code":"model_max_prompt_tokens_exceeded"}}`, ClassContextOverflow},
	{"MiniMax", 400, `{"error":{"message":"invalid params, context window exceeds limit"}}`, ClassContextOverflow},
	{"FastAPI", 422, `{"detail":"The prompt exceeds the context window of 2048 tokens"}`, ClassContextOverflow},
	{"plain text", 400, "Requested tokens (5000) exceed context window of 4096", ClassContextOverflow},
	{"in a stream, no status", 200, `{"error":{"message":"maximum context length","code":400}}`, ClassContextOverflow},
	{"413, by its code", 413, `{"error":{"message":"too big","code":"context_length_exceeded"}}`, ClassContextOverflow},
	{"setting", 400, `{"error":{"message":"Anfrage: das ist zu lang"}}`, ClassContextOverflow},
	{"setting, odd status", 418, `das IST zu lang`, ClassContextOverflow},

	// A 429 is never an overflow (fault 24).
	{"too many tokens per day", 429, `{"error":{"message":"Too many tokens per day","code":"rate_limit_exceeded"}}`, ClassRateLimit},
	{"429 with the words of an overflow", 429, `{"error":{"message":"This model's maximum context length is 128000 tokens; prompt is too long","code":"context_length_exceeded"}}`, ClassRateLimit},
	{"429, setting's words", 429, `das ist zu lang`, ClassRateLimit},
	{"429, text", 429, `Too Many Requests`, ClassRateLimit},
	{"429, empty", 429, ``, ClassRateLimit},
	{"429, page", 429, `<html><title>429</title></html>`, ClassRateLimit},
	{"OpenAI, tokens per minute", 429, `{"error":{"message":"Rate limit reached for gpt-4o in organization org-x on tokens per min (TPM): Limit 30000, Used 29000, Requested 5000. Please try again in 8s.","type":"tokens","code":"rate_limit_exceeded"}}`, ClassRateLimit},
	{"rate words with 400", 400, `{"error":{"message":"too many tokens per day for this key"}}`, ClassRateLimit},
	{"rate words in a stream", 200, `{"error":{"message":"Rate limit exceeded: too many tokens"}}`, ClassRateLimit},
	{"429 in a stream", 200, `{"error":{"message":"slow","code":429}}`, ClassRateLimit},
	{"Gemini, a minute", 429, `{"error":{"code":429,"message":"You exceeded your current quota, please check your plan and billing details.","status":"RESOURCE_EXHAUSTED","details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"34s"}]}}`, ClassRateLimit},
	{"Anthropic", 429, `{"type":"error","error":{"type":"rate_limit_error","message":"This request would exceed the rate limit for your organization of 40,000 input tokens per minute."}}`, ClassRateLimit},
	{"nested", 500, `{"error":{"message":"OpenAIException - {\"error\":{\"code\":\"rate_limit_exceeded\",\"message\":\"x\"}}"}}`, ClassRateLimit},

	// Quota is not a rate limit.
	{"OpenAI, quota", 429, `{"error":{"message":"You exceeded your current quota, please check your plan and billing details.","type":"insufficient_quota","code":"insufficient_quota"}}`, ClassQuota},
	{"quota words", 429, `{"error":{"message":"You exceeded your current quota"}}`, ClassQuota},
	{"Anthropic, credit", 400, `{"type":"error","error":{"type":"invalid_request_error","message":"Your credit balance is too low to access the Anthropic API."}}`, ClassQuota},
	{"OpenRouter, credits", 402, `{"error":{"message":"Insufficient credits","code":402}}`, ClassQuota},
	{"DeepSeek", 402, `{"error":{"message":"Insufficient Balance"}}`, ClassQuota},

	// Too many bytes is not too many tokens (fault 26).
	{"413", 413, `Request Entity Too Large`, ClassBodyTooLarge},
	{"413, nginx", 413, `<html><head><title>413 Request Entity Too Large</title></head></html>`, ClassBodyTooLarge},
	{"413, Anthropic", 413, `{"type":"error","error":{"type":"request_too_large","message":"Request exceeds the maximum size"}}`, ClassBodyTooLarge},
	{"413 with the words of an overflow", 413, `prompt is too long`, ClassBodyTooLarge},
	{"413, Groq", 413, `{"error":{"message":"Request too large for model on tokens per minute (TPM): Limit 6000, Requested 7000","code":"rate_limit_exceeded"}}`, ClassBodyTooLarge},
	{"in a stream", 200, `{"type":"error","error":{"type":"request_too_large","message":"x"}}`, ClassBodyTooLarge},

	{"401", 401, `{"error":{"message":"Incorrect API key","code":"invalid_api_key"}}`, ClassAuth},
	{"401, text", 401, `Unauthorized`, ClassAuth},
	{"401 with the words of an overflow", 401, `maximum context length`, ClassAuth},
	{"403", 403, `{"error":{"message":"not allowed"}}`, ClassAuth},
	{"Gemini, key", 400, `{"error":{"code":400,"message":"API key not valid. Please pass a valid API key.","status":"INVALID_ARGUMENT","details":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"API_KEY_INVALID"}]}}`, ClassAuth},
	{"Anthropic, key", 401, `{"type":"error","error":{"type":"authentication_error","message":"invalid x-api-key"}}`, ClassAuth},

	{"content filter", 400, `{"error":{"message":"The response was filtered","code":"content_filter","status":400}}`, ClassRefused},
	{"moderation", 403, `{"error":{"message":"flagged","code":403,"metadata":{"reasons":["violence"],"code":"moderation"}}}`, ClassRefused},
	{"policy", 400, `{"error":{"message":"no","code":"content_policy_violation"}}`, ClassRefused},

	{"500", 500, `{"error":{"message":"The server had an error","type":"server_error"}}`, ClassUnavailable},
	{"502, page", 502, `<html>bad gateway, the context length was fine</html>`, ClassUnavailable},
	{"503, Gemini", 503, `{"error":{"code":503,"message":"The model is overloaded","status":"UNAVAILABLE"}}`, ClassUnavailable},
	{"503, llama.cpp", 503, `{"error":{"code":503,"message":"Loading model","type":"unavailable_error"}}`, ClassUnavailable},
	{"504, empty", 504, ``, ClassUnavailable},
	{"529", 529, `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`, ClassUnavailable},
	{"overloaded in a stream", 200, `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`, ClassUnavailable},
	{"unknown in a stream", 200, `{"error":{"message":"something went wrong"}}`, ClassUnavailable},
	{"408", 408, ``, ClassUnavailable},

	{"400", 400, `{"error":{"message":"messages: roles must alternate"}}`, ClassInvalid},
	{"400, image (fault 94)", 400, `{"error":{"message":"Could not process image","type":"invalid_request_error"}}`, ClassInvalid},
	{"400, output cap", 400, `{"error":{"message":"max_tokens is too large: 500000. This model supports at most 128000 completion tokens","param":"max_tokens","code":"invalid_value"}}`, ClassInvalid},
	{"404", 404, `{"error":{"message":"no such model","code":"model_not_found"}}`, ClassInvalid},
	{"404, page", 404, `<html><title>Not found</title></html>`, ClassInvalid},
	{"405", 405, ``, ClassInvalid},
	{"302", 302, ``, ClassInvalid},
	{"501", 501, ``, ClassInvalid},
	{"a page instead of an answer", 200, `<!DOCTYPE html><html><title>Log in</title>`, ClassInvalid},
	// A conversation about errors is none: servers echo the request.
	{"echo", 422, `{"detail":[{"loc":["body"],"msg":"field required","type":"missing","input":{"messages":[{"content":"maximum context length","code":"context_length_exceeded"}]}}]}`, ClassInvalid},
}

func TestClassify(t *testing.T) {
	patterns, err := OverflowPatterns("p", []string{"das ist zu lang"})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range classifyCases {
		t.Run(c.name, func(t *testing.T) {
			for _, kind := range []string{KindOpenAI, KindAnthropic, KindGemini, KindOllama} {
				e := Classify(Failure{Kind: kind, Provider: "p", Model: "m", Status: c.status, Header: http.Header{}, Body: []byte(c.body), Overflow: patterns})
				if e.Class != c.class {
					t.Fatalf("%s: class %s, want %s (%v)", kind, e.Class, c.class, e)
				}
			}
		})
	}
}

func TestClassifyMessage(t *testing.T) {
	for _, c := range []struct {
		body, message, code string
	}{
		{`{"error":{"message":"Provider returned error","code":400,"metadata":{"raw":"{\"error\":{\"message\":\"no tools here\",\"type\":\"tools_unsupported\"}}"}}}`,
			"Provider returned error: no tools here", "tools_unsupported"},
		{`{"error":{"message":"bad","type":"invalid_request_error","code":"unknown_parameter"}}`, "bad", "unknown_parameter"},
		{`{"error":{"message":"bad","type":"invalid_request_error"}}`, "bad", "invalid_request_error"},
		{"<html><head><title>502 Bad &amp; Gateway</title></head></html>", "a web page came instead of an answer: 502 Bad & Gateway", ""},
		{"line one\r\n\x1b[31mline two\x00", "line one \uFFFD[31mline two\uFFFD", ""},
		{"", "bad request", ""},
		{`{}`, "bad request", ""},
	} {
		e := Classify(Failure{Status: 400, Body: []byte(c.body)})
		if e.Message != c.message || e.Code != c.code {
			t.Errorf("%s: message %q, code %q", c.body, e.Message, e.Code)
		}
	}
	long := Classify(Failure{Status: 400, Body: []byte(strings.Repeat("漢", 5000))})
	if len(long.Message) > maxMessage || !utf8.ValidString(long.Message) || len(long.Message) < maxMessage-8 {
		t.Errorf("a long message has %d bytes", len(long.Message))
	}
}

func TestRetryAfter(t *testing.T) {
	h := func(name, value string) http.Header { return http.Header{name: {value}} }
	for _, c := range []struct {
		header http.Header
		body   string
		want   time.Duration
	}{
		{h("Retry-After", "3"), "", 3 * time.Second},
		{h("Retry-After", "0.5"), "", 500 * time.Millisecond},
		{h("Retry-After-Ms", "250"), "", 250 * time.Millisecond},
		{h("Retry-After", "-5"), "", 0},
		{h("Retry-After", "NaN"), "", 0},
		{h("Retry-After", "soon"), "", 0},
		{h("Retry-After", "1e30"), "", maxRetryAfter},
		{h("Retry-After", "Mon, 01 Jan 2001 00:00:00 GMT"), "", 0},
		{nil, `{"error":{"message":"x","details":[{"retryDelay":"34.5s"}]}}`, 34500 * time.Millisecond},
		{nil, `{"error":{"message":"x"},"retry_after":2}`, 2 * time.Second},
		{nil, `{"error":{"message":"Please try again in 1m2.5s."}}`, 62500 * time.Millisecond},
		{nil, `{"error":{"message":"Please try again in 120ms."}}`, 120 * time.Millisecond},
		{h("Retry-After", "9"), `try again in 2s`, 9 * time.Second},
	} {
		if e := Classify(Failure{Status: 429, Header: c.header, Body: []byte(c.body)}); e.RetryAfter != c.want {
			t.Errorf("%v %s: %s, want %s", c.header, c.body, e.RetryAfter, c.want)
		}
	}
	date := time.Now().Add(90 * time.Second).UTC().Format(http.TimeFormat)
	if e := Classify(Failure{Status: 503, Header: h("Retry-After", date)}); e.RetryAfter < 80*time.Second || e.RetryAfter > 90*time.Second {
		t.Errorf("a date: %s", e.RetryAfter)
	}
}

func TestScrub(t *testing.T) {
	for _, s := range []string{
		"key " + testKey + " is bad", "Bearer abcdef123456", "sk-proj-abcdefgh12345678", "AIzaSyA1234567890abcdef", "gsk_abcdefgh1234",
		"https://user:hunter2secret@host/", "GET /v1?key=abcdef12345&x=1",
	} {
		got := scrub(s, []string{testKey})
		if !strings.Contains(got, masked) || strings.Contains(got, "abcdef") || strings.Contains(got, "hunter2") || strings.Contains(got, testKey) {
			t.Errorf("%q became %q", s, got)
		}
	}
	if got := scrub("a task-oriented monkey-wrench asks", nil); strings.Contains(got, masked) {
		t.Errorf("plain words became %q", got)
	}
}

func TestOverflowPatterns(t *testing.T) {
	if _, err := OverflowPatterns("p", []string{"("}); protocol.CodeOf(err) != protocol.CodeInvalidParams || !strings.Contains(err.Error(), "providers.p.overflow_patterns") {
		t.Error(err)
	}
}

func TestErrorHints(t *testing.T) {
	for _, c := range []struct {
		err  Error
		want string
	}{
		{Error{Class: ClassAuth, Provider: "my-provider", Reason: ReasonMissing}, "MY_PROVIDER_API_KEY"},
		{Error{Class: ClassAuth, Provider: "openai", Reason: ReasonRejected}, "rejected"},
		{Error{Class: ClassInvalid, Status: 400, Message: "Could not process image"}, "leave it out"},
		{Error{Class: ClassInvalid, Status: 404, Provider: "x", Message: "a web page came instead of an answer"}, "providers.x.base_url"},
		{Error{Class: ClassContextOverflow, Provider: "x", Model: "y"}, "models.x/y.window"},
		{Error{Class: ClassUnavailable, Provider: "ollama"}, "ollama runs"},
	} {
		if hint := c.err.Hint(); !strings.Contains(hint, c.want) {
			t.Errorf("%s: %q has no %q", c.err.Class, hint, c.want)
		}
	}
	e := &Error{Class: ClassAuth, Provider: "openai", Reason: ReasonMissing, Message: "there is no key"}
	if p := e.Protocol(); p.Data.Reason != "missing" || p.Code != protocol.CodeProviderAuth || p.Data.Code != p.Code {
		t.Errorf("%+v", p)
	}
}

// Whatever a server sends, the classifier neither panics nor lets a key through.
func FuzzClassify(f *testing.F) {
	for _, c := range classifyCases {
		f.Add(c.status, "3", []byte(c.body))
	}
	f.Add(400, "", []byte(`{"error":{"message":"`+testKey+`","code":"topsecret\u002dZq9-key"}}`))
	f.Add(500, "x", []byte("topsecret\x00-Zq9-key topsecret\xff-Zq9-key topsecret\n-Zq9-key"))
	f.Add(200, "1e999", []byte(strings.Repeat("[", 5000)))
	f.Fuzz(func(t *testing.T, status int, retry string, body []byte) {
		e := Classify(Failure{
			Kind: KindOpenAI, Provider: "p", Model: "m", Status: status, Header: http.Header{"Retry-After": {retry}}, Body: body,
			Secrets: []string{testKey},
		})
		if e.Class == "" || e.Class == ClassCancelled || e.Class == ClassStreamCut {
			t.Errorf("class %q", e.Class)
		}
		if status == 429 && e.Class == ClassContextOverflow {
			t.Error("a 429 is no overflow")
		}
		n := e.Node()
		for _, text := range []string{e.Error(), e.Message, e.Code, n.Message, n.Hint} {
			if strings.Contains(text, testKey) {
				t.Errorf("the key is in %q", text)
			}
			if !utf8.ValidString(text) || strings.ContainsAny(text, "\x00\n\r\x1b") {
				t.Errorf("%q is no clean text", text)
			}
		}
		if e.RetryAfter < 0 || e.RetryAfter > maxRetryAfter || len(e.Message) > maxMessage {
			t.Errorf("wait %s, message of %d bytes", e.RetryAfter, len(e.Message))
		}
	})
}
