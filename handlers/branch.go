package handlers

import (
	"context"

	"convls/projection"
	"convls/protocol"
	"convls/store"
)

func (h *Handlers) branchList(_ context.Context, _ Conn, p *protocol.SessionParams, _ input) (*protocol.BranchListResult, error) {
	res := &protocol.BranchListResult{}
	return res, h.read(p.SessionID, func(_ *store.Session, r *store.Reader) error {
		var err error
		res.Branches, err = projection.Branches(r)
		return err
	})
}

func (h *Handlers) branchCheckout(ctx context.Context, c Conn, p *protocol.CheckoutParams, in input) (*protocol.HeadResult, error) {
	sess, err := h.Store.Session(p.SessionID)
	if err != nil {
		return nil, err
	}
	if err := either("node_id", p.NodeID, "branch", p.Branch); err != nil {
		return nil, err
	}
	req := request(c, in, p.Mutation)
	req.Cause = "checkout"
	out, err := store.Checkout(ctx, sess, req, p.NodeID, p.Branch, p.Descend)
	return &protocol.HeadResult{Head: out.Result.Head, Branch: out.Result.Branch, Cursor: out.Cursor}, err
}

func (h *Handlers) branchFork(ctx context.Context, c Conn, p *protocol.ForkParams, in input) (*protocol.ForkResult, error) {
	sess, err := h.Store.Session(p.SessionID)
	if err != nil {
		return nil, err
	}
	req := request(c, in, p.Mutation)
	req.Cause = "fork"
	out, err := store.Fork(ctx, sess, req, p.NodeID, p.Name)
	if err != nil {
		return nil, err
	}
	res := &protocol.ForkResult{Head: out.Result.Head, Cursor: out.Cursor}
	res.Branch, err = h.branch(sess, out.Result.Head, out.Result.Branch)
	return res, err
}

// branch describes the branch that a node stands at the end of, or whose name
// refers to it.
func (h *Handlers) branch(sess *store.Session, id, name string) (protocol.Branch, error) {
	var b protocol.Branch
	return b, h.read(sess.ID(), func(_ *store.Session, r *store.Reader) error {
		var err error
		b, err = projection.BranchAt(r, id, name)
		return err
	})
}

func (h *Handlers) branchRewind(ctx context.Context, c Conn, p *protocol.RewindParams, in input) (*protocol.RewindResult, error) {
	sess, err := h.Store.Session(p.SessionID)
	if err != nil {
		return nil, err
	}
	req := request(c, in, p.Mutation)
	req.Cause = "rewind"
	out, err := store.Rewind(ctx, sess, req, p.NodeID)
	taken := protocol.Node{Content: out.Result.Content}
	store.TruncateText(&taken, maxNodeText)
	return &protocol.RewindResult{Head: out.Result.Head, Content: taken.Content, Cursor: out.Cursor}, err
}

func (h *Handlers) branchRename(ctx context.Context, c Conn, p *protocol.BranchRenameParams, in input) (*protocol.BranchResult, error) {
	sess, err := h.Store.Session(p.SessionID)
	if err != nil {
		return nil, err
	}
	if err := either("tip", p.Tip, "branch", p.Branch); err != nil {
		return nil, err
	}
	out, err := store.RenameBranch(ctx, sess, request(c, in, p.Mutation), p.Tip, p.Branch, p.Name)
	if err != nil {
		return nil, err
	}
	res := &protocol.BranchResult{Cursor: out.Cursor}
	res.Branch, err = h.branch(sess, out.Result, p.Name)
	return res, err
}

func (h *Handlers) branchDelete(ctx context.Context, c Conn, p *protocol.BranchDeleteParams, in input) (*protocol.BranchDeleteResult, error) {
	sess, err := h.Store.Session(p.SessionID)
	if err != nil {
		return nil, err
	}
	if err := either("tip", p.Tip, "branch", p.Branch); err != nil {
		return nil, err
	}
	req := request(c, in, p.Mutation)
	req.Cause = "delete"
	var out store.Outcome[store.Removed]
	if p.Cancel && p.Confirm {
		out, err = h.Engine.DeleteBranch(ctx, sess, req, p.Tip, p.Branch)
	} else {
		out, err = store.DeleteBranch(ctx, sess, req, p.Tip, p.Branch, p.Confirm)
	}
	return &protocol.BranchDeleteResult{Removed: out.Result.Count, RemovedIDs: out.Result.IDs, Head: out.Result.Head, Cursor: out.Cursor}, err
}

func (h *Handlers) branchCompare(_ context.Context, _ Conn, p *protocol.CompareParams, _ input) (*protocol.CompareResult, error) {
	var res *protocol.CompareResult
	return res, h.read(p.SessionID, func(_ *store.Session, r *store.Reader) error {
		var err error
		res, err = projection.Compare(r, p.AID, p.BID)
		return err
	})
}

func (h *Handlers) branchAttach(ctx context.Context, c Conn, p *protocol.AttachParams, in input) (*protocol.NodeResult, error) {
	sess, err := h.Store.Session(p.SessionID)
	if err != nil {
		return nil, err
	}
	from := first(p.FromSessionID, p.SessionID)
	src := store.Source{SessionID: from}
	err = h.read(from, func(_ *store.Session, r *store.Reader) error {
		src.NodeID, err = projection.AttachSource(r, p.SourceID)
		return err
	})
	if err != nil {
		return nil, err
	}
	req := request(c, in, p.Mutation)
	req.Cause = "attach"
	out, err := store.Attach(ctx, sess, req, p.AnchorID, src, from == p.SessionID)
	if err != nil {
		return nil, err
	}
	return h.nodeResult(sess, out.Result, out.Cursor)
}
