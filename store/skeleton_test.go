package store

import (
	"math"
	"testing"

	"convls/protocol"
)

// Sums of usage end at the greatest number that the wire can carry, and nothing that a
// provider says makes them smaller.
func TestTotalsDoNotWrap(t *testing.T) {
	full := Totals{mostTotal, mostTotal, mostTotal, mostTotal}
	for name, c := range map[string]struct {
		before Totals
		used   *protocol.Usage
		after  Totals
	}{
		"nothing":  {Totals{1, 2, 3, 4}, nil, Totals{1, 2, 3, 4}},
		"usual":    {Totals{1, 2, 3, 4}, &protocol.Usage{InputTokens: 10, OutputTokens: 20, CostUSD: 0.5, Calls: 2}, Totals{11, 22, 5, 500_004}},
		"negative": {Totals{1, 2, 3, 4}, &protocol.Usage{InputTokens: -10, OutputTokens: math.MinInt64, CostUSD: -3, Calls: -1}, Totals{1, 2, 4, 4}},
		"no money": {Totals{1, 2, 3, 4}, &protocol.Usage{CostUSD: math.NaN()}, Totals{1, 2, 4, 4}},
		"absurd":   {full, &protocol.Usage{InputTokens: math.MaxInt64, OutputTokens: math.MaxInt64, CostUSD: math.Inf(1), Calls: math.MaxInt64}, full},
		"at once":  {Totals{}, &protocol.Usage{InputTokens: math.MaxInt64, OutputTokens: math.MaxInt64, CostUSD: 1e300, Calls: math.MaxInt64}, full},
	} {
		got := c.before.add(c.used)
		want(t, name, got, c.after)
		if u := got.Usage(); u.InputTokens < 0 || u.OutputTokens < 0 || u.CostUSD < 0 || u.Calls < 0 {
			t.Errorf("%s: on the wire %+v", name, u)
		}
	}
}
