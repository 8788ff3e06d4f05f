package server

import (
	"context"
	"time"

	"convls/protocol"

	lsp "go.lsp.dev/protocol"
	"go.uber.org/zap"
)

// The limits that [Options] leaves at zero.
const (
	// DefaultMaxReply is the longest result, and the longest event, in bytes: 8 MiB.
	DefaultMaxReply = 8 << 20
	// DefaultMaxInFlight is how many requests of a connection may be unanswered.
	DefaultMaxInFlight = 256
	// DefaultGrace is how long running requests may take when a connection ends,
	// before they are cancelled, and once more after that.
	DefaultGrace = 2 * time.Second
)

// Method serves one kind of request.
type Method struct {
	// Handle returns the result, which is encoded by protocol.Marshal, or an error:
	// a *protocol.Error reaches the client with its code, any other is logged and
	// reaches the client as internal. Params are what the client sent, valid JSON or
	// nil; they may be kept.
	//
	// The context ends when the client cancels the request, which its cause says by
	// code request_cancelled, and when the connection ends, by server_restarted.
	Handle func(ctx context.Context, c *Conn, params []byte) (any, error)
	// Parallel lets the method run beside other requests on its session.
	Parallel bool
}

// Notification serves one kind of notification. Notifications are handled in the
// order they came, between the requests, while nothing else is read: Handle must
// be quick, must not use [Conn.Call], and must not keep params. An error is logged.
type Notification struct {
	Handle func(ctx context.Context, c *Conn, params []byte) error
}

// Options are what a connection needs beside itself. The zero value serves LSP's
// lifecycle and nothing more.
type Options struct {
	// Name and Version are the serverInfo of initialize. Name is convls if empty.
	Name, Version string
	// Methods and Notifications are by their name on the wire. LSP's lifecycle can
	// not be replaced.
	Methods       map[string]Method
	Notifications map[string]Notification
	// Features are announced to clients.
	Features []string
	// Capabilities are announced beside convls's own part.
	Capabilities lsp.ServerCapabilities
	// Hub brings events; without one there are none.
	Hub    *Hub
	Logger *zap.Logger

	// OnInitialize gets initializationOptions (nil if the client sent none) before
	// the reply to initialize; an error is the reply. It must not use [Conn.Call].
	OnInitialize func(ctx context.Context, c *Conn, options protocol.Raw) error
	// OnConfigure gets the settings of each workspace/didChangeConfiguration, as a
	// notification does.
	OnConfigure func(ctx context.Context, c *Conn, settings protocol.Raw) error
	// OnShutdown runs before the reply to shutdown. Editors kill a server as soon as
	// they have that reply, so what must not be lost is finished here.
	OnShutdown func(ctx context.Context, c *Conn) error
	// OnClose runs when the connection has ended and its requests have returned.
	OnClose func(c *Conn)

	// MaxFrame and QueueBytes are those of package frame.
	MaxFrame    int64
	QueueBytes  int
	MaxReply    int
	MaxInFlight int
	Grace       time.Duration
}

func (o Options) withDefaults() Options {
	if o.Name == "" {
		o.Name = "convls"
	}
	if o.Hub == nil {
		o.Hub = NewHub(nil)
	}
	if o.Logger == nil {
		o.Logger = zap.NewNop()
	}
	if o.MaxReply <= 0 {
		o.MaxReply = DefaultMaxReply
	}
	if o.MaxInFlight <= 0 {
		o.MaxInFlight = DefaultMaxInFlight
	}
	if o.Grace <= 0 {
		o.Grace = DefaultGrace
	}
	return o
}
