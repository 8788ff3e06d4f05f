package transfer

import (
	"errors"
	"maps"
	"slices"

	"convls/protocol"
	"convls/store"
)

// draftWriter writes one draft in a transaction.
type draftWriter struct {
	tx *store.Tx
	d  *draft
	// original is the session's id in the source.
	original string
	at       *nodeRecord
	ids      map[string]store.Seq
	// calls are the tool nodes that assistants name, until they were seen.
	calls map[string]store.Seq
	// followed are chain nodes that a chain node follows which was not called: the
	// others are tips.
	followed map[store.Seq]bool
	summary  int64
	chain    int64
}

func (w *draftWriter) write() (protocol.ImportedEntry, error) {
	info, err := w.tx.Info()
	if err != nil {
		return protocol.ImportedEntry{}, err
	}
	root, err := w.tx.Skeleton(store.Root)
	if err != nil {
		return protocol.ImportedEntry{}, err
	}
	w.ids[root.ID], w.chain = root.Seq, 1
	if err := w.mark(&w.d.root, root); err != nil {
		return protocol.ImportedEntry{}, err
	}
	for n, err := range w.d.nodes {
		if err != nil {
			return protocol.ImportedEntry{}, err
		}
		w.at = n
		if err := w.node(n); err != nil {
			return protocol.ImportedEntry{}, w.blame(n, err)
		}
	}
	if err := w.finish(); err != nil {
		return protocol.ImportedEntry{}, w.blame(&nodeRecord{line: w.d.line}, err)
	}
	return protocol.ImportedEntry{SessionID: info.ID, Title: info.Title, Nodes: int64(w.tx.State.Nodes),
		Branches: w.chain - int64(len(w.followed)), Summaries: w.summary}, nil
}

// blame turns what the store refuses into a fault of the source; what is the
// store's own trouble stays what it is.
func (w *draftWriter) blame(n *nodeRecord, err error) error {
	if _, ok := errors.AsType[*fault](err); ok {
		return err
	}
	switch protocol.CodeOf(err) {
	case protocol.CodeInvalidParams, protocol.CodeUnknownNode, protocol.CodeNotAChainNode, protocol.CodeTurnRunning, protocol.CodeIDConflict,
		protocol.CodeNameConflict, protocol.CodeUnknownBranch, protocol.CodeUnknownSummary:
		f := faultf(n.line, "%v", err)
		f.id = n.ID
		return f
	}
	return err
}

// seq returns the number of a node that was written before.
func (w *draftWriter) seq(id, what string) (store.Seq, error) {
	seq, ok := w.ids[id]
	if !ok {
		return 0, faultf(w.line(), "%s %q is not there, or comes later", what, id)
	}
	return seq, nil
}

// known returns the number of a node, 0 if it is not there.
func (w *draftWriter) known(id string) store.Seq {
	if id == "" {
		return 0
	}
	return w.ids[id]
}

func (w *draftWriter) line() int64 {
	if w.at == nil {
		return w.d.line
	}
	return w.at.line
}

func (w *draftWriter) node(n *nodeRecord) error {
	if n.ID == "" {
		return faultf(n.line, "a node has no id")
	}
	if _, taken := w.ids[n.ID]; taken {
		return faultf(n.line, "node id %q occurs twice", n.ID)
	}
	if err := checkRecord(n); err != nil {
		return err
	}
	var pred, caller store.Seq
	var err error
	if n.Predecessor != "" || n.Kind.OnChain() {
		if pred, err = w.seq(n.Predecessor, "predecessor"); err != nil {
			return err
		}
	}
	if n.Caller != "" {
		if caller, err = w.seq(n.Caller, "caller"); err != nil {
			return err
		}
	}
	spec := n.spec(pred, caller)
	if spec.Content.Reads, err = w.reads(n); err != nil {
		return err
	}
	if s := spec.Content.Source; s != nil && s.SessionID == w.original {
		info, err := w.tx.Info()
		if err != nil {
			return err
		}
		spec.Content.Source = &store.Source{SessionID: info.ID, NodeID: s.NodeID}
	}
	var sk store.Skeleton
	if n.Kind == protocol.KindSummary {
		sk, err = w.putSummary(n, spec)
	} else {
		sk, err = w.tx.Append(spec)
	}
	if err != nil {
		return err
	}
	w.ids[sk.ID] = sk.Seq
	if sk.Kind.OnChain() {
		w.chain++
		if sk.Caller == 0 {
			w.followed[sk.Predecessor] = true
		}
	}
	if err := w.pairs(n, sk); err != nil {
		return err
	}
	return w.mark(n, sk)
}

