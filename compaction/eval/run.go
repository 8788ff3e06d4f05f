package eval

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"

	"convls/compaction"
	"convls/compaction/manifest"
	"convls/model"
	"convls/protocol"
	"convls/store"
)

// Window is the window of the planted conversation's own model, in tokens, if
// [Options] has none: a summary may have 15,488 of them.
const Window = 128_000

// Options say what to evaluate.
type Options struct {
	// Summariser is an adversary's name, extractive, or a model as provider/name.
	Summariser string
	// Cycles is how often the conversation goes on and is compacted, 1 or more.
	Cycles int
	// Seed makes the conversation: the same one for the same seed.
	Seed uint64
	// Window is the conversation's window in tokens; [Window] if it is 0.
	Window int64
	// Store holds the conversation, as a session of its own.
	Store *store.Store
	// Models, Settings and Keys are those of the summariser, where it is a model.
	Models   compaction.Models
	Settings protocol.Settings
	Keys     model.KeySource
	// Progress, if set, is told which cycle begins, counted from 1.
	Progress func(cycle int)
}

// State is how a cycle's compaction ended.
type State string

// The states.
const (
	Compacted State = "compacted"
	// Refused: the summary did not hold, and everything is as it was.
	Refused State = "refused"
	// Failed: there was no answer, and everything is as it was.
	Failed State = "failed"
)

// Result is what one cycle came to. Where it was not compacted, the verdict is that
// of the summary that still stands; what came after that is in the context as it was
// said.
type Result struct {
	// Cycle counts from 1.
	Cycle int   `json:"cycle"`
	State State `json:"state"`
	// Reason is why a summary was refused, or the code of the failure; Message says it
	// in words.
	Reason  string `json:"reason,omitzero"`
	Message string `json:"message,omitzero"`
	Verdict
	// Covered is how many chain nodes the summary stands for, Read how many nodes the
	// summariser was given.
	Covered int64 `json:"covered"`
	Read    int   `json:"read"`
	// Reread are nodes that an earlier summary has, or that came twice; Unread are
	// newly covered ones that the summariser was not given.
	Reread []string `json:"reread"`
	Unread []string `json:"unread"`
	// Rejected is how many of the summariser's changes the reducer did not take.
	Rejected int `json:"rejected"`
	// FingerprintHolds says that the recorded source_sha256 is that of the ledger.
	FingerprintHolds bool `json:"fingerprint_holds"`
	// TokensBefore and TokensAfter are those of the context.
	TokensBefore int64 `json:"tokens_before"`
	TokensAfter  int64 `json:"tokens_after"`
	// Calls is how often the summariser was asked.
	Calls      int64   `json:"calls"`
	CostUSD    float64 `json:"cost_usd"`
	DurationMS float64 `json:"duration_ms"`
}

// Evaluation is the results of one summariser.
type Evaluation struct {
	Summariser string   `json:"summariser"`
	Results    []Result `json:"results"`
	// Breaches say where it falls short of what holds for every summariser:
	// constraints, prohibitions and identities are kept, and nothing invented is taken
	// in. Each is a sentence.
	Breaches []string `json:"breaches"`
}

func (e *Evaluation) breaches() []string {
	out := []string{}
	for _, r := range e.Results {
		for _, kept := range []struct {
			what string
			Tally
		}{{"constraints", r.Constraints}, {"prohibitions", r.Prohibitions}, {"identities", r.Identities}} {
			if !kept.Whole() {
				out = append(out, fmt.Sprintf("%s, cycle %d: %d of %d %s are kept", e.Summariser, r.Cycle, kept.Kept, kept.Planted, kept.what))
			}
		}
		if n := len(r.Invented); n > 0 {
			out = append(out, fmt.Sprintf("%s, cycle %d: %d invented items were taken in, the first: %s", e.Summariser, r.Cycle, n, r.Invented[0]))
		}
	}
	return out
}

