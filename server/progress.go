package server

import (
	"context"
	"strconv"
	"sync/atomic"

	"convls/protocol"

	lsp "go.lsp.dev/protocol"
	"go.uber.org/zap"
)

// Progress shows a client how far something has come (LSP 3.18, "Work Done
// Progress"). A nil Progress shows nothing.
type Progress struct {
	conn  *Conn
	token protocol.Raw
	ended atomic.Bool
}

// progressValue is the value of $/progress; which members count depends on Kind.
type progressValue struct {
	Kind       string `json:"kind"`
	Title      string `json:"title,omitzero"`
	Percentage *int   `json:"percentage,omitzero"`
	Message    string `json:"message,omitzero"`
}

// Progress begins to show something under the client's token. Without a token one
// is made, if the client announced that it takes them; else the result is nil.
func (c *Conn) Progress(ctx context.Context, token protocol.Raw, title string) *Progress {
	if !given(token) {
		if !c.Client().WorkDoneProgress {
			return nil
		}
		token = protocol.Raw(strconv.AppendQuote(nil, "convls-"+strconv.FormatInt(c.progress.Add(1), 10)))
		if err := c.Call(ctx, lsp.MethodWindowWorkDoneProgressCreate, map[string]protocol.Raw{"token": token}, nil); err != nil {
			c.log.Debug("the client takes no progress", zap.Error(err))
			return nil
		}
	}
	begin := progressParams{token, progressValue{Kind: "begin", Title: title, Percentage: new(int)}}
	if err := c.Notify(ctx, lsp.MethodProgress, begin); err != nil {
		return nil
	}
	return &Progress{conn: c, token: token}
}

// Report tells the share done, 0 to 100. It waits for nothing: a client that has
// no room sees the next one.
func (p *Progress) Report(percent int, message string) {
	if p == nil || p.ended.Load() {
		return
	}
	percent = min(max(percent, 0), 100)
	body, err := notification(lsp.MethodProgress, progressParams{p.token, progressValue{Kind: "report", Percentage: &percent, Message: message}})
	if err != nil {
		p.conn.log.Debug("progress not sent", zap.Error(err))
		return
	}
	p.conn.stream.TrySend(body)
}

// End takes the progress away, once.
func (p *Progress) End(message string) {
	if p == nil || p.ended.Swap(true) {
		return
	}
	// The end must arrive, or the client shows it for ever.
	params := progressParams{p.token, progressValue{Kind: "end", Message: message}}
	if err := p.conn.Notify(p.conn.root, lsp.MethodProgress, params); err != nil {
		p.conn.log.Debug("end of progress not sent", zap.Error(err))
	}
}

type progressParams struct {
	Token protocol.Raw  `json:"token"`
	Value progressValue `json:"value"`
}
