package settings

import (
	"fmt"
	"maps"
	"reflect"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"convls/protocol"
)

// prefix begins the names of the variables that set something.
const prefix = "CONVLS_"

// The variables that are no settings: they say where the settings and the store
// are, or are what a key command is told.
const (
	variableDataDir  = "CONVLS_DATA_DIR"
	variableConfig   = "CONVLS_CONFIG"
	variableProvider = "CONVLS_PROVIDER"
)

// environment is a process's, by name.
type environment map[string]string

// environmentOf returns what the NAME=value lines say. Where names have no case
// (Windows), they are in capitals.
func environmentOf(environ []string) environment {
	e := environment{}
	for _, line := range environ {
		if name, value, ok := strings.Cut(line, "="); ok && name != "" {
			if runtime.GOOS == "windows" {
				name = strings.ToUpper(name)
			}
			e[name] = value
		}
	}
	return e
}

// variable is a setting in the environment. The name of a provider or model loses
// its case and its dots, dashes and slashes in a variable's name, so which entry
// is meant is decided when the names in the other layers are known.
type variable struct {
	name   string
	target target
	// spelled is how the entry's name is written in the variable, "" for a setting
	// with one name.
	spelled string
	value   any
}

// inCapitals returns a setting's name, or part of it, as it is in the name of a
// variable.
func inCapitals(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case 'a' <= r && r <= 'z':
			return r - 'a' + 'A'
		case 'A' <= r && r <= 'Z', '0' <= r && r <= '9':
			return r
		}
		return '_'
	}, s)
}

// variable returns the setting that a variable of this name sets.
func (s schema) variable(name string) (variable, bool) {
	rest, ok := strings.CutPrefix(name, prefix)
	if !ok {
		return variable{}, false
	}
	for path, typ := range s.fixed {
		if inCapitals(path) == rest {
			return variable{name: name, target: target{strings.Split(path, "."), path, typ}}, true
		}
	}
	for group, members := range s.named {
		inside, ok := strings.CutPrefix(rest, inCapitals(group)+"_")
		if !ok {
			continue
		}
		// The longest member first: one may end as another does.
		names := slices.Sorted(maps.Keys(members))
		slices.SortStableFunc(names, func(a, b string) int { return len(b) - len(a) })
		for _, member := range names {
			if spelled, ok := strings.CutSuffix(inside, "_"+inCapitals(member)); ok && spelled != "" {
				return variable{name: name, target: s.member(group, spelled, member, members[member]), spelled: spelled}, true
			}
		}
	}
	return variable{}, false
}

// variables reads the settings of an environment, in the order of their names. An
// empty variable sets nothing. A variable that is at fault is left out.
func (e environment) variables() (vs []variable, warnings, faults report) {
	for _, name := range slices.Sorted(maps.Keys(e)) {
		text := e[name]
		if !strings.HasPrefix(name, prefix) || text == "" || name == variableDataDir || name == variableConfig || name == variableProvider {
			continue
		}
		v, ok := known().variable(name)
		if !ok {
			path := strings.ToLower(strings.TrimPrefix(name, prefix))
			if rest, ok := strings.CutPrefix(path, groupProviders+"_"); ok && strings.HasSuffix(rest, "_api_key") {
				path = groupProviders + "." + strings.TrimSuffix(rest, "_api_key") + ".api_key"
				faults.add("the environment variable " + clip(name) + ": " + keyRefusal(path))
				continue
			}
			text := "the environment variable " + clip(name) + " is no setting"
			if like, ok := known().likeVariable(name); ok {
				text += ": did you mean " + like + "?"
			}
			warnings.add(text)
			continue
		}
		value, set, err := decode(v.target, encode(v.target.typ, text))
		switch {
		case err != nil:
			faults.add(fmt.Sprintf("the environment variable %s: %s %v", clip(name), clip(v.target.name()), err))
		case set:
			v.value = value
			vs = append(vs, v)
		}
	}
	return vs, warnings, faults
}

// encode returns a variable's text as the JSON value that a setting of this type
// has. A list is a JSON array, or one string. What does not fit the type is a
// string, which decode refuses by the setting's name.
func encode(typ reflect.Type, text string) protocol.Raw {
	if typ.Kind() == reflect.Pointer {
		typ = typ.Elem()
	}
	switch typ.Kind() {
	case reflect.Bool:
		if yes, err := strconv.ParseBool(text); err == nil {
			return protocol.Raw(strconv.FormatBool(yes))
		}
	case reflect.Int, reflect.Int64, reflect.Float64:
		if raw := protocol.Raw(text); raw.IsValid() && raw.Kind() == '0' {
			return raw
		}
	case reflect.Slice:
		if raw := protocol.Raw(text); raw.IsValid() && raw.Kind() == '[' {
			return raw
		}
		return append(append(protocol.Raw{'['}, quote(text)...), ']')
	}
	return quote(text)
}

// quote returns text as a JSON string; one that is no text becomes a value that
// no setting takes.
func quote(text string) protocol.Raw {
	raw, err := protocol.Marshal(text)
	if err != nil || !utf8.ValidString(text) {
		return protocol.Raw("{}")
	}
	return raw
}

// names are the names of providers and models that settings mention, by group.
type names map[string][]string

// namesIn returns the names in these layers and variables, in order.
func namesIn(vs []variable, layers ...layer) names {
	found := map[string]map[string]bool{groupProviders: {}, groupModels: {}}
	model := func(v any) {
		id, _ := v.(string)
		if provider, _, ok := strings.Cut(id, "/"); ok {
			found[groupModels][id] = true
			found[groupProviders][provider] = true
		}
	}
	for _, l := range layers {
		for group := range found {
			entries, _ := l[group].(map[string]any)
			for name := range entries {
				found[group][name] = true
			}
		}
		model(l["model"])
		if c, ok := l["compaction"].(map[string]any); ok {
			model(c["model"])
		}
	}
	for _, v := range vs {
		if v.target.pattern == "model" || v.target.pattern == "compaction.model" {
			model(v.value)
		}
	}
	n := names{}
	for group, set := range found {
		n[group] = slices.Sorted(maps.Keys(set))
	}
	return n
}

// vendors are the providers that need no settings of their own.
func vendors() []string {
	return []string{"anthropic", "gemini", "offline", "ollama", "openai", "openrouter"}
}

// keys returns where a variable's value belongs, given the names that there are,
// and whether the name had to be guessed.
func (v variable) keys(n names) (keys []string, guessed bool) {
	if v.spelled == "" {
		return v.target.keys, false
	}
	group := v.target.keys[0]
	lower := strings.ToLower(v.spelled)
	var match string
	for _, name := range n[group] {
		if inCapitals(name) == v.spelled && (match == "" || name == lower) {
			match = name
		}
	}
	if match == "" {
		match = lower
		if group == groupModels {
			match, guessed = guessModel(v.spelled, n[groupProviders]), true
		}
	}
	return []string{group, match, v.target.keys[2]}, guessed
}

// guessModel returns the likely id of a model that is spelled in capitals: the
// longest provider that it begins with, a slash, and the rest as it is.
func guessModel(spelled string, providers []string) string {
	best := ""
	for _, p := range append(vendors(), providers...) {
		if len(p) > len(best) && strings.HasPrefix(spelled, inCapitals(p)+"_") && len(spelled) > len(p)+1 {
			best = p
		}
	}
	if best != "" {
		return best + "/" + strings.ToLower(spelled[len(best)+1:])
	}
	return strings.Replace(strings.ToLower(spelled), "_", "/", 1)
}
