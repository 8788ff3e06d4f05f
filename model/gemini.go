package model

import (
	"context"
	"encoding/base64"
	"errors"
	"net/url"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"google.golang.org/genai"

	"convls/protocol"
)

// geminiAdapter speaks the Gemini API (https://ai.google.dev/api/generate-content).
type geminiAdapter struct{ target }

var _ adapter = geminiAdapter{}

// client makes an SDK client. Kind, key and address are all given, so that it
// takes none of them from the process's environment.
func (a geminiAdapter) client(ctx context.Context, key string) (*genai.Client, error) {
	if key == "" {
		key = "none" // taken out again by the transport
	}
	once := int32(1)
	return genai.NewClient(ctx, &genai.ClientConfig{
		APIKey:     key,
		Backend:    genai.BackendGeminiAPI,
		HTTPClient: a.http,
		HTTPOptions: genai.HTTPOptions{
			BaseURL:      a.baseURL + "/",
			RetryOptions: &genai.HTTPRetryOptions{Attempts: &once},
		},
	})
}

func (a geminiAdapter) stream(ctx context.Context, key string, req Request, emit func(Delta) error) (*Response, error) {
	contents, config, err := a.request(req)
	if err != nil {
		return nil, a.invalid(req.Model, err)
	}
	x := a.begin(ctx, key, shapeEvents)
	defer x.end()
	client, err := a.client(x.ctx, key)
	if err != nil {
		return nil, x.error(req.Model, errors.New("no client for this address"))
	}
	ans := &geminiAnswer{answer: answer{provider: a.provider, emit: emitter(emit)}}
	err = ans.guard(func() error {
		for chunk, err := range client.Models.GenerateContentStream(x.ctx, req.Model, contents, config) {
			if err != nil {
				return err
			}
			if err := ans.chunk(chunk); err != nil {
				return err
			}
		}
		if doc := x.wholeAnswer(); doc != nil {
			return ans.document(x, doc)
		}
		return nil
	})
	res, err := x.finish(req.Model, &ans.answer, err)
	if err == nil && ans.blocked != "" && !ans.started() {
		return nil, &Error{
			Class: ClassRefused, Provider: a.provider, Model: req.Model, Status: 200, Code: ans.blocked,
			Message: "the prompt was blocked",
		}
	}
	return res, err
}

func (a geminiAdapter) request(req Request) ([]*genai.Content, *genai.GenerateContentConfig, error) {
	never := false
	config := &genai.GenerateContentConfig{AutomaticContinuation: &never}
	if strings.TrimSpace(req.System) != "" {
		config.SystemInstruction = &genai.Content{Parts: []*genai.Part{{Text: req.System}}}
	}
	if req.MaxOutput > 0 {
		config.MaxOutputTokens = int32(min(req.MaxOutput, 1<<30))
	}
	if req.Temperature != nil {
		t := float32(*req.Temperature)
		config.Temperature = &t
	}
	if geminiThinks(req.Model) {
		config.ThinkingConfig = &genai.ThinkingConfig{IncludeThoughts: true}
	}
	if len(req.Tools) > 0 {
		tool := &genai.Tool{}
		for _, t := range req.Tools {
			f := &genai.FunctionDeclaration{Name: t.Name, Description: t.Description}
			if len(t.Schema) > 0 {
				schema, err := schemaObject(t.Schema)
				if err != nil {
					return nil, nil, errors.New("the schema of the tool " + t.Name + " is no JSON object")
				}
				f.ParametersJsonSchema = schema
			}
			tool.FunctionDeclarations = append(tool.FunctionDeclarations, f)
		}
		config.Tools = []*genai.Tool{tool}
	}
	if len(req.Schema) > 0 {
		var schema map[string]any
		if err := json.Unmarshal(req.Schema, &schema); err != nil {
			return nil, nil, errors.New("the schema of the answer is no JSON object")
		}
		config.ResponseMIMEType = "application/json"
		config.ResponseJsonSchema = schema
	}
	arranged, err := arrange(req.Messages, a.provider)
	if err != nil {
		return nil, nil, err
	}
	var contents []*genai.Content
	for _, m := range arranged {
		c := &genai.Content{Role: genai.RoleUser}
		if m.Role == RoleAssistant {
			c.Role = genai.RoleModel
		}
		first := true
		for _, p := range m.Parts {
			part, err := geminiPart(p)
			if err != nil {
				return nil, nil, err
			}
			if part == nil {
				continue
			}
			if p.Type == protocol.PartToolCall && first {
				first = false
				if len(part.ThoughtSignature) == 0 && strings.Contains(req.Model, "gemini-3") {
					// Gemini 3 refuses a call that it did not sign; for calls of other models
					// its documentation names this word (thought signatures, FAQ).
					part.ThoughtSignature = []byte("skip_thought_signature_validator")
				}
			}
			c.Parts = append(c.Parts, part)
		}
		// Results and the user's text after them are one turn of the user.
		if last := len(contents) - 1; last >= 0 && contents[last].Role == c.Role {
			contents[last].Parts = append(contents[last].Parts, c.Parts...)
			continue
		}
		if len(c.Parts) > 0 {
			contents = append(contents, c)
		}
	}
	return contents, config, nil
}

