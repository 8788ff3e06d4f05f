package model

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"convls/protocol"
)

// adapter speaks one provider's API. Its errors are *Error, or the error of emit
// as it is.
type adapter interface {
	// stream asks once. messages are arranged (see arrange).
	stream(ctx context.Context, key string, req Request, emit func(Delta) error) (*Response, error)
	// list returns the models on offer; ids are names without the provider.
	list(ctx context.Context, key string) ([]protocol.Model, error)
	// count asks the provider how many tokens a prompt takes; ok is false if it has
	// no way to tell.
	count(ctx context.Context, key string, req Request) (tokens int64, ok bool, err error)
}

// errEmit wraps the error of emit on its way through an adapter.
type errEmit struct{ err error }

func (e errEmit) Error() string { return e.err.Error() }

// finish ends a streaming call: the answer is complete only if its finish reason
// was seen and no error object came. A connection that breaks after the finish
// reason takes nothing away from the answer.
func (x *exchange) finish(model string, a *answer, sdk error) (*Response, error) {
	if e, ok := errors.AsType[errEmit](sdk); ok {
		return a.response(), e.err
	}
	if err := a.flush(); err != nil {
		if e, ok := errors.AsType[errEmit](err); ok {
			return a.response(), e.err
		}
	}
	x.mu.Lock()
	broken := x.failure != nil
	x.mu.Unlock()
	if a.stop != "" && !broken {
		return a.response(), nil
	}
	err := x.error(model, sdk)
	if !a.started() {
		return nil, err
	}
	return a.response(), err
}

// guard runs the part of a call in which an SDK decodes what came. The Gemini SDK
// panics on JSON of a shape that it does not expect; that is a broken answer,
// not the end of the process. A panic of emit goes on: it is the caller's.
func (a *answer) guard(receive func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			if a.emitting {
				panic(r)
			}
			err = fmt.Errorf("its shape is not the expected one: %v", r)
		}
	}()
	return receive()
}

// emitter makes errors of emit recognisable.
func emitter(emit func(Delta) error) func(Delta) error {
	return func(d Delta) error {
		if err := emit(d); err != nil {
			return errEmit{err}
		}
		return nil
	}
}

// stopReason translates the finish reasons of OpenAI-compatible servers and of
// Ollama. ok is false where the answer ended without being complete.
func stopReason(reason string) (stop string, ok bool) {
	switch strings.ToLower(reason) {
	case "length", "max_tokens", "model_length":
		return StopLength, true
	case "tool_calls", "function_call", "tool_use", "tool_call":
		return StopToolCalls, true
	case "content_filter", "refusal", "safety":
		return StopRefusal, true
	case "error", "abort", "aborted", "cancelled", "insufficient_system_resource", "load", "unload":
		return "", false
	}
	return StopStop, true
}
