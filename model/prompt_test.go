package model

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"convls/protocol"
)

func toolCall(id, name, args string) protocol.Part {
	return protocol.Part{Type: protocol.PartToolCall, CallID: id, Name: name, Arguments: protocol.Raw(args)}
}

func toolResult(id, text string) Message {
	return Message{Role: RoleTool, Parts: []protocol.Part{{Type: protocol.PartToolResult, CallID: id, Text: text}}}
}

func assistant(parts ...protocol.Part) Message { return Message{Role: RoleAssistant, Parts: parts} }

func textPart(s string) protocol.Part { return protocol.Part{Type: protocol.PartText, Text: s} }

// spelt writes messages so that they are easy to compare.
func spelt(messages []Message) string {
	var lines []string
	for _, m := range messages {
		var parts []string
		for _, p := range m.Parts {
			switch p.Type {
			case protocol.PartToolCall:
				parts = append(parts, fmt.Sprintf("call %s %s%s", p.CallID, p.Name, p.Arguments))
			case protocol.PartToolResult:
				parts = append(parts, fmt.Sprintf("result %s %s %q", p.CallID, p.Name, p.Text))
			case protocol.PartText:
				parts = append(parts, fmt.Sprintf("%q", p.Text))
			default:
				parts = append(parts, string(p.Type))
			}
		}
		lines = append(lines, m.Role+": "+strings.Join(parts, ", "))
	}
	return strings.Join(lines, "\n")
}

