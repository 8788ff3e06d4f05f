package projection

import (
	"iter"
	"slices"

	"convls/protocol"
	"convls/store"
)

// Whole is one node of a stretch, with nothing left out.
type Whole struct {
	Node store.Skeleton
	// Content is what is stored; of a node whose record is damaged, a mark.
	Content *store.Content
	// Parts are what a model would get of it: never clipped, and empty for a reply
	// without content, which no context shows.
	Parts []protocol.Part
	// Why is spine, attached or subtree.
	Why protocol.Why
	// Aside says that it belongs to an exposed call or spawned turn.
	Aside bool
}

// Stretch yields the chain nodes from first to last, oldest first, each followed
// by what it called as the context view shows that. It is what a compaction gives
// its summariser: the same nodes as the view, whole. Calls and spawned turns that
// are still being written are left out. o.Head is what stands for the end of the
// stretch where this is a part of one; last if it is zero.
func Stretch(r *store.Reader, first, last store.Skeleton, o Options) iter.Seq2[Whole, error] {
	return func(yield func(Whole, error) bool) {
		o.ToolResultBytes = 0
		if o.Head.Seq == 0 {
			o.Head = last
		}
		c := &renderer{Reader: r, o: o, settled: true, out: Context{Head: o.Head}}
		path := make([]store.Skeleton, 0, last.Depth-first.Depth+1)
		for s, err := range r.Path(first, last) {
			if err != nil {
				yield(Whole{}, err)
				return
			}
			path = append(path, s)
		}
		for _, s := range slices.Backward(path) {
			content, err := c.content(s)
			if !yield(c.whole(s, content), err) || err != nil {
				return
			}
			for called, err := range c.called(s) {
				if err != nil {
					yield(Whole{}, err)
					return
				}
				parts, _ := c.beside(called.node, called.content)
				if !yield(Whole{Node: called.node, Content: called.content, Parts: parts, Why: protocol.WhySubtree, Aside: called.aside}, nil) {
					return
				}
			}
		}
	}
}

func (c *renderer) whole(s store.Skeleton, content *store.Content) Whole {
	w := Whole{Node: s, Content: content, Why: protocol.WhySpine}
	switch {
	case content == nil:
	case s.Kind == protocol.KindAttach:
		w.Why, w.Parts = protocol.WhyAttached, c.attached(content)
	case !Skipped(s, content):
		w.Parts, _ = c.shown(s, content)
	}
	return w
}
