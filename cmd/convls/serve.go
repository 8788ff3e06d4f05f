package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/mattn/go-isatty"
	lsp "go.lsp.dev/protocol"
	"go.uber.org/zap"

	"convls/cmd/convls/doctor"
	"convls/handlers"
	"convls/model"
	"convls/protocol"
	"convls/server"
	"convls/server/frame"
	"convls/settings"
	"convls/store"
	"convls/turn"
)

// app is a serving process: a store, an engine, and the clients.
type app struct {
	log   *server.Log
	base  *settings.Base
	hub   *server.Hub
	dir   string
	ready chan struct{} // closed when the store is open, or can not be opened

	settingsErr error // what is wrong with the user's settings

	// What follows is set before ready is closed.
	err      error
	store    *store.Store
	engine   *turn.Engine
	models   *model.Registry
	handlers *handlers.Handlers
	methods  map[string]handlers.Method

	mu      sync.Mutex
	clients map[string]*connection
}

// serve speaks with one editor on standard input and output until it leaves.
func serve(ctx context.Context, f flags) error {
	paths, err := f.resolve()
	if err != nil {
		return err
	}
	if isatty.IsTerminal(os.Stdin.Fd()) {
		fmt.Fprintln(os.Stderr, "convls speaks the language server protocol here, to an editor. To chat in this terminal: convls chat")
	}
	base, warnings, settingsErr := settings.Load(paths.Config, os.Environ())
	log, err := server.NewLogger(paths.LogFile, base.Settings().Log.Level)
	if err != nil {
		// A log is not worth an editor without a server.
		fmt.Fprintln(os.Stderr, "convls: nothing is logged:", err)
		if log, err = server.NewLogger(os.DevNull, ""); err != nil {
			return err
		}
	}
	defer func() { _ = log.Close() }()
	rwc, err := frame.Stdio()
	if err != nil {
		return fmt.Errorf("take over standard input and output: %w", err)
	}
	if settingsErr != nil {
		// The editor is told in its first reply: standard error is shown to nobody.
		settingsErr = protocol.Errorf(protocol.CodeInvalidParams, "%v: correct it and start convls again", settingsErr)
	}
	a := &app{log: log, base: base, settingsErr: settingsErr, dir: paths.DataDir, ready: make(chan struct{}), clients: map[string]*connection{}}
	a.hub = server.NewHub(a)
	logger := a.hub.Tee(log.Logger)
	for _, w := range warnings {
		logger.Warn("setting ignored", zap.String("why", w))
	}
	// The editor gets its first reply while the store opens: after a crash that can
	// take a third of a second.
	go a.open(context.WithoutCancel(ctx), logger)
	err = server.Serve(ctx, rwc, a.options(logger))
	<-a.ready
	return errors.Join(err, a.close())
}

// open opens the store and builds what works on it.
func (a *app) open(ctx context.Context, logger *zap.Logger) {
	defer close(a.ready)
	started := time.Now()
	a.store, a.err = store.Open(ctx, store.Options{Dir: a.dir, Logger: logger, Program: "convls " + doctor.Version(), OnFatal: func(error) {
		// What the log says of it reaches the clients; then this process can only go.
		<-time.After(fatalGrace)
		os.Exit(70)
	}})
	if a.err != nil {
		logger.Error("the store can not be opened", zap.Error(a.err))
		if protocol.CodeOf(a.err) == "" {
			a.err = protocol.Errorf(protocol.CodeStoreUnavailable, "the store %s can not be opened: %v", a.dir, a.err)
		}
		return
	}
	for _, r := range a.store.Recovered() {
		logger.Info("a reply was interrupted when convls last ended", zap.String("session", r.SessionID), zap.String("node", r.NodeID))
	}
	a.models = model.NewRegistry()
	a.engine = turn.New(turn.Config{Store: a.store, Models: a.models, Merge: settings.Merge, Delta: a.hub.Delta, Logger: logger})
	a.store.OnCommit(a.committed)
	a.handlers = &handlers.Handlers{Store: a.store, Engine: a.engine, Models: a.models, Logger: logger, Version: doctor.Version(), Clients: a.hub.Clients, Started: started}
	a.methods = a.handlers.Methods()
}

