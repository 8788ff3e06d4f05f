package chat

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"convls/protocol"

	"github.com/oklog/ulid/v2"
)

// mutation stamps a request, so that the same request is never carried out twice.
func mutation() protocol.Mutation { return protocol.Mutation{RequestID: ulid.Make().String()} }

// mutationAt also refuses the request if HEAD is not where the person sees it.
func (s *state) mutationAt() protocol.Mutation {
	m := mutation()
	m.ExpectedHead = s.session.Head
	return m
}

// prepareSend sends a message, or what was edited. The first message makes the
// session.
func prepareSend(s *state, text string) (job, error) {
	if strings.TrimSpace(text) == "" && len(s.attached) == 0 {
		return nil, errors.New("there is nothing to send")
	}
	if !utf8.ValidString(text) {
		return nil, errors.New("the message is not valid UTF-8")
	}
	content, items := s.content(text)
	if s.editing != nil {
		return s.sendEdit(content, items)(s.editing.edits), nil
	}
	if s.exists() {
		p := protocol.TurnSendParams{Mutation: s.mutationAt(), SessionID: s.session.SessionID, Content: content, Context: items}
		return func(ctx context.Context, c caller) (outcome, error) { return send(ctx, c, p) }, nil
	}
	create := s.create()
	return func(ctx context.Context, c caller) (outcome, error) {
		made, err := call[protocol.SessionResult](ctx, c, protocol.MethodSessionCreate, create)
		if err != nil {
			return outcome{}, err
		}
		snap, err := open(ctx, c, made.SessionID, true, 0)
		if err != nil {
			return outcome{}, err
		}
		p := protocol.TurnSendParams{Mutation: mutation(), SessionID: made.SessionID, Content: content, Context: items}
		o, err := send(ctx, c, p)
		// Even if the message was refused the session is there.
		o.snapshot, o.followed = snap, true
		return o, err
	}, nil
}

func (s *state) create() protocol.SessionCreateParams {
	return protocol.SessionCreateParams{Mutation: mutation(), Title: s.next.title, Model: s.next.model, System: s.next.system, Workspace: s.workspace}
}

// content puts a message and what is attached to it into parts and context items.
func (s *state) content(text string) (protocol.SendContent, []protocol.ContextItem) {
	content := protocol.SendContent{}
	if text != "" {
		content = append(content, protocol.Part{Type: protocol.PartText, Text: text})
	}
	var items []protocol.ContextItem
	for _, a := range s.attached {
		if a.item != nil {
			items = append(items, *a.item)
		}
		if a.part != nil {
			content = append(content, *a.part)
		}
	}
	return content, items
}

func send(ctx context.Context, c caller, p protocol.TurnSendParams) (outcome, error) {
	t, err := call[protocol.TurnResult](ctx, c, protocol.MethodTurnSend, p)
	if err != nil {
		return outcome{}, err
	}
	o := outcome{turns: []string{t.ReplyID}, head: t.Head, sent: true}
	if t.State == protocol.StatusQueued {
		o.say = "it waits until this answer is done (/cancel waiting takes it out)"
	}
	return o, nil
}

// sendEdit returns what makes a new version of the node with a given id.
func (s *state) sendEdit(content protocol.SendContent, items []protocol.ContextItem) func(nodeID string) job {
	p := protocol.TurnEditParams{Mutation: mutation(), SessionID: s.session.SessionID, Content: content, Context: items}
	look := s.look()
	return func(nodeID string) job {
		p.NodeID = nodeID
		return look.after(func(ctx context.Context, c caller) (outcome, error) { return edit(ctx, c, p) })
	}
}

func edit(ctx context.Context, c caller, p protocol.TurnEditParams) (outcome, error) {
	t, err := call[protocol.TurnEditResult](ctx, c, protocol.MethodTurnEdit, p)
	if err != nil {
		return outcome{}, err
	}
	o := outcome{head: t.Head, sent: true}
	if t.ReplyID != "" {
		o.turns = []string{t.ReplyID}
	} else {
		o.say = "the new version stands beside the old one; /prev goes back to that"
	}
	return o, nil
}

func prepareEdit(s *state, arg string) (job, error) {
	word, text := firstWord(arg)
	if _, ok := messageNumber(word); !ok {
		word, text = "", arg
	}
	at, err := s.messageOr(word, isUser, "there is no message of yours to edit yet")
	if err != nil {
		return nil, err
	}
	if text != "" {
		send := s.sendEdit(s.content(text))
		return func(ctx context.Context, c caller) (outcome, error) {
			r, err := editable(ctx, c, at)
			if err != nil {
				return outcome{}, err
			}
			return send(r.ID)(ctx, c)
		}, nil
	}
	return func(ctx context.Context, c caller) (outcome, error) {
		r, err := editable(ctx, c, at)
		if err != nil {
			return outcome{}, err
		}
		return outcome{draft: &draft{text: partsText(r.Content), edits: r.ID, number: r.Depth, reply: isReply(r)}}, nil
	}, nil
}

