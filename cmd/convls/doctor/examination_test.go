package doctor

import (
	"context"
	"strings"
	"testing"
	"time"

	"convls/model"
	"convls/protocol"
	"convls/store"
)

func TestJudgeSpace(t *testing.T) {
	for _, tc := range []struct {
		free            int64
		problems, notes int
	}{
		{-1, 0, 0}, {0, 1, 0}, {store.Reserve - 1, 1, 0}, {store.Reserve, 0, 1}, {4 * store.Reserve, 0, 0},
	} {
		var r Report
		r.judgeSpace(tc.free)
		if len(r.Problems) != tc.problems || len(r.Notes) != tc.notes {
			t.Errorf("%d bytes: %+v", tc.free, r)
		}
	}
}

// keys are those of a test, by provider; nothing else is asked for them.
type keys map[string]string

func (k keys) Key(_ context.Context, r model.KeyRequest) (string, error) {
	return k[r.Provider], nil
}

func TestProvidersThatAreNotConfigured(t *testing.T) {
	server := models(t)
	x := &examination{timeout: 50 * time.Millisecond, environ: []string{"ANTHROPIC_API_KEY=k", "OPENAI_API_KEY="}}
	x.examineProviders(t.Context(), protocol.Settings{
		Model:      "slow/m",
		Compaction: protocol.CompactionSettings{Model: "extractive"},
		Providers: map[string]protocol.ProviderSettings{
			"slow":   {BaseURL: server.URL + "/slow/v1"},
			"second": {Kind: "anthropic", BaseURL: server.URL + "/open"},
			"odd":    {Kind: "anthropic", BaseURL: "ftp://h"},
		},
	}, keys{"second": "k"})
	var names []string
	for _, p := range x.report.Providers {
		names = append(names, p.Name)
		switch p.Name {
		case "slow":
			if !p.Asked || !strings.Contains(p.Error, "did not answer within 50ms") {
				t.Errorf("got %+v", p)
			}
		case "second":
			// Whoever has the key of a provider, it is not in its variable.
			if p.Key != "in the keyring" || !p.KeyFound || p.Kind != model.KindAnthropic {
				t.Errorf("got %+v", p)
			}
		case "odd":
			if p.Asked || !strings.Contains(p.Error, "providers.odd.base_url") {
				t.Errorf("got %+v", p)
			}
		}
	}
	if got := strings.Join(names, " "); got != "anthropic odd second slow" {
		t.Errorf("got %s", got)
	}
	// The one that nobody chose is a note: its key is not ours to judge.
	for _, f := range x.report.Problems {
		if f.About == "provider anthropic" || f.Next == "" {
			t.Errorf("got %+v", f)
		}
	}
}

func TestSummariserIsExamined(t *testing.T) {
	x := &examination{}
	x.examineProviders(t.Context(), protocol.Settings{Model: "offline", Compaction: protocol.CompactionSettings{Model: "nobody/m"}}, keys{})
	if len(x.report.Problems) != 1 || x.report.Problems[0].About != "provider nobody" {
		t.Errorf("got %+v", x.report.Problems)
	}
}

func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	cmd := convls()
	cmd.SetArgs([]string{"doctor", "--data-dir", t.TempDir()})
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	var out strings.Builder
	cmd.SetOut(&out)
	if err := cmd.ExecuteContext(ctx); err == nil || !strings.Contains(err.Error(), "interrupted") || out.Len() > 0 {
		t.Errorf("error %v, output %q", err, out.String())
	}
}
