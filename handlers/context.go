package handlers

import (
	"context"

	"convls/projection"
	"convls/protocol"
	"convls/store"
	"convls/turn"
)

func (h *Handlers) contextGet(_ context.Context, c Conn, p *protocol.ContextGetParams, _ input) (*protocol.ContextView, error) {
	n, err := limit(p.Limit, 500, 5_000)
	if err != nil {
		return nil, err
	}
	sess, err := h.Store.Session(p.SessionID)
	if err != nil {
		return nil, err
	}
	o := projection.Options{Raw: p.Raw}
	if o.Draft, err = turn.Draft(p.Draft); err != nil {
		return nil, err
	}
	return h.contextPage(c, sess, o, p.Head, p.Cursor, n, p.Text == nil || *p.Text)
}

// contextPage returns a page of the context view from a head.
func (h *Handlers) contextPage(c Conn, sess *store.Session, o projection.Options, head, cursor string, limit int, text bool) (*protocol.ContextView, error) {
	err := h.read(sess.ID(), func(_ *store.Session, r *store.Reader) (err error) {
		o.Head, err = seenFrom(r, head)
		return err
	})
	if err != nil {
		return nil, err
	}
	view, budget, err := h.Engine.Context(sess, environment(c), o)
	if err != nil {
		return nil, err
	}
	return projection.Page(view, budget, cursor, limit, text)
}

func (h *Handlers) transcriptGet(_ context.Context, _ Conn, p *protocol.TranscriptParams, _ input) (*protocol.Transcript, error) {
	n, err := limit(p.Limit, 50, 500)
	if err != nil {
		return nil, err
	}
	if err := oneWindow(p.Before, p.After, p.Around); err != nil {
		return nil, err
	}
	var t *protocol.Transcript
	return t, h.read(p.SessionID, func(_ *store.Session, r *store.Reader) error {
		w := projection.Window{Before: p.Before, After: p.After, Around: p.Around, Limit: n, Expanded: p.Expanded}
		if w.Head, err = seenFrom(r, p.Head); err != nil {
			return err
		}
		t, err = projection.Transcript(r, w)
		return err
	})
}
