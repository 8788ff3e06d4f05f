package main

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"convls/protocol"
)

// shown lists the optional members that a method's example has beside the
// required ones, because the method makes no sense without them.
func shown(method string) []string {
	switch method {
	case protocol.MethodSessionCreate:
		return []string{"title", "model"}
	case protocol.MethodSessionList:
		return []string{"limit"}
	case protocol.MethodSessionOpen:
		return []string{"tail", "subscribe"}
	case protocol.MethodSessionConfigure:
		return []string{"model"}
	case protocol.MethodSessionDelete, protocol.MethodNodeRedact:
		return []string{"confirm"}
	case protocol.MethodSessionSubscribe:
		return []string{"after"}
	case protocol.MethodSessionImport:
		return []string{"path"}
	case protocol.MethodSessionExport:
		return []string{"text"}
	case protocol.MethodTurnEdit:
		return []string{"user_id", "reply_id"}
	case protocol.MethodBranchCheckout:
		return []string{"branch"}
	case protocol.MethodBranchFork:
		return []string{"name"}
	case protocol.MethodBranchRename:
		return []string{"tip"}
	case protocol.MethodBranchDelete:
		return []string{"branch", "confirm"}
	case protocol.MethodEvent:
		return []string{"head", "previous", "cause"}
	case protocol.MethodReset:
		return []string{"session_id", "cursor"}
	case protocol.MethodSecretGet:
		return []string{"key"}
	}
	return nil
}

// words are the sample values of members of type string.
func words() map[string]string {
	return map[string]string{
		"after": "3f2a:17", "before": "3f2a:9", "cursor": "3f2a:18", "next": "3f2a:50",
		"session_id": "01JQ4W8ZC3", "node_id": "01JQ4W9K7M", "user_id": "01JQ4W9K7L", "reply_id": "01JQ4W9K7M",
		"head": "01JQ4W9K7M", "previous": "01JQ4W9A2B", "tip": "01JQ4W9K7M", "id": "01JQ4W9K7M",
		"ancestor_id": "01JQ4W9A2B", "a_id": "01JQ4W9K7M", "b_id": "01JQ4WB01D", "anchor_id": "01JQ4W9K7M",
		"source_id": "01JQ4WB01D", "summary_id": "01JQ4WC77X", "from_session_id": "01JQ4W0000", "request_id": "c1-42",
		"title": "Parser rewrite", "branch": "try-iterators", "name": "try-iterators", "query": "iterator",
		"content": "Shorter, please.", "text": "Use an iterator.", "preview": "Use an iterator.", "snippet": "Use an iterator.",
		"model": "ollama/qwen3", "provider": "ollama", "base_url": "http://127.0.0.1:11434", "policy": "rolling",
		"path": "/home/ada/parser.jsonl", "format": "jsonl", "renders": "raw", "role": "assistant", "source": "tokenizer",
		"reason": "missing", "key": "sk-...", "version": "0.1.0", "type": "file", "cause": "checkout", "state": "running",
	}
}

// numbers are the sample values of members of a number type, where 1 would look odd.
func numbers() map[string]int64 {
	return map[string]int64{
		"limit": 50, "tail": 50, "used": 5180, "window": 32768, "output_reserve": 4096, "trigger_at": 22938,
		"input_tokens": 5100, "output_tokens": 80, "tokens": 40, "nodes": 12, "depth": 7, "seq": 11, "revision": 11,
		"bytes": 16, "offset": 0, "part": 0, "protocol_version": protocol.Version, "pid": 4242, "uptime_ms": 60000,
		"max_output": 4096, "elapsed_ms": 900, "covered": 40, "line": 3, "character": 0, "percent": 18, "clients": 2,
		"skipped_count": 0, "format": 1, "removed": 6, "total": 2, "count": 1,
	}
}

// sampler makes sample values for the examples.
type sampler struct {
	words   map[string]string
	numbers map[string]int64
	src     *source
	method  string
	extra   []string
}

