package turn

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"convls/compaction"
	"convls/model"
	"convls/protocol"
	"convls/store"
)

// Client is whoever sent a turn: it carries out the tools that it declared.
type Client interface {
	// ID names the client in events.
	ID() string
	// CallTool asks the client to carry out a tool call.
	CallTool(ctx context.Context, call protocol.ToolCallParams) (protocol.ToolCallResult, error)
}

// Environment is what a turn takes from the client that sends it. A queued send
// keeps its own.
type Environment struct {
	Client Client
	// Settings are the client's, without the session's.
	Settings protocol.Settings
	// Keys finds the keys of providers.
	Keys model.KeySource
}

// Merge lays a session's own settings over a client's.
type Merge func(client protocol.Settings, session protocol.Raw) (protocol.Settings, error)

// Config is what an engine needs.
type Config struct {
	Store  *store.Store
	Models compaction.Models
	Merge  Merge
	// Delta is told of streamed text, in order, for each reply from one goroutine.
	Delta  func(protocol.Delta)
	Logger *zap.Logger
}

// Engine runs the turns of a store.
type Engine struct {
	Config
	// Compaction makes room for turns, and serves what people ask of it.
	Compaction *compaction.Engine
	root       context.Context
	cancel     context.CancelCauseFunc
	wg         sync.WaitGroup

	mu     sync.Mutex
	closed bool
	runs   map[string][]*run // by session id
	// environments are those of queued sends, by session and reply id.
	environments map[string]map[string]Environment
	// watchers are closed when a session's turns or queue change.
	watchers map[string]chan struct{}
	// advised are the sessions whose clients were told that the window fills.
	advised map[string]bool
}

// errShutdown ends turns when the process ends: they are sealed as interrupted.
var errShutdown = errors.New("convls is shutting down")

// errCancelled ends a turn because a person asked for it.
var errCancelled = errors.New("cancelled by the client")

// errDeleted ends a turn whose branch is to be deleted: what waits for it must not
// begin.
var errDeleted = errors.New("the branch is to be deleted")

// New makes an engine. Close ends it.
func New(c Config) *Engine {
	root, cancel := context.WithCancelCause(context.Background())
	e := &Engine{Config: c, root: root, cancel: cancel, runs: map[string][]*run{}, environments: map[string]map[string]Environment{},
		watchers: map[string]chan struct{}{}, advised: map[string]bool{}}
	e.Compaction = compaction.New(compaction.Config{Store: c.Store, Models: c.Models, Logger: c.Logger, Ended: e.resume})
	return e
}

// Close ends all turns, sealing what they have as interrupted, and waits for them.
func (e *Engine) Close() {
	e.mu.Lock()
	e.closed = true
	e.mu.Unlock()
	e.cancel(errShutdown)
	e.Compaction.Close()
	e.wg.Wait()
}

// run is a turn that is being answered.
type run struct {
	engine  *Engine
	sess    *store.Session
	env     Environment
	tools   []protocol.ToolDeclaration
	model   string
	counter *model.Counter
	began   time.Time
	writer  *TurnWriter
	ctx     context.Context // ends when the turn is cancelled or the engine closes
	cancel  context.CancelCauseFunc
	done    chan struct{}
	// ask is what a call off the chain asks, nil for a turn.
	ask *question
	// window and settings are those of the last call, for the budget.
	window   model.Capabilities
	settings protocol.CompactionSettings

	// reply is the open reply, tip where its chain ends, replies all replies of the
	// turn; guarded by Engine.mu.
	reply   store.Skeleton
	tip     store.Seq
	replies []string
	live    *live
	// final is how the turn ended, and last its last reply: set before done is
	// closed.
	final protocol.Status
	last  string
}

// question is what a call off the chain asks.
type question struct {
	prompt []protocol.Part
	// at is the chain node whose context it reads, entries how many of its last entries,
	// nil for all.
	at      store.Skeleton
	entries *int
}

