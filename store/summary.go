package store

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	"convls/protocol"
)

// Covers names exactly the chain nodes that a summary stands for: a contiguous
// stretch of one chain. Predecessors never change, so first and last name the
// same nodes for ever, whatever HEAD and the other branches do.
type Covers struct {
	First Seq    `json:"first"`
	Last  Seq    `json:"last"`
	Count uint64 `json:"count"`
	// Digest is a hash over the ids in order, each step over the one before:
	// SHA-256(digest so far, id), so that covering k more nodes costs k.
	Digest string `json:"digest"`
	// Tokens sums the tokens of the covered nodes as they were counted when they
	// were written.
	Tokens uint64 `json:"tokens,omitzero"`
}

// SummarySpec describes a summary to append.
type SummarySpec struct {
	ID string
	// First and Last are the ends of the covered stretch, both included. Last must
	// have First on its spine; the root can not be covered.
	First, Last Seq
	// Content is the summary's; Covers is set here.
	Content   Content
	Tokens    int
	Tokenizer string
	// Previous, if not 0, is a summary whose covers begin at First and end on the
	// way to Last: its digest is continued.
	Previous Seq
	// Activate makes it the session's active summary.
	Activate bool
}

// AppendSummary writes a summary: one node, before the first covered one, and
// nothing else changes. HEAD stays.
func (tx *Tx) AppendSummary(s SummarySpec) (Skeleton, error) {
	first, err := tx.Skeleton(s.First)
	if err != nil {
		return first, err
	}
	last, err := tx.Skeleton(s.Last)
	if err != nil {
		return last, err
	}
	covers, err := tx.proveCovers(first, last, s.Previous)
	if err != nil {
		return Skeleton{}, err
	}
	s.Content.Covers = &covers
	sk, err := tx.append(NodeSpec{ID: s.ID, Kind: protocol.KindSummary, Predecessor: first.Predecessor, Status: protocol.StatusSealed,
		Content: s.Content, Tokens: s.Tokens, Tokenizer: s.Tokenizer})
	if err != nil {
		return sk, err
	}
	if err := tx.putCovers(sk.Seq, covers); err != nil {
		return sk, err
	}
	if s.Activate {
		err = tx.Activate(sk)
	}
	return sk, err
}

// proveCovers checks that first..last is a stretch of one chain of whole nodes,
// and counts and digests it. It reads only what previous did not cover.
func (tx *Tx) proveCovers(first, last Skeleton, previous Seq) (Covers, error) {
	if !first.Kind.OnChain() || !last.Kind.OnChain() || first.Kind == protocol.KindRoot {
		return Covers{}, protocol.Errorf(protocol.CodeNotAChainNode, "a summary covers chain nodes after the root, not %s to %s", first.Kind, last.Kind)
	}
	if ok, err := tx.IsAncestor(first, last); err != nil {
		return Covers{}, err
	} else if !ok {
		return Covers{}, protocol.Errorf(protocol.CodeInvalidParams, "node %q is not on the chain of node %q", first.ID, last.ID)
	}
	c := Covers{First: first.Seq, Last: last.Seq, Count: last.Depth - first.Depth + 1}
	from := first
	if previous != 0 {
		old, err := tx.Covers(previous)
		if err != nil {
			return c, err
		}
		if old.First != first.Seq {
			return c, fmt.Errorf("summary %d does not begin at node %q", previous, first.ID)
		}
		end, err := tx.Skeleton(old.Last)
		if err != nil {
			return c, err
		}
		if ok, err := tx.IsAncestor(end, last); err != nil {
			return c, err
		} else if !ok || end.Seq == last.Seq {
			return c, fmt.Errorf("summary %d does not end before node %q", previous, last.ID)
		}
		c.Digest, c.Tokens = old.Digest, old.Tokens
		if from, err = tx.AncestorAt(last, end.Depth+1); err != nil {
			return c, err
		}
	}
	var ids []string
	for s, err := range tx.Path(from, last) {
		if err != nil {
			return c, err
		}
		if s.Status == protocol.StatusOpen {
			return c, protocol.Errorf(protocol.CodeTurnRunning, "node %q is being written and can not be covered", s.ID)
		}
		ids = append(ids, s.ID)
		c.Tokens += s.Tokens
	}
	slices.Reverse(ids)
	c.Digest = extendDigest(c.Digest, ids)
	return c, nil
}

