package turn

import (
	"crypto/sha256"
	"encoding/hex"

	"convls/model"
	"convls/projection"
	"convls/protocol"
)

// Messages compiles a context view into the messages of a model call. A reply's
// tool calls come from its tool nodes, each with its result in the tool message
// that follows, so a prompt never has one without the other.
func Messages(c *projection.Context) []model.Message {
	var out []model.Message
	for i := 0; i < len(c.Entries); i++ {
		e := c.Entries[i]
		switch {
		case e.Why == protocol.WhySystem || len(e.Parts) == 0:
		case e.Why == protocol.WhySpine && e.Node.Kind == protocol.KindAssistant:
			tools := followingTools(c.Entries[i+1:])
			reply, results := replyAndResults(e, tools)
			out = append(out, reply)
			if len(results.Parts) > 0 {
				out = append(out, results)
			}
			i += len(tools)
		default:
			out = append(out, model.Message{Role: "user", Parts: asUser(e.Parts)})
		}
	}
	return out
}

// followingTools returns the tool entries at the beginning of entries: the calls
// of the reply before them.
func followingTools(entries []projection.Entry) []projection.Entry {
	n := 0
	for n < len(entries) && entries[n].Why == protocol.WhySubtree && entries[n].Node.Kind == protocol.KindTool {
		n++
	}
	return entries[:n]
}

// replyAndResults puts each call where the reply named its node. A tool node that
// the reply does not name, as an import can have, goes to the end.
func replyAndResults(e projection.Entry, tools []projection.Entry) (reply, results model.Message) {
	byID := make(map[string]projection.Entry, len(tools))
	for _, t := range tools {
		byID[t.Node.ID] = t
	}
	reply, results = model.Message{Role: "assistant"}, model.Message{Role: "tool"}
	add := func(t projection.Entry) {
		for _, p := range t.Parts {
			if p.Type == protocol.PartToolCall {
				reply.Parts = append(reply.Parts, p)
			} else {
				results.Parts = append(results.Parts, p)
			}
		}
		delete(byID, t.Node.ID)
	}
	for _, p := range e.Parts {
		if p.Type != protocol.PartToolCall {
			reply.Parts = append(reply.Parts, p)
		} else if t, ok := byID[p.NodeID]; ok {
			t.Parts = withSignature(t.Parts, p)
			add(t)
		}
	}
	for _, t := range tools {
		if _, left := byID[t.Node.ID]; left {
			add(t)
		}
	}
	return reply, results
}

// withSignature gives a call what its provider wants back with it.
func withSignature(parts []protocol.Part, named protocol.Part) []protocol.Part {
	if named.Signature == "" {
		return parts
	}
	out := append([]protocol.Part(nil), parts...)
	for i := range out {
		if out[i].Type == protocol.PartToolCall {
			out[i].Signature, out[i].Provider = named.Signature, named.Provider
		}
	}
	return out
}

// asUser turns parts that only replies and tools may have into text.
func asUser(parts []protocol.Part) []protocol.Part {
	out := make([]protocol.Part, 0, len(parts))
	for _, p := range parts {
		switch p.Type {
		case protocol.PartToolCall, protocol.PartToolResult, protocol.PartReasoning:
			p = protocol.Part{Type: protocol.PartText, Text: projection.TextOf([]protocol.Part{p})}
		}
		out = append(out, p)
	}
	return out
}

func digest(v any) string {
	b, err := protocol.Marshal(v)
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}
