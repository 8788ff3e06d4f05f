package model

import (
	"context"
	"encoding/base64"
	"errors"
	"net/url"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/shared"

	"convls/protocol"
)

// openaiAdapter speaks the chat completions API (https://platform.openai.com/docs/api-reference/chat)
// as OpenAI, OpenRouter, llama.cpp, vLLM, LM Studio and many others serve it.
type openaiAdapter struct{ target }

var _ adapter = openaiAdapter{}

// options never come from the process's environment: services are made without
// the SDK's client, which would read it.
func (a openaiAdapter) options(key string) []option.RequestOption {
	if key == "" {
		key = "none" // taken out again by the transport
	}
	return []option.RequestOption{
		option.WithBaseURL(strings.TrimSuffix(a.baseURL, "/") + "/"),
		option.WithHTTPClient(a.http),
		option.WithAPIKey(key),
		option.WithMaxRetries(0),
	}
}

func (a openaiAdapter) stream(ctx context.Context, key string, req Request, emit func(Delta) error) (*Response, error) {
	params, err := a.params(req)
	if err != nil {
		return nil, a.invalid(req.Model, err)
	}
	x := a.begin(ctx, key, shapeEvents)
	defer x.end()
	service := openai.NewChatCompletionService(a.options(key)...)
	stream := service.NewStreaming(x.ctx, params)
	defer func() { _ = stream.Close() }()
	ans := &openaiAnswer{answer: answer{provider: a.provider, emit: emitter(emit)}}
	err = ans.guard(func() error {
		for stream.Next() {
			if err := ans.chunk(stream.Current()); err != nil {
				return err
			}
		}
		if doc := x.wholeAnswer(); doc != nil {
			return ans.document(x, doc)
		}
		return stream.Err()
	})
	return x.finish(req.Model, &ans.answer, err)
}

// params builds the request.
func (a openaiAdapter) params(req Request) (openai.ChatCompletionNewParams, error) {
	p := openai.ChatCompletionNewParams{
		Model:         req.Model,
		StreamOptions: openai.ChatCompletionStreamOptionsParam{IncludeUsage: openai.Bool(true)},
	}
	messages, err := arrange(req.Messages, a.provider)
	if err != nil {
		return p, err
	}
	if strings.TrimSpace(req.System) != "" {
		p.Messages = append(p.Messages, openai.SystemMessage(req.System))
	}
	lastUser := 0
	for i, m := range messages {
		if m.Role == RoleUser {
			lastUser = i
		}
	}
	for i, m := range messages {
		p.Messages = append(p.Messages, openaiMessages(m, i > lastUser)...)
	}
	if req.MaxOutput > 0 {
		// OpenAI's reasoning models refuse max_tokens, other servers know nothing else.
		if a.vendor == "openai" {
			p.MaxCompletionTokens = openai.Int(req.MaxOutput)
		} else {
			p.MaxTokens = openai.Int(req.MaxOutput)
		}
	}
	if req.Temperature != nil {
		p.Temperature = openai.Float(*req.Temperature)
	}
	for _, t := range req.Tools {
		schema, err := schemaObject(t.Schema)
		if err != nil {
			return p, errors.New("the schema of the tool " + t.Name + " is no JSON object")
		}
		f := shared.FunctionDefinitionParam{Name: t.Name, Parameters: schema}
		if t.Description != "" {
			f.Description = openai.String(t.Description)
		}
		p.Tools = append(p.Tools, openai.ChatCompletionFunctionTool(f))
	}
	if len(req.Schema) > 0 {
		schema, err := schemaObject(req.Schema)
		if err != nil {
			return p, errors.New("the schema of the answer is no JSON object")
		}
		format := shared.ResponseFormatJSONSchemaParam{JSONSchema: shared.ResponseFormatJSONSchemaJSONSchemaParam{Name: "answer", Schema: schema}}
		if strictSchema(schema) {
			format.JSONSchema.Strict = openai.Bool(true)
		}
		p.ResponseFormat.OfJSONSchema = &format
	}
	return p, nil
}

