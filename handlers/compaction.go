package handlers

import (
	"context"
	"fmt"

	"convls/compaction"
	"convls/protocol"
	"convls/store"
)

func (h *Handlers) compactionRun(ctx context.Context, c Conn, p *protocol.CompactionRunParams, in input) (*protocol.CompactionResult, error) {
	return h.compact(ctx, c, p.SessionID, request(c, in, p.Mutation), compaction.Request{Spec: p.CompactionSpec, Draft: p.Draft}, p.Wait, p.WorkDoneToken)
}

func (h *Handlers) compactionRebuild(ctx context.Context, c Conn, p *protocol.CompactionRebuildParams, in input) (*protocol.CompactionResult, error) {
	if p.SummaryID == "" {
		return nil, protocol.Errorf(protocol.CodeInvalidParams, "summary_id is missing: say which summary to make again")
	}
	return h.compact(ctx, c, p.SessionID, request(c, in, p.Mutation),
		compaction.Request{Rebuild: p.SummaryID, Draft: p.Draft, Spec: protocol.CompactionSpec{Instructions: p.Instructions}}, p.Wait, p.WorkDoneToken)
}

// compact begins a run. A draft is answered when it is there: it is nowhere else.
func (h *Handlers) compact(ctx context.Context, c Conn, sessionID string, req store.Request, ask compaction.Request, wait bool, token protocol.Raw) (*protocol.CompactionResult, error) {
	sess, client, err := h.compactor(c, sessionID)
	if err != nil {
		return nil, err
	}
	res, err := h.Engine.Compaction.Run(ctx, sess, req, ask, client)
	if err != nil {
		return nil, err
	}
	if !wait && !ask.Draft || res.State != protocol.RunRunning {
		return &res, nil
	}
	c.Admitted(ctx)
	id := res.CompactionID
	progress := c.Progress(ctx, token, "Compacting the conversation")
	res, err = h.Engine.Compaction.Wait(ctx, sess, id, func(call, calls int) {
		progress.Report(100*(call-1)/max(calls, 1), fmt.Sprintf("call %d of %d", call, calls))
	})
	defer progress.End("")
	if protocol.CodeOf(context.Cause(ctx)) == protocol.CodeRequestCancelled {
		res, err = h.Engine.Compaction.Cancel(context.WithoutCancel(ctx), sess, id)
	}
	return &res, err
}

// compactor returns a session, and what a compaction takes from its client.
func (h *Handlers) compactor(c Conn, sessionID string) (*store.Session, compaction.Client, error) {
	sess, err := h.Store.Session(sessionID)
	if err != nil {
		return nil, compaction.Client{}, err
	}
	client, err := h.Engine.CompactionClient(sess, environment(c))
	return sess, client, err
}

func (h *Handlers) compactionPreview(_ context.Context, c Conn, p *protocol.CompactionPreviewParams, _ input) (*protocol.CompactionPreview, error) {
	sess, client, err := h.compactor(c, p.SessionID)
	if err != nil {
		return nil, err
	}
	return h.Engine.Compaction.Preview(sess, p.CompactionSpec, client, p.Limit, p.Cursor)
}

func (h *Handlers) compactionCommit(ctx context.Context, c Conn, p *protocol.CompactionCommitParams, in input) (*protocol.CompactionResult, error) {
	sess, err := h.Store.Session(p.SessionID)
	if err != nil {
		return nil, err
	}
	res, err := h.Engine.Compaction.Commit(ctx, sess, request(c, in, p.Mutation), p.DraftID, p.Manifest, p.Text)
	return &res, err
}

func (h *Handlers) compactionDiscard(ctx context.Context, c Conn, p *protocol.CompactionDiscardParams, in input) (*protocol.CompactionDiscardResult, error) {
	sess, err := h.Store.Session(p.SessionID)
	if err != nil {
		return nil, err
	}
	return &protocol.CompactionDiscardResult{DraftID: p.DraftID}, h.Engine.Compaction.Discard(ctx, sess, request(c, in, p.Mutation), p.DraftID)
}

func (h *Handlers) compactionCancel(ctx context.Context, _ Conn, p *protocol.CompactionCancelParams, _ input) (*protocol.CompactionResult, error) {
	sess, err := h.Store.Session(p.SessionID)
	if err != nil {
		return nil, err
	}
	res, err := h.Engine.Compaction.Cancel(ctx, sess, p.CompactionID)
	return &res, err
}

func (h *Handlers) compactionList(_ context.Context, _ Conn, p *protocol.SessionParams, _ input) (*protocol.CompactionListResult, error) {
	var res *protocol.CompactionListResult
	return res, h.read(p.SessionID, func(_ *store.Session, r *store.Reader) error {
		var err error
		res, err = h.Engine.Compaction.List(r)
		return err
	})
}

func (h *Handlers) compactionActivate(ctx context.Context, c Conn, p *protocol.CompactionActivateParams, in input) (*protocol.CompactionActivateResult, error) {
	sess, err := h.Store.Session(p.SessionID)
	if err != nil {
		return nil, err
	}
	out, err := h.Engine.Compaction.Activate(ctx, sess, request(c, in, p.Mutation), p.SummaryID)
	if err != nil {
		return nil, err
	}
	return &protocol.CompactionActivateResult{ActiveSummaries: out.Result, Cursor: out.Cursor}, nil
}

func (h *Handlers) compactionVerify(_ context.Context, _ Conn, p *protocol.SummaryParams, _ input) (*protocol.CompactionVerifyResult, error) {
	sess, err := h.Store.Session(p.SessionID)
	if err != nil {
		return nil, err
	}
	return h.Engine.Compaction.Verify(sess, p.SummaryID)
}

func (h *Handlers) compactionCovers(_ context.Context, _ Conn, p *protocol.CompactionCoversParams, _ input) (*protocol.CompactionCoversResult, error) {
	var res *protocol.CompactionCoversResult
	return res, h.read(p.SessionID, func(_ *store.Session, r *store.Reader) error {
		var err error
		res, err = compaction.Covers(r, p.SummaryID, p.Limit, p.Cursor)
		return err
	})
}
