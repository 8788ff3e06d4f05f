package compaction

import (
	"testing"

	"convls/protocol"
)

// TestOfflineNeedsNoSummariser writes summaries by the built-in rules for every name of
// the offline model: it can not write any.
func TestOfflineNeedsNoSummariser(t *testing.T) {
	for _, id := range []string{Extractive, "offline", "offline/offline"} {
		s, err := new(Engine).usual(protocol.Settings{}, id, nil)
		if err != nil || s.Name() != Extractive {
			t.Errorf("%s: %v, %v", id, s, err)
		}
	}
}