// openaiMessages translates one arranged message; a tool message becomes one
// message a result. Reasoning goes back only inside the present tool loop, in
// the member that it came in: DeepSeek, Kimi and gpt-oss want it there and
// nowhere else.
func openaiMessages(m Message, inLoop bool) []openai.ChatCompletionMessageParamUnion {
	switch m.Role {
	case RoleTool:
		var out []openai.ChatCompletionMessageParamUnion
		for _, p := range m.Parts {
			out = append(out, openai.ToolMessage(p.Text, p.CallID))
		}
		return out
	case RoleAssistant:
		var msg openai.ChatCompletionAssistantMessageParam
		if text := joinText(m.Parts); text != "" {
			msg.Content.OfString = param.NewOpt(text)
		}
		extra := map[string]any{}
		for _, p := range m.Parts {
			switch {
			case p.Type == protocol.PartToolCall:
				msg.ToolCalls = append(msg.ToolCalls, openai.ChatCompletionMessageToolCallUnionParam{
					OfFunction: &openai.ChatCompletionMessageFunctionToolCallParam{
						ID:       p.CallID,
						Function: openai.ChatCompletionMessageFunctionToolCallFunctionParam{Name: p.Name, Arguments: string(p.Arguments)},
					},
				})
			case p.Type == protocol.PartReasoning && inLoop && (p.Signature == "reasoning" || p.Signature == "reasoning_content"):
				before, _ := extra[p.Signature].(string)
				extra[p.Signature] = before + p.Text
			}
		}
		if len(extra) > 0 {
			msg.SetExtraFields(extra)
		}
		if text := joinText(m.Parts); text == "" && len(msg.ToolCalls) == 0 {
			return nil
		}
		return []openai.ChatCompletionMessageParamUnion{{OfAssistant: &msg}}
	}
	var parts []openai.ChatCompletionContentPartUnionParam
	images := false
	for _, p := range m.Parts {
		if p.Type == protocol.PartImage {
			images = true
			parts = append(parts, openai.ImageContentPart(openai.ChatCompletionContentPartImageImageURLParam{URL: dataURL(p)}))
			continue
		}
		parts = append(parts, openai.TextContentPart(p.Text))
	}
	if !images {
		// Servers of text models know only a string.
		return []openai.ChatCompletionMessageParamUnion{openai.UserMessage(joinText(m.Parts))}
	}
	return []openai.ChatCompletionMessageParamUnion{openai.UserMessage(parts)}
}

// dataURL spells an image as a URL (RFC 2397).
func dataURL(p protocol.Part) string {
	return "data:" + imageType(p) + ";base64," + base64.StdEncoding.EncodeToString(p.Data)
}

// openaiAnswer decodes chunks.
type openaiAnswer struct {
	answer
	reasoning string // the member that reasoning comes in
	refused   bool
	// A call is known by its index. Servers that leave the index out are told apart
	// by the id.
	ids map[int64]string
	gen map[int64]int
}

func (a *openaiAnswer) chunk(c openai.ChatCompletionChunk) error {
	if c.Model != "" {
		a.model = c.Model
	}
	if u := c.Usage; u.PromptTokens > 0 || u.CompletionTokens > 0 {
		a.usage = openaiUsage(u)
	}
	for _, choice := range c.Choices {
		if choice.Index != 0 {
			continue
		}
		d := choice.Delta
		if err := a.reason(func(member string) string { return extraString(d.JSON.ExtraFields[member].Raw()) }); err != nil {
			return err
		}
		if err := a.add(protocol.PartText, "", d.Content); err != nil {
			return err
		}
		if d.Refusal != "" {
			a.refused = true
			if err := a.add(protocol.PartText, "", d.Refusal); err != nil {
				return err
			}
		}
		for _, call := range d.ToolCalls {
			if err := a.toolCall(call.Index, call.ID, call.Function.Name, argumentText(call.Function.JSON.Arguments.Raw(), call.Function.Arguments)); err != nil {
				return err
			}
		}
		if choice.FinishReason != "" {
			if err := a.finished(choice.FinishReason); err != nil {
				return err
			}
		}
	}
	return nil
}

// reason adds reasoning from whichever member the server uses; some send the
// same text in both.
func (a *openaiAnswer) reason(member func(string) string) error {
	for _, name := range []string{"reasoning_content", "reasoning"} {
		text := member(name)
		if text == "" || (a.reasoning != "" && a.reasoning != name) {
			continue
		}
		a.reasoning = name
		if err := a.add(protocol.PartReasoning, "", text); err != nil {
			return err
		}
		a.pieces[len(a.pieces)-1].signature = name
	}
	return nil
}

