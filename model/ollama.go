package model

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	ollama "github.com/ollama/ollama/api"

	"convls/protocol"
)

// ollamaAdapter speaks Ollama's own API (https://docs.ollama.com/api), not its
// imitation of OpenAI's: that one drops the oldest messages without a word when
// the prompt is longer than the window.
type ollamaAdapter struct {
	target
	// window is how large a context the model is loaded with, in tokens.
	window func(model string) int64
	// estimate returns our own count of a prompt.
	estimate func(req Request) int64
}

var _ adapter = ollamaAdapter{}

const (
	// A prompt counts as truncated when the server says it read less than
	// truncatedShare of our estimate. The estimate may be wrong by half, not by more.
	truncatedShare = 0.4
	// truncatedFloor is the estimate below which nothing is concluded.
	truncatedFloor = 1024
)

func (a ollamaAdapter) client() (*ollama.Client, error) {
	u, err := url.Parse(a.baseURL)
	if err != nil {
		return nil, errors.New("base_url is no address")
	}
	return ollama.NewClient(u, a.http), nil
}

func (a ollamaAdapter) stream(ctx context.Context, key string, req Request, emit func(Delta) error) (*Response, error) {
	params, err := a.params(req)
	if err != nil {
		return nil, a.invalid(req.Model, err)
	}
	client, err := a.client()
	if err != nil {
		return nil, a.invalid(req.Model, err)
	}
	x := a.begin(ctx, key, shapeLines)
	defer x.end()
	ans := &ollamaAnswer{answer: answer{provider: a.provider, emit: emitter(emit)}}
	err = ans.guard(func() error { return client.Chat(x.ctx, params, ans.line) })
	res, err := x.finish(req.Model, &ans.answer, err)
	if err != nil {
		return res, err
	}
	// Servers that do not know truncate:false drop messages and answer the rest.
	read, expected := res.Usage.InputTokens, a.estimate(req)
	if read > 0 && expected >= truncatedFloor && float64(read) < truncatedShare*float64(expected) {
		return res, &Error{
			Class: ClassContextOverflow, Provider: a.provider, Model: req.Model, Status: 200, Code: "truncated",
			Message: fmt.Sprintf("the server read only %d of about %d tokens: it dropped the beginning of the conversation", read, expected),
		}
	}
	return res, nil
}

func (a ollamaAdapter) params(req Request) (*ollama.ChatRequest, error) {
	yes, no := true, false
	p := &ollama.ChatRequest{
		Model:    req.Model,
		Stream:   &yes,
		Truncate: &no,
		Shift:    &no,
		// The window that convls reckons with is the one that the model gets.
		Options: map[string]any{"num_ctx": a.window(req.Model)},
	}
	if req.MaxOutput > 0 {
		p.Options["num_predict"] = req.MaxOutput
	}
	if req.Temperature != nil {
		p.Options["temperature"] = *req.Temperature
	}
	if len(req.Schema) > 0 {
		p.Format = []byte(req.Schema)
	}
	arranged, err := arrange(req.Messages, a.provider)
	if err != nil {
		return nil, err
	}
	if strings.TrimSpace(req.System) != "" {
		p.Messages = append(p.Messages, ollama.Message{Role: "system", Content: req.System})
	}
	for _, m := range arranged {
		if m.Role == RoleTool {
			for _, r := range m.Parts {
				p.Messages = append(p.Messages, ollama.Message{Role: RoleTool, Content: r.Text, ToolName: r.Name, ToolCallID: r.CallID})
			}
			continue
		}
		msg := ollama.Message{Role: m.Role, Content: joinText(m.Parts)}
		for _, part := range m.Parts {
			switch part.Type {
			case protocol.PartImage:
				msg.Images = append(msg.Images, part.Data)
			case protocol.PartToolCall:
				call := ollama.ToolCall{ID: part.CallID, Function: ollama.ToolCallFunction{Index: len(msg.ToolCalls), Name: part.Name}}
				if err := call.Function.Arguments.UnmarshalJSON(part.Arguments); err != nil {
					return nil, errors.New("the arguments of a call of " + part.Name + " are no JSON object")
				}
				msg.ToolCalls = append(msg.ToolCalls, call)
			}
		}
		p.Messages = append(p.Messages, msg)
	}
	for _, t := range req.Tools {
		schema, err := schemaObject(t.Schema)
		if err != nil {
			return nil, errors.New("the schema of the tool " + t.Name + " is no JSON object")
		}
		tool := ollama.Tool{Type: "function", Function: ollama.ToolFunction{Name: t.Name, Description: t.Description}}
		// The SDK's type is the server's own, so what it can not hold the model
		// would not see either.
		raw, err := protocol.Marshal(schema)
		if err == nil {
			err = json.Unmarshal(raw, &tool.Function.Parameters)
		}
		if err != nil {
			return nil, errors.New("the schema of the tool " + t.Name + " is not one that Ollama takes")
		}
		p.Tools = append(p.Tools, tool)
	}
	return p, nil
}

// ollamaAnswer decodes lines.
type ollamaAnswer struct {
	answer
	calls int
}

func (a *ollamaAnswer) line(r ollama.ChatResponse) error {
	if r.Model != "" {
		a.model = r.Model
	}
	if err := a.add(protocol.PartReasoning, "", r.Message.Thinking); err != nil {
		return err
	}
	if err := a.add(protocol.PartText, "", r.Message.Content); err != nil {
		return err
	}
	for _, call := range r.Message.ToolCalls {
		// A call comes whole.
		a.calls++
		p, err := a.begin(protocol.PartToolCall, strconv.Itoa(a.calls))
		if err != nil {
			return err
		}
		p.id, p.name = call.ID, call.Function.Name
		if err := a.add(protocol.PartToolCall, p.key, call.Function.Arguments.String()); err != nil {
			return err
		}
	}
	if !r.Done {
		return nil
	}
	a.usage = protocol.Usage{InputTokens: int64(r.PromptEvalCount), OutputTokens: int64(r.EvalCount)}
	stop, ok := stopReason(r.DoneReason)
	if !ok {
		return errors.New("the server ended the answer with the reason " + r.DoneReason)
	}
	a.stop = stop
	return nil
}

func (a ollamaAdapter) count(context.Context, string, Request) (int64, bool, error) {
	return 0, false, nil
}

// list returns the models that are there. Windows are those of the models that
// are loaded at the moment.
func (a ollamaAdapter) list(ctx context.Context, key string) ([]protocol.Model, error) {
	var tags, running struct {
		Models []struct {
			Name          string `json:"name"`
			ContextLength int64  `json:"context_length"`
		} `json:"models"`
	}
	if err := a.get(ctx, key, a.baseURL+"/api/tags", &tags); err != nil {
		return nil, err
	}
	windows := map[string]int64{}
	if a.get(ctx, key, a.baseURL+"/api/ps", &running) == nil {
		for _, m := range running.Models {
			windows[m.Name] = m.ContextLength
		}
	}
	models := []protocol.Model{}
	for _, m := range tags.Models {
		if m.Name != "" {
			models = append(models, protocol.Model{ID: m.Name, Window: windows[m.Name]})
		}
	}
	return models, nil
}
