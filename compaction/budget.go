package compaction

import (
	"convls/model"
	"convls/protocol"
)

// The shares of a window, where no setting says otherwise.
const (
	// DefaultTrigger is the share of the window, less the output reserve, at which a
	// context is compacted before the next model call.
	DefaultTrigger = 0.8
	// Advised is the share at which clients are told that it would be time.
	Advised = 0.7
	// target is the share that a cut aims at.
	target = 0.55
)

// Budget returns how full a window is. window and maxOutput are tokens, 0 where
// unknown; a reserve that would leave less than half of the window for the
// conversation is cut down to that half, so that an odd setting never makes the
// limit zero or negative.
func Budget(used, window, maxOutput int64, source string, s protocol.CompactionSettings) protocol.Budget {
	if window <= 0 {
		window = model.DefaultWindow
	}
	reserve := maxOutput
	if reserve <= 0 {
		reserve = min(window/8, 8_192)
	}
	reserve = min(reserve, window/2)
	trigger := s.Trigger
	if trigger <= 0 || trigger > 1 {
		trigger = DefaultTrigger
	}
	b := protocol.Budget{Used: used, Window: window, OutputReserve: reserve, Limit: window - reserve, Source: source}
	b.TriggerAt = int64(float64(b.Limit) * trigger)
	if b.Limit > 0 {
		b.Percent = float64(used) * 100 / float64(b.Limit)
	}
	return b
}

// keepRecent returns how many tokens of recent messages stay verbatim: the
// setting, or a tenth of the window, within bounds that make sense for a person
// and for the window.
func keepRecent(b protocol.Budget, s protocol.CompactionSettings) int64 {
	keep := s.KeepRecentTokens
	if keep <= 0 {
		keep = min(max(b.Window/10, 8_000), 40_000)
	}
	return min(keep, b.Limit/4)
}

// summaryLimit returns how many tokens a summary may have.
func summaryLimit(b protocol.Budget) int {
	return int(min(max(b.Limit/8, 1_000), 16_000, b.Limit/3))
}

// largestSummary returns how many tokens a summary may have at most.
func largestSummary(b protocol.Budget) int { return int(b.Limit / 3) }

// pinnedLimit returns how many tokens of pinned messages a summary carries on.
func pinnedLimit(b protocol.Budget) int { return int(b.Limit / 8) }
