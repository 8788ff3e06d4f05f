package eval

import (
	"context"

	"convls/compaction/manifest"
	"convls/model"
	"convls/projection"
	"convls/protocol"
	"convls/store"
)

// chat writes messages into the ledger as turns do: user and assistant messages
// follow one another, and what a tool printed is, with its call, a node that the
// reply before it called. It notes what was said, as the context has it.
func (e *evaluator) chat(ctx context.Context, messages []manifest.Message) error {
	counter, err := e.Models.Counter(e.client.Settings, model.Offline)
	if err != nil {
		return err
	}
	specs := make([]store.NodeSpec, len(messages))
	for i, m := range messages {
		specs[i] = node(m, messages[i+1:])
		specs[i].Tokens, specs[i].Tokenizer = counter.Parts(specs[i].Content.Parts), counter.ID()
	}
	_, err = store.Apply(ctx, e.sess, store.Request{}, func(tx *store.Tx) (struct{}, error) {
		at := tx.State.Head
		for _, n := range specs {
			if n.Kind == protocol.KindTool {
				n.Caller = at
			} else {
				n.Predecessor = at
			}
			sk, err := tx.Append(n)
			if err != nil {
				return struct{}{}, err
			}
			if n.Kind.OnChain() {
				at = sk.Seq
			}
		}
		return struct{}{}, nil
	})
	if err != nil {
		return err
	}
	for i, m := range messages {
		if m.Role == manifest.RoleTool {
			m.Text = projection.TextOf(specs[i].Content.Parts)
		}
		e.conversation = append(e.conversation, m)
	}
	return nil
}

// node is a message as a node, of which the next ones are what it called if they
// are a tool's.
func node(m manifest.Message, next []manifest.Message) store.NodeSpec {
	n := store.NodeSpec{ID: m.ID, Status: protocol.StatusSealed}
	said := protocol.Part{Type: protocol.PartText, Text: m.Text}
	switch m.Role {
	case manifest.RoleTool:
		n.Kind = protocol.KindTool
		n.Content.Parts = []protocol.Part{
			{Type: protocol.PartToolCall, Name: m.Name, CallID: m.CallID, Arguments: protocol.Raw("{}")},
			{Type: protocol.PartToolResult, CallID: m.CallID, Text: m.Text, IsError: m.IsError},
		}
	case manifest.RoleAssistant:
		n.Kind = protocol.KindAssistant
		n.Content = store.Content{Model: model.Offline, StopReason: model.StopStop, Parts: []protocol.Part{said}}
		for _, called := range next {
			if called.Role != manifest.RoleTool {
				break
			}
			n.Content.Parts = append(n.Content.Parts, protocol.Part{Type: protocol.PartToolCall, NodeID: called.ID})
		}
	default:
		n.Kind = protocol.KindUser
		n.Content.Parts = []protocol.Part{said}
	}
	return n
}
