package handlers

import (
	"context"
	"reflect"
	"slices"
	"strings"

	"convls/protocol"
)

// input is a request as it came.
type input struct {
	method string
	params []byte
}

// method decodes parameters before it calls f.
func method[P, R any](name string, f func(ctx context.Context, c Conn, p *P, in input) (R, error)) Method {
	ids := requiredIDs(reflect.TypeFor[P]())
	return func(ctx context.Context, c Conn, raw []byte) (any, error) {
		p := new(P)
		if err := protocol.UnmarshalParams(raw, p); err != nil {
			return nil, err
		}
		if err := ids.check(reflect.ValueOf(p).Elem(), raw); err != nil {
			return nil, err
		}
		r, err := f(ctx, c, p, input{name, raw})
		if err != nil {
			return nil, err
		}
		return r, nil
	}
}

// ids are the members of a method's parameters that name what it is about: by
// their name on the wire, where they are in the type.
type ids map[string][]int

// requiredIDs returns the ids of a type that a request can not leave out: those
// that its declaration does not let away when they are empty.
func requiredIDs(t reflect.Type) ids {
	found := ids{}
	for _, f := range reflect.VisibleFields(t) {
		name, optional, _ := strings.Cut(f.Tag.Get("json"), ",")
		if strings.HasSuffix(name, "_id") && optional == "" && f.Type.Kind() == reflect.String {
			found[name] = f.Index
		}
	}
	return found
}

// check refuses parameters without such an id. One that is there and empty is not
// missing: it names nothing, and whoever looks it up says so.
func (i ids) check(p reflect.Value, raw []byte) error {
	var missing []string
	for name, index := range i {
		if p.FieldByIndex(index).String() == "" {
			missing = append(missing, name)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	var there map[string]protocol.Raw
	if err := protocol.UnmarshalParams(raw, &there); err != nil {
		return err
	}
	missing = slices.DeleteFunc(missing, func(name string) bool { return len(there[name]) > 0 && there[name].Kind() != 'n' })
	if len(missing) == 0 {
		return nil
	}
	slices.Sort(missing)
	verb := " is missing"
	if len(missing) > 1 {
		verb = " are missing"
	}
	return protocol.Errorf(protocol.CodeInvalidParams, "%s", strings.Join(missing, " and ")+verb)
}

// either refuses parameters of which not exactly one is given. Their names are
// those on the wire.
func either(name, value, other, otherValue string) error {
	switch {
	case value == "" && otherValue == "":
		return protocol.Errorf(protocol.CodeInvalidParams, "%s and %s are missing: give one of them", name, other)
	case value != "" && otherValue != "":
		return protocol.Errorf(protocol.CodeInvalidParams, "%s and %s are two ways to name one: give one of them", name, other)
	}
	return nil
}
