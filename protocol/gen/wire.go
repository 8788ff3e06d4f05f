package main

import (
	"fmt"
	"reflect"
	"strings"
	"time"

	"convls/protocol"
)

// member is a member of an object on the wire.
type member struct {
	field    reflect.StructField
	owner    reflect.Type // the struct that declares it, which may be embedded
	json     string
	optional bool
}

// members returns the members of struct type t in the order they are written,
// those of embedded structs in place.
func members(t reflect.Type) []member {
	var out []member
	for f := range t.Fields() {
		tag, ok := f.Tag.Lookup("json")
		switch {
		case f.Anonymous && !ok:
			out = append(out, members(f.Type)...)
			continue
		case !f.IsExported(), tag == "-":
			continue
		}
		name, options, _ := strings.Cut(tag, ",")
		if name == "" {
			name = f.Name
		}
		out = append(out, member{
			field: f, owner: t, json: name,
			optional: strings.Contains(options, "omitzero") || strings.Contains(options, "omitempty"),
		})
	}
	return out
}

var (
	rawType     = reflect.TypeFor[protocol.Raw]()
	timeType    = reflect.TypeFor[time.Time]()
	contentType = reflect.TypeFor[protocol.SendContent]()
	bytesType   = reflect.TypeFor[[]byte]()
)

// named returns the type of package protocol inside t (behind pointers, arrays and
// maps), or nil.
func named(t reflect.Type) reflect.Type {
	for {
		switch {
		case t == rawType, t == timeType:
			return nil
		case t == contentType:
			t = t.Elem()
		case t.Name() != "":
			if t.PkgPath() == "" {
				return nil
			}
			return t
		case t.Kind() == reflect.Pointer, t.Kind() == reflect.Slice, t.Kind() == reflect.Map:
			t = t.Elem()
		default:
			return nil
		}
	}
}

// wireType says in Markdown what a value of type t is on the wire. link renders
// the name of a type that has a section of its own.
func wireType(t reflect.Type, link func(reflect.Type) string) (string, error) {
	switch t {
	case rawType:
		return "any JSON", nil
	case timeType:
		return "time", nil
	case bytesType:
		return "string (base64)", nil
	case contentType:
		return "string, or array of " + link(t.Elem()), nil
	}
	switch t.Kind() {
	case reflect.Pointer:
		return wireType(t.Elem(), link)
	case reflect.Slice:
		elem, err := wireType(t.Elem(), link)
		return "array of " + elem, err
	case reflect.Map:
		elem, err := wireType(t.Elem(), link)
		return "object of " + elem, err
	case reflect.Struct:
		return link(t), nil
	case reflect.String:
		if t.PkgPath() != "" {
			return link(t), nil
		}
		return "string", nil
	case reflect.Bool:
		return "boolean", nil
	case reflect.Int, reflect.Int32, reflect.Int64, reflect.Uint32, reflect.Uint64:
		return "integer", nil
	case reflect.Float64:
		return "number", nil
	default:
		return "", fmt.Errorf("type %v has no form on the wire", t)
	}
}
