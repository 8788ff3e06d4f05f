package scenario

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"convls/protocol"
	"convls/test/editor"
)

// The codes of JSON-RPC and LSP for what never reached a method.
const (
	parseError     = -32700
	invalidRequest = -32600
	methodNotFound = -32601
	invalidParams  = -32602
	notInitialized = -32002
	requestFailed  = -32803
)

// member is a member of a method's parameters.
type member struct {
	name string
	kind reflect.Kind
}

// membersOf returns the members of a type, those of embedded types among them.
func membersOf(t reflect.Type) []member {
	var out []member
	for i := range t.NumField() {
		f := t.Field(i)
		if f.Anonymous {
			out = append(out, membersOf(f.Type)...)
			continue
		}
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		ft := f.Type
		if ft.Kind() == reflect.Pointer {
			ft = ft.Elem()
		}
		if ft == reflect.TypeFor[protocol.Raw]() {
			continue // anything fits
		}
		out = append(out, member{name, ft.Kind()})
	}
	return out
}

// requests are the methods that clients call, by name, with their members.
func requests() map[string][]member {
	out := map[string][]member{}
	for _, m := range protocol.Methods() {
		if m.Sender == protocol.FromClient && !m.Notification() {
			out[m.Name] = membersOf(reflect.TypeOf(m.Params))
		}
	}
	return out
}

// undemanding are the methods that need no parameters.
// Who unsubscribes from what is not there has what was asked for.
var undemanding = []string{protocol.MethodSessionUnsubscribe, protocol.MethodSessionCreate, protocol.MethodSessionList, protocol.MethodStoreSubscribe, protocol.MethodModelList, protocol.MethodStatus}

// victim is a server with one session that nothing may change.
type victim struct {
	*editor.Wire
	t       *testing.T
	session string
	before  string
}

func newVictim(t *testing.T) *victim {
	v := &victim{Wire: editor.NewHome(t).Wire(t), t: t}
	v.Initialize()
	var s protocol.SessionResult
	v.ok(protocol.MethodSessionCreate, `{"title":"untouched"}`, &s)
	v.session = s.SessionID
	var r protocol.TurnResult
	v.ok(protocol.MethodTurnSend, fmt.Sprintf(`{"session_id":%q,"content":"repeat: hello","wait":true}`, v.session), &r)
	v.before = v.fingerprint()
	return v
}

func (v *victim) ok(method, params string, result any) {
	v.t.Helper()
	a := v.Call(method, params)
	if a.Error != nil {
		v.t.Fatalf("%s: %+v", method, a.Error)
	}
	if err := protocol.Unmarshal(a.Result, result); err != nil {
		v.t.Fatal(err)
	}
}

// fingerprint is all that there is to change.
func (v *victim) fingerprint() string {
	v.t.Helper()
	var list protocol.SessionListResult
	v.ok(protocol.MethodSessionList, `{}`, &list)
	var export protocol.ExportResult
	v.ok(protocol.MethodSessionExport, fmt.Sprintf(`{"session_id":%q,"format":"jsonl"}`, v.session), &export)
	var open protocol.SessionOpenResult
	v.ok(protocol.MethodSessionOpen, fmt.Sprintf(`{"session_id":%q,"tail":0}`, v.session), &open)
	return fmt.Sprintf("%d sessions, cursor %s, updated %s, queue %d, open %d\n%s", len(list.Sessions), open.Cursor, open.Session.UpdatedAt, len(open.Queue), len(open.OpenNodes), export.Text)
}

// refuses fails the test unless the answer is an error that says what is wrong.
func (v *victim) refuses(a editor.Answer, what string, codes ...int) {
	v.t.Helper()
	switch {
	case a.Error == nil:
		v.t.Errorf("%s is answered by %.300s", what, a.Result)
	case !slices.Contains(codes, a.Error.Code):
		v.t.Errorf("%s is refused with %d %q, not with %v", what, a.Error.Code, a.Error.Message, codes)
	case a.Error.Message == "" || a.Error.Code == requestFailed && a.Error.Data.Code == "":
		v.t.Errorf("%s is refused without a reason: %s", what, a.Body)
	case len(a.Error.Message) > 2000:
		v.t.Errorf("%s is refused in %d bytes", what, len(a.Error.Message))
	}
}

