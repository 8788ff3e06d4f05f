package manifest

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"convls/protocol"
)

const oneAdd = `{"changes":[{"op":"add","section":"goal","id":"","text":"Build it","status":"fact","sources":["n1"],"quote":"","kind":"none","handle":""}],"narrative":"It begins."}`

func TestParseChanges(t *testing.T) {
	want := Changes{Changes: []Change{{Op: Add, Section: Goal, Text: "Build it", Status: Fact, Sources: []string{"n1"}}}, Narrative: "It begins."}
	for _, tc := range []struct {
		name, text string
		reason     ParseReason // "" if it is accepted
		says       string
	}{
		{"bare", oneAdd, "", ""},
		{"white space around", " \n" + oneAdd + "\n\n", "", ""},
		{"in a fence", "```json\n" + oneAdd + "\n```", "", ""},
		{"in a plain fence", "```\n" + oneAdd + "\n```\n", "", ""},
		{"nothing", "", AnswerEmpty, "empty"},
		{"white space", " \n\t", AnswerEmpty, "empty"},
		{"text before", "Here you are: " + oneAdd, AnswerNotJSON, "begins with"},
		{"text after", oneAdd + " Done.", AnswerNotJSON, ""},
		{"two objects", oneAdd + oneAdd, AnswerNotJSON, ""},
		{"text after the fence", "```json\n" + oneAdd + "\n```\nDone.", AnswerNotJSON, "fence"},
		{"an open fence", "```json\n" + oneAdd, AnswerNotJSON, "fence"},
		{"two fences", "```json\n" + oneAdd + "\n```\n```json\n" + oneAdd + "\n```", AnswerNotJSON, ""},
		{"cut off", oneAdd[:len(oneAdd)-20], AnswerNotJSON, ""},
		{"an array", "[" + oneAdd + "]", AnswerNotJSON, "begins with"},
		{"a skeleton of headings", "## Goal\n\n## Constraints\n", AnswerNotJSON, ""},
		{"analysis before", "<analysis>the user wants</analysis>\n" + oneAdd, AnswerScratch, "<analysis>"},
		{"thinking before", "<think>\nhm\n</think>" + oneAdd, AnswerScratch, "<think>"},
		{"thinking in the narrative", strings.Replace(oneAdd, "It begins.", "<Think>hm</Think> It begins.", 1), AnswerScratch, "narrative"},
		{"no changes", `{"narrative":"x"}`, AnswerInvalid, "changes is missing"},
		{"changes are null", `{"changes":null,"narrative":"x"}`, AnswerInvalid, "changes is missing"},
		{"an unknown member", strings.Replace(oneAdd, `"quote"`, `"qoute"`, 1), AnswerInvalid, "qoute"},
		{"a member twice", strings.Replace(oneAdd, `"quote":""`, `"quote":"","quote":""`, 1), AnswerNotJSON, ""},
		{"a wrong type", strings.Replace(oneAdd, `["n1"]`, `"n1"`, 1), AnswerInvalid, ""},
		{"an unknown op", strings.Replace(oneAdd, `"add"`, `"replace"`, 1), AnswerInvalid, "expected add, update, close"},
		{"an unknown section", strings.Replace(oneAdd, `"goal"`, `"goals"`, 1), AnswerInvalid, "expected goal, constraints"},
		{"an unknown status", strings.Replace(oneAdd, `"fact"`, `"true"`, 1), AnswerInvalid, "expected fact, hypothesis, decision, unknown"},
		{"an unknown kind", strings.Replace(oneAdd, `"none"`, `"file"`, 1), AnswerInvalid, "expected none, path"},
		{"an update without id", strings.Replace(oneAdd, `"add"`, `"update"`, 1), AnswerInvalid, "changes[0]: op update needs the id"},
		{"too many", `{"changes":[` + strings.Repeat(`{"op":"add","section":"goal"},`, maxChanges) + `{"op":"add","section":"goal"}],"narrative":""}`, AnswerTooLarge, "1001"},
		{"too long", oneAdd + strings.Repeat(" ", maxAnswer) + "x", AnswerTooLarge, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := ParseChanges(tc.text)
			if tc.reason == "" {
				if diff := cmp.Diff(want, got); err != nil || diff != "" {
					t.Errorf("%v\n%s", err, diff)
				}
				return
			}
			pe, ok := errors.AsType[*ParseError](err)
			if !ok || pe.Reason != tc.reason || !strings.Contains(pe.Message, tc.says) {
				t.Errorf("error %v (%+v), want reason %s and %q", err, pe, tc.reason, tc.says)
			}
		})
	}
}

// TestSchema: the schema accepts what ParseChanges does, and keeps to what all
// providers take: closed objects, all properties required, no empty enum value,
// and a handful of keywords.
func TestSchema(t *testing.T) {
	var parsed any
	if err := protocol.Unmarshal(Schema(), &parsed); err != nil {
		t.Fatal(err)
	}
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource("changes.json", parsed); err != nil {
		t.Fatal(err)
	}
	schema, err := compiler.Compile("changes.json")
	if err != nil {
		t.Fatal(err)
	}
	for text, ok := range map[string]bool{oneAdd: true, strings.Replace(oneAdd, `"op":"add",`, "", 1): false, strings.Replace(oneAdd, "goal", "x", 1): false} {
		var v any
		if err := protocol.Unmarshal([]byte(text), &v); err != nil {
			t.Fatal(err)
		}
		if err := schema.Validate(v); ok != (err == nil) {
			t.Errorf("%s: %v", text, err)
		}
	}
	allowed := map[string]bool{"type": true, "properties": true, "required": true, "additionalProperties": true, "items": true, "enum": true, "description": true}
	var walk func(schema map[string]any)
	walk = func(schema map[string]any) {
		for key := range schema {
			if !allowed[key] {
				t.Errorf("keyword %s is not taken by every provider", key)
			}
		}
		if values, ok := schema["enum"].([]any); ok {
			for _, v := range values {
				if v == "" {
					t.Error("an empty value in an enum")
				}
			}
		}
		if properties, ok := schema["properties"].(map[string]any); ok {
			required, _ := schema["required"].([]any)
			if len(required) != len(properties) || schema["additionalProperties"] != false {
				t.Errorf("an object is open: %v", schema)
			}
			for _, p := range properties {
				p, _ := p.(map[string]any)
				walk(p)
			}
		}
		if items, ok := schema["items"].(map[string]any); ok {
			walk(items)
		}
	}
	root, _ := parsed.(map[string]any)
	walk(root)
}
