package transfer

import (
	"cmp"
	"context"
	"errors"
	"io"
	"slices"

	"convls/protocol"
	"convls/store"
)

// agent imports sessions of a coding agent; each begins with its header.
func (im *importer) agent(ctx context.Context) error {
	var a *agentSession
	for {
		line, err := im.line()
		f, isFault := errors.AsType[*fault](err)
		if err != nil && !isFault {
			if !errors.Is(err, io.EOF) {
				return err
			}
			if a == nil {
				return nil
			}
			return im.putAgent(ctx, a)
		}
		e := &agentEntry{line: im.lines.number}
		if !isFault {
			if uerr := unmarshal(line, e); uerr != nil {
				f, isFault = faultf(e.line, "the line can not be read: %v", uerr), true
			}
		}
		switch {
		case !isFault && e.Type == entrySession:
			if a != nil {
				if err := im.putAgent(ctx, a); err != nil {
					return err
				}
			}
			a = &agentSession{im: im, entries: []*agentEntry{e}}
		case a == nil && isFault:
			im.skip(f)
		case a == nil:
			im.skip(faultf(e.line, "the %s entry belongs to no session: there is no session line before it", e.Type))
		case isFault:
			a.broken = append(a.broken, f)
			a.torn = truncated(line)
		default:
			a.entries = append(a.entries, e)
		}
	}
}

// putAgent stores a session, and reports what of it was left out if it was stored.
func (im *importer) putAgent(ctx context.Context, a *agentSession) error {
	d, err := a.draft(ctx)
	if err != nil {
		if f, ok := errors.AsType[*fault](err); ok {
			f.id = a.entries[0].ID
		}
		return im.stored(protocol.ImportedEntry{}, err)
	}
	entry, err := im.put(ctx, d)
	if f, ok := errors.AsType[*fault](err); ok && f.id == "" {
		f.id = a.entries[0].ID
	}
	if err := im.stored(entry, err); err != nil {
		return err
	}
	if entry.SessionID != "" {
		slices.SortStableFunc(a.left, func(x, y *fault) int { return cmp.Compare(x.line, y.line) })
		for _, f := range a.left {
			im.skip(f)
		}
	}
	return nil
}

// agentSession is a session on its way from entries to nodes.
type agentSession struct {
	im      *importer
	entries []*agentEntry // the header first: the index of an entry is the file's
	broken  []*fault
	torn    bool // the last broken line is the beginning of a value
	left    []*fault

	parents []int
	steps   []*step
	// at tells where on the chain the conversation stands after each entry; owner
	// which chain node it became, or the result in it belongs to; holds the first
	// chain node that has a part of it.
	at, owner, holds []*step
	model            []string // in effect after each entry
	thinking         []string
	waiting          map[waitingKey][]*result
	summaries        map[int]string // compaction entry -> summary node
	root             nodeRecord
	title            string
	titleFrom        string
	labels           map[string]string // node id -> label
	used             map[string]bool
	byEntry          map[string]int
}

// step is something to store: a chain node with the tools that it called, a
// summary, or a notice.
type step struct {
	node  *nodeRecord
	tools []*call
	// open are the calls without a result, by call id.
	open map[string][]*call
	// pred and first are chain nodes: the one before, and the first after the root.
	pred, first *step
	depth       int
	// assistant is the nearest one at or before this step.
	assistant *step
}

func (s *step) id(root string) string {
	if s == nil {
		return root
	}
	return s.node.ID
}

// draft turns entries into nodes.
func (a *agentSession) draft(ctx context.Context) (*draft, error) {
	if err := a.link(); err != nil {
		return nil, err
	}
	order, cycle, ok := parentsFirst(a.parents)
	if !ok {
		return nil, faultf(a.entries[cycle].line, "entry %q is its own ancestor", a.entries[cycle].ID)
	}
	header := a.entries[0]
	n := len(a.entries)
	a.at, a.owner, a.holds, a.model, a.thinking = make([]*step, n), make([]*step, n), make([]*step, n), make([]string, n), make([]string, n)
	a.waiting, a.summaries, a.labels = map[waitingKey][]*result{}, map[int]string{}, map[string]string{}
	a.root = nodeRecord{ID: store.NewID(""), CreatedAt: timeOf(header.Timestamp), Metadata: header.Rest}
	a.used = map[string]bool{a.root.ID: true}
	for _, i := range order {
		if i%1024 == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if p := a.parents[i]; p != none {
			a.at[i], a.model[i], a.thinking[i] = a.at[p], a.model[p], a.thinking[p]
		}
		a.entry(i)
	}
	a.unanswered()
	return a.finish(), nil
}

