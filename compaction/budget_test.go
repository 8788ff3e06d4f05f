package compaction

import (
	"testing"

	"convls/model"
	"convls/protocol"
)

// TestBudget: no setting makes the limit or the trigger zero or less (faults 27, 39).
func TestBudget(t *testing.T) {
	for _, row := range []struct {
		name              string
		window, maxOutput int64
		settings          protocol.CompactionSettings
		reserve, trigger  int64
	}{
		{"as usual", 200_000, 16_000, protocol.CompactionSettings{}, 16_000, 147_200},
		{"no output limit", 32_000, 0, protocol.CompactionSettings{}, 4_000, 22_400},
		{"no output limit of a large window", 1_000_000, 0, protocol.CompactionSettings{}, 8_192, 793_446},
		{"less than no output limit", 8_000, -1, protocol.CompactionSettings{}, 1_000, 5_600},
		{"an output limit of the window", 8_000, 8_000, protocol.CompactionSettings{}, 4_000, 3_200},
		{"an output limit beyond the window", 8_000, 100_000, protocol.CompactionSettings{}, 4_000, 3_200},
		{"no window", 0, 0, protocol.CompactionSettings{}, 4_096, 22_937},
		{"a trigger", 8_000, 2_000, protocol.CompactionSettings{Trigger: 0.5}, 2_000, 3_000},
		{"a trigger that is none", 8_000, 2_000, protocol.CompactionSettings{Trigger: 7}, 2_000, 4_800},
		{"a tiny window", 1, 1, protocol.CompactionSettings{}, 0, 0},
	} {
		t.Run(row.name, func(t *testing.T) {
			b := Budget(100, row.window, row.maxOutput, "estimate", row.settings)
			if b.OutputReserve != row.reserve || b.TriggerAt != row.trigger || b.Limit != b.Window-b.OutputReserve || b.Limit <= 0 {
				t.Errorf("the budget is %+v", b)
			}
			for _, keep := range []int64{0, 1, 1_000_000, -1} {
				if k := keepRecent(b, protocol.CompactionSettings{KeepRecentTokens: keep}); k < 0 || k > b.Limit/4 {
					t.Errorf("of a limit of %d, the setting %d keeps %d", b.Limit, keep, k)
				}
			}
		})
	}
}

// TestKeepRecent: a tenth of the window, within bounds, and a quarter of the limit at
// most (design.md, "Compaction").
func TestKeepRecent(t *testing.T) {
	for _, row := range []struct{ window, setting, want int64 }{
		{200_000, 0, 20_000}, {50_000, 0, 8_000}, {1_000_000, 0, 40_000}, {8_000, 0, 1_750}, {200_000, 500, 500}, {200_000, 100_000, 48_000},
	} {
		b := Budget(0, row.window, 1, "", protocol.CompactionSettings{})
		b.Limit = row.window - min(row.window/8, 8_000)
		if got := keepRecent(b, protocol.CompactionSettings{KeepRecentTokens: row.setting}); got != row.want {
			t.Errorf("a window of %d with the setting %d keeps %d, want %d", row.window, row.setting, got, row.want)
		}
	}
}

// TestSummariserCap: what a summariser may answer is within what it can write, and
// never nothing (fault 35).
func TestSummariserCap(t *testing.T) {
	for _, row := range []struct{ window, maxOutput, want int64 }{
		{8_000, 2_000, 2_000}, {8_000, 8_000, 2_666}, {32_000, 32_000, 8_192}, {200_000, 64_000, 8_192}, {200_000, 4_096, 4_096}, {300, 100, 256}, {8_000, 0, 256}, {8_000, -5, 256},
	} {
		a := &asker{caps: model.Capabilities{Window: row.window, MaxOutput: row.maxOutput}}
		if got := a.maxOutput(); got != row.want {
			t.Errorf("with a window of %d and an output of %d: %d, want %d", row.window, row.maxOutput, got, row.want)
		}
	}
}
