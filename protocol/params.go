package protocol

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// UnmarshalParams decodes the parameters of a request into v, as [Unmarshal] does.
// What does not fit is an [Error] with code invalid_params that names the member,
// what is wanted there, and what came instead.
func UnmarshalParams(data []byte, v any) error {
	if len(data) == 0 {
		return nil
	}
	if err := Unmarshal(data, v); err != nil {
		return Errorf(CodeInvalidParams, "%s", misfit(err))
	}
	return nil
}

// misfit says what is wrong in the words of the wire: the decoder's own are about
// types of Go, which no client has.
func misfit(err error) string {
	if e, ok := errors.AsType[*json.SemanticError](err); ok {
		at, got := memberName(e.JSONPointer), kindName(e.JSONKind)
		if whole(e.GoType) && e.JSONKind == '0' {
			got = string(e.JSONValue)
			if f, err := strconv.ParseFloat(got, 64); err != nil || f == math.Trunc(f) {
				return fmt.Sprintf("%s is out of range: %s", at, got)
			}
		}
		if e.GoType == reflect.TypeFor[[]byte]() && e.JSONKind == '"' {
			got = "other text"
		}
		return fmt.Sprintf("%s must be %s, not %s", at, wanted(e.GoType), got)
	}
	if e, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		at := memberName(e.JSONPointer)
		if errors.Is(e.Err, jsontext.ErrDuplicateName) {
			return at + " is there twice"
		}
		return fmt.Sprintf("%s can not be read: %v", at, e.Err)
	}
	return "params can not be read: " + err.Error()
}

// memberName writes a place in the parameters as people do: content[0].text.
func memberName(at jsontext.Pointer) string {
	var b strings.Builder
	for token := range at.Tokens() {
		if _, err := strconv.ParseUint(token, 10, 64); err == nil && b.Len() > 0 {
			fmt.Fprintf(&b, "[%s]", token)
			continue
		}
		if b.Len() > 0 {
			b.WriteByte('.')
		}
		b.WriteString(token)
	}
	if b.Len() == 0 {
		return "params"
	}
	return b.String()
}

func whole(t reflect.Type) bool {
	return t != nil && (t.Kind() == reflect.Int || t.Kind() == reflect.Int64 || t.Kind() == reflect.Int32 || t.Kind() == reflect.Uint32 || t.Kind() == reflect.Uint64)
}

// wanted says what a member of type t looks like on the wire.
func wanted(t reflect.Type) string {
	switch {
	case t == nil:
		return "something else"
	case whole(t):
		return "a whole number"
	case t == reflect.TypeFor[SendContent](), t == reflect.TypeFor[[]Part]():
		return "a string or an array of parts"
	case t == reflect.TypeFor[[]byte]():
		return "a string of base64"
	}
	switch t.Kind() {
	case reflect.Pointer:
		return wanted(t.Elem())
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Float64:
		return "a number"
	case reflect.Slice:
		if t.Elem().Kind() == reflect.String {
			return "an array of strings"
		}
		return "an array"
	}
	return "an object"
}

// kindName names a kind of JSON value.
func kindName(k jsontext.Kind) string {
	switch k {
	case '"':
		return "a string"
	case '0':
		return "a number"
	case 't', 'f':
		return "a boolean"
	case '[':
		return "an array"
	case '{':
		return "an object"
	case 'n':
		return "null"
	}
	return "something else"
}
