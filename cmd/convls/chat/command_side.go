package chat

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"convls/protocol"
)

// prepareExec asks the model one question beside the conversation: it reads all of it,
// and the conversation does not go on with it.
func prepareExec(s *state, arg string) (job, error) {
	if err := s.needSession(); err != nil {
		return nil, err
	}
	if strings.TrimSpace(arg) == "" {
		return nil, errors.New("ask what? /exec <prompt>")
	}
	content, items := s.content(arg)
	p := protocol.ExecParams{Mutation: mutation(), SessionID: s.session.SessionID, Prompt: content, Context: items, Wait: true}
	return s.look().after(func(ctx context.Context, c caller) (outcome, error) {
		r, err := call[protocol.ExecResult](ctx, c, protocol.MethodExec, p)
		if err != nil {
			return outcome{}, err
		}
		o, err := sideAnswer("Asked beside the conversation", r.NodeID, r.State, r.Node)
		if err != nil {
			return o, err
		}
		o.say = "it is kept beside the conversation, and the model does not read it again; /graph shows where"
		return o, nil
	}), nil
}

// prepareSpawn sends a message on a side branch of its own, and HEAD stays.
func prepareSpawn(s *state, arg string) (job, error) {
	if err := s.needSession(); err != nil {
		return nil, err
	}
	if strings.TrimSpace(arg) == "" {
		return nil, errors.New("send what? /spawn <prompt>")
	}
	content, items := s.content(arg)
	p := protocol.TurnSendParams{Mutation: mutation(), SessionID: s.session.SessionID, Content: content, Context: items, Spawn: true, Wait: true}
	return s.look().after(func(ctx context.Context, c caller) (outcome, error) {
		r, err := call[protocol.TurnResult](ctx, c, protocol.MethodTurnSend, p)
		if err != nil {
			return outcome{}, err
		}
		o, err := sideAnswer("Answered on a side branch", r.ReplyID, r.State, r.Node)
		if err == nil && r.Node != nil {
			o.say = fmt.Sprintf("it has a side branch of its own: /checkout %s goes on there", r.Node.ID)
		}
		return o, err
	}), nil
}

// sideAnswer shows an answer that is not on the branch of HEAD. What was attached went
// with the question.
func sideAnswer(title, id string, state protocol.Status, n *protocol.Node) (outcome, error) {
	o := outcome{sent: true}
	if n == nil {
		return o, endingError(ending{replyID: id, nodeID: id, status: state})
	}
	if text := partsText(n.Content); text != "" {
		o.page = &page{title: title, body: text, markdown: true}
	}
	return o, endingError(ending{replyID: id, nodeID: n.ID, status: state, err: n.Error})
}
