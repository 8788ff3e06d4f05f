package compaction

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"convls/client"
	"convls/compaction/manifest"
	"convls/protocol"
	"convls/test/editor"
	"convls/test/fakemodel"
)

func TestMain(m *testing.M) { os.Exit(editor.Main(m)) }

type params = map[string]any

// chat is a conversation with a scripted model on a real server.
type chat struct {
	*editor.Editor
	t       *testing.T
	home    *editor.Home
	model   *scripted
	options client.Options
	session string
	// from is the cursor from which events come.
	from string
}

// newChat starts a server whose model has a window of 8,000 tokens, 6,000 of them
// for the conversation; set changes settings.
func newChat(t *testing.T, set params) *chat {
	c := &chat{t: t, home: editor.NewHome(t), model: newScripted(t)}
	all := params{"model": "fake/x", "providers.fake.base_url": c.model.URL(), "turn.max_retries": 0, "compaction.max_retries": 0,
		"models": params{"fake/x": params{"window": 8_000, "max_output": 2_000}, "fake/small": params{"window": 3_000, "max_output": 500}}, "compaction.auto": false}
	for k, v := range set {
		all[k] = v
	}
	c.options = client.Options{Name: "compaction", Settings: all, CallTool: c.model.callTool}
	c.start()
	s := editor.Ask[protocol.SessionResult](c.Editor, protocol.MethodSessionCreate, params{"system": "Be brief."})
	c.session = s.SessionID
	c.subscribe("")
	return c
}

// row is another session on the same server, for one row of a table: settings are
// the session's own. What the summariser was told to say is forgotten.
func (c *chat) row(t *testing.T, settings params) *chat {
	t.Helper()
	row := &chat{Editor: c.Editor, t: t, home: c.home, model: c.model, options: c.options}
	if settings == nil {
		settings = params{}
	}
	s := editor.Ask[protocol.SessionResult](row.Editor, protocol.MethodSessionCreate, params{"system": "Be brief.", "settings": settings})
	row.session = s.SessionID
	row.subscribe("")
	c.model.reset()
	return row
}

func (c *chat) start() {
	c.Editor = c.home.Start(c.t, editor.Options{Client: c.options})
}

func (c *chat) subscribe(after string) {
	r := editor.Ask[protocol.SubscribeResult](c.Editor, protocol.MethodSessionSubscribe, protocol.SubscribeParams{SessionID: c.session, After: after})
	if c.from = after; after == "" {
		c.from = r.Cursor
	}
}

// settle waits until every event of the session so far has come.
func (c *chat) settle() {
	c.t.Helper()
	last := c.open().Cursor
	if last == c.from {
		return
	}
	c.Await("the event "+last, func(s *editor.Seen) bool {
		return slices.ContainsFunc(s.Events[c.session], func(e protocol.Event) bool { return e.Cursor == last })
	})
}

// restart ends the server as end says, starts another and follows the session on.
func (c *chat) restart(end func(testing.TB)) {
	cursor := c.Cursor(c.session)
	end(c.t)
	c.start()
	c.subscribe(cursor)
}

// send sends a message and waits for its answer.
func (c *chat) send(text string) protocol.TurnResult {
	c.t.Helper()
	r := editor.Ask[protocol.TurnResult](c.Editor, protocol.MethodTurnSend, params{"session_id": c.session, "content": text, "wait": true})
	if r.State != protocol.StatusSealed {
		c.t.Fatalf("the turn ended as %s: %+v", r.State, r.Node)
	}
	return r
}

// long is a message of about n tokens about a topic.
func long(topic string, n int) string {
	return strings.TrimSpace(topic + " " + strings.Repeat("and so it goes on with words ", n/7))
}

// chat sends n messages, each answered at some length, and returns the replies.
func (c *chat) chat(n int) (replies []string) {
	c.t.Helper()
	for i := range n {
		replies = append(replies, c.send(long(fmt.Sprintf("Message %d.", i+1), 100)).ReplyID)
	}
	return replies
}

