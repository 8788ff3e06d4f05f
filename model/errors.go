package model

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"convls/protocol"
)

// Class is what kind of failure a model call ended with. Everything that a
// caller decides (retry, compact, ask for a key, give up) it decides on the
// class; the message is for people.
type Class string

// The classes.
const (
	// ClassAuth: the key is missing or was rejected; see [Error.Reason].
	ClassAuth Class = "auth"
	// ClassRateLimit: too many requests or tokens for now; waiting helps.
	ClassRateLimit Class = "rate_limit"
	// ClassQuota: the account is used up; waiting does not help.
	ClassQuota Class = "quota"
	// ClassContextOverflow: the prompt does not fit into the model's window. The
	// only class that compaction can cure.
	ClassContextOverflow Class = "context_overflow"
	// ClassBodyTooLarge: the request has too many bytes (HTTP 413). Not the same
	// limit as the window: usually an image or a pasted file is at fault.
	ClassBodyTooLarge Class = "body_too_large"
	// ClassUnavailable: the provider can not be reached, is overloaded or broken.
	ClassUnavailable Class = "unavailable"
	// ClassRefused: the provider declined because of what was asked.
	ClassRefused Class = "refused"
	// ClassCancelled: the caller's context ended.
	ClassCancelled Class = "cancelled"
	// ClassStreamCut: the answer ended without its finish reason.
	ClassStreamCut Class = "stream_cut"
	// ClassInvalid: any other refusal (4xx): the request or the settings are wrong.
	ClassInvalid Class = "invalid"
)

// The reasons of a [ClassAuth] error, as protocol.ErrorData.Reason spells them.
const (
	ReasonMissing  = "missing"
	ReasonRejected = "rejected"
)

// Error is a failed model call. No key is ever in its text.
type Error struct {
	Class    Class
	Provider string
	Model    string
	// Status is the HTTP status, 0 if there was no response.
	Status int
	// Code is the provider's own word for the failure, if it sent one.
	Code string
	// Message is what the provider or the transport said, cleaned and at most
	// [maxMessage] bytes.
	Message string
	// Reason is [ReasonMissing] or [ReasonRejected] for [ClassAuth].
	Reason string
	// RetryAfter is how long the provider asked to wait, 0 if it did not say.
	RetryAfter time.Duration
	// Cause is a transport or context error. Errors of SDKs are never kept here,
	// because they hold the request with its key.
	Cause error
}

// Error says who failed, how, and with which words.
func (e *Error) Error() string {
	var b strings.Builder
	if e.Provider != "" {
		b.WriteString(e.Provider)
		if e.Model != "" {
			b.WriteString("/" + e.Model)
		}
		b.WriteString(": ")
	}
	b.WriteString(strings.ReplaceAll(string(e.Class), "_", " "))
	switch {
	case e.Status != 0 && e.Code != "":
		fmt.Fprintf(&b, " (%d %s)", e.Status, e.Code)
	case e.Status != 0:
		fmt.Fprintf(&b, " (%d)", e.Status)
	case e.Code != "":
		fmt.Fprintf(&b, " (%s)", e.Code)
	}
	if e.Message != "" {
		b.WriteString(": " + e.Message)
	}
	return b.String()
}

// Unwrap returns the cause, so that errors.Is finds context.Canceled.
func (e *Error) Unwrap() error { return e.Cause }

// Retryable reports whether the same request may succeed later without a change.
// Whether it may be sent again by itself is [Retry]'s decision.
func (e *Error) Retryable() bool {
	switch e.Class {
	case ClassRateLimit, ClassUnavailable, ClassStreamCut:
		return true
	}
	return false
}

// ClassOf returns the class of the first [Error] in err's chain, "cancelled" for
// a bare context error, or "" if err is none of these.
func ClassOf(err error) Class {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Class
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return ClassCancelled
	}
	return ""
}

// ProtocolCode returns the wire code of the class. An invalid request that names
// a model the provider does not have is unknown_model.
func (e *Error) ProtocolCode() protocol.Code {
	switch e.Class {
	case ClassAuth:
		return protocol.CodeProviderAuth
	case ClassRateLimit:
		return protocol.CodeProviderRateLimit
	case ClassQuota:
		return protocol.CodeProviderQuota
	case ClassContextOverflow:
		return protocol.CodeContextOverflow
	case ClassBodyTooLarge:
		return protocol.CodeBodyTooLarge
	case ClassUnavailable:
		return protocol.CodeProviderDown
	case ClassCancelled:
		return protocol.CodeTurnCancelled
	case ClassStreamCut:
		return protocol.CodeStreamCut
	case ClassInvalid:
		if e.unknownModel() {
			return protocol.CodeUnknownModel
		}
	}
	return protocol.CodeProviderRefused
}

