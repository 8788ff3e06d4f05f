package compaction

import (
	"context"
	"errors"
	"sync"
	"time"

	"go.uber.org/zap"

	"convls/model"
	"convls/projection"
	"convls/protocol"
	"convls/store"
)

// PolicyVersion names the rules by which summaries are cut, reduced and checked.
// It changes with them, so that a summary tells by which it was made.
const PolicyVersion = "1"

// Models are the language models at hand.
type Models interface {
	// Resolve returns the provider of a model and the model's name with it.
	Resolve(s protocol.Settings, id string, keys model.KeySource) (model.Provider, string, error)
	// Counter returns the token counter of a model.
	Counter(s protocol.Settings, id string) (*model.Counter, error)
}

// Config is what an engine needs.
type Config struct {
	Store  *store.Store
	Models Models
	Logger *zap.Logger
	// Ended, if set, is told that a run of a session has ended: sends that waited for
	// it may begin.
	Ended func(sess *store.Session)
	// Summarisers, if set, chooses the summariser for the id that the settings name;
	// usual makes the one that it stands for. An evaluation measures through it, and
	// brings summarisers of its own.
	Summarisers func(id string, usual func() (Summariser, error)) (Summariser, error)
}

// Client is what a run takes from whoever asks for it.
type Client struct {
	// Settings are the client's, with the session's over them; Model is the model of
	// the conversation.
	Settings protocol.Settings
	Model    string
	Keys     model.KeySource
	// ToolResultBytes is how much of a tool's result the model is shown.
	ToolResultBytes int
}

// Engine runs the compactions of a store, one a session at a time.
type Engine struct {
	Config
	root   context.Context
	cancel context.CancelCauseFunc
	wg     sync.WaitGroup

	mu     sync.Mutex
	closed bool
	runs   map[string]*run // by session id
	// ended are the results of the latest runs, for requests that are repeated.
	ended *results
	// drafts are by id.
	drafts map[string]*draft
}

var (
	errShutdown  = errors.New("convls is shutting down")
	errCancelled = errors.New("the compaction was cancelled")
)

// New makes an engine. Close ends it.
func New(c Config) *Engine {
	root, cancel := context.WithCancelCause(context.Background())
	return &Engine{Config: c, root: root, cancel: cancel, runs: map[string]*run{}, ended: newResults(), drafts: map[string]*draft{}}
}

// Close ends all runs, which then change nothing, and waits for them.
func (e *Engine) Close() {
	e.mu.Lock()
	e.closed = true
	e.mu.Unlock()
	e.cancel(errShutdown)
	e.wg.Wait()
}

// run is a compaction that is under way.
type run struct {
	id      string
	sess    *store.Session
	trigger protocol.Trigger
	spec    protocol.CompactionSpec
	draft   bool
	client  Client
	origin  protocol.Origin
	counter *model.Counter
	plan    *plan // guarded by Engine.mu until the run has begun, then fixed
	started time.Time

	ctx    context.Context
	cancel context.CancelCauseFunc
	done   chan struct{}

	mu          sync.Mutex
	committing  bool // it is too late to cancel: its end is being written
	cancelled   bool // it is too late to commit
	call, calls int
	moved       chan struct{} // closed when call changes
	// result is set before done is closed.
	result protocol.CompactionResult
}

// progress notes which call of how many is being made.
func (r *run) progress(call, calls int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.call, r.calls = call, max(calls, call)
	close(r.moved)
	r.moved = make(chan struct{})
}

// at returns which call of how many is being made, and a channel that is closed
// when that changes.
func (r *run) at() (call, calls int, moved <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.call, r.calls, r.moved
}

// commit reports whether the run may be committed: from then on it can not be
// cancelled any more, so that it ends as finished or cancelled and never as both
// (fault 82).
func (r *run) commit() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.cancelled || r.ctx.Err() != nil {
		return false
	}
	r.committing = true
	return true
}

// ends says that the end of the run, other than a commit, is being written.
func (r *run) ends() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.committing = true
}

// ending reports whether the end of the run is being written.
func (r *run) ending() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.committing
}

// stop cancels the run if that is still possible.
func (r *run) stop(cause error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.committing {
		return
	}
	r.cancelled = true
	r.cancel(cause)
}