// compact runs a compaction to its end.
func (c *chat) compact(p params) protocol.CompactionResult {
	c.t.Helper()
	all := params{"session_id": c.session, "wait": true}
	for k, v := range p {
		all[k] = v
	}
	return editor.Ask[protocol.CompactionResult](c.Editor, protocol.MethodCompactionRun, all)
}

// compacted is compact for a run that has to succeed.
func (c *chat) compacted(p params) protocol.CompactionResult {
	c.t.Helper()
	r := c.compact(p)
	if r.State != protocol.RunFinished {
		c.t.Fatalf("the compaction ended as %s: %+v", r.State, r.Error)
	}
	if r.TokensAfter >= r.TokensBefore {
		c.t.Fatalf("tokens %d before, %d after", r.TokensBefore, r.TokensAfter)
	}
	return r
}

// context returns the context view of a head, HEAD's if it is "".
func (c *chat) context(head string) protocol.ContextView {
	c.t.Helper()
	return editor.Ask[protocol.ContextView](c.Editor, protocol.MethodContextGet, params{"session_id": c.session, "head": head})
}

// raw is context without any summary.
func (c *chat) raw(head string) protocol.ContextView {
	c.t.Helper()
	return editor.Ask[protocol.ContextView](c.Editor, protocol.MethodContextGet, params{"session_id": c.session, "head": head, "raw": true})
}

func ids(v protocol.ContextView) (out []string) {
	for _, e := range v.Entries {
		out = append(out, e.ID)
	}
	return out
}

// covers returns the ids that a summary stands for.
func (c *chat) covers(summary string) []string {
	c.t.Helper()
	return editor.Ask[protocol.CompactionCoversResult](c.Editor, protocol.MethodCompactionCovers, params{"session_id": c.session, "summary_id": summary}).CoversIDs
}

func (c *chat) node(id string) protocol.Node {
	c.t.Helper()
	return editor.Ask[protocol.NodeGetResult](c.Editor, protocol.MethodNodeGet, params{"session_id": c.session, "node_id": id, "include": []string{"content", "reads", "provenance"}}).Node
}

func (c *chat) list() protocol.CompactionListResult {
	c.t.Helper()
	return editor.Ask[protocol.CompactionListResult](c.Editor, protocol.MethodCompactionList, params{"session_id": c.session})
}

func (c *chat) head() string {
	c.t.Helper()
	return editor.Ask[protocol.SessionOpenResult](c.Editor, protocol.MethodSessionOpen, params{"session_id": c.session}).Session.Head
}

func (c *chat) checkout(node string) {
	c.t.Helper()
	editor.Ask[protocol.HeadResult](c.Editor, protocol.MethodBranchCheckout, params{"session_id": c.session, "node_id": node})
}

// events returns the types of the session's events of compaction so far.
func (c *chat) events() (types []protocol.EventType) {
	c.t.Helper()
	c.settle()
	c.Look(func(s *editor.Seen) {
		for _, e := range s.Events[c.session] {
			if strings.HasPrefix(string(e.Type), "compaction_") {
				types = append(types, e.Type)
			}
		}
	})
	return types
}

// views is all that a person sees of a session: what has to be the same before and
// after something that changes nothing.
type views struct {
	head      string
	context   []protocol.ContextEntry
	raw       []string
	summaries []protocol.SummaryInfo
}

func (c *chat) views() views {
	c.t.Helper()
	return views{head: c.head(), context: c.context("").Entries, raw: ids(c.raw("")), summaries: c.list().Summaries}
}

// scripted is a model that tells its summariser's calls from its others.
type scripted struct {
	*fakemodel.Server

	mu      sync.Mutex
	summary []fakemodel.Reply // of the next calls of the summariser
	asked   []fakemodel.Request
	chats   []fakemodel.Request
	chat    func(fakemodel.Request) fakemodel.Reply
	// result is what every tool answers.
	result string
}

