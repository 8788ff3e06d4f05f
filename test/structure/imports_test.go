package structure

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// floors returns the packages from the roof down: each may import what stands
// below it. docs/architecture.md says what lives on each.
func floors() [][]string {
	return [][]string{
		{"cmd"}, {"handlers"}, {"turn", "transfer"}, {"compaction"}, {"projection"}, {"server"}, {"model"}, {"settings"}, {"store"}, {"protocol"},
	}
}

// narrower returns the packages that may import less than the floors allow: the
// folders named and nothing else of the module.
func narrower() map[string][]string {
	return map[string][]string{
		"client":     {"protocol", "server/frame"},
		"projection": {"store", "protocol"},
		"store":      {"protocol"},
		"settings":   {"protocol"},
	}
}

// apart returns pairs that meet in cmd/convls only, though the floors would let
// the first import the second.
func apart() [][2]string {
	return [][2]string{{"handlers", "server"}}
}

// top returns the first part of a folder: what the floors are made of.
func top(folder string) string {
	name, _, _ := strings.Cut(folder, "/")
	return name
}

func floorOf(folder string) int {
	return slices.IndexFunc(floors(), func(f []string) bool { return slices.Contains(f, top(folder)) })
}

// mayImport returns why folder from must not import folder to, or nil.
func mayImport(from, to string) error {
	if top(from) == "test" || top(from) == top(to) {
		return nil
	}
	if top(to) == "test" {
		return fmt.Errorf("%s imports %s: only tests import test packages", from, to)
	}
	if allowed, ok := narrower()[top(from)]; ok {
		if !slices.Contains(allowed, to) {
			return fmt.Errorf("%s imports %s: it may import only %s", from, to, strings.Join(allowed, ", "))
		}
		return nil
	}
	if top(to) == "client" {
		if top(from) != "cmd" {
			return fmt.Errorf("%s imports %s: only cmd/convls may", from, to)
		}
		return nil
	}
	f, t := floorOf(from), floorOf(to)
	if f < 0 || t < 0 {
		return fmt.Errorf("%s imports %s: one of them has no place in the house, see floors", from, to)
	}
	if f >= t {
		return fmt.Errorf("%s imports %s: imports go downwards only", from, to)
	}
	if slices.Contains(apart(), [2]string{top(from), top(to)}) {
		return fmt.Errorf("%s imports %s: they meet in cmd/convls only", from, to)
	}
	return nil
}

func TestImportsRunDownwards(t *testing.T) {
	for _, p := range own(t) {
		for _, path := range p.Imports {
			to, ok := strings.CutPrefix(path, module+"/")
			if !ok {
				continue
			}
			if err := mayImport(p.folder(), to); err != nil {
				t.Error(err)
			}
		}
	}
}

func TestEveryPackageHasAPlace(t *testing.T) {
	for _, p := range own(t) {
		name := top(p.folder())
		if floorOf(name) < 0 && narrower()[name] == nil && name != "test" {
			t.Errorf("package %s is on no floor: give it a place in floors, and in docs/architecture.md", p.folder())
		}
	}
}

// TestImportRule checks the rule itself: a rule that lets everything pass would
// pass the test above.
func TestImportRule(t *testing.T) {
	for _, tc := range []struct {
		from, to string
		ok       bool
	}{
		{"cmd/convls", "handlers", true},
		{"cmd/convls", "client", true},
		{"cmd/convls", "server", true},
		{"handlers", "turn", true},
		{"handlers", "store", true},
		{"server", "server/frame", true},
		{"client", "server/frame", true},
		{"turn", "model", true},
		{"test/scenario", "cmd/convls", true},
		{"handlers", "server", false},
		{"handlers", "server/frame", false},
		{"server", "handlers", false},
		{"turn", "transfer", false},
		{"store", "model", false},
		{"store", "projection", false},
		{"projection", "model", false},
		{"client", "store", false},
		{"client", "server", false},
		{"turn", "client", false},
		{"turn", "newcomer", false},
		{"protocol", "store", false},
		{"store", "test/llama", false},
	} {
		if err := mayImport(tc.from, tc.to); tc.ok != (err == nil) {
			t.Errorf("%s imports %s: %v, want allowed: %v", tc.from, tc.to, err, tc.ok)
		}
	}
}

// TestLedgerIsPure checks that the packages the ledger is made of know no network
// and no terminal: they must stay fit for every front end.
func TestLedgerIsPure(t *testing.T) {
	for _, p := range own(t) {
		if !slices.Contains([]string{"protocol", "store", "projection"}, p.folder()) {
			continue
		}
		for _, path := range p.Imports {
			if path == "net" || strings.HasPrefix(path, "net/") || path == "os/exec" {
				t.Errorf("%s imports %s", p.folder(), path)
			}
		}
	}
}
