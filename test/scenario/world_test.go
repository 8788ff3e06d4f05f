package scenario

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sort"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"convls/client"
	"convls/protocol"
	"convls/test/editor"
	"convls/test/reference"
)

// world is a server, an editor on it, and what the reference says of both.
type world struct {
	t     testing.TB
	home  *editor.Home
	ed    *editor.Editor
	model *scripted
	// full makes every step compare all views, not the cheap ones alone.
	full bool

	sessions map[string]*reference.Session
	now      *reference.Session
	// names are what nodes and sessions are called, by id; ids is the reverse.
	names, ids map[string]string
	numbers    map[byte]int
	requests   int
	last       struct {
		method string
		params map[string]any
		result protocol.Raw
	}
	calls chan string // a tool was called
	steps []string
	// cursors are where the events of each session were when a server ended; first
	// are those from before its first event.
	cursors, first map[string]string
}

func newWorld(t testing.TB) *world {
	w := &world{t: t, home: editor.NewHome(t), model: newScripted(t), sessions: map[string]*reference.Session{}, full: true,
		names: map[string]string{}, ids: map[string]string{}, numbers: map[byte]int{}, calls: make(chan string, 64),
		cursors: map[string]string{}, first: map[string]string{}}
	w.start()
	return w
}

// settings are the editor's: the scripted model, and no second tries.
func (w *world) settings() map[string]any {
	return map[string]any{
		"model":     "fake/x",
		"providers": map[string]any{"fake": map[string]any{"base_url": w.model.URL()}},
		"turn":      map[string]any{"max_retries": 0},
		// A compaction is an operation of its own.
		"compaction": map[string]any{"auto": false, "max_retries": 0},
		"models":     map[string]any{"fake/x": map[string]any{"window": 200_000, "max_output": 4_000}},
	}
}

func (w *world) start() {
	w.t.Helper()
	w.ed = w.home.Start(w.t, editor.Options{Client: client.Options{Name: "scenario", Settings: w.settings(), CallTool: w.callTool}})
}

func (w *world) callTool(ctx context.Context, p protocol.ToolCallParams) (protocol.ToolCallResult, error) {
	args := string(p.Arguments)
	if strings.Contains(args, "held") {
		gate := w.model.hold()
		w.calls <- p.NodeID
		select {
		case <-gate.Released():
		case <-ctx.Done():
			return protocol.ToolCallResult{}, ctx.Err()
		}
	}
	text, isError := lookUp(args)
	return protocol.ToolCallResult{Content: protocol.SendContent{{Type: protocol.PartText, Text: text}}, IsError: isError}, nil
}

// tools declares the tool.
func tools() []protocol.ToolDeclaration {
	return []protocol.ToolDeclaration{{Name: "look", Description: "looks something up",
		Schema: protocol.Raw(`{"type":"object","properties":{"q":{"type":"string"}},"required":["q"]}`)}}
}

// do carries out one operation and checks everything. It returns what came of it.
func (w *world) do(d *datadriven.TestData) string {
	w.t.Helper()
	step := d.FullCmd()
	for _, c := range d.CmdArgs {
		if len(c.Vals) == 1 && strings.Contains(c.Vals[0], " ") {
			step = strings.ReplaceAll(step, "="+c.Vals[0], "=("+c.Vals[0]+")")
		}
	}
	if d.Input != "" {
		step += "\n" + d.Input
	}
	w.steps = append(w.steps, step)
	op, ok := operations[d.Cmd]
	if !ok {
		w.t.Fatalf("there is no operation %q", d.Cmd)
	}
	out := op(w, arguments{w, d})
	w.settle()
	w.check()
	return w.anonymous(out)
}

// run is do for a line and an input.
func (w *world) run(line, input string) string {
	w.t.Helper()
	cmd, args, err := datadriven.ParseLine(line)
	if err != nil {
		w.t.Fatal(err)
	}
	return w.do(&datadriven.TestData{Cmd: cmd, CmdArgs: args, Input: input})
}

// log is everything done so far as a scenario file.
func (w *world) log() string {
	return strings.Join(w.steps, "\n----\n\n") + "\n----\n"
}

// arguments are those of an operation.
type arguments struct {
	w *world
	*datadriven.TestData
}

// word returns the nth argument that has no value.
func (a arguments) word(n int) string {
	for _, c := range a.CmdArgs {
		if len(c.Vals) > 0 {
			continue
		}
		if n--; n < 0 {
			return c.Key
		}
	}
	return ""
}

func (a arguments) text(key string) string {
	if c, ok := a.Arg(key); ok {
		return strings.Join(c.Vals, ", ")
	}
	return ""
}

// node returns the id of the node that the nth argument names, or the name itself
// if there is no such node.
func (a arguments) node(n int) string { return a.w.id(a.word(n)) }

