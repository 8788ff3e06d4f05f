package crash

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"convls/client"
	"convls/protocol"
	"convls/test/editor"
)

// replayed is how many events a subscription replays at most.
const replayed = 1_000

// session is a session and what the server has said of it.
type session struct {
	*killer
	id, first string
	// events are all that came, over all servers.
	events []protocol.Event
	// said is the text of replies that ended, by id, and asked what they answer.
	said, asked map[string]string
	users       []string
	replies     []string
	gone        map[string]bool
	// pending is the request whose answer was lost.
	pending *request
	serial  int
	// changes are those that were acknowledged since the last kill.
	changes []*request
}

// request is a change.
type request struct {
	method string
	params map[string]any
	// tag is in the text that the change writes, and nowhere else.
	tag    string
	result answer
	code   protocol.Code
}

// answer is what the answers to changes have in common.
type answer struct {
	UserID     string               `json:"user_id"`
	ReplyID    string               `json:"reply_id"`
	NodeID     string               `json:"node_id"`
	State      protocol.Status      `json:"state"`
	Cursor     string               `json:"cursor"`
	Head       string               `json:"head"`
	RemovedIDs []string             `json:"removed_ids"`
	Candidates []protocol.Candidate `json:"candidates"`
	Node       *protocol.Node       `json:"node"`
}

func newSession(k *killer) *session {
	s := &session{killer: k, said: map[string]string{}, asked: map[string]string{}, gone: map[string]bool{}}
	r := editor.Ask[protocol.SessionResult](k.ed, protocol.MethodSessionCreate, protocol.SessionCreateParams{})
	s.id, s.first = r.SessionID, r.Cursor
	s.follow()
	return s
}

// follow subscribes to the session from its beginning and returns the events that
// there are; false if they are more than a subscription replays.
func (s *session) follow() (events []protocol.Event, all bool) {
	r := editor.Ask[protocol.SubscribeResult](s.ed, protocol.MethodSessionSubscribe, protocol.SubscribeParams{SessionID: s.id, After: s.first})
	if r.Reset {
		if n := s.number(r.Cursor) - s.number(s.first); n <= replayed {
			s.t.Fatalf("the %d events of session %s are not replayed from its beginning", n, s.id)
		}
		return nil, false
	}
	s.ed.Await("the events of session "+s.id, func(seen *editor.Seen) bool {
		events = slices.Clone(seen.Events[s.id])
		return r.Cursor == s.first || len(events) > 0 && events[len(events)-1].Cursor == r.Cursor
	})
	return events, true
}

// number returns the number of the event that a cursor names.
func (s *session) number(cursor string) int {
	_, digits, _ := strings.Cut(cursor, ".")
	n, err := strconv.Atoi(digits)
	if err != nil {
		s.t.Fatalf("cursor %q names no event: %v", cursor, err)
	}
	return n
}

// work makes random changes, one after the other, until the server is gone.
func (s *session) work(r *rand.Rand) {
	for s.pending == nil {
		q := s.choose(r)
		texts := s.seen()
		if !s.send(q) {
			s.pending = q
			return
		}
		if q.code == "" { // what was refused wrote nothing, and so made nothing durable
			s.acknowledge(texts)
		}
		s.took(q)
	}
}

// send sends a request; false if the server went away.
func (s *session) send(q *request) bool {
	ctx, cancel := context.WithTimeout(s.t.Context(), time.Minute)
	defer cancel()
	var err error
	q.result, err = client.Do[answer](ctx, s.ed.Client, q.method, q.params)
	refusal, refused := errors.AsType[*protocol.Error](err)
	switch {
	case refused && refusal.Code != protocol.CodeServerRestarted:
		q.code = refusal.Code
	case errors.Is(err, client.ErrClosed) || refused:
		return false
	case err != nil:
		s.t.Errorf("%s: %v", q.method, err)
		return false
	}
	return true
}

