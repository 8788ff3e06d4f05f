package transfer

import (
	"encoding/base64"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"convls/protocol"
	"convls/store"
)

// agentContent is a text, or blocks.
type agentContent []agentBlock

// agentBlock is a piece of content: text, thinking, image, toolCall, or inside of
// a user's message toolResult.
type agentBlock struct {
	Type      string `json:"type"`
	Text      string `json:"text"`
	Signature string `json:"textSignature"`

	Thinking          string `json:"thinking"`
	ThinkingSignature string `json:"thinkingSignature"`

	Data     string `json:"data"`
	MIMEType string `json:"mimeType"`

	ID               string       `json:"id"`
	Name             string       `json:"name"`
	Arguments        protocol.Raw `json:"arguments"`
	PartialJSON      string       `json:"partialJson"`
	ThoughtSignature string       `json:"thoughtSignature"`

	ToolCallID string       `json:"toolCallId"`
	ToolName   string       `json:"toolName"`
	Content    agentContent `json:"content"`
	IsError    bool         `json:"isError"`
}

// UnmarshalJSONFrom accepts a string as one block of text.
func (c *agentContent) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	if d.PeekKind() == '"' {
		tok, err := d.ReadToken()
		if err != nil {
			return err
		}
		*c = agentContent{{Type: "text", Text: tok.String()}}
		return nil
	}
	var blocks []agentBlock
	if err := json.UnmarshalDecode(d, &blocks); err != nil {
		return err
	}
	*c = blocks
	return nil
}

// blockCall is the type of a block that calls a tool.
const blockCall = "toolCall"

// The roles of messages.
const (
	roleUser      = "user"
	roleAssistant = "assistant"
	roleResult    = "toolResult"
	roleBash      = "bashExecution"
	roleCustom    = "custom"
	roleHook      = "hookMessage" // custom, before version 3
)

func (a *agentSession) message(i int) {
	e := a.entries[i]
	m := &e.Message
	switch m.Role {
	case roleUser, roleCustom, roleHook:
		a.user(i)
	case roleAssistant:
		a.assistant(i)
	case roleResult:
		a.result(i, &result{entry: i, line: e.line, id: m.ToolCallID, name: m.ToolName, parts: a.parts(e.line, m.Content, ""), isError: m.IsError,
			rest: m.Rest, created: a.when(e)})
	case roleBash:
		a.bash(i)
	default:
		parts := a.parts(e.line, m.Content, "")
		if len(parts) == 0 {
			a.leave(e.line, e.ID, "a message of the unknown role %q was left out: it has no text", m.Role)
			return
		}
		a.leave(e.line, e.ID, "a message of the unknown role %q is kept as a notice, which models do not read", m.Role)
		a.notice(i, parts, m.Rest)
	}
}

// when returns when the message was made; the entry's own time is when it was
// written to the file.
func (a *agentSession) when(e *agentEntry) time.Time {
	if !e.Message.Timestamp.IsZero() {
		return e.Message.Timestamp.Time
	}
	return timeOf(e.Timestamp)
}

// nodeID returns the entry's id if it can be the node's.
func (a *agentSession) nodeID(id string) string {
	if !validID(id) || a.used[id] {
		id = store.NewID("")
	}
	a.used[id] = true
	return id
}

// put adds a chain node after the one that the conversation stands at.
func (a *agentSession) put(i int, kind protocol.Kind, parts []protocol.Part, rest map[string]protocol.Raw) *nodeRecord {
	e := a.entries[i]
	n := &nodeRecord{ID: a.nodeID(e.ID), Kind: kind, Status: protocol.StatusSealed, CreatedAt: a.when(e), Content: parts,
		Metadata: map[string]protocol.Raw{}, line: e.line}
	maps.Copy(n.Metadata, rest)
	s := &step{node: n, pred: a.at[i]}
	n.Predecessor = s.pred.id(a.root.ID)
	s.first, s.depth = s, 1
	if s.pred != nil {
		s.first, s.depth, s.assistant = s.pred.first, s.pred.depth+1, s.pred.assistant
	}
	if kind == protocol.KindAssistant {
		s.assistant = s
	}
	a.at[i], a.owner[i] = s, s
	if a.holds[i] == nil {
		a.holds[i] = s
	}
	a.steps = append(a.steps, s)
	a.im.count(n)
	return n
}

// say adds a user node with a text.
func (a *agentSession) say(i int, text string, rest map[string]protocol.Raw) {
	a.put(i, protocol.KindUser, []protocol.Part{{Type: protocol.PartText, Text: text}}, rest)
}

// notice adds a node off the chain: a person sees it, a model does not.
func (a *agentSession) notice(i int, parts []protocol.Part, rest map[string]protocol.Raw) *step {
	e := a.entries[i]
	n := &nodeRecord{ID: a.nodeID(e.ID), Kind: protocol.KindNotice, Status: protocol.StatusSealed, CreatedAt: a.when(e), Content: parts,
		Metadata: rest, Predecessor: a.at[i].id(a.root.ID), line: e.line}
	a.im.count(n)
	s := &step{node: n}
	a.steps = append(a.steps, s)
	return s
}