// example returns a sample of v, a zero value, as indented JSON: the required
// members and those that shown names.
func (s *source) example(method string, v any) (string, error) {
	sm := &sampler{words: words(), numbers: numbers(), src: s, method: method, extra: shown(method)}
	out := reflect.New(reflect.TypeOf(v)).Elem()
	if err := sm.fill(out, "", 0); err != nil {
		return "", err
	}
	data, err := protocol.Marshal(out.Interface())
	if err != nil {
		return "", fmt.Errorf("example of %s: %w", method, err)
	}
	text := jsontext.Value(data)
	if err := text.Indent(jsontext.WithIndent("  ")); err != nil {
		return "", fmt.Errorf("example of %s: %w", method, err)
	}
	return string(text), nil
}

// fill sets v, a member called name, to a sample. Below two levels arrays stay
// empty, which keeps examples short and ends recursive types.
func (sm *sampler) fill(v reflect.Value, name string, depth int) error {
	switch v.Type() {
	case timeType:
		v.Set(reflect.ValueOf(time.Date(2026, 1, 2, 15, 4, 5, 0, time.UTC)))
		return nil
	case rawType:
		v.SetBytes([]byte(`{}`))
		return nil
	case contentType:
		v.Set(reflect.ValueOf(protocol.SendContent{{Type: protocol.PartText, Text: sm.words["content"]}}))
		return nil
	}
	switch v.Kind() {
	case reflect.Struct:
		return sm.fillStruct(v, depth)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		return sm.fill(v.Elem(), name, depth)
	case reflect.Slice:
		if depth > 1 || emptyInExamples(name) {
			return nil
		}
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		return sm.fill(v.Index(0), strings.TrimSuffix(name, "s"), depth+1)
	case reflect.Map:
		return nil
	case reflect.String:
		v.SetString(sm.word(v.Type(), name))
		return nil
	case reflect.Bool:
		v.SetBool(slices.Contains([]string{"subscribe", "confirm", "is_head", "on_head", "in_context"}, name))
		return nil
	case reflect.Int, reflect.Int64:
		v.SetInt(sm.number(name))
		return nil
	case reflect.Uint32:
		v.SetUint(uint64(sm.number(name)))
		return nil
	case reflect.Float64:
		v.SetFloat(float64(sm.number(name)))
		return nil
	default:
		return fmt.Errorf("no sample for %s of type %v", name, v.Type())
	}
}

// fillStruct sets the members that examples show.
func (sm *sampler) fillStruct(v reflect.Value, depth int) error {
	for _, m := range members(v.Type()) {
		show := depth == 0 && slices.Contains(sm.extra, m.json)
		// A text part without its text would be a strange example.
		show = show || v.Type() == reflect.TypeFor[protocol.Part]() && m.json == "text"
		if m.optional && !show {
			continue
		}
		f, err := v.FieldByIndexErr(fieldIndex(v.Type(), m))
		if err != nil {
			return err
		}
		if err := sm.fill(f, m.json, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// fieldIndex returns where in t, which may embed its owner, m is.
func fieldIndex(t reflect.Type, m member) []int {
	f, ok := t.FieldByName(m.field.Name)
	if !ok {
		return m.field.Index
	}
	return f.Index
}

// emptyInExamples reports whether the array is left empty: it would say nothing.
func emptyInExamples(name string) bool {
	return slices.Contains([]string{"actions", "active_summaries", "skipped", "errors", "omitted", "queue", "open_nodes", "reads"}, name)
}

func (sm *sampler) word(t reflect.Type, name string) string {
	switch {
	case t == reflect.TypeFor[protocol.Status]() && name == "status":
		return string(protocol.StatusSealed)
	case t == reflect.TypeFor[protocol.Kind]():
		return string(protocol.KindAssistant)
	case t == reflect.TypeFor[protocol.PartType]():
		return string(protocol.PartText)
	case t == reflect.TypeFor[protocol.EventType]():
		return string(protocol.EventHeadMoved)
	case name == "name" && sm.method == protocol.MethodToolCall:
		return "read_file"
	case name == "state" && sm.method == protocol.MethodTurnCancel:
		return string(protocol.StatusCancelled)
	case name == "path" && sm.method == protocol.MethodStatus:
		return "/home/ada/.local/share/convls"
	case t.PkgPath() != "" && name != "state":
		if c := sm.src.consts[t.Name()]; len(c) > 0 {
			return c[0].value
		}
	}
	if w, ok := sm.words[name]; ok {
		return w
	}
	return name
}

func (sm *sampler) number(name string) int64 {
	if n, ok := sm.numbers[name]; ok {
		return n
	}
	return 1
}
