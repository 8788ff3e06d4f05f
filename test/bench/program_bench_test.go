package bench

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"convls/client"
	"convls/protocol"
	"convls/test/fakemodel"
)

// program builds the command once a run.
func program(b *testing.B) string {
	b.Helper()
	bin := filepath.Join(b.TempDir(), "convls")
	out, err := exec.Command("go", "build", "-ldflags=-s -w", "-o", bin, "convls/cmd/convls").CombinedOutput()
	if err != nil {
		b.Fatalf("build convls: %v\n%s", err, out)
	}
	return bin
}

// server starts the program on a store and shakes hands with it.
func server(b *testing.B, bin, dir string, o client.Options) *client.Client {
	b.Helper()
	cmd := exec.Command(bin, "--stdio", "--data-dir", dir, "--log-file", filepath.Join(filepath.Dir(dir), "convls.log"))
	cmd.Env = append(os.Environ(), "XDG_CONFIG_HOME="+filepath.Dir(dir))
	c, err := client.Start(b.Context(), cmd, o)
	if err != nil {
		b.Fatal(err)
	}
	if _, err := c.Initialize(b.Context()); err != nil {
		b.Fatal(err)
	}
	return c
}

func stop(b *testing.B, c *client.Client) {
	b.Helper()
	if err := c.Shutdown(context.WithoutCancel(b.Context())); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkStart is the time from starting the process to the reply to initialize,
// with a store that was closed.
func BenchmarkStart(b *testing.B) {
	bin, dir := program(b), filepath.Join(b.TempDir(), "store")
	stop(b, server(b, bin, dir, client.Options{}))
	for b.Loop() {
		c := server(b, bin, dir, client.Options{})
		b.StopTimer()
		stop(b, c)
		b.StartTimer()
	}
}

// percentiles reports the middle and the 99th of durations, in microseconds.
func percentiles(b *testing.B, d []time.Duration) {
	b.Helper()
	slices.Sort(d)
	b.ReportMetric(float64(d[len(d)/2].Nanoseconds())/1e3, "p50-us")
	b.ReportMetric(float64(d[len(d)*99/100].Nanoseconds())/1e3, "p99-us")
}

// BenchmarkRoundTrip is a small request over the pipe and its reply.
func BenchmarkRoundTrip(b *testing.B) {
	c := server(b, program(b), filepath.Join(b.TempDir(), "store"), client.Options{})
	defer stop(b, c)
	var took []time.Duration
	for b.Loop() {
		start := time.Now()
		if _, err := client.Do[protocol.SessionListResult](b.Context(), c, protocol.MethodSessionList, protocol.SessionListParams{Limit: 1}); err != nil {
			b.Fatal(err)
		}
		took = append(took, time.Since(start))
	}
	percentiles(b, took)
}

func session(b *testing.B, c *client.Client) string {
	b.Helper()
	s, err := client.Do[protocol.SessionResult](b.Context(), c, protocol.MethodSessionCreate, protocol.SessionCreateParams{Model: "fake/instant"})
	if err != nil {
		b.Fatal(err)
	}
	return s.SessionID
}

func fake(f *fakemodel.Server) map[string]any {
	return map[string]any{"providers": map[string]any{"fake": map[string]any{"base_url": f.URL()}}}
}

// BenchmarkTurn is a whole turn against a model that answers at once: admission,
// context, one HTTP call, seal, reply. The first turns of a session are measured,
// so that the history sent along stays short.
func BenchmarkTurn(b *testing.B) {
	f := fakemodel.New(b)
	f.Default(fakemodel.Say("ok"))
	c := server(b, program(b), filepath.Join(b.TempDir(), "store"), client.Options{Settings: fake(f)})
	defer stop(b, c)
	id := ""
	var took []time.Duration
	for n := 0; b.Loop(); n++ {
		if n%50 == 0 {
			b.StopTimer()
			id = session(b, c)
			b.StartTimer()
		}
		start := time.Now()
		t, err := client.Do[protocol.TurnResult](b.Context(), c, protocol.MethodTurnSend, protocol.TurnSendParams{SessionID: id, Wait: true,
			Content: protocol.SendContent{{Type: protocol.PartText, Text: "hi"}}})
		if err != nil || t.State != protocol.StatusSealed {
			b.Fatalf("%s %v", t.State, err)
		}
		took = append(took, time.Since(start))
	}
	percentiles(b, took)
}

// BenchmarkDeltas streams a long answer through the server. A fast model's pieces
// are gathered for 40 ms, so what counts is text: pieces-per-s are the model's,
// deltas the messages that reached the client.
func BenchmarkDeltas(b *testing.B) {
	const pieces = 20_000
	f := fakemodel.New(b)
	words := make([]string, pieces)
	for i := range words {
		words[i] = "word "
	}
	f.Default(fakemodel.Say(words...))
	var deltas, bytes atomic.Int64
	c := server(b, program(b), filepath.Join(b.TempDir(), "store"), client.Options{Settings: fake(f), OnDelta: func(d protocol.Delta) {
		deltas.Add(1)
		bytes.Add(int64(len(d.Text)))
	}})
	defer stop(b, c)
	for b.Loop() {
		b.StopTimer()
		id := session(b, c)
		if _, err := client.Do[protocol.SubscribeResult](b.Context(), c, protocol.MethodSessionSubscribe, protocol.SubscribeParams{SessionID: id}); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
		t, err := client.Do[protocol.TurnResult](b.Context(), c, protocol.MethodTurnSend, protocol.TurnSendParams{SessionID: id, Wait: true,
			Content: protocol.SendContent{{Type: protocol.PartText, Text: "go"}}})
		if err != nil || t.State != protocol.StatusSealed {
			b.Fatalf("%s %v", t.State, err)
		}
	}
	b.ReportMetric(float64(pieces*b.N)/b.Elapsed().Seconds(), "pieces-per-s")
	b.ReportMetric(float64(deltas.Load())/float64(b.N), "deltas/op")
	b.ReportMetric(float64(bytes.Load())/float64(b.N), "bytes/op")
}
