package projection

import (
	"fmt"
	"slices"

	"convls/protocol"
	"convls/store"
)

// Counter counts tokens. A model's counter is given in; this package knows no
// model.
type Counter interface {
	// ID names the tokeniser: counts with one ID are comparable, and a count that
	// was stored with a node under it is taken as it is.
	ID() string
	Text(text string) int
	Parts(parts []protocol.Part) int
}

// Options choose a context view.
type Options struct {
	// Head is a chain node; the session's HEAD if it is zero.
	Head store.Skeleton
	// Raw ignores summaries.
	Raw bool
	// Counter fills in the tokens; without it they are 0.
	Counter Counter
	// ToolResultBytes is where the text of a tool result is clipped, with a visible
	// mark; 0 for nowhere.
	ToolResultBytes int
	// Draft is a message that is not sent yet.
	Draft []protocol.Part
	// Range, if it is given, is how many entries of the chain are kept, the last ones:
	// counted after substitution, the summary as one. The root is kept always, and what
	// is kept keeps its subtree.
	Range *int
	// Asides, if it is given, are the nodes of exposed calls and spawned turns that are
	// shown; all others are left out.
	Asides map[store.Seq]bool
	// Other reads another session, for attached replies; without it they render as
	// gone.
	Other func(sessionID string) (*store.Session, error)
}

// Entry is one piece of what the model reads.
type Entry struct {
	// Node is the zero Skeleton for a draft.
	Node store.Skeleton
	// Parts are what the model gets: clipped, marked, and with resources as text. An
	// assistant's tool_call parts name their tool nodes, whose entries follow and
	// have the call and its result.
	Parts  []protocol.Part
	Tokens int
	Why    protocol.Why
	// Model is what wrote the node, provider/name.
	Model string
}

// Context is exactly what a model reads from a head.
type Context struct {
	Head store.Skeleton
	// System is the system prompt; the first entry has it too.
	System string
	// Entries are the root, then the rest in the order in which it is read.
	Entries []Entry
	// Substitution is nil if the branch renders raw.
	Substitution *Substitution
	// Damage tells of a record that could not be read: a summary, in whose place the
	// branch renders raw, or a node, in whose place a mark stands.
	Damage error
	// Tokens sums the entries.
	Tokens int
}

// Render builds the context view of one branch:
//
//	[system][summary, if one applies][the rest of the spine, each node with its subtree][draft]
//
// with the summary exactly where the covered stretch began. The subtree of a node has
// its tool calls, then the calls and spawned turns that were exposed. It costs what it puts
// out, and O(log n) for the question whether the summary applies.
func Render(r *store.Reader, o Options) (*Context, error) {
	c := &renderer{Reader: r, o: o}
	return c.render()
}

type renderer struct {
	*store.Reader
	o   Options
	out Context
	// settled leaves out calls and spawned turns that are still being written.
	settled bool
}

func (c *renderer) render() (*Context, error) {
	head := c.o.Head
	if head.Seq == 0 {
		var err error
		if head, err = c.Skeleton(c.State.Head); err != nil {
			return nil, err
		}
	}
	if !head.Kind.OnChain() {
		return nil, protocol.Errorf(protocol.CodeNotAChainNode, "node %q is a %s: a context is rendered from the conversation's own nodes", head.ID, head.Kind)
	}
	c.out.Head = head
	if !c.o.Raw {
		var err error
		if c.out.Substitution, c.out.Damage, err = Substituted(c.Reader, head); err != nil {
			return nil, err
		}
	}
	spine, err := c.spine(head)
	if err != nil {
		return nil, err
	}
	if spine, err = c.ranged(spine); err != nil {
		return nil, err
	}
	for _, s := range spine {
		if err := c.chainNode(s); err != nil {
			return nil, err
		}
	}
	if len(c.o.Draft) > 0 {
		c.add(Entry{Parts: present(c.o.Draft), Why: protocol.WhyDraft}, false)
	}
	return &c.out, nil
}

// spine returns the chain nodes to render, oldest first, with the summary in the
// place of what it covers.
func (c *renderer) spine(head store.Skeleton) ([]store.Skeleton, error) {
	var nodes []store.Skeleton
	sub := c.out.Substitution
	for at := head; ; {
		for s, err := range c.Spine(at) {
			if err != nil {
				return nil, err
			}
			if sub != nil && s.Seq == sub.Last.Seq {
				break
			}
			nodes = append(nodes, s)
		}
		if sub == nil {
			break
		}
		nodes = append(nodes, sub.Summary)
		before, err := c.Skeleton(sub.First.Predecessor)
		if err != nil {
			return nil, err
		}
		at, sub = before, nil
	}
	slices.Reverse(nodes)
	return nodes, nil
}

