package chat

import (
	"convls/protocol"
)

// state is everything that a command can depend on, on the screen and in plain
// mode alike.
type state struct {
	conversation
	// next is what the session will be made with while there is none.
	next      fresh
	workspace string

	attached []attachment
	// editing is set while the input holds a new version of a message.
	editing *draft

	models   []protocol.Model
	sessions []protocol.Session
	hits     []protocol.SearchHit
}

// attachment is a file that goes with the next message.
type attachment struct {
	name string
	// item is a text; part is an image.
	item *protocol.ContextItem
	part *protocol.Part
}

// exists reports whether there is a session yet: it is made by the first message,
// so that starting the program and leaving it keeps nothing.
func (s *state) exists() bool { return s.session.SessionID != "" }

// needSession refuses a command that is about a session while there is none.
func (s *state) needSession() error {
	if s.exists() {
		return nil
	}
	return errNoSession
}

// modelName is the model that answers the next message; empty if only the server
// knows.
func (s *state) modelName() string {
	switch {
	case s.exists():
		return s.session.Model
	case s.next.model != "":
		return s.next.model
	}
	for _, m := range s.models {
		if m.IsDefault {
			return m.ID
		}
	}
	return ""
}

// title names the conversation for the status line.
func (s *state) title() string {
	switch {
	case s.session.Title != "":
		return s.session.Title
	case !s.exists() && s.next.title != "":
		return s.next.title
	case s.exists():
		return "untitled"
	}
	return "new conversation"
}

// take applies what of an outcome changes the state.
func (s *state) take(o outcome) effects {
	var fx effects
	if o.fresh != nil {
		s.clear()
		s.next = *o.fresh
		s.editing = nil
	}
	if o.snapshot != nil {
		if o.snapshot.Session.SessionID != s.session.SessionID {
			s.editing = nil
		}
		fx.add(s.load(o.snapshot, o.followed))
		s.next = fresh{}
	}
	if o.older != nil {
		s.older(o.older)
	}
	if len(o.turns) > 1 {
		fx.add(s.compete(o.turns))
	}
	if o.head != "" {
		s.session.Head = o.head
	}
	if o.sent {
		s.attached, s.editing = nil, nil
	}
	if o.detach {
		s.attached = nil
	}
	if o.attach != nil {
		s.attached = append(s.attached, *o.attach)
	}
	if o.draft != nil {
		s.editing = nil
		if o.draft.edits != "" {
			s.editing = o.draft
		}
	}
	if o.models != nil {
		s.models = o.models
	}
	if o.sessions != nil {
		s.sessions = o.sessions
	}
	if o.hits != nil {
		s.hits = o.hits
	}
	return fx
}
