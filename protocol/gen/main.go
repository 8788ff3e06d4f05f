// Command gen writes docs/protocol.md, docs/protocol.schema.json,
// docs/settings.md and the Lua types of the Neovim plugin from the types and
// comments of package protocol. Run it with go generate ./protocol; its test fails
// when the files are out of step.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	root := flag.String("root", "..", "the folder of the module")
	flag.Parse()
	if err := run(*root); err != nil {
		fmt.Fprintln(os.Stderr, "gen:", err)
		os.Exit(1)
	}
}

// run writes the generated files below root.
func run(root string) error {
	files, err := generate(filepath.Join(root, "protocol"))
	if err != nil {
		return err
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(root, name), content, 0o644); err != nil { //nolint:gosec // documents are for everyone
			return fmt.Errorf("writing a generated file: %w", err)
		}
	}
	return nil
}

// generate returns the generated files, by their path below the module's folder.
// dir is the folder of package protocol.
func generate(dir string) (map[string][]byte, error) {
	src, err := parse(dir)
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{}
	for name, make := range map[string]func(*source) ([]byte, error){
		"docs/protocol.md":          protocolDocument,
		"docs/protocol.schema.json": schemaDocument,
		"docs/settings.md":          settingsDocument,
		luaTypesFile:                luaDocument,
	} {
		if files[name], err = make(src); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	return files, nil
}