// link finds the parent of each entry. In version 1, where a lost line would
// silently lose a turn, a broken line refuses the session unless it is the file's
// torn end. Where entries name their parents a lost line is safe if nobody names
// it.
func (a *agentSession) link() error {
	tree := false
	a.byEntry = make(map[string]int, len(a.entries))
	for i, e := range a.entries[1:] {
		if e.ID == "" {
			continue
		}
		tree = true
		if _, ok := a.byEntry[e.ID]; ok {
			return faultf(e.line, "entry id %q occurs twice", e.ID)
		}
		a.byEntry[e.ID] = i + 1
	}
	for i, f := range a.broken {
		end := a.torn && i == len(a.broken)-1 && f.line > a.entries[len(a.entries)-1].line
		if !tree && !end {
			return faultf(f.line, "%s: the session is refused, because a turn may be lost with it", f.reason)
		}
		if end {
			f.reason = "the last line is torn: " + f.reason
		}
		a.left = append(a.left, f)
	}
	a.parents = make([]int, len(a.entries))
	a.parents[0] = none
	for i, e := range a.entries[1:] {
		switch {
		case e.ID == "" || !tree:
			a.parents[i+1] = i
		case e.ParentID == nil || *e.ParentID == "" || *e.ParentID == a.entries[0].ID:
			a.parents[i+1] = 0
		default:
			p, ok := a.byEntry[*e.ParentID]
			if !ok {
				return faultf(e.line, "entry %q follows %q, which is not there", e.ID, *e.ParentID)
			}
			a.parents[i+1] = p
		}
	}
	return nil
}

// entry makes of one entry what it becomes.
func (a *agentSession) entry(i int) {
	e := a.entries[i]
	switch e.Type {
	case entrySession, entryModel:
		if m := modelName(e.Provider, e.ModelID); m != "" {
			a.model[i] = m
		}
		if e.ThinkingLevel != "" {
			a.thinking[i] = e.ThinkingLevel
		}
	case entryThinking:
		a.thinking[i] = e.ThinkingLevel
	case entryMessage:
		a.message(i)
	case entryCompaction:
		a.compaction(i)
	case entryBranchSummary:
		a.say(i, "[summary of another branch]\n"+e.Summary, map[string]protocol.Raw{"branch_summary_from": quote(e.FromID)})
	case entryCustomMessage:
		a.put(i, protocol.KindUser, a.parts(e.line, e.Content, ""), e.Rest).Metadata["custom_type"] = quote(e.CustomType)
	case entryInfo:
		a.title = titleOf(e.Name)
	case entryLabel:
		a.label(e)
	default:
		a.leave(e.line, e.ID, "an entry of the unknown type %q was left out", e.Type)
	}
}

// label makes a branch name of a label; an empty one takes it away.
func (a *agentSession) label(e *agentEntry) {
	target, ok := a.byEntry[e.TargetID]
	if !ok || a.owner[target] == nil {
		a.leave(e.line, e.ID, "the label %q was left out: it is on nothing that can be a branch", e.Label)
		return
	}
	a.labels[a.owner[target].node.ID] = e.Label
}

func (a *agentSession) leave(line int64, id, format string, args ...any) {
	f := faultf(line, format, args...)
	f.id = id
	a.left = append(a.left, f)
}

// modelName is how convls names a model.
func modelName(provider, model string) string {
	if provider == "" || model == "" {
		return model
	}
	return provider + "/" + model
}

// finish puts the draft together. HEAD is where the conversation stands after the
// file's last entry, which is where the other program goes on, too.
func (a *agentSession) finish() *draft {
	header, last := a.entries[0], len(a.entries)-1
	d := &draft{line: header.line, system: header.SystemPrompt, root: a.root, head: a.at[last].id(a.root.ID),
		info: store.Info{ID: header.ID, Title: a.title, Policy: policyRolling, Model: a.model[last], Workspace: header.CWD,
			CreatedAt: timeOf(header.Timestamp)},
		branches: map[string]string{}, nodes: a.nodes}
	if d.info.Title == "" {
		d.info.Title, d.titleFrom = a.firstText(), a.titleFrom
	}
	for i := last; i != none; i = a.parents[i] {
		if id := a.summaries[i]; id != "" {
			d.active = id
			break
		}
	}
	for _, s := range a.steps {
		name := a.labels[s.node.ID]
		if name == "" {
			continue
		}
		if d.branches[name] != "" || !validName(name) {
			a.leave(s.node.line, s.node.ID, "the label %q was left out: it is there twice, or can not be a branch's name", name)
			continue
		}
		d.branches[name] = s.node.ID
	}
	return d
}

// firstText returns the title that the first message with a text gives.
func (a *agentSession) firstText() string {
	for _, s := range a.steps {
		if s.node.Kind != protocol.KindUser {
			continue
		}
		if t := titleOf(store.Text(s.node.Content)); t != "" {
			a.titleFrom = s.node.ID
			return t
		}
	}
	return ""
}

// nodes yields the nodes in the order to store them: each with its tools after it.
func (a *agentSession) nodes(yield func(*nodeRecord, error) bool) {
	for _, s := range a.steps {
		if !yield(s.node, nil) {
			return
		}
		for _, c := range s.tools {
			if !yield(c.node, nil) {
				return
			}
		}
	}
}
