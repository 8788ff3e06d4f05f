package settings

import (
	"errors"
	"fmt"

	"github.com/go-viper/mapstructure/v2"
	"github.com/knadh/koanf/providers/confmap"
	"github.com/knadh/koanf/v2"

	"convls/protocol"
)

// Base is what holds for every client: what is built in, the user's file, and the
// environment. It never changes, and is safe for concurrent use.
type Base struct {
	file      layer
	variables []variable
	settings  protocol.Settings
}

// Load reads the user's file and an environment, as os.Environ returns it. path is
// what --config says; if it is empty, CONVLS_CONFIG says where the file is, else it
// is config.toml in the folder convls of the XDG configuration directory, where it
// may be missing.
//
// Warnings are about what was not understood. With an error the Base is there all
// the same, without the file, or the variables, that are at fault: the caller
// decides whether to go on with the rest.
func Load(path string, environ []string) (_ *Base, warnings []string, err error) {
	env := environmentOf(environ)
	b := &Base{}
	var errs []error

	standard, _ := env.standardConfig()
	if path == "" {
		if path, err = env.config(nil); err != nil {
			errs = append(errs, err)
		}
	}
	if path != "" {
		r, err := readFile(path)
		switch {
		case err == nil:
			b.file, warnings = r.layer, r.warnings.list()
		case path != standard && missing(err):
			errs = append(errs, fmt.Errorf("the settings file %s, which --config or %s names, is not there", path, variableConfig))
		case path != standard || !missing(err):
			errs = append(errs, err)
		}
	}
	if path != "" && path == standard {
		warnings = append(warnings, unread(path)...)
	}

	vs, unknown, faults := env.variables()
	b.variables = vs
	warnings = append(warnings, unknown.list()...)
	if err := faults.err(); err != nil {
		errs = append(errs, err)
	}
	n := namesIn(vs, b.file)
	for _, v := range vs {
		if keys, guessed := v.keys(n); guessed {
			warnings = append(warnings, fmt.Sprintf("the environment variable %s is taken for models.%s.%s, because no model of that spelling is named anywhere: if another is meant, set it in the settings file",
				clip(v.name), clip(keys[1]), keys[2]))
		}
	}

	if b.settings, err = b.resolve(); err != nil {
		errs = append(errs, err)
	}
	return b, warnings, errors.Join(errs...)
}

// Settings returns those of a client that sends none. They are shared:
// change nothing in them.
func (b *Base) Settings() protocol.Settings { return b.settings }

// Connection returns the settings of a client that has sent none yet.
func (b *Base) Connection() *Connection {
	c := &Connection{base: b}
	c.resolved.Store(&b.settings)
	return c
}

// resolve lays a client's layers over the base.
func (b *Base) resolve(client ...layer) (protocol.Settings, error) {
	n := namesIn(b.variables, append([]layer{b.file}, client...)...)
	environment := layer{}
	for _, v := range b.variables {
		keys, _ := v.keys(n)
		environment.put(keys, v.value)
	}
	return merge(append([]layer{builtIn(), b.file, environment}, client...)...)
}

// builtIn returns the defaults that are values. The rest depends on the model or
// the provider, and is found where it is used.
func builtIn() layer {
	return layer{
		"model":  "offline",
		"policy": "rolling",
		"compaction": map[string]any{
			"auto":        true,
			"trigger":     0.8,
			"fallback":    "none",
			"max_retries": 2,
			"timeout_ms":  120_000,
		},
		"turn": map[string]any{
			"max_tool_rounds":   32,
			"tool_result_bytes": 65536,
			"tool_timeout_ms":   600_000,
			"max_retries":       3,
		},
		"log": map[string]any{"level": "info"},
	}
}

// separator parts the keys of a path in koanf. No name has it: names with control
// characters are refused, and names may well have dots and slashes.
const separator = "\x1f"

// merge returns the settings that layers make, later ones winning.
func merge(layers ...layer) (protocol.Settings, error) {
	var s protocol.Settings
	k := koanf.New(separator)
	for _, l := range layers {
		if err := k.Load(confmap.Provider(l, ""), nil); err != nil {
			return s, fmt.Errorf("merge settings: %w", err)
		}
	}
	// Layers have the types of their settings already, so nothing needs converting.
	if err := k.UnmarshalWithConf("", &s, koanf.UnmarshalConf{DecoderConfig: &mapstructure.DecoderConfig{}}); err != nil {
		return s, fmt.Errorf("merge settings: %w", err)
	}
	return s, nil
}
