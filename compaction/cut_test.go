package compaction

import (
	"math/rand/v2"
	"testing"

	"convls/protocol"
	"convls/store"
)

// chainOf makes units from a word: u is a message, a a reply, A one with tools, o one
// that is being written; each has the tokens beside it.
func chainOf(kinds string, tokens ...int64) []unit {
	units := make([]unit, len(kinds))
	for i, k := range kinds {
		kind := protocol.KindAssistant
		if k == 'u' {
			kind = protocol.KindUser
		}
		units[i] = unit{node: store.Skeleton{Seq: store.Seq(i + 1), Kind: kind}, tokens: 100, open: k == 'o'}
		if i < len(tokens) {
			units[i].tokens = tokens[i]
		}
	}
	return units
}

// TestFindCut: what stays fits, begins with a turn where it can, and is never nothing
// (faults 6, 7, 38, 39).
func TestFindCut(t *testing.T) {
	for _, row := range []struct {
		name  string
		units []unit
		start int
		keep  int64
		want  int
	}{
		{"all fits", chainOf("uaua"), 0, 400, 0},
		{"one turn fits", chainOf("uaua"), 0, 200, 2},
		{"a turn and a half fit: on to the turn's beginning", chainOf("uauaua"), 0, 300, 4},
		{"half a turn fits: between its calls", chainOf("uaua"), 0, 150, 3},
		{"nothing fits: the last stays", chainOf("uaua"), 0, 0, 3},
		{"fault 39: less than nothing", chainOf("uaua"), 0, -5, 3},
		{"fault 38: the last alone is larger", chainOf("uau", 10, 10, 9_000), 0, 200, 2},
		{"one turn with many calls", chainOf("uaAAAA"), 0, 250, 4},
		{"a long turn after others: inside it", chainOf("uauAAAA"), 0, 250, 5},
		{"a message waits after a long turn", chainOf("uAAAu"), 0, 150, 4},
		{"what is being written stays", chainOf("uauo"), 0, 0, 3},
		{"nothing after what is being written is covered", chainOf("uaoua"), 0, 0, 2},
		{"all is being written", chainOf("ouaua"), 0, 0, 0},
		{"only what comes after start is covered", chainOf("uauaua"), 2, 1_000, 2},
		{"from a start", chainOf("uauaua"), 2, 200, 4},
		{"one unit", chainOf("u"), 0, 0, 0},
		{"none", nil, 0, 100, 0},
		{"a start at the last", chainOf("ua"), 1, 0, 1},
	} {
		t.Run(row.name, func(t *testing.T) {
			if got := findCut(row.units, row.start, row.keep); got != row.want {
				t.Errorf("the cut is at %d, want %d", got, row.want)
			}
		})
	}
}

// TestFindCutAlways draws chains by lot: the cut is in the chain, never covers the last
// unit or an open one, and keeps no more than it may unless that is one unit or what is
// being written.
func TestFindCutAlways(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 20_000 {
		n := 1 + rng.IntN(12)
		kinds, tokens := "", make([]int64, n)
		for i := range n {
			kinds += string("uaAo"[rng.IntN(4)%(3+rng.IntN(2))])
			tokens[i] = rng.Int64N(500)
		}
		units, start, keep := chainOf(kinds, tokens...), rng.IntN(n), rng.Int64N(1_500)
		cut := findCut(units, start, keep)
		if cut < start || cut >= n {
			t.Fatalf("%s %v from %d, keep %d: the cut is at %d", kinds, tokens, start, keep, cut)
		}
		if cut == start {
			continue
		}
		kept, open := int64(0), false
		for i, u := range units {
			if i < cut && i >= start && u.open {
				t.Fatalf("%s from %d, keep %d: the cut at %d covers what is being written", kinds, start, keep, cut)
			}
			if i >= cut {
				kept, open = kept+u.tokens, open || u.open
			}
		}
		if kept > keep && cut < n-1 && !open {
			t.Fatalf("%s %v from %d, keep %d: the cut at %d keeps %d", kinds, tokens, start, keep, cut, kept)
		}
	}
}
