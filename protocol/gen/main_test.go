package main

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"convls/protocol"
)

// TestDocumentsAreInStep fails when a type or comment changed and go generate
// ./protocol was not run.
func TestDocumentsAreInStep(t *testing.T) {
	files, err := generate("..")
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range files {
		got, err := os.ReadFile(filepath.Join("..", "..", name))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s is out of step, run go generate ./protocol (-file +types):\n%s", name, cmp.Diff(strings.Split(string(got), "\n"), strings.Split(string(want), "\n")))
		}
	}
}

// TestTableHoldsEveryMethod compares the table with the constants named Method....
func TestTableHoldsEveryMethod(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "../methods.go", nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	ast.Inspect(file, func(n ast.Node) bool {
		if spec, ok := n.(*ast.ValueSpec); ok && strings.HasPrefix(spec.Names[0].Name, "Method") {
			value, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
			if err != nil {
				t.Fatal(err)
			}
			want = append(want, value)
		}
		return true
	})
	var got []string
	for _, m := range protocol.Methods() {
		got = append(got, m.Name)
	}
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("constants and table differ (-constants +table):\n%s", diff)
	}
}

func TestEveryMutationTakesRequestID(t *testing.T) {
	for _, m := range protocol.Methods() {
		names := map[string]bool{}
		for _, f := range members(reflect.TypeOf(m.Params)) {
			names[f.json] = true
		}
		if m.Mutates && !names["request_id"] {
			t.Errorf("%s changes the ledger, but %T has no request_id", m.Name, m.Params)
		}
		if !m.Mutates && names["request_id"] {
			t.Errorf("%s changes nothing, but %T has a request_id", m.Name, m.Params)
		}
	}
}

// definitions compiles docs/protocol.schema.json as it would be generated.
func definitions(t *testing.T, src *source) func(v any) *jsonschema.Schema {
	t.Helper()
	text, err := schemaDocument(src)
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("protocol.json", doc); err != nil {
		t.Fatal(err)
	}
	return func(v any) *jsonschema.Schema {
		s, err := c.Compile("protocol.json" + refTo(v).Ref)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
}

// TestSchemaDescribesTheWire checks what Go really sends, and the examples of the
// documentation, against the schema.
func TestSchemaDescribesTheWire(t *testing.T) {
	src, err := parse("..")
	if err != nil {
		t.Fatal(err)
	}
	schema := definitions(t, src)
	for _, m := range protocol.Methods() {
		for _, v := range []any{m.Params, m.Result} {
			if v == nil {
				continue
			}
			example, err := src.example(m.Name, v)
			if err != nil {
				t.Fatal(err)
			}
			value, err := jsonschema.UnmarshalJSON(strings.NewReader(example))
			if err != nil {
				t.Fatal(err)
			}
			if err := schema(v).Validate(value); err != nil {
				t.Errorf("%s: example of %T: %v\n%s", m.Name, v, err, example)
			}
			back := reflect.New(reflect.TypeOf(v))
			if err := protocol.Unmarshal([]byte(example), back.Interface()); err != nil {
				t.Errorf("%s: example of %T does not decode: %v", m.Name, v, err)
			}
		}
	}
}

func TestSchemaRefuses(t *testing.T) {
	src, err := parse("..")
	if err != nil {
		t.Fatal(err)
	}
	schema := definitions(t, src)
	for _, tc := range []struct {
		name, in string
		of       any
		ok       bool
	}{
		{name: "content as a string", of: protocol.TurnSendParams{}, in: `{"session_id":"s","content":"hi"}`, ok: true},
		{name: "content as parts", of: protocol.TurnSendParams{}, in: `{"session_id":"s","content":[{"type":"text","text":"hi"}]}`, ok: true},
		{name: "unknown members", of: protocol.SessionParams{}, in: `{"session_id":"s","shiny":1}`, ok: true},
		{name: "no session", of: protocol.TurnSendParams{}, in: `{"content":"hi"}`},
		{name: "content as a number", of: protocol.TurnSendParams{}, in: `{"session_id":"s","content":7}`},
		{name: "a part of no known type", of: protocol.TurnSendParams{}, in: `{"session_id":"s","content":[{"type":"smell"}]}`},
		{name: "an id that is a number", of: protocol.SessionParams{}, in: `{"session_id":7}`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			value, err := jsonschema.UnmarshalJSON(strings.NewReader(tc.in))
			if err != nil {
				t.Fatal(err)
			}
			if err := schema(tc.of).Validate(value); tc.ok != (err == nil) {
				t.Errorf("validate: %v, want ok: %v", err, tc.ok)
			}
		})
	}
}

func TestProse(t *testing.T) {
	link := func(name string) string { return "<" + name + ">" }
	for _, tc := range []struct{ name, in, want string }{
		{"fields become members", "Before and After are cursors.\nAround is a node id.", "`before` and `after` are cursors. `around` is a node id."},
		{"codes become code once", "It answers id_conflict, not `stale_head`.", "It answers `id_conflict`, not `stale_head`."},
		{"methods become code", "See convls/node/get.", "See `convls/node/get`."},
		{"types become links", "A [Part] of Head.", "A <Part> of `head`."},
		{"paragraphs stay", "One\ntwo.\n\nThree.", "One two.\n\nThree."},
		{"empty", "", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := prose(tc.in, reflect.TypeFor[protocol.TranscriptParams](), link); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestRemark(t *testing.T) {
	for in, want := range map[string]string{
		"XParams are the parameters of convls/x: exactly one of A and B.": "Exactly one of A and B.",
		"XParams are the parameters of convls/x.":                         "",
		"XResult is the reply to convls/x; it precedes the replay.":       "It precedes the replay.",
		"XParams are the parameters of convls/x, which the server sends.": "",
		"XParams are the parameters of convls/x, which it sends. Twice.":  "Twice.",
		"XResult is a client's answer to convls/x. Never empty.":          "Never empty.",
		"X is a snapshot: complete.":                                      "X is a snapshot: complete.",
	} {
		if got := remark(in); got != want {
			t.Errorf("remark(%q) = %q, want %q", in, got, want)
		}
	}
}
