package projection

import (
	"slices"
	"strings"
	"unicode/utf8"

	"convls/protocol"
	"convls/store"
)

// Window chooses rows of a branch's transcript.
type Window struct {
	// Head is the branch; HEAD if it is zero.
	Head store.Skeleton
	// Before, After and Around are node ids on the branch: rows before one, after
	// one, or on both sides. Without them the window ends at Head.
	Before, After, Around string
	// Limit is how many chain nodes to show.
	Limit int
	// Expanded are summaries whose covered turns are shown.
	Expanded []string
}

// previewLength bounds a row's preview, in characters.
const previewLength = 200

// Transcript returns a window on a branch: its chain nodes, oldest first, each
// with its whole content and followed by the tools it called. A summary that
// applies stands after the turns it covers, which are left out, or shown as
// ghosts if it is expanded.
func Transcript(r *store.Reader, w Window) (*protocol.Transcript, error) {
	t := &transcriber{Reader: r, w: w}
	if err := t.prepare(); err != nil {
		return nil, err
	}
	spine, err := t.walk()
	if err != nil {
		return nil, err
	}
	out := &protocol.Transcript{Head: t.head.ID, Rows: []protocol.Row{}}
	for _, s := range spine {
		if err := t.rows(&out.Rows, s); err != nil {
			return nil, err
		}
	}
	fit(out.Rows)
	if len(spine) == 0 {
		return out, nil
	}
	if first := spine[0]; first.Predecessor != 0 {
		out.Before = first.ID
	}
	if last := spine[len(spine)-1]; last.Seq != t.head.Seq {
		out.After = last.ID
	}
	return out, nil
}

// What a window carries at most, in bytes of content: of one row, and of all of
// them. A longer content is cut and marked; convls/node/get has the whole.
const (
	maxRowBytes    = 1 << 20
	maxWindowBytes = 5 << 20
)

// fit cuts long contents, the newest row's last, so that no message is too long
// for a conversation to be opened.
func fit(rows []protocol.Row) {
	left := maxWindowBytes
	for i := range slices.Backward(rows) {
		store.TruncateText(&rows[i].Node, min(maxRowBytes, left))
		left -= contentBytes(rows[i].Content)
	}
}

func contentBytes(parts []protocol.Part) int {
	n := 0
	for _, p := range parts {
		n += len(p.Text) + len(p.Data)*4/3 + len(p.Arguments)
	}
	return n
}

type transcriber struct {
	*store.Reader
	w       Window
	head    store.Skeleton
	current store.Skeleton // the session's HEAD
	sub     *Substitution
	leaves  []store.Leaf
	names   map[store.Seq]string
}

func (t *transcriber) prepare() error {
	var err error
	if t.current, err = t.Skeleton(t.State.Head); err != nil {
		return err
	}
	if t.head = t.w.Head; t.head.Seq == 0 {
		t.head = t.current
	}
	if t.sub, _, err = Substituted(t.Reader, t.head); err != nil {
		return err
	}
	names, err := t.Names()
	if err != nil {
		return err
	}
	t.names = make(map[store.Seq]string, len(names))
	for name, seq := range names {
		if old := t.names[seq]; old == "" || name < old {
			t.names[seq] = name
		}
	}
	return nil
}

// walk returns the chain nodes and summaries of the window, oldest first.
func (t *transcriber) walk() ([]store.Skeleton, error) {
	from, stop, err := t.ends()
	if err != nil || from.Seq == 0 {
		return nil, err
	}
	var spine []store.Skeleton
	for at := from; at.Seq != 0; {
		next := store.Skeleton{}
		for s, err := range t.Spine(at) {
			if err != nil {
				return nil, err
			}
			if stop.Seq != 0 && s.Seq == stop.Seq || stop.Seq == 0 && len(spine) >= t.w.Limit {
				break
			}
			if t.sub != nil && s.Seq == t.sub.Last.Seq {
				spine = append(spine, t.sub.Summary)
				if !t.expanded(t.sub.Summary.ID) {
					if next, err = t.Skeleton(t.sub.First.Predecessor); err != nil {
						return nil, err
					}
					break
				}
			}
			spine = append(spine, s)
		}
		at = next
	}
	slices.Reverse(spine)
	return spine, nil
}

