package model

import (
	"math"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	"convls/protocol"
)

// Failure is everything that is known of an answer that is no answer.
type Failure struct {
	// Kind is the provider's kind: openai, anthropic, gemini or ollama.
	Kind            string
	Provider, Model string
	// Status is the HTTP status. An error object inside a stream comes with 200.
	Status int
	Header http.Header
	// Body is the response's body, or the error object of a stream, in any shape.
	Body []byte
	// Overflow are further wordings of a context overflow, from the setting
	// providers.NAME.overflow_patterns; see [OverflowPatterns].
	Overflow []*regexp.Regexp
	// Secrets are keys that must not be in the result, wherever the body has them.
	Secrets []string
}

// The words that providers use as code, type, status or reason, in lower case.
var (
	quotaCodes = words("insufficient_quota", "billing_hard_limit_reached", "billing_not_active", "insufficient_balance",
		"insufficient_credits", "payment_required", "billing_error", "quota_exceeded_error", "usage_limit_reached")
	rateCodes = words("rate_limit_exceeded", "rate_limit_error", "rate_limit", "rate_limited", "ratelimiterror", "too_many_requests",
		"resource_exhausted", "throttling_exception", "throttlingexception", "tokens_per_day", "tokens_per_minute", "requests_per_minute",
		"requests_per_day")
	authCodes = words("invalid_api_key", "authentication_error", "permission_error", "permission_denied", "unauthenticated", "api_key_invalid",
		"invalid_authentication", "unauthorized", "authenticationerror", "permissiondeniederror", "no_api_key", "account_deactivated",
		"access_denied", "incorrect_api_key_provided", "forbidden")
	overflowCodes = words("context_length_exceeded", "exceed_context_size_error", "model_context_window_exceeded", "context_window_exceeded",
		"contextwindowexceedederror", "context_window_exceeded_error", "context_length_error", "model_max_prompt_tokens_exceeded",
		"prompt_too_long", "max_context_length_exceeded")
	refusedCodes = words("content_filter", "content_policy_violation", "content_policy", "contentpolicyviolationerror", "moderation", "moderation_blocked",
		"safety", "prohibited_content", "responsibleaipolicyviolation", "data_inspection_failed", "flagged", "cyber_policy_violation")
	bodyCodes = words("request_too_large", "payload_too_large", "request_entity_too_large")
)

// Wordings are asked last, where neither status nor code says anything; each is
// a phrase of a real server or gateway.
var (
	// rateWords come before overflowWords, because "too many tokens per day" is a
	// rate limit whatever the status (fault 24).
	rateWords = lazily(`(?i)rate.?limit|too many requests|(tokens|requests) per (second|minute|hour|day|month)|per.?(minute|day) limit|\b[tr]p[md]\b|throttl`)

	quotaWords = lazily(`(?i)exceeded your current quota|insufficient.{0,20}(quota|balance|credit|funds)|credit balance is too low|` +
		`out of credits|payment required|billing hard limit|(requires|need) more credits|usage limit (has been )?reached`)

	overflowWords = lazily(`(?i)(` + strings.Join([]string{
		`context_length_exceeded`, `ContextWindowExceeded`,
		// OpenAI, vLLM, DeepSeek, OpenRouter, Mistral; litellm passes them on.
		`maximum context length`, `max(imum)? (model|sequence|prompt|input) length`, `max_model_len`, `model'?s? maximum prompt length`,
		// Anthropic.
		`prompt is too long`, `exceed(s|ed)? (the )?context limit`,
		// llama.cpp, KoboldCpp, LM Studio, Ollama.
		`exceed(s|ed|ing)? (the |model'?s? )*(available |maximum |max )?(context|input context)[ _-]?(size|length|window|limit)`,
		`(context|input context)[ _-]?(size|length|window|limit)[^.]{0,40}(exceed|overflow|too (small|short)|not enough|reached)`,
		`trying to keep the first \d+ tokens`, `greater than the context length`, `longer than the (model'?s )?(context|maximum)`,
		`(context|prompt) overflow`, `does(n't| not) fit (in|into|within) (the )?(context|window)`,
		// Gemini and Vertex.
		`input token count.{0,40}exceeds`, `exceeds the maximum number of tokens`,
		// Bedrock, Cohere, TGI, Together, Kimi, Copilot, MiniMax.
		`(input|prompt|request) is too long`, `(input|prompt) too long`, `too many (input |prompt )?tokens`, `must have less than \d+ tokens`,
		"`?inputs`? tokens \\+ `?max_new_tokens`?", `exceed(s|ed)? (the )?(model )?token limit`, `token count.{0,30}exceeds the limit`,
		`reduce the length of (the |your )?(messages|prompt|input)`, `too large for model with`,
	}, "|") + `)`)
)

