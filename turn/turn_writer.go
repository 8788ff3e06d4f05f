package turn

import (
	"context"
	"fmt"
	"slices"

	"go.uber.org/zap"

	"convls/model"
	"convls/protocol"
	"convls/store"
)

// TurnWriter makes every write of a turn, and alone applies its head policy: the
// rest of this package can not move HEAD, and a test holds it to that.
type TurnWriter struct {
	sess *store.Session
	log  *zap.Logger
	// advance is false for turns whose nodes must not move HEAD even where they
	// extend the chain at it.
	advance bool
	origin  protocol.Origin
	// running reports whether the turn that has written a reply still runs.
	running func(replyID string) bool
}

func (w *TurnWriter) request(cause string) store.Request {
	return store.Request{Origin: w.origin, Cause: cause, Unreserved: true}
}

// admission is what an admitted turn has written.
type admission struct {
	UserID  string          `json:"user_id"`
	ReplyID string          `json:"reply_id"`
	State   protocol.Status `json:"state"`
	Head    string          `json:"head"`
	// Candidates are the replies that a retry began.
	Candidates []string `json:"candidates,omitempty"`

	// replies are the skeletons of what was begun; not kept in a receipt.
	replies []store.Skeleton
}

// message is a user's message that is to be written.
type message struct {
	userID, replyID string
	parts           []protocol.Part
	model           string
	tools           []protocol.ToolDeclaration
	// caller and exposed are of a spawned turn.
	caller  store.Seq
	exposed bool
	// counter counts the message once, so that later turns need not.
	counter *model.Counter
}

// begin writes a user node after at, and its open reply. A send that was queued goes
// on with the turn before it, and takes HEAD along only if it is at at; any other
// takes HEAD with it.
func (w *TurnWriter) begin(tx *store.Tx, at store.Skeleton, m message, queued bool) (admission, error) {
	user, err := tx.Append(store.NodeSpec{ID: m.userID, Kind: protocol.KindUser, Predecessor: at.Seq, Caller: m.caller, Exposed: m.exposed,
		Status: protocol.StatusSealed, Content: store.Content{Parts: m.parts}, Tokens: m.counter.Parts(m.parts), Tokenizer: m.counter.ID(),
		HeadNeutral: !w.advance, Continues: queued})
	if err != nil {
		return admission{}, err
	}
	if w.advance {
		if err := w.title(tx, user, m.parts); err != nil {
			return admission{}, err
		}
		if !queued && tx.State.Head != user.Seq {
			if err := tx.SetHead(user, ""); err != nil {
				return admission{}, err
			}
		}
	}
	reply, err := w.reply(tx, m.replyID, user, m.model, true)
	if err != nil {
		return admission{}, err
	}
	if w.advance {
		if err := w.adopt(tx, reply); err != nil {
			return admission{}, err
		}
	}
	tx.Emit(protocol.Event{Type: protocol.EventTurnStarted, UserID: user.ID, ReplyID: reply.ID, Model: m.model})
	head, err := tx.ID(tx.State.Head)
	return admission{UserID: user.ID, ReplyID: reply.ID, State: protocol.StatusRunning, Head: head, replies: []store.Skeleton{reply}}, err
}

// beginQueued takes the first of the sends that waited for a turn out of the queue and
// begins it after at, with the ids that it was promised. The others wait for it now.
func (w *TurnWriter) beginQueued(tx *store.Tx, at store.Skeleton, queue []store.Queued, r *run) (admission, error) {
	q := queue[0]
	if err := tx.Dequeue(q); err != nil {
		return admission{}, err
	}
	a, err := w.begin(tx, at, message{userID: q.UserID, replyID: q.ReplyID, parts: q.Content, model: r.model, tools: q.Tools, counter: r.counter}, true)
	if err != nil {
		return a, err
	}
	for _, next := range queue[1:] {
		next.After = a.replies[0].Seq
		if err := tx.Requeue(next); err != nil {
			return a, err
		}
	}
	return a, nil
}

// reply writes an open reply after at; continues as in [store.NodeSpec].
func (w *TurnWriter) reply(tx *store.Tx, id string, at store.Skeleton, model string, continues bool) (store.Skeleton, error) {
	return tx.Append(store.NodeSpec{ID: id, Kind: protocol.KindAssistant, Predecessor: at.Seq, Status: protocol.StatusOpen,
		Content: store.Content{Model: model}, HeadNeutral: !w.advance, Continues: continues})
}

