package handlers

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest"

	"convls/model"
	"convls/protocol"
	"convls/settings"
	"convls/store"
	"convls/turn"
)

// peer is a connection whose client wants nothing.
type peer struct {
	settings protocol.Settings
	progress int
}

func (*peer) ID() string { return "peer" }
func (*peer) CallTool(context.Context, protocol.ToolCallParams) (protocol.ToolCallResult, error) {
	return protocol.ToolCallResult{}, protocol.Errorf(protocol.CodeNotSupported, "no tools here")
}
func (p *peer) Settings() protocol.Settings                             { return p.settings }
func (*peer) Keys() model.KeySource                                     { return noKeys{} }
func (*peer) ForgetKeys(string)                                         {}
func (*peer) Subscribe(context.Context, string, string)                 {}
func (*peer) Unsubscribe(string)                                        {}
func (*peer) SubscribeStore(context.Context)                            {}
func (*peer) Admitted(context.Context)                                  {}
func (p *peer) Report(int, string)                                      { p.progress++ }
func (*peer) End(string)                                                {}
func (p *peer) Progress(context.Context, protocol.Raw, string) Progress { return p }

var _ Conn = (*peer)(nil)

type noKeys struct{}

func (noKeys) Key(context.Context, model.KeyRequest) (string, error) {
	return "", nil
}

// served are the methods over a store in a folder of the test, with one session in
// it: a message and its answer by the offline model.
type served struct {
	t       *testing.T
	h       *Handlers
	methods map[string]Method
	peer    *peer
	// names stand in params for what the fixture made: $s the session, $root, $u the
	// message and $a the answer.
	names *strings.Replacer
	ids   map[string]string
}

func serve(t *testing.T) *served {
	t.Helper()
	dir := t.TempDir()
	logger := zaptest.NewLogger(t, zaptest.Level(zap.ErrorLevel))
	st, err := store.Open(t.Context(), store.Options{Dir: filepath.Join(dir, "store"), Logger: logger})
	if err != nil {
		t.Fatal(err)
	}
	base, _, err := settings.Load("", []string{"HOME=" + dir})
	if err != nil {
		t.Fatal(err)
	}
	models := model.NewRegistry()
	engine := turn.New(turn.Config{Store: st, Models: models, Merge: settings.Merge, Delta: func(protocol.Delta) {}, Logger: logger})
	st.OnCommit(engine.Committed)
	t.Cleanup(func() {
		engine.Close()
		models.Close()
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	})
	h := &Handlers{Store: st, Engine: engine, Models: models, Logger: logger, Version: "test", Clients: func() int { return 1 }, Started: time.Now()}
	v := &served{t: t, h: h, methods: h.Methods(), peer: &peer{settings: base.Settings()}, names: strings.NewReplacer()}
	made := do[*protocol.SessionResult](v, protocol.MethodSessionCreate, `{"title":"fixture"}`)
	v.ids = map[string]string{"$s": made.SessionID, "$root": made.Head}
	v.rename()
	sent := do[*protocol.TurnResult](v, protocol.MethodTurnSend, `{"session_id":"$s","content":"repeat: aé漢😀","wait":true}`)
	if sent.State != protocol.StatusSealed {
		t.Fatalf("the fixture's turn ended as %s", sent.State)
	}
	v.ids["$u"], v.ids["$a"] = sent.UserID, sent.ReplyID
	v.rename()
	return v
}

func (v *served) rename() {
	var pairs []string
	for name, id := range v.ids {
		pairs = append(pairs, name, id)
	}
	v.names = strings.NewReplacer(pairs...)
}

func (v *served) call(method, params string) (any, error) {
	v.t.Helper()
	serve := v.methods[method]
	if serve == nil {
		v.t.Fatalf("there is no method %s", method)
	}
	return serve(v.t.Context(), v.peer, []byte(v.names.Replace(params)))
}

// do makes a call that must succeed.
func do[R any](v *served, method, params string) R {
	v.t.Helper()
	r, err := v.call(method, params)
	if err != nil {
		v.t.Fatalf("%s %s: %v", method, params, err)
	}
	return r.(R)
}
