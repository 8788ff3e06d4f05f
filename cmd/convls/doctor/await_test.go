package doctor

import (
	"os"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// await waits until there is a file at path. The end of the test's time is the
// only limit.
func await(ts *testscript.TestScript, path string) {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for range tick.C {
		if _, err := os.Stat(path); err == nil {
			return
		} else if !os.IsNotExist(err) {
			ts.Fatalf("await %s: %v", path, err)
		}
	}
}
