package handlers

import (
	"context"
	"encoding/base64"

	"go.uber.org/zap"

	"convls/projection"
	"convls/protocol"
	"convls/settings"
	"convls/store"
)

// defaultPolicy is the compaction policy of sessions that name none.
const defaultPolicy = protocol.PolicyRolling

func checkPolicy(name string) error {
	if name != protocol.PolicyRolling && name != protocol.PolicyPerBranch {
		return protocol.Errorf(protocol.CodeNotSupported, "there is no policy %q: %s and %s are what there is", name, protocol.PolicyRolling, protocol.PolicyPerBranch)
	}
	return nil
}

func (h *Handlers) sessionCreate(ctx context.Context, c Conn, p *protocol.SessionCreateParams, in input) (*protocol.SessionResult, error) {
	s := c.Settings()
	info := store.Info{Title: p.Title, Model: first(p.Model, s.Model), Policy: first(p.Policy, s.Policy, defaultPolicy), Workspace: p.Workspace, Settings: p.Settings}
	if err := checkPolicy(info.Policy); err != nil {
		return nil, err
	}
	merged, err := h.sessionSettings(c, p.Settings)
	if err != nil {
		return nil, err
	}
	if _, _, err := h.Models.Resolve(merged, info.Model, c.Keys()); err != nil {
		return nil, err
	}
	out, err := h.Store.Create(ctx, request(c, in, p.Mutation), info, first(p.System, s.System))
	if err != nil {
		return nil, err
	}
	res, err := h.sessionResult(out.Result, out.Cursor)
	if out.Repeated && protocol.CodeOf(err) == protocol.CodeUnknownSession {
		return nil, protocol.Errorf(protocol.CodeUnknownSession, "session %s, which this request had made, was deleted since: use a new request_id to make another", out.Result)
	}
	return res, err
}

// sessionSettings lays a session's own settings over the client's, and refuses
// wrong ones now and not in some later turn.
func (h *Handlers) sessionSettings(c Conn, own protocol.Raw) (protocol.Settings, error) {
	warnings, err := settings.Check(own)
	if err != nil {
		return protocol.Settings{}, err
	}
	for _, w := range warnings {
		h.Logger.Warn("a setting of a session is ignored", zap.String("client", c.ID()), zap.String("why", w))
	}
	return settings.Merge(c.Settings(), own)
}

func first(values ...string) string {
	for _, v := range values {
		if v != "" {
			return v
		}
	}
	return ""
}

// sessionResult returns a session with its system prompt.
func (h *Handlers) sessionResult(id, cursor string) (*protocol.SessionResult, error) {
	res := &protocol.SessionResult{Cursor: cursor}
	return res, h.read(id, func(_ *store.Session, r *store.Reader) error {
		var err error
		res.Session, err = projection.Session(r)
		return err
	})
}

// listCursor spells the store's place in the list, which is two numbers: anybody
// could write those, and a client that made a cursor up must hear of it.
var listCursor = base64.RawURLEncoding.Strict()

func (h *Handlers) sessionList(ctx context.Context, _ Conn, p *protocol.SessionListParams, _ input) (*protocol.SessionListResult, error) {
	n, err := limit(p.Limit, 50, 500)
	if err != nil {
		return nil, err
	}
	after, err := listCursor.DecodeString(p.Cursor)
	if err != nil {
		return nil, protocol.Errorf(protocol.CodeInvalidParams, "cursor %q is not one that session/list gave: leave it out for the first page", p.Cursor)
	}
	listed, next, err := h.Store.Sessions(ctx, store.Filter{Query: p.Query, Workspace: p.Workspace, After: string(after), Limit: n})
	if err != nil {
		return nil, err
	}
	res := &protocol.SessionListResult{Sessions: []protocol.Session{}, Next: listCursor.EncodeToString([]byte(next))}
	for _, l := range listed {
		res.Sessions = append(res.Sessions, projection.ListedSession(l))
	}
	return res, nil
}

func (h *Handlers) sessionOpen(ctx context.Context, c Conn, p *protocol.SessionOpenParams, _ input) (*protocol.SessionOpenResult, error) {
	tail := 50
	if p.Tail != nil {
		tail = *p.Tail
	}
	if tail < 0 || tail > 500 {
		return nil, protocol.Errorf(protocol.CodeInvalidParams, "tail is 0 to 500, not %d", tail)
	}
	res := &protocol.SessionOpenResult{Transcript: protocol.Transcript{Rows: []protocol.Row{}}}
	err := h.read(p.SessionID, func(sess *store.Session, r *store.Reader) error {
		res.Cursor = r.Cursor()
		if p.Subscribe {
			// Before the rest is read, so that no delta falls between the two.
			c.Subscribe(ctx, p.SessionID, res.Cursor)
		}
		var err error
		if res.Session, err = projection.Session(r); err != nil {
			return err
		}
		if res.Branches, err = projection.Branches(r); err != nil {
			return err
		}
		t, err := projection.Transcript(r, projection.Window{Limit: tail})
		if err != nil {
			return err
		}
		res.Transcript = *t
		if res.OpenNodes, res.Queue, err = h.pending(r); err != nil {
			return err
		}
		if running := h.Engine.Compaction.Running(p.SessionID); len(running) > 0 {
			res.Compaction = &running[0]
		}
		if client, err := h.Engine.CompactionClient(sess, environment(c)); err == nil {
			res.AutoCompaction = h.Engine.Compaction.Stopped(sess, client.Model, client.Settings.Compaction)
		}
		if budget, err := h.Engine.Budget(sess, environment(c)); err == nil {
			res.Session.Budget = budget
		} // a model that is not there any more must not keep a session from opening
		return nil
	})
	return res, err
}

