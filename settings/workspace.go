package settings

import (
	"fmt"
	"slices"
	"strings"

	"convls/protocol"
)

// workspaceMember holds what a workspace brings along. It is an object with the
// member trusted; the settings stand beside that, or under settings or convls.
const workspaceMember = "workspace_settings"

// parts are what a client sends: its own settings, and the workspace's, which win
// over them.
type parts struct {
	own, workspace []entry
	// trusted says that the person trusts the workspace. Unsaid means no.
	trusted bool
}

// split parts a client's entries.
func split(entries []entry) (parts, error) {
	var p parts
	said := []entry{}
	for _, e := range entries {
		rest, inside := strings.CutPrefix(e.path, workspaceMember+".")
		switch {
		case e.path == workspaceMember:
			if !empty(e.value) {
				return p, fmt.Errorf("%s must be an object, not %s", workspaceMember, given(e.value))
			}
		case !inside:
			p.own = append(p.own, e)
		case rest == "trusted":
			said = append(said, e)
		case rest == "settings", rest == section:
			if !empty(e.value) {
				return p, fmt.Errorf("%s.%s must be an object, not %s", workspaceMember, rest, given(e.value))
			}
		default:
			rest = strings.TrimPrefix(rest, "settings.")
			rest, e.sectioned = strings.CutPrefix(rest, section+".")
			e.path = rest
			p.workspace = append(p.workspace, e)
		}
	}
	if len(p.workspace) > 0 {
		// trusted may stand beside workspace_settings as well.
		p.own = slices.DeleteFunc(p.own, func(e entry) bool {
			if e.path == "trusted" {
				said = append(said, e)
			}
			return e.path == "trusted"
		})
	}
	p.trusted = len(said) > 0
	for _, e := range said {
		var yes bool
		if err := protocol.Unmarshal(e.value, &yes); err != nil {
			return p, fmt.Errorf("%s.trusted must be true or false, not %s", workspaceMember, given(e.value))
		}
		p.trusted = p.trusted && yes
	}
	return p, nil
}

// readClient checks what a client sent and returns the two layers of it.
func readClient(raw protocol.Raw) (layers []layer, warnings []string, err error) {
	entries, err := entriesOf(raw)
	if err != nil {
		return nil, nil, invalid(err)
	}
	p, err := split(entries)
	if err != nil {
		return nil, nil, invalid(err)
	}
	own := read(p.own, true, "")
	workspace := read(p.workspace, p.trusted, workspaceMember+": ")
	if err := invalid((&report{texts: append(own.faults.list(), workspace.faults.list()...)}).err()); err != nil {
		return nil, nil, err
	}
	return []layer{own.layer, workspace.layer}, append(own.warnings.list(), workspace.warnings.list()...), nil
}

// Untrusted returns what may be kept of settings that nobody vouches for, such as
// those of an imported session: all but commands, addresses and names of
// environment variables, and what is wrong or unknown. The warnings say what was
// left out. An error means that raw is no object.
func Untrusted(raw protocol.Raw) (clean protocol.Raw, warnings []string, err error) {
	entries, err := entriesOf(raw)
	if err != nil {
		return nil, nil, invalid(err)
	}
	r := read(entries, false, "")
	clean, err = protocol.Marshal(r.layer)
	if err != nil {
		return nil, nil, fmt.Errorf("encode the settings: %w", err)
	}
	return clean, r.warnings.list(), nil
}
