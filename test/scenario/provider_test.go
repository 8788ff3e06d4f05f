package scenario

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"convls/client"
	"convls/protocol"
	"convls/test/editor"
	"convls/test/fakemodel"
	"convls/test/llama"
)

// bench is a server whose model a test scripts.
type bench struct {
	*editor.Editor
	fake *fakemodel.Server
}

func newBench(t *testing.T, settings map[string]any, o client.Options) *bench {
	b := &bench{fake: fakemodel.New(t)}
	all := map[string]any{"model": "fake/x", "providers.fake.base_url": b.fake.URL()}
	for k, v := range settings {
		all[k] = v
	}
	o.Settings = all
	b.Editor = editor.NewHome(t).Start(t, editor.Options{Client: o})
	return b
}

// session makes a session and follows it.
func (b *bench) session(p protocol.SessionCreateParams) string {
	s := editor.Ask[protocol.SessionResult](b.Editor, protocol.MethodSessionCreate, p)
	editor.Ask[protocol.SubscribeResult](b.Editor, protocol.MethodSessionSubscribe, protocol.SubscribeParams{SessionID: s.SessionID})
	return s.SessionID
}

func said(text string) protocol.SendContent {
	return protocol.SendContent{{Type: protocol.PartText, Text: text}}
}

// send sends a message and waits for the reply.
func (b *bench) send(session, text string) protocol.TurnResult {
	return editor.Ask[protocol.TurnResult](b.Editor, protocol.MethodTurnSend, protocol.TurnSendParams{SessionID: session, Content: said(text), Wait: true, Tools: tools()})
}

func textOf(n *protocol.Node) string {
	var texts []string
	for _, p := range n.Content {
		if p.Type == protocol.PartText {
			texts = append(texts, p.Text)
		}
	}
	return strings.Join(texts, "")
}

// TestProviderErrors sends what providers really answer to the end of the wire: a
// rate limit that speaks of tokens is no overflow, an overflow in the words of a
// gateway is one, a body that is too big is neither (faults 24 to 26).
func TestProviderErrors(t *testing.T) {
	b := newBench(t, map[string]any{"turn.max_retries": 0}, client.Options{})
	for _, tc := range []struct {
		name  string
		reply fakemodel.Reply
		code  protocol.Code
	}{
		{"tokens per day", fakemodel.Fail(429, `{"error":{"message":"Rate limit reached: too many tokens per day (TPD): Limit 100000","code":"rate_limit_exceeded"}}`), protocol.CodeProviderRateLimit},
		{"request too large for a minute", fakemodel.Fail(429, `{"error":{"message":"Request too large on tokens per min (TPM): Limit 30000, Requested 31000. The input or output tokens must be reduced","type":"tokens","code":"rate_limit_exceeded"}}`), protocol.CodeProviderRateLimit},
		{"no credit", fakemodel.Fail(429, `{"error":{"message":"You exceeded your current quota","code":"insufficient_quota"}}`), protocol.CodeProviderQuota},
		{"OpenAI overflow", fakemodel.Fail(400, `{"error":{"message":"This model's maximum context length is 8192 tokens.","code":"context_length_exceeded"}}`), protocol.CodeContextOverflow},
		{"llama.cpp overflow", fakemodel.Overflow(9000, 8192), protocol.CodeContextOverflow},
		{"vLLM overflow", fakemodel.Fail(400, `{"object":"error","message":"This model's maximum context length is 4096 tokens. However, you requested 5000 tokens","type":"BadRequestError","code":400}`), protocol.CodeContextOverflow},
		{"LM Studio overflow", fakemodel.Fail(400, `{"error":"Trying to keep the first 5000 tokens when context the overflows. However, the model is loaded with context length of only 4096 tokens"}`), protocol.CodeContextOverflow},
		{"body too large", fakemodel.Fail(413, `<html><body>413 Request Entity Too Large</body></html>`), protocol.CodeBodyTooLarge},
		{"key", fakemodel.Fail(401, `{"error":{"message":"Incorrect API key provided"}}`), protocol.CodeProviderAuth},
		{"down", fakemodel.Fail(503, `upstream connect error`), protocol.CodeProviderDown},
		{"nothing", fakemodel.Raw("data: [DONE]\n\n"), protocol.CodeStreamCut},
	} {
		t.Run(tc.name, func(t *testing.T) {
			session := b.session(protocol.SessionCreateParams{})
			before := len(b.fake.Requests())
			b.fake.Script(tc.reply)
			r := b.send(session, "hello")
			if r.State != protocol.StatusFailed || r.Node.Error == nil || r.Node.Error.Code != tc.code {
				t.Fatalf("the turn ended as %s, %+v; want %s", r.State, r.Node.Error, tc.code)
			}
			if r.Node.Error.Message == "" {
				t.Error("the error says nothing")
			}
			if n := len(b.fake.Requests()) - before; n != 1 {
				t.Errorf("the provider was asked %d times", n)
			}
			end := b.AwaitEnd(session, r.ReplyID)
			if end.Type != protocol.EventTurnFailed || end.Error == nil || end.Error.Code != tc.code {
				t.Errorf("the turn's last event is %+v", end)
			}
			b.fake.Script(fakemodel.Say("fine"))
			if r := b.send(session, "again"); r.State != protocol.StatusSealed || textOf(r.Node) != "fine" {
				t.Errorf("after it a turn ends as %s", r.State)
			}
		})
	}
}

