package turn

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.uber.org/zap"

	"convls/protocol"
	"convls/store"
)

// toolTimeout is how long a client may take for a tool call: a person may have to
// approve it.
const toolTimeout = 10 * time.Minute

// compileTools checks the declarations of tools and returns their schemas by name.
func compileTools(tools []protocol.ToolDeclaration) (map[string]*jsonschema.Schema, error) {
	schemas := make(map[string]*jsonschema.Schema, len(tools))
	for _, t := range tools {
		if t.Name == "" || len(t.Name) > 64 {
			return nil, protocol.Errorf(protocol.CodeInvalidParams, "a tool's name has 1 to 64 characters, not %q", t.Name)
		}
		if _, twice := schemas[t.Name]; twice {
			return nil, protocol.Errorf(protocol.CodeInvalidParams, "tool %q is declared twice", t.Name)
		}
		switch t.Approval {
		case "", "always", "once", "never":
		default:
			return nil, protocol.Errorf(protocol.CodeInvalidParams, "approval of tool %q is always, once or never, not %q", t.Name, t.Approval)
		}
		schemas[t.Name] = nil
		if len(t.Schema) == 0 {
			continue
		}
		schema, err := compileSchema(t.Schema)
		if err != nil {
			return nil, protocol.Errorf(protocol.CodeInvalidParams, "the schema of tool %q: %v", t.Name, err)
		}
		schemas[t.Name] = schema
	}
	return schemas, nil
}

func compileSchema(raw protocol.Raw) (*jsonschema.Schema, error) {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		return nil, err
	}
	c := jsonschema.NewCompiler()
	c.UseLoader(noLoader{}) // a schema must not make us read files or the network
	if err := c.AddResource("tool.json", doc); err != nil {
		return nil, err
	}
	return c.Compile("tool.json")
}

type noLoader struct{}

func (noLoader) Load(url string) (any, error) {
	return nil, fmt.Errorf("a schema can not refer to %s", url)
}

// runTools has the client carry out the calls of a reply, one after the other, as
// the model listed them, and seals their nodes. It returns false when the turn was
// ended meanwhile: what had no result then is sealed without one.
func (e *Engine) runTools(r *run, calls []toolCall) bool {
	schemas, err := compileTools(r.tools)
	if err != nil {
		schemas = nil // they were checked at admission
	}
	alive := true
	for _, c := range calls {
		var f store.Final
		if alive = alive && r.ctx.Err() == nil; alive {
			f = e.runTool(r, schemas, c)
			alive = r.ctx.Err() == nil
		} else {
			f = toolFinal(c, endOf(r.ctx), nil)
		}
		if err := r.writer.sealTool(c.node, f); err != nil {
			e.Logger.Error("a tool's result can not be written", zap.String("session", r.sess.ID()), zap.String("node", c.node.ID), zap.Error(err))
			return false
		}
	}
	return alive
}

// runTool carries out one call. Whatever goes wrong with it becomes its result:
// the model is told and can do something else.
func (e *Engine) runTool(r *run, schemas map[string]*jsonschema.Schema, c toolCall) store.Final {
	began := time.Now()
	failed := func(format string, args ...any) store.Final {
		text := fmt.Sprintf(format, args...)
		f := toolFinal(c, protocol.StatusFailed, &protocol.Part{Type: protocol.PartToolResult, CallID: c.part.CallID, Text: text, IsError: true})
		f.Content.DurationMS = time.Since(began).Milliseconds()
		return f
	}
	schema, declared := schemas[c.part.Name]
	if !declared {
		return failed("there is no tool named %q", c.part.Name)
	}
	if err := checkArguments(schema, c.part.Arguments); err != nil {
		return failed("the arguments do not fit the tool's schema: %v", err)
	}
	limit := toolTimeout
	if ms := r.env.Settings.Turn.ToolTimeoutMS; ms > 0 {
		limit = time.Duration(ms) * time.Millisecond
	}
	ctx, cancel := context.WithTimeout(r.ctx, limit)
	defer cancel()
	call := protocol.ToolCallParams{SessionID: r.sess.ID(), NodeID: c.node.ID, Name: c.part.Name, Arguments: c.part.Arguments, Approval: approvalOf(r.tools, c.part.Name)}
	result, err := r.env.Client.CallTool(ctx, call)
	switch {
	case err != nil && r.ctx.Err() != nil:
		return toolFinal(c, endOf(r.ctx), nil)
	case errors.Is(err, context.DeadlineExceeded):
		return failed("the tool gave no result within %s", limit)
	case err != nil:
		return failed("the tool could not be carried out: %v", err)
	}
	f := toolFinal(c, protocol.StatusSealed, resultPart(c, result))
	f.Content.DurationMS = time.Since(began).Milliseconds()
	for _, p := range result.Content {
		if p.Type == protocol.PartImage {
			f.Content.Parts = append(f.Content.Parts, p)
		}
	}
	return f
}

// resultPart joins the texts of a client's answer.
func resultPart(c toolCall, result protocol.ToolCallResult) *protocol.Part {
	p := &protocol.Part{Type: protocol.PartToolResult, CallID: c.part.CallID, IsError: result.IsError}
	for _, part := range result.Content {
		if part.Text == "" {
			continue
		}
		if p.Text != "" {
			p.Text += "\n"
		}
		p.Text += part.Text
	}
	return p
}

// toolFinal is a tool node's end: the call, and its result if there is one.
func toolFinal(c toolCall, status protocol.Status, result *protocol.Part) store.Final {
	parts := []protocol.Part{c.part}
	if result != nil {
		parts = append(parts, *result)
	}
	return store.Final{Status: status, Content: store.Content{Parts: parts}}
}

func checkArguments(schema *jsonschema.Schema, args protocol.Raw) error {
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(args))
	if err != nil {
		return err
	}
	if _, object := v.(map[string]any); !object {
		return errors.New("they are not a JSON object")
	}
	if schema == nil {
		return nil
	}
	return schema.Validate(v)
}

func approvalOf(tools []protocol.ToolDeclaration, name string) string {
	for _, t := range tools {
		if t.Name == name {
			return t.Approval
		}
	}
	return ""
}
