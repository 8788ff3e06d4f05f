package model

import (
	"context"
	"encoding/base64"
	"errors"
	"strconv"
	"strings"

	"github.com/anthropics/anthropic-sdk-go/v2"
	"github.com/anthropics/anthropic-sdk-go/v2/option"
	"github.com/anthropics/anthropic-sdk-go/v2/packages/param"
	"github.com/go-json-experiment/json"

	"convls/protocol"
)

// anthropicAdapter speaks the messages API (https://docs.anthropic.com/en/api/messages).
type anthropicAdapter struct {
	target
	// maxOutput is what an answer may have where the request sets no cap, because
	// the API insists on one.
	maxOutput func(model string) int64
}

var _ adapter = anthropicAdapter{}

func (a anthropicAdapter) options(key string) []option.RequestOption {
	if key == "" {
		key = "none" // taken out again by the transport
	}
	options := []option.RequestOption{
		option.WithBaseURL(a.baseURL + "/"),
		option.WithHTTPClient(a.http),
		option.WithAPIKey(key),
		option.WithMaxRetries(0),
	}
	if a.vendor != "anthropic" {
		// Gateways know the older name of the header.
		options = append(options, option.WithHeader("X-Api-Key", key))
	}
	return options
}

func (a anthropicAdapter) stream(ctx context.Context, key string, req Request, emit func(Delta) error) (*Response, error) {
	params, err := a.params(req)
	if err != nil {
		return nil, a.invalid(req.Model, err)
	}
	x := a.begin(ctx, key, shapeEvents)
	defer x.end()
	service := anthropic.NewMessageService(a.options(key)...)
	stream := service.NewStreaming(x.ctx, params)
	defer func() { _ = stream.Close() }()
	ans := &anthropicAnswer{answer: answer{provider: a.provider, emit: emitter(emit)}}
	err = ans.guard(func() error {
		for stream.Next() {
			if err := ans.event(stream.Current()); err != nil {
				return err
			}
		}
		if doc := x.wholeAnswer(); doc != nil {
			return ans.document(x, doc)
		}
		return stream.Err()
	})
	return a.finish(x, req.Model, ans, err)
}

// finish also turns the stop reason model_context_window_exceeded into an
// overflow if it came instead of an answer; with some answer before it, the
// answer was cut for length.
func (a anthropicAdapter) finish(x *exchange, model string, ans *anthropicAnswer, sdk error) (*Response, error) {
	res, err := x.finish(model, &ans.answer, sdk)
	if err == nil && ans.windowFull && !ans.started() {
		return nil, &Error{
			Class: ClassContextOverflow, Provider: a.provider, Model: model, Status: 200,
			Code: string(anthropic.StopReasonModelContextWindowExceeded), Message: "the prompt fills the model's context window",
		}
	}
	return res, err
}

func (a anthropicAdapter) params(req Request) (anthropic.MessageNewParams, error) {
	p := anthropic.MessageNewParams{Model: req.Model, MaxTokens: req.MaxOutput}
	if p.MaxTokens <= 0 {
		p.MaxTokens = a.maxOutput(req.Model)
	}
	messages, tools, err := a.prompt(req)
	if err != nil {
		return p, err
	}
	p.Messages, p.Tools = messages, tools
	if strings.TrimSpace(req.System) != "" {
		p.System = []anthropic.TextBlockParam{{Text: req.System}}
	}
	if req.Temperature != nil {
		// The SDK dropped it, because new models refuse it; older ones take it.
		p.SetExtraFields(map[string]any{"temperature": *req.Temperature})
	}
	if len(req.Schema) > 0 {
		var schema map[string]any
		if err := json.Unmarshal(req.Schema, &schema); err != nil {
			return p, errors.New("the schema of the answer is no JSON object")
		}
		p.OutputConfig.Format = anthropic.JSONOutputFormatParam{Schema: schema}
	}
	if a.vendor == "anthropic" {
		// The prefix of a conversation is read again at each turn.
		p.CacheControl = anthropic.NewCacheControlEphemeralParam()
	}
	return p, nil
}