// Node returns the error as it is stored on a failed node, with a hint on what
// the person can do next.
func (e *Error) Node() *protocol.NodeError {
	message := e.Message
	if message == "" {
		message = strings.ReplaceAll(string(e.Class), "_", " ")
	}
	if e.Provider != "" {
		message = e.Provider + ": " + message
	}
	return &protocol.NodeError{
		Code:         e.ProtocolCode(),
		Message:      message,
		Retryable:    e.Retryable(),
		RetryAfterMS: e.RetryAfter.Milliseconds(),
		Hint:         e.Hint(),
	}
}

// Protocol returns the error as a refusal of a request (convls/model/list and
// the like), where the reason of an auth error has a member of its own.
func (e *Error) Protocol() *protocol.Error {
	node := e.Node()
	return &protocol.Error{
		Code:    node.Code,
		Message: node.Message,
		Data: protocol.ErrorData{
			Code: node.Code, Retryable: node.Retryable, RetryAfterMS: node.RetryAfterMS, Reason: e.Reason,
		},
		Cause: e.Cause,
	}
}

// imageWords find complaints about an image, which blocks every later request of
// the conversation as long as the image is in the context (fault 94).
var imageWords = lazily(`(?i)\b(image|image_url|inline_?data|media.?type|base64|vision|multimodal|mmproj)\b`)

func (e *Error) unknownModel() bool {
	if e.Class != ClassInvalid {
		return false
	}
	switch strings.ToLower(e.Code) {
	case "model_not_found", "model_not_available", "not_found_error", "model_not_exist":
		return true
	}
	message := strings.ToLower(e.Message)
	return strings.Contains(message, "model") && (e.Status == 404 || e.Status == 400) &&
		(strings.Contains(message, "not found") || strings.Contains(message, "does not exist") ||
			strings.Contains(message, "not a valid model"))
}

// Hint says what the person can do next.
func (e *Error) Hint() string {
	provider := e.Provider
	if provider == "" {
		provider = "NAME"
	}
	if errors.Is(e.Cause, errStalled) {
		return fmt.Sprintf("retry; if the model needs longer before it begins to answer, raise providers.%s.timeout_ms", provider)
	}
	switch e.Class {
	case ClassAuth:
		if e.Reason == ReasonMissing {
			return fmt.Sprintf("set %s, or name a variable in providers.%s.api_key_env or a command in providers.%s.api_key_cmd; or put the key into the keyring",
				DefaultKeyEnv(provider), provider, provider)
		}
		return fmt.Sprintf("check the key for %s: it was rejected, or it does not allow this model", provider)
	case ClassRateLimit:
		return "wait a little and retry, or switch to another model"
	case ClassQuota:
		return fmt.Sprintf("the account at %s is used up: check its plan and billing, or switch to another model", provider)
	case ClassContextOverflow:
		return "go on from an earlier message, or switch to a model with a larger window; if the window that convls assumes is wrong, set models." + e.id() + ".window"
	case ClassBodyTooLarge:
		return "leave out or shrink the largest attachment (usually an image or a pasted file), then retry"
	case ClassUnavailable:
		if e.Status == 0 {
			return fmt.Sprintf("check that %s runs and that providers.%s.base_url is right, then retry", provider, provider)
		}
		return "retry in a moment, or switch to another model"
	case ClassRefused:
		return "edit the message, or ask another model"
	case ClassCancelled:
		return "retry to get a whole answer"
	case ClassStreamCut:
		return "the text so far is kept; retry to get a whole answer"
	}
	switch {
	case e.unknownModel():
		return fmt.Sprintf("choose a model that %s has; the list of models shows them", provider)
	case imageWords().MatchString(e.Message):
		return "the provider does not take this image: edit the message and leave it out, or switch to a model that reads images"
	case e.Status == 404 || e.Status == 405 || e.Status/100 == 3 || e.Status/100 == 2:
		return fmt.Sprintf("check providers.%s.base_url and providers.%s.kind: the address answers, but not as this kind of provider", provider, provider)
	}
	return "the provider does not accept this request: check the model's settings, or switch to another model"
}

func (e *Error) id() string {
	if e.Provider == "" || e.Model == "" {
		return "PROVIDER/NAME"
	}
	return e.Provider + "/" + e.Model
}
