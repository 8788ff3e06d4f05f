package chat

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"sync"
	"time"

	"convls/client"
	"convls/protocol"
)

// caller makes requests; *client.Client is one.
type caller interface {
	Call(ctx context.Context, method string, params, result any) error
}

// call makes a request and returns its result.
func call[R any](ctx context.Context, c caller, method string, params any) (*R, error) {
	result := new(R)
	if err := c.Call(ctx, method, params, result); err != nil {
		return nil, err
	}
	return result, nil
}

// link is a connection to a server, with what the server sends in a channel.
type link struct {
	*client.Client
	clientID string
	// notices are protocol.Event, protocol.Delta, protocol.ResetNotification and
	// client.LogMessage, in the order they came.
	notices chan any
	// gone is closed when nobody reads notices any more.
	gone  chan struct{}
	leave sync.Once
}

// dialer makes a connection to a server and does the handshake.
type dialer func(context.Context) (*link, error)

// noticeBuffer is how many notifications may wait for the screen. When it is full
// the client drops deltas and holds the server up, which costs the server nothing.
const noticeBuffer = 256

// closeGrace is how long the server may take to leave; its turns are sealed then.
const closeGrace = 5 * time.Second

// newLink returns a link and the options of a client that feeds it.
func newLink(version string) (*link, client.Options) {
	l := &link{notices: make(chan any, noticeBuffer), gone: make(chan struct{})}
	put := func(v any) {
		select {
		case l.notices <- v:
		case <-l.gone:
		}
	}
	return l, client.Options{
		Name:    "convls-chat",
		Version: version,
		OnEvent: func(e protocol.Event) { put(e) },
		OnDelta: func(d protocol.Delta) { put(d) },
		OnReset: func(r protocol.ResetNotification) { put(r) },
		OnLog: func(m client.LogMessage) {
			if m.Type == 1 {
				put(m)
			}
		},
	}
}

// handshake puts c into l and initialises it.
func (l *link) handshake(ctx context.Context, c *client.Client) (*link, error) {
	l.Client = c
	server, err := c.Initialize(ctx)
	if err != nil {
		l.leave.Do(func() { close(l.gone) })
		defer func() { _ = c.Close() }()
		if _, refused := errors.AsType[*protocol.Error](err); refused || ctx.Err() != nil {
			return nil, err
		}
		// The process's last words say more than the pipe that broke.
		select {
		case <-c.Done():
			if c.Err() != nil {
				err = c.Err()
			}
		case <-time.After(closeGrace):
		}
		return nil, fmt.Errorf("the server did not start: %w", err)
	}
	l.clientID = server.ClientID
	return l, nil
}

// spawn returns a dialer that starts argv as a server of its own.
func spawn(argv []string, version string) dialer {
	return func(ctx context.Context) (*link, error) {
		if len(argv) == 0 {
			return nil, errors.New("there is no command that starts a server")
		}
		// The server outlives ctx by the time that it needs to seal what is open.
		lasting := context.WithoutCancel(ctx)
		cmd := exec.CommandContext(lasting, argv[0], argv[1:]...)
		detach(cmd)
		l, opts := newLink(version)
		c, err := client.Start(lasting, cmd, opts)
		if err != nil {
			return nil, err
		}
		return l.handshake(ctx, c)
	}
}

// end leaves the server and waits for its process. It can be called again.
func (l *link) end() error {
	l.leave.Do(func() { close(l.gone) })
	ctx, cancel := context.WithTimeout(context.Background(), closeGrace)
	defer cancel()
	err := l.Shutdown(ctx)
	if errors.Is(err, client.ErrClosed) {
		err = nil // it had gone before
	}
	_ = l.Close()
	return err
}
