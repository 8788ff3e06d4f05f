package chat

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"convls/projection/drawing"
	"convls/protocol"
)

// graphRows is how many rows /graph shows: more than one reads in an overlay.
const graphRows = 500

// plainGraphWidth is how wide lines of a graph are where there is no screen.
const plainGraphWidth = 120

func prepareGraph(s *state, arg string) (job, error) {
	if err := s.needSession(); err != nil {
		return nil, err
	}
	p := protocol.GraphGetParams{SessionID: s.session.SessionID, Limit: graphRows, Covers: "count"}
	word, rest := firstWord(arg)
	expand := word == "expand"
	if expand {
		word = rest
	} else {
		word = arg
	}
	head := found(protocol.Row{})
	switch {
	case word == "":
	case strings.HasPrefix(word, "#"):
		var err error
		if head, err = s.messageOr(word, nil, ""); err != nil {
			return nil, err
		}
	default:
		b, err := s.branch(word)
		if err != nil {
			return nil, err
		}
		head = found(protocol.Row{Node: protocol.Node{ID: b.Tip}})
	}
	return func(ctx context.Context, c caller) (outcome, error) {
		r, err := head(ctx, c)
		if err != nil {
			return outcome{}, err
		}
		p.Head = r.ID
		v, err := call[protocol.GraphView](ctx, c, protocol.MethodGraphGet, p)
		if err == nil && expand {
			v, err = expanded(ctx, c, p, v)
		}
		if err != nil {
			return outcome{}, err
		}
		var plain strings.Builder
		if err := drawing.Text(&plain, v, drawing.Options{Width: plainGraphWidth}); err != nil {
			return outcome{}, err
		}
		return outcome{page: &page{title: graphTitle(v), graph: v, plain: plain.String()}}, nil
	}, nil
}

// expanded asks for the graph once more, with what is folded in it.
func expanded(ctx context.Context, c caller, p protocol.GraphGetParams, v *protocol.GraphView) (*protocol.GraphView, error) {
	for _, r := range v.Rows {
		if r.Fold != nil && r.Fold.State == "folded" {
			p.Expanded = append(p.Expanded, r.ID)
			p.Around = r.ID
		}
	}
	if p.Expanded == nil {
		return nil, errors.New("no summary stands for messages here: there is nothing to expand")
	}
	return call[protocol.GraphView](ctx, c, protocol.MethodGraphGet, p)
}

func graphTitle(v *protocol.GraphView) string {
	title := fmt.Sprintf("Graph, %s", count(v.TotalRows, "row"))
	if v.Damage != "" {
		title += ", something can not be read: convls doctor --check"
	}
	return title
}

// graphLines draws the graph of a page as wide as the screen, and tells which line
// is HEAD's; 0 if that is not there.
func graphLines(v *protocol.GraphView, m *screen) (lines []string, head int) {
	var b strings.Builder
	_ = drawing.Text(&b, v, drawing.Options{Width: max(m.width-2, 1), Color: !m.theme.noColor}) // into memory
	for i, r := range v.Rows {
		if r.IsHead {
			head = i
		}
	}
	for l := range strings.SplitSeq(strings.TrimSuffix(b.String(), "\n"), "\n") {
		lines = append(lines, " "+l)
	}
	return lines, head
}