// geminiThinks reports whether a model can be asked for its thoughts; others
// refuse the question.
func geminiThinks(model string) bool {
	return strings.Contains(model, "gemini-2.5") || strings.Contains(model, "gemini-3")
}

// geminiPart translates one part. Ids of calls stay with us: Gemini joins calls
// and results by name and order.
func geminiPart(p protocol.Part) (*genai.Part, error) {
	signature, err := base64.StdEncoding.DecodeString(p.Signature)
	if err != nil {
		signature = nil
	}
	switch p.Type {
	case protocol.PartImage:
		return genai.NewPartFromBytes(p.Data, imageType(p)), nil
	case protocol.PartToolCall:
		var args map[string]any
		if err := json.Unmarshal(p.Arguments, &args); err != nil {
			return nil, errors.New("the arguments of a call of " + p.Name + " are no JSON object")
		}
		return &genai.Part{FunctionCall: &genai.FunctionCall{Name: p.Name, Args: args}, ThoughtSignature: signature}, nil
	case protocol.PartToolResult:
		member := "output"
		if p.IsError {
			member = "error"
		}
		return genai.NewPartFromFunctionResponse(p.Name, map[string]any{member: p.Text}), nil
	case protocol.PartReasoning:
		return nil, nil // thoughts are not read back, only signatures
	}
	return &genai.Part{Text: p.Text, ThoughtSignature: signature}, nil
}

// geminiAnswer decodes chunks.
type geminiAnswer struct {
	answer
	blocked string
	calls   int
}

func (a *geminiAnswer) chunk(c *genai.GenerateContentResponse) error {
	if c == nil {
		return nil
	}
	if c.ModelVersion != "" {
		a.model = c.ModelVersion
	}
	if u := c.UsageMetadata; u != nil {
		a.usage = protocol.Usage{
			InputTokens:     int64(u.PromptTokenCount) + int64(u.ToolUsePromptTokenCount),
			OutputTokens:    int64(u.CandidatesTokenCount) + int64(u.ThoughtsTokenCount),
			CacheReadTokens: int64(u.CachedContentTokenCount),
			ReasoningTokens: int64(u.ThoughtsTokenCount),
		}
	}
	if f := c.PromptFeedback; f != nil && f.BlockReason != "" {
		a.blocked, a.stop = string(f.BlockReason), StopRefusal
	}
	for _, cand := range c.Candidates {
		if cand == nil || cand.Index != 0 {
			continue
		}
		if cand.Content != nil {
			for _, p := range cand.Content.Parts {
				if err := a.part(p); err != nil {
					return err
				}
			}
		}
		if err := a.finished(cand.FinishReason); err != nil {
			return err
		}
	}
	return nil
}

func (a *geminiAnswer) part(p *genai.Part) error {
	if p == nil {
		return nil
	}
	signature := base64.StdEncoding.EncodeToString(p.ThoughtSignature)
	switch {
	case p.FunctionCall != nil:
		a.calls++
		call, err := a.begin(protocol.PartToolCall, string(rune(a.calls)))
		if err != nil {
			return err
		}
		call.id, call.name, call.signature = p.FunctionCall.ID, p.FunctionCall.Name, signature
		args := []byte("{}")
		if len(p.FunctionCall.Args) > 0 {
			if args, err = protocol.Marshal(p.FunctionCall.Args); err != nil {
				return err
			}
		}
		return a.add(protocol.PartToolCall, call.key, string(args))
	case p.Thought:
		return a.add(protocol.PartReasoning, "", p.Text)
	}
	if err := a.add(protocol.PartText, "", p.Text); err != nil {
		return err
	}
	if signature != "" {
		if last := len(a.pieces) - 1; last >= 0 && a.pieces[last].kind == protocol.PartText {
			a.pieces[last].signature = signature
		}
	}
	return nil
}

