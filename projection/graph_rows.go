package projection

import (
	"cmp"
	"iter"
	"slices"

	"convls/protocol"
	"convls/store"
)

// row reads a row.
func (g *grapher) row(it item) (protocol.GraphRow, error) {
	s := it.node
	content, err := g.Content(s.Seq)
	if protocol.CodeOf(err) == protocol.CodeStoreDamaged {
		content = &store.Content{Error: &protocol.NodeError{Code: protocol.CodeStoreDamaged, Message: err.Error()}}
	} else if err != nil {
		return protocol.GraphRow{}, err
	}
	n, err := g.NodeOf(s, content)
	if err != nil {
		return protocol.GraphRow{}, err
	}
	row := protocol.GraphRow{ID: s.ID, Kind: s.Kind, Role: n.Role, Status: s.Status, Preview: PreviewOf(s, content),
		Predecessor: n.Predecessor, Caller: n.Caller, Seq: int64(s.Seq), Row: int64(it.slot.Seq), Lane: int(it.slot.Lane), Tier: it.tier,
		Model: content.Model, CreatedAt: s.Created, Tokens: int64(s.Tokens), Usage: content.Usage, Error: content.Error,
		Pinned: n.Pinned, Redacted: s.Redacted, Spawned: s.Called && s.Kind.OnChain(), Actions: Actions(s)}
	if row.Read, err = g.hasRead(s, it.slot); err != nil {
		return row, err
	}
	switch {
	case s.Kind == protocol.KindSummary:
		err = g.capsuleRow(&row, s)
	case s.Kind.OnChain():
		err = g.chainRow(&row, s, content)
	default:
		err = g.callRow(&row, it)
	}
	return row, err
}

func (g *grapher) chainRow(row *protocol.GraphRow, s store.Skeleton, content *store.Content) error {
	err := g.standing(row, s)
	if err != nil {
		return err
	}
	row.IsHead = s.Seq == g.current.Seq
	row.InContext = row.OnHead && !row.Ghost && !Skipped(s, content)
	if row.Spawned && !row.OnHead {
		if row.InContext, err = g.besides(s, s); err != nil {
			return err
		}
	}
	if row.Tip, err = g.IsTip(s.Seq); err != nil {
		return err
	}
	row.Branches = slices.Sorted(slices.Values(g.names[s.Seq]))
	for _, err := range g.subtree(s) {
		if err != nil {
			return err
		}
		if row.Calls++; row.Calls == maxCallCount {
			break
		}
	}
	if row.Calls > 0 {
		row.Actions = append(row.Actions, foldAction(g.expanded[s.ID]))
	}
	if content.Source != nil {
		row.Source, row.Preview, err = sourceOf(g.Reader, *content.Source, content.Parts)
	}
	return err
}

// standing tells how the chain node of a row's slot stands to the view: on its spine,
// and behind a summary.
func (g *grapher) standing(row *protocol.GraphRow, s store.Skeleton) error {
	var err error
	if row.OnHead, err = g.IsAncestor(s, g.head); err != nil {
		return err
	}
	if row.Ghost, err = g.covered(s); row.Ghost {
		row.CoveredBy = g.sub.Summary.ID
	}
	return err
}

// maxCallCount is where the calls of a node are not counted any further.
const maxCallCount = 1_000

func foldAction(expanded bool) string {
	if expanded {
		return "collapse"
	}
	return "expand"
}

// callRow fills in what a node off the chain is to the view: what its owner is, if
// contexts show it.
func (g *grapher) callRow(row *protocol.GraphRow, it item) error {
	err := g.standing(row, it.slot)
	if err != nil {
		return err
	}
	row.InContext, err = g.besides(it.slot, it.node)
	return err
}