// Unanswered returns what a summariser failed with that did not answer in any
// cycle, or "".
func (e *Evaluation) Unanswered() string {
	for _, r := range e.Results {
		if r.State != Failed {
			return ""
		}
	}
	return e.Results[0].Message
}

// Names returns the summarisers that need no model.
func Names() []string {
	names := []string{compaction.Extractive}
	for _, a := range Adversaries() {
		names = append(names, a.Name)
	}
	return names
}

// Run writes a planted conversation into a session of o.Store, cycle by cycle, and
// has [compaction.Engine] compact it after each, as if a person had asked for that
// with nothing to be kept but the last message. It is an error if the summariser is
// not there, and if the engine does what it must never do: then the session is left
// as it is.
func Run(ctx context.Context, o Options) (*Evaluation, error) {
	if o.Cycles < 1 {
		return nil, protocol.Errorf(protocol.CodeInvalidParams, "cycles is 1 or more, not %d", o.Cycles)
	}
	e := &evaluator{Options: o}
	engine := compaction.New(compaction.Config{Store: o.Store, Models: o.Models, Logger: zap.NewNop(), Summarisers: e.summariser})
	defer engine.Close()
	e.engine, e.client = engine, o.client()
	created, err := o.Store.Create(ctx, store.Request{}, store.Info{Policy: protocol.PolicyRolling}, "You are a careful programmer.")
	if err != nil {
		return nil, fmt.Errorf("make a session for the evaluation: %w", err)
	}
	if e.sess, err = o.Store.Session(created.Result); err != nil {
		return nil, err
	}
	out := &Evaluation{Summariser: o.Summariser}
	for i, cycle := range Plant(o.Seed, o.Cycles) {
		if o.Progress != nil {
			o.Progress(i + 1)
		}
		if err := e.chat(ctx, cycle.Messages); err != nil {
			return nil, fmt.Errorf("write cycle %d into the ledger: %w", i+1, err)
		}
		r, err := e.compact(ctx, cycle.Truth)
		if err != nil {
			return nil, fmt.Errorf("%s, cycle %d: %w", o.Summariser, i+1, err)
		}
		r.Cycle = i + 1
		out.Results = append(out.Results, *r)
	}
	out.Breaches = out.breaches()
	return out, nil
}

// client is whoever asks for the compactions. The conversation's own model is the
// built-in one, which counts exactly and is never asked.
func (o *Options) client() compaction.Client {
	s := o.Settings
	s.Model, s.Compaction = model.Offline, protocol.CompactionSettings{Model: o.Summariser, TimeoutMS: s.Compaction.TimeoutMS, MaxRetries: s.Compaction.MaxRetries}
	own := protocol.ModelSettings{Window: o.Window}
	if own.Window == 0 {
		own.Window = Window
	}
	s.Models = maps.Clone(s.Models)
	if s.Models == nil {
		s.Models = map[string]protocol.ModelSettings{}
	}
	s.Models[model.Offline] = own
	return compaction.Client{Settings: s, Model: model.Offline, Keys: o.Keys}
}

// evaluator is an evaluation under way.
type evaluator struct {
	Options
	engine *compaction.Engine
	client compaction.Client
	sess   *store.Session
	// meter is the latest run's.
	meter *meter
	// conversation is what has been said, as the summariser would read it.
	conversation []manifest.Message
	// stands is the verdict on the summary that stands.
	stands Verdict
	// given has the nodes that this summary, and those before it, were made from.
	given map[string]bool
}

// summariser makes a measured summariser of the one that is evaluated.
func (e *evaluator) summariser(id string, usual func() (compaction.Summariser, error)) (compaction.Summariser, error) {
	var s compaction.Summariser
	if i := slices.IndexFunc(Adversaries(), func(a Named) bool { return a.Name == id }); i >= 0 {
		s = liar{Adversaries()[i]}
	} else if !strings.Contains(id, "/") && id != compaction.Extractive && id != model.Offline {
		return nil, protocol.Errorf(protocol.CodeUnknownModel, "there is no summariser %q: there are %s, and every model of the settings as provider/name", id, strings.Join(Names(), ", "))
	} else {
		var err error
		if s, err = usual(); err != nil {
			return nil, err
		}
	}
	e.meter = &meter{Summariser: s}
	return e.meter, nil
}

