package transfer

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"convls/protocol"
	"convls/store"
)

// Equal tells the first difference between two sessions, "" if there is none.
// Compared is all that the ledger holds of a session, with nodes matched in the
// order in which they were written, but for: the session's own id, where it was
// imported from, when it was changed last, its events, and the gaps that deleted
// nodes leave in the numbers.
func Equal(a, b *store.Session) (diff string, err error) {
	ra, err := a.Reader()
	if err != nil {
		return "", err
	}
	defer ra.Close()
	rb, err := b.Reader()
	if err != nil {
		return "", err
	}
	defer rb.Close()
	pa, err := newPicture(ra)
	if err != nil {
		return "", err
	}
	pb, err := newPicture(rb)
	if err != nil {
		return "", err
	}
	if len(pa.nodes) != len(pb.nodes) {
		return fmt.Sprintf("%d nodes, %d nodes", len(pa.nodes), len(pb.nodes)), nil
	}
	for i := range pa.nodes {
		na, err := pa.node(pa.nodes[i])
		if err != nil {
			return "", err
		}
		nb, err := pb.node(pb.nodes[i])
		if err != nil {
			return "", err
		}
		if na != nb {
			return fmt.Sprintf("node %s:\n%s\n%s", pa.nodes[i].ID, na, nb), nil
		}
	}
	sa, err := pa.session()
	if err != nil {
		return "", err
	}
	sb, err := pb.session()
	if err != nil {
		return "", err
	}
	if sa != sb {
		return fmt.Sprintf("session:\n%s\n%s", sa, sb), nil
	}
	return "", nil
}

// picture is a session with its nodes numbered without gaps.
type picture struct {
	*store.Reader
	nodes []store.Skeleton
	place map[store.Seq]store.Seq
}

func newPicture(r *store.Reader) (*picture, error) {
	p := &picture{Reader: r, place: map[store.Seq]store.Seq{}}
	for sk, err := range skeletons(context.Background(), r) {
		if err != nil {
			return nil, err
		}
		p.nodes = append(p.nodes, sk)
		p.place[sk.Seq] = store.Seq(len(p.nodes))
	}
	return p, nil
}

// node returns everything about a node as JSON: the ledger's own records, so that
// what is added to them is compared too.
func (p *picture) node(sk store.Skeleton) (string, error) {
	c, err := p.Content(sk.Seq)
	if err != nil {
		return "", err
	}
	pinned, err1 := p.Pinned(sk.Seq)
	why, void, err2 := p.VoidReason(sk.Seq)
	tip, err3 := p.IsTip(sk.Seq)
	undone, err4 := p.Undone(sk.Seq)
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		return "", err
	}
	sk.Lane, sk.Run = 0, 0 // where it is drawn depends on what was deleted before
	sk.Seq, sk.Predecessor, sk.Caller, sk.Jump = p.place[sk.Seq], p.place[sk.Predecessor], p.place[sk.Caller], p.place[sk.Jump]
	runs := c.Reads
	c.Reads = nil
	for _, r := range runs {
		if r = (store.Run{First: p.place[r.First], Last: p.place[r.Last]}); r.First != 0 && r.Last != 0 {
			c.Reads = append(c.Reads, r)
		}
	}
	if c.Covers != nil {
		c.Covers.First, c.Covers.Last = p.place[c.Covers.First], p.place[c.Covers.Last]
	}
	if c.Source != nil && c.Source.SessionID == p.SessionID() {
		c.Source.SessionID = ""
	}
	return text(struct {
		Skeleton                  store.Skeleton
		Content                   *store.Content
		Pinned, Void, Tip, Undone bool
		Why                       string
	}{sk, c, pinned, void, tip, undone, why})
}

func (p *picture) session() (string, error) {
	info, err := p.Info()
	if err != nil {
		return "", err
	}
	system, err1 := p.Text(info.SystemSHA256)
	names, err2 := p.Names()
	leaves, err3 := p.Leaves()
	queue, err4 := p.Queue()
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		return "", err
	}
	info.ID, info.ImportedFrom, info.TitleFrom = "", "", p.place[info.TitleFrom]
	for name, seq := range names {
		names[name] = p.place[seq]
	}
	var tips []store.Seq
	for _, l := range leaves {
		tips = append(tips, p.place[l.Seq])
	}
	for i := range queue {
		queue[i].After = p.place[queue[i].After]
	}
	summaries := []store.Seq{}
	for seq, err := range p.Summaries() {
		if err != nil {
			return "", err
		}
		summaries = append(summaries, p.place[seq])
	}
	slices.Sort(summaries)
	return text(struct {
		Info      store.Info
		System    string
		Head      store.Seq
		Branch    string
		Active    store.Seq
		Total     store.Totals
		Nodes     uint64
		Names     map[string]store.Seq
		Tips      []store.Seq
		Queue     []store.Queued
		Summaries []store.Seq
	}{info, system, p.place[p.State.Head], p.State.Branch, p.place[p.State.Active], p.State.Total, p.State.Nodes, names, tips, queue, summaries})
}

func text(v any) (string, error) {
	b, err := protocol.Marshal(v)
	if err != nil {
		return "", fmt.Errorf("compare sessions: %w", err)
	}
	return string(b), nil
}