func (a arguments) named(key string) string { return a.w.id(a.text(key)) }

func (w *world) id(name string) string {
	if name == "root" && w.now != nil {
		return w.now.Root().ID
	}
	if id, ok := w.ids[name]; ok {
		return id
	}
	return name
}

// name gives an id a name.
func (w *world) name(id string, kind protocol.Kind) {
	if id == "" || w.names[id] != "" {
		return
	}
	letter := map[protocol.Kind]byte{protocol.KindUser: 'u', protocol.KindAssistant: 'a', protocol.KindTool: 't', protocol.KindCall: 'c', protocol.KindAttach: 'x', protocol.KindSummary: 's', protocol.KindRoot: 'r'}[kind]
	w.numbers[letter]++
	name := fmt.Sprintf("%c%d", letter, w.numbers[letter])
	if kind == protocol.KindRoot {
		name = "root"
		w.names[id] = name
		return
	}
	w.names[id], w.ids[name] = name, id
}

// anonymous replaces ids by names.
func (w *world) anonymous(text string) string {
	ids := make([]string, 0, len(w.names))
	for id := range w.names {
		if strings.Contains(text, id) {
			ids = append(ids, id)
		}
	}
	sort.Slice(ids, func(i, j int) bool { return len(ids[i]) > len(ids[j]) })
	for _, id := range ids {
		text = strings.ReplaceAll(text, id, w.names[id])
	}
	return text
}

// change sends a mutation of the present session and returns the code that it was
// refused with.
func change[R any](w *world, method string, params map[string]any) (R, protocol.Code) {
	w.t.Helper()
	w.requests++
	if params["session_id"] == nil && w.now != nil {
		params["session_id"] = w.now.ID
	}
	params["request_id"] = fmt.Sprintf("request %d", w.requests)
	for k, v := range params {
		if v == "" || v == false {
			delete(params, k)
		}
	}
	var r R
	raw, err := editor.Try[protocol.Raw](w.ed, method, params)
	if e, ok := errors.AsType[*protocol.Error](err); ok {
		if e.Message == "" || e.Data.Code == "" {
			w.t.Fatalf("%s was refused without a reason: %+v", method, e)
		}
		return r, e.Code
	}
	if err != nil {
		w.t.Fatalf("%s: %v", method, err)
	}
	w.last.method, w.last.params, w.last.result = method, params, raw
	if err := protocol.Unmarshal(raw, &r); err != nil {
		w.t.Fatalf("%s answered %s: %v", method, raw, err)
	}
	return r, ""
}

// agree fails the test if the server and the reference disagree on an operation.
func (w *world) agree(server, reference protocol.Code) {
	w.t.Helper()
	if server != reference {
		w.t.Fatalf("the server says %q, the reference %q, to: %s", server, reference, w.steps[len(w.steps)-1])
	}
}

// settle waits until the server has done all that the reference says follows from
// the last operation, and learns the ids that the server made.
func (w *world) settle() {
	w.t.Helper()
	for _, name := range w.sessionNames() {
		s := w.sessions[name]
		for _, n := range s.Unbound() {
			w.bind(s, n)
		}
		for _, n := range s.Nodes {
			w.name(n.ID, n.Kind)
		}
		for _, t := range s.Over {
			w.ed.AwaitEnd(s.ID, t.First.ID)
		}
		s.Over = nil
		w.ed.AwaitHead(s.ID, s.Head.ID)
		for _, t := range s.Turns {
			if t.Reply.Status == protocol.StatusOpen {
				w.ed.AwaitText(t.Reply.ID, t.Partial())
			}
		}
	}
}

// bind learns the id of a node from the events.
func (w *world) bind(s *reference.Session, n *reference.Node) {
	w.t.Helper()
	var pred, caller string
	if n.Pred != nil {
		pred = n.Pred.ID
	}
	if n.Caller != nil {
		caller = n.Caller.ID
	}
	w.ed.Await(w.anonymous(fmt.Sprintf("the %s after %q, called by %q", n.Kind, pred, caller)), func(seen *editor.Seen) bool {
		for _, e := range seen.Events[s.ID] {
			if e.Type == protocol.EventNodeAppended && e.Node != nil && e.Node.Kind == n.Kind && e.Node.Predecessor == pred && e.Node.Caller == caller &&
				s.Find(e.NodeID) == nil {
				n.ID = e.NodeID
				return true
			}
		}
		return false
	})
	if n.Kind == protocol.KindTool && n.Status == protocol.StatusOpen && strings.Contains(n.Call.Arguments, "held") {
		<-w.calls
	}
}

func (w *world) sessionNames() []string {
	var names []string
	for name := range w.sessions {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
