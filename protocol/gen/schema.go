package main

import (
	"fmt"
	"maps"
	"reflect"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/invopop/jsonschema"

	"convls/protocol"
)

// methodSchema says in the schema document what one method carries.
type methodSchema struct {
	Description  string `json:"description"`
	Sender       string `json:"sender"`
	Notification bool   `json:"notification"`
	Mutates      bool   `json:"mutates"`
	Params       ref    `json:"params"`
	Result       *ref   `json:"result,omitzero"`
}

// ref refers to a definition of the same document.
type ref struct {
	Ref string `json:"$ref"`
}

func refTo(v any) ref { return ref{Ref: "#/$defs/" + reflect.TypeOf(v).Name()} }

// schemaFile is docs/protocol.schema.json: JSON Schema 2020-12, with one
// definition a type, and the methods beside them.
type schemaFile struct {
	Schema  string                    `json:"$schema"`
	Title   string                    `json:"title"`
	Version int                       `json:"protocol_version"`
	Methods map[string]methodSchema   `json:"methods"`
	Defs    map[string]jsontext.Value `json:"$defs"`
}

// schemaDocument returns docs/protocol.schema.json.
func schemaDocument(src *source) ([]byte, error) {
	file := schemaFile{
		Schema: jsonschema.Version, Title: "convls protocol", Version: protocol.Version,
		Methods: map[string]methodSchema{}, Defs: map[string]jsontext.Value{},
	}
	reflector := &jsonschema.Reflector{
		Anonymous: true, AllowAdditionalProperties: true,
		Mapper: src.mapType, LookupComment: src.describe,
	}
	defs := jsonschema.Definitions{}
	roots := append(outsideMethods(), protocol.ErrorData{}, protocol.Settings{})
	for _, m := range protocol.Methods() {
		entry := methodSchema{
			Description: m.Doc + ".", Sender: string(m.Sender), Notification: m.Notification(), Mutates: m.Mutates, Params: refTo(m.Params),
		}
		roots = append(roots, m.Params)
		if !m.Notification() {
			result := refTo(m.Result)
			entry.Result = &result
			roots = append(roots, m.Result)
		}
		file.Methods[m.Name] = entry
	}
	for _, v := range roots {
		maps.Copy(defs, reflector.Reflect(v).Definitions)
	}
	for name, def := range defs {
		data, err := def.MarshalJSON()
		if err != nil {
			return nil, fmt.Errorf("schema of %s: %w", name, err)
		}
		file.Defs[name] = data
	}
	out, err := json.Marshal(file, json.Deterministic(true), jsontext.WithIndent("  "))
	if err != nil {
		return nil, fmt.Errorf("encoding the schema: %w", err)
	}
	return append(out, '\n'), nil
}

// mapType gives the types whose form on the wire is not that of their Go type.
func (s *source) mapType(t reflect.Type) *jsonschema.Schema {
	switch {
	case t == rawType:
		return jsonschema.TrueSchema
	case t == contentType:
		part := &jsonschema.Schema{Ref: "#/$defs/Part"}
		return &jsonschema.Schema{OneOf: []*jsonschema.Schema{{Type: "string"}, {Type: "array", Items: part}}}
	case t.Kind() == reflect.String && len(s.consts[t.Name()]) > 0:
		out := &jsonschema.Schema{Type: "string"}
		for _, c := range s.consts[t.Name()] {
			out.Enum = append(out.Enum, c.value)
		}
		return out
	}
	return nil
}

// describe returns the comment of a type, or of a field of it.
func (s *source) describe(t reflect.Type, field string) string {
	doc := s.types[t.Name()]
	if doc == nil {
		return ""
	}
	plain := func(name string) string { return name }
	if field == "" {
		return prose(doc.doc, t, plain)
	}
	return prose(doc.fields[field], t, plain)
}
