// Package llama runs a real model server in tests: llama.cpp's llama-server, with
// a tiny model of random weights. What convls does with tokens, streams and
// overflow errors can so be tested against a server that somebody else wrote.
//
// test/install.sh fetches the program (get.sh does the work); [Start] runs it.
package llama

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"sync"
	"syscall"
	"testing"
	"time"
)

// startLimit bounds how long the server may take until it answers.
const startLimit = time.Minute

// seed makes the model the same in every test.
const seed = 1

// Server is a running llama-server with the model of [WriteModel].
type Server struct {
	// URL is its address, without a trailing slash. The OpenAI-compatible API is
	// below URL + "/v1".
	URL string
	// Model is a name to ask for; the server has one model and takes any name.
	Model string
}

// Start runs a server for the test, with a window of [ContextTokens], and stops it
// when the test ends. Without the program the test is skipped, or fails where
// CONVLS_REQUIRE_LLAMA is set.
func Start(t testing.TB) *Server {
	t.Helper()
	return StartWindow(t, ContextTokens)
}

// StartWindow is [Start] with a window of so many tokens.
func StartWindow(t testing.TB, tokens int) *Server {
	t.Helper()
	program, err := find()
	if err != nil {
		if os.Getenv("CONVLS_REQUIRE_LLAMA") != "" {
			t.Fatalf("no model server: %v", err)
		}
		t.Skipf("no model server, run test/install.sh: %v", err)
	}
	model := filepath.Join(t.TempDir(), "noise.gguf")
	if err := writeFile(model, tokens); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	// One thread: with more, the server stalls on machines whose cores are busy.
	cmd := exec.CommandContext(ctx, program, "--model", model, "--host", "127.0.0.1", "--port", "0",
		"--threads", "1", "--parallel", "1", "--no-warmup", "--offline")
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 10 * time.Second // then it is killed
	output, writer := io.Pipe()
	cmd.Stdout, cmd.Stderr = writer, writer
	if err := cmd.Start(); err != nil {
		stop()
		t.Fatalf("starting llama-server: %v", err)
	}
	log := &lines{}
	exited := make(chan struct{})
	listening := make(chan string, 1)
	go func() {
		defer close(exited)
		_ = cmd.Wait() // stopped by a signal: its status says nothing
		_ = writer.Close()
	}()
	read := make(chan struct{})
	go func() {
		defer close(read)
		log.follow(output, listening)
	}()
	t.Cleanup(func() {
		stop()
		<-exited
		<-read
		if t.Failed() {
			t.Logf("llama-server said:\n%s", log.text())
		}
	})
	limit, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	select {
	case url := <-listening:
		if err := healthy(limit, url); err != nil {
			t.Fatalf("waiting for llama-server: %v", err)
		}
		return &Server{URL: url, Model: "noise"}
	case <-exited:
		t.Fatal("llama-server ended before it listened")
	case <-limit.Done():
		t.Fatalf("llama-server did not listen within %v", startLimit)
	}
	return nil
}

// find returns the program that test/install.sh fetched, or one that
// CONVLS_LLAMA_SERVER names.
func find() (string, error) {
	if path := os.Getenv("CONVLS_LLAMA_SERVER"); path != "" {
		return path, nil
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("looking for the cache folder: %w", err)
	}
	path := filepath.Join(cache, "convls-test", "llama", "bin", "llama-server")
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("looking for llama-server: %w", err)
	}
	return path, nil
}

func writeFile(path string, window int) error {
	f, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("making the model's file: %w", err)
	}
	if err := WriteModel(f, seed, window); err != nil {
		_ = f.Close()
		return err
	}
	return f.Close()
}

// healthy waits until the server says that its model is loaded.
func healthy(ctx context.Context, url string) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/health", nil)
		if err != nil {
			return err
		}
		res, err := http.DefaultClient.Do(req)
		if err == nil {
			_ = res.Body.Close()
			if res.StatusCode == http.StatusOK {
				return nil
			}
			err = fmt.Errorf("health: %s", res.Status)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", ctx.Err(), err)
		case <-tick.C:
		}
	}
}

// listens finds the address in the server's log.
var listens = regexp.MustCompile(`listening on (http://[0-9.]+:[0-9]+)`)

// lines keeps what the server said, for the log of a test that fails.
type lines struct {
	mu  sync.Mutex
	all []byte
}

// follow reads the server's output to its end and sends the address once.
func (l *lines) follow(r io.Reader, address chan<- string) {
	in := bufio.NewReader(r)
	sent := false
	for {
		line, err := in.ReadString('\n')
		l.mu.Lock()
		l.all = append(l.all, line...)
		l.mu.Unlock()
		if m := listens.FindStringSubmatch(line); m != nil && !sent {
			address <- m[1]
			sent = true
		}
		if err != nil {
			return
		}
	}
}

func (l *lines) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return string(l.all)
}
