package model

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"convls/protocol"
)

func askOffline(ctx context.Context, t *testing.T, s protocol.Settings, req Request, emit func(Delta) error) (*Response, []Delta, error) {
	t.Helper()
	r := NewRegistry()
	p, name, err := r.Resolve(s, "offline", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Model = name
	var deltas []Delta
	res, err := p.Stream(ctx, req, func(d Delta) error {
		deltas = append(deltas, d)
		if emit != nil {
			return emit(d)
		}
		return nil
	})
	return res, deltas, err
}

func TestOfflineCommands(t *testing.T) {
	history := []Message{say(RoleUser, "my name is Ada"), say(RoleAssistant, "This is turn 1."), say(RoleUser, "I like 漢字")}
	for _, c := range []struct{ ask, want string }{
		{"repeat: one  two\nthree", "one  two\nthree"},
		{"Repeat : x", "x"},
		{"count to 5", "1 2 3 4 5"},
		{"count to 0", ""},
		{"say 4 words", "the quick brown fox"},
		{"say 1 word", "the"},
		{"list what I said", "1. my name is Ada\n2. I like 漢字"},
		{"list what you said", "1. This is turn 1."},
		{"quote 1", `Your message 1 in my context was: "my name is Ada"`},
		{"quote 9", "There is no message 9: I see 3 of yours."},
		{"HELP!", offlineHelp},
		{"call f {}", "There is no tool f: no tools are declared."},
		{"fail everything", `There is no class everything. Say "help" to see them.`},
		{"slow 1ms: slow 1ms: slow 1ms: slow 1ms: slow 1ms: slow 1ms: x", "That is too many commands in one another."},
	} {
		messages := history
		if c.ask != "quote 9" {
			messages = append(slices.Clip(messages), say(RoleAssistant, "Nice."))
		}
		if c.ask == "list what you said" {
			messages = history[:2]
		}
		messages = append(slices.Clip(messages), say(RoleUser, c.ask))
		if c.ask == "quote 9" {
			messages = append(slices.Clone(history), say(RoleAssistant, "Nice."), say(RoleUser, c.ask))
		}
		res, deltas, err := askOffline(t.Context(), t, protocol.Settings{}, Request{Messages: messages}, nil)
		if err != nil {
			t.Errorf("%s: %v", c.ask, err)
			continue
		}
		got, streamed := "", ""
		if len(res.Parts) > 0 {
			got = res.Parts[0].Text
		}
		for _, d := range deltas {
			streamed += d.Text
		}
		if got != c.want || streamed != c.want || res.StopReason != StopStop || res.Model != "offline" {
			t.Errorf("%s: %q, streamed %q, %s", c.ask, got, streamed, res.StopReason)
		}
		if res.Usage.InputTokens <= 0 || (c.want != "" && res.Usage.OutputTokens <= 0) || res.Usage.Estimated || res.Usage.Calls != 1 {
			t.Errorf("%s: %+v", c.ask, res.Usage)
		}
	}
}

// What is no command is answered with what the conversation holds, and the same
// prompt gets the same answer.
func TestOfflineRemark(t *testing.T) {
	req := Request{System: "s", Messages: []Message{say(RoleUser, "my name is Ada"), say(RoleAssistant, "Hello."), say(RoleUser, "what is my name?")}}
	first, deltas, err := askOffline(t.Context(), t, protocol.Settings{}, req, nil)
	if err != nil {
		t.Fatal(err)
	}
	text := first.Parts[0].Text
	for _, want := range []string{"turn 2", `You said: "what is my name?"`, `Before that you said: "my name is Ada"`, "3 messages"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q has no %q", text, want)
		}
	}
	if len(deltas) < 15 {
		t.Errorf("%d deltas: it must stream word by word", len(deltas))
	}
	second, _, _ := askOffline(t.Context(), t, protocol.Settings{}, req, nil)
	if diff := cmp.Diff(first, second); diff != "" {
		t.Error(diff)
	}
	res, _, _ := askOffline(t.Context(), t, protocol.Settings{}, Request{Messages: []Message{say(RoleUser, "which model")}}, nil)
	if !strings.Contains(res.Parts[0].Text, "I am offline") || !strings.Contains(res.Parts[0].Text, "32768") {
		t.Error(res.Parts[0].Text)
	}
	req.Messages[2].Parts = append(req.Messages[2].Parts, protocol.Part{Type: protocol.PartImage, Data: []byte("x")})
	if res, _, _ = askOffline(t.Context(), t, protocol.Settings{}, req, nil); !strings.Contains(res.Parts[0].Text, "an image") {
		t.Error(res.Parts[0].Text)
	}
}

