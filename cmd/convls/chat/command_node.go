package chat

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"convls/protocol"
)

func preparePin(pin bool) func(*state, string) (job, error) {
	method, text := protocol.MethodNodePin, "#%d is pinned: a compaction carries it on word for word"
	if !pin {
		method, text = protocol.MethodNodeUnpin, "#%d is not pinned any more"
	}
	return func(s *state, arg string) (job, error) {
		want, none := isTurn, "there is nothing to pin yet: write a message first"
		if !pin {
			want, none = func(r protocol.Row) bool { return isTurn(r) && r.Pinned }, "no message in view is pinned: write its number, like #4"
		}
		at, err := s.messageOr(arg, want, none)
		if err != nil {
			return nil, err
		}
		p := protocol.NodeParams{Mutation: mutation(), SessionID: s.session.SessionID}
		return s.look().after(func(ctx context.Context, c caller) (outcome, error) {
			r, err := at(ctx, c)
			if err != nil {
				return outcome{}, err
			}
			p.NodeID = r.ID
			if _, err := call[protocol.NodeResult](ctx, c, method, p); err != nil {
				return outcome{}, err
			}
			return outcome{say: fmt.Sprintf(text, r.Depth)}, nil
		}), nil
	}
}

func prepareRedact(s *state, arg string) (job, error) {
	if arg == "" {
		return nil, errors.New("which message? /redact <#n>")
	}
	at, err := s.messageOr(arg, nil, "")
	if err != nil {
		return nil, err
	}
	p := protocol.RedactParams{Mutation: mutation(), SessionID: s.session.SessionID, Confirm: true}
	look := s.look()
	return func(ctx context.Context, c caller) (outcome, error) {
		r, err := at(ctx, c)
		switch {
		case err != nil:
			return outcome{}, err
		case r.Redacted:
			return outcome{}, fmt.Errorf("#%d is redacted already", r.Depth)
		case !r.Status.Final():
			return outcome{}, fmt.Errorf("#%d is still being written: /cancel it first", r.Depth)
		}
		p.NodeID = r.ID
		return outcome{question: &question{
			text:  fmt.Sprintf("Erase what #%d says for good, on every branch that holds it? %q", r.Depth, line(r.Preview, 60)),
			again: "/redact --yes " + arg,
			yes: look.after(func(ctx context.Context, c caller) (outcome, error) {
				if _, err := call[protocol.NodeResult](ctx, c, protocol.MethodNodeRedact, p); err != nil {
					return outcome{}, err
				}
				return outcome{say: fmt.Sprintf("#%d is redacted; its place in the conversation stays", r.Depth)}, nil
			}),
		}}, nil
	}, nil
}

// place returns the node that a word of /compare names: a message, or a branch.
func (s *state) place(word string) (target, error) {
	if strings.HasPrefix(word, "#") {
		return s.messageOr(word, nil, "")
	}
	b, err := s.branch(word)
	return found(protocol.Row{Node: protocol.Node{ID: b.Tip}}), err
}

func prepareCompare(s *state, arg string) (job, error) {
	if err := s.needSession(); err != nil {
		return nil, err
	}
	words := strings.Fields(arg)
	if _, err := s.branch(arg); err == nil {
		words = []string{arg} // a name may have blanks
	}
	if len(words) == 0 || len(words) > 2 {
		return nil, errors.New("compare what? /compare <a> [b]: two branches, by name or number of /branches, or messages like #4; without b it is where you are")
	}
	a, err := s.place(words[0])
	if err != nil {
		return nil, err
	}
	b, other := found(protocol.Row{Node: protocol.Node{ID: s.session.Head}}), "where you are"
	if len(words) == 2 {
		if b, err = s.place(words[1]); err != nil {
			return nil, err
		}
		other = words[1]
	}
	p := protocol.CompareParams{SessionID: s.session.SessionID}
	return func(ctx context.Context, c caller) (outcome, error) {
		ra, errA := a(ctx, c)
		rb, errB := b(ctx, c)
		if err := errors.Join(errA, errB); err != nil {
			return outcome{}, err
		}
		p.AID, p.BID = ra.ID, rb.ID
		r, err := call[protocol.CompareResult](ctx, c, protocol.MethodBranchCompare, p)
		if err != nil {
			return outcome{}, err
		}
		return outcome{page: &page{title: "Compare " + words[0] + " and " + other, body: sideText(words[0], r.A) + "\n" + sideText(other, r.B)}}, nil
	}, nil
}

// sideText is what one side added, a line a message.
func sideText(name string, side protocol.CompareSide) string {
	var b strings.Builder
	about := []string{"adds " + count(side.Count, "message"), thousands(side.Tokens) + " tokens"}
	if side.Usage.CostUSD > 0 {
		about = append(about, dollars(side.Usage.CostUSD))
	}
	fmt.Fprintf(&b, "%s %s\n", name, strings.Join(about, ", "))
	for _, r := range side.Rows {
		fmt.Fprintf(&b, "  #%-4d %-9s %s\n", r.Depth, r.Role, line(r.Preview, 120))
	}
	if left := side.Count - int64(len(side.Rows)); left > 0 {
		fmt.Fprintf(&b, "  and %s more\n", count(left, "message"))
	}
	return b.String()
}
