package turn

import (
	"context"
	"slices"

	"convls/projection"
	"convls/protocol"
	"convls/store"
)

// read runs f on a picture of a session.
func read[T any](sess *store.Session, f func(*store.Reader) (T, error)) (T, error) {
	r, err := sess.Reader()
	if err != nil {
		var none T
		return none, err
	}
	defer r.Close()
	return f(r)
}

// Wait returns how the turn with this first reply ended, and its last reply: nil
// for a send that was taken out of the queue and never began. For one that is held
// it returns queued at once: only a person can tell when that goes on. If ctx ends
// first the turn goes on.
func (e *Engine) Wait(ctx context.Context, sess *store.Session, replyID string) (protocol.Status, *protocol.Node, error) {
	for {
		changed := e.watch(sess.ID())
		if r := e.find(sess.ID(), replyID); r != nil {
			select {
			case <-r.done:
				n, err := readNode(sess, r.last)
				if protocol.CodeOf(err) == protocol.CodeUnknownNode {
					return r.final, nil, nil // its branch was deleted meanwhile
				}
				return r.final, &n, err
			case <-ctx.Done():
				return "", nil, ctx.Err()
			}
		}
		q, err := queued(sess, replyID)
		if err != nil {
			return "", nil, err
		}
		if q != nil && q.Held {
			return protocol.StatusQueued, nil, nil
		}
		if q == nil {
			n, err := lastReply(sess, replyID)
			if protocol.CodeOf(err) == protocol.CodeUnknownNode {
				return protocol.StatusCancelled, nil, nil
			}
			return n.Status, &n, err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return "", nil, ctx.Err()
		}
	}
}

// queued returns the send that waits with this reply id, nil if none does.
func queued(sess *store.Session, replyID string) (*store.Queued, error) {
	return read(sess, func(r *store.Reader) (*store.Queued, error) {
		queue, err := r.Queue()
		if i := slices.IndexFunc(queue, func(q store.Queued) bool { return q.ReplyID == replyID }); i >= 0 {
			return &queue[i], err
		}
		return nil, err
	})
}

// lastReply returns the last reply of the turn that has ended and whose first
// reply this is: the model calls of one turn follow each other without a message
// between them.
func lastReply(sess *store.Session, id string) (protocol.Node, error) {
	return read(sess, func(r *store.Reader) (protocol.Node, error) {
		s, err := r.Lookup(id)
		for err == nil {
			var next store.Skeleton
			if next, err = projection.NextReply(r, s); next.Seq == 0 {
				break
			}
			s = next
		}
		if err != nil {
			return protocol.Node{}, err
		}
		return r.Node(s)
	})
}

func readNode(sess *store.Session, id string) (protocol.Node, error) {
	return read(sess, func(r *store.Reader) (protocol.Node, error) {
		s, err := r.Lookup(id)
		if err != nil {
			return protocol.Node{}, err
		}
		return r.Node(s)
	})
}