// adopt makes the sends that are held on the chain of a new turn's first reply, or at
// the message that it answers, wait for that turn. Those that wait for one that still
// runs are let be: a send starts on the chain where it was queued, whichever turn is
// the first to end.
func (w *TurnWriter) adopt(tx *store.Tx, reply store.Skeleton) error {
	queue, err := tx.Queue()
	if err != nil {
		return err
	}
	for _, q := range queue {
		if !q.Held {
			continue
		}
		after, err := tx.Skeleton(q.After)
		if err != nil {
			continue // its chain can not be read, and nobody can tell where it belongs
		}
		if w.running(after.ID) {
			continue
		}
		if after.Kind == protocol.KindAssistant {
			if after, err = tx.Skeleton(after.Predecessor); err != nil {
				return err
			}
		}
		if on, err := tx.IsAncestor(after, reply); err != nil {
			return err
		} else if !on {
			continue
		}
		q.After = reply.Seq
		if err := tx.Requeue(q); err != nil {
			return err
		}
	}
	return nil
}

// title names a session after its first message, if nobody has named it.
func (w *TurnWriter) title(tx *store.Tx, user store.Skeleton, parts []protocol.Part) error {
	info, err := tx.Info()
	if err != nil || info.Title != "" {
		return err
	}
	if info.Title = titleOf(parts); info.Title == "" {
		return nil
	}
	info.TitleFrom = user.Seq
	return tx.SetInfo(info)
}

// sendOrQueue admits a message at HEAD: it begins, or waits for the run that
// writes there. started is called before the batch is committed.
func (w *TurnWriter) sendOrQueue(ctx context.Context, req store.Request, m message, blocked func(tx *store.Tx, head store.Skeleton) (bool, error),
	started func(admission) error) (store.Outcome[admission], error) {
	return store.Apply(ctx, w.sess, req, func(tx *store.Tx) (admission, error) {
		head, err := tx.Skeleton(tx.State.Head)
		if err != nil {
			return admission{}, err
		}
		wait, err := blocked(tx, head)
		if err != nil {
			return admission{}, err
		}
		if !wait {
			a, err := w.begin(tx, head, m, false)
			if err != nil {
				return a, err
			}
			return a, started(a)
		}
		_, err = tx.Enqueue(store.Queued{After: head.Seq, UserID: m.userID, ReplyID: m.replyID, Origin: w.origin, Content: m.parts,
			Model: m.model, Tools: m.tools, Advance: w.advance})
		return admission{UserID: m.userID, ReplyID: m.replyID, State: protocol.StatusQueued, Head: head.ID}, err
	})
}

// spawn admits a message on a side branch of its own: after head, or, if that is "",
// after the chain node that caller hangs off, or HEAD. Without a caller the node that
// it follows counts as the one that invokes it: so a spawned turn can be told from
// what the conversation goes on with.
func (w *TurnWriter) spawn(ctx context.Context, req store.Request, headID, callerID string, m message, started func(admission) error) (store.Outcome[admission], error) {
	return store.Apply(ctx, w.sess, req, func(tx *store.Tx) (admission, error) {
		caller, err := callerOf(tx, callerID)
		if err != nil {
			return admission{}, err
		}
		var at store.Skeleton
		if headID == "" && callerID != "" {
			if at, err = tx.Owner(caller); err == nil {
				at, err = settledAt(tx, at)
			}
		} else {
			at, err = renderedFrom(tx, headID)
		}
		if err != nil {
			return admission{}, err
		}
		if m.caller = caller.Seq; callerID == "" {
			m.caller = at.Seq
		}
		a, err := w.begin(tx, at, m, false)
		if err != nil {
			return a, err
		}
		return a, started(a)
	})
}

// side is a call off the chain that is to be written.
type side struct {
	head, caller string
	prompt       []protocol.Part
	model        string
	exposed      bool
}