// besides reports whether the context of the view's head has a node, in the slot of
// a chain node, as part of what a chain node called. It asks the context view itself.
func (g *grapher) besides(slot, s store.Skeleton) (bool, error) {
	owner, err := g.spawnedBy(slot)
	if err != nil {
		return false, err
	}
	shown, ok := g.shown[owner.Seq]
	if !ok {
		shown = map[store.Seq]bool{}
		g.shown[owner.Seq] = shown
		on, err := g.IsAncestor(owner, g.head)
		if err != nil || !on {
			return false, err
		}
		if in, err := g.covered(owner); err != nil || in {
			return false, err
		}
		c := &renderer{Reader: g.Reader}
		c.out.Head = g.head
		for called, err := range c.called(owner) {
			if err != nil {
				return false, err
			}
			shown[called.node.Seq] = true
		}
	}
	return shown[s.Seq], nil
}

// spawnedBy returns the chain node outside of spawned turns that one in a spawned turn
// hangs off, in steps of whole runs.
func (g *grapher) spawnedBy(s store.Skeleton) (store.Skeleton, error) {
	for s.Called {
		on, err := g.IsAncestor(s, g.head)
		if err != nil || on {
			return s, err // the head is in the spawned turn itself
		}
		if s, err = g.Skeleton(s.Run); err != nil {
			return s, err
		}
		if s.Caller == 0 {
			s, err = g.Skeleton(s.Predecessor)
		} else if s, err = g.Skeleton(s.Caller); err == nil {
			s, err = g.Owner(s)
		}
		if err != nil {
			return s, err
		}
	}
	return s, nil
}

// capsuleRow fills in the state of a summary's capsule.
func (g *grapher) capsuleRow(row *protocol.GraphRow, s store.Skeleton) error {
	covers, err := g.Covers(s.Seq)
	if err != nil {
		return err
	}
	row.Fold = &protocol.Fold{Count: int64(covers.Count)}
	if row.Fold.State, err = g.capsuleState(s); err != nil {
		return err
	}
	switch row.Fold.State {
	case "void":
		row.Void = true
	case "superseded", "undone":
		row.SupersededSummary = true
	default:
		if err := g.coversIDs(row, covers); err != nil {
			return err
		}
	}
	row.Actions = []string{}
	if row.Fold.State == "folded" || row.Fold.State == "expanded" {
		row.Actions = append(row.Actions, foldAction(!g.fold))
		row.OnHead, row.InContext = true, true
	}
	if row.Fold.State == "folded" {
		return g.capsuleLabels(row)
	}
	return nil
}

// capsuleState tells how a summary shows: the one that applies is folded or
// expanded; of the others one that would apply to another branch is inert.
func (g *grapher) capsuleState(s store.Skeleton) (string, error) {
	if g.sub != nil && s.Seq == g.sub.Summary.Seq {
		if g.fold {
			return "folded", nil
		}
		return "expanded", nil
	}
	void, err := g.Void(s.Seq)
	if err != nil || void {
		return "void", err
	}
	active, err := Active(g.Reader, s.Seq, g.head)
	if err != nil {
		return "", err
	}
	if active {
		return "inert", nil
	}
	if undone, err := Undone(g.Reader, s.Seq); err != nil || undone {
		return "undone", err
	}
	return "superseded", nil
}

// coversIDs sets the ids that a capsule stands for: the chain nodes, each followed by
// what it called.
func (g *grapher) coversIDs(row *protocol.GraphRow, covers store.Covers) error {
	row.CoversCount = int64(covers.Count)
	if g.w.CountCovers || covers.Count > maxCoversIDs {
		return nil
	}
	chain, err := g.CoveredIDs(covers)
	if err != nil {
		return err
	}
	ids := make([]string, 0, len(chain))
	for _, id := range chain {
		s, err := g.Lookup(id)
		if err != nil {
			return err
		}
		ids = append(ids, id)
		for c, err := range g.subtree(s) {
			if err != nil {
				return err
			}
			if ids = append(ids, c.node.ID); len(ids) > maxCoversIDs {
				return nil
			}
		}
	}
	row.CoversIDs, row.CoversCount = ids, 0
	return nil
}