// reserve makes room for a run of a session, or returns the one that is there.
func (e *Engine) reserve(r *run) (*run, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return nil, protocol.Errorf(protocol.CodeServerRestarted, "convls is shutting down and begins no compaction")
	}
	if other := e.runs[r.sess.ID()]; other != nil {
		return other, nil
	}
	r.ctx, r.cancel = context.WithCancelCause(e.root)
	r.done, r.moved = make(chan struct{}), make(chan struct{})
	e.runs[r.sess.ID()] = r
	e.wg.Add(1)
	return nil, nil
}

// release takes a run out and tells of its end. It is called once for each that was
// reserved.
func (e *Engine) release(r *run) {
	e.mu.Lock()
	delete(e.runs, r.sess.ID())
	if r.result.CompactionID != "" {
		e.ended.put(r.result)
	}
	e.mu.Unlock()
	r.cancel(nil)
	close(r.done)
	// A run that was never told of can have made a send wait, too.
	if e.Ended != nil && !r.draft {
		e.Ended(r.sess)
	}
	e.wg.Done()
}

// find returns the run of a session that is under way.
func (e *Engine) find(session string) *run {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.runs[session]
}

// Running returns the runs that are under way, of one session or of all (""). One
// whose end is being written is none: whoever was told of its end is not told
// otherwise.
func (e *Engine) Running(session string) []protocol.RunningCompaction {
	e.mu.Lock()
	runs := make([]*run, 0, len(e.runs))
	for id, r := range e.runs {
		if (session == "" || id == session) && r.plan != nil {
			runs = append(runs, r)
		}
	}
	e.mu.Unlock()
	out := []protocol.RunningCompaction{}
	for _, r := range runs {
		r.mu.Lock()
		if r.committing {
			r.mu.Unlock()
			continue
		}
		out = append(out, protocol.RunningCompaction{SessionID: r.sess.ID(), CompactionID: r.id, Trigger: r.trigger, Head: r.plan.head.ID,
			StartedAt: r.started, ElapsedMS: time.Since(r.started).Milliseconds(), Call: r.call, Calls: r.calls})
		r.mu.Unlock()
	}
	return out
}

// Blocks reports whether a send at a chain node has to wait: what stands before it
// is being compacted.
func (e *Engine) Blocks(session string, at store.Skeleton, isAncestor func(a, b store.Skeleton) (bool, error)) (bool, error) {
	e.mu.Lock()
	var p *plan
	if r := e.runs[session]; r != nil && !r.draft {
		p = r.plan
	}
	e.mu.Unlock()
	if p == nil {
		return false, nil
	}
	return isAncestor(p.last, at)
}

// options are those of the view that the model reads.
func (e *Engine) options(counter projection.Counter, c Client) projection.Options {
	return projection.Options{Counter: counter, ToolResultBytes: c.ToolResultBytes, Other: e.Store.Session}
}

// window returns the budget of the conversation's model, with its counter.
func (e *Engine) window(c Client) (protocol.Budget, *model.Counter, error) {
	provider, name, err := e.Models.Resolve(c.Settings, c.Model, c.Keys)
	if err != nil {
		return protocol.Budget{}, nil, err
	}
	counter, err := e.Models.Counter(c.Settings, c.Model)
	if err != nil {
		return protocol.Budget{}, nil, err
	}
	caps := provider.Capabilities(name)
	// Views are counted as the counter counts, and what the provider has reported so
	// far corrects that: the window is put into the counter's measure.
	const many = 1_000_000
	scale := func(tokens int64) int64 { return int64(float64(tokens) * many / float64(max(counter.Adjust(many), 1))) }
	return Budget(0, scale(caps.Window), scale(caps.MaxOutput), counter.Source(), c.Settings.Compaction), counter, nil
}

// results are those of the latest runs.
type results struct {
	byID  map[string]protocol.CompactionResult
	order []string
}

// keptResults is how many results are kept.
const keptResults = 256

func newResults() *results { return &results{byID: map[string]protocol.CompactionResult{}} }

func (r *results) put(res protocol.CompactionResult) {
	if _, ok := r.byID[res.CompactionID]; !ok {
		r.order = append(r.order, res.CompactionID)
	}
	r.byID[res.CompactionID] = res
	if len(r.order) > keptResults {
		delete(r.byID, r.order[0])
		r.order = r.order[1:]
	}
}
