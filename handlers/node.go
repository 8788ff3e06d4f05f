package handlers

import (
	"cmp"
	"context"
	"slices"

	"convls/projection"
	"convls/protocol"
	"convls/store"
)

// maxNodeText is how much of a node a reply carries if nobody asks for more, in
// bytes: replies have a limit, and a change must not be answered by an error
// because what it returns is long.
const maxNodeText = 4 << 20

// maxRange is how much of a part a reply carries, in bytes: as base64 it still fits
// into a reply.
const maxRange = 4 << 20

func (h *Handlers) nodeGet(_ context.Context, _ Conn, p *protocol.NodeGetParams, _ input) (*protocol.NodeGetResult, error) {
	most := p.MaxBytes
	if most == 0 {
		most = maxNodeText
	}
	if most < 0 || most > 7<<20 {
		return nil, protocol.Errorf(protocol.CodeInvalidParams, "max_bytes is 1 to %d, not %d", 7<<20, most)
	}
	include := p.Include
	if len(include) == 0 {
		include = []string{"content"}
	}
	for _, i := range include {
		if i != "content" && i != "reads" && i != "provenance" {
			return nil, protocol.Errorf(protocol.CodeInvalidParams, "include names content, reads and provenance, not %q", i)
		}
	}
	if err := checkRange(p); err != nil {
		return nil, err
	}
	n := &protocol.NodeGetResult{}
	return n, h.read(p.SessionID, func(_ *store.Session, r *store.Reader) error {
		var err error
		if n.Node, err = projection.Node(r, p.NodeID, slices.Contains(include, "reads"), slices.Contains(include, "provenance")); err != nil {
			return err
		}
		if n.Status == protocol.StatusOpen {
			if live, ok := h.Engine.Live(p.SessionID, p.NodeID); ok {
				n.Content = live
			}
		}
		if p.Part != nil {
			return projection.Range(n, *p.Part, p.Offset, cmp.Or(p.Limit, maxRange))
		}
		if !slices.Contains(include, "content") {
			n.Content = []protocol.Part{}
		}
		store.TruncateText(&n.Node, int(most))
		return nil
	})
}

func checkRange(p *protocol.NodeGetParams) error {
	switch {
	case p.Part == nil && (p.Offset != 0 || p.Limit != 0):
		return protocol.Errorf(protocol.CodeInvalidParams, "offset and limit are of a part: say which one with part, counted from 0")
	case p.Part != nil && p.MaxBytes != 0:
		return protocol.Errorf(protocol.CodeInvalidParams, "max_bytes is of a whole node, offset and limit of a part: give the one or the others")
	case p.Limit < 0 || p.Limit > maxRange:
		return protocol.Errorf(protocol.CodeInvalidParams, "limit is 1 to %d bytes, not %d", maxRange, p.Limit)
	}
	return nil
}

// nodeResult returns a node as a mutation left it.
func (h *Handlers) nodeResult(sess *store.Session, id, cursor string) (*protocol.NodeResult, error) {
	res := &protocol.NodeResult{Cursor: cursor}
	return res, h.read(sess.ID(), func(_ *store.Session, r *store.Reader) error {
		var err error
		res.Node, err = projection.Node(r, id, false, false)
		store.TruncateText(&res.Node, maxNodeText)
		return err
	})
}

func (h *Handlers) nodePin(ctx context.Context, c Conn, p *protocol.NodeParams, in input) (*protocol.NodeResult, error) {
	return h.pin(ctx, c, p, in, true)
}

func (h *Handlers) nodeUnpin(ctx context.Context, c Conn, p *protocol.NodeParams, in input) (*protocol.NodeResult, error) {
	return h.pin(ctx, c, p, in, false)
}

func (h *Handlers) pin(ctx context.Context, c Conn, p *protocol.NodeParams, in input, pinned bool) (*protocol.NodeResult, error) {
	sess, err := h.Store.Session(p.SessionID)
	if err != nil {
		return nil, err
	}
	req := request(c, in, p.Mutation)
	out, err := store.Apply(ctx, sess, req, func(tx *store.Tx) (string, error) {
		sk, err := tx.LookupChain(p.NodeID)
		if err != nil {
			return "", err
		}
		return sk.ID, tx.Pin(sk, pinned)
	})
	if err != nil {
		return nil, err
	}
	return h.nodeResult(sess, out.Result, out.Cursor)
}

func (h *Handlers) nodeRedact(ctx context.Context, c Conn, p *protocol.RedactParams, in input) (*protocol.NodeResult, error) {
	sess, err := h.Store.Session(p.SessionID)
	if err != nil {
		return nil, err
	}
	out, err := store.Apply(ctx, sess, request(c, in, p.Mutation), func(tx *store.Tx) (string, error) {
		sk, err := tx.Lookup(p.NodeID)
		if err != nil {
			return "", err
		}
		if !p.Confirm {
			return "", store.ConfirmRequired(1, "the content of this node")
		}
		return sk.ID, tx.Redact(sk)
	})
	if err != nil {
		return nil, err
	}
	return h.nodeResult(sess, out.Result, out.Cursor)
}