// pending returns what is being written and what waits.
func (h *Handlers) pending(r *store.Reader) ([]protocol.OpenNode, []protocol.QueuedSend, error) {
	open, err := projection.OpenReplies(r, func(id string) int64 {
		parts, ok := h.Engine.Live(r.SessionID(), id)
		if !ok {
			return 0
		}
		var n int64
		for _, p := range parts {
			n += int64(len(p.Text))
		}
		return n
	})
	if err != nil {
		return nil, nil, err
	}
	queue, err := projection.Queue(r)
	return open, queue, err
}

func (h *Handlers) sessionRename(ctx context.Context, c Conn, p *protocol.SessionRenameParams, in input) (*protocol.SessionResult, error) {
	if store.CleanTitle(p.Title) == "" {
		return nil, protocol.Errorf(protocol.CodeInvalidParams, "the title is missing or blank")
	}
	return h.changeInfo(ctx, c, p.SessionID, request(c, in, p.Mutation), func(tx *store.Tx, info store.Info) error {
		info.Title, info.TitleFrom = p.Title, 0
		return tx.SetInfo(info)
	})
}

func (h *Handlers) sessionConfigure(ctx context.Context, c Conn, p *protocol.SessionConfigureParams, in input) (*protocol.SessionResult, error) {
	if p.Policy != nil {
		if err := checkPolicy(*p.Policy); err != nil {
			return nil, err
		}
	}
	merged, err := h.sessionSettings(c, p.Settings)
	if err != nil {
		return nil, err
	}
	if p.Model != nil {
		if _, _, err := h.Models.Resolve(merged, *p.Model, c.Keys()); err != nil {
			return nil, err
		}
	}
	return h.changeInfo(ctx, c, p.SessionID, request(c, in, p.Mutation), func(tx *store.Tx, info store.Info) error {
		if p.System != nil {
			if err := tx.SetSystem(*p.System); err != nil {
				return err
			}
		}
		if p.Model != nil && *p.Model != info.Model {
			info.Model = *p.Model
			tx.Emit(protocol.Event{Type: protocol.EventModelChanged, Model: info.Model})
		}
		set(&info.Workspace, p.Workspace)
		set(&info.Policy, p.Policy)
		if p.Settings != nil {
			info.Settings = p.Settings
		}
		return tx.SetInfo(info)
	})
}

func set(to *string, v *string) {
	if v != nil {
		*to = *v
	}
}

func (h *Handlers) changeInfo(ctx context.Context, _ Conn, id string, req store.Request, change func(*store.Tx, store.Info) error) (*protocol.SessionResult, error) {
	sess, err := h.Store.Session(id)
	if err != nil {
		return nil, err
	}
	out, err := store.Apply(ctx, sess, req, func(tx *store.Tx) (struct{}, error) {
		info, err := tx.Info()
		if err != nil {
			return struct{}{}, err
		}
		return struct{}{}, change(tx, info)
	})
	if err != nil {
		return nil, err
	}
	return h.sessionResult(id, out.Cursor)
}

func (h *Handlers) sessionDelete(ctx context.Context, c Conn, p *protocol.SessionDeleteParams, in input) (*protocol.SessionDeleteResult, error) {
	if !p.Confirm {
		sess, err := h.Store.Session(p.SessionID)
		if err != nil {
			return nil, err
		}
		return nil, store.ConfirmRequired(int64(sess.State().Nodes), "this session")
	}
	out, err := h.Store.DeleteSession(ctx, p.SessionID, request(c, in, p.Mutation))
	if err != nil {
		return nil, err
	}
	return &protocol.SessionDeleteResult{SessionID: out.Result, Cursor: out.Cursor}, nil
}

// maxBehind is how many events a subscription replays; beyond that a snapshot is
// cheaper.
const maxBehind = 1_000

func (h *Handlers) sessionSubscribe(ctx context.Context, c Conn, p *protocol.SubscribeParams, _ input) (*protocol.SubscribeResult, error) {
	res := &protocol.SubscribeResult{}
	err := h.read(p.SessionID, func(sess *store.Session, r *store.Reader) error {
		res.Cursor = r.Cursor()
		after := res.Cursor
		if p.After != "" {
			if behind, ok := sess.Behind(p.After); !ok || behind > maxBehind {
				res.Reset = true
			} else {
				after = p.After
			}
		}
		c.Subscribe(ctx, p.SessionID, after)
		var err error
		res.OpenNodes, res.Queue, err = h.pending(r)
		return err
	})
	return res, err
}

func (h *Handlers) sessionUnsubscribe(_ context.Context, c Conn, p *protocol.SessionParams, _ input) (*protocol.Empty, error) {
	c.Unsubscribe(p.SessionID)
	return &protocol.Empty{}, nil
}

func (h *Handlers) storeSubscribe(ctx context.Context, c Conn, _ *protocol.Empty, _ input) (*protocol.Empty, error) {
	c.SubscribeStore(ctx)
	return &protocol.Empty{}, nil
}

func (h *Handlers) sessionSearch(ctx context.Context, _ Conn, p *protocol.SearchParams, _ input) (*protocol.SearchResult, error) {
	n, err := limit(p.Limit, 20, 200)
	if err != nil {
		return nil, err
	}
	return projection.Search(ctx, h.Store, p.Query, p.SessionID, n)
}