// openCall admits a call off the chain: an open call node that hangs off its caller,
// or off the node whose context it reads. It returns that node, too.
func (w *TurnWriter) openCall(ctx context.Context, req store.Request, s side, started func(a admission, at store.Skeleton) error) (store.Outcome[admission], error) {
	return store.Apply(ctx, w.sess, req, func(tx *store.Tx) (admission, error) {
		caller, err := callerOf(tx, s.caller)
		if err != nil {
			return admission{}, err
		}
		at, err := renderedFrom(tx, s.head)
		if err != nil {
			return admission{}, err
		}
		spec := store.NodeSpec{Kind: protocol.KindCall, Caller: caller.Seq, Status: protocol.StatusOpen, Exposed: s.exposed,
			Content: store.Content{Model: s.model, Prompt: s.prompt}}
		if s.caller == "" {
			spec.Predecessor = at.Seq
		}
		call, err := tx.Append(spec)
		if err != nil {
			return admission{}, err
		}
		tx.Emit(protocol.Event{Type: protocol.EventTurnStarted, ReplyID: call.ID, Model: s.model})
		head, err := tx.ID(tx.State.Head)
		if err != nil {
			return admission{}, err
		}
		a := admission{ReplyID: call.ID, State: protocol.StatusRunning, Head: head, replies: []store.Skeleton{call}}
		return a, started(a, at)
	})
}

// callerOf returns the node that invokes a call or a spawned turn, the zero Skeleton
// for "".
func callerOf(tx *store.Tx, id string) (store.Skeleton, error) {
	if id == "" {
		return store.Skeleton{}, nil
	}
	return tx.Lookup(id)
}

// renderedFrom returns the chain node with this id, HEAD for "", or the last one before
// it that is not being written.
func renderedFrom(tx *store.Tx, id string) (store.Skeleton, error) {
	at, err := tx.Skeleton(tx.State.Head)
	if id != "" {
		at, err = tx.LookupChain(id)
	}
	if err != nil {
		return at, err
	}
	return settledAt(tx, at)
}

func settledAt(tx *store.Tx, at store.Skeleton) (store.Skeleton, error) {
	for at.Status == protocol.StatusOpen {
		var err error
		if at, err = tx.Skeleton(at.Predecessor); err != nil {
			return at, err
		}
	}
	return at, nil
}

// retry admits count new replies beside, or after, a node. HEAD goes to the first.
func (w *TurnWriter) retry(ctx context.Context, req store.Request, nodeID string, count int, model string,
	started func(admission) error) (store.Outcome[admission], error) {
	return store.Apply(ctx, w.sess, req, func(tx *store.Tx) (admission, error) {
		at, err := tx.LookupChain(nodeID)
		if err != nil {
			return admission{}, err
		}
		switch at.Kind {
		case protocol.KindAssistant:
			if at, err = tx.Skeleton(at.Predecessor); err != nil {
				return admission{}, err
			}
		case protocol.KindUser:
		default:
			return admission{}, protocol.Errorf(protocol.CodeInvalidParams, "node %q is a %s: only a message or a reply can be retried", nodeID, at.Kind)
		}
		a := admission{State: protocol.StatusRunning}
		if at.Kind == protocol.KindUser {
			a.UserID = at.ID
		} else if a.UserID, err = w.userOf(tx, at); err != nil {
			return a, err
		}
		for range count {
			reply, err := w.reply(tx, "", at, model, false)
			if err != nil {
				return a, err
			}
			tx.Emit(protocol.Event{Type: protocol.EventTurnStarted, UserID: a.UserID, ReplyID: reply.ID, Model: model})
			a.Candidates = append(a.Candidates, reply.ID)
			a.replies = append(a.replies, reply)
		}
		a.ReplyID, a.Head = a.Candidates[0], a.Candidates[0]
		if tx.State.Head != a.replies[0].Seq {
			if err := tx.SetHead(a.replies[0], ""); err != nil {
				return a, err
			}
		}
		if err := w.adopt(tx, a.replies[0]); err != nil {
			return a, err
		}
		return a, started(a)
	})
}

// userOf returns the id of the user node whose turn a reply belongs to; "" if it
// belongs to none.
func (w *TurnWriter) userOf(tx *store.Tx, at store.Skeleton) (string, error) {
	for s, err := range tx.Spine(at) {
		if err != nil {
			return "", err
		}
		if s.Kind == protocol.KindUser {
			return s.ID, nil
		}
	}
	return "", nil
}