func (a *openaiAnswer) toolCall(index int64, id, name, args string) error {
	if a.ids == nil {
		a.ids, a.gen = map[int64]string{}, map[int64]int{}
	}
	if known := a.ids[index]; id != "" && known != "" && id != known && name != "" {
		a.gen[index]++
		a.ids[index] = id
	} else if known == "" {
		a.ids[index] = id
	}
	key := strconv.FormatInt(index, 10) + "." + strconv.Itoa(a.gen[index])
	p, err := a.call(key)
	if err != nil {
		return err
	}
	if p.id == "" {
		p.id = id
	}
	if p.name == "" {
		p.name = name
	}
	return a.add(protocol.PartToolCall, key, args)
}

func (a *openaiAnswer) finished(reason string) error {
	stop, ok := stopReason(reason)
	if !ok {
		return errors.New("the server ended the answer with the reason " + reason)
	}
	a.stop = stop
	if a.refused {
		a.stop = StopRefusal
	}
	return nil
}

// document takes a whole answer that came instead of a stream.
func (a *openaiAnswer) document(x *exchange, doc []byte) error {
	var c openai.ChatCompletion
	if err := json.Unmarshal(doc, &c); err != nil {
		return err
	}
	if len(c.Choices) == 0 {
		x.fail(doc)
		return nil
	}
	a.model = c.Model
	a.usage = openaiUsage(c.Usage)
	choice := c.Choices[0]
	m := choice.Message
	if err := a.reason(func(member string) string { return extraString(m.JSON.ExtraFields[member].Raw()) }); err != nil {
		return err
	}
	if err := a.add(protocol.PartText, "", m.Content+m.Refusal); err != nil {
		return err
	}
	a.refused = m.Refusal != ""
	for i, call := range m.ToolCalls {
		if err := a.toolCall(int64(i), call.ID, call.Function.Name, call.Function.Arguments); err != nil {
			return err
		}
	}
	if choice.FinishReason == "" {
		return nil
	}
	return a.finished(choice.FinishReason)
}

func openaiUsage(u openai.CompletionUsage) protocol.Usage {
	return protocol.Usage{
		InputTokens:     u.PromptTokens,
		OutputTokens:    u.CompletionTokens,
		CacheReadTokens: u.PromptTokensDetails.CachedTokens,
		ReasoningTokens: u.CompletionTokensDetails.ReasoningTokens,
	}
}

// argumentText returns a piece of arguments; some servers send them as an object
// and not as its text.
func argumentText(raw, text string) string {
	if raw != "" && raw[0] == '{' {
		return raw
	}
	return text
}

// extraString decodes a member that the SDK does not know; "" if it is no string.
func extraString(raw string) string {
	if raw == "" || raw[0] != '"' {
		return ""
	}
	var s string
	if json.Unmarshal([]byte(raw), &s, jsontext.AllowInvalidUTF8(true)) != nil {
		return ""
	}
	return s
}

// schemaObject decodes a JSON Schema; none is the schema of no arguments.
func schemaObject(schema protocol.Raw) (map[string]any, error) {
	if len(schema) == 0 {
		return map[string]any{"type": "object", "properties": map[string]any{}}, nil
	}
	var m map[string]any
	if err := json.Unmarshal(schema, &m); err != nil {
		return nil, err
	}
	if m == nil {
		return nil, errors.New("null")
	}
	if m["type"] == nil {
		m["type"] = "object"
	}
	if m["type"] == "object" && m["properties"] == nil {
		m["properties"] = map[string]any{}
	}
	return m, nil
}

// strictSchema reports whether OpenAI can enforce the schema: each object names
// all its properties as required and allows no others (structured outputs,
// "supported schemas").
func strictSchema(v any) bool {
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			if !strictSchema(e) {
				return false
			}
		}
	case map[string]any:
		if properties, ok := v["properties"].(map[string]any); ok {
			required, _ := v["required"].([]any)
			if v["additionalProperties"] != false || len(required) != len(properties) {
				return false
			}
			for _, p := range properties {
				if !strictSchema(p) {
					return false
				}
			}
		}
		for _, name := range []string{"items", "anyOf", "$defs", "definitions"} {
			switch sub := v[name].(type) {
			case []any:
				if !strictSchema(sub) {
					return false
				}
			case map[string]any:
				if name == "items" {
					if !strictSchema(sub) {
						return false
					}
					continue
				}
				for _, s := range sub {
					if !strictSchema(s) {
						return false
					}
				}
			}
		}
	}
	return true
}