// Classify turns a failure into an [Error]. It is the one place that reads
// providers' errors. The status and the provider's codes decide; the wording is
// asked only where they say nothing (a plain 400, 422 or 500, or an error object
// in a stream that names neither). A 429 is never an overflow, whatever it says;
// a 413 is one only if its code says so.
func Classify(f Failure) *Error {
	d := dissect(f.Body)
	status := f.Status
	if status/100 == 2 {
		status = 0 // an error object in a stream, or a page instead of an answer
	}
	if status == 0 {
		status = d.status
	}
	e := &Error{
		Provider:   f.Provider,
		Model:      f.Model,
		Status:     f.Status,
		Code:       d.code(),
		Message:    d.text(),
		RetryAfter: retryAfter(f.Header, d),
	}
	e.Class = classOf(f, d, status)
	if e.Class == ClassAuth {
		e.Reason = ReasonRejected
	}
	if e.Message == "" {
		e.Message = strings.ToLower(http.StatusText(f.Status))
	}
	e.Message = clip(scrub(clean(e.Message), f.Secrets), maxMessage)
	e.Code = clip(scrub(clean(e.Code), f.Secrets), 100)
	return e
}

func classOf(f Failure, d dissected, status int) Class {
	if status == http.StatusRequestEntityTooLarge && !d.has(overflowCodes) && !matches(f.Overflow, d.words) {
		return ClassBodyTooLarge
	}
	switch {
	case d.has(quotaCodes) || status == http.StatusPaymentRequired:
		return ClassQuota
	case status == http.StatusTooManyRequests || d.has(rateCodes):
		// Gemini says "exceeded your current quota" for a limit a minute too, but
		// tells then when to come back.
		if d.retry == 0 && quotaWords().MatchString(d.words) && f.Header.Get("Retry-After") == "" {
			return ClassQuota
		}
		return ClassRateLimit
	case status == http.StatusUnauthorized:
		return ClassAuth
	case d.has(refusedCodes):
		return ClassRefused
	case status == http.StatusForbidden, d.has(authCodes) && (status == 0 || status == http.StatusBadRequest):
		return ClassAuth
	case d.has(overflowCodes), matches(f.Overflow, d.words):
		return ClassContextOverflow
	case d.has(bodyCodes):
		return ClassBodyTooLarge
	}
	switch status {
	case 0, http.StatusBadRequest, http.StatusUnprocessableEntity, http.StatusInternalServerError:
		switch {
		case quotaWords().MatchString(d.words) && !overflowWords().MatchString(d.words):
			return ClassQuota
		case rateWords().MatchString(d.words):
			return ClassRateLimit
		case overflowWords().MatchString(d.words):
			return ClassContextOverflow
		}
	}
	switch {
	case status == 0 && d.page:
		return ClassInvalid
	case status == 0, status == http.StatusRequestTimeout, status == http.StatusTooEarly:
		return ClassUnavailable
	case status == http.StatusNotImplemented, status == http.StatusHTTPVersionNotSupported:
		return ClassInvalid
	case status >= 500:
		return ClassUnavailable
	}
	return ClassInvalid
}

// OverflowPatterns compiles the setting providers.NAME.overflow_patterns. A
// pattern is a regular expression (RE2); letters match in any case.
func OverflowPatterns(provider string, patterns []string) ([]*regexp.Regexp, error) {
	var compiled []*regexp.Regexp
	for _, p := range patterns {
		re, err := regexp.Compile("(?i)" + p)
		if err != nil {
			return nil, protocol.Errorf(protocol.CodeInvalidParams, "providers.%s.overflow_patterns: %q is not a regular expression: %v", provider, p, err)
		}
		compiled = append(compiled, re)
	}
	return compiled, nil
}

func matches(patterns []*regexp.Regexp, text string) bool {
	for _, p := range patterns {
		if p.MatchString(text) {
			return true
		}
	}
	return false
}

func words(list ...string) map[string]bool {
	set := make(map[string]bool, len(list))
	for _, w := range list {
		set[w] = true
	}
	return set
}

// waitWords find the wait in a message: OpenAI's "try again in 1.5s", Gemini's
// "retry in 34.07s".
var waitWords = lazily(`(?i)(?:try again|retry) (?:in|after) (?:(\d+)m)?(\d+(?:\.\d+)?)(ms|s)\b`)

// maxRetryAfter bounds what a server can ask for; beyond it the number is noise.
const maxRetryAfter = 24 * time.Hour

// retryAfter returns how long the provider asks to wait: the header in
// milliseconds, in seconds or as a date (RFC 9110, section 10.2.3), then the
// body's members, then its words.
func retryAfter(h http.Header, d dissected) time.Duration {
	if ms, err := strconv.ParseFloat(h.Get("Retry-After-Ms"), 64); err == nil {
		return boundWait(ms / 1000)
	}
	if v := h.Get("Retry-After"); v != "" {
		if s, err := strconv.ParseFloat(v, 64); err == nil {
			return boundWait(s)
		}
		if t, err := http.ParseTime(v); err == nil {
			return boundWait(time.Until(t).Seconds())
		}
	}
	if d.retry > 0 {
		return d.retry
	}
	if m := waitWords().FindStringSubmatch(d.words); m != nil {
		minutes, _ := strconv.ParseFloat(m[1], 64)
		n, _ := strconv.ParseFloat(m[2], 64)
		if m[3] == "ms" {
			n /= 1000
		}
		return boundWait(minutes*60 + n)
	}
	return 0
}

func boundWait(seconds float64) time.Duration {
	if math.IsNaN(seconds) || seconds <= 0 {
		return 0
	}
	return time.Duration(min(seconds, maxRetryAfter.Seconds()) * float64(time.Second))
}
