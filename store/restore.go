package store

import (
	"errors"
	"fmt"

	"convls/protocol"
)

// RestoreSummary writes a summary of another ledger: as [Tx.AppendSummary], with
// the times and counts that n has. It returns what it proved the summary to cover,
// for the caller to compare with what the other ledger says.
func (tx *Tx) RestoreSummary(n NodeSpec, first, last Seq) (Skeleton, Covers, error) {
	a, err1 := tx.Skeleton(first)
	b, err2 := tx.Skeleton(last)
	if err := errors.Join(err1, err2); err != nil {
		return Skeleton{}, Covers{}, err
	}
	covers, err := tx.proveCovers(a, b, 0)
	if err != nil {
		return Skeleton{}, covers, err
	}
	n.Kind, n.Predecessor, n.Content.Covers = protocol.KindSummary, a.Predecessor, &covers
	sk, err := tx.append(n)
	if err != nil {
		return sk, covers, err
	}
	return sk, covers, tx.putCovers(sk.Seq, covers)
}

// AppendVoid writes a summary that had lost a covered node in the ledger that it
// comes from. Its covers are taken as n.Content has them, unproved: they may name
// nodes that are gone, as 0. why is what [view.VoidReason] will tell.
func (tx *Tx) AppendVoid(n NodeSpec, why string) (Skeleton, error) {
	if n.Kind != protocol.KindSummary || n.Content.Covers == nil {
		return Skeleton{}, protocol.Errorf(protocol.CodeInvalidParams, "node %q is no summary and can not be void", n.ID)
	}
	sk, err := tx.append(n)
	if err != nil {
		return sk, err
	}
	return sk, errors.Join(tx.putCovers(sk.Seq, *n.Content.Covers), tx.putVoid(sk.Seq, why))
}

// MarkRedacted marks a node that this transaction appended as one whose content
// was taken away where it comes from: what was appended is the tombstone.
func (tx *Tx) MarkRedacted(sk Skeleton) (Skeleton, error) {
	if sk.Seq < tx.before.Next {
		return sk, fmt.Errorf("node %q is in the ledger already: it is redacted by Redact", sk.ID)
	}
	sk.Redacted = true
	return sk, tx.putSkeleton(sk)
}

// UseTips sets the order in which tips were last used, last used last. The caller
// knows that these are the tips after the transaction.
func (tx *Tx) UseTips(tips []Seq) error {
	for _, seq := range tips {
		tx.State.Uses++
		if err := tx.putLeaf(seq, tx.State.Uses); err != nil {
			return err
		}
	}
	return nil
}

// SetTotal sets what the session has used in all: more than the sum over its
// nodes where some were deleted.
func (tx *Tx) SetTotal(t Totals) { tx.State.Total = t.bounded() }
