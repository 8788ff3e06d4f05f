package transfer

import (
	"context"
	"errors"
)

// flatMessages are messages that name their parents, in any order, of any number
// of trees.
type flatMessages struct {
	all []*treeMessage
}

func (f *flatMessages) add(m *treeMessage) { f.all = append(f.all, m) }

// flat imports the messages that came one by one.
func (im *importer) flat(ctx context.Context, f *flatMessages) error {
	for _, group := range f.groups() {
		t, err := group.tree()
		if err != nil {
			im.skip(err)
			continue
		}
		entry, perr := im.putTree(ctx, t)
		if ft, ok := errors.AsType[*fault](perr); ok && ft.id == "" {
			ft.id = group.id
		}
		if err := im.stored(entry, perr); err != nil {
			return err
		}
	}
	return nil
}

// messageGroup is what is one tree, if nothing is wrong with it.
type messageGroup struct {
	id       string
	messages []*treeMessage
}

// groups sorts messages into trees: by the tree that they name, or by what their
// parents lead to. Groups are in the order of their first messages.
func (f *flatMessages) groups() []*messageGroup {
	byID := make(map[string]int, len(f.all))
	for i, m := range f.all {
		if _, ok := byID[m.MessageID]; !ok {
			byID[m.MessageID] = i
		}
	}
	// label tells the group of each message: that of its parent, if it names none.
	label := make([]string, len(f.all))
	seen := make([]bool, len(f.all))
	var path []int
	for i := range f.all {
		path = path[:0]
		j, name := i, ""
		for name == "" {
			m := f.all[j]
			seen[j] = true
			path = append(path, j)
			switch p, ok := byID[m.ParentID]; {
			case m.TreeID != "":
				name = "tree " + m.TreeID
			case m.ParentID == "":
				name = "root " + m.MessageID
			case !ok:
				name = "missing " + m.ParentID
			case label[p] != "":
				name = label[p]
			case seen[p]:
				name = "cycle " + f.all[p].MessageID
			default:
				j = p
			}
		}
		for _, k := range path {
			if label[k] == "" {
				label[k] = name
			}
		}
	}
	var groups []*messageGroup
	place := map[string]*messageGroup{}
	for i, m := range f.all {
		g := place[label[i]]
		if g == nil {
			g = &messageGroup{id: m.TreeID}
			place[label[i]] = g
			groups = append(groups, g)
		}
		g.messages = append(g.messages, m)
	}
	return groups
}

// tree puts parents before their children. A missing parent, a circle (also of one
// message) and an id that occurs twice are faults: which message answers which
// could only be guessed.
func (g *messageGroup) tree() (*tree, *fault) {
	bad := func(m *treeMessage, format string, args ...any) (*tree, *fault) {
		f := faultf(m.line, format, args...)
		if f.id = g.id; f.id == "" {
			f.id = m.MessageID
		}
		return nil, f
	}
	byID := make(map[string]int, len(g.messages))
	for i, m := range g.messages {
		if _, ok := byID[m.MessageID]; ok {
			return bad(m, "message id %q occurs twice", m.MessageID)
		}
		byID[m.MessageID] = i
	}
	parents := make([]int, len(g.messages))
	for i, m := range g.messages {
		parents[i] = none
		if m.ParentID == "" {
			continue
		}
		p, ok := byID[m.ParentID]
		if !ok {
			return bad(m, "message %q answers %q, which is not there", m.MessageID, m.ParentID)
		}
		parents[i] = p
	}
	order, cycle, ok := parentsFirst(parents)
	if !ok {
		return bad(g.messages[cycle], "message %q answers itself, by way of its parents", g.messages[cycle].MessageID)
	}
	t := &tree{id: g.id, line: g.messages[0].line, messages: make([]*treeMessage, len(order)), parents: make([]int, len(order))}
	place := make([]int, len(order))
	for i, old := range order {
		place[old] = i
		t.messages[i], t.parents[i] = g.messages[old], none
		if p := parents[old]; p != none {
			t.parents[i] = place[p]
		}
	}
	return t, nil
}
