package shapes

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"convls/protocol"
)

// ParseView reads a view that is written a line a row:
//
//	ID KIND SLOT.LANE [<PREDECESSOR] [WORD...] [| TEXT]
//
// An edge is drawn from the predecessor, if that is a row. Other edges, and those
// that are more than a line down, have lines of their own, with ends as SLOT.LANE and
// bends as SLOT:FROM>TO:
//
//	above
//	below
//	passing COUNT
//	edge FROM STYLE TO SLOT.LANE SLOT.LANE [BEND...]
func ParseView(text string) (*protocol.GraphView, error) {
	v := &protocol.GraphView{Revision: 7, Changed: protocol.GraphAll}
	seen := map[string]protocol.GraphRow{}
	for l := range strings.Lines(text) {
		head, preview, _ := strings.Cut(strings.TrimRight(l, "\n"), " |")
		preview = strings.TrimPrefix(preview, " ")
		f := strings.Fields(head)
		switch {
		case len(f) == 0:
		case f[0] == "above":
			v.Before = "before"
		case f[0] == "below":
			v.After = "after"
		case f[0] == "passing":
			if _, err := fmt.Sscan(f[1], &v.Passing); err != nil {
				return nil, err
			}
		case f[0] == "edge":
			e, err := parseEdge(f)
			if err != nil {
				return nil, err
			}
			v.Edges = append(v.Edges, e)
		default:
			r, err := parseRow(f)
			if err != nil {
				return nil, err
			}
			r.Preview = preview
			if from, ok := seen[r.Predecessor]; ok {
				v.Edges = append(v.Edges, protocol.GraphEdge{From: from.ID, To: r.ID, Style: protocol.EdgeChain,
					FromRow: from.Row, FromLane: from.Lane, ToRow: r.Row, ToLane: r.Lane})
			}
			seen[r.ID] = r
			if r.IsHead {
				v.Head = r.ID
			}
			v.Rows = append(v.Rows, r)
			v.Lanes = max(v.Lanes, r.Lane+1)
		}
	}
	v.TotalRows = int64(len(v.Rows))
	return v, nil
}

func parsePlace(s string) (row int64, lane int, err error) {
	if _, err = fmt.Sscanf(s, "%d.%d", &row, &lane); err != nil {
		err = fmt.Errorf("%q is no SLOT.LANE: %w", s, err)
	}
	return row, lane, err
}

func parseEdge(f []string) (e protocol.GraphEdge, err error) {
	if len(f) < 6 {
		return e, fmt.Errorf("%q: edge FROM STYLE TO SLOT.LANE SLOT.LANE", f)
	}
	e = protocol.GraphEdge{From: f[1], Style: protocol.EdgeStyle(f[2]), To: f[3]}
	if e.FromRow, e.FromLane, err = parsePlace(f[4]); err != nil {
		return e, err
	}
	if e.ToRow, e.ToLane, err = parsePlace(f[5]); err != nil {
		return e, err
	}
	for _, s := range f[6:] {
		var b protocol.GraphBend
		if _, err := fmt.Sscanf(s, "%d:%d>%d", &b.Row, &b.From, &b.To); err != nil {
			return e, fmt.Errorf("%q is no bend: %w", s, err)
		}
		e.Bends = append(e.Bends, b)
	}
	return e, nil
}

func parseRow(f []string) (r protocol.GraphRow, err error) {
	if len(f) < 3 {
		return r, fmt.Errorf("%q: ID KIND SLOT.LANE", f)
	}
	r = protocol.GraphRow{ID: f[0], Kind: protocol.Kind(f[1]), Status: protocol.StatusSealed, InContext: true, OnHead: true,
		CreatedAt: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}
	r.Role = r.Kind.Role()
	if r.Row, r.Lane, err = parsePlace(f[2]); err != nil {
		return r, err
	}
	r.Seq = r.Row
	for _, word := range f[3:] {
		if err := setWord(&r, word); err != nil {
			return r, err
		}
	}
	return r, nil
}

func setWord(r *protocol.GraphRow, word string) (err error) {
	if p, ok := strings.CutPrefix(word, "<"); ok {
		r.Predecessor = p
		return nil
	}
	key, value, _ := strings.Cut(word, "=")
	switch key {
	case "head":
		r.IsHead = true
	case "off":
		r.OnHead, r.InContext = false, false
	case "read":
		r.Read = true
	case "pinned":
		r.Pinned = true
	case "redacted":
		r.Redacted = true
	case "spawned":
		r.Spawned = true
	case "ghost":
		r.Ghost, r.CoveredBy, r.InContext = true, value, false
	case "branch":
		r.Branches = append(r.Branches, value)
	case "caller":
		r.Caller = value
	case "status":
		r.Status = protocol.Status(value)
	case "error":
		r.Error = &protocol.NodeError{Message: value}
	case "model":
		r.Model = value
	case "tier":
		r.Tier, err = strconv.Atoi(value)
	case "calls":
		r.Calls, err = strconv.Atoi(value)
	case "tokens":
		r.Tokens, err = strconv.ParseInt(value, 10, 64)
	case "folded", "expanded", "inert", "superseded", "undone", "void", "none":
		r.Fold = &protocol.Fold{State: key}
		r.Fold.Count, err = strconv.ParseInt(value, 10, 64)
		r.Void, r.SupersededSummary, r.InContext = key == "void", key == "superseded" || key == "undone", key == "folded" || key == "expanded"
	case "source":
		session, node, _ := strings.Cut(value, "/")
		r.Source = &protocol.GraphSource{SessionID: session, NodeID: node}
	case "deleted":
		r.Source.Deleted = true
	case "of": // the branch of the source
		r.Source.Branch = value
	default:
		err = fmt.Errorf("%q is no word of a row", word)
	}
	return err
}