// ends returns where the window ends, and the node before its beginning (zero: it
// begins by its limit).
func (t *transcriber) ends() (from, stop store.Skeleton, err error) {
	switch {
	case t.w.Before != "":
		at, err := t.onBranch(t.w.Before)
		if err != nil || at.Predecessor == 0 {
			return store.Skeleton{}, stop, err
		}
		from, err = t.Skeleton(at.Predecessor)
		return from, stop, err
	case t.w.After != "":
		stop, err = t.onBranch(t.w.After)
		if err != nil || stop.Seq == t.head.Seq {
			return store.Skeleton{}, stop, err
		}
		from, err = t.AncestorAt(t.head, stop.Depth+uint64(t.w.Limit))
		return from, stop, err
	case t.w.Around != "":
		at, err := t.onBranch(t.w.Around)
		if err != nil {
			return from, stop, err
		}
		from, err = t.AncestorAt(t.head, at.Depth+uint64(t.w.Limit/2))
		return from, stop, err
	}
	return t.head, stop, nil
}

// onBranch returns the node with this id, which must stand on the branch. A
// summary stands for the end of what it covers.
func (t *transcriber) onBranch(id string) (store.Skeleton, error) {
	s, err := t.Lookup(id)
	if err != nil {
		return s, err
	}
	if t.sub != nil && s.Seq == t.sub.Summary.Seq {
		if t.w.Before != "" {
			return t.sub.First, nil
		}
		return t.sub.Last, nil
	}
	if s, err = t.Owner(s); err != nil {
		return s, err
	}
	on, err := t.IsAncestor(s, t.head)
	if err == nil && !on {
		err = protocol.Errorf(protocol.CodeUnknownNode, "node %q is not on the branch of %q", id, t.head.ID)
	}
	return s, err
}

func (t *transcriber) expanded(id string) bool { return slices.Contains(t.w.Expanded, id) }

// rows appends the row of a chain node or summary, and those of its tools.
func (t *transcriber) rows(rows *[]protocol.Row, s store.Skeleton) error {
	row, err := t.row(s)
	if err != nil {
		return err
	}
	*rows = append(*rows, row)
	if s.Kind != protocol.KindAssistant {
		return nil
	}
	for tool, err := range t.Tools(s.Seq) {
		if err != nil {
			return err
		}
		tr, err := t.row(tool)
		if err != nil {
			return err
		}
		tr.OnHead, tr.Ghost, tr.CoveredBy = row.OnHead, row.Ghost, row.CoveredBy
		tr.InContext = row.OnHead && row.CoveredBy == ""
		*rows = append(*rows, tr)
	}
	return nil
}

func (t *transcriber) row(s store.Skeleton) (protocol.Row, error) {
	content, err := t.Content(s.Seq)
	if protocol.CodeOf(err) == protocol.CodeStoreDamaged {
		content = &store.Content{Error: &protocol.NodeError{Code: protocol.CodeStoreDamaged, Message: err.Error()}}
	} else if err != nil {
		return protocol.Row{}, err
	}
	n, err := t.NodeOf(s, content)
	if err != nil {
		return protocol.Row{}, err
	}
	row := protocol.Row{Node: n, Preview: PreviewOf(s, content), Branch: t.names[s.Seq]}
	if s.Kind == protocol.KindSummary {
		return t.summaryRow(row)
	}
	if content.Source != nil {
		if row.Source, row.Preview, err = sourceOf(t.Reader, *content.Source, content.Parts); err != nil {
			return row, err
		}
	}
	if s.Kind.OnChain() {
		if row.OnHead, err = t.IsAncestor(s, t.current); err != nil {
			return row, err
		}
		if t.sub != nil && s.Depth >= t.sub.First.Depth && s.Depth <= t.sub.Last.Depth {
			row.Ghost, row.CoveredBy = true, t.sub.Summary.ID
		}
		row.InContext = row.OnHead && row.CoveredBy == "" && !Skipped(s, content)
		if row.Siblings, err = t.siblings(s); err != nil {
			return row, err
		}
	}
	row.Actions = Actions(s)
	return row, nil
}

// summaryRow fills in the capsule of the summary that applies to the branch.
func (t *transcriber) summaryRow(row protocol.Row) (protocol.Row, error) {
	row.Fold = &protocol.Fold{State: "folded", Count: int64(t.sub.Covers.Count)}
	if t.expanded(row.ID) {
		row.Fold.State = "expanded"
	}
	on, err := t.IsAncestor(t.sub.Last, t.current)
	if err != nil {
		return row, err
	}
	row.OnHead, row.InContext = on, on
	row.Actions = []string{"expand"}
	return row, FillSummary(t.Reader, &row.Node, t.sub.Covers, t.head)
}

