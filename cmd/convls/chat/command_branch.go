package chat

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"convls/protocol"
)

// look is a snapshot that will be taken of the session as it is shown.
type look struct {
	sessionID string
	rows      int
}

func (s *state) look() look { return look{s.session.SessionID, len(s.rows)} }

// after makes a job whose end is followed by a new snapshot, so that the screen is
// right before the events are in.
func (l look) after(do job) job {
	return func(ctx context.Context, c caller) (outcome, error) {
		o, err := do(ctx, c)
		if err != nil {
			return o, err
		}
		// The move is done: if only the look at it fails, events will bring it.
		if snap, err := open(ctx, c, l.sessionID, false, l.rows); err == nil {
			o.snapshot, o.head = snap, ""
		}
		return o, nil
	}
}

func prepareFork(s *state, arg string) (job, error) {
	if err := s.needSession(); err != nil {
		return nil, err
	}
	at := found(protocol.Row{Node: protocol.Node{ID: s.session.Head, Depth: s.tipDepth()}})
	name := arg
	if word, rest := firstWord(arg); strings.HasPrefix(word, "#") {
		var err error
		if at, err = s.messageOr(word, nil, ""); err != nil {
			return nil, err
		}
		name = rest
	}
	if err := checkBranchName(name); err != nil {
		return nil, err
	}
	p := protocol.ForkParams{Mutation: mutation(), SessionID: s.session.SessionID, Name: name}
	return s.look().after(func(ctx context.Context, c caller) (outcome, error) {
		r, err := at(ctx, c)
		if err != nil {
			return outcome{}, err
		}
		p.NodeID = r.ID
		if _, err := call[protocol.ForkResult](ctx, c, protocol.MethodBranchFork, p); err != nil {
			return outcome{}, err
		}
		text := fmt.Sprintf("forked at #%d: the next message begins a branch", r.Depth)
		if name != "" {
			text = fmt.Sprintf("forked at #%d: the next message goes to the branch %s", r.Depth, name)
		}
		return outcome{say: text}, nil
	}), nil
}

func prepareCheckout(s *state, arg string) (job, error) {
	if err := s.needSession(); err != nil {
		return nil, err
	}
	p := protocol.CheckoutParams{Mutation: mutation(), SessionID: s.session.SessionID}
	at := target(nil)
	b, err := s.branch(arg)
	switch {
	case arg == "":
		return prepareBranches(s, "")
	case err == nil && b.Name != "":
		p.Branch = b.Name
	case err == nil:
		p.NodeID = b.Tip
	case strings.HasPrefix(arg, "#"):
		if at, err = s.messageOr(arg, nil, ""); err != nil {
			return nil, err
		}
	default:
		return nil, err
	}
	return s.look().after(func(ctx context.Context, c caller) (outcome, error) {
		if at != nil {
			r, err := at(ctx, c)
			if err != nil {
				return outcome{}, err
			}
			p.NodeID = r.ID
		}
		r, err := call[protocol.HeadResult](ctx, c, protocol.MethodBranchCheckout, p)
		if err != nil {
			return outcome{}, err
		}
		text := "checked out " + arg
		if r.Branch != "" {
			text = "on the branch " + r.Branch
		}
		return outcome{say: text}, nil
	}), nil
}

func prepareBranches(s *state, _ string) (job, error) {
	if err := s.needSession(); err != nil {
		return nil, err
	}
	id := s.session.SessionID
	return func(ctx context.Context, c caller) (outcome, error) {
		r, err := call[protocol.BranchListResult](ctx, c, protocol.MethodBranchList, protocol.SessionParams{SessionID: id})
		if err != nil {
			return outcome{}, err
		}
		return outcome{list: branchList(r.Branches, time.Now())}, nil
	}, nil
}

func branchList(branches []protocol.Branch, now time.Time) *list {
	l := &list{title: "Branches", empty: "there is no branch yet"}
	for i, b := range branches {
		name, rest := b.Name, b.Preview
		about := []string{count(b.Depth, "message"), ago(b.UpdatedAt, now)}
		if name == "" {
			name, rest = b.Preview, ""
			if name == "" {
				name = "(empty)"
			}
			about = append([]string{"unnamed"}, about...)
		}
		if b.Renders == "compacted" {
			about = append(about, "compacted")
		}
		if b.Usage != nil && b.Usage.CostUSD > 0 {
			about = append(about, dollars(b.Usage.CostUSD))
		}
		if rest != "" {
			about = append(about, rest)
		}
		input := "/checkout " + b.Name
		if b.Name == "" {
			input = "/checkout " + b.Tip
		}
		l.items = append(l.items, item{title: fmt.Sprintf("%d  %s", i+1, name), about: strings.Join(about, " · "), input: input, current: b.IsHead})
	}
	return l
}

func prepareSibling(step int) func(*state, string) (job, error) {
	return func(s *state, arg string) (job, error) {
		at, err := s.messageOr(arg, hasSiblings, "no message here has another version")
		if err != nil {
			return nil, err
		}
		p := protocol.CheckoutParams{Mutation: mutation(), SessionID: s.session.SessionID, Descend: true}
		return s.look().after(func(ctx context.Context, c caller) (outcome, error) {
			r, err := at(ctx, c)
			if err != nil {
				return outcome{}, err
			}
			to, err := sibling(r, step)
			if err != nil {
				return outcome{}, err
			}
			p.NodeID = to
			if _, err := call[protocol.HeadResult](ctx, c, protocol.MethodBranchCheckout, p); err != nil {
				return outcome{}, err
			}
			return outcome{say: fmt.Sprintf("version %d of %d of #%d", r.Siblings.Index+step, r.Siblings.Count, r.Depth)}, nil
		}), nil
	}
}