func (s *scripted) callTool(_ context.Context, p protocol.ToolCallParams) (protocol.ToolCallResult, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	text := s.result
	if text == "" {
		text = long("Result of "+string(p.Arguments)+".", 50)
	}
	return protocol.ToolCallResult{Content: protocol.SendContent{{Type: protocol.PartText, Text: text}}}, nil
}

// tools declares a tool, as a message does that allows it.
func tools() []protocol.ToolDeclaration {
	return []protocol.ToolDeclaration{{Name: "look", Description: "looks something up", Schema: protocol.Raw(`{"type":"object","properties":{"q":{"type":"string"}}}`)}}
}

// work sends a message whose turn makes n tool calls, one a model call, before the
// answer, and returns its replies.
func (c *chat) work(text string, n int) []string {
	c.t.Helper()
	left := n
	c.model.answer(func(fakemodel.Request) fakemodel.Reply {
		if left--; left < 0 {
			return fakemodel.Say(long("That is all.", 50))
		}
		return fakemodel.Call("look", fmt.Sprintf(`{"q":"page %d"}`, n-left))
	})
	defer c.model.answer(nil)
	before := len(ids(c.raw("")))
	r := editor.Ask[protocol.TurnResult](c.Editor, protocol.MethodTurnSend, params{"session_id": c.session, "content": text, "tools": tools(), "wait": true})
	if r.State != protocol.StatusSealed {
		c.t.Fatalf("the turn ended as %s: %+v", r.State, r.Node)
	}
	var replies []string
	for _, e := range c.raw("").Entries[before:] {
		if e.Kind == protocol.KindAssistant {
			replies = append(replies, e.ID)
		}
	}
	return replies
}

func newScripted(t *testing.T) *scripted {
	s := &scripted{Server: fakemodel.New(t)}
	s.Respond(s.respond)
	return s
}

func (s *scripted) respond(r fakemodel.Request) fakemodel.Reply {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !strings.HasPrefix(r.Messages[0].Text(), "You keep the memory") {
		s.chats = append(s.chats, r)
		if s.chat != nil {
			return s.chat(r)
		}
		return fakemodel.Say(long(fmt.Sprintf("Answer %d.", len(s.chats)), 100))
	}
	s.asked = append(s.asked, r)
	if len(s.summary) > 0 {
		reply := s.summary[0]
		s.summary = s.summary[1:]
		return reply
	}
	return fakemodel.Say(`{"changes":[],"narrative":"They talked about several messages."}`)
}

// reset forgets what was asked and what is to be answered.
func (s *scripted) reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.summary, s.asked, s.chats, s.chat, s.result = nil, nil, nil, nil, ""
}

// answer sets what the conversation's model answers.
func (s *scripted) answer(f func(fakemodel.Request) fakemodel.Reply) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.chat = f
}

// prompts are how many calls of the conversation were made.
func (s *scripted) prompts() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.chats)
}

// script sets what the next calls of the summariser answer.
func (s *scripted) script(replies ...fakemodel.Reply) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.summary = replies
}

// questions are the prompts that the summariser got, as texts.
func (s *scripted) questions() (out []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.asked {
		var b strings.Builder
		for _, m := range r.Messages[1:] {
			b.WriteString(m.Text())
		}
		out = append(out, b.String())
	}
	return out
}

// last is the last call of the conversation.
func (s *scripted) last() fakemodel.Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.chats[len(s.chats)-1]
}

// lastPrompt is the last prompt of the conversation, as texts with their roles.
func (s *scripted) lastPrompt() (out []string) {
	for _, m := range s.last().Messages {
		out = append(out, m.Role+": "+m.Text())
	}
	return out
}

// same fails the test if two lists differ.
func same[T comparable](t *testing.T, what string, got, want []T) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

func manifestOf(t *testing.T, n protocol.Node) *manifest.Manifest {
	t.Helper()
	m, err := manifest.Decode(n.Manifest)
	if err != nil {
		t.Fatalf("the manifest of %s: %v", n.ID, err)
	}
	return m
}
