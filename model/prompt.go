package model

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"convls/protocol"
)

// The roles of a [Message].
const (
	RoleUser      = "user"
	RoleAssistant = "assistant"
	RoleTool      = "tool"
)

const (
	// opening stands before a prompt that begins with an assistant, for providers
	// and chat templates that want the user to begin.
	opening = "(The beginning of the conversation is left out.)"
	// noResult answers a call that has no result, because a call without a result
	// makes every later request fail (faults 6 to 8, 95).
	noResult = "(no result: the call was interrupted)"
)

// arrange returns the messages of a prompt in the one form that every provider
// accepts:
//
//   - users and assistants take turns, the user first; neighbours of one role are
//     merged; empty parts and messages are gone;
//   - an assistant message with calls is followed by one tool message with exactly
//     one result for each call, in the order of the calls;
//   - call ids are unique in the prompt. The same id may occur twice in a history
//     (fault 96): a result belongs to the call before it that has no result yet;
//   - reasoning stays only with a signature of this provider.
//
// Results that no call asked for become text of the user.
func arrange(messages []Message, provider string) ([]Message, error) {
	a := arrangement{provider: provider, used: map[string]bool{}}
	for i, m := range messages {
		var err error
		switch m.Role {
		case RoleUser:
			err = a.user(m.Parts)
		case RoleAssistant:
			err = a.assistant(m.Parts)
		case RoleTool:
			err = a.tool(m.Parts)
		default:
			err = fmt.Errorf("message %d has the role %q; it must be user, assistant or tool", i, m.Role)
		}
		if err != nil {
			return nil, err
		}
	}
	a.settle()
	if len(a.out) == 0 {
		return nil, fmt.Errorf("the prompt is empty")
	}
	return a.out, nil
}

type arrangement struct {
	provider string
	out      []Message
	used     map[string]bool
	// open are the calls of the last assistant message; results are what was found
	// for them; waiting are the messages after them that are no results.
	open    []protocol.Part
	results map[int]protocol.Part
	waiting []protocol.Part
	serial  int
}

// put appends parts of a role, merging neighbours.
func (a *arrangement) put(role string, parts []protocol.Part) {
	if len(parts) == 0 {
		return
	}
	if role != RoleUser && len(a.out) == 0 {
		a.out = append(a.out, Message{Role: RoleUser, Parts: []protocol.Part{{Type: protocol.PartText, Text: opening}}})
	}
	if last := len(a.out) - 1; last >= 0 && a.out[last].Role == role && role != RoleTool {
		a.out[last].Parts = append(a.out[last].Parts, parts...)
		return
	}
	a.out = append(a.out, Message{Role: role, Parts: parts})
}

func (a *arrangement) user(parts []protocol.Part) error {
	var keep []protocol.Part
	for _, p := range parts {
		switch p.Type {
		case protocol.PartText, protocol.PartResource:
			if strings.TrimSpace(p.Text) != "" {
				keep = append(keep, protocol.Part{Type: protocol.PartText, Text: p.Text})
			}
		case protocol.PartImage:
			if len(p.Data) > 0 {
				keep = append(keep, p)
			}
		default:
			return fmt.Errorf("a user message can not hold a part of type %q", p.Type)
		}
	}
	if len(a.open) > 0 {
		a.waiting = append(a.waiting, keep...)
		return nil
	}
	a.put(RoleUser, keep)
	return nil
}

func (a *arrangement) assistant(parts []protocol.Part) error {
	a.settle()
	var keep []protocol.Part
	for _, p := range parts {
		switch p.Type {
		case protocol.PartText, protocol.PartResource:
			if strings.TrimSpace(p.Text) != "" {
				p.Type = protocol.PartText
				if p.Provider != a.provider {
					p.Signature = ""
				}
				keep = append(keep, p)
			}
		case protocol.PartReasoning:
			if p.Signature != "" && p.Provider == a.provider {
				keep = append(keep, p)
			}
		case protocol.PartToolCall:
			if p.Name == "" {
				p.Name = "unnamed" // an import can have such: it must not lock the conversation
			}
			if p.Provider != a.provider {
				p.Signature = ""
			}
			a.open = append(a.open, p) // with the id as it is in the history
			p.CallID = a.unique(p.CallID)
			p.Arguments = argumentObject(p.Arguments)
			keep = append(keep, p)
		case protocol.PartImage:
			// No provider takes images back from an assistant.
		default:
			return fmt.Errorf("an assistant message can not hold a part of type %q", p.Type)
		}
	}
	a.put(RoleAssistant, keep)
	return nil
}

// unique returns id, or another one if it is empty or was used in this prompt.
func (a *arrangement) unique(id string) string {
	for id == "" || a.used[id] {
		a.serial++
		id = fmt.Sprintf("call_%d", a.serial)
	}
	a.used[id] = true
	return id
}

func (a *arrangement) tool(parts []protocol.Part) error {
	var rest []protocol.Part
	for _, p := range parts {
		switch p.Type {
		case protocol.PartToolResult:
			if i := a.callOf(p.CallID); i >= 0 {
				a.results[i] = p
				continue
			}
			if strings.TrimSpace(p.Text) != "" {
				rest = append(rest, protocol.Part{Type: protocol.PartText, Text: "(Result of a tool that was called earlier:)\n" + p.Text})
			}
		case protocol.PartText, protocol.PartResource, protocol.PartImage:
			rest = append(rest, p)
		default:
			return fmt.Errorf("a tool message can not hold a part of type %q", p.Type)
		}
	}
	return a.user(rest)
}

// callOf returns the first open call with the id that has no result yet, or -1.
func (a *arrangement) callOf(id string) int {
	if a.results == nil {
		a.results = map[int]protocol.Part{}
	}
	for i, c := range a.open {
		if _, done := a.results[i]; !done && c.CallID == id {
			return i
		}
	}
	return -1
}

// settle writes the results of the open calls, and then what came between.
func (a *arrangement) settle() {
	if len(a.open) == 0 {
		return
	}
	var calls []protocol.Part
	for _, p := range a.out[len(a.out)-1].Parts {
		if p.Type == protocol.PartToolCall {
			calls = append(calls, p)
		}
	}
	// Calls of neighbours that were merged were settled before.
	calls = calls[len(calls)-len(a.open):]
	var results []protocol.Part
	for i, c := range calls {
		r, ok := a.results[i]
		if !ok {
			r = protocol.Part{Text: noResult, IsError: true}
		}
		r.Type, r.CallID, r.Name = protocol.PartToolResult, c.CallID, c.Name
		results = append(results, r)
	}
	waiting := a.waiting
	a.open, a.results, a.waiting = nil, nil, nil
	a.put(RoleTool, results)
	a.put(RoleUser, waiting)
}

// argumentObject returns the arguments of a call as an object, which is what
// providers insist on; what a model wrote that is no object goes into one.
func argumentObject(raw protocol.Raw) protocol.Raw {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 {
		return protocol.Raw("{}")
	}
	if raw.IsValid() {
		if raw.Kind() == '{' {
			return raw
		}
		return protocol.Raw(`{"input":` + string(raw) + `}`)
	}
	quoted, err := jsontext.AppendQuote(nil, strings.ToValidUTF8(string(raw), "\uFFFD"))
	if err != nil {
		return protocol.Raw("{}")
	}
	return protocol.Raw(`{"input":` + string(quoted) + `}`)
}

// joinText joins the text parts of a message.
func joinText(parts []protocol.Part) string {
	var texts []string
	for _, p := range parts {
		if p.Type == protocol.PartText {
			texts = append(texts, p.Text)
		}
	}
	return strings.Join(texts, "\n\n")
}