// maxCoversIDs is the greatest number of covered ids that a row carries.
const maxCoversIDs = 1_000

// FillSummary sets the wire's members of a summary as it is seen from head: what
// it covers if it is active, and whether it is superseded or void.
func FillSummary(r *store.Reader, n *protocol.Node, covers store.Covers, head store.Skeleton) error {
	var err error
	if n.Void, err = r.Void(store.Seq(n.Seq)); err != nil || n.Void {
		return err
	}
	active, err := Active(r, store.Seq(n.Seq), head)
	if err != nil {
		return err
	}
	if !active {
		n.SupersededSummary = true
		return nil
	}
	if covers.Count > maxCoversIDs {
		n.CoversCount = int64(covers.Count)
		return nil
	}
	n.CoversIDs, err = r.CoveredIDs(covers)
	return err
}

// siblings returns the place of a node among the continuations of its
// predecessor, nil if it is the only one. A spawned turn is no continuation: it is
// nobody's sibling.
func (t *transcriber) siblings(s store.Skeleton) (*protocol.Siblings, error) {
	if s.Predecessor == 0 || s.Caller != 0 {
		return nil, nil
	}
	var prev, next store.Seq
	index, count := 0, 0
	for seq, err := range t.Children(s.Predecessor) {
		if err != nil {
			return nil, err
		}
		child, err := t.Skeleton(seq)
		if err != nil {
			return nil, err
		}
		if child.Caller != 0 {
			continue
		}
		count++
		switch {
		case seq < s.Seq:
			prev = seq
		case seq == s.Seq:
			index = count
		case next == 0:
			next = seq
		}
	}
	if count < 2 {
		return nil, nil
	}
	out := &protocol.Siblings{Index: index, Count: count}
	var err error
	if out.Prev, err = t.sibling(prev); err != nil {
		return nil, err
	}
	out.Next, err = t.sibling(next)
	return out, err
}

func (t *transcriber) sibling(seq store.Seq) (*protocol.Sibling, error) {
	if seq == 0 {
		return nil, nil
	}
	s, err := t.Skeleton(seq)
	if err != nil {
		return nil, err
	}
	if t.leaves == nil {
		if t.leaves, err = t.Leaves(); err != nil {
			return nil, err
		}
	}
	tip, err := t.LastTipOf(t.leaves, s)
	return &protocol.Sibling{ID: s.ID, Tip: tip.ID}, err
}

// Actions returns the commands that are allowed on a node.
func Actions(s store.Skeleton) []string {
	if s.Status == protocol.StatusOpen {
		return []string{"cancel"}
	}
	switch s.Kind {
	case protocol.KindRoot:
		return []string{"fork"}
	case protocol.KindUser:
		return []string{"retry", "edit", "fork", "rewind", "pin", "redact"}
	case protocol.KindAssistant:
		return []string{"retry", "edit", "fork", "pin", "redact"}
	case protocol.KindAttach:
		return []string{"fork", "pin"}
	case protocol.KindTool:
		return []string{"redact"}
	}
	return []string{}
}

// PreviewOf is [Preview] of a node. A summary's begins with what it says, without the
// marker, the headings, and the sections that say nothing, which every summary has.
func PreviewOf(s store.Skeleton, c *store.Content) string {
	if s.Kind != protocol.KindSummary {
		return Preview(c.Parts)
	}
	var said []string
	for line := range strings.Lines(store.Text(c.Parts)) {
		line = strings.TrimSpace(line)
		if line != protocol.SummaryMarker && !strings.HasPrefix(line, "#") && line != "none" {
			said = append(said, strings.TrimPrefix(line, "- "))
		}
	}
	return Preview([]protocol.Part{{Type: protocol.PartText, Text: strings.Join(said, "\n")}})
}

// Preview returns the beginning of parts' text on one line, 200 characters at
// most.
func Preview(parts []protocol.Part) string {
	text := store.Text(parts)
	if text == "" {
		text = TextOf(parts)
	}
	out := make([]rune, 0, previewLength)
	space := true
	for _, r := range text {
		if r == '\n' || r == '\t' || r == '\r' || r == ' ' {
			if space {
				continue
			}
			space, r = true, ' '
		} else {
			space = false
		}
		if len(out) == previewLength-1 {
			out = append(out, '…')
			break
		}
		if r != utf8.RuneError {
			out = append(out, r)
		}
	}
	return strings.TrimRight(string(out), " ")
}
