package chat

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"

	"convls/client"
	"convls/protocol"
)

// plain is the chat without a screen: lines in, text out.
type plain struct {
	state
	o    Options
	dial dialer
	link *link
	// prompts says that a person types the lines; onTerminal that a person reads the
	// answers.
	prompts, onTerminal bool
	interrupts          chan os.Signal

	// wanted are the replies that are waited for, printed how many bytes of each
	// answer are out already.
	wanted   []string
	printed  map[string]int
	ended    map[string]ending
	question *question
	// stale says that the snapshot has to be taken anew before the next command.
	stale  bool
	failed bool
}

// errLeave ends the loop without being a failure.
var errLeave = errors.New("leave")

func runPlain(ctx context.Context, o Options, dial dialer) (err error) {
	p := &plain{o: o, dial: dial, prompts: terminal(o.Stdin) && terminal(o.Stdout) && !o.Once, onTerminal: terminal(o.Stdout), printed: map[string]int{}, ended: map[string]ending{},
		interrupts: make(chan os.Signal, 1)}
	p.workspace = o.Workspace
	signal.Notify(p.interrupts, os.Interrupt)
	defer signal.Stop(p.interrupts)
	if o.Warning != "" {
		fmt.Fprintln(o.Stderr, "warning:", o.Warning)
	}
	if p.link, err = dial(ctx); err != nil {
		return errors.New(explain(err))
	}
	defer func() { err = errors.Join(err, p.link.end()) }()
	p.clientID = p.link.clientID
	out, err := o.begin()(ctx, p.link)
	if err != nil {
		return errors.New(explain(err))
	}
	if out.say != "" {
		fmt.Fprintln(o.Stderr, out.say)
		out.say = ""
	}
	p.show(ctx, out)
	for _, path := range o.Attach {
		a, err := p.attach(path)
		if err != nil {
			return err
		}
		p.attached = append(p.attached, a)
	}
	if o.Message != "" || o.Once {
		err := p.submit(ctx, o.Message)
		if errors.Is(err, errLeave) {
			err = nil
		}
		if err != nil || o.Once {
			return err
		}
	}
	return p.loop(ctx)
}

// attach reads a file, or standard input, for the first message.
func (p *plain) attach(path string) (attachment, error) {
	if path != "-" {
		return attachFile(expandHome(path))
	}
	data, err := io.ReadAll(io.LimitReader(p.o.Stdin, maxAttached+1))
	switch {
	case err != nil:
		return attachment{}, fmt.Errorf("read standard input: %w", err)
	case len(data) > maxAttached:
		return attachment{}, fmt.Errorf("standard input has more than %s bytes", thousands(maxAttached))
	}
	return attachData("standard input", "", data)
}

