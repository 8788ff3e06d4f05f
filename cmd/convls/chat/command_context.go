package chat

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"convls/protocol"
)

func prepareContext(s *state, arg string) (job, error) {
	if err := s.needSession(); err != nil {
		return nil, err
	}
	if arg != "" && arg != "raw" {
		return nil, errors.New("/context shows what the model reads, /context raw without summaries")
	}
	p := protocol.ContextGetParams{SessionID: s.session.SessionID, Raw: arg == "raw", Limit: 5_000}
	return func(ctx context.Context, c caller) (outcome, error) {
		v, err := call[protocol.ContextView](ctx, c, protocol.MethodContextGet, p)
		if err != nil {
			return outcome{}, err
		}
		return outcome{page: &page{title: "What the model reads", body: contextText(v)}}, nil
	}, nil
}

// contextText is the context view as lines of columns: tokens, why, who, text.
func contextText(v *protocol.ContextView) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s of %s tokens (%.0f %%), counted by %s; %s kept for the answer\n",
		thousands(v.Budget.Used), thousands(v.Budget.Limit), v.Budget.Percent, v.Budget.Source, thousands(v.Budget.OutputReserve))
	for _, o := range v.Omitted {
		fmt.Fprintf(&b, "a summary stands for %s (%s tokens)\n", count(o.Count, "message"), thousands(o.Tokens))
	}
	fmt.Fprintf(&b, "\n%8s  %-9s %-9s %s\n", "tokens", "why", "role", "text")
	for _, e := range v.Entries {
		text := line(e.Text, 160)
		if text == "" {
			text = "(empty)"
		}
		fmt.Fprintf(&b, "%8s  %-9s %-9s %s\n", thousands(e.Tokens), e.Why, e.Role, text)
	}
	if left := v.Total - len(v.Entries); left > 0 {
		fmt.Fprintf(&b, "\nand %s more\n", count(int64(left), "entry"))
	}
	return b.String()
}

func prepareSearch(_ *state, arg string) (job, error) {
	if arg == "" {
		return nil, errors.New("which words? /search <words>")
	}
	return func(ctx context.Context, c caller) (outcome, error) {
		r, err := call[protocol.SearchResult](ctx, c, protocol.MethodSessionSearch, protocol.SearchParams{Query: arg, Limit: 50})
		if err != nil {
			return outcome{}, err
		}
		l := &list{title: "Messages with " + arg, empty: "no message has all of these words"}
		if r.Incomplete {
			l.title += " (the first ones; add words for fewer)"
		}
		for i, h := range r.Hits {
			title := h.Title
			if title == "" {
				title = "untitled"
			}
			l.items = append(l.items, item{title: fmt.Sprintf("%d  %s", i+1, title), about: string(h.Kind) + " · " + h.Snippet, input: fmt.Sprintf("/show %d", i+1)})
		}
		return outcome{list: l, hits: append([]protocol.SearchHit{}, r.Hits...)}, nil
	}, nil
}

// prepareShow goes to a hit: to its session, and if it is on another branch, to
// that.
func prepareShow(s *state, arg string) (job, error) {
	n, err := strconv.Atoi(arg)
	if err != nil || n < 1 || n > len(s.hits) {
		return nil, fmt.Errorf("there is no hit %q: /search finds %d", arg, len(s.hits))
	}
	hit, before := s.hits[n-1], s.session.SessionID
	return func(ctx context.Context, c caller) (outcome, error) {
		var o outcome
		_, err := call[protocol.Transcript](ctx, c, protocol.MethodTranscriptGet, protocol.TranscriptParams{SessionID: hit.SessionID, Around: hit.NodeID, Limit: 1})
		if protocol.CodeOf(err) == protocol.CodeUnknownNode && len(hit.Tips) > 0 {
			_, err = call[protocol.HeadResult](ctx, c, protocol.MethodBranchCheckout, protocol.CheckoutParams{Mutation: mutation(), SessionID: hit.SessionID, NodeID: hit.Tips[0]})
			o.say = "it is on another branch, which is checked out now"
		}
		if err != nil {
			return outcome{}, err
		}
		entered, err := enter(ctx, c, hit.SessionID, before)
		if err != nil {
			return outcome{}, err
		}
		o.snapshot, o.followed, o.focus = entered.snapshot, true, hit.NodeID
		o.older, err = back(ctx, c, o.snapshot, hit.NodeID)
		return o, err
	}, nil
}

// back reads the rows before a snapshot until the one of a node is there; nil if
// it is there already.
func back(ctx context.Context, c caller, snap *protocol.SessionOpenResult, nodeID string) (*protocol.Transcript, error) {
	has := func(rows []protocol.Row) bool {
		for _, r := range rows {
			if r.ID == nodeID {
				return true
			}
		}
		return false
	}
	if has(snap.Transcript.Rows) || snap.Transcript.Before == "" {
		return nil, nil
	}
	all := &protocol.Transcript{Before: snap.Transcript.Before}
	for all.Before != "" && !has(all.Rows) {
		t, err := call[protocol.Transcript](ctx, c, protocol.MethodTranscriptGet, protocol.TranscriptParams{SessionID: snap.Session.SessionID, Before: all.Before, Limit: maxRows})
		if err != nil {
			return nil, err
		}
		all.Rows, all.Before = append(t.Rows, all.Rows...), t.Before
	}
	return all, nil
}
