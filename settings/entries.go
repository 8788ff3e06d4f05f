package settings

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"convls/protocol"
)

// entry is one value under its dotted path. Objects are taken apart; an empty one
// is an entry of its own, because providers.NAME = {} says that there is such a
// provider.
type entry struct {
	path  string
	value protocol.Raw
	// sectioned says that it stood under convls.
	sectioned bool
}

// entriesOf takes a JSON object apart. null, [] and nothing are empty objects.
func entriesOf(raw protocol.Raw) ([]entry, error) {
	if empty(raw) {
		return nil, nil
	}
	if raw.Kind() != '{' {
		return nil, fmt.Errorf("settings must be an object, not %s", given(raw))
	}
	t := &takeApart{dec: jsontext.NewDecoder(bytes.NewReader(raw))}
	if err := t.object("", true); err != nil {
		return nil, fmt.Errorf("read the settings: %w", err)
	}
	if _, err := t.dec.ReadToken(); !errors.Is(err, io.EOF) {
		return nil, errors.New("read the settings: there is more than one value")
	}
	// What stands under convls is meant for this program more surely than what does
	// not: it comes later, and so it wins.
	slices.SortStableFunc(t.entries, func(a, b entry) int { return order(a.sectioned) - order(b.sectioned) })
	return t.entries, nil
}

func order(sectioned bool) int {
	if sectioned {
		return 1
	}
	return 0
}

// empty reports whether raw is nothing, null, or an empty array or object.
func empty(raw protocol.Raw) bool {
	switch b := bytes.TrimSpace(raw); {
	case len(b) == 0, string(b) == "null":
		return true
	case len(b) >= 2 && (b[0] == '[' && b[len(b)-1] == ']' || b[0] == '{' && b[len(b)-1] == '}'):
		return len(bytes.TrimSpace(b[1:len(b)-1])) == 0
	}
	return false
}

type takeApart struct {
	dec     *jsontext.Decoder
	entries []entry
}

// object reads an object whose members' paths begin with prefix.
func (t *takeApart) object(prefix string, top bool) error {
	if _, err := t.dec.ReadToken(); err != nil {
		return err
	}
	for t.dec.PeekKind() != '}' {
		name, err := t.dec.ReadToken()
		if err != nil {
			return err
		}
		path := name.String()
		if !top {
			path = prefix + "." + path
		}
		if err := t.member(path); err != nil {
			return err
		}
	}
	_, err := t.dec.ReadToken()
	return err
}

func (t *takeApart) member(path string) error {
	if t.dec.PeekKind() == '{' && len(path) <= maxPath {
		before := len(t.entries)
		if err := t.object(path, false); err != nil {
			return err
		}
		if len(t.entries) == before {
			t.add(path, protocol.Raw("{}"))
		}
		return nil
	}
	value, err := t.dec.ReadValue()
	if err != nil {
		return err
	}
	if value.Kind() != 'n' {
		t.add(path, value.Clone())
	}
	return nil
}

func (t *takeApart) add(path string, value protocol.Raw) {
	rest, sectioned := path, path == section
	if !sectioned {
		rest, sectioned = strings.CutPrefix(path, section+".")
	}
	t.entries = append(t.entries, entry{rest, value, sectioned})
}

// section is the name under which editors keep the settings of this program.
const section = "convls"
