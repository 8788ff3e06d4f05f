package fakemodel

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
)

// Reply is what the server answers to one request. The constructors [Say],
// [Call], [Fail] and [Raw] make one; the methods return changed copies.
type Reply struct {
	// Reasoning comes before the text, as delta.reasoning_content.
	Reasoning []string
	// Pieces are the pieces of the text, one event each.
	Pieces []string
	// Calls are tool calls, each in two events.
	Calls []ToolCall
	// Finish is the finish reason: stop, or tool_calls with calls, if it is empty;
	// "-" for none, which makes the stream a cut one.
	Finish string
	// PromptTokens and CompletionTokens are the usage; if both are 0 the server
	// counts a token for four bytes. NoUsage leaves it out.
	PromptTokens, CompletionTokens int64
	NoUsage                        bool
	// NoDone leaves out the last line, data: [DONE].
	NoDone bool
	// Document answers with one JSON document and no stream.
	Document bool

	// Status and Body answer with an error, or with any body; Header is added.
	Status int
	Body   string
	Header http.Header

	// CutAfter, if not 0, closes the connection after so many bytes of the body.
	CutAfter int
	// ChunkBytes, if not 0, flushes the body in chunks of so many bytes, wherever
	// characters and events end.
	ChunkBytes int

	gate      *Gate
	gateAfter int
}

// ToolCall is a call that the model makes.
type ToolCall struct {
	ID, Name string
	// Arguments is what the model sent, JSON or not.
	Arguments string
}

// Say answers with a text, streamed in these pieces.
func Say(pieces ...string) Reply { return Reply{Pieces: pieces} }

// Words answers with a text, streamed word by word.
func Words(text string) Reply { return Reply{Pieces: strings.SplitAfter(text, " ")} }

// Call answers with a tool call. The server makes the id.
func Call(name, arguments string) Reply {
	return Reply{Calls: []ToolCall{{Name: name, Arguments: arguments}}}
}

// Fail answers with an HTTP error.
func Fail(status int, body string) Reply { return Reply{Status: status, Body: body} }

// Overflow answers as llama.cpp does when a prompt does not fit.
func Overflow(promptTokens, window int) Reply {
	return Fail(http.StatusBadRequest, fmt.Sprintf(
		`{"error":{"code":400,"message":"the request exceeds the available context size","type":"exceed_context_size_error","n_prompt_tokens":%d,"n_ctx":%d}}`,
		promptTokens, window))
}

// Raw answers with a body as it is, as an event stream.
func Raw(body string) Reply { return Reply{Status: http.StatusOK, Body: body} }

// And adds a tool call.
func (r Reply) And(name, arguments string) Reply {
	r.Calls = append(slices.Clip(r.Calls), ToolCall{Name: name, Arguments: arguments})
	return r
}

// Think puts reasoning before the text.
func (r Reply) Think(pieces ...string) Reply {
	r.Reasoning = pieces
	return r
}

// Cut closes the connection after n bytes of the body.
func (r Reply) Cut(n int) Reply {
	r.CutAfter = n
	return r
}

// With adds a header, for example Retry-After.
func (r Reply) With(name, value string) Reply {
	r.Header = r.Header.Clone()
	if r.Header == nil {
		r.Header = http.Header{}
	}
	r.Header.Set(name, value)
	return r
}

// Usage sets what the server says it has counted.
func (r Reply) Usage(prompt, completion int64) Reply {
	r.PromptTokens, r.CompletionTokens = prompt, completion
	return r
}

// Hold stops at the gate after so many events of the stream; 0 holds before the
// response begins.
func (r Reply) Hold(g *Gate, events int) Reply {
	r.gate, r.gateAfter = g, events
	return r
}