func TestArrange(t *testing.T) {
	for _, c := range []struct {
		name string
		in   []Message
		want string
	}{
		{"neighbours", []Message{say(RoleUser, "summary"), say(RoleUser, "a"), say(RoleAssistant, "b"), say(RoleAssistant, "c"), say(RoleUser, "d")},
			`user: "summary", "a"
assistant: "b", "c"
user: "d"`},
		{"begins with an assistant", []Message{say(RoleAssistant, "b"), say(RoleUser, "d")},
			`user: "(The beginning of the conversation is left out.)"
assistant: "b"
user: "d"`},
		{"empty parts and messages", []Message{say(RoleUser, " \n"), say(RoleUser, "a"), say(RoleAssistant, ""), say(RoleUser, "b")},
			`user: "a", "b"`},
		{"results in another order", []Message{say(RoleUser, "a"), assistant(toolCall("x", "f", `{}`), toolCall("y", "g", `{}`)), toolResult("y", "Y"), toolResult("x", "X")},
			`user: "a"
assistant: call x f{}, call y g{}
tool: result x f "X", result y g "Y"`},
		{"the same id in two turns (fault 96)", []Message{
			say(RoleUser, "a"), assistant(toolCall("c", "f", `{"n":1}`)), toolResult("c", "first"),
			say(RoleUser, "b"), assistant(toolCall("c", "f", `{"n":2}`)), toolResult("c", "second"),
		}, `user: "a"
assistant: call c f{"n":1}
tool: result c f "first"
user: "b"
assistant: call call_1 f{"n":2}
tool: result call_1 f "second"`},
		{"the same id in one message", []Message{say(RoleUser, "a"), assistant(toolCall("c", "f", ``), toolCall("c", "g", ``)), toolResult("c", "F"), toolResult("c", "G")},
			`user: "a"
assistant: call c f{}, call call_1 g{}
tool: result c f "F", result call_1 g "G"`},
		{"no ids", []Message{say(RoleUser, "a"), assistant(toolCall("", "f", ``)), toolResult("", "F")},
			`user: "a"
assistant: call call_1 f{}
tool: result call_1 f "F"`},
		{"a call without a result (faults 6, 95)", []Message{say(RoleUser, "a"), assistant(toolCall("c", "f", `{}`)), say(RoleUser, "b")},
			`user: "a"
assistant: call c f{}
tool: result c f "(no result: the call was interrupted)"
user: "b"`},
		{"a result without a call (fault 7)", []Message{toolResult("c", "lost"), say(RoleAssistant, "b")},
			`user: "(Result of a tool that was called earlier:)\nlost"
assistant: "b"`},
		{"a message between call and result (fault 9)", []Message{say(RoleUser, "a"), assistant(toolCall("c", "f", `{}`)), say(RoleUser, "b"), toolResult("c", "F"), say(RoleAssistant, "z")},
			`user: "a"
assistant: call c f{}
tool: result c f "F"
user: "b"
assistant: "z"`},
		{"an image in a result", []Message{say(RoleUser, "a"), assistant(toolCall("c", "f", `{}`)), {Role: RoleTool, Parts: []protocol.Part{
			{Type: protocol.PartToolResult, CallID: "c", Text: "see"}, {Type: protocol.PartImage, Data: []byte("x")}}}},
			`user: "a"
assistant: call c f{}
tool: result c f "see"
user: image`},
		{"a nameless call", []Message{say(RoleUser, "a"), assistant(toolCall("c", "", `{}`))},
			`user: "a"
assistant: call c unnamed{}
tool: result c unnamed "(no result: the call was interrupted)"`},
		{"odd arguments", []Message{say(RoleUser, "a"), assistant(toolCall("1", "f", `"text"`), toolCall("2", "f", `[1]`), toolCall("3", "f", `{"a":`), toolCall("4", "f", ` {"a":1} `))},
			`user: "a"
assistant: call 1 f{"input":"text"}, call 2 f{"input":[1]}, call 3 f{"input":"{\"a\":"}, call 4 f{"a":1}
tool: result 1 f "(no result: the call was interrupted)", result 2 f "(no result: the call was interrupted)", result 3 f "(no result: the call was interrupted)", result 4 f "(no result: the call was interrupted)"`},
		{"reasoning", []Message{say(RoleUser, "a"), assistant(
			protocol.Part{Type: protocol.PartReasoning, Text: "mine", Signature: "s", Provider: "here"},
			protocol.Part{Type: protocol.PartReasoning, Text: "theirs", Signature: "s", Provider: "there"},
			protocol.Part{Type: protocol.PartReasoning, Text: "unsigned", Provider: "here"}, textPart("b"))},
			`user: "a"
assistant: reasoning, "b"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			out, err := arrange(c.in, "here")
			if err != nil {
				t.Fatal(err)
			}
			if got := spelt(out); got != c.want {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
		})
	}
	for name, in := range map[string][]Message{
		"nothing":          nil,
		"only empty ones":  {say(RoleUser, "")},
		"a system message": {say("system", "x")},
		"a call of a user": {{Role: RoleUser, Parts: []protocol.Part{toolCall("c", "f", "{}")}}},
	} {
		if out, err := arrange(in, "here"); err == nil {
			t.Errorf("%s: %s", name, spelt(out))
		}
	}
}

// Whatever the history, the prompt obeys the rules of all providers, and no text
// of a user or a result is lost (faults 6 to 10, 95, 96).
func TestArrangeProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ids := rapid.SampledFrom([]string{"", "a", "b", "call_1"})
		n := 0
		var texts []string
		text := func() string {
			n++
			texts = append(texts, fmt.Sprintf("<%d>", n))
			return texts[len(texts)-1]
		}
		var in []Message
		for range rapid.IntRange(1, 12).Draw(t, "messages") {
			switch rapid.IntRange(0, 3).Draw(t, "role") {
			case 0:
				in = append(in, say(RoleUser, text()))
			case 1:
				in = append(in, say(RoleAssistant, text()))
			case 2:
				m := Message{Role: RoleAssistant}
				for range rapid.IntRange(1, 3).Draw(t, "calls") {
					m.Parts = append(m.Parts, toolCall(ids.Draw(t, "id"), "f", `{}`))
				}
				in = append(in, m)
			case 3:
				in = append(in, toolResult(ids.Draw(t, "id"), text()))
			}
		}
		out, err := arrange(in, "p")
		if err != nil {
			t.Fatal(err)
		}
		seen := map[string]bool{}
		for i, m := range out {
			if i == 0 && m.Role != RoleUser {
				t.Fatalf("begins with %s", m.Role)
			}
			if i > 0 && m.Role == out[i-1].Role {
				t.Fatalf("two of %s in a row:\n%s", m.Role, spelt(out))
			}
			var calls, results []string
			for _, p := range m.Parts {
				if p.Type == protocol.PartToolCall {
					if seen[p.CallID] || p.CallID == "" {
						t.Fatalf("the id %q is not unique:\n%s", p.CallID, spelt(out))
					}
					seen[p.CallID] = true
					calls = append(calls, p.CallID)
				}
			}
			if len(calls) > 0 {
				if i+1 == len(out) || out[i+1].Role != RoleTool {
					t.Fatalf("calls without results:\n%s", spelt(out))
				}
				for _, p := range out[i+1].Parts {
					results = append(results, p.CallID)
				}
				if fmt.Sprint(calls) != fmt.Sprint(results) {
					t.Fatalf("calls %v, results %v", calls, results)
				}
			} else if i+1 < len(out) && out[i+1].Role == RoleTool {
				t.Fatalf("results without calls:\n%s", spelt(out))
			}
		}
		whole := spelt(out)
		for _, s := range texts {
			if strings.Count(whole, s) != 1 {
				t.Fatalf("%s is there %d times:\n%s", s, strings.Count(whole, s), whole)
			}
		}
	})
}

// Each provider gets such a prompt in its own words.
func TestPromptOnTheWire(t *testing.T) {
	signed := map[string]protocol.Part{
		KindOpenAI:    {Type: protocol.PartReasoning, Text: "thought", Signature: "reasoning_content", Provider: "fake"},
		KindAnthropic: {Type: protocol.PartReasoning, Text: "thought", Signature: "sig", Provider: "fake"},
		KindGemini:    {Type: protocol.PartReasoning, Text: "thought", Signature: "c2ln", Provider: "fake"},
		KindOllama:    {Type: protocol.PartReasoning, Text: "thought", Signature: "sig", Provider: "fake"},
	}
	golden := map[string]string{
		KindOpenAI: `[{"content":"be brief","role":"system"},{"content":"(The beginning of the conversation is left out.)","role":"user"},` +
			`{"content":"hi","role":"assistant"},` +
			`{"content":[{"text":"one","type":"text"},{"text":"two","type":"text"},{"image_url":{"url":"data:image/png;base64,aW1n"},"type":"image_url"}],"role":"user"},` +
			`{"content":"looking","reasoning_content":"thought","role":"assistant","tool_calls":[{"function":{"arguments":"{\"a\":1}","name":"f"},"id":"c","type":"function"},{"function":{"arguments":"{}","name":"g"},"id":"call_1","type":"function"}]},` +
			`{"content":"F","role":"tool","tool_call_id":"c"},{"content":"G","role":"tool","tool_call_id":"call_1"}]`,
		KindAnthropic: `[{"content":[{"text":"(The beginning of the conversation is left out.)","type":"text"}],"role":"user"},` +
			`{"content":[{"text":"hi","type":"text"}],"role":"assistant"},` +
			`{"content":[{"text":"one","type":"text"},{"text":"two","type":"text"},{"source":{"data":"aW1n","media_type":"image/png","type":"base64"},"type":"image"}],"role":"user"},` +
			`{"content":[{"signature":"sig","thinking":"thought","type":"thinking"},{"text":"looking","type":"text"},{"id":"c","input":{"a":1},"name":"f","type":"tool_use"},{"id":"call_1","input":{},"name":"g","type":"tool_use"}],"role":"assistant"},` +
			`{"content":[{"content":[{"text":"F","type":"text"}],"is_error":false,"tool_use_id":"c","type":"tool_result"},{"content":[{"text":"G","type":"text"}],"is_error":true,"tool_use_id":"call_1","type":"tool_result"}],"role":"user"}]`,
		KindGemini: `[{"parts":[{"text":"(The beginning of the conversation is left out.)"}],"role":"user"},{"parts":[{"text":"hi"}],"role":"model"},` +
			`{"parts":[{"text":"one"},{"text":"two"},{"inlineData":{"data":"aW1n","mimeType":"image/png"}}],"role":"user"},` +
			`{"parts":[{"text":"looking"},{"functionCall":{"args":{"a":1},"name":"f"},"thoughtSignature":"c2ln"},{"functionCall":{"name":"g"}}],"role":"model"},` +
			`{"parts":[{"functionResponse":{"name":"f","response":{"output":"F"}}},{"functionResponse":{"name":"g","response":{"error":"G"}}}],"role":"user"}]`,
		KindOllama: `[{"content":"be brief","role":"system"},{"content":"(The beginning of the conversation is left out.)","role":"user"},{"content":"hi","role":"assistant"},` +
			`{"content":"one\n\ntwo","images":["aW1n"],"role":"user"},` +
			`{"content":"looking","role":"assistant","tool_calls":[{"function":{"arguments":{"a":1},"index":0,"name":"f"},"id":"c"},{"function":{"arguments":{},"index":1,"name":"g"},"id":"call_1"}]},` +
			`{"content":"F","role":"tool","tool_call_id":"c","tool_name":"f"},{"content":"G","role":"tool","tool_call_id":"call_1","tool_name":"g"}]`,
	}
	eachWire(t, func(t *testing.T, w wire) {
		call := toolCall("c", "f", `{"a":1}`)
		if w.kind == KindGemini {
			call.Signature, call.Provider = "c2ln", "fake"
		}
		failed := toolResult("c", "G")
		failed.Parts[0].IsError = true
		req := question()
		req.Messages = []Message{
			say(RoleAssistant, "hi"),
			say(RoleUser, "one"),
			{Role: RoleUser, Parts: []protocol.Part{textPart("two"), {Type: protocol.PartImage, MIMEType: "image/png", Data: []byte("img")}}},
			assistant(signed[w.kind], protocol.Part{Type: protocol.PartReasoning, Text: "foreign", Signature: "x", Provider: "other"}, textPart("looking"), call, toolCall("c", "g", `{}`)),
			toolResult("c", "F"), failed,
		}
		f := &fakeTransport{replies: []reply{body(w.stream(spoken{text: []string{"x"}, stop: StopStop}))}}
		if a := ask(t, w.kind, f, req); a.err != nil {
			t.Fatal(a.err)
		}
		sent, _ := jsonOf(string(f.bodies[0])).(map[string]any)
		got := sent["messages"]
		if w.kind == KindGemini {
			got = sent["contents"]
		}
		if js(got) != golden[w.kind] {
			t.Errorf("got\n%s\nwant\n%s", js(got), golden[w.kind])
		}
	})
}

// Reasoning of an OpenAI-compatible server goes back only inside the tool loop
// that it belongs to.
func TestReasoningOnlyInLoop(t *testing.T) {
	req := question()
	req.Messages = []Message{
		say(RoleUser, "a"),
		assistant(protocol.Part{Type: protocol.PartReasoning, Text: "old", Signature: "reasoning_content", Provider: "fake"}, textPart("b")),
		say(RoleUser, "c"),
	}
	f := &fakeTransport{replies: []reply{body(openaiStream(spoken{text: []string{"x"}, stop: StopStop}))}}
	if a := ask(t, KindOpenAI, f, req); a.err != nil {
		t.Fatal(a.err)
	}
	if strings.Contains(string(f.bodies[0]), "old") {
		t.Errorf("%s", f.bodies[0])
	}
}

func TestEmptyPrompt(t *testing.T) {
	eachWire(t, func(t *testing.T, w wire) {
		f := &fakeTransport{}
		a := ask(t, w.kind, f, Request{Model: "some-model"})
		if ClassOf(a.err) != ClassInvalid || len(f.requests) != 0 {
			t.Errorf("%v, %d requests", a.err, len(f.requests))
		}
	})
}
