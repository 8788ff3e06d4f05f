package scenario

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"

	"convls/protocol"
	"convls/test/fakemodel"
	"convls/test/reference"
)

// made are the ids that the server makes: in the text of an attachment they are
// part of a prompt, and no two runs have the same.
var made = regexp.MustCompile(`[0-9A-HJKMNP-TV-Z]{26}`)

// answer is the scripted model: a function of the prompt, so that the reference
// can tell what a reply will say only if it knows the prompt to the last byte.
func answer(prompt []reference.Message) reference.Reply {
	last := prompt[len(prompt)-1]
	sum := sha256.New()
	for _, m := range prompt {
		fmt.Fprintf(sum, "%q %q\n", m.Role, made.ReplaceAllString(m.Text, "ID"))
	}
	seal := fmt.Sprintf("(%d messages, %s)", len(prompt), hex.EncodeToString(sum.Sum(nil))[:4])
	if last.Role == "tool" {
		return reference.Reply{Text: "I was told " + last.Text + " " + seal}
	}
	said := last.Text[strings.LastIndex(last.Text, "\n")+1:]
	has := func(what string) bool { return strings.Contains(said, "["+what+"]") }
	q := strings.Trim(seal[strings.LastIndex(seal, " ")+1:], ")")
	look := func(i int) reference.Call {
		c := reference.Call{Name: "look", Arguments: fmt.Sprintf(`{"q":"%s-%d"}`, q, i)}
		c.Result, c.IsError = lookUp(c.Arguments)
		return c
	}
	switch {
	case has("hold"):
		return reference.Reply{Text: "I think … ", Hold: true, Rest: "so it is " + seal}
	case has("tool"):
		return reference.Reply{Text: "let me look", Calls: []reference.Call{look(0)}}
	case has("tools"):
		return reference.Reply{Calls: []reference.Call{look(0), look(1)}}
	case has("holdtool"):
		c := reference.Call{Name: "look", Arguments: `{"q":"held"}`}
		c.Result, c.IsError = lookUp(c.Arguments)
		return reference.Reply{Text: "let me look", Calls: []reference.Call{c}, HoldCall: true}
	case has("fail"):
		return reference.Reply{Error: protocol.CodeProviderQuota}
	case has("refuse"):
		return reference.Reply{Error: protocol.CodeProviderAuth}
	case has("overflow"):
		return reference.Reply{Error: protocol.CodeContextOverflow}
	case has("cut"):
		return reference.Reply{Text: "half a re", Error: protocol.CodeStreamCut}
	case has("long"):
		return reference.Reply{Text: "you said: " + said + " " + seal + filler}
	}
	return reference.Reply{Text: "you said: " + said + " " + seal}
}

// filler makes a reply long enough for a summary to be smaller.
var filler = strings.Repeat(" and on it goes, word after word after word", 30)

// lookUp is the tool of the tests: a function of its arguments.
func lookUp(arguments string) (result string, isError bool) {
	return "nothing for " + arguments, strings.Contains(arguments, "7")
}

// messages returns the prompt of a request as the reference spells it.
func messages(r fakemodel.Request) []reference.Message {
	var out []reference.Message
	for _, m := range r.Messages {
		text := m.Text()
		for _, c := range m.ToolCalls {
			text += fmt.Sprintf(" <%s(%s)>", c.Function.Name, c.Function.Arguments)
		}
		out = append(out, reference.Message{Role: m.Role, Text: text})
	}
	return out
}

// scripted is a model server that answers as answer does.
type scripted struct {
	*fakemodel.Server
	t testing.TB

	mu    sync.Mutex
	gates []*fakemodel.Gate
	// prompts are kept to explain a failure.
	prompts [][]reference.Message
	// summarising is sent the gate of each call of the summariser that is held.
	summarising chan *fakemodel.Gate
}

func newScripted(t testing.TB) *scripted {
	s := &scripted{Server: fakemodel.New(t), t: t, summarising: make(chan *fakemodel.Gate, 1)}
	s.Respond(s.respond)
	return s
}

func (s *scripted) respond(r fakemodel.Request) fakemodel.Reply {
	prompt := messages(r)
	if strings.HasPrefix(prompt[0].Text, "You keep the memory") {
		return s.summarise(prompt[1].Text)
	}
	said := answer(prompt)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.prompts = append(s.prompts, prompt)
	switch said.Error {
	case "":
	case protocol.CodeProviderQuota:
		return fakemodel.Fail(http.StatusPaymentRequired, `{"error":{"message":"insufficient credits","code":"insufficient_quota"}}`)
	case protocol.CodeProviderAuth:
		return fakemodel.Fail(http.StatusUnauthorized, `{"error":{"message":"the key is not valid"}}`)
	case protocol.CodeContextOverflow:
		return fakemodel.Overflow(5000, 4096)
	case protocol.CodeStreamCut:
		r := fakemodel.Say(said.Text)
		r.Finish = "-"
		return r
	}
	reply := fakemodel.Say(said.Text)
	if said.Text == "" {
		reply = fakemodel.Say()
	}
	for _, c := range said.Calls {
		reply = reply.And(c.Name, c.Arguments)
	}
	if said.Hold {
		gate := s.Gate()
		s.gates = append(s.gates, gate)
		reply.Pieces = append(reply.Pieces, said.Rest)
		reply = reply.Hold(gate, 1)
	}
	return reply
}

// refusals are the scripts of the summariser that end a run without a summary, and
// how it ends.
var refusals = map[string]string{
	"[empty]": "summary_refused empty", "[skeleton]": "summary_refused skeleton", "[prose]": "summary_refused invalid_schema",
	"[invent]": "summary_refused unknown_sources", "[short]": "summary_refused cut", "[fail]": string(protocol.CodeProviderQuota),
}

// summarise answers as the summariser. What it does is scripted by the person's
// instructions, which are part of what it is asked.
func (s *scripted) summarise(asked string) fakemodel.Reply {
	asked, _, _ = strings.Cut(asked, "\n")
	has := func(script string) bool { return strings.Contains(asked, script) }
	switch {
	case has("[empty]"):
		return fakemodel.Say(" ")
	case has("[skeleton]"):
		return fakemodel.Say(`{"changes":[],"narrative":""}`)
	case has("[prose]"):
		return fakemodel.Say("They spoke of this and that.")
	case has("[invent]"):
		return fakemodel.Say(`{"changes":[{"op":"add","section":"decisions","text":"the moon is bought","status":"decision","sources":["nowhere"]}],"narrative":""}`)
	case has("[short]"):
		r := fakemodel.Say(`{"changes":[],"narr`)
		r.Finish = "length"
		return r
	case has("[fail]"):
		return fakemodel.Fail(http.StatusPaymentRequired, `{"error":{"message":"insufficient credits","code":"insufficient_quota"}}`)
	case has("[hold]"):
		gate := s.Gate()
		s.summarising <- gate
		return fakemodel.Say(`{"changes":[],"narrative":"This is never read."}`).Hold(gate, 0)
	}
	return fakemodel.Say(`{"changes":[],"narrative":"They spoke."}`)
}

// hold returns a gate that opens at the next release.
func (s *scripted) hold() *fakemodel.Gate {
	s.mu.Lock()
	defer s.mu.Unlock()
	gate := s.Gate()
	s.gates = append(s.gates, gate)
	return gate
}

// release lets every held reply and tool call go on.
func (s *scripted) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, g := range s.gates {
		g.Release()
	}
	s.gates = nil
}
