package protocol

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Raw is a JSON value that is passed on as it is: tool arguments, tool schemas,
// metadata.
type Raw = jsontext.Value

// tolerant accepts what real clients send (see docs/protocol.md, "JSON"): an
// empty array for an empty object, because Lua can not tell them apart, and
// 1500.0 where an integer is meant, because Lua and some JavaScript serialisers
// print it so. null for an absent member needs no help: it leaves the zero value.
var tolerant = json.WithUnmarshalers(json.UnmarshalFromFunc(func(dec *jsontext.Decoder, v any) error {
	switch e := reflect.ValueOf(v).Elem(); e.Kind() {
	case reflect.Struct, reflect.Map:
		if dec.PeekKind() != '[' {
			return errors.ErrUnsupported
		}
		raw, err := dec.ReadValue()
		if err != nil {
			return err
		}
		if raw.Compact() != nil || string(raw) != "[]" {
			return &json.SemanticError{GoType: e.Type(), JSONKind: '[', Err: errors.New("an array where an object is expected")}
		}
		return nil
	case reflect.Int, reflect.Int64, reflect.Int32, reflect.Uint32, reflect.Uint64:
		if dec.PeekKind() != '0' {
			return errors.ErrUnsupported
		}
		raw, err := dec.ReadValue()
		if err != nil {
			return err
		}
		if err := setInteger(e, string(raw)); err != nil {
			return &json.SemanticError{GoType: e.Type(), JSONKind: '0', JSONValue: raw.Clone(), Err: err}
		}
		return nil
	default:
		return errors.ErrUnsupported
	}
}))

// setInteger stores the number text in e, an integer of any size; text may have
// a fraction or an exponent as long as the value is whole.
func setInteger(e reflect.Value, text string) error {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		f, ferr := strconv.ParseFloat(text, 64)
		if ferr != nil || f != math.Trunc(f) || math.Abs(f) > 1<<53 {
			return fmt.Errorf("%s is not a whole number", text)
		}
		n = int64(f)
	}
	if e.CanUint() {
		if n < 0 || e.OverflowUint(uint64(n)) {
			return fmt.Errorf("%s is out of range", text)
		}
		e.SetUint(uint64(n))
		return nil
	}
	if e.OverflowInt(n) {
		return fmt.Errorf("%s is out of range", text)
	}
	e.SetInt(n)
	return nil
}

// Unmarshal decodes data into v with the tolerances above. It refuses invalid
// UTF-8, lone surrogates and duplicate members, and ignores unknown members.
func Unmarshal(data []byte, v any) error {
	return json.Unmarshal(data, v, tolerant)
}

// Marshal encodes v. The output is deterministic: map members are sorted.
func Marshal(v any) ([]byte, error) {
	return json.Marshal(v, json.Deterministic(true))
}