// TestRetries checks that a call that failed before anything was shown is made
// again, and that clients are told of the wait.
func TestRetries(t *testing.T) {
	b := newBench(t, map[string]any{"turn.max_retries": 2}, client.Options{})
	session := b.session(protocol.SessionCreateParams{})
	b.fake.Script(fakemodel.Fail(429, `{"error":{"message":"slow down"}}`).With("Retry-After", "0"), fakemodel.Say("at last"))
	r := b.send(session, "hello")
	if r.State != protocol.StatusSealed || textOf(r.Node) != "at last" {
		t.Fatalf("the turn ended as %s, %+v", r.State, r.Node.Error)
	}
	b.Await("turn_retrying", func(s *editor.Seen) bool {
		return slices.ContainsFunc(s.Events[session], func(e protocol.Event) bool {
			return e.Type == protocol.EventTurnRetrying && e.ReplyID == r.ReplyID && e.Error.Code == protocol.CodeProviderRateLimit
		})
	})
}

// TestCutStream cuts a reply's stream at every byte: what had arrived is kept as
// failed, and the session goes on (fault 88).
func TestCutStream(t *testing.T) {
	b := newBench(t, map[string]any{"turn.max_retries": 0}, client.Options{})
	const text = "one two — 漢字 three"
	whole := fakemodel.Words(text)
	length := len(bodyOf(t, b.fake, whole))
	step := 11
	if editor.Long() {
		step = 1
	}
	session, asked := "", 0
	for cut := 1; cut < length; cut += step {
		if asked++; asked%40 == 1 {
			session = b.session(protocol.SessionCreateParams{})
		}
		b.fake.Script(whole.Cut(cut))
		r := b.send(session, fmt.Sprintf("cut at %d", cut))
		got := textOf(r.Node)
		switch r.State {
		case protocol.StatusFailed:
			if !strings.HasPrefix(text, got) {
				t.Fatalf("cut at %d the reply is %q", cut, got)
			}
			if code := r.Node.Error.Code; code != protocol.CodeStreamCut && code != protocol.CodeProviderDown {
				t.Fatalf("cut at %d the reply failed with %s", cut, code)
			}
		case protocol.StatusSealed:
			if got != text {
				t.Fatalf("cut at %d the reply is taken for whole: %q", cut, got)
			}
		default:
			t.Fatalf("cut at %d the turn ended as %s", cut, r.State)
		}
	}
	if r := b.send(session, "still there?"); r.State != protocol.StatusSealed {
		t.Errorf("after the cuts a turn ends as %s, %+v", r.State, r.Node.Error)
	}
}

// bodyOf returns what the server sends for a reply.
func bodyOf(t *testing.T, fake *fakemodel.Server, r fakemodel.Reply) string {
	t.Helper()
	fake.Script(r)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, fake.URL()+"/chat/completions", strings.NewReader(`{"model":"x","stream":true,"messages":[]}`))
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

// TestChunks streams characters of every width across every border of the chunks
// that they come in (fault 92).
func TestChunks(t *testing.T) {
	b := newBench(t, nil, client.Options{})
	session := b.session(protocol.SessionCreateParams{})
	const text = "é漢😀👨‍👩‍👧 a\u0301 \U0010FFFF end"
	for size := 1; size <= 16; size++ {
		reply := fakemodel.Say(strings.Split(text, "")...)
		reply.ChunkBytes = size
		b.fake.Script(reply)
		r := b.send(session, "hello")
		if r.State != protocol.StatusSealed || textOf(r.Node) != text {
			t.Fatalf("in chunks of %d the reply is %s, %q", size, r.State, textOf(r.Node))
		}
		b.AwaitEnd(session, r.ReplyID)
		b.Look(func(s *editor.Seen) {
			if got := s.Texts[r.ReplyID]; len(got) != 1 || got[0].Text != text {
				t.Errorf("in chunks of %d the deltas make %+v", size, got)
			}
			if len(s.Faults) > 0 {
				t.Error(strings.Join(s.Faults, "\n"))
			}
		})
	}
}