// fatalGrace is how long clients have to be told of a fatal fault of the ledger.
const fatalGrace = 300 * time.Millisecond

// committed tells the engine and the hub what a mutation changed.
func (a *app) committed(c store.Commit) {
	a.engine.Committed(c)
	a.hub.Publish(c.SessionID)
	for _, e := range c.Events {
		switch e.Type {
		case protocol.EventSessionCreated, protocol.EventSessionChanged, protocol.EventSessionDeleted:
			a.hub.PublishStore(e)
		}
	}
}

// Events reads the events of a session for the hub.
func (a *app) Events(ctx context.Context, sessionID, after string, limit int) ([]protocol.Event, string, bool, error) {
	sess, err := a.store.Session(sessionID)
	if err != nil {
		return nil, "", false, err
	}
	return sess.Events(ctx, after, limit)
}

var _ server.EventSource = (*app)(nil)

func (a *app) close() error {
	if a.store == nil {
		return nil
	}
	a.engine.Close()
	a.models.Close()
	return a.store.Close()
}

// options are those of a connection.
func (a *app) options(logger *zap.Logger) server.Options {
	o := server.Options{
		Version:       doctor.Version(),
		Methods:       map[string]server.Method{},
		Notifications: map[string]server.Notification{protocol.MethodSecretChanged: {Handle: a.secretChanged}},
		Capabilities: lsp.ServerCapabilities{Workspace: &lsp.WorkspaceOptions{
			TextDocumentContent: &lsp.TextDocumentContentOptions{Schemes: []string{protocol.DocumentScheme}}}},
		Features:     protocol.ServerFeatures(),
		Hub:          a.hub,
		Logger:       logger,
		OnInitialize: a.initialize,
		OnConfigure:  a.configure,
		OnShutdown: func(context.Context, *server.Conn) error {
			// Editors kill a server as soon as shutdown is answered: what runs is sealed
			// before that.
			a.engine.Close()
			return nil
		},
		OnClose: func(c *server.Conn) {
			a.mu.Lock()
			defer a.mu.Unlock()
			delete(a.clients, c.ID())
		},
	}
	parallel := handlers.Parallel()
	for _, m := range protocol.Methods() {
		if m.Sender != protocol.FromClient || m.Result == nil {
			continue
		}
		name := m.Name
		o.Methods[name] = server.Method{Parallel: parallel[name], Handle: func(ctx context.Context, c *server.Conn, params []byte) (any, error) {
			serve := a.methods[name]
			if serve == nil {
				return nil, protocol.Errorf(protocol.CodeNotSupported, "%s is not there yet", name)
			}
			return serve(ctx, a.connection(c), params)
		}}
	}
	return o
}

// initialize waits for the store, so that a client learns in its first reply that
// there is none, and takes its settings.
func (a *app) initialize(ctx context.Context, c *server.Conn, options protocol.Raw) error {
	select {
	case <-a.ready:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if err := cmp.Or(a.settingsErr, a.err); err != nil {
		return err
	}
	own := &connection{Conn: c, settings: a.base.Connection(), keys: newClientKeys(c)}
	warnings, err := own.settings.Initialize(options)
	if err != nil {
		return err
	}
	a.warn(c, warnings)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.clients[c.ID()] = own
	return nil
}

// configure takes settings that a client changes. Wrong ones leave the former in
// force.
func (a *app) configure(_ context.Context, c *server.Conn, changed protocol.Raw) error {
	own := a.connection(c)
	warnings, err := own.settings.Configure(changed)
	a.warn(c, warnings)
	if err == nil {
		err = a.log.SetLevel(own.Settings().Log.Level)
	}
	return err
}

func (a *app) warn(c *server.Conn, warnings []string) {
	for _, w := range warnings {
		a.hub.Tee(a.log.Logger).Warn("setting ignored", zap.String("client", c.ID()), zap.String("why", w))
	}
}

func (a *app) connection(c *server.Conn) *connection {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.clients[c.ID()]
}

func (a *app) secretChanged(_ context.Context, c *server.Conn, params []byte) error {
	var p protocol.SecretChangedParams
	if err := protocol.UnmarshalParams(params, &p); err != nil {
		return err
	}
	a.connection(c).ForgetKeys(p.Provider)
	return nil
}