// extendDigest continues a digest over covered ids.
func extendDigest(digest string, ids []string) string {
	sum, err := hex.DecodeString(digest)
	if err != nil {
		sum = nil
	}
	for _, id := range ids {
		h := sha256.New()
		h.Write(sum)
		h.Write([]byte(id))
		sum = h.Sum(nil)
	}
	return hex.EncodeToString(sum)
}

// Activate makes a summary the one that the rolling policy consults; the zero
// Skeleton makes it none. A void summary is refused.
func (tx *Tx) Activate(sk Skeleton) error {
	if sk.Seq != 0 {
		if sk.Kind != protocol.KindSummary {
			return protocol.Errorf(protocol.CodeUnknownSummary, "node %q is a %s, not a summary", sk.ID, sk.Kind)
		}
		if void, err := tx.Void(sk.Seq); err != nil {
			return err
		} else if void {
			return protocol.Errorf(protocol.CodeUnknownSummary, "summary %q lost a covered node and can not be active again", sk.ID)
		}
	}
	tx.State.Active = sk.Seq
	e := protocol.Event{Type: protocol.EventSummaryActive, SummaryID: sk.ID}
	if sk.ID != "" {
		e.Summaries = []string{sk.ID}
	}
	tx.Emit(e)
	return nil
}

func (tx *Tx) putCovers(seq Seq, c Covers) error {
	b, err := protocol.Marshal(c)
	if err != nil {
		return fmt.Errorf("encode what a summary covers: %w", err)
	}
	return tx.batch.Set(key(famSummary, tx.session, uint64(seq)), frame(b), nil)
}

// Covers returns what a summary covers. It does not read the summary's text: what
// a summary covers is known even where that is damaged.
func (v *view) Covers(seq Seq) (Covers, error) {
	b, err := getCopy(v.r, key(famSummary, v.session, uint64(seq)))
	if errors.Is(err, pebble.ErrNotFound) {
		return Covers{}, protocol.Errorf(protocol.CodeUnknownSummary, "node %d of session %s is not a summary", seq, v.id)
	}
	var c Covers
	if err == nil {
		c, err = readCovers(b)
	}
	if err != nil {
		return c, v.damaged(seq, "", "what it covers,", err)
	}
	return c, nil
}

func readCovers(b []byte) (Covers, error) {
	var c Covers
	body, err := unframe(b)
	if err == nil {
		err = protocol.Unmarshal(body, &c)
	}
	return c, err
}

func (tx *Tx) putVoid(seq Seq, why string) error {
	return tx.batch.Set(key(famVoid, tx.session, uint64(seq)), frame([]byte(why)), nil)
}

// VoidReason tells why summary seq is void, and false if it is not.
func (v *view) VoidReason(seq Seq) (why string, void bool, err error) {
	b, err := getCopy(v.r, key(famVoid, v.session, uint64(seq)))
	if errors.Is(err, pebble.ErrNotFound) {
		return "", false, nil
	}
	if err != nil {
		return "", false, fmt.Errorf("read why summary %d is void: %w", seq, err)
	}
	body, err := unframe(b)
	if err != nil {
		return "unknown: the record is damaged", true, nil
	}
	return string(body), true, nil
}

// CoveredIDs returns the ids of the covered nodes in order.
func (v *view) CoveredIDs(c Covers) ([]string, error) {
	first, err := v.Skeleton(c.First)
	if err != nil {
		return nil, err
	}
	last, err := v.Skeleton(c.Last)
	if err != nil {
		return nil, err
	}
	ids := make([]string, 0, min(c.Count, 1<<20))
	for s, err := range v.Path(first, last) {
		if err != nil {
			return nil, err
		}
		ids = append(ids, s.ID)
	}
	slices.Reverse(ids)
	return ids, nil
}
