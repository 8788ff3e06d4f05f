package eval

import (
	"cmp"
	"context"
	"strings"
	"testing"

	"convls/compaction"
	"convls/compaction/manifest"
	"convls/model"
	"convls/protocol"
	"convls/store"
)

// open opens a ledger of the test's own.
func open(t *testing.T) *store.Store {
	t.Helper()
	s, err := store.Open(t.Context(), store.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// registry are the models of a process.
func registry(t *testing.T) *model.Registry {
	t.Helper()
	r := model.NewRegistry()
	t.Cleanup(r.Close)
	return r
}

// TestEngineHolds: ten cycles of chat and compaction through the engine and the
// ledger, with every summariser that needs no model, keep every constraint,
// prohibition, identity and open task, take in nothing invented, and give each node
// to the summariser once (spec/checkpoints.md, exercise F; faults 1, 17, 36, 37).
func TestEngineHolds(t *testing.T) {
	s, models := open(t), registry(t)
	for _, name := range Names() {
		t.Run(name, func(t *testing.T) {
			e, err := Run(t.Context(), Options{Summariser: name, Cycles: 10, Seed: 7, Store: s, Models: models})
			if err != nil {
				t.Fatal(err)
			}
			if len(e.Results) != 10 || len(e.Breaches) > 0 {
				t.Errorf("%d cycles, breaches %v", len(e.Results), e.Breaches)
			}
			covered, rejected := int64(0), 0
			for _, r := range e.Results {
				if r.State != Compacted || !r.FingerprintHolds {
					t.Errorf("cycle %d is %s (%s), the fingerprint holds: %t", r.Cycle, r.State, r.Message, r.FingerprintHolds)
				}
				for _, wrong := range [][]string{r.Lost, r.Invented, r.Identity, r.Status, r.Reread, r.Unread} {
					if len(wrong) > 0 {
						t.Errorf("cycle %d: %q", r.Cycle, wrong)
					}
				}
				for _, tally := range []Tally{r.Constraints, r.Prohibitions, r.Identities, r.OpenTasks} {
					if !tally.Whole() || tally.Planted == 0 {
						t.Errorf("cycle %d: %+v", r.Cycle, tally)
					}
				}
				if r.Covered <= covered || r.Read == 0 || r.Calls == 0 || r.TokensAfter >= r.TokensBefore {
					t.Errorf("cycle %d covers %d after %d, read %d in %d calls, %d tokens became %d", r.Cycle, r.Covered, covered, r.Read, r.Calls, r.TokensBefore, r.TokensAfter)
				}
				covered = r.Covered
				rejected += r.Rejected
			}
			if (rejected > 0) != (name != compaction.Extractive) {
				t.Errorf("%d changes were rejected", rejected)
			}
		})
	}
}

// scripted are models of which one says the same whatever it is asked.
type scripted struct {
	*model.Registry
	says string
	err  error
}

func (s scripted) Resolve(set protocol.Settings, id string, keys model.KeySource) (model.Provider, string, error) {
	if id != "test/scripted" {
		return s.Registry.Resolve(set, id, keys)
	}
	return s, "scripted", nil
}

func (s scripted) Counter(set protocol.Settings, id string) (*model.Counter, error) {
	return s.Registry.Counter(set, strings.Replace(id, "test/scripted", model.Offline, 1))
}

func (scripted) Capabilities(string) model.Capabilities {
	return model.Capabilities{Window: 32_000, MaxOutput: 4_000, InputPrice: 2, OutputPrice: 10}
}

func (scripted) List(context.Context) ([]protocol.Model, error) { return nil, nil }

func (scripted) Count(context.Context, model.Request) (int64, bool, error) { return 0, false, nil }

func (s scripted) Stream(context.Context, model.Request, func(model.Delta) error) (*model.Response, error) {
	if s.err != nil {
		return nil, s.err
	}
	return &model.Response{Parts: []protocol.Part{{Type: protocol.PartText, Text: s.says}}, StopReason: model.StopStop,
		Usage: protocol.Usage{InputTokens: 1_000, OutputTokens: 100, Calls: 1}}, nil
}

// TestModels: a model is evaluated as it answers. What is refused changes nothing,
// is counted, and what it cost too.
func TestModels(t *testing.T) {
	const price = 0.003 // of one answer, in dollars
	for _, tc := range []struct {
		name, says string
		err        error
		state      State
		reason     string
		calls      int64
		cost       float64
		never      bool
	}{
		{name: "nothing to add", says: `{"changes":[],"narrative":"It goes on."}`, state: Compacted, calls: 1, cost: price},
		{name: "prose", says: "The user wants a service.", state: Refused, reason: string(compaction.ReasonInvalid), calls: 2, cost: 2 * price},
		{name: "empty", says: " \n", state: Refused, reason: string(compaction.ReasonEmpty), calls: 1, cost: price},
		{name: "made up", says: `{"changes":[{"op":"add","section":"goal","text":"x","sources":["n999999"]}],"narrative":""}`,
			state: Refused, reason: string(compaction.ReasonUnknownSources), calls: 2, cost: 2 * price},
		{name: "no key", err: &model.Error{Class: model.ClassAuth, Message: "the key is wrong"}, state: Failed, reason: string(protocol.CodeProviderAuth), calls: 1, never: true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			e, err := Run(t.Context(), Options{Summariser: "test/scripted", Cycles: 3, Seed: 7, Store: open(t), Models: scripted{registry(t), tc.says, tc.err}})
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range e.Results {
				if r.State != tc.state || r.Reason != tc.reason || r.Calls != tc.calls || r.CostUSD < tc.cost-1e-9 || r.CostUSD > tc.cost+1e-9 {
					t.Errorf("cycle %d: %s (%s: %s), %d calls for $%v", r.Cycle, r.State, r.Reason, r.Message, r.Calls, r.CostUSD)
				}
				if tc.state != Compacted && (r.TokensAfter != r.TokensBefore || r.Message == "" || r.Constraints.Planted != 0) {
					t.Errorf("cycle %d: %+v", r.Cycle, r)
				}
			}
			if len(e.Breaches) > 0 || (e.Unanswered() != "") != tc.never {
				t.Errorf("breaches %v, never answered: %q", e.Breaches, e.Unanswered())
			}
		})
	}
}

func TestRunRefuses(t *testing.T) {
	for _, tc := range []struct {
		name string
		o    Options
		want string
	}{
		{"no cycle", Options{Summariser: compaction.Extractive}, "cycles is 1 or more, not 0"},
		{"unknown summariser", Options{Summariser: "forgetful", Cycles: 1}, `there is no summariser "forgetful": there are extractive, forgets`},
		{"unknown provider", Options{Summariser: "nobody/model", Cycles: 1}, "nobody"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tc.o.Store, tc.o.Models = open(t), registry(t)
			if _, err := Run(t.Context(), tc.o); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%v, want %q", err, tc.want)
			}
		})
	}
}