// editUser admits a new message beside a user node.
func (w *TurnWriter) editUser(ctx context.Context, req store.Request, nodeID string, m message,
	started func(admission) error) (store.Outcome[admission], error) {
	return store.Apply(ctx, w.sess, req, func(tx *store.Tx) (admission, error) {
		old, err := tx.LookupChain(nodeID)
		if err != nil {
			return admission{}, err
		}
		at, err := tx.Skeleton(old.Predecessor)
		if err != nil {
			return admission{}, err
		}
		a, err := w.begin(tx, at, m, false)
		if err != nil {
			return a, err
		}
		return a, started(a)
	})
}

// editReply writes a sibling of a reply with the given text. The old one, and
// what follows it, stays as it is.
func (w *TurnWriter) editReply(ctx context.Context, req store.Request, nodeID string, parts []protocol.Part, tokens int, tokenizer string) (store.Outcome[admission], error) {
	return store.Apply(ctx, w.sess, req, func(tx *store.Tx) (admission, error) {
		old, err := tx.LookupChain(nodeID)
		if err != nil {
			return admission{}, err
		}
		from, err := protocol.Marshal(old.ID)
		if err != nil {
			return admission{}, err
		}
		sk, err := tx.Append(store.NodeSpec{Kind: protocol.KindAssistant, Predecessor: old.Predecessor, Status: protocol.StatusSealed,
			Tokens: tokens, Tokenizer: tokenizer,
			Content: store.Content{Parts: parts, StopReason: "edited", Metadata: map[string]protocol.Raw{"edited_from": from}}})
		if err != nil {
			return admission{}, err
		}
		if tx.State.Head != sk.Seq {
			if err := tx.SetHead(sk, ""); err != nil {
				return admission{}, err
			}
		}
		return admission{ReplyID: sk.ID, State: protocol.StatusSealed, Head: sk.ID}, nil
	})
}

// checkpoint keeps streamed text. A failure is logged and no more: the seal
// writes the whole.
func (w *TurnWriter) checkpoint(reply store.Seq, part int, kind protocol.DeltaKind, text string) {
	if err := w.sess.Checkpoint(reply, part, kind, text); err != nil {
		w.log.Warn("streamed text is not kept", zap.Error(err))
	}
}

// retrying tells clients that a model call is tried again after a wait.
func (w *TurnWriter) retrying(ctx context.Context, reply store.Skeleton, attempt int, afterMS int64, cause *protocol.NodeError) {
	_, err := store.Apply(ctx, w.sess, w.request("retrying"), func(tx *store.Tx) (struct{}, error) {
		tx.Emit(protocol.Event{Type: protocol.EventTurnRetrying, NodeID: reply.ID, ReplyID: reply.ID, Attempt: attempt, AfterMS: afterMS, Error: cause})
		return struct{}{}, nil
	})
	if err != nil {
		w.log.Warn("a retry is not announced", zap.Error(err))
	}
}

// toolCall is a call that a reply asks for: what its tool node begins with.
type toolCall struct {
	id   string // of the tool node
	part protocol.Part
	node store.Skeleton
}

// sealCalling seals a reply that calls tools, and writes their nodes in the same
// batch, so that no reply is ever without the calls that it names.
func (w *TurnWriter) sealCalling(reply store.Skeleton, f store.Final, calls []toolCall) error {
	_, err := store.Apply(context.Background(), w.sess, w.request("turn"), func(tx *store.Tx) (struct{}, error) {
		if _, err := tx.Seal(reply.Seq, f); err != nil {
			return struct{}{}, err
		}
		for i := range calls {
			var err error
			calls[i].node, err = tx.Append(store.NodeSpec{ID: calls[i].id, Kind: protocol.KindTool, Caller: reply.Seq, Status: protocol.StatusOpen,
				Content: store.Content{Parts: []protocol.Part{calls[i].part}}})
			if err != nil {
				return struct{}{}, err
			}
		}
		return struct{}{}, nil
	})
	if err != nil {
		return fmt.Errorf("seal a reply that calls tools: %w", err)
	}
	return nil
}

// sealTool seals a tool node with its result.
func (w *TurnWriter) sealTool(tool store.Skeleton, f store.Final) error {
	_, err := store.Apply(context.Background(), w.sess, w.request("turn"), func(tx *store.Tx) (struct{}, error) {
		_, err := tx.Seal(tool.Seq, f)
		return struct{}{}, err
	})
	if err != nil {
		return fmt.Errorf("seal a tool call: %w", err)
	}
	return nil
}