func TestOfflineTools(t *testing.T) {
	req := Request{
		Messages: []Message{say(RoleUser, "call read {\"path\":\"a\"}\ncall write")},
		Tools:    []protocol.ToolDeclaration{{Name: "read"}, {Name: "write"}},
	}
	res, deltas, err := askOffline(t.Context(), t, protocol.Settings{}, req, nil)
	if err != nil || res.StopReason != StopToolCalls || len(res.Parts) != 2 {
		t.Fatalf("%+v, %v", res, err)
	}
	if p := res.Parts[0]; p.Name != "read" || string(p.Arguments) != `{"path":"a"}` || p.CallID == "" {
		t.Errorf("%+v", p)
	}
	if p := res.Parts[1]; p.Name != "write" || string(p.Arguments) != `{}` || p.CallID == res.Parts[0].CallID {
		t.Errorf("%+v", p)
	}
	if len(deltas) != 1 || deltas[0].Kind != protocol.DeltaToolArgs {
		t.Errorf("%+v", deltas)
	}
	req.Messages = append(req.Messages, assistant(res.Parts...), toolResult(res.Parts[0].CallID, "file a"), toolResult(res.Parts[1].CallID, "no"))
	req.Messages[3].Parts[0].IsError = true
	res, _, err = askOffline(t.Context(), t, protocol.Settings{}, req, nil)
	if err != nil || res.Parts[0].Text != "read answered: file a\nwrite failed: no" || res.StopReason != StopStop {
		t.Errorf("%+v, %v", res, err)
	}
	req.Messages = []Message{say(RoleUser, "call nothing {}")}
	if res, _, _ = askOffline(t.Context(), t, protocol.Settings{}, req, nil); res.Parts[0].Text != "There is no tool nothing. There are: read, write." {
		t.Errorf("%+v", res)
	}
}

func TestOfflineFail(t *testing.T) {
	for class, code := range map[Class]protocol.Code{
		ClassAuth: protocol.CodeProviderAuth, ClassRateLimit: protocol.CodeProviderRateLimit, ClassQuota: protocol.CodeProviderQuota,
		ClassContextOverflow: protocol.CodeContextOverflow, ClassBodyTooLarge: protocol.CodeBodyTooLarge, ClassUnavailable: protocol.CodeProviderDown,
		ClassRefused: protocol.CodeProviderRefused, ClassInvalid: protocol.CodeProviderRefused,
	} {
		res, _, err := askOffline(t.Context(), t, protocol.Settings{}, Request{Messages: []Message{say(RoleUser, "fail "+string(class))}}, nil)
		e, ok := errors.AsType[*Error](err)
		if !ok || e.Class != class || res != nil || e.Node().Code != code || e.Provider != "offline" {
			t.Errorf("%s: %+v, %v", class, res, err)
		}
	}
	res, _, err := askOffline(t.Context(), t, protocol.Settings{}, Request{Messages: []Message{say(RoleUser, "fail unavailable after 2 words")}}, nil)
	if ClassOf(err) != ClassUnavailable || res == nil || res.Parts[0].Text != "the quick" || res.StopReason != "" {
		t.Errorf("%+v, %v", res, err)
	}
	res, _, err = askOffline(t.Context(), t, protocol.Settings{}, Request{Messages: []Message{say(RoleUser, "fail stream_cut")}}, nil)
	if ClassOf(err) != ClassStreamCut || res.Parts[0].Text != "the quick brown" {
		t.Errorf("%+v, %v", res, err)
	}
}