// capsuleLabels puts what is folded away on the capsule: HEAD, and branch names.
func (g *grapher) capsuleLabels(row *protocol.GraphRow) error {
	var err error
	if row.IsHead, err = g.covered(g.current); err != nil {
		return err
	}
	for seq, names := range g.names {
		s, err := g.Skeleton(seq)
		if g.pass(err) {
			continue
		}
		if err != nil {
			return err
		}
		in, err := g.covered(s)
		if err != nil {
			return err
		}
		if in {
			row.Branches = append(row.Branches, names...)
		}
	}
	slices.Sort(row.Branches)
	return nil
}

// subtree yields what a chain node called, each followed by what that called, in
// the order they were written; chain nodes that they called have rows of their own.
// It uses a stack of its own: a turn can hold any number of nested calls.
func (g *grapher) subtree(owner store.Skeleton) iter.Seq2[item, error] {
	return func(yield func(item, error) bool) {
		stack, err := g.below(owner, 1, nil)
		for len(stack) > 0 && err == nil {
			it := stack[len(stack)-1]
			stack = stack[:len(stack)-1]
			it.slot = owner
			if !yield(it, nil) {
				return
			}
			stack, err = g.below(it.node, it.tier+1, stack)
		}
		if err != nil {
			yield(item{}, err)
		}
	}
}

// below pushes what s called, and of a chain node what hangs off it, on a stack, so
// that the first comes off first.
func (g *grapher) below(s store.Skeleton, tier int, stack []item) ([]item, error) {
	from := len(stack)
	add := func(edges iter.Seq2[store.Seq, error], hanging bool) error {
		for seq, err := range edges {
			if err != nil {
				return err
			}
			c, err := g.Skeleton(seq)
			if g.pass(err) {
				continue
			}
			if err != nil {
				return err
			}
			if !c.Kind.OnChain() && c.Kind != protocol.KindSummary && (!hanging || c.Caller == 0) {
				stack = append(stack, item{node: c, tier: tier})
			}
		}
		return nil
	}
	if err := add(g.Callees(s.Seq), false); err != nil {
		return stack, err
	}
	if s.Kind.OnChain() {
		if err := add(g.Hanging(s.Seq), true); err != nil {
			return stack, err
		}
	}
	slices.SortFunc(stack[from:], func(a, b item) int { return cmp.Compare(b.node.Seq, a.node.Seq) })
	return stack, nil
}

// readRun is a part of what a call has read.
type readRun struct {
	first, last store.Skeleton
	tools       bool
}

// openReads finds what the call that is asked about has read.
func (g *grapher) openReads() error {
	if g.w.ReadsOf == "" {
		return nil
	}
	s, err := g.Lookup(g.w.ReadsOf)
	if err != nil {
		return err
	}
	switch s.Kind {
	case protocol.KindAssistant, protocol.KindCall, protocol.KindSummary:
	default:
		return protocol.Errorf(protocol.CodeInvalidParams, "reads_of %q is a %s, which reads nothing: name a reply, a call or a summary", s.ID, s.Kind)
	}
	content, err := g.Content(s.Seq)
	if err != nil {
		return err
	}
	for _, run := range content.Reads {
		first, err1 := g.Skeleton(run.First)
		last, err2 := g.Skeleton(run.Last)
		if err := cmp.Or(err1, err2); isDamage(err) {
			continue // deleted since
		} else if err != nil {
			return err
		}
		g.read = append(g.read, readRun{first, last, run.Tools})
	}
	return nil
}

// hasRead reports whether the call that is asked about has read a node that stands
// in a slot.
func (g *grapher) hasRead(s, at store.Skeleton) (bool, error) {
	for _, run := range g.read {
		if run.last.Seq == s.Seq || run.first.Seq == s.Seq {
			return true, nil
		}
		if !run.last.Kind.OnChain() || !s.Kind.OnChain() && (!run.tools || s.Kind != protocol.KindTool) {
			continue
		}
		if in, err := inStretch(g.Reader, run.first, run.last, at); err != nil || in {
			return in, err
		}
	}
	return false, nil
}
