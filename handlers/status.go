package handlers

import (
	"context"
	"os"
	"time"

	"convls/protocol"
	"convls/store"
)

func (h *Handlers) modelList(ctx context.Context, c Conn, _ *protocol.Empty, _ input) (*protocol.ModelListResult, error) {
	res := h.Models.Models(ctx, c.Settings(), c.Keys())
	return &res, ctx.Err()
}

func (h *Handlers) status(ctx context.Context, _ Conn, _ *protocol.Empty, _ input) (*protocol.StatusResult, error) {
	sessions, err := h.Store.Count(ctx)
	if err != nil {
		return nil, err
	}
	return &protocol.StatusResult{
		Version: h.Version, ProtocolVersion: protocol.Version, PID: os.Getpid(),
		Store:        protocol.StoreStatus{Path: h.Store.Dir(), Format: store.Format, Sessions: sessions, Bytes: h.Store.Bytes(), ReadOnly: h.Store.ReadOnly()},
		Clients:      h.Clients(),
		RunningTurns: h.Engine.Running(""), RunningCompactions: h.Engine.Compaction.Running(""),
		UptimeMS: time.Since(h.Started).Milliseconds(),
	}, nil
}