// TestJudge: each thing that can go wrong with a summary is seen, or a perfect
// verdict would mean nothing.
func TestJudge(t *testing.T) {
	var m *manifest.Manifest
	var said []manifest.Message
	cycles := Plant(7, 3)
	for _, c := range cycles {
		said = append(said, c.Messages...)
		m, _ = manifest.Reduce(m, manifest.Changes{}, c.Messages, manifest.Options{})
	}
	truth := cycles[2].Truth
	for _, tc := range []struct {
		name   string
		tamper func(*manifest.Manifest)
		want   func(Verdict) bool
	}{
		{"nothing", func(*manifest.Manifest) {}, func(v Verdict) bool {
			return len(v.Lost)+len(v.Invented)+len(v.Identity)+len(v.Status) == 0
		}},
		{"a constraint is lost", func(m *manifest.Manifest) { m.Constraints = m.Constraints[1:] }, func(v Verdict) bool {
			return !v.Constraints.Whole() && v.Prohibitions.Whole() && len(v.Lost) == 1
		}},
		{"a prohibition is turned round", func(m *manifest.Manifest) { m.Constraints[1].Negative = false }, func(v Verdict) bool { return len(v.Status) == 1 }},
		{"a prohibition is lost", func(m *manifest.Manifest) { m.Constraints = append(m.Constraints[:1:1], m.Constraints[2:]...) }, func(v Verdict) bool {
			return v.Constraints.Whole() && !v.Prohibitions.Whole()
		}},
		{"a constraint is made up", func(m *manifest.Manifest) {
			item := m.Constraints[0]
			item.Text, item.Quote = "Always run gofmt.", "Always run gofmt."
			m.Constraints = append(m.Constraints, item)
		}, func(v Verdict) bool { return len(v.Invented) == 1 }},
		{"a prohibition becomes an order", func(m *manifest.Manifest) {
			m.Constraints[1].Text = strings.Replace(m.Constraints[1].Text, "Never", "Always", 1)
		}, func(v Verdict) bool { return len(v.Invented) == 1 }},
		{"a word that nobody said", func(m *manifest.Manifest) { m.Decisions[0].Text += " MongoDB" }, func(v Verdict) bool { return len(v.Invented) == 1 }},
		{"a test result is made up", func(m *manifest.Manifest) { m.Tests[0].Quote = "20 passed" }, func(v Verdict) bool { return len(v.Invented) == 1 }},
		{"two names become one", func(m *manifest.Manifest) { m.Artifacts[1].Handle = m.Artifacts[0].Handle }, func(v Verdict) bool {
			return v.Identities.Kept == v.Identities.Planted-1 && len(v.Identity) == 1
		}},
		{"a name is cut", func(m *manifest.Manifest) { m.Artifacts[0].Handle = m.Artifacts[0].Handle[1:] }, func(v Verdict) bool {
			return !v.Identities.Whole() && len(v.Identity) == 1
		}},
		{"a hash is held as a path", func(m *manifest.Manifest) {
			for i := range m.Artifacts {
				if m.Artifacts[i].Kind == manifest.Hash {
					m.Artifacts[i].Kind = manifest.Path
					return
				}
			}
		}, func(v Verdict) bool { return len(v.Identity) == 1 }},
		{"a supposition becomes a fact", func(m *manifest.Manifest) {
			for i := range m.Unknowns {
				m.Unknowns[i].Status = manifest.Fact
			}
		}, func(v Verdict) bool { return len(v.Status) == len(truth.Hypotheses) }},
		{"an open task is lost", func(m *manifest.Manifest) { m.OpenTasks = nil }, func(v Verdict) bool { return v.OpenTasks.Kept == 0 }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tampered, _ := manifest.Reduce(m, manifest.Changes{}, nil, manifest.Options{}) // a copy
			tc.tamper(tampered)
			if v := Judge(tampered, tampered.Render(manifest.RenderOptions{}), truth, said); !tc.want(v) {
				t.Errorf("%+v", v)
			}
		})
	}
	// What the model reads counts: a manifest alone is of no use to it.
	if v := Judge(m, "", truth, said); cmp.Or(v.Constraints.Kept, v.Prohibitions.Kept, v.Identities.Kept, v.OpenTasks.Kept) != 0 {
		t.Errorf("an empty text holds %+v", v)
	}
}

func TestBreaches(t *testing.T) {
	e := Evaluation{Summariser: "x", Results: []Result{
		{Cycle: 1, Verdict: Verdict{Constraints: Tally{2, 2}, OpenTasks: Tally{0, 3}}},
		{Cycle: 2, Verdict: Verdict{Constraints: Tally{2, 3}, Prohibitions: Tally{0, 1}, Identities: Tally{4, 5}, Invented: []string{"a", "b"}}},
	}}
	want := []string{"x, cycle 2: 2 of 3 constraints are kept", "x, cycle 2: 0 of 1 prohibitions are kept", "x, cycle 2: 4 of 5 identities are kept",
		"x, cycle 2: 2 invented items were taken in, the first: a"}
	if got := e.breaches(); strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("%q, want %q", got, want)
	}
}
