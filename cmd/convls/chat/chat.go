// Package chat is the terminal client: `convls chat`. It starts a server of its
// own and speaks the protocol with it as any editor does, so what can be seen
// here can be had in an editor too.
//
// It has two faces over one core. The core is state, which holds what is known of
// a session (see conversation) and changes by snapshots, events and outcomes; and
// the table of commands, each of which checks its arguments against the state and
// makes a job that talks with the server. The screen (screen.go, view.go) is a
// Bubble Tea program; plain mode (plain.go) is lines in and text out, for scripts.
package chat

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/charmbracelet/x/term"
)

// Options say what to chat about and through what.
type Options struct {
	// Server is the command line that starts a server on its standard input and
	// output.
	Server []string
	// Version is told to the server.
	Version string
	// Session is the id or title of a session to open; Continue opens the one that
	// was used last. Without either the first message makes a session.
	Session  string
	Continue bool
	// Title, Model and System are what a new session is made with. Model is also
	// given to a session that is opened.
	Title, Model, System string
	// Workspace is the folder that a new session belongs to.
	Workspace string
	// Message is sent first. With Once the program ends after its answer.
	Message string
	Once    bool
	// Attach are files that go with the first message; - is standard input.
	Attach []string
	// Warning is a line about the settings that is shown at the start, if there is one.
	Warning string
	// HistoryFile keeps what was entered; empty: nothing is kept.
	HistoryFile string

	// Stdin, Stdout and Stderr are the process's own if nil.
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	// NoColor shows no colours. Plain reads lines and writes text without escape
	// codes; it is chosen anyway where Stdin or Stdout is no terminal.
	NoColor, Plain bool
}

// ErrFailed is returned when a message got no complete answer, or a command was
// refused, in plain mode. What happened has been told on Stderr.
var ErrFailed = errors.New("not everything succeeded")

// Run chats until the person leaves, the input ends, or ctx does. Everything that
// was said is kept by the server.
func Run(ctx context.Context, o Options) error {
	if o.Stdin == nil {
		o.Stdin = os.Stdin
	}
	if o.Stdout == nil {
		o.Stdout = os.Stdout
	}
	if o.Stderr == nil {
		o.Stderr = os.Stderr
	}
	return run(ctx, o, spawn(o.Server, o.Version))
}

func run(ctx context.Context, o Options, dial dialer) error {
	if o.Once || o.Plain || !terminal(o.Stdin) || !terminal(o.Stdout) || os.Getenv("TERM") == "dumb" {
		return runPlain(ctx, o, dial)
	}
	return runScreen(ctx, o, dial)
}

// terminal reports whether a stream is a terminal.
func terminal(stream any) bool {
	f, ok := stream.(interface{ Fd() uintptr })
	return ok && term.IsTerminal(f.Fd())
}

// begin is the job that opens what the options ask for; the outcome is empty if a
// new session is wanted.
func (o Options) begin() job {
	return func(ctx context.Context, c caller) (outcome, error) {
		out, err := o.enter(ctx, c)
		if err != nil || out.snapshot == nil || o.Model == "" || out.snapshot.Session.Model == o.Model {
			return out, err
		}
		s := state{}
		s.load(out.snapshot, true)
		set, err := prepareModel(&s, o.Model)
		if err != nil {
			return out, err
		}
		changed, err := set(ctx, c)
		if changed.snapshot != nil {
			out.snapshot, out.followed = changed.snapshot, false
		}
		return out, err
	}
}

func (o Options) enter(ctx context.Context, c caller) (outcome, error) {
	var out outcome
	var err error
	switch {
	case o.Session != "":
		out, err = openNamed(ctx, c, o.Session, "")
		if err == nil && out.list != nil {
			ids := make([]string, 0, len(out.sessions))
			for _, x := range out.sessions[:min(len(out.sessions), 5)] {
				ids = append(ids, x.SessionID+" ("+line(x.Title, 40)+")")
			}
			return out, fmt.Errorf("%q fits %d conversations: give the id of one, like %s", o.Session, len(out.sessions), strings.Join(ids, ", "))
		}
	case o.Continue:
		out, err = openLast(ctx, c)
	}
	if out.snapshot == nil {
		out.fresh = &fresh{title: o.Title, model: o.Model, system: o.System}
	}
	return out, err
}
