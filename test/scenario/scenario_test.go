package scenario

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/cockroachdb/datadriven"

	"convls/test/editor"
)

var update = flag.Bool("update", false, "write what comes of each scenario's operations anew")

func TestMain(m *testing.M) {
	flag.Parse()
	if *update {
		if err := flag.Set("rewrite", "true"); err != nil {
			panic(err)
		}
	}
	os.Exit(editor.Main(m))
}

// TestScenarios runs the files of testdata.
func TestScenarios(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scenarios: %v", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			w := newWorld(t)
			datadriven.RunTest(t, file, func(_ *testing.T, d *datadriven.TestData) string { return w.do(d) })
			w.checkAll()
			w.ed.Leave(t)
			w.home.Check(t)
		})
	}
}