func (a anthropicAdapter) prompt(req Request) ([]anthropic.MessageParam, []anthropic.ToolUnionParam, error) {
	arranged, err := arrange(req.Messages, a.provider)
	if err != nil {
		return nil, nil, err
	}
	var messages []anthropic.MessageParam
	var blocks []anthropic.ContentBlockParamUnion
	flush := func(role string) {
		if len(blocks) == 0 {
			return
		}
		if role == RoleAssistant {
			messages = append(messages, anthropic.NewAssistantMessage(blocks...))
		} else {
			messages = append(messages, anthropic.NewUserMessage(blocks...))
		}
		blocks = nil
	}
	for i, m := range arranged {
		for _, p := range m.Parts {
			blocks = append(blocks, anthropicBlock(p))
		}
		if m.Role == RoleAssistant && i == len(arranged)-1 {
			trimTrailing(blocks)
		}
		// Results and the user's text after them are one message of the user.
		if m.Role == RoleTool && i+1 < len(arranged) && arranged[i+1].Role == RoleUser {
			continue
		}
		flush(m.Role)
	}
	var tools []anthropic.ToolUnionParam
	for _, t := range req.Tools {
		schema, err := schemaObject(t.Schema)
		if err != nil {
			return nil, nil, errors.New("the schema of the tool " + t.Name + " is no JSON object")
		}
		tool := anthropic.ToolParam{Name: t.Name, InputSchema: param.Override[anthropic.ToolInputSchemaParam](schema)}
		if t.Description != "" {
			tool.Description = anthropic.String(t.Description)
		}
		tools = append(tools, anthropic.ToolUnionParam{OfTool: &tool})
	}
	return messages, tools, nil
}

// redactedMark marks the signature of reasoning that the provider encrypted.
const redactedMark = "redacted:"

func anthropicBlock(p protocol.Part) anthropic.ContentBlockParamUnion {
	switch p.Type {
	case protocol.PartImage:
		return anthropic.NewImageBlockBase64(imageType(p), base64.StdEncoding.EncodeToString(p.Data))
	case protocol.PartReasoning:
		if data, ok := strings.CutPrefix(p.Signature, redactedMark); ok {
			return anthropic.NewRedactedThinkingBlock(data)
		}
		return anthropic.NewThinkingBlock(p.Signature, p.Text)
	case protocol.PartToolCall:
		return anthropic.NewToolUseBlock(p.CallID, p.Arguments, p.Name)
	case protocol.PartToolResult:
		return anthropic.NewToolResultBlock(p.CallID, p.Text, p.IsError)
	}
	return anthropic.NewTextBlock(p.Text)
}

// trimTrailing takes spaces from the end of an answer that the model is to go
// on with: the API refuses them.
func trimTrailing(blocks []anthropic.ContentBlockParamUnion) {
	if len(blocks) == 0 {
		return
	}
	if t := blocks[len(blocks)-1].OfText; t != nil {
		t.Text = strings.TrimRight(t.Text, " \t\r\n")
	}
}

// anthropicAnswer decodes events.
type anthropicAnswer struct {
	answer
	stopReason string
	windowFull bool
}

func (a *anthropicAnswer) event(e anthropic.MessageStreamEventUnion) error {
	key := strconv.FormatInt(e.Index, 10)
	switch e.Type {
	case "message_start":
		a.model = e.Message.Model
		u := e.Message.Usage
		a.input(u.InputTokens, u.CacheReadInputTokens, u.CacheCreationInputTokens)
		a.usage.OutputTokens = u.OutputTokens
	case "content_block_start":
		b := e.ContentBlock
		return a.block(key, b.Type, b.ID, b.Name, b.Text, b.Thinking, b.Signature, b.Data)
	case "content_block_delta":
		switch e.Delta.Type {
		case "text_delta":
			return a.add(protocol.PartText, key, e.Delta.Text)
		case "thinking_delta":
			return a.add(protocol.PartReasoning, key, e.Delta.Thinking)
		case "signature_delta":
			return a.sign(key, e.Delta.Signature)
		case "input_json_delta":
			if a.find(protocol.PartToolCall, key) < 0 {
				return nil // a tool that the server runs itself
			}
			return a.add(protocol.PartToolCall, key, e.Delta.PartialJSON)
		}
	case "message_delta":
		if e.Delta.StopReason != "" {
			a.stopReason = string(e.Delta.StopReason)
		}
		// Counts are totals; a gateway may leave out the input's.
		u := e.Usage
		if u.InputTokens > 0 {
			a.input(u.InputTokens, u.CacheReadInputTokens, u.CacheCreationInputTokens)
		}
		if u.OutputTokens > 0 {
			a.usage.OutputTokens = u.OutputTokens
		}
		a.usage.ReasoningTokens = u.OutputTokensDetails.ThinkingTokens
	case "message_stop":
		a.finished(a.stopReason)
	}
	return nil
}