func (a openaiAdapter) count(context.Context, string, Request) (int64, bool, error) {
	return 0, false, nil
}

// openaiModel is an entry of /models, with the members that servers add to say
// how large the window is: OpenRouter and Together context_length, vLLM
// max_model_len, llama.cpp meta, LM Studio and Groq others.
type openaiModel struct {
	ID                  string `json:"id"`
	OwnedBy             string `json:"owned_by"`
	ContextLength       int64  `json:"context_length"`
	ContextWindow       int64  `json:"context_window"`
	MaxModelLen         int64  `json:"max_model_len"`
	MaxContextLength    int64  `json:"max_context_length"`
	MaxCompletionTokens int64  `json:"max_completion_tokens"`
	Meta                *struct {
		NCtx      int64 `json:"n_ctx"`
		NCtxTrain int64 `json:"n_ctx_train"`
	} `json:"meta"`
	TopProvider *struct {
		ContextLength       int64 `json:"context_length"`
		MaxCompletionTokens int64 `json:"max_completion_tokens"`
	} `json:"top_provider"`
	Pricing jsontext.Value `json:"pricing"`
}

func (a openaiAdapter) list(ctx context.Context, key string) ([]protocol.Model, error) {
	var reply struct {
		Data []openaiModel `json:"data"`
	}
	if err := a.get(ctx, key, strings.TrimSuffix(a.baseURL, "/")+"/models", &reply); err != nil {
		return nil, err
	}
	models := []protocol.Model{}
	for _, m := range reply.Data {
		if m.ID == "" {
			continue
		}
		out := protocol.Model{ID: m.ID, Window: max(m.ContextLength, m.ContextWindow, m.MaxModelLen, m.MaxContextLength), MaxOutput: m.MaxCompletionTokens}
		if t := m.TopProvider; t != nil {
			if t.ContextLength > 0 {
				out.Window = t.ContextLength
			}
			out.MaxOutput = t.MaxCompletionTokens
		}
		if m.Meta != nil && m.Meta.NCtx > 0 {
			out.Window = m.Meta.NCtx
		} else if m.Meta != nil && m.OwnedBy == "llamacpp" {
			out.Window = a.llamaWindow(ctx, key, m.Meta.NCtxTrain)
		}
		out.InputPrice, out.OutputPrice, out.CacheReadPrice = openrouterPrices(m.Pricing)
		models = append(models, out)
	}
	return models, nil
}

// llamaWindow asks llama.cpp's /props for the context that it was started with,
// which can be far smaller than what the model was trained on.
func (a openaiAdapter) llamaWindow(ctx context.Context, key string, trained int64) int64 {
	u, err := url.Parse(a.baseURL)
	if err != nil {
		return trained
	}
	u.Path = strings.TrimSuffix(strings.TrimSuffix(u.Path, "/"), "/v1") + "/props"
	var props struct {
		Settings struct {
			NCtx int64 `json:"n_ctx"`
		} `json:"default_generation_settings"`
	}
	if a.get(ctx, key, u.String(), &props) != nil || props.Settings.NCtx <= 0 {
		return trained
	}
	return props.Settings.NCtx
}

// openrouterPrices reads dollars a token, spelt as strings, into dollars a
// million tokens.
func openrouterPrices(raw jsontext.Value) (input, output, cacheRead float64) {
	var p struct {
		Prompt     string `json:"prompt"`
		Completion string `json:"completion"`
		CacheRead  string `json:"input_cache_read"`
	}
	if raw.Kind() != '{' || json.Unmarshal(raw, &p) != nil {
		return 0, 0, 0
	}
	return perMillion(p.Prompt), perMillion(p.Completion), perMillion(p.CacheRead)
}

func perMillion(s string) float64 {
	v, err := strconv.ParseFloat(s, 64)
	if err != nil || v < 0 || v > 1 {
		return 0
	}
	return v * 1e6
}