// user adds a user's message. Results of tools inside of it go to their calls, and
// the rest stays a message (fault 9).
func (a *agentSession) user(i int) {
	e := a.entries[i]
	var rest agentContent
	for _, b := range e.Message.Content {
		if b.Type != roleResult {
			rest = append(rest, b)
			continue
		}
		a.result(i, &result{entry: i, line: e.line, id: b.ToolCallID, name: b.ToolName, parts: a.parts(e.line, b.Content, ""), isError: b.IsError, created: a.when(e)})
	}
	if len(rest) == 0 && len(e.Message.Content) > 0 {
		return
	}
	a.put(i, protocol.KindUser, a.parts(e.line, rest, ""), e.Message.Rest)
}

// bash adds a command that the person ran. The agent shows it to the model as a
// message of the user, unless the person said not to.
func (a *agentSession) bash(i int) {
	m := &a.entries[i].Message
	how := ""
	switch {
	case m.Cancelled:
		how = " (cancelled)"
	case m.ExitCode != nil && *m.ExitCode != 0:
		how = fmt.Sprintf(" (exit code %d)", *m.ExitCode)
	}
	parts := []protocol.Part{{Type: protocol.PartText, Text: "Ran this command" + how + ":\n" + fenced(m.Command, "sh")}}
	if m.Output != "" {
		parts = append(parts, protocol.Part{Type: protocol.PartResource, ContextType: "shell", Text: m.Output})
	}
	rest := map[string]protocol.Raw{"bash_command": quote(m.Command)}
	maps.Copy(rest, m.Rest)
	if m.ExitCode != nil {
		rest["exit_code"] = protocol.Raw(fmt.Sprint(*m.ExitCode))
	}
	if m.ExcludeFromContext {
		a.notice(i, parts, rest)
		return
	}
	a.put(i, protocol.KindUser, parts, rest)
}

// assistant adds a reply and its calls.
func (a *agentSession) assistant(i int) {
	e := a.entries[i]
	m := &e.Message
	n := a.put(i, protocol.KindAssistant, a.parts(e.line, m.Content, m.Provider), m.Rest)
	s := a.at[i]
	if name := modelName(m.Provider, m.Model); name != "" {
		n.Model, a.model[i] = name, name
	}
	if level := a.thinking[i]; level != "" && level != "off" {
		n.Metadata["thinking_level"] = quote(level)
	}
	n.Usage = m.Usage.usage()
	// The message's time is the call's begin, the entry's its end.
	if d := timeOf(e.Timestamp).Sub(n.CreatedAt); d > 0 && d < time.Hour {
		n.DurationMS = d.Milliseconds()
	}
	ending(n, m)
	for _, b := range m.Content {
		if b.Type == blockCall {
			a.call(s, b, m.Provider)
		}
	}
	a.joinWaiting(s)
}

// ending sets status, stop reason and error of a reply.
func ending(n *nodeRecord, m *agentMessage) {
	switch m.StopReason {
	case "toolUse":
		n.StopReason = "tool_calls"
	case "aborted":
		n.Status = protocol.StatusCancelled
		n.Error = &protocol.NodeError{Code: protocol.CodeTurnCancelled, Message: orElse(m.ErrorMessage, "the reply was aborted")}
	case "error":
		n.Status = protocol.StatusFailed
		n.Error = &protocol.NodeError{Code: protocol.CodeProviderRefused, Message: orElse(m.ErrorMessage, "the call failed")}
	default:
		n.StopReason = m.StopReason
	}
}

func orElse(s, other string) string {
	if strings.TrimSpace(s) == "" {
		return other
	}
	return s
}

// parts translates blocks; calls become places that a.call fills in.
func (a *agentSession) parts(line int64, blocks agentContent, provider string) []protocol.Part {
	parts := make([]protocol.Part, 0, len(blocks))
	for _, b := range blocks {
		switch b.Type {
		case "text":
			p := protocol.Part{Type: protocol.PartText, Text: b.Text}
			if b.Signature != "" {
				p.Signature, p.Provider = b.Signature, provider
			}
			parts = append(parts, p)
		case "thinking":
			p := protocol.Part{Type: protocol.PartReasoning, Text: b.Thinking}
			if b.ThinkingSignature != "" {
				p.Signature, p.Provider = b.ThinkingSignature, provider
			}
			parts = append(parts, p)
		case "image":
			data, err := base64.StdEncoding.DecodeString(b.Data)
			if err != nil {
				a.leave(line, "", "an image was left out: its data is not base64")
				continue
			}
			parts = append(parts, protocol.Part{Type: protocol.PartImage, MIMEType: b.MIMEType, Data: data})
		case blockCall:
			parts = append(parts, protocol.Part{Type: protocol.PartToolCall})
		default:
			a.leave(line, "", "a piece of content of the unknown type %q was left out", b.Type)
		}
	}
	return parts
}