// TestClippedResults clips a tool's result at every byte of a text with characters
// of every width: the prompt stays valid, and says that it was clipped (fault 91).
func TestClippedResults(t *testing.T) {
	const result = "é漢😀👨‍👩‍👧é漢😀👨‍👩‍👧é漢😀"
	b := newBench(t, nil, client.Options{CallTool: func(ctx context.Context, _ protocol.ToolCallParams) (protocol.ToolCallResult, error) {
		return protocol.ToolCallResult{Content: said(result)}, ctx.Err()
	}})
	for limit := 1; limit <= len(result); limit++ {
		session := b.session(protocol.SessionCreateParams{Settings: protocol.Raw(fmt.Sprintf(`{"turn":{"tool_result_bytes":%d}}`, limit))})
		b.fake.Script(fakemodel.Call("look", `{"q":"x"}`), fakemodel.Say("seen"))
		r := b.send(session, "look")
		if r.State != protocol.StatusSealed || textOf(r.Node) != "seen" {
			t.Fatalf("clipped to %d bytes: %s, %+v", limit, r.State, r.Node.Error)
		}
		all := b.fake.Requests()
		shown := all[len(all)-1].Messages
		got := shown[len(shown)-1].Text()
		if limit >= len(result) {
			if got != result {
				t.Errorf("with room for %d bytes the model reads %q", limit, got)
			}
			continue
		}
		before, after, marked := strings.Cut(got, "\n[… ")
		if !marked || !strings.HasPrefix(result, before) || len(before) > limit {
			t.Errorf("clipped to %d bytes the model reads %q", limit, got)
		}
		if _, end, ok := strings.Cut(after, "…]\n"); !ok || !strings.HasSuffix(result, end) {
			t.Errorf("clipped to %d bytes the end is %q", limit, end)
		}
	}
}

// TestSameCallID answers with the same call id in two turns and two branches: each
// result goes to its own call (fault 96).
func TestSameCallID(t *testing.T) {
	b := newBench(t, nil, client.Options{CallTool: func(_ context.Context, p protocol.ToolCallParams) (protocol.ToolCallResult, error) {
		return protocol.ToolCallResult{Content: said("result of " + string(p.Arguments))}, nil
	}})
	session := b.session(protocol.SessionCreateParams{})
	call := func(q string) fakemodel.Reply {
		r := fakemodel.Call("look", fmt.Sprintf(`{"q":%q}`, q))
		r.Calls[0].ID = "call_1"
		return r
	}
	b.fake.Script(call("a"), fakemodel.Say("first"), call("b"), fakemodel.Say("second"))
	first := b.send(session, "one")
	b.send(session, "two")
	b.fake.Script(call("c"), fakemodel.Say("third"))
	retried := editor.Ask[protocol.TurnRetryResult](b.Editor, protocol.MethodTurnRetry,
		protocol.TurnRetryParams{SessionID: session, NodeID: first.ReplyID, Tools: tools(), Wait: true})
	if k := retried.Candidates[0]; k.State != protocol.StatusSealed || textOf(k.Node) != "third" {
		t.Fatalf("the retry ended as %+v", k)
	}
	for _, r := range b.fake.Requests() {
		results, ids := map[string]string{}, map[string]bool{}
		for _, m := range r.Messages {
			if m.Role == "tool" {
				results[m.ToolCallID] = m.Text()
			}
		}
		for _, m := range r.Messages {
			for _, c := range m.ToolCalls {
				if ids[c.ID] {
					t.Errorf("the id %s is twice in one prompt", c.ID)
				}
				ids[c.ID] = true
				if want := "result of " + c.Function.Arguments; results[c.ID] != want {
					t.Errorf("the call with %s has the result %q", c.Function.Arguments, results[c.ID])
				}
			}
		}
		if len(results) != len(ids) {
			t.Errorf("a prompt has %d calls and %d results", len(ids), len(results))
		}
	}
}

