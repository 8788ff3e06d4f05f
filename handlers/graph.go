package handlers

import (
	"context"
	"slices"

	"convls/projection"
	"convls/protocol"
	"convls/store"
)

func (h *Handlers) graphGet(_ context.Context, _ Conn, p *protocol.GraphGetParams, _ input) (*protocol.GraphView, error) {
	n, err := limit(p.Limit, 200, 2_000)
	if err != nil {
		return nil, err
	}
	if err := oneWindow(p.Before, p.After, p.Around); err != nil {
		return nil, err
	}
	if p.Covers != "" && p.Covers != "ids" && p.Covers != "count" {
		return nil, protocol.Errorf(protocol.CodeInvalidParams, "covers is ids or count, not %q", p.Covers)
	}
	if p.Since < 0 {
		return nil, protocol.Errorf(protocol.CodeInvalidParams, "since is the revision of a view, not %d", p.Since)
	}
	var g *protocol.GraphView
	return g, h.read(p.SessionID, func(_ *store.Session, r *store.Reader) error {
		w := projection.GraphWindow{Expanded: p.Expanded, Around: p.Around, Before: p.Before, After: p.After, Limit: n,
			Since: p.Since, ReadsOf: p.ReadsOf, CountCovers: p.Covers == "count"}
		if w.Head, err = seenFrom(r, p.Head); err != nil {
			return err
		}
		g, err = projection.Graph(r, w)
		return err
	})
}

// oneWindow refuses more than one way to choose a window.
func oneWindow(before, after, around string) error {
	if len(slices.DeleteFunc([]string{before, after, around}, func(s string) bool { return s == "" })) > 1 {
		return protocol.Errorf(protocol.CodeInvalidParams, "before, after and around are three ways to choose the rows: give one of them")
	}
	return nil
}