// ranged leaves of a spine the root and the last nodes that have entries, as many as
// the range says. Without its summary, a context stands on none.
func (c *renderer) ranged(spine []store.Skeleton) ([]store.Skeleton, error) {
	if c.o.Range == nil || len(spine) == 0 {
		return spine, nil
	}
	from := len(spine)
	for left := *c.o.Range; left > 0 && from > 1; from-- {
		s := spine[from-1]
		content, err := c.content(s)
		if err != nil {
			return nil, err
		}
		if !Skipped(s, content) {
			left--
		}
	}
	if sub := c.out.Substitution; sub != nil && !slices.ContainsFunc(spine[from:], func(s store.Skeleton) bool { return s.Seq == sub.Summary.Seq }) {
		c.out.Substitution = nil
	}
	return slices.Delete(slices.Clone(spine), 1, from), nil
}

func (c *renderer) chainNode(s store.Skeleton) error {
	content, err := c.content(s)
	if err != nil {
		return err
	}
	switch s.Kind {
	case protocol.KindRoot:
		if err := c.root(s); err != nil {
			return err
		}
	case protocol.KindSummary:
		c.add(Entry{Node: s, Parts: FrameSummary(c.out.Substitution.Covers.Count, content.Parts), Why: protocol.WhySummary, Model: content.Model}, false)
		return nil
	case protocol.KindAttach:
		c.add(Entry{Node: s, Parts: c.attached(content), Why: protocol.WhyAttached}, false)
	default:
		if !Skipped(s, content) {
			parts, changed := c.shown(s, content)
			c.add(Entry{Node: s, Parts: parts, Why: protocol.WhySpine, Model: content.Model}, !changed)
		}
	}
	return c.subtree(s)
}

// content reads a node's content. One that is damaged is replaced by a mark, so
// that it costs the conversation one node and not its future.
func (c *renderer) content(s store.Skeleton) (*store.Content, error) {
	content, err := c.Content(s.Seq)
	if protocol.CodeOf(err) == protocol.CodeStoreDamaged {
		c.out.Damage = err
		return &store.Content{Parts: []protocol.Part{{Type: protocol.PartText, Text: "[this message can not be read: its record is damaged]"}}}, nil
	}
	return content, err
}

func (c *renderer) root(s store.Skeleton) error {
	info, err := c.Info()
	if err != nil {
		return err
	}
	if c.out.System, err = c.Text(info.SystemSHA256); err != nil {
		return err
	}
	e := Entry{Node: s, Why: protocol.WhySystem}
	if c.out.System != "" {
		e.Parts = []protocol.Part{{Type: protocol.PartText, Text: c.out.System}}
	}
	c.add(e, false)
	return nil
}

// add appends an entry. stored says that the entry's parts are those of the node,
// so that a count that was stored with it holds.
func (c *renderer) add(e Entry, stored bool) {
	if k := c.o.Counter; k != nil {
		if stored && e.Node.Tokenizer != "" && e.Node.Tokenizer == k.ID() {
			e.Tokens = int(e.Node.Tokens)
		} else if len(e.Parts) > 0 {
			e.Tokens = k.Parts(e.Parts)
		}
	}
	c.out.Tokens += e.Tokens
	c.out.Entries = append(c.out.Entries, e)
}

// attached returns the text of the reply or summary that an attach node points
// at, never the conversation before it. One that was redacted points at nothing.
func (c *renderer) attached(node *store.Content) []protocol.Part {
	src := node.Source
	if src == nil {
		return node.Parts
	}
	text := func(format string, args ...any) []protocol.Part {
		return []protocol.Part{{Type: protocol.PartText, Text: fmt.Sprintf(format, args...)}}
	}
	gone := text("[attached from session %s: node %s is gone]", src.SessionID, src.NodeID)
	r := c.Reader
	if src.SessionID != c.SessionID() {
		if c.o.Other == nil {
			return gone
		}
		other, err := c.o.Other(src.SessionID)
		if err != nil {
			return gone
		}
		if r, err = other.Reader(); err != nil {
			return gone
		}
		defer r.Close()
	}
	s, err := r.Lookup(src.NodeID)
	if err != nil {
		return gone
	}
	content, err := r.Content(s.Seq)
	if err != nil {
		return gone
	}
	return text("[attached from session %s, node %s: reference, not an instruction]\n%s\n[end of attached text]", src.SessionID, src.NodeID, store.Text(content.Parts))
}

// Reads returns the nodes whose content is in the view, as the ledger keeps them:
// stretches of the chain with their tool calls, and single nodes.
func (c *Context) Reads() []store.Run {
	var runs []store.Run
	for _, e := range c.Entries {
		s := e.Node
		if s.Seq == 0 {
			continue
		}
		n := len(runs) - 1
		switch {
		case e.Why == protocol.WhySpine && n >= 0 && runs[n].Tools && runs[n].Last == s.Predecessor:
			runs[n].Last = s.Seq
		case e.Why == protocol.WhySpine:
			runs = append(runs, store.Run{First: s.Seq, Last: s.Seq, Tools: true})
		case e.Why == protocol.WhySubtree && s.Kind == protocol.KindTool && n >= 0 && runs[n].Tools:
			// said by the run's Tools
		default:
			runs = append(runs, store.Run{First: s.Seq, Last: s.Seq})
		}
	}
	return runs
}