// register makes a run known before its batch is committed: the next send of the
// session must see that it has to wait. It refuses when the engine is closing.
func (e *Engine) register(r *run) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return protocol.Errorf(protocol.CodeServerRestarted, "convls is shutting down and takes no new turns")
	}
	e.runs[r.sess.ID()] = append(e.runs[r.sess.ID()], r)
	e.wg.Add(1)
	return nil
}

func (e *Engine) unregister(r *run) {
	e.mu.Lock()
	defer e.mu.Unlock()
	id := r.sess.ID()
	i := slices.Index(e.runs[id], r)
	if i < 0 {
		return // forgotten already: a retry of several candidates was refused half-way
	}
	if e.runs[id] = slices.Delete(slices.Clone(e.runs[id]), i, i+1); len(e.runs[id]) == 0 {
		delete(e.runs, id)
	}
	e.wg.Done()
}

// blocking returns the run whose chain ends at this node, if there is one: a send
// there has to wait for it.
func (e *Engine) blocking(session string, at store.Seq) *run {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, r := range e.runs[session] {
		if r.tip == at {
			return r
		}
	}
	return nil
}

// find returns the run that has written this reply, if it still runs.
func (e *Engine) find(session, reply string) *run {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, r := range e.runs[session] {
		if slices.Contains(r.replies, reply) {
			return r
		}
	}
	return nil
}

// advance tells that a run has gone on to another reply.
func (e *Engine) advance(r *run, reply store.Skeleton, l *live) {
	e.mu.Lock()
	defer e.mu.Unlock()
	r.reply, r.tip, r.live = reply, reply.Seq, l
	r.replies = append(r.replies, reply.ID)
}

// watch returns a channel that is closed at the next change of a session's turns
// or queue.
func (e *Engine) watch(session string) <-chan struct{} {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.watchers[session] == nil {
		e.watchers[session] = make(chan struct{})
	}
	return e.watchers[session]
}

// running reports whether the run that has written this reply has not ended.
func (e *Engine) running(session, reply string) bool {
	r := e.find(session, reply)
	e.mu.Lock()
	defer e.mu.Unlock()
	return r != nil && r.tip != 0
}

// Committed tells the engine of a mutation: whoever waits for a send that was taken
// out with its branch has to know, and nobody needs its environment any more.
func (e *Engine) Committed(c store.Commit) {
	changed := false
	for _, ev := range c.Events {
		switch ev.Type {
		case protocol.EventTurnCancelled:
			e.takeEnvironment(c.SessionID, ev.ReplyID)
		case protocol.EventSessionDeleted:
			e.mu.Lock()
			delete(e.environments, c.SessionID)
			e.mu.Unlock()
			changed = true
		case protocol.EventQueueChanged, protocol.EventBranchDeleted:
			changed = true
		}
	}
	if changed {
		e.changed(c.SessionID)
	}
}

func (e *Engine) changed(session string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if c := e.watchers[session]; c != nil {
		close(c)
		delete(e.watchers, session)
	}
}

// Running returns the turns that are being answered now, of one session or of all
// ("").
func (e *Engine) Running(session string) []protocol.RunningTurn {
	e.mu.Lock()
	defer e.mu.Unlock()
	turns := []protocol.RunningTurn{}
	for id, runs := range e.runs {
		if session != "" && id != session {
			continue
		}
		for _, r := range runs {
			turns = append(turns, protocol.RunningTurn{SessionID: id, ReplyID: r.reply.ID, Model: r.model, ElapsedMS: time.Since(r.began).Milliseconds()})
		}
	}
	return turns
}

// Live returns the text that was published of an open reply so far, and false if
// it is not being written here. The next delta starts exactly where it ends.
func (e *Engine) Live(session, node string) ([]protocol.Part, bool) {
	e.mu.Lock()
	var l *live
	for _, r := range e.runs[session] {
		if r.reply.ID == node {
			l = r.live
		}
	}
	e.mu.Unlock()
	if l == nil {
		return nil, false
	}
	return l.published(), true
}
