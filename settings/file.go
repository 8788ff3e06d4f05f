package settings

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/pelletier/go-toml/v2"

	"convls/protocol"
)

// maxFile is the longest settings file, in bytes.
const maxFile = 1 << 20

// readFile reads the user's settings file. Errors begin with its path; those of
// its syntax have line and column, those of a setting its name.
func readFile(path string) (*reading, error) {
	data, err := contents(path)
	if err != nil {
		return nil, fmt.Errorf("read the settings: %w", err)
	}
	tree := map[string]any{}
	if err := toml.Unmarshal(bytes.TrimPrefix(data, []byte("\ufeff")), &tree); err != nil {
		if at, ok := errors.AsType[*toml.DecodeError](err); ok {
			row, column := at.Position()
			return nil, fmt.Errorf("%s:%d:%d: %w", path, row, column, err)
		}
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	raw, err := protocol.Marshal(tree)
	if err != nil {
		return nil, fmt.Errorf("%s: a value is no number or text that a setting could have: %w", path, err)
	}
	entries, err := entriesOf(raw)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	r := read(entries, true, path+": ")
	return r, r.faults.err()
}

// contents returns what is in a regular file of sensible size.
func contents(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // only read from
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, err
	}
	if len(data) > maxFile {
		return nil, fmt.Errorf("%s is longer than %d bytes", path, maxFile)
	}
	return data, nil
}

// unread returns a warning if there is a settings file of another format in the
// folder where the user's is looked for.
func unread(path string) []string {
	others, err := filepath.Glob(filepath.Join(filepath.Dir(path), "config.*"))
	if err != nil {
		return nil
	}
	var warnings []string
	for _, other := range others {
		if other != path {
			warnings = append(warnings, fmt.Sprintf("%s is not read: settings are read from %s", other, path))
		}
	}
	return warnings
}

// missing reports whether a file is simply not there.
func missing(err error) bool { return errors.Is(err, fs.ErrNotExist) }
