package drawing

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"convls/protocol"
	"convls/test/shapes"
)

var update = flag.Bool("update", false, "write the golden files")

// TestGolden draws the views of testdata. Escape codes are written as \e.
func TestGolden(t *testing.T) {
	if *update {
		if err := flag.Set("rewrite", "true"); err != nil {
			t.Fatal(err)
		}
	}
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no golden files: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			view := &protocol.GraphView{}
			datadriven.RunTest(t, file, func(t *testing.T, d *datadriven.TestData) string {
				if d.Cmd == "view" {
					var err error
					if view, err = shapes.ParseView(d.Input); err != nil {
						d.Fatalf(t, "%v", err)
					}
					d.Cmd = "text"
				}
				return draw(t, d, view)
			})
		})
	}
}

func draw(t *testing.T, d *datadriven.TestData, view *protocol.GraphView) string {
	var o Options
	d.MaybeScanArgs(t, "width", &o.Width)
	d.MaybeScanArgs(t, "max-lanes", &o.MaxLanes)
	o.ASCII, o.Color, o.IDs = d.HasArg("ascii"), d.HasArg("color"), d.HasArg("ids")
	var b bytes.Buffer
	var err error
	switch d.Cmd {
	case "text":
		err = Text(&b, view, o)
	case "dot":
		err = DOT(&b, view, o)
	case "json":
		err = JSON(&b, view)
	case "svg":
		o.Theme = Theme(d.CmdArgs[0].Key)
		picture := filepath.Join("testdata", d.CmdArgs[1].Key)
		if err := SVG(&b, view, o); err != nil {
			t.Fatal(err)
		}
		if *update {
			if err := os.WriteFile(picture, b.Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(picture)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(want, b.Bytes()) {
			return "differs from " + picture + ": -update writes it\n"
		}
		return "as " + picture + "\n"
	default:
		d.Fatalf(t, "there is no %s", d.Cmd)
	}
	if err != nil {
		t.Fatal(err)
	}
	return strings.ReplaceAll(b.String(), "\x1b", `\e`)
}
