package projection

import (
	"strconv"

	"convls/protocol"
)

// Page returns a page of a context view in the wire's form. cursor is where the
// page before ended, "" at the beginning.
func Page(c *Context, budget protocol.Budget, cursor string, limit int, text bool) (*protocol.ContextView, error) {
	from := 0
	if cursor != "" {
		n, err := strconv.Atoi(cursor)
		if err != nil || n < 0 || n > len(c.Entries) {
			return nil, protocol.Errorf(protocol.CodeInvalidParams, "cursor %q is not one that context/get gave for this view", cursor)
		}
		from = n
	}
	to, size := from, 0
	for to < min(from+limit, len(c.Entries)) && (to == from || size < maxWindowBytes) {
		size += contentBytes(c.Entries[to].Parts)
		to++
	}
	v := &protocol.ContextView{Head: c.Head.ID, Entries: []protocol.ContextEntry{}, Omitted: []protocol.Omitted{}, Budget: budget, Total: len(c.Entries)}
	for _, e := range c.Entries[from:to] {
		w := protocol.ContextEntry{ID: e.Node.ID, Kind: e.Node.Kind, Tokens: int64(e.Tokens), Why: e.Why}
		if e.Node.Seq == 0 {
			w.Kind = protocol.KindUser
		}
		w.Role = w.Kind.Role()
		if text {
			if w.Text = TextOf(e.Parts); len(w.Text) > maxRowBytes {
				w.Text = clipMiddle(w.Text, maxRowBytes)
			}
		}
		v.Entries = append(v.Entries, w)
	}
	if to < len(c.Entries) {
		v.Next = strconv.Itoa(to)
	}
	if s := c.Substitution; s != nil {
		v.SummaryID = s.Summary.ID
		v.Omitted = append(v.Omitted, protocol.Omitted{SummaryID: s.Summary.ID, Count: int64(s.Covers.Count), Tokens: int64(s.Covers.Tokens)})
	}
	return v, nil
}