// checkRecord refuses what the store would take and could not use.
func checkRecord(n *nodeRecord) error {
	switch n.Kind {
	case protocol.KindUser, protocol.KindAssistant, protocol.KindAttach, protocol.KindTool, protocol.KindCall, protocol.KindNotice:
		if n.Covers != nil || n.Void || n.Undone {
			return faultf(n.line, "node %q covers others, or was undone, and is no summary", n.ID)
		}
	case protocol.KindSummary:
		if n.Covers == nil {
			return faultf(n.line, "summary %q covers nothing", n.ID)
		}
	case protocol.KindRoot:
		return faultf(n.line, "node %q is a second root", n.ID)
	default:
		return faultf(n.line, "node %q has the unknown kind %q", n.ID, n.Kind)
	}
	if !n.Status.Final() {
		return faultf(n.line, "node %q has the status %q: only whole nodes can be imported", n.ID, n.Status)
	}
	return nil
}

// pairs keeps account of the tool nodes that assistants name: each must be there
// and be called by that assistant.
func (w *draftWriter) pairs(n *nodeRecord, sk store.Skeleton) error {
	if by, ok := w.calls[n.ID]; ok {
		if sk.Caller != by {
			return faultf(n.line, "node %q is named as a tool by another node than its caller", n.ID)
		}
		delete(w.calls, n.ID)
	}
	for _, p := range n.Content {
		if p.Type != protocol.PartToolCall || p.NodeID == "" {
			continue
		}
		if _, taken := w.ids[p.NodeID]; taken {
			return faultf(n.line, "tool node %q is not called by node %q", p.NodeID, n.ID)
		}
		w.calls[p.NodeID] = sk.Seq
	}
	return nil
}

// mark sets what a node has beside its records.
func (w *draftWriter) mark(n *nodeRecord, sk store.Skeleton) error {
	var err error
	if n.Redacted {
		if sk, err = w.tx.MarkRedacted(sk); err != nil {
			return err
		}
	}
	if n.Pinned {
		if err := w.tx.Pin(sk, true); err != nil {
			return err
		}
	}
	if n.Undone {
		if err := w.tx.Undo(sk, true); err != nil {
			return err
		}
	}
	for _, t := range n.texts {
		sum, err := w.tx.KeepText(t.Text)
		if err != nil {
			return err
		}
		if sum != t.SHA256 {
			return faultf(n.line, "the text with SHA-256 %s has another one: it was changed", t.SHA256)
		}
	}
	return nil
}

func (w *draftWriter) reads(n *nodeRecord) ([]store.Run, error) {
	var runs []store.Run
	for _, r := range n.Reads {
		last, err := w.seq(r.Last, "read node")
		if err != nil {
			return nil, err
		}
		first := last
		if r.First != r.Last {
			if first, err = w.seq(r.First, "read node"); err != nil {
				return nil, err
			}
			if err := w.stretch(first, last); err != nil {
				return nil, err
			}
		}
		runs = append(runs, store.Run{First: first, Last: last})
	}
	return runs, nil
}

// stretch refuses two nodes that are not a stretch of one chain.
func (w *draftWriter) stretch(first, last store.Seq) error {
	a, err1 := w.tx.Skeleton(first)
	b, err2 := w.tx.Skeleton(last)
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	ok := a.Kind.OnChain() && b.Kind.OnChain()
	if ok {
		var err error
		if ok, err = w.tx.IsAncestor(a, b); err != nil {
			return err
		}
	}
	if !ok {
		return faultf(w.line(), "node %q is not on the chain of node %q", a.ID, b.ID)
	}
	return nil
}