// TestBadImage has a provider refuse an image: with that message edited or
// redacted the session goes on (fault 94).
func TestBadImage(t *testing.T) {
	b := newBench(t, map[string]any{"turn.max_retries": 0}, client.Options{})
	b.fake.Respond(func(r fakemodel.Request) fakemodel.Reply {
		if strings.Contains(string(r.Body), "image_url") {
			return fakemodel.Fail(400, `{"error":{"message":"Invalid image.","code":"image_parse_error"}}`)
		}
		return fakemodel.Say("without it")
	})
	session := b.session(protocol.SessionCreateParams{})
	content := protocol.SendContent{{Type: protocol.PartText, Text: "what is this?"}, {Type: protocol.PartImage, MIMEType: "image/png", Data: []byte("no image")}}
	r := editor.Ask[protocol.TurnResult](b.Editor, protocol.MethodTurnSend, protocol.TurnSendParams{SessionID: session, Content: content, Wait: true})
	if r.State != protocol.StatusFailed || r.Node.Error.Code == protocol.CodeContextOverflow || r.Node.Error.Retryable {
		t.Fatalf("the turn ended as %s, %+v", r.State, r.Node.Error)
	}
	edited := editor.Ask[protocol.TurnEditResult](b.Editor, protocol.MethodTurnEdit,
		protocol.TurnEditParams{SessionID: session, NodeID: r.UserID, Content: said("what is this?"), Wait: true})
	if edited.State != protocol.StatusSealed {
		t.Errorf("without the image the turn ends as %s", edited.State)
	}
	editor.Ask[protocol.HeadResult](b.Editor, protocol.MethodBranchCheckout, protocol.CheckoutParams{SessionID: session, NodeID: r.ReplyID})
	if again := b.send(session, "and now?"); again.State != protocol.StatusFailed {
		t.Errorf("with the image in the context the turn ends as %s", again.State)
	}
	editor.Ask[protocol.NodeResult](b.Editor, protocol.MethodNodeRedact, protocol.RedactParams{SessionID: session, NodeID: r.UserID, Confirm: true})
	if again := b.send(session, "and now?"); again.State != protocol.StatusSealed {
		t.Errorf("with the image redacted the turn ends as %s, %+v", again.State, again.Node.Error)
	}
}

// TestTwoModels uses models with different windows in two sessions by turns:
// neither's limits become the other's (fault 43).
func TestTwoModels(t *testing.T) {
	b := newBench(t, map[string]any{"models": map[string]any{"fake/small": map[string]any{"window": 4096}, "fake/large": map[string]any{"window": 200000}}}, client.Options{})
	windows := map[string]int64{}
	for _, m := range []struct {
		id     string
		window int64
	}{{"fake/small", 4096}, {"fake/large", 200_000}} {
		windows[b.session(protocol.SessionCreateParams{Model: m.id})] = m.window
	}
	for range 3 {
		for session, want := range windows {
			r := b.send(session, "hello")
			if end := b.AwaitEnd(session, r.ReplyID); end.Budget == nil || end.Budget.Window != want {
				t.Errorf("the turn's budget is %+v, the window %d", end.Budget, want)
			}
			open := editor.Ask[protocol.SessionOpenResult](b.Editor, protocol.MethodSessionOpen, protocol.SessionOpenParams{SessionID: session})
			if open.Session.Budget == nil || open.Session.Budget.Window != want {
				t.Errorf("the session's budget is %+v, the window %d", open.Session.Budget, want)
			}
		}
	}
}

// TestJoinMidStream joins a reply that is being streamed: what node/get returns
// and the deltas after it make the whole text (fault 87).
func TestJoinMidStream(t *testing.T) {
	b := newBench(t, nil, client.Options{})
	session := b.session(protocol.SessionCreateParams{})
	for i := range 5 {
		gate := b.fake.Gate()
		pieces := []string{"one — ", "two 漢 ", "three 😀 ", "four ", "five"}
		b.fake.Script(fakemodel.Say(pieces...).Hold(gate, max(i, 1)))
		started := editor.Ask[protocol.TurnResult](b.Editor, protocol.MethodTurnSend, protocol.TurnSendParams{SessionID: session, Content: said("count")})
		b.AwaitText(started.ReplyID, strings.Join(pieces[:max(i, 1)], ""))
		editor.Ask[protocol.Empty](b.Editor, protocol.MethodSessionUnsubscribe, protocol.SessionParams{SessionID: session})
		b.Forget(session)
		b.ForgetText(started.ReplyID)
		open := editor.Ask[protocol.SessionOpenResult](b.Editor, protocol.MethodSessionOpen, protocol.SessionOpenParams{SessionID: session, Subscribe: true})
		if len(open.OpenNodes) != 1 || open.OpenNodes[0].NodeID != started.ReplyID {
			t.Fatalf("open are %+v", open.OpenNodes)
		}
		n := editor.Ask[protocol.Node](b.Editor, protocol.MethodNodeGet, protocol.NodeGetParams{SessionID: session, NodeID: started.ReplyID})
		sofar := textOf(&n)
		if n.Status != protocol.StatusOpen || sofar != strings.Join(pieces[:max(i, 1)], "") || open.OpenNodes[0].Bytes != int64(len(sofar)) {
			t.Fatalf("the open reply is %s with %q; %+v", n.Status, sofar, open.OpenNodes)
		}
		gate.Release()
		b.AwaitEnd(session, started.ReplyID)
		b.Look(func(s *editor.Seen) {
			got := s.Texts[started.ReplyID]
			if len(got) != 1 || got[0].From != int64(len(sofar)) || sofar+got[0].Text != strings.Join(pieces, "") {
				t.Errorf("after %q the deltas are %+v", sofar, got)
			}
		})
	}
}