// sibling returns the version before or after r.
func sibling(r protocol.Row, step int) (string, error) {
	if !hasSiblings(r) {
		return "", fmt.Errorf("#%d has no other version", r.Depth)
	}
	to, which := r.Siblings.Next, "last"
	if step < 0 {
		to, which = r.Siblings.Prev, "first"
	}
	if to == nil {
		return "", fmt.Errorf("this is the %s of %d versions of #%d", which, r.Siblings.Count, r.Depth)
	}
	return to.ID, nil
}

func prepareRewind(s *state, arg string) (job, error) {
	at, err := s.messageOr(arg, isUser, "there is no message of yours to take back")
	if err != nil {
		return nil, err
	}
	p := protocol.RewindParams{Mutation: mutation(), SessionID: s.session.SessionID}
	old := s.branchHint()
	return s.look().after(func(ctx context.Context, c caller) (outcome, error) {
		r, err := at(ctx, c)
		if err != nil {
			return outcome{}, err
		}
		if !isUser(r) {
			return outcome{}, fmt.Errorf("#%d is not a message of yours: rewind goes to before one", r.Depth)
		}
		p.NodeID = r.ID
		res, err := call[protocol.RewindResult](ctx, c, protocol.MethodBranchRewind, p)
		if err != nil {
			return outcome{}, err
		}
		return outcome{draft: &draft{text: partsText(res.Content)}, say: fmt.Sprintf("back to before #%d; nothing is deleted, /checkout %s returns", r.Depth, old)}, nil
	}), nil
}

// branchHint is how the present branch can be checked out later.
func (s *state) branchHint() string {
	if s.session.Branch != "" {
		return s.session.Branch
	}
	return s.session.Head
}

// checkBranchName refuses names that other commands would take for a number of
// /branches, or of a message. The server takes them: they mean numbers here alone.
func checkBranchName(name string) error {
	if _, err := strconv.Atoi(name); err == nil || strings.HasPrefix(name, "#") {
		return fmt.Errorf("%q can not be the name of a branch: it is how a branch or a message is told by its number", name)
	}
	return nil
}

func prepareName(s *state, arg string) (job, error) {
	if err := s.needSession(); err != nil {
		return nil, err
	}
	if arg == "" {
		return nil, errors.New("which name? /name <name>")
	}
	if err := checkBranchName(arg); err != nil {
		return nil, err
	}
	p := protocol.BranchRenameParams{Mutation: mutation(), SessionID: s.session.SessionID, Name: arg, Branch: s.session.Branch}
	if p.Branch == "" {
		p.Tip = s.session.Head
	}
	return s.look().after(func(ctx context.Context, c caller) (outcome, error) {
		r, err := call[protocol.BranchResult](ctx, c, protocol.MethodBranchRename, p)
		if err != nil {
			return outcome{}, err
		}
		return outcome{say: "this branch is " + r.Branch.Name + " now"}, nil
	}), nil
}

func prepareDelete(s *state, arg string) (job, error) {
	if err := s.needSession(); err != nil {
		return nil, err
	}
	p := protocol.BranchDeleteParams{Mutation: mutation(), SessionID: s.session.SessionID, Branch: s.session.Branch}
	if p.Branch == "" {
		p.Tip = s.session.Head
	}
	if arg != "" {
		b, err := s.branch(arg)
		if err != nil {
			return nil, err
		}
		p.Branch, p.Tip = b.Name, ""
		if b.Name == "" {
			p.Tip = b.Tip
		}
	}
	name := p.Branch
	if name == "" {
		name = "this unnamed branch"
		if arg != "" {
			name = "the unnamed branch " + arg
		}
	}
	look := s.look()
	return func(ctx context.Context, c caller) (outcome, error) {
		_, err := call[protocol.BranchDeleteResult](ctx, c, protocol.MethodBranchDelete, p)
		refused, ok := errors.AsType[*protocol.Error](err)
		if err != nil && (!ok || refused.Code != protocol.CodeConfirmRequired) {
			return outcome{}, err
		}
		text := fmt.Sprintf("Take the name %s away? No message goes, only the name.", name)
		if ok && refused.Data.Count > 0 {
			text = fmt.Sprintf("Delete %s for good: %s that no other branch shares?", name, count(refused.Data.Count, "node"))
		}
		confirmed := p
		confirmed.Mutation = mutation()
		confirmed.Confirm, confirmed.Cancel = true, true
		return outcome{question: &question{
			text: text, again: strings.TrimRight("/delete --yes "+arg, " "),
			yes: look.after(func(ctx context.Context, c caller) (outcome, error) {
				r, err := call[protocol.BranchDeleteResult](ctx, c, protocol.MethodBranchDelete, confirmed)
				if err != nil {
					return outcome{}, err
				}
				if r.Removed == 0 {
					return outcome{say: "the name " + name + " is gone; the messages are as they were"}, nil
				}
				return outcome{say: "deleted " + count(r.Removed, "node")}, nil
			}),
		}}, nil
	}, nil
}

// ago tells how long ago something was.
func ago(t, now time.Time) string {
	switch d := now.Sub(t); {
	case t.IsZero():
		return ""
	case d < time.Minute:
		return "just now"
	case d < time.Hour:
		return strconv.Itoa(int(d.Minutes())) + " min ago"
	case d < 24*time.Hour:
		return strconv.Itoa(int(d.Hours())) + " h ago"
	case d < 14*24*time.Hour:
		return count(int64(d.Hours()/24), "day") + " ago"
	default:
		return t.Local().Format(time.DateOnly)
	}
}