func editable(ctx context.Context, c caller, at target) (protocol.Row, error) {
	r, err := at(ctx, c)
	switch {
	case err != nil:
		return r, err
	case !isTurn(r):
		return r, fmt.Errorf("#%d is a %s: only messages and answers can be edited", r.Depth, r.Kind)
	case !r.Status.Final():
		return r, fmt.Errorf("#%d is still being written: /cancel it first", r.Depth)
	}
	return r, nil
}

func prepareRetry(s *state, arg string) (job, error) { return s.retry(arg, 1) }

// retry has a message answered again, n times side by side.
func (s *state) retry(arg string, n int) (job, error) {
	word, model := firstWord(arg)
	if _, ok := messageNumber(word); !ok {
		word, model = "", arg
	}
	at, err := s.messageOr(word, isTurn, "there is nothing to answer yet: write a message first")
	if err != nil {
		return nil, err
	}
	p := protocol.TurnRetryParams{Mutation: mutation(), SessionID: s.session.SessionID, Model: model, Count: n}
	return s.look().after(func(ctx context.Context, c caller) (outcome, error) {
		r, err := at(ctx, c)
		if err != nil {
			return outcome{}, err
		}
		if isReply(r) && !r.Status.Final() {
			return outcome{}, fmt.Errorf("#%d is still being written: /cancel it first", r.Depth)
		}
		p.NodeID = r.ID
		t, err := call[protocol.TurnRetryResult](ctx, c, protocol.MethodTurnRetry, p)
		if err != nil {
			return outcome{}, err
		}
		o := outcome{head: t.Head}
		for _, k := range t.Candidates {
			o.turns = append(o.turns, k.ReplyID)
		}
		if n > 1 {
			o.say = fmt.Sprintf("%d answers are written side by side: this is the first; /next shows the next", n)
		}
		return o, nil
	}), nil
}

func prepareCancel(s *state, arg string) (job, error) {
	if err := s.needSession(); err != nil {
		return nil, err
	}
	id := s.session.SessionID
	if ids := s.writing(); arg == "" && len(ids) > 0 {
		return cancelAll(id, ids), nil
	}
	n := len(s.queue)
	if given, err := strconv.Atoi(arg); err == nil {
		if given < 1 || given > n {
			return nil, fmt.Errorf("there is no waiting message %d: %s", given, isOrAre(n))
		}
		n = given
	} else if arg != "" && arg != "waiting" {
		return nil, errors.New("/cancel stops the answer, /cancel waiting takes out the last message that waits, /cancel 1 the first")
	}
	switch {
	case n > 0:
		q := s.queue[n-1]
		return cancel(id, q.ReplyID, "taken out of the queue: "+line(q.Preview, 60)), nil
	case arg != "":
		return nil, errors.New("no message waits")
	}
	return nil, errors.New("there is nothing to cancel: no answer is being written and no message waits")
}

// isOrAre tells how many messages wait.
func isOrAre(n int) string {
	switch n {
	case 0:
		return "none waits"
	case 1:
		return "one waits"
	}
	return fmt.Sprintf("%d wait", n)
}

// cancelAll stops replies that are being written.
func cancelAll(session string, replies []string) job {
	return func(ctx context.Context, c caller) (o outcome, err error) {
		for _, id := range replies {
			var failed error
			if o, failed = cancel(session, id, "stopped; what had arrived is kept (/retry answers again)")(ctx, c); failed != nil {
				err = errors.Join(err, failed)
			}
		}
		return o, err
	}
}

func cancel(session, reply, text string) job {
	p := protocol.TurnCancelParams{RequestID: ulid.Make().String(), SessionID: session, ReplyID: reply}
	return func(ctx context.Context, c caller) (outcome, error) {
		r, err := call[protocol.TurnCancelResult](ctx, c, protocol.MethodTurnCancel, p)
		if err != nil {
			return outcome{}, err
		}
		if r.State == protocol.StatusSealed {
			text = "the answer was complete before it could be stopped"
		}
		return outcome{say: text}, nil
	}
}

func prepareCopy(s *state, arg string) (job, error) {
	at, err := s.messageOr(arg, isReply, "there is no answer to copy yet")
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, c caller) (outcome, error) {
		r, err := at(ctx, c)
		if err != nil {
			return outcome{}, err
		}
		text := partsText(r.Content)
		switch {
		case !r.Status.Final():
			return outcome{}, fmt.Errorf("#%d is still being written: copy it when it is done", r.Depth)
		case text == "":
			return outcome{}, fmt.Errorf("#%d has no text to copy", r.Depth)
		}
		return outcome{copy: text, say: fmt.Sprintf("#%d is in the clipboard, if the terminal allows it", r.Depth)}, nil
	}, nil
}