// loop answers line after line. A line that fails does not keep the next from its
// turn; the result tells that one failed.
func (p *plain) loop(ctx context.Context) error {
	lines := readLines(ctx, p.o.Stdin)
	for {
		p.prompt()
		select {
		case line, ok := <-lines:
			if !ok {
				return p.end()
			}
			if err := p.line(ctx, line); errors.Is(err, errLeave) {
				return p.end()
			} else if err != nil {
				p.failed = true
				fmt.Fprintln(p.o.Stderr, "error:", err)
			}
		case n := <-p.link.notices:
			p.notice(ctx, n)
		case <-p.interrupts:
			return p.end()
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (p *plain) prompt() {
	if !p.prompts {
		return
	}
	switch {
	case p.question != nil:
		fmt.Fprint(p.o.Stdout, p.question.text, " [y/N] ")
	case p.editing != nil:
		fmt.Fprintf(p.o.Stdout, "edit #%d> ", p.editing.number)
	default:
		fmt.Fprint(p.o.Stdout, "> ")
	}
}

// end is the result of the lines. A person who typed them saw what failed.
func (p *plain) end() error {
	if p.failed && !p.prompts {
		return ErrFailed
	}
	return nil
}

// input is a line of standard input, or why there are no more.
type input struct {
	text string
	err  error
}

// readLines reads lines until the input or ctx ends. A read that blocks can not be
// taken back, so that at the end of ctx the goroutine lasts until the next line.
func readLines(ctx context.Context, r io.Reader) <-chan input {
	lines := make(chan input)
	go func() {
		defer close(lines)
		b := bufio.NewReader(r)
		for {
			text, err := b.ReadString('\n')
			if text != "" || err != nil && !errors.Is(err, io.EOF) {
				in := input{text: strings.TrimRight(text, "\r\n")}
				if text == "" {
					in.err = fmt.Errorf("read standard input: %w", err)
				}
				select {
				case lines <- in:
				case <-ctx.Done():
					return
				}
			}
			if err != nil {
				return
			}
		}
	}()
	return lines
}

func (p *plain) line(ctx context.Context, in input) error {
	if in.err != nil {
		return in.err
	}
	if q := p.question; q != nil {
		p.question = nil
		if answer := strings.ToLower(strings.TrimSpace(in.text)); answer != "y" && answer != "yes" {
			fmt.Fprintln(p.o.Stdout, "nothing was changed")
			return nil
		}
		return p.carryOut(ctx, q.yes)
	}
	if strings.TrimSpace(in.text) == "" {
		return nil
	}
	return p.submit(ctx, in.text)
}

// submit carries a line out and waits for the answer.
func (p *plain) submit(ctx context.Context, text string) error {
	if p.stale && p.exists() {
		if snap, err := open(ctx, p.link, p.session.SessionID, false, len(p.rows)); err == nil {
			p.effects(ctx, p.load(snap, false))
		}
	}
	p.stale = false
	do, err := prepareInput(&p.state, text)
	if err != nil {
		return err
	}
	if waits(text) {
		do = p.stoppable(do)
	}
	return p.carryOut(ctx, do)
}

// stoppable is a job that an interrupt ends.
func (p *plain) stoppable(do job) job {
	return func(ctx context.Context, c caller) (outcome, error) {
		ctx, stop := context.WithCancel(ctx)
		defer stop()
		over, watched := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(watched)
			select {
			case <-p.interrupts:
				stop()
			case <-over:
			}
		}()
		o, err := do(ctx, c)
		close(over)
		<-watched
		return o, err
	}
}

func (p *plain) carryOut(ctx context.Context, do job) error {
	o, err := do(ctx, p.link)
	if q := o.question; q != nil && !p.prompts {
		// The next line is another command, and no answer.
		return fmt.Errorf("%s Nothing was changed, there is nobody to ask: %s does it", p.safe(q.text), q.again)
	}
	p.show(ctx, o)
	switch {
	case err != nil:
		return errors.New(explain(err))
	case o.quit:
		return errLeave
	case o.restart:
		return p.restart(ctx)
	}
	return p.await(ctx, o.turns)
}

// await prints the answers as they come, until all are complete.
func (p *plain) await(ctx context.Context, turns []string) error {
	defer func() { p.wanted = nil }()
	var errs []error
	for i, id := range turns {
		p.wanted = turns[i : i+1]
		if len(turns) > 1 {
			fmt.Fprintf(p.o.Stdout, "[answer %d of %d]\n", i+1, len(turns))
			p.print(id)
		}
		for !p.over(id) {
			select {
			case n := <-p.link.notices:
				p.notice(ctx, n)
			case <-p.link.Done():
				if !p.drain(ctx) {
					p.newline(id)
					return errors.New(explain(client.ErrClosed))
				}
			case <-p.interrupts:
				p.stop(ctx, id)
				if !p.prompts {
					return errors.New("interrupted: the answer was stopped")
				}
			case <-ctx.Done():
				p.stop(context.WithoutCancel(ctx), id)
				return ctx.Err()
			}
		}
		p.print(id)
		p.newline(id)
		if err := endingError(p.ended[id]); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// over reports whether a turn has ended. The event can be lost with a reset; the
// snapshot after it tells then.
func (p *plain) over(id string) bool {
	if _, ok := p.ended[id]; ok {
		return true
	}
	for _, q := range p.queue {
		if q.ReplyID == id && q.Held {
			p.ended[id] = ending{replyID: id, status: protocol.StatusFailed, err: &protocol.NodeError{
				Message: "the message waits, because the answer before it failed", Hint: "/cancel takes it out, /retry answers the one before again"}}
			return true
		}
	}
	i := p.index(id)
	if i < 0 || !p.rows[i].Status.Final() || !p.stale {
		return false
	}
	p.ended[id] = ending{replyID: id, nodeID: id, status: p.rows[i].Status, err: p.rows[i].Error}
	return true
}

// drain takes what is left of the notices of a connection that has ended.
func (p *plain) drain(ctx context.Context) (some bool) {
	for {
		select {
		case n := <-p.link.notices:
			some = true
			p.notice(ctx, n)
		default:
			return some
		}
	}
}

func (p *plain) stop(ctx context.Context, id string) {
	ctx, cancelWait := context.WithTimeout(ctx, closeGrace)
	defer cancelWait()
	_, _ = cancel(p.session.SessionID, id, "")(ctx, p.link)
}

func (p *plain) restart(ctx context.Context) error {
	_ = p.link.end()
	l, err := p.dial(ctx)
	if err != nil {
		return errors.New(explain(err))
	}
	p.link, p.clientID = l, l.clientID
	if !p.exists() {
		return nil
	}
	o, err := enter(ctx, l, p.session.SessionID, "")
	if err != nil {
		return errors.New(explain(err))
	}
	o.say = "the server is running again"
	p.show(ctx, o)
	return nil
}

// notice takes in what the server sent.
func (p *plain) notice(ctx context.Context, n any) {
	switch n := n.(type) {
	case protocol.Event:
		p.effects(ctx, p.event(n))
	case protocol.Delta:
		p.effects(ctx, p.delta(n))
		p.print(n.NodeID)
	case protocol.ResetNotification:
		p.order.lost()
		if n.SessionID == p.session.SessionID && p.exists() {
			if snap, err := open(ctx, p.link, n.SessionID, false, len(p.rows)); err == nil {
				p.stale = true
				p.effects(ctx, p.load(snap, false))
			}
		}
	}
}

func (p *plain) effects(ctx context.Context, fx effects) {
	for _, id := range fx.catchUp {
		n, err := call[protocol.Node](ctx, p.link, protocol.MethodNodeGet, protocol.NodeGetParams{SessionID: p.session.SessionID, NodeID: id})
		if err == nil {
			// Another gap shows at the next delta.
			p.caughtUp(n)
			p.print(id)
		}
	}
	for _, e := range fx.ended {
		p.ended[e.replyID] = e
	}
	if fx.refresh {
		p.stale = true
	}
	for _, n := range fx.say {
		switch {
		case p.prompts:
			fmt.Fprintln(p.o.Stdout, p.safe(n.text))
		case n.compaction:
			fmt.Fprintln(p.o.Stderr, p.safe(n.text))
		}
	}
	if len(p.wanted) > 0 {
		for _, q := range p.queue {
			if fx.refresh && q.ReplyID == p.wanted[0] {
				p.requeue(ctx)
				break
			}
		}
	}
}

// requeue looks whether the message that is waited for still waits.
func (p *plain) requeue(ctx context.Context) {
	if snap, err := open(ctx, p.link, p.session.SessionID, false, len(p.rows)); err == nil {
		p.load(snap, false)
	}
}