// compact compacts what has been said, and judges what came of it.
func (e *evaluator) compact(ctx context.Context, truth Truth) (*Result, error) {
	before := e.sess.State()
	began := time.Now()
	nothing := int64(0)
	res, err := e.engine.Run(ctx, e.sess, store.Request{}, compaction.Request{Spec: protocol.CompactionSpec{KeepRecentTokens: &nothing}}, e.client)
	if err != nil {
		return nil, err
	}
	if res, err = e.engine.Wait(ctx, e.sess, res.CompactionID, nil); err != nil {
		return nil, err
	}
	r := &Result{Verdict: newVerdict(), Reread: []string{}, Unread: []string{}, Read: len(e.meter.read), TokensBefore: res.TokensBefore, TokensAfter: res.TokensBefore,
		Calls: e.meter.calls, CostUSD: e.meter.usage.CostUSD, DurationMS: float64(time.Since(began).Microseconds()) / 1000}
	after := e.sess.State()
	if after.Head != before.Head {
		return nil, errors.New("the compaction moved HEAD")
	}
	if res.State == protocol.RunFinished {
		r.State, r.Covered, r.TokensAfter = Compacted, res.Covered, res.TokensAfter
		return r, e.judge(r, res.SummaryID, truth)
	}
	if after.Active != before.Active || after.Nodes != before.Nodes {
		return nil, errors.New("a compaction that was not finished changed the ledger")
	}
	if res.Error == nil {
		return nil, fmt.Errorf("the compaction is %s", res.State)
	}
	r.State, r.Reason, r.Message = Failed, string(res.Error.Code), res.Error.Message
	if res.Error.Code == protocol.CodeSummaryRefused {
		r.State, r.Reason = Refused, res.Error.Reason
	}
	if e.stands.Lost != nil {
		r.Verdict = e.stands
	}
	return r, nil
}

// judge reads a summary from the ledger and compares it with what was planted.
func (e *evaluator) judge(r *Result, summary string, truth Truth) error {
	reader, err := e.sess.Reader()
	if err != nil {
		return err
	}
	defer reader.Close()
	s, err := reader.Lookup(summary)
	if err != nil {
		return err
	}
	content, err := reader.Content(s.Seq)
	if err != nil {
		return err
	}
	m, err := manifest.Decode(content.Manifest)
	if err != nil {
		return err
	}
	r.Verdict = Judge(m, store.Text(content.Parts), truth, e.conversation)
	e.stands = r.Verdict
	r.Rejected = content.Provenance.Rejected
	verified, err := e.engine.Verify(e.sess, summary)
	if err != nil {
		return err
	}
	r.FingerprintHolds = verified.OK && len(verified.Problems) == 0
	return e.compare(r, reader, s)
}

// compare compares what the summariser was given with what the summary covers
// beside the one before it.
func (e *evaluator) compare(r *Result, reader *store.Reader, summary store.Skeleton) error {
	covers, err := reader.Covers(summary.Seq)
	if err != nil {
		return err
	}
	ids, err := reader.CoveredIDs(covers)
	if err != nil {
		return err
	}
	covered := map[string]bool{}
	for _, id := range ids {
		covered[id] = true
	}
	given := map[string]bool{}
	for _, id := range e.meter.read {
		if given[id] || e.given[id] {
			r.Reread = append(r.Reread, id)
		}
		given[id] = true
	}
	owner := ""
	for _, m := range e.conversation {
		if m.Role != manifest.RoleTool {
			owner = m.ID
		}
		if covered[owner] && !given[m.ID] && !e.given[m.ID] {
			r.Unread = append(r.Unread, m.ID)
		}
	}
	maps.Copy(given, e.given)
	e.given = given
	return nil
}
