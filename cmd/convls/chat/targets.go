package chat

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"convls/protocol"
)

// target finds the row of a message for a job.
type target func(ctx context.Context, c caller) (protocol.Row, error)

// found is a target that is at hand.
func found(r protocol.Row) target {
	return func(context.Context, caller) (protocol.Row, error) { return r, nil }
}

// messageNumber reads "#4" or "4".
func messageNumber(word string) (int64, bool) {
	n, err := strconv.ParseInt(strings.TrimPrefix(word, "#"), 10, 64)
	return n, err == nil && n >= 0
}

// message returns the target of message n, which may be further back than what is
// loaded.
func (s *state) message(n int64) (target, error) {
	if err := s.needSession(); err != nil {
		return nil, err
	}
	if r, ok := s.numbered(n); ok {
		return found(r), nil
	}
	id := s.session.SessionID
	for _, r := range s.rows {
		if standsFor(r, n) {
			return coveredMessage(id, r, n), nil
		}
	}
	missing := fmt.Errorf("there is no message #%d on this branch", n)
	if tip, ok := s.last(func(r protocol.Row) bool { return r.Kind.OnChain() }); !ok || n > tip.Depth || s.before == "" {
		return nil, missing
	}
	before := s.before
	return func(ctx context.Context, c caller) (protocol.Row, error) {
		for cursor := before; cursor != ""; {
			t, err := call[protocol.Transcript](ctx, c, protocol.MethodTranscriptGet, protocol.TranscriptParams{SessionID: id, Before: cursor, Limit: maxRows})
			if err != nil {
				return protocol.Row{}, err
			}
			for _, r := range t.Rows {
				switch {
				case r.Kind.OnChain() && r.Depth == n:
					return r, nil
				case standsFor(r, n):
					return coveredMessage(id, r, n)(ctx, c)
				}
			}
			cursor = t.Before
		}
		return protocol.Row{}, missing
	}, nil
}

// standsFor reports whether a row is that of a summary in whose place message n
// would be. A summary's depth is that of the first message it covers.
func standsFor(r protocol.Row, n int64) bool {
	return r.Kind == protocol.KindSummary && r.Fold != nil && n >= r.Depth && n < r.Depth+r.Fold.Count
}

// coveredMessage is the target of a message that a summary stands for: it is out of
// the model's sight, and as much there as any other.
func coveredMessage(session string, summary protocol.Row, n int64) target {
	return func(ctx context.Context, c caller) (protocol.Row, error) {
		ids, err := call[protocol.CompactionCoversResult](ctx, c, protocol.MethodCompactionCovers, protocol.CompactionCoversParams{
			SessionID: session, SummaryID: summary.ID, Limit: 1, Cursor: strconv.FormatInt(n-summary.Depth, 10)})
		if err != nil {
			return protocol.Row{}, err
		}
		node, err := call[protocol.NodeGetResult](ctx, c, protocol.MethodNodeGet, protocol.NodeGetParams{SessionID: session, NodeID: ids.CoversIDs[0]})
		if err != nil {
			return protocol.Row{}, err
		}
		return protocol.Row{Node: node.Node, Preview: line(partsText(node.Content), 200), CoveredBy: summary.ID}, nil
	}
}

func (s *state) tipDepth() int64 {
	r, _ := s.last(func(r protocol.Row) bool { return r.Kind.OnChain() })
	return r.Depth
}

// messageOr returns the target that arg names, or without arg the last row that
// want accepts; none is the error if there is no such row.
func (s *state) messageOr(arg string, want func(protocol.Row) bool, none string) (target, error) {
	if err := s.needSession(); err != nil {
		return nil, err
	}
	if arg != "" {
		n, ok := messageNumber(arg)
		if !ok {
			return nil, fmt.Errorf("%q is no message: write its number, like #4", arg)
		}
		return s.message(n)
	}
	if r, ok := s.last(want); ok {
		return found(r), nil
	}
	return nil, errors.New(none)
}

func isUser(r protocol.Row) bool      { return r.Kind == protocol.KindUser }
func isReply(r protocol.Row) bool     { return r.Kind == protocol.KindAssistant }
func isTurn(r protocol.Row) bool      { return isUser(r) || isReply(r) }
func hasSiblings(r protocol.Row) bool { return r.Siblings != nil && r.Siblings.Count > 1 }

// branch returns the branch that a word names: a name, the number of /branches, or
// the beginning of a tip's id that fits one branch.
func (s *state) branch(word string) (protocol.Branch, error) {
	for _, b := range s.branches {
		if b.Name == word && word != "" || b.Tip == word {
			return b, nil
		}
	}
	if n, err := strconv.Atoi(word); err == nil {
		if n >= 1 && n <= len(s.branches) {
			return s.branches[n-1], nil
		}
		return protocol.Branch{}, fmt.Errorf("there is no branch %d: /branches lists %d", n, len(s.branches))
	}
	return protocol.Branch{}, fmt.Errorf("there is no branch %q: /branches lists them", word)
}

// sessionNamed returns the session that a word names among those listed last: its
// id, its number, or its title.
func (s *state) sessionNamed(word string) (protocol.Session, bool) {
	for _, x := range s.sessions {
		if x.SessionID == word {
			return x, true
		}
	}
	if n, err := strconv.Atoi(word); err == nil && n >= 1 && n <= len(s.sessions) {
		return s.sessions[n-1], true
	}
	for _, x := range s.sessions {
		if strings.EqualFold(x.Title, word) {
			return x, true
		}
	}
	return protocol.Session{}, false
}