// putSummary stores a summary after proving that it covers what the source says:
// the same nodes, told by their digest.
func (w *draftWriter) putSummary(n *nodeRecord, spec store.NodeSpec) (store.Skeleton, error) {
	w.summary++
	if n.Void {
		spec.Content.Covers = &store.Covers{First: w.known(n.Covers.First), Last: w.known(n.Covers.Last), Count: n.Covers.Count,
			Digest: n.Covers.Digest, Tokens: n.Covers.Tokens}
		return w.tx.AppendVoid(spec, n.VoidReason)
	}
	first, err := w.seq(n.Covers.First, "first covered node")
	if err != nil {
		return store.Skeleton{}, err
	}
	last, err := w.seq(n.Covers.Last, "last covered node")
	if err != nil {
		return store.Skeleton{}, err
	}
	sk, covers, err := w.tx.RestoreSummary(spec, first, last)
	switch {
	case err != nil:
		return sk, err
	case n.Covers.Digest != "" && (covers.Digest != n.Covers.Digest || covers.Count != n.Covers.Count):
		return sk, faultf(n.line, "summary %q does not cover the nodes that its count and digest tell of", n.ID)
	case n.Predecessor != "" && sk.Predecessor != spec.Predecessor:
		return sk, faultf(n.line, "summary %q does not stand before its first covered node", n.ID)
	}
	return sk, nil
}

// finish sets what needs all nodes.
func (w *draftWriter) finish() error {
	w.at = nil
	tx, d := w.tx, w.d
	if d.want != 0 && tx.State.Nodes != d.want {
		return faultf(d.line, "the session has %d nodes and %d are there: the file was cut or changed", d.want, tx.State.Nodes)
	}
	for id := range w.calls {
		return faultf(d.line, "tool node %q is named and not there", id)
	}
	if d.titleFrom != "" {
		seq, err := w.seq(d.titleFrom, "the node of the title")
		if err != nil {
			return err
		}
		info, err := tx.Info()
		if err != nil {
			return err
		}
		info.TitleFrom = seq
		if err := tx.SetInfo(info); err != nil {
			return err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(d.branches)) {
		sk, err := w.lookup(d.branches[name], "the node of branch "+name)
		if err == nil && !sk.Kind.OnChain() {
			err = faultf(d.line, "branch %q refers to a %s", name, sk.Kind)
		}
		if err == nil {
			err = tx.Name(name, sk)
		}
		if err != nil {
			return err
		}
	}
	head, err := w.lookup(d.head, "HEAD")
	if err != nil {
		return err
	}
	if d.branch != "" && d.branches[d.branch] != d.head {
		return faultf(d.line, "HEAD is attached to branch %q, which is elsewhere or not there", d.branch)
	}
	if err := tx.SetHead(head, d.branch); err != nil {
		return err
	}
	if d.active != "" {
		sk, err := w.lookup(d.active, "the active summary")
		if err == nil {
			err = tx.Activate(sk)
		}
		if err != nil {
			return err
		}
	}
	return w.last()
}

// last sets tips, totals and the queue.
func (w *draftWriter) last() error {
	tips := make([]store.Seq, 0, len(w.d.tips))
	for _, id := range w.d.tips {
		sk, err := w.lookup(id, "tip")
		if err != nil {
			return err
		}
		if !sk.Kind.OnChain() || w.followed[sk.Seq] {
			return faultf(w.d.line, "node %q is listed as a tip and is none", id)
		}
		tips = append(tips, sk.Seq)
	}
	if err := w.tx.UseTips(tips); err != nil {
		return err
	}
	if w.d.total != nil {
		w.tx.SetTotal(*w.d.total)
	}
	places := map[uint64]bool{}
	for _, q := range w.d.queue {
		after, err := w.lookup(q.AfterID, "the node that a send waits for")
		if err != nil {
			return err
		}
		if places[q.Place] || q.Place == 0 {
			return faultf(w.d.line, "two sends wait at place %d", q.Place)
		}
		places[q.Place] = true
		q.After, q.Number, q.Held = after.Seq, q.Place, true
		if err := w.tx.Requeue(q.Queued); err != nil {
			return err
		}
	}
	return nil
}

// lookup returns the skeleton of a node of the draft.
func (w *draftWriter) lookup(id, what string) (store.Skeleton, error) {
	seq, ok := w.ids[id]
	if !ok {
		return store.Skeleton{}, faultf(w.d.line, "%s %q is not there", what, id)
	}
	return w.tx.Skeleton(seq)
}