func (a *anthropicAnswer) block(key, kind, id, name, text, thinking, signature, data string) error {
	switch kind {
	case "text":
		return a.add(protocol.PartText, key, text)
	case "thinking":
		if err := a.add(protocol.PartReasoning, key, thinking); err != nil || signature == "" {
			return err
		}
		return a.sign(key, signature)
	case "redacted_thinking":
		p, err := a.begin(protocol.PartReasoning, key)
		p.signature = redactedMark + data
		return err
	case "tool_use":
		p, err := a.call(key)
		p.id, p.name = id, name
		return err
	}
	return nil
}

// sign puts the signature on the reasoning; its text may be empty.
func (a *anthropicAnswer) sign(key, signature string) error {
	i := a.find(protocol.PartReasoning, key)
	if i < 0 {
		p, err := a.begin(protocol.PartReasoning, key)
		p.signature = signature
		return err
	}
	a.pieces[i].signature += signature
	return nil
}

// input counts what came from the cache and what went into it as input too.
func (a *anthropicAnswer) input(fresh, read, written int64) {
	a.usage.InputTokens = believableCount(fresh) + believableCount(read) + believableCount(written)
	a.usage.CacheReadTokens = read
	a.usage.CacheWriteTokens = written
}

func (a *anthropicAnswer) finished(reason string) {
	switch anthropic.StopReason(reason) {
	case anthropic.StopReasonMaxTokens:
		a.stop = StopLength
	case anthropic.StopReasonToolUse:
		a.stop = StopToolCalls
	case anthropic.StopReasonRefusal:
		a.stop = StopRefusal
	case anthropic.StopReasonModelContextWindowExceeded:
		a.stop, a.windowFull = StopLength, true
	default:
		a.stop = StopStop
	}
}

// document takes a whole answer that came instead of a stream.
func (a *anthropicAnswer) document(x *exchange, doc []byte) error {
	var m anthropic.Message
	if err := json.Unmarshal(doc, &m); err != nil {
		return err
	}
	if m.Type != "message" {
		x.fail(doc)
		return nil
	}
	a.model = m.Model
	a.input(m.Usage.InputTokens, m.Usage.CacheReadInputTokens, m.Usage.CacheCreationInputTokens)
	a.usage.OutputTokens = m.Usage.OutputTokens
	for i, b := range m.Content {
		key := strconv.Itoa(i)
		if err := a.block(key, b.Type, b.ID, b.Name, b.Text, b.Thinking, b.Signature, b.Data); err != nil {
			return err
		}
		if b.Type == "tool_use" {
			if err := a.add(protocol.PartToolCall, key, string(b.Input)); err != nil {
				return err
			}
		}
	}
	if m.StopReason != "" {
		a.finished(string(m.StopReason))
	}
	return nil
}

func (a anthropicAdapter) count(ctx context.Context, key string, req Request) (int64, bool, error) {
	if a.vendor != "anthropic" {
		return 0, false, nil // gateways rarely have it
	}
	messages, tools, err := a.prompt(req)
	if err != nil {
		return 0, false, a.invalid(req.Model, err)
	}
	p := anthropic.MessageCountTokensParams{Model: req.Model, Messages: messages}
	for _, t := range tools {
		p.Tools = append(p.Tools, anthropic.MessageCountTokensToolUnionParam{OfTool: t.OfTool})
	}
	if strings.TrimSpace(req.System) != "" {
		p.System = anthropic.MessageCountTokensParamsSystemUnion{OfString: anthropic.String(req.System)}
	}
	x := a.begin(ctx, key, shapeDocument)
	defer x.end()
	service := anthropic.NewMessageService(a.options(key)...)
	n, err := service.CountTokens(x.ctx, p)
	if err != nil {
		return 0, false, x.error(req.Model, err)
	}
	return n.InputTokens, true, nil
}

func (a anthropicAdapter) list(ctx context.Context, key string) ([]protocol.Model, error) {
	models := []protocol.Model{}
	service := anthropic.NewModelService(a.options(key)...)
	params := anthropic.ModelListParams{Limit: anthropic.Int(1000)}
	for range 20 {
		page, err := func() (page []anthropic.ModelInfo, err error) {
			x := a.begin(ctx, key, shapeDocument)
			defer x.end()
			reply, err := service.List(x.ctx, params)
			if err != nil {
				return nil, x.error("", err)
			}
			if !reply.HasMore {
				params.AfterID = param.Opt[string]{}
			} else {
				params.AfterID = anthropic.String(reply.LastID)
			}
			return reply.Data, nil
		}()
		if err != nil {
			return nil, err
		}
		for _, m := range page {
			if m.ID != "" {
				models = append(models, protocol.Model{ID: m.ID, Window: m.MaxInputTokens, MaxOutput: m.MaxTokens})
			}
		}
		if params.AfterID.Value == "" {
			break
		}
	}
	return models, nil
}