func TestOfflineThink(t *testing.T) {
	res, deltas, err := askOffline(t.Context(), t, protocol.Settings{}, Request{Messages: []Message{say(RoleUser, "think: repeat: x")}}, nil)
	if err != nil || len(res.Parts) != 2 || res.Parts[0].Type != protocol.PartReasoning || res.Parts[1].Text != "x" || deltas[0].Kind != protocol.DeltaReasoning || deltas[len(deltas)-1].Part != 1 {
		t.Errorf("%+v, %v", res, err)
	}
}

func TestOfflineSlowAndCancel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		res, _, err := askOffline(t.Context(), t, protocol.Settings{}, Request{Messages: []Message{say(RoleUser, "slow 50ms: count to 10")}}, nil)
		if err != nil || res.Parts[0].Text != "1 2 3 4 5 6 7 8 9 10" || time.Since(begun) != 500*time.Millisecond {
			t.Errorf("%+v, %v after %s", res, err, time.Since(begun))
		}
		ctx, cancel := context.WithCancel(t.Context())
		begun = time.Now()
		time.AfterFunc(450*time.Millisecond, cancel)
		res, _, err = askOffline(ctx, t, protocol.Settings{}, Request{Messages: []Message{say(RoleUser, "slow: count to 10")}}, nil)
		if ClassOf(err) != ClassCancelled || !errors.Is(err, context.Canceled) || res.Parts[0].Text != "1 2 " || time.Since(begun) != 450*time.Millisecond {
			t.Errorf("%+v, %v after %s", res, err, time.Since(begun))
		}
	})
}

func TestOfflineLimits(t *testing.T) {
	long := Request{Messages: []Message{say(RoleUser, strings.Repeat("word ", OfflineWindow))}}
	if res, _, err := askOffline(t.Context(), t, protocol.Settings{}, long, nil); ClassOf(err) != ClassContextOverflow || res != nil {
		t.Errorf("%+v, %v", res, err)
	}
	small := protocol.Settings{Models: map[string]protocol.ModelSettings{"offline": {Window: 30}}}
	if _, _, err := askOffline(t.Context(), t, small, Request{Messages: []Message{say(RoleUser, strings.Repeat("word ", 40))}}, nil); ClassOf(err) != ClassContextOverflow {
		t.Error(err)
	}
	res, _, err := askOffline(t.Context(), t, protocol.Settings{}, Request{MaxOutput: 5, Messages: []Message{say(RoleUser, "say 50 words")}}, nil)
	if err != nil || res.StopReason != StopLength || res.Usage.OutputTokens > 5 || res.Parts[0].Text == "" {
		t.Errorf("%+v, %v", res, err)
	}
	res, _, err = askOffline(t.Context(), t, protocol.Settings{}, Request{Messages: []Message{say(RoleUser, "say 99999999999999999999 words")}}, nil)
	if err != nil || res.StopReason != StopLength || res.Usage.OutputTokens > offlineMaxOutput {
		t.Errorf("%+v, %v", res.Usage, err)
	}
	mine := errors.New("stop")
	if _, _, err := askOffline(t.Context(), t, protocol.Settings{}, Request{Messages: []Message{say(RoleUser, "say 5 words")}}, func(Delta) error { return mine }); !errors.Is(err, mine) {
		t.Error(err)
	}
	if _, _, err := askOffline(t.Context(), t, protocol.Settings{}, Request{}, nil); ClassOf(err) != ClassInvalid {
		t.Error(err)
	}
}
