package server

import (
	"context"
	"crypto/rand"
	"fmt"
	"sync"
	"sync/atomic"

	"convls/protocol"
	"convls/server/frame"

	"go.lsp.dev/jsonrpc2"
	"go.uber.org/zap"
)

// Conn is one connection to one client.
type Conn struct {
	id     string
	opts   Options
	log    *zap.Logger
	stream *frame.Stream
	pump   *pump
	calls  outgoing
	// progress counts the progress tokens that the server made.
	progress atomic.Int64

	// root ends with the connection. Everything that is done for the client has its
	// context from here and not from jsonrpc2, whose contexts belong to pooled
	// requests and do not end with the input.
	root context.Context
	stop context.CancelCauseFunc

	mu     sync.Mutex
	state  state
	client protocol.Client
	// inFlight are the calls that run or wait for their turn, by id.
	inFlight map[jsonrpc2.ID]*call
	// replying are those whose reply is not queued yet, by the context under which
	// jsonrpc2 writes it.
	replying map[context.Context]*call
	lanes    map[string]*lane
	// live says that the client has the reply to initialize.
	live bool
	// ending says that the connection takes no more requests; idle is closed when
	// after that all have been answered.
	ending bool
	idle   chan struct{}
	// mute says that the client can not be written to any more.
	mute bool

	// deaf is closed when nothing more can come from the client, readEnd when after
	// that everything has been answered.
	deaf    chan struct{}
	readEnd chan struct{}
	readErr error
}

func newConn(ctx context.Context, opts Options) *Conn {
	c := &Conn{
		id:       "client-" + rand.Text()[:12],
		opts:     opts,
		inFlight: make(map[jsonrpc2.ID]*call),
		replying: make(map[context.Context]*call),
		lanes:    make(map[string]*lane),
		idle:     make(chan struct{}),
		deaf:     make(chan struct{}),
		readEnd:  make(chan struct{}),
	}
	c.log = opts.Logger.With(zap.String("client", c.id))
	// When the server ends, requests get the grace that they get from a client.
	c.root, c.stop = context.WithCancelCause(context.WithoutCancel(ctx))
	c.calls.init()
	c.pump = newPump(c)
	return c
}

// ID names the connection: the client_id in the origin of events.
func (c *Conn) ID() string { return c.id }

// Client returns what the client told of itself; before initialize, nothing.
func (c *Conn) Client() protocol.Client {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.client
}

// Supports reports whether the client announced feature.
func (c *Conn) Supports(feature string) bool {
	client := c.Client()
	return client.Supports(feature)
}

// Done is closed when the connection ends.
func (c *Conn) Done() <-chan struct{} { return c.root.Done() }

// Queued returns how many bytes wait to be taken by the client.
func (c *Conn) Queued() int { return c.stream.Queued() }

// Notify sends a notification. While the client does not read, it waits.
func (c *Conn) Notify(ctx context.Context, method string, params any) error {
	body, err := notification(method, params)
	if err != nil {
		return err
	}
	return c.stream.Send(ctx, body)
}

// notification encodes a notification, ready for any number of clients.
func notification(method string, params any) ([]byte, error) {
	raw, err := protocol.Marshal(params)
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", method, err)
	}
	return jsonrpc2.AppendNotification(nil, method, raw), nil
}
