package settings

import (
	"errors"
	"fmt"
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"convls/protocol"
)

// decode returns the value of a setting of type typ, as Go has it, and false if
// it is the same as nothing. The error says what is wrong with it, to follow the
// setting's name. It never repeats a string: that may be a secret in the wrong
// place.
func decode(t target, raw protocol.Raw) (value any, set bool, err error) {
	typ, optional := t.typ, t.typ.Kind() == reflect.Pointer
	if optional {
		typ = typ.Elem()
	}
	v := reflect.New(typ)
	if err := protocol.Unmarshal(raw, v.Interface()); err != nil {
		return nil, false, fmt.Errorf("must be %s, not %s", wanted(typ), given(raw))
	}
	v = v.Elem()
	if !optional && (v.IsZero() || v.Kind() == reflect.Slice && v.Len() == 0) {
		return nil, false, nil
	}
	if err := check(t.pattern, v); err != nil {
		return nil, false, err
	}
	return v.Interface(), true, nil
}

// wanted says what a value of this type looks like.
func wanted(typ reflect.Type) string {
	switch typ.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int64:
		return "a whole number"
	case reflect.Float64:
		return "a number"
	case reflect.Slice:
		return "an array of strings"
	}
	return "a string"
}

// given says what kind of value this is; a number it repeats.
func given(raw protocol.Raw) string {
	switch raw.Kind() {
	case '"':
		return "a string"
	case 't', 'f':
		return "a boolean"
	case '0':
		return clip(strings.TrimSpace(string(raw)))
	case '[':
		return "an array"
	case '{':
		return "an object"
	}
	return "something else"
}

// check says what is wrong with a value of the right type.
func check(pattern string, v reflect.Value) error {
	switch {
	case v.CanInt() && v.Int() < 0:
		return fmt.Errorf("must not be negative, not %d", v.Int())
	case v.CanFloat() && v.Float() < 0:
		return fmt.Errorf("must not be negative, not %v", v.Float())
	}
	switch pattern {
	case "compaction.trigger":
		if v.Float() > 1 {
			return fmt.Errorf("is a share of the window, so it must be at most 1, not %v", v.Float())
		}
	case "compaction.fallback":
		return oneOf(v.String(), "extractive", "none")
	case "log.level":
		return oneOf(v.String(), "debug", "info", "warn", "error")
	case "providers.NAME.kind":
		return oneOf(v.String(), "openai", "anthropic", "gemini", "ollama", "offline")
	case "providers.NAME.base_url":
		return checkAddress(v.String())
	case "providers.NAME.api_key_env":
		if !variableName.MatchString(v.String()) || keyLike.MatchString(v.String()) {
			return errors.New("must be the name of an environment variable, not a key itself")
		}
	case "providers.NAME.api_key_cmd":
		if keyLike.MatchString(v.String()) {
			return errors.New("must be a command that prints the key, not the key itself")
		}
	case "providers.NAME.overflow_patterns":
		for i := range v.Len() {
			p := v.Index(i).String()
			if p == "" {
				return errors.New("has an empty pattern, which would match every error")
			}
			if _, err := regexp.Compile(p); err != nil {
				return fmt.Errorf("has a pattern that is no regular expression: %w", err)
			}
		}
	}
	return nil
}

func oneOf(s string, choices ...string) error {
	if slices.Contains(choices, s) {
		return nil
	}
	last := len(choices) - 1
	return fmt.Errorf("must be %s or %s, not %q", strings.Join(choices[:last], ", "), choices[last], clip(s))
}

// checkAddress says what is wrong with an API's address; it never repeats it,
// because a password may be in it.
func checkAddress(s string) error {
	u, err := url.Parse(s)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return errors.New("must be an http or https address")
	}
	if u.User != nil {
		return errors.New("must not have a user name or password in it: keys belong into the environment, the keyring or a command")
	}
	return nil
}

// variableName is what an environment variable can be called on every system.
var variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// keyLike are the forms that vendors give their keys.
var keyLike = regexp.MustCompile(`^(?:sk|sk-ant|pk|rk|gsk|xai|hf|pplx|r8|nvapi|tgp|ghp|key)[-_][A-Za-z0-9_-]{16,}$|^AIza[A-Za-z0-9_-]{30,}$`)