func (v *victim) unchanged() {
	v.t.Helper()
	if after := v.fingerprint(); after != v.before {
		v.t.Errorf("bad input changed something:\n%s\nand before:\n%s", after, v.before)
	}
}

// object spells parameters.
func object(members map[string]string) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(members)) {
		parts = append(parts, fmt.Sprintf("%q:%s", name, members[name]))
	}
	return "{" + strings.Join(parts, ",") + "}"
}

// TestBadParams sends every method what it can not take: each is answered by an
// error, the server lives, and nothing has changed.
func TestBadParams(t *testing.T) {
	v := newVictim(t)
	all := requests()
	for _, method := range slices.Sorted(maps.Keys(all)) {
		members := all[method]
		t.Run(strings.TrimPrefix(method, "convls/"), func(t *testing.T) {
			v.t = t
			for _, shape := range []string{`{}`, `[]`, `null`} {
				if !slices.Contains(undemanding, method) {
					v.refuses(v.Call(method, shape), shape, invalidParams, requestFailed)
				}
			}
			for _, shape := range []string{`5`, `"text"`, `[1]`, `true`} {
				v.refuses(v.Call(method, shape), shape, invalidParams, invalidRequest)
			}
			for _, m := range members {
				wrong := "5"
				switch m.kind {
				case reflect.Int, reflect.Int64, reflect.Bool, reflect.Float64:
					wrong = `"text"`
				}
				v.refuses(v.Call(method, object(map[string]string{m.name: wrong})), m.name+" of a wrong type", invalidParams)
			}
			if hasMember(members, "session_id") && method != protocol.MethodSessionUnsubscribe {
				v.unknown(method, members)
			}
			v.numbers(method, members)
			v.unchanged()
		})
	}
}

func hasMember(members []member, name string) bool {
	return slices.ContainsFunc(members, func(m member) bool { return m.name == name })
}

// unknown names what is not there: an unknown session, then unknown nodes of one
// that is.
func (v *victim) unknown(method string, members []member) {
	v.t.Helper()
	p := map[string]string{}
	for _, m := range members {
		switch {
		case m.name == "request_id" || m.name == "expected_head" || m.name == "include" || m.name == "path" || m.name == "expanded":
		case m.name == "format":
			p[m.name] = `"markdown"`
		case m.kind == reflect.String:
			p[m.name] = `"nowhere"`
		case m.name == "content":
			p[m.name] = `"text"`
		case m.kind == reflect.Bool && m.name == "confirm":
			p[m.name] = "true"
		}
	}
	code := requestFailed
	v.refuses(v.Call(method, object(p)), "an unknown session", code, invalidParams)
	p["session_id"] = fmt.Sprintf("%q", v.session)
	switch method {
	case protocol.MethodSessionRename, protocol.MethodSessionDelete, protocol.MethodBranchList, protocol.MethodSessionSearch, protocol.MethodCompactionList:
		return // need nothing more
	case protocol.MethodSessionSubscribe:
		// A cursor that means nothing is told by reset, not refused.
		if a := v.Call(method, object(p)); a.Error != nil || !strings.Contains(string(a.Result), `"reset":true`) {
			v.t.Errorf("a cursor that means nothing is answered by %s", a.Body)
		}
		return
	case protocol.MethodSessionOpen:
		return
	}
	v.refuses(v.Call(method, object(p)), "an unknown node", code, invalidParams)
}

// numbers sends numbers out of range.
func (v *victim) numbers(method string, members []member) {
	v.t.Helper()
	for _, m := range members {
		if m.kind != reflect.Int && m.kind != reflect.Int64 {
			continue
		}
		for _, n := range []string{"-1", "1000000000", "1e300", "99999999999999999999", "1.5"} {
			p := map[string]string{m.name: n}
			for _, other := range members {
				switch other.name {
				case "session_id":
					p[other.name] = fmt.Sprintf("%q", v.session)
				case "node_id", "a_id", "b_id":
					p[other.name] = `"nowhere"`
				case "query":
					p[other.name] = `"hello"`
				}
			}
			v.refuses(v.Call(method, object(p)), m.name+" "+n, invalidParams, requestFailed)
		}
	}
}

