package projection

import (
	"container/heap"
	"iter"

	"convls/protocol"
	"convls/store"
)

// piece is a part of a run that a graph shows: the nodes of one chain from depth
// top down to bottom. Every chain node that is shown is in exactly one piece, so
// walks over pieces see each once.
type piece struct {
	top    uint64
	first  store.Seq // the node at top
	bottom store.Skeleton
	// folded says that the piece is one covered node whose own row is folded away:
	// only capsules stand in its slot.
	folded bool
}

// pieces is what a graph shows of the chain nodes.
type pieces struct {
	*store.Reader
	all []piece
	// damage is the first record that could not be read: the rest of its piece is left
	// out.
	damage error
}

// pass remembers damage and says that the caller can go on without.
func (p *pieces) pass(err error) bool {
	if !isDamage(err) {
		return false
	}
	if p.damage == nil {
		p.damage = err
	}
	return true
}

// runs finds all runs of the session: from each tip up over its run to the node
// that the run branched off, and on from there. It reads two nodes a run, however
// long those are.
func (p *pieces) runs() error {
	leaves, err := p.Leaves()
	if err != nil {
		return err
	}
	known := map[store.Seq]int{} // by the run's first node
	for _, l := range leaves {
		for at := l.Seq; at != 0; {
			s, err := p.Skeleton(at)
			if p.pass(err) {
				break
			}
			if err != nil {
				return err
			}
			if s.Run == 0 {
				return protocol.Errorf(protocol.CodeNotSupported, "the store is of an older format and opened read-only: its graph is there when it was opened for writing once")
			}
			if i, ok := known[s.Run]; ok {
				if p.all[i].bottom.Depth < s.Depth {
					p.all[i].bottom = s
				}
				break
			}
			start, err := p.Skeleton(s.Run)
			if p.pass(err) {
				break
			}
			if err != nil {
				return err
			}
			known[s.Run] = len(p.all)
			p.all = append(p.all, piece{top: start.Depth, first: start.Seq, bottom: s})
			at = start.Predecessor
		}
	}
	return nil
}

// fold takes away the nodes that a summary covers: one question a piece, where it
// leaves the covered stretch.
func (p *pieces) fold(sub *Substitution) error {
	all := make([]piece, 0, len(p.all)+1)
	for _, part := range p.all {
		low := max(part.top, sub.First.Depth)
		if part.top > sub.Last.Depth || part.bottom.Depth < low {
			all = append(all, part)
			continue
		}
		meet, err := p.CommonAncestor(part.bottom, sub.Last)
		if p.pass(err) || err == nil && meet.Depth < low {
			all = append(all, part)
			continue
		}
		if err != nil {
			return err
		}
		if low > part.top {
			above, err := p.AncestorAt(part.bottom, low-1)
			if err != nil {
				return err
			}
			all = append(all, piece{top: part.top, first: part.first, bottom: above})
		}
		if meet.Depth < part.bottom.Depth {
			below, err := p.AncestorAt(part.bottom, meet.Depth+1)
			if err != nil {
				return err
			}
			all = append(all, piece{top: below.Depth, first: below.Seq, bottom: part.bottom})
		}
	}
	p.all = all
	return nil
}

// upwards yields the nodes that were written before the number seq, last written
// first.
func (p *pieces) upwards(seq store.Seq) iter.Seq2[slot, error] {
	return func(yield func(slot, error) bool) {
		p.walk(&slots{}, yield, func(part piece) (store.Skeleton, bool, error) {
			if part.first >= seq {
				return store.Skeleton{}, false, nil
			}
			return p.AncestorBefore(part.bottom, seq)
		}, func(at *slot) (bool, error) {
			if at.node.Depth == at.of.top {
				return false, nil
			}
			above, err := p.Above(at.node)
			at.node = above
			return true, err
		})
	}
}

// downwards yields the nodes that were written after the number seq, first written
// first.
func (p *pieces) downwards(seq store.Seq) iter.Seq2[slot, error] {
	return func(yield func(slot, error) bool) {
		p.walk(&slots{down: true}, yield, func(part piece) (store.Skeleton, bool, error) {
			if part.bottom.Seq <= seq {
				return store.Skeleton{}, false, nil
			}
			s, err := p.firstAfter(part, seq)
			return s, true, err
		}, func(at *slot) (bool, error) {
			if at.node.Depth == at.of.bottom.Depth {
				return false, nil
			}
			return true, at.advance(p.Reader)
		})
	}
}

// walk yields the nodes of all pieces in one order. begin returns where a piece
// begins, and step goes on in it; both say false where there is nothing. A piece ends
// at damage.
func (p *pieces) walk(h *slots, yield func(slot, error) bool, begin func(piece) (store.Skeleton, bool, error), step func(*slot) (bool, error)) {
	for _, part := range p.all {
		s, ok, err := begin(part)
		switch {
		case p.pass(err):
		case err != nil:
			yield(slot{}, err)
			return
		case ok:
			h.all = append(h.all, slot{node: s, of: part})
		}
	}
	heap.Init(h)
	for h.Len() > 0 {
		if !yield(h.all[0], nil) {
			return
		}
		more, err := step(&h.all[0])
		switch {
		case !more || p.pass(err):
			heap.Pop(h)
		case err != nil:
			yield(slot{}, err)
			return
		default:
			heap.Fix(h, 0)
		}
	}
}

// firstAfter returns the first node of a piece that was written after the number
// seq; there must be one.
func (p *pieces) firstAfter(part piece, seq store.Seq) (store.Skeleton, error) {
	if part.first > seq {
		return p.Skeleton(part.first)
	}
	before, _, err := p.AncestorBefore(part.bottom, seq+1)
	if err != nil {
		return before, err
	}
	return p.AncestorAt(part.bottom, before.Depth+1)
}

// slot is a place in the order of rows: a chain node, and the piece that it is of.
type slot struct {
	node store.Skeleton
	of   piece
	// ahead are the nodes that follow in the piece, the next one last: ways down are
	// found from below, a stretch at a time.
	ahead []store.Skeleton
}

// stretchAhead is how many nodes a walk downwards finds at once.
const stretchAhead = 64

func (s *slot) advance(r *store.Reader) error {
	if len(s.ahead) == 0 {
		end, err := r.AncestorAt(s.of.bottom, min(s.node.Depth+stretchAhead, s.of.bottom.Depth))
		if err != nil {
			return err
		}
		for n, err := range r.Spine(end) {
			if err != nil {
				return err
			}
			if n.Depth == s.node.Depth {
				break
			}
			s.ahead = append(s.ahead, n)
		}
	}
	last := len(s.ahead) - 1
	s.node, s.ahead = s.ahead[last], s.ahead[:last]
	return nil
}

// slots is a heap of the walks of pieces: the greatest number first, or the least if
// they go down.
type slots struct {
	all  []slot
	down bool
}

func (h *slots) Len() int           { return len(h.all) }
func (h *slots) Less(i, j int) bool { return (h.all[i].node.Seq > h.all[j].node.Seq) != h.down }
func (h *slots) Swap(i, j int)      { h.all[i], h.all[j] = h.all[j], h.all[i] }
func (h *slots) Push(x any)         { h.all = append(h.all, x.(slot)) } //nolint:errcheck // a heap holds slots only
func (h *slots) Pop() any {
	last := len(h.all) - 1
	s := h.all[last]
	h.all = h.all[:last]
	return s
}
