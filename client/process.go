package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"sync"
	"time"
)

const (
	// exitGrace is how long a process may take to exit after its connection ended.
	exitGrace = 5 * time.Second
	// keptStderr is how much of a process's last words an error quotes, in bytes.
	keptStderr = 2000
)

// process is a server that was started for a client.
type process struct {
	cmd    *exec.Cmd
	stderr *tail
	forget func() bool
}

// Start starts cmd, which serves on its standard input and output, and returns a
// client of it. The process is killed when ctx ends. Unless cmd.Stderr is set, its
// last lines are part of the error of an unhappy end.
func Start(ctx context.Context, cmd *exec.Cmd, opts Options) (*Client, error) {
	p := &process{cmd: cmd}
	if cmd.Stderr == nil {
		p.stderr = &tail{}
		cmd.Stderr = p.stderr
	}
	if cmd.WaitDelay == 0 {
		// A grandchild that keeps standard error open must not keep us waiting.
		cmd.WaitDelay = exitGrace
	}
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", cmd.Path, err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", cmd.Path, err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", cmd.Path, err)
	}
	p.forget = context.AfterFunc(ctx, func() { _ = cmd.Process.Kill() })
	c := prepare(pipes{out, in}, opts)
	c.process = p
	c.run() //nolint:contextcheck // the client lives until it is closed, not until Start returns
	return c, nil
}

// wait waits for the process to exit, and kills it if it takes too long.
func (p *process) wait() error {
	defer p.forget()
	timer := time.AfterFunc(exitGrace, func() { _ = p.cmd.Process.Kill() })
	defer timer.Stop()
	err := p.cmd.Wait()
	if err == nil {
		return nil
	}
	if words := p.stderr.String(); words != "" {
		return fmt.Errorf("the server: %w: %s", err, words)
	}
	return fmt.Errorf("the server: %w", err)
}

// pipes are a process's standard streams.
type pipes struct {
	io.ReadCloser
	in io.WriteCloser
}

func (p pipes) Write(b []byte) (int, error) { return p.in.Write(b) }

func (p pipes) Close() error { return errors.Join(p.in.Close(), p.ReadCloser.Close()) }

// tail keeps the end of what is written to it.
type tail struct {
	mu   sync.Mutex
	text []byte
}

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, b...)
	if n := len(t.text); n > keptStderr {
		t.text = append(t.text[:0], t.text[n-keptStderr:]...)
	}
	return len(b), nil
}

func (t *tail) String() string {
	if t == nil {
		return ""
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.ToValidUTF8(strings.TrimSpace(string(t.text)), "")
}