// took notes what an answer tells.
func (s *session) took(q *request) {
	s.changes = append(s.changes, q)
	if q.code != "" {
		return
	}
	a := q.result
	if a.UserID != "" && a.ReplyID != "" {
		s.users = append(s.users, a.UserID)
	}
	if a.ReplyID != "" {
		s.replies = append(s.replies, a.ReplyID)
		s.asked[a.ReplyID], _ = q.params["content"].(string)
	}
	for _, c := range a.Candidates {
		s.replies = append(s.replies, c.ReplyID)
		s.asked[c.ReplyID] = s.asked[s.parentOf(q)]
	}
	if a.Node != nil && a.State.Final() {
		s.said[a.Node.ID] = text(*a.Node)
	}
	for _, id := range a.RemovedIDs {
		s.gone[id] = true
	}
}

// parentOf returns the reply to the same message as a retry's.
func (s *session) parentOf(q *request) string {
	id, _ := q.params["node_id"].(string)
	return id
}

func text(n protocol.Node) string {
	var b strings.Builder
	for _, p := range n.Content {
		if p.Type == protocol.PartText {
			b.WriteString(p.Text)
		}
	}
	return b.String()
}

// choose makes a change up.
func (s *session) choose(r *rand.Rand) *request {
	s.serial++
	tag := fmt.Sprintf("<%s %d>", s.id[len(s.id)-6:], s.serial)
	q := &request{params: map[string]any{"session_id": s.id, "request_id": tag}, tag: tag}
	put := func(method string, more map[string]any) *request {
		q.method = method
		for k, v := range more {
			q.params[k] = v
		}
		return q
	}
	pick := func(ids []string) string { return ids[max(0, len(ids)-1-r.IntN(8)):][0] }
	n := r.IntN(24)
	switch {
	case n < 8 || len(s.replies) == 0:
		return put(protocol.MethodTurnSend, map[string]any{"content": fmt.Sprintf("slow 1ms: count to %d %s", 40+r.IntN(200), tag)})
	case n < 11:
		return put(protocol.MethodTurnSend, map[string]any{"content": "repeat: again " + tag, "wait": true})
	case n < 13:
		return put(protocol.MethodTurnRetry, map[string]any{"node_id": pick(s.replies)})
	case n < 15:
		return put(protocol.MethodTurnEdit, map[string]any{"node_id": pick(s.replies), "content": "edited " + tag})
	case n < 16 && len(s.users) > 0:
		return put(protocol.MethodTurnEdit, map[string]any{"node_id": pick(s.users), "content": "repeat: edited " + tag})
	case n < 18:
		return put(protocol.MethodBranchFork, map[string]any{"node_id": pick(s.replies), "name": "branch " + tag})
	case n < 19:
		return put(protocol.MethodBranchCheckout, map[string]any{"node_id": pick(s.replies), "descend": true})
	case n < 20:
		return put(protocol.MethodSessionRename, map[string]any{"title": "title " + tag})
	case n < 21:
		return put(protocol.MethodNodePin, map[string]any{"node_id": pick(s.replies)})
	case n < 23:
		return put(protocol.MethodTurnCancel, map[string]any{"reply_id": pick(s.replies)})
	default:
		return put(protocol.MethodBranchDelete, map[string]any{"tip": pick(s.replies), "confirm": true, "cancel": true})
	}
}

// remember takes over what the server sent before it was killed.
func (s *session) remember() {
	s.ed.Look(func(seen *editor.Seen) {
		for _, fault := range seen.Faults {
			s.t.Errorf("the server broke the protocol: %s", fault)
		}
		s.events = slices.Clone(seen.Events[s.id])
	})
	for _, e := range s.events {
		if e.Type == protocol.EventNodeSealed && e.Node != nil && e.Node.Status != protocol.StatusInterrupted {
			s.said[e.NodeID] = text(*e.Node)
		}
	}
}
