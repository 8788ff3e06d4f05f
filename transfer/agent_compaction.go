package transfer

import (
	"fmt"

	"convls/protocol"
	"convls/store"
)

// compaction makes a summary of a compaction entry.
//
// firstKeptEntryIndex counts the file's entries from 0, the session's header
// included: the agent itself reads it so when it turns it into an id
// (session-manager.ts, migrateV1ToV2: entries[firstKeptEntryIndex] of all that the
// file holds), and in the sessions that we have it is the index of a user's
// message, which is where the agent cuts, with the header counted and of a reply or a
// tool's result without. From version 2 on firstKeptEntryId names the entry.
//
// The summary stands for everything before that entry: from the first node after
// the root, because a later summary was made from the one before it, to the last
// chain node that nothing was kept of. If the cut falls between a reply and its
// tools' results, the whole reply is kept.
func (a *agentSession) compaction(i int) {
	e := a.entries[i]
	kept, ok := a.firstKept(i)
	if !ok {
		a.leave(e.line, e.ID, "a compaction was left out: the first entry that it keeps is not before it")
		return
	}
	last := a.at[i]
	for j := i; ; j = a.parents[j] {
		if o := a.holds[j]; o != nil && (last == nil || o.depth <= last.depth) {
			last = o.pred
		}
		if j == kept {
			break
		}
	}
	if last == nil {
		a.leave(e.line, e.ID, "a compaction was left out: it keeps everything")
		return
	}
	text := protocol.SummaryMarker + "\n" + e.Summary
	n := &nodeRecord{ID: a.nodeID(e.ID), Kind: protocol.KindSummary, Status: protocol.StatusSealed, CreatedAt: timeOf(e.Timestamp),
		Content:    []protocol.Part{{Type: protocol.PartText, Text: text}},
		Metadata:   map[string]protocol.Raw{"compaction": protocol.Raw("true")},
		Covers:     &coversRecord{First: last.first.node.ID, Last: last.node.ID},
		Provenance: &protocol.Provenance{Trigger: protocol.TriggerImport, Policy: protocol.PolicyRolling, TokensBefore: max(e.TokensBefore, 0)},
		line:       e.line}
	if len(e.Details) > 0 {
		n.Metadata["details"] = e.Details
	}
	if e.FirstKeptEntryIndex != nil {
		n.Metadata["first_kept_entry_index"] = protocol.Raw(fmt.Sprint(*e.FirstKeptEntryIndex))
	}
	if n.ID != e.ID {
		n.ID = store.NewID("sum_")
	}
	a.im.count(n)
	a.summaries[i] = n.ID
	a.steps = append(a.steps, &step{node: n})
}

// firstKept returns the index of the first entry that compaction i keeps, which
// must be on the way from the header to it.
func (a *agentSession) firstKept(i int) (int, bool) {
	e := a.entries[i]
	var kept int
	switch {
	case e.FirstKeptEntryIndex != nil:
		if *e.FirstKeptEntryIndex < 0 || *e.FirstKeptEntryIndex > int64(i) {
			return none, false
		}
		kept = int(*e.FirstKeptEntryIndex)
	case e.FirstKeptEntryID != "":
		k, ok := a.byEntry[e.FirstKeptEntryID]
		if !ok {
			return none, false
		}
		kept = k
	default:
		return none, false
	}
	for j := i; j != none; j = a.parents[j] {
		if j == kept {
			return kept, true
		}
	}
	return none, false
}