// TestBadText sends what is no text: broken UTF-8, lone surrogates, members twice,
// nesting without end. The connection stays (fault 91).
func TestBadText(t *testing.T) {
	v := newVictim(t)
	for _, method := range slices.Sorted(maps.Keys(requests())) {
		for _, tc := range []struct{ name, params string }{
			{"broken UTF-8", "{\"session_id\":\"\xff\xfe\"}"},
			{"a cut character", "{\"title\":\"\xe6\xbc\"}"},
			{"an overlong character", "{\"title\":\"\xc0\xaf\"}"},
			{"a lone surrogate", `{"title":"\ud83d"}`},
			{"surrogates in the wrong order", `{"title":"\udc68\ud83d"}`},
			{"a member twice", `{"session_id":"a","session_id":"b"}`},
			{"a NUL that is not escaped", "{\"title\":\"a\x00b\"}"},
			{"nesting", `{"x":` + strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000) + `}`},
			{"a cut value", `{"x":[1,2}`},
			{"more than one value", `{} {}`},
		} {
			v.refuses(v.Call(method, tc.params), method+" with "+tc.name, parseError, invalidRequest, invalidParams)
		}
	}
	v.unchanged()
}

// TestHugeText sends strings of a mebibyte where a name or a title is expected.
func TestHugeText(t *testing.T) {
	v := newVictim(t)
	huge := `"` + strings.Repeat("x", 1<<20) + `"`
	all := requests()
	// What a person writes, and what is only looked for, may be long.
	fine := []string{"content", "system", "text", "query", "after", "before", "around"}
	for _, method := range slices.Sorted(maps.Keys(all)) {
		for _, m := range all[method] {
			if m.kind != reflect.String || slices.Contains(fine, m.name) {
				continue
			}
			p := map[string]string{m.name: huge}
			if m.name != "session_id" && hasMember(all[method], "session_id") {
				p["session_id"] = fmt.Sprintf("%q", v.session)
			}
			if m.name == "request_id" || m.name == "expected_head" {
				p["content"], p["title"], p["node_id"], p["confirm"], p["name"] = `"x"`, `"x"`, `"nowhere"`, "true", `"x"`
				p["tip"] = `"nowhere"`
			}
			if method == protocol.MethodSessionList || method == protocol.MethodSessionUnsubscribe || method == protocol.MethodSessionCreate && m.name == "expected_head" {
				continue // a filter that nothing passes; a session that is not there yet has no HEAD
			}
			v.refuses(v.Call(method, object(p)), method+" with a huge "+m.name, invalidParams, requestFailed)
		}
	}
	v.refuses(v.Call("convls/"+strings.Repeat("x", 1<<20), `{}`), "a huge method", methodNotFound)
	v.unchanged()
}

// TestLifecycle sends every method before initialize and after shutdown.
func TestLifecycle(t *testing.T) {
	home := editor.NewHome(t)
	w := home.Wire(t)
	v := &victim{Wire: w, t: t}
	for method := range requests() {
		v.refuses(w.Call(method, `{}`), method+" before initialize", notInitialized)
	}
	w.Initialize()
	v.refuses(w.Call("initialize", `{"capabilities":{}}`), "initialize twice", invalidRequest)
	v.refuses(w.Call("convls/nothing", `{}`), "a method that there is not", methodNotFound)
	if a := w.Call("shutdown", `null`); a.Error != nil {
		t.Fatalf("shutdown: %+v", a.Error)
	}
	for method := range requests() {
		v.refuses(w.Call(method, `{}`), method+" after shutdown", invalidRequest)
	}
	w.Write(editor.Frame(`{"jsonrpc":"2.0","method":"exit"}`))
	if code := w.Wait(); code != 0 {
		t.Errorf("after shutdown and exit the code is %d", code)
	}
	home.Check(t)
}
