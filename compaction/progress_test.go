package compaction

import (
	"context"
	"slices"
	"testing"

	"convls/store"
)

// TestWaitTellsProgress checks that whoever waits is told of every call of the
// summariser, while it is made.
func TestWaitTellsProgress(t *testing.T) {
	f := newFixture(t, 20)
	f.room = 600
	seen := make(chan int, 64)
	f.summarise = func(ctx context.Context, q Question) (Answer, error) {
		<-seen // of this call
		return said(ctx, q)
	}
	keep := int64(0)
	ask := Request{}
	ask.Spec.KeepRecentTokens = &keep
	res, err := f.Run(t.Context(), f.sess, store.Request{}, ask, client())
	if err != nil {
		t.Fatal(err)
	}
	var told []int
	if _, err := f.Wait(t.Context(), f.sess, res.CompactionID, func(call, calls int) {
		if call > calls {
			t.Errorf("call %d of %d", call, calls)
		}
		if len(told) == 0 || told[len(told)-1] != call {
			told = append(told, call)
			seen <- call
		}
	}); err != nil {
		t.Fatal(err)
	}
	if len(told) < 3 || !slices.IsSorted(told) || told[0] != 1 || told[len(told)-1] != len(told) {
		t.Errorf("it was told of the calls %v", told)
	}
}
