package store

import (
	"convls/protocol"
)

// RedactedText stands where a person had content taken away.
const RedactedText = "[redacted]"

// Redact replaces a node's content by a tombstone. Its id and edges stay. In the
// same batch every summary that covers it, or covers what called it, is voided and
// gets a tombstone too, and a title that was taken from it goes.
func (tx *Tx) Redact(sk Skeleton) error {
	sk, err := tx.Skeleton(sk.Seq)
	if err != nil {
		return err
	}
	switch {
	case sk.Status == protocol.StatusOpen:
		return protocol.Errorf(protocol.CodeTurnRunning, "node %q is being written: cancel its turn first", sk.ID)
	case sk.Kind == protocol.KindRoot:
		return protocol.Errorf(protocol.CodeNotAChainNode, "the root has no content: the system prompt is changed with session/configure")
	case sk.Redacted:
		return nil
	}
	if sk.Kind == protocol.KindSummary {
		if err := tx.void(sk.Seq, "it was redacted"); err != nil {
			return err
		}
	} else if err := tx.redactSummaries(sk); err != nil {
		return err
	}
	if err := tx.tombstone(sk); err != nil {
		return err
	}
	info, err := tx.Info()
	if err != nil && !isDamage(err) {
		return err
	}
	if err == nil && info.TitleFrom == sk.Seq {
		info.Title, info.TitleFrom = RedactedText, 0
		if err := tx.SetInfo(info); err != nil {
			return err
		}
	}
	tx.State.Removals++
	tx.Emit(protocol.Event{Type: protocol.EventNodeRedacted, NodeID: sk.ID})
	return nil
}

// redactSummaries voids and scrubs every summary that may hold what sk said.
func (tx *Tx) redactSummaries(sk Skeleton) error {
	holders, err := tx.holders(sk)
	if err != nil {
		return err
	}
	for seq, err := range tx.Summaries() {
		if err != nil {
			return err
		}
		for _, h := range holders {
			covers, err := tx.mayCover(seq, h)
			if err != nil {
				return err
			}
			if !covers {
				continue
			}
			if err := tx.redactSummary(seq, "covered node "+h.ID+" was redacted"); err != nil {
				return err
			}
			break
		}
	}
	return nil
}

func (tx *Tx) redactSummary(seq Seq, why string) error {
	if err := tx.void(seq, why); err != nil {
		return err
	}
	summary, err := tx.Skeleton(seq)
	if err != nil {
		if isDamage(err) {
			return nil // nobody can read it
		}
		return err
	}
	if summary.Redacted {
		return nil
	}
	return tx.tombstone(summary)
}

// holders returns the chain nodes as part of whose content s can have been read:
// the one that it hangs off, and where that stands in the subtree of a call, the
// one that the caller hangs off, and so on.
func (v *view) holders(s Skeleton) ([]Skeleton, error) {
	var holders []Skeleton
	seen := map[Seq]bool{}
	for from := []Skeleton{s}; len(from) > 0; {
		owner, err := v.Owner(from[0])
		if err != nil {
			return nil, err
		}
		from = from[1:]
		if seen[owner.Seq] {
			continue
		}
		holders = append(holders, owner)
		for at := owner; at.Called && !seen[at.Seq]; {
			seen[at.Seq] = true
			if at.Caller != 0 {
				caller, err := v.Skeleton(at.Caller)
				if err != nil {
					return nil, err
				}
				from = append(from, caller)
			}
			if at, err = v.ancestor(at, at.Predecessor); err != nil {
				return nil, err
			}
		}
		seen[owner.Seq] = true
	}
	return holders, nil
}

// mayCover reports whether chain node s is one of the nodes that summary seq
// covers. Where that can not be told any more, because covered nodes were deleted
// or records are damaged, it says yes if it can have been: better a summary is
// scrubbed in vain than that it keeps what a person had taken away.
func (v *view) mayCover(seq Seq, s Skeleton) (bool, error) {
	c, err := v.Covers(seq)
	if err != nil {
		return isDamage(err), unlessDamage(err)
	}
	first, err := v.Skeleton(c.First)
	switch {
	case protocol.CodeOf(err) == protocol.CodeUnknownNode:
		return false, nil // it is gone, and all that followed it
	case err != nil:
		return isDamage(err), unlessDamage(err)
	case s.Depth < first.Depth || s.Depth-first.Depth >= c.Count:
		return false, nil
	}
	if last, err := v.Skeleton(c.Last); err == nil {
		on, err := v.IsAncestor(s, last)
		return on || isDamage(err), unlessDamage(err)
	} else if !isDamage(err) {
		return false, err
	}
	on, err := v.IsAncestor(first, s)
	return on || isDamage(err), unlessDamage(err)
}

func unlessDamage(err error) error {
	if isDamage(err) {
		return nil
	}
	return err
}

// tombstone replaces a node's content and keeps what edges and accounts need.
func (tx *Tx) tombstone(sk Skeleton) error {
	c, err := tx.Content(sk.Seq)
	if err != nil {
		c = &Content{} // what can not be read can still be replaced
	}
	part := protocol.Part{Type: protocol.PartText, Text: RedactedText}
	keep := Content{Parts: []protocol.Part{part}, Model: c.Model, Usage: c.Usage, Reads: c.Reads, Call: c.Call, Covers: c.Covers,
		DurationMS: c.DurationMS, StopReason: c.StopReason}
	if sk.Kind == protocol.KindTool {
		keep.Parts = redactedCall(c.Parts)
	}
	if sk.Kind == protocol.KindAssistant {
		// The calls are other nodes: their places stay, so that the pairs stay whole.
		for _, p := range c.Parts {
			if p.Type == protocol.PartToolCall {
				keep.Parts = append(keep.Parts, protocol.Part{Type: protocol.PartToolCall, NodeID: p.NodeID})
			}
		}
	}
	sk.Redacted, sk.Tokens, sk.Tokenizer = true, 0, ""
	body, err := encodeContent(&keep)
	if err != nil {
		return err
	}
	return tx.putNode(sk, body, tx.generationOf(sk.Seq))
}

// redactedCall keeps the shape of a call and its result, because a provider
// refuses one without the other.
func redactedCall(parts []protocol.Part) []protocol.Part {
	var keep []protocol.Part
	for _, p := range parts {
		switch p.Type {
		case protocol.PartToolCall:
			keep = append(keep, protocol.Part{Type: p.Type, CallID: p.CallID, Name: p.Name, Arguments: protocol.Raw(`{}`)})
		case protocol.PartToolResult:
			keep = append(keep, protocol.Part{Type: p.Type, CallID: p.CallID, Text: RedactedText, IsError: p.IsError})
		}
	}
	return keep
}
