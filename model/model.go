// Package model is how convls talks to language models: one small interface, an
// adapter a provider, one classification of their errors, and estimates of how
// many tokens a text takes.
package model

import (
	"context"

	"convls/protocol"
)

// Message is one message of a prompt in provider-neutral form. Providers want
// prompts in one strict form, and adapters put any list of messages into it:
// neighbours of one role are merged, results are moved up to their calls, a call
// without a result gets one that says so, and call ids are made unique in the
// prompt. So a prompt may begin with an assistant, hold two users in a row, or
// the same call id twice.
type Message struct {
	// Role is user, assistant or tool.
	Role string
	// Parts hold text, images, reasoning (assistant only), tool_call with its
	// arguments (assistant only) and tool_result with CallID (tool only).
	Parts []protocol.Part
}

// Request is one model call. System is not a message because providers differ
// most in how they take it.
type Request struct {
	// Model is the name without the provider.
	Model    string
	System   string
	Messages []Message
	Tools    []protocol.ToolDeclaration
	// MaxOutput caps the answer in tokens; 0 means the setting max_output of the
	// model, and without one leaves it to the provider.
	MaxOutput int64
	// Temperature is the setting temperature of the model if it is nil.
	Temperature *float64
	// Schema, if set, is a JSON Schema that the answer must satisfy, for providers
	// that can enforce one; see [Capabilities].
	Schema protocol.Raw
}

// Delta is a piece of an answer.
type Delta struct {
	Kind protocol.DeltaKind
	// Part is the index of the part in [Response.Parts] that Text adds to.
	Part int
	Text string
}

// Response is a complete answer: its finish reason was seen.
type Response struct {
	// Parts are text, reasoning and tool_call parts in the order they came. Call
	// ids are never empty.
	Parts []protocol.Part
	// StopReason is stop, length, tool_calls or refusal; with an error, "" unless it
	// was seen.
	StopReason string
	// Usage is what the provider reported, with the cost where prices are known;
	// what it did not report is estimated, and marked so.
	Usage protocol.Usage
	// Model is the name that the provider says has answered.
	Model string
}

// Capabilities say what a model can do. Window and MaxOutput are never zero: where
// nothing is known they are [DefaultWindow] and an eighth of it.
type Capabilities struct {
	Window    int64
	MaxOutput int64
	// Schema says that Request.Schema is enforced.
	Schema bool
	// Prices in dollars a million tokens, 0 where unknown.
	InputPrice, OutputPrice, CacheReadPrice float64
}

// Provider answers. Its methods are safe for concurrent use.
//
// Errors are *[Error], so that a caller decides on the class alone.
type Provider interface {
	// Stream asks once and calls emit for each piece, in order, from one
	// goroutine. It returns a nil error only for a complete answer. With an error
	// the response holds what had arrived, or is nil if nothing had. An error from
	// emit ends the call and is returned as it is. It asks once: retries are for
	// [Retry].
	Stream(ctx context.Context, req Request, emit func(Delta) error) (*Response, error)
	// Count returns how many input tokens req takes, and whether the provider or
	// its own tokeniser counted it rather than an estimate.
	Count(ctx context.Context, req Request) (tokens int64, exact bool, err error)
	// List returns the models on offer.
	List(ctx context.Context) ([]protocol.Model, error)
	// Capabilities returns what is known of a model without asking over the
	// network.
	Capabilities(name string) Capabilities
}
