package chat

import (
	"context"
	"net"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"convls/client"
	"convls/handlers"
	"convls/model"
	"convls/protocol"
	"convls/server"
	"convls/settings"
	"convls/store"
	"convls/turn"

	"go.uber.org/goleak"
	"go.uber.org/zap"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		// A library of a library starts it when it is loaded.
		goleak.IgnoreTopFunction("go.opencensus.io/stats/view.(*worker).start"),
		// The clock of the syntax highlighter's expressions, which ends by itself.
		goleak.IgnoreAnyFunction("github.com/dlclark/regexp2.runClock"))
}

// rig is a real server in this process, on a store of its own, that any number of
// clients can be connected to.
type rig struct {
	t   *testing.T
	dir string

	store  *store.Store
	engine *turn.Engine
	models *model.Registry
	hub    *server.Hub
	opts   server.Options

	mu      sync.Mutex
	clients map[string]*rigConn
	conns   []net.Conn
	serving sync.WaitGroup
}

// rigConn is a connection as handlers see it.
type rigConn struct {
	*server.Conn
	settings *settings.Connection
}

func (c *rigConn) Settings() protocol.Settings { return c.settings.Settings() }
func (c *rigConn) Keys() model.KeySource {
	return model.NewSystemKeys(func(string) string { return "" })
}
func (c *rigConn) ForgetKeys(string) {}
func (c *rigConn) Progress(ctx context.Context, token protocol.Raw, title string) handlers.Progress {
	return c.Conn.Progress(ctx, token, title)
}

func newRig(t *testing.T) *rig {
	t.Helper()
	r := &rig{t: t, dir: t.TempDir(), clients: map[string]*rigConn{}}
	r.start()
	t.Cleanup(r.stop)
	return r
}

func (r *rig) start() {
	r.t.Helper()
	base, _, err := settings.Load("", nil)
	if err != nil {
		r.t.Fatal(err)
	}
	r.hub = server.NewHub(r)
	log := zap.NewNop()
	if r.store, err = store.Open(r.t.Context(), store.Options{Dir: filepath.Join(r.dir, "store"), Logger: log}); err != nil {
		r.t.Fatal(err)
	}
	r.store.OnCommit(func(c store.Commit) {
		r.hub.Publish(c.SessionID)
		for _, e := range c.Events {
			if e.Type == protocol.EventSessionDeleted {
				r.hub.PublishStore(e)
			}
		}
	})
	r.models = model.NewRegistry()
	r.engine = turn.New(turn.Config{Store: r.store, Models: r.models, Merge: settings.Merge, Delta: r.hub.Delta, Logger: log})
	h := &handlers.Handlers{Store: r.store, Engine: r.engine, Models: r.models, Logger: log, Version: "test", Clients: r.hub.Clients, Started: time.Now()}
	parallel := handlers.Parallel()
	r.opts = server.Options{Hub: r.hub, Logger: log, Methods: map[string]server.Method{},
		OnInitialize: func(_ context.Context, c *server.Conn, raw protocol.Raw) error {
			own := &rigConn{Conn: c, settings: base.Connection()}
			if _, err := own.settings.Initialize(raw); err != nil {
				return err
			}
			r.mu.Lock()
			defer r.mu.Unlock()
			r.clients[c.ID()] = own
			return nil
		}}
	for name, serve := range h.Methods() {
		r.opts.Methods[name] = server.Method{Parallel: parallel[name], Handle: func(ctx context.Context, c *server.Conn, params []byte) (any, error) {
			r.mu.Lock()
			own := r.clients[c.ID()]
			r.mu.Unlock()
			return serve(ctx, own, params)
		}}
	}
}

// stop ends all connections as a process that dies does, and closes the store.
func (r *rig) stop() {
	r.mu.Lock()
	for _, c := range r.conns {
		_ = c.Close()
	}
	r.conns = nil
	r.mu.Unlock()
	r.engine.Close()
	r.serving.Wait()
	r.models.Close()
	if err := r.store.Close(); err != nil {
		r.t.Errorf("close the store: %v", err)
	}
}

func (r *rig) Events(ctx context.Context, sessionID, after string, limit int) ([]protocol.Event, string, bool, error) {
	sess, err := r.store.Session(sessionID)
	if err != nil {
		return nil, "", false, err
	}
	return sess.Events(ctx, after, limit)
}

// dial connects a chat, with settings as its initializationOptions.
func (r *rig) dial(settings any) dialer {
	return func(ctx context.Context) (*link, error) {
		l, opts := newLink("test")
		opts.Settings = settings
		return l.handshake(ctx, client.New(r.connect(), opts))
	}
}

func (r *rig) connect() net.Conn {
	here, there := net.Pipe()
	r.mu.Lock()
	r.conns = append(r.conns, there)
	r.mu.Unlock()
	r.serving.Go(func() { _ = server.Serve(context.Background(), there, r.opts) })
	return here
}

// other is a second client, for what happens elsewhere.
func (r *rig) other() *client.Client {
	c := client.New(r.connect(), client.Options{Name: "other"})
	if _, err := c.Initialize(r.t.Context()); err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { _ = c.Close() })
	return c
}
