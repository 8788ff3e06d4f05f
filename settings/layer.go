package settings

import (
	"fmt"
	"strings"

	"convls/protocol"
)

// layer is what one source sets: checked, and nested as protocol.Settings is.
type layer map[string]any

// put sets the value at keys, and makes the objects on the way.
func (l layer) put(keys []string, value any) {
	at := map[string]any(l)
	for _, k := range keys[:len(keys)-1] {
		next, ok := at[k].(map[string]any)
		if !ok {
			next = map[string]any{}
			at[k] = next
		}
		at = next
	}
	last := keys[len(keys)-1]
	if _, there := at[last].(map[string]any); there {
		if _, also := value.(map[string]any); also {
			return // an entry that exists, and an empty one of the same name
		}
	}
	at[last] = value
}

// reading is a layer in the making.
type reading struct {
	layer    layer
	warnings report
	faults   report
	// trusted is false for what an untrusted workspace brings: it may not reach
	// beyond this program, and its faults are warnings, so that a folder that
	// somebody opened can not shut out that person's own settings.
	trusted bool
	// from names the part of the layer in messages, "" for all of it.
	from string
	// sectioned says that there are settings under convls: what stands beside them
	// belongs to others, and is not reported as unknown.
	sectioned bool
}

// read checks entries and makes a layer of them.
func read(entries []entry, trusted bool, from string) *reading {
	r := &reading{layer: layer{}, trusted: trusted, from: from}
	for _, e := range entries {
		r.sectioned = r.sectioned || e.sectioned
	}
	for _, e := range entries {
		r.take(e)
	}
	return r
}

// fault notes a value that a setting can not have.
func (r *reading) fault(format string, args ...any) {
	text := r.from + fmt.Sprintf(format, args...)
	if r.trusted {
		r.faults.add(text)
		return
	}
	r.warnings.add(text + " (left out)")
}

func (r *reading) warn(format string, args ...any) {
	r.warnings.add(r.from + fmt.Sprintf(format, args...))
}

func (r *reading) take(e entry) {
	t, ok := known().find(e.path)
	if !ok {
		r.takeOther(e)
		return
	}
	if len(t.keys) == 3 {
		if fault := nameFault(t.keys[0], t.keys[1]); fault != "" {
			r.fault("%s", fault)
			return
		}
	}
	value, set, err := decode(t, e.value)
	switch {
	case !set && err == nil:
	case !r.trusted && reaches(t):
		r.warn("%s is refused: the workspace is not trusted, so it can not name commands, addresses or environment variables", clip(t.name()))
	case err != nil:
		r.fault("%s %v", clip(t.name()), err)
	default:
		if t.keys[0] == groupModels && !strings.Contains(t.keys[1], "/") && t.keys[1] != "offline" {
			r.warn("%s has no effect: models are named provider/name", clip(t.name()))
		}
		r.layer.put(t.keys, value)
	}
}

// takeOther handles a path that no setting has: a group, an entry without
// members, a key, something wrongly shaped, or something unknown.
func (r *reading) takeOther(e entry) {
	s := known()
	group, name, member := strings.Cut(e.path, ".")
	_, named := s.named[group]
	switch {
	case s.groups[e.path] || e.sectioned && e.path == section:
		if !empty(e.value) {
			r.fault("%s must be an object, not %s", e.path, given(e.value))
		}
	case named && member && empty(e.value):
		if fault := nameFault(group, name); fault != "" {
			r.fault("%s", fault)
			return
		}
		r.layer.put([]string{group, name}, map[string]any{})
	case named && member && !strings.Contains(name, "."):
		r.fault("%s must be an object, not %s", clip(e.path), given(e.value))
	case r.sectioned && !e.sectioned:
	case isKey(e):
		r.fault("%s", keyRefusal(e.path))
	default:
		if t, ok := s.above(e.path); ok {
			r.fault("%s must be %s, not an object", clip(t.name()), wanted(t.typ))
			return
		}
		if name, ok := s.like(e.path); ok {
			r.warn("%s is no setting: did you mean %s?", clip(e.path), clip(name))
			return
		}
		if !strings.HasPrefix(e.path, "trace.") {
			r.warn("%s is no setting", clip(e.path))
		}
	}
}

// reaches reports whether a setting decides what is run, which address is spoken
// to, or which variable of the environment is read. A kind alone does so too: it
// stands for its vendor's address, and for the variable named after the provider.
func reaches(t target) bool {
	switch t.pattern {
	case "providers.NAME.base_url", "providers.NAME.api_key_env", "providers.NAME.api_key_cmd", "providers.NAME.kind":
		return true
	}
	return false
}

// isKey reports whether an entry looks like the key of a provider.
func isKey(e entry) bool {
	if e.value.Kind() != '"' || string(e.value) == `""` {
		return false
	}
	last := letters(e.path[strings.LastIndexByte(e.path, '.')+1:])
	if strings.HasSuffix(last, "apikey") {
		return true
	}
	if group, _, _ := strings.Cut(e.path, "."); group != groupProviders && group != groupModels {
		return false
	}
	switch last {
	case "key", "token", "secret", "password", "authorization", "bearer", "apitoken", "apisecret", "accesstoken", "authtoken", "secretkey", "accesskey":
		return true
	}
	return false
}

func keyRefusal(path string) string {
	provider := "NAME"
	if group, rest, _ := strings.Cut(path, "."); group == groupProviders {
		if i := strings.LastIndexByte(rest, '.'); i > 0 {
			provider = rest[:i]
		}
	}
	provider = clip(provider)
	return fmt.Sprintf("%s looks like a key, and keys are never settings: set the environment variable %s_API_KEY (or the one that providers.%s.api_key_env names), "+
		"keep the key in the system's keyring (service convls), or let the command in providers.%s.api_key_cmd print it",
		clip(path), inCapitals(provider), provider, provider)
}

// report is a list of messages that stays readable.
type report struct {
	texts []string
	more  int
}

// maxReport is how many messages of one kind a layer gives.
const maxReport = 20

func (r *report) add(text string) {
	if len(r.texts) == maxReport {
		r.more++
		return
	}
	r.texts = append(r.texts, text)
}

// list returns the messages, and last how many there are beside them.
func (r *report) list() []string {
	if r.more == 0 {
		return r.texts
	}
	return append(r.texts[:maxReport:maxReport], fmt.Sprintf("and %d more", r.more))
}

// err returns the messages as one error, nil if there are none.
func (r *report) err() error {
	if len(r.texts) == 0 {
		return nil
	}
	return fmt.Errorf("%s", strings.Join(r.list(), "; "))
}

// invalid returns the faults of what a client sent, nil if there are none.
func invalid(err error) error {
	if err == nil {
		return nil
	}
	return protocol.Errorf(protocol.CodeInvalidParams, "%v", err)
}
