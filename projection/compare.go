package projection

import (
	"slices"

	"convls/protocol"
	"convls/store"
)

// maxCompareRows bounds the rows of one side of a comparison.
const maxCompareRows = 200

// Compare returns where two branches part, and what each added after that.
func Compare(r *store.Reader, a, b string) (*protocol.CompareResult, error) {
	left, err := r.LookupChain(a)
	if err != nil {
		return nil, err
	}
	right, err := r.LookupChain(b)
	if err != nil {
		return nil, err
	}
	ancestor, err := r.CommonAncestor(left, right)
	if err != nil {
		return nil, err
	}
	res := &protocol.CompareResult{AncestorID: ancestor.ID}
	if res.A, err = compareSide(r, ancestor, left); err != nil {
		return nil, err
	}
	res.B, err = compareSide(r, ancestor, right)
	return res, err
}

// compareSide tells what stands after ancestor up to tip. Tokens counts what was
// counted when the nodes were written.
func compareSide(r *store.Reader, ancestor, tip store.Skeleton) (protocol.CompareSide, error) {
	side := protocol.CompareSide{ID: tip.ID, Count: int64(tip.Depth - ancestor.Depth), Rows: []protocol.Row{}, Usage: tip.Total.Sub(ancestor.Total).Usage()}
	t := &transcriber{Reader: r, w: Window{Head: tip}}
	if err := t.prepare(); err != nil {
		return side, err
	}
	var nodes []store.Skeleton
	for s, err := range r.Spine(tip) {
		if err != nil {
			return side, err
		}
		if s.Seq == ancestor.Seq {
			break
		}
		side.Tokens += int64(s.Tokens)
		nodes = append(nodes, s)
	}
	slices.Reverse(nodes)
	for _, s := range nodes[:min(len(nodes), maxCompareRows)] {
		row, err := t.row(s)
		if err != nil {
			return side, err
		}
		store.TruncateText(&row.Node, 2_000)
		side.Rows = append(side.Rows, row)
	}
	return side, nil
}
