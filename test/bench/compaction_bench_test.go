package bench

import (
	"fmt"
	"testing"
	"time"

	"go.uber.org/zap"

	"convls/compaction"
	"convls/model"
	"convls/protocol"
	"convls/store"
)

// compactor is an engine on a store with one session, whose model has a window of
// 32,000 tokens and whose summaries the built-in rules write: what is measured is
// everything but a model's own time.
type compactor struct {
	b      *testing.B
	store  *store.Store
	sess   *store.Session
	engine *compaction.Engine
	client compaction.Client
	models *model.Registry
}

func newCompactor(b *testing.B) *compactor {
	b.Helper()
	s := open(b, b.TempDir())
	models := model.NewRegistry()
	out, err := s.Create(b.Context(), store.Request{}, store.Info{Policy: protocol.PolicyRolling}, "You are brief.")
	if err != nil {
		b.Fatal(err)
	}
	sess, err := s.Session(out.Result)
	if err != nil {
		b.Fatal(err)
	}
	c := &compactor{b: b, store: s, sess: sess, models: models,
		engine: compaction.New(compaction.Config{Store: s, Models: models, Logger: zap.NewNop()}),
		client: compaction.Client{Model: "offline", Settings: protocol.Settings{Model: "offline", Compaction: protocol.CompactionSettings{Model: compaction.Extractive},
			Models: map[string]protocol.ModelSettings{"offline": {Window: 32_000, MaxOutput: 4_000}}}}}
	b.Cleanup(func() {
		c.engine.Close()
		models.Close()
		if err := s.Close(); err != nil {
			b.Error(err)
		}
	})
	return c
}

// fill appends n chain nodes.
func (c *compactor) fill(n int) {
	c.b.Helper()
	counter, err := c.models.Counter(c.client.Settings, "offline")
	if err != nil {
		c.b.Fatal(err)
	}
	if _, err := Fill(c.b.Context(), c.sess, n, Options{Batch: 10_000, Tokenizer: counter.ID()}); err != nil {
		c.b.Fatal(err)
	}
}

// run compacts all but the last 20 nodes or so, and returns how long that took.
func (c *compactor) run() (protocol.CompactionResult, time.Duration) {
	c.b.Helper()
	keep := int64(2_000)
	began := time.Now()
	res, err := c.engine.Run(c.b.Context(), c.sess, store.Request{}, compaction.Request{Spec: protocol.CompactionSpec{KeepRecentTokens: &keep}}, c.client)
	if err == nil {
		res, err = c.engine.Wait(c.b.Context(), c.sess, res.CompactionID, nil)
	}
	if err != nil || res.State != protocol.RunFinished {
		c.b.Fatalf("the run ended as %s: %v, %+v", res.State, err, res.Error)
	}
	return res, time.Since(began)
}

// BenchmarkCompact measures a run over 200 new nodes on histories of several
// lengths (x1k is against the shortest), and the first run that covers a whole
// history at once.
func BenchmarkCompact(b *testing.B) {
	var base float64
	for _, n := range sizes(b) {
		if n > 100_000 {
			continue
		}
		b.Run(fmt.Sprintf("incremental/nodes=%d", n), func(b *testing.B) {
			c := newCompactor(b)
			c.fill(n)
			c.run()
			for b.Loop() {
				b.StopTimer()
				c.fill(200)
				b.StartTimer()
				c.run()
			}
			per := float64(b.Elapsed().Nanoseconds()) / float64(b.N)
			if base == 0 {
				base = per
			}
			b.ReportMetric(per/base, "x1k")
		})
		b.Run(fmt.Sprintf("first/nodes=%d", n), func(b *testing.B) {
			for b.Loop() {
				b.StopTimer()
				c := newCompactor(b)
				c.fill(n)
				b.StartTimer()
				c.run()
			}
		})
	}
}

// BenchmarkThousandCompactions compacts a thousand times over 100,000 nodes and
// reports the bytes of all that the summaries cover as it is stored (covers-bytes),
// and how long the last hundred runs took against the first hundred (last/first).
func BenchmarkThousandCompactions(b *testing.B) {
	const runs, each = 1_000, 100
	for b.Loop() {
		c := newCompactor(b)
		var first, last time.Duration
		for i := range runs {
			c.fill(each)
			_, took := c.run()
			switch {
			case i < 100:
				first += took
			case i >= runs-100:
				last += took
			}
		}
		r, err := c.sess.Reader()
		if err != nil {
			b.Fatal(err)
		}
		bytes, summaries := 0, 0
		for seq, err := range r.Summaries() {
			if err != nil {
				b.Fatal(err)
			}
			covers, err := r.Covers(seq)
			if err != nil {
				b.Fatal(err)
			}
			text, err := protocol.Marshal(covers)
			if err != nil {
				b.Fatal(err)
			}
			bytes += len(text)
			summaries++
		}
		if err := r.Close(); err != nil {
			b.Fatal(err)
		}
		if summaries != runs {
			b.Fatalf("%d summaries of %d runs", summaries, runs)
		}
		b.ReportMetric(float64(bytes), "covers-bytes")
		b.ReportMetric(float64(last)/float64(first), "last/first")
	}
}