// TestAnswerToNobody sends responses to requests that this server never made, as a
// client does whose server was replaced (fault 89).
func TestAnswerToNobody(t *testing.T) {
	w := editor.NewHome(t).Wire(t)
	w.Initialize()
	for _, body := range []string{`{"jsonrpc":"2.0","id":1,"result":{"content":"late"}}`, `{"jsonrpc":"2.0","id":"x","result":null}`,
		`{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"no"}}`, `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"?"}}`,
		`{"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":999}}`} {
		w.Write(editor.Frame(body))
	}
	if a := w.Call("convls/status", `{}`); a.Error != nil {
		t.Errorf("after that status is refused: %+v", a.Error)
	}
}

// TestRealModel runs turns on a real model server: it streams, is cancelled in the
// middle, and its own words for an overflow are understood.
func TestRealModel(t *testing.T) {
	server := llama.Start(t)
	ed := editor.NewHome(t).Start(t, editor.Options{Client: client.Options{Settings: map[string]any{
		"model": "llama/" + server.Model, "providers.llama.base_url": server.URL + "/v1", "turn.max_retries": 0,
		"models": map[string]any{"llama/" + server.Model: map[string]any{"max_output": 256}},
	}}})
	b := &bench{Editor: ed}
	session := b.session(protocol.SessionCreateParams{System: "be brief"})
	r := b.send(session, "Hello there")
	if r.State != protocol.StatusSealed && r.Node.StopReason != "length" {
		t.Fatalf("the turn ended as %s, %+v", r.State, r.Node.Error)
	}
	if textOf(r.Node) == "" || r.Node.Usage == nil || r.Node.Usage.Estimated || r.Node.Usage.InputTokens == 0 || r.Node.Usage.OutputTokens == 0 {
		t.Errorf("the reply is %q, its usage %+v", textOf(r.Node), r.Node.Usage)
	}
	b.AwaitEnd(session, r.ReplyID)
	b.Look(func(s *editor.Seen) {
		if got := s.Texts[r.ReplyID]; len(got) == 0 || got[len(got)-1].Text != textOf(r.Node) {
			t.Errorf("the deltas make %+v, the reply says %q", got, textOf(r.Node))
		}
		if len(s.Faults) > 0 {
			t.Error(strings.Join(s.Faults, "\n"))
		}
	})

	started := editor.Ask[protocol.TurnResult](ed, protocol.MethodTurnSend, protocol.TurnSendParams{SessionID: session, Content: said("Tell me a long story")})
	b.Await("some text", func(s *editor.Seen) bool { return len(s.Texts[started.ReplyID]) > 0 })
	state := editor.Ask[protocol.TurnCancelResult](ed, protocol.MethodTurnCancel, protocol.TurnCancelParams{SessionID: session, ReplyID: started.ReplyID}).State
	n := editor.Ask[protocol.Node](ed, protocol.MethodNodeGet, protocol.NodeGetParams{SessionID: session, NodeID: started.ReplyID})
	if n.Status != state || state != protocol.StatusCancelled && state != protocol.StatusSealed || textOf(&n) == "" {
		t.Errorf("cancel says %s, the reply is %s with %q", state, n.Status, textOf(&n))
	}

	over := b.send(session, strings.Repeat("a long message that does not fit ", llama.ContextTokens))
	if over.State != protocol.StatusFailed || over.Node.Error.Code != protocol.CodeContextOverflow || over.Node.Error.Retryable {
		t.Errorf("a prompt of more than %d tokens ends as %s, %+v", llama.ContextTokens, over.State, over.Node.Error)
	}
	editor.Ask[protocol.RewindResult](ed, protocol.MethodBranchRewind, protocol.RewindParams{SessionID: session, NodeID: over.UserID})
	if again := b.send(session, "Shorter"); again.State != protocol.StatusSealed {
		t.Errorf("after that a turn ends as %s, %+v", again.State, again.Node.Error)
	}
}
