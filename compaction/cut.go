package compaction

import (
	"convls/protocol"
)

// findCut returns the place of the first unit that stays, so that what stays has
// keep tokens at most; start if nothing is to be covered. What stays begins with a
// turn: the cut moves on to the next one's beginning. Where one turn alone is
// larger than keep, it is cut between its model calls. The last unit always stays,
// and so does everything from the first that is still being written.
func findCut(units []unit, start int, keep int64) int {
	last := len(units) - 1
	for i := start; i <= last; i++ {
		if units[i].open {
			last = i
			break
		}
	}
	if last <= start {
		return start
	}
	cut, kept := len(units)-1, units[len(units)-1].tokens
	for cut > start && kept+units[cut-1].tokens <= keep {
		cut--
		kept += units[cut].tokens
	}
	cut = min(cut, last)
	if cut == start {
		return start
	}
	for i := cut; i <= last; i++ {
		if begins(units[i].node.Kind) {
			return i
		}
	}
	return cut
}

// begins reports whether a turn can begin with a node of this kind.
func begins(k protocol.Kind) bool { return k == protocol.KindUser || k == protocol.KindAttach }