// next writes the open reply that follows a reply whose tools have answered.
// started is called before the batch is committed.
func (w *TurnWriter) next(at store.Skeleton, model string, started func(store.Skeleton)) error {
	_, err := store.Apply(context.Background(), w.sess, w.request("turn"), func(tx *store.Tx) (struct{}, error) {
		reply, err := w.reply(tx, "", at, model, true)
		if err == nil {
			started(reply)
		}
		return struct{}{}, err
	})
	if err != nil {
		return fmt.Errorf("go on after tool calls: %w", err)
	}
	return nil
}

// finish ends a turn: it seals the last reply, if that is still open, tells how
// the turn ended, and in the same batch begins the send that waits for it, if one
// does. ended is called before the batch is committed, with what was begun.
func (w *TurnWriter) finish(reply store.Skeleton, f *store.Final, events []protocol.Event, ended func(tx *store.Tx) error) error {
	_, err := store.Apply(context.Background(), w.sess, w.request("turn"), func(tx *store.Tx) (struct{}, error) {
		if f != nil {
			if _, err := tx.Seal(reply.Seq, *f); err != nil {
				return struct{}{}, err
			}
		}
		for _, e := range events {
			tx.Emit(e)
		}
		return struct{}{}, ended(tx)
	})
	if err != nil {
		return fmt.Errorf("end a turn: %w", err)
	}
	return nil
}

// waiting returns the sends that wait for the turn with these replies, first to start
// first.
func waiting(tx *store.Tx, replies []string) ([]store.Queued, error) {
	queue, err := tx.Queue()
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(queue, func(q store.Queued) bool {
		after, err := tx.Skeleton(q.After)
		return err != nil || !slices.Contains(replies, after.ID) // where it belongs can not be read: it stays where it is
	}), nil
}

// hold holds the sends that wait for a turn that did not succeed.
func hold(tx *store.Tx, queue []store.Queued) error {
	for _, q := range queue {
		if !q.Held {
			q.Held = true
			if err := tx.Requeue(q); err != nil {
				return err
			}
		}
	}
	return nil
}

// waitAt makes sends that waited for a turn wait at the node where that has ended.
func waitAt(tx *store.Tx, tip store.Skeleton, queue []store.Queued) error {
	for _, q := range queue {
		q.After = tip.Seq
		if err := tx.Requeue(q); err != nil {
			return err
		}
	}
	return nil
}

// resume begins sends that waited for something other than a turn.
func (w *TurnWriter) resume(start func(tx *store.Tx) error) error {
	_, err := store.Apply(context.Background(), w.sess, w.request("send"), func(tx *store.Tx) (struct{}, error) {
		return struct{}{}, start(tx)
	})
	if err != nil {
		return fmt.Errorf("begin the sends that waited: %w", err)
	}
	return nil
}

// dequeue takes a queued send out before it starts; false if it does not wait.
func (w *TurnWriter) dequeue(ctx context.Context, req store.Request, replyID string) (dequeued, string, error) {
	out, err := store.Apply(ctx, w.sess, req, func(tx *store.Tx) (dequeued, error) {
		queue, err := tx.Queue()
		if err != nil {
			return dequeued{}, err
		}
		for _, q := range queue {
			if q.ReplyID == replyID {
				tx.Emit(protocol.Event{Type: protocol.EventTurnCancelled, ReplyID: q.ReplyID, UserID: q.UserID, NodeID: q.ReplyID, Status: protocol.StatusCancelled})
				return dequeued{Was: true, Content: q.Content}, tx.Dequeue(q)
			}
		}
		return dequeued{}, nil
	})
	return out.Result, out.Cursor, err
}

// dequeued tells whether a send was in the queue, and what it said.
type dequeued struct {
	Was     bool            `json:"was"`
	Content []protocol.Part `json:"content,omitempty"`
}

// deleteBranch takes a branch away that a person gave up while its turn was
// running; see [store.DeleteBranch].
func (w *TurnWriter) deleteBranch(ctx context.Context, req store.Request, tip, branch string, confirm bool) (store.Outcome[store.Removed], error) {
	return store.DeleteBranch(ctx, w.sess, req, tip, branch, confirm)
}
