package settings

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"unicode"

	"github.com/agnivade/levenshtein"

	"convls/protocol"
)

// The groups whose entries have names that people choose.
const (
	groupProviders = "providers"
	groupModels    = "models"
)

const (
	// maxName is the longest name of a provider or model, in bytes.
	maxName = 200
	// maxPath is the longest dotted name that is looked at, in bytes. It also bounds
	// how deep a client's objects are followed.
	maxPath = 1024
)

// schema is what can be set, as protocol.Settings declares it.
type schema struct {
	// fixed are the settings with one name, by that name.
	fixed map[string]reflect.Type
	// named are the members of the groups with named entries, by group and member.
	named map[string]map[string]reflect.Type
	// groups are the objects that hold settings.
	groups map[string]bool
}

// known returns the schema; it is read once and never changes.
var known = sync.OnceValue(func() schema {
	s := schema{fixed: map[string]reflect.Type{}, named: map[string]map[string]reflect.Type{}, groups: map[string]bool{}}
	s.read(reflect.TypeFor[protocol.Settings](), "")
	return s
})

func (s schema) read(t reflect.Type, prefix string) {
	for f := range t.Fields() {
		name := prefix + f.Tag.Get("koanf")
		switch f.Type.Kind() {
		case reflect.Struct:
			s.groups[name] = true
			s.read(f.Type, name+".")
		case reflect.Map:
			s.groups[name] = true
			members := map[string]reflect.Type{}
			for m := range f.Type.Elem().Fields() {
				members[m.Tag.Get("koanf")] = m.Type
			}
			s.named[name] = members
		default:
			s.fixed[name] = f.Type
		}
	}
}

// target is a setting that a path leads to.
type target struct {
	// keys are where it is in protocol.Settings: providers, NAME, base_url.
	keys []string
	// pattern is its name in the documentation: providers.NAME.base_url.
	pattern string
	typ     reflect.Type
}

// name returns the setting's name, with the name of the provider or model in it.
func (t target) name() string { return strings.Join(t.keys, ".") }

// find returns the setting with this dotted name.
func (s schema) find(path string) (target, bool) {
	if typ, ok := s.fixed[path]; ok {
		return target{strings.Split(path, "."), path, typ}, true
	}
	group, rest, _ := strings.Cut(path, ".")
	i := strings.LastIndexByte(rest, '.')
	if i <= 0 {
		return target{}, false
	}
	typ, ok := s.named[group][rest[i+1:]]
	if !ok {
		return target{}, false
	}
	return s.member(group, rest[:i], rest[i+1:], typ), true
}

// member returns the setting member of the entry with this name.
func (schema) member(group, name, member string, typ reflect.Type) target {
	return target{[]string{group, name, member}, group + ".NAME." + member, typ}
}

// above returns the setting that path has as a proper beginning, if there is
// one: the path then goes on inside a value that has no inside.
func (s schema) above(path string) (target, bool) {
	for i := len(path) - 1; i > 0; i-- {
		if path[i] == '.' {
			if t, ok := s.find(path[:i]); ok {
				return t, true
			}
		}
	}
	return target{}, false
}

// mostTypos is how many letters a misspelt setting may be away from the one that is
// suggested in its place.
const mostTypos = 2

// like returns the setting that a misspelt path probably means: the one whose
// letters, in any case and with any separators, are nearest to its own, if they are
// near; or one that has it as its last word.
func (s schema) like(path string) (string, bool) {
	want := letters(path)
	names := slices.Collect(maps.Keys(s.fixed))
	if _, rest, _ := strings.Cut(path, "."); strings.LastIndexByte(rest, '.') > 0 {
		entry := rest[:strings.LastIndexByte(rest, '.')]
		for group, members := range s.named {
			for member := range members {
				names = append(names, group+"."+entry+"."+member)
			}
		}
	}
	slices.Sort(names) // of two that are as near the answer is always the same
	best, distance := "", mostTypos+1
	for _, name := range names {
		has := letters(name)
		if len(has)-len(want) > mostTypos || len(want)-len(has) > mostTypos {
			continue // costs nothing, however long a path somebody sends
		}
		if d := levenshtein.ComputeDistance(has, want); d < distance && 2*d < len(want) {
			best, distance = name, d
		}
	}
	for i := 0; best == "" && i < len(names); i++ {
		if last := names[i][strings.LastIndexByte(names[i], '.')+1:]; letters(last) == want {
			best = names[i]
		}
	}
	return best, best != ""
}

// likeVariable is [schema.like] for the environment, where the dots are gone.
func (s schema) likeVariable(name string) (string, bool) {
	path, ok := s.like(strings.TrimPrefix(name, prefix))
	return prefix + inCapitals(path), ok
}

// letters returns the letters and digits of s in lower case.
func letters(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return unicode.ToLower(r)
		}
		return -1
	}, s)
}

// nameFault says what is wrong with the name of a provider or model, "" if
// nothing is.
func nameFault(group, name string) string {
	switch {
	case name == "":
		return "an entry of " + group + " has no name"
	case len(name) > maxName:
		return "the name " + clip(name) + " in " + group + " is longer than 200 bytes"
	case strings.ContainsFunc(name, unicode.IsControl):
		return "the name " + clip(name) + " in " + group + " has a control character in it"
	case group == groupProviders && strings.Contains(name, "/"):
		return "the provider name " + clip(name) + " has a slash in it: what follows the first slash of provider/name is the model"
	}
	return ""
}

// clip returns a name from outside as a message may repeat it: quoted if it needs
// to be, and short.
func clip(s string) string {
	const limit = 120
	odd := strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsGraphic(r) })
	if len(s) > limit {
		s = strings.ToValidUTF8(s[:limit], "") + "..."
	}
	if odd {
		return strings.Join(strings.FieldsFunc(s, func(r rune) bool { return !unicode.IsGraphic(r) }), "?")
	}
	return s
}
