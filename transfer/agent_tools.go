package transfer

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"convls/protocol"
)

// call is a tool call of a reply on its way to be one node with its result.
type call struct {
	node *nodeRecord
	id   string
}

// result is a tool's result on its way to its call.
type result struct {
	entry   int
	line    int64
	id      string
	name    string
	parts   []protocol.Part
	isError bool
	rest    map[string]protocol.Raw
	created time.Time
	// notice is what it is until its call comes.
	notice *step
}

// waitingKey says where a result waits for its call: it can come only with the
// next reply on the same chain.
type waitingKey struct {
	at *step
	id string
}

// call adds a call to reply s, and fills in its place among the parts.
func (a *agentSession) call(s *step, b agentBlock, provider string) {
	p := protocol.Part{Type: protocol.PartToolCall, CallID: b.ID, Name: b.Name, Arguments: arguments(b)}
	if b.ThoughtSignature != "" {
		p.Signature, p.Provider = b.ThoughtSignature, provider
	}
	c := &call{id: b.ID, node: &nodeRecord{ID: a.nodeID(""), Kind: protocol.KindTool, Caller: s.node.ID, Status: protocol.StatusInterrupted,
		CreatedAt: s.node.CreatedAt, Content: []protocol.Part{p}, line: s.node.line}}
	s.tools = append(s.tools, c)
	if s.open == nil {
		s.open = map[string][]*call{}
	}
	s.open[b.ID] = append(s.open[b.ID], c)
	if i := slices.IndexFunc(s.node.Content, func(p protocol.Part) bool { return p.Type == protocol.PartToolCall && p.NodeID == "" }); i >= 0 {
		s.node.Content[i].NodeID = c.node.ID
	}
}

// arguments returns what the model sent: JSON, or as a JSON string the text that
// was no whole JSON when the reply was cut. The agent's own guess at the rest of
// such a text is not taken.
func arguments(b agentBlock) protocol.Raw {
	if b.PartialJSON != "" && !jsontext.Value(b.PartialJSON).IsValid() {
		return quote(b.PartialJSON)
	}
	if len(b.Arguments) == 0 || string(b.Arguments) == "null" {
		return protocol.Raw(`{}`)
	}
	return b.Arguments
}

// result joins a result with its call: the first one without a result that has its
// id, of the nearest reply before it. Call ids may repeat, so no other reply is
// looked at (fault 96). A result that comes before its call waits for the next
// reply (fault 10).
func (a *agentSession) result(i int, r *result) {
	at := a.at[i]
	if at != nil && at.assistant != nil && a.join(at.assistant, r) {
		return
	}
	r.notice = a.notice(i, r.orphan(), maps.Clone(r.rest))
	k := waitingKey{at, r.id}
	a.waiting[k] = append(a.waiting[k], r)
}

// orphan returns the parts of a result without a call, as a notice shows it.
func (r *result) orphan() []protocol.Part {
	lead := protocol.Part{Type: protocol.PartText, Text: "Result of a call of " + orElse(r.name, "a tool") + " that is not in the source:"}
	return append([]protocol.Part{lead}, r.parts...)
}

// join makes a result a part of its call's node.
func (a *agentSession) join(s *step, r *result) bool {
	open := s.open[r.id]
	if len(open) == 0 {
		return false
	}
	s.open[r.id] = open[1:]
	n := open[0].node
	var texts []string
	var others []protocol.Part
	for _, p := range r.parts {
		if p.Type == protocol.PartText {
			texts = append(texts, p.Text)
		} else {
			others = append(others, p)
		}
	}
	n.Content = append(n.Content, protocol.Part{Type: protocol.PartToolResult, CallID: r.id, Text: strings.Join(texts, "\n"), IsError: r.isError})
	n.Content = append(n.Content, others...)
	n.Status, n.Metadata, n.line = protocol.StatusSealed, r.rest, r.line
	if !r.created.IsZero() {
		n.CreatedAt = r.created
	}
	a.owner[r.entry] = s
	if h := a.holds[r.entry]; h == nil || s.depth < h.depth {
		a.holds[r.entry] = s
	}
	return true
}

// joinWaiting joins the results that came before reply s.
func (a *agentSession) joinWaiting(s *step) {
	for _, c := range s.tools {
		k := waitingKey{s.pred, c.id}
		waiting := a.waiting[k]
		if len(waiting) == 0 || !a.join(s, waiting[0]) {
			continue
		}
		waiting[0].notice.node = nil
		a.waiting[k] = waiting[1:]
	}
}

// unanswered reports results without a call, which stay notices, counts the
// tokens of tools, and says why calls without a result have none.
func (a *agentSession) unanswered() {
	for _, waiting := range a.waiting {
		for _, r := range waiting {
			a.leave(r.line, r.id, "a tool's result without its call is kept as a notice, which models do not read")
		}
	}
	kept := a.steps[:0]
	for _, s := range a.steps {
		if s.node == nil {
			continue
		}
		kept = append(kept, s)
		for _, c := range s.tools {
			if c.node.Status == protocol.StatusInterrupted {
				c.node.Error = &protocol.NodeError{Code: protocol.CodeTurnCancelled, Message: "the source has no result of this call"}
			}
			a.im.count(c.node)
		}
	}
	a.steps = kept
}