// The chunks of a stream, as far as a client needs them.
type (
	chunk struct {
		ID      string   `json:"id"`
		Object  string   `json:"object"`
		Created int64    `json:"created"`
		Model   string   `json:"model"`
		Choices []choice `json:"choices"`
		Usage   *usage   `json:"usage,omitempty"`
	}
	choice struct {
		Index   int     `json:"index"`
		Delta   *delta  `json:"delta,omitempty"`
		Message *delta  `json:"message,omitempty"`
		Finish  *string `json:"finish_reason"`
	}
	delta struct {
		Role      string  `json:"role,omitempty"`
		Content   *string `json:"content,omitempty"`
		Reasoning string  `json:"reasoning_content,omitempty"`
		Calls     []call  `json:"tool_calls,omitempty"`
	}
	call struct {
		Index    int      `json:"index"`
		ID       string   `json:"id,omitempty"`
		Type     string   `json:"type,omitempty"`
		Function function `json:"function"`
	}
	function struct {
		Name      string `json:"name,omitempty"`
		Arguments string `json:"arguments"`
	}
	usage struct {
		Prompt     int64 `json:"prompt_tokens"`
		Completion int64 `json:"completion_tokens"`
		Total      int64 `json:"total_tokens"`
	}
)

// finish returns the finish reason, nil for none.
func (r Reply) finish() *string {
	reason := r.Finish
	switch {
	case reason == "-":
		return nil
	case reason == "" && len(r.Calls) > 0:
		reason = "tool_calls"
	case reason == "":
		reason = "stop"
	}
	return &reason
}

func (r Reply) usage(requestBytes int) *usage {
	if r.NoUsage {
		return nil
	}
	u := usage{Prompt: r.PromptTokens, Completion: r.CompletionTokens}
	if u.Prompt == 0 && u.Completion == 0 {
		u.Prompt, u.Completion = int64(requestBytes/4+1), int64(len(strings.Join(r.Pieces, ""))/4+1)
	}
	u.Total = u.Prompt + u.Completion
	return &u
}

// events returns the events of the stream, each with its empty line.
func (r Reply) events(id, model string, requestBytes int) []string {
	var events []string
	put := func(c chunk) {
		c.ID, c.Object, c.Model = id, "chat.completion.chunk", model
		if c.Choices == nil {
			c.Choices = []choice{}
		}
		events = append(events, "data: "+marshal(c)+"\n\n")
	}
	for _, s := range r.Reasoning {
		put(chunk{Choices: []choice{{Delta: &delta{Reasoning: s}}}})
	}
	for _, s := range r.Pieces {
		put(chunk{Choices: []choice{{Delta: &delta{Role: "assistant", Content: &s}}}})
	}
	for i, c := range r.calls(id) {
		head, rest := c, call{Index: i, Function: function{Arguments: c.Function.Arguments}}
		head.Function.Arguments = ""
		put(chunk{Choices: []choice{{Delta: &delta{Calls: []call{head}}}}})
		put(chunk{Choices: []choice{{Delta: &delta{Calls: []call{rest}}}}})
	}
	if finish := r.finish(); finish != nil {
		put(chunk{Choices: []choice{{Delta: &delta{}, Finish: finish}}})
	}
	if u := r.usage(requestBytes); u != nil {
		put(chunk{Usage: u})
	}
	if !r.NoDone {
		events = append(events, "data: [DONE]\n\n")
	}
	return events
}

func (r Reply) calls(id string) []call {
	var calls []call
	for i, c := range r.Calls {
		if c.ID == "" {
			c.ID = fmt.Sprintf("call_%s_%d", id, i)
		}
		calls = append(calls, call{Index: i, ID: c.ID, Type: "function", Function: function{Name: c.Name, Arguments: c.Arguments}})
	}
	return calls
}

// document returns the answer as one JSON document.
func (r Reply) document(id, model string, requestBytes int) string {
	text := strings.Join(r.Pieces, "")
	return marshal(chunk{
		ID: id, Object: "chat.completion", Model: model,
		Choices: []choice{{Message: &delta{
			Role: "assistant", Content: &text, Reasoning: strings.Join(r.Reasoning, ""), Calls: r.calls(id),
		}, Finish: r.finish()}},
		Usage: r.usage(requestBytes),
	})
}

// marshal encodes what this package builds, which always can be.
func marshal(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		panic("fakemodel: " + err.Error())
	}
	return string(data)
}
