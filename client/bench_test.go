package client_test

import (
	"context"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"convls/client"
	"convls/protocol"
	"convls/server"
)

// BenchmarkRoundTrip is one small request over the pipes of a server process.
func BenchmarkRoundTrip(b *testing.B) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "CONVLS_TEST_SERVER=1")
	c, err := client.Start(context.Background(), cmd, client.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Initialize(context.Background()); err != nil {
		b.Fatal(err)
	}
	params := object{"session_id": "s", "text": strings.Repeat("x", 200)}
	for b.Loop() {
		var result object
		if err := c.Call(context.Background(), "echo", params, &result); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkDeltas is deltas published to one subscriber, until it has them all:
// the publisher is paced by the client's room, so that none is dropped.
func BenchmarkDeltas(b *testing.B) {
	hub := server.NewHub(nothing{})
	conns := make(chan *server.Conn, 1)
	opts := server.Options{Hub: hub, Methods: map[string]server.Method{
		"sub": {Handle: func(ctx context.Context, c *server.Conn, _ []byte) (any, error) {
			c.Subscribe(ctx, "s", "")
			conns <- c
			return object{}, nil
		}},
	}}
	x, y := net.Pipe()
	go server.Serve(context.Background(), x, opts)
	got := 0
	c := client.New(y, client.Options{OnDelta: func(protocol.Delta) { got++ }})
	defer c.Close()
	if _, err := c.Initialize(context.Background()); err != nil {
		b.Fatal(err)
	}
	if err := c.Call(context.Background(), "sub", nil, nil); err != nil {
		b.Fatal(err)
	}
	conn := <-conns
	for b.Loop() {
		for conn.Queued() > 400<<10 {
			runtime.Gosched()
		}
		hub.Delta(protocol.Delta{SessionID: "s", NodeID: "01J00000000000000000000000", Kind: protocol.DeltaText, Text: "a few words of text"})
	}
	if err := c.Delivered(context.Background()); err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(got)/b.Elapsed().Seconds(), "deltas/s")
}

// nothing is a source without events.
type nothing struct{}

func (nothing) Events(context.Context, string, string, int) ([]protocol.Event, string, bool, error) {
	return nil, "", false, nil
}