func (a *geminiAnswer) finished(reason genai.FinishReason) error {
	switch reason {
	case "", genai.FinishReasonUnspecified, genai.FinishReasonContinuation:
		return nil
	case genai.FinishReasonStop:
		a.stop = StopStop
	case genai.FinishReasonMaxTokens:
		a.stop = StopLength
	case genai.FinishReasonMalformedFunctionCall, genai.FinishReasonUnexpectedToolCall, genai.FinishReasonTooManyToolCalls, genai.FinishReasonOther:
		return errors.New("the provider ended the answer with the reason " + string(reason))
	default: // SAFETY, RECITATION, BLOCKLIST and their like
		a.stop = StopRefusal
	}
	return nil
}

// document takes a whole answer, or the array of all chunks, that came instead
// of a stream.
func (a *geminiAnswer) document(x *exchange, doc []byte) error {
	var chunks []jsontext.Value
	if doc[0] != '[' {
		chunks = []jsontext.Value{doc}
	} else if err := json.Unmarshal(doc, &chunks); err != nil {
		return err
	}
	for _, raw := range chunks {
		var c genai.GenerateContentResponse
		if err := json.Unmarshal(raw, &c); err != nil {
			return err
		}
		if len(c.Candidates) == 0 && c.PromptFeedback == nil && c.UsageMetadata == nil {
			x.fail(raw)
			return nil
		}
		if err := a.chunk(&c); err != nil {
			return err
		}
	}
	return nil
}

func (a geminiAdapter) count(ctx context.Context, key string, req Request) (int64, bool, error) {
	if a.vendor != "gemini" || len(req.Tools) > 0 {
		// The Gemini API counts no tools and no system prompt apart from contents.
		return 0, false, nil
	}
	contents, _, err := a.request(req)
	if err != nil {
		return 0, false, a.invalid(req.Model, err)
	}
	if strings.TrimSpace(req.System) != "" {
		contents = append([]*genai.Content{{Role: genai.RoleUser, Parts: []*genai.Part{{Text: req.System}}}}, contents...)
	}
	x := a.begin(ctx, key, shapeDocument)
	defer x.end()
	client, err := a.client(x.ctx, key)
	if err != nil {
		return 0, false, x.error(req.Model, errors.New("no client for this address"))
	}
	var n *genai.CountTokensResponse
	err = new(answer).guard(func() (err error) {
		n, err = client.Models.CountTokens(x.ctx, req.Model, contents, nil)
		return err
	})
	if err != nil {
		return 0, false, x.error(req.Model, err)
	}
	return int64(n.TotalTokens), true, nil
}

func (a geminiAdapter) list(ctx context.Context, key string) ([]protocol.Model, error) {
	models := []protocol.Model{}
	token := ""
	for range 20 {
		var page struct {
			Models []struct {
				Name      string   `json:"name"`
				MaxInput  int64    `json:"inputTokenLimit"`
				MaxOutput int64    `json:"outputTokenLimit"`
				Methods   []string `json:"supportedGenerationMethods"`
			} `json:"models"`
			Next string `json:"nextPageToken"`
		}
		if err := a.get(ctx, key, a.baseURL+"/v1beta/models?pageSize=1000"+token, &page); err != nil {
			return nil, err
		}
		for _, m := range page.Models {
			name := strings.TrimPrefix(m.Name, "models/")
			if name == "" || !generates(m.Methods) {
				continue
			}
			models = append(models, protocol.Model{ID: name, Window: m.MaxInput, MaxOutput: m.MaxOutput})
		}
		if page.Next == "" {
			break
		}
		token = "&pageToken=" + url.QueryEscape(page.Next)
	}
	return models, nil
}

// generates reports whether a model answers at all; Gemini lists others too.
func generates(methods []string) bool {
	for _, m := range methods {
		if m == "generateContent" || m == "streamGenerateContent" {
			return true
		}
	}
	return len(methods) == 0
}
