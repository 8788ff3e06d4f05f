package model

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"convls/protocol"
)

// OfflineWindow is the window of the offline model, in tokens.
const OfflineWindow = 32_768

// offlineMaxOutput is the most that the offline model answers, in tokens.
const offlineMaxOutput = 4_096

// offline is the model that is built in. It needs no network and no key, and the
// same prompt always gets the same answer, streamed word by word, with real token
// counts: good enough to try every feature, and for tests.
//
// It answers about the conversation that it sees. Its commands are the first
// words of the last message, in any case:
//
//	help                      lists these commands
//	repeat: TEXT              says TEXT
//	count to N                counts from 1 to N, 10,000 at most
//	say N words               says N words, 10,000 at most
//	list what I said          lists the messages of the user that are in its context
//	list what you said        lists its own
//	quote N                   quotes the user's Nth message that is in its context
//	which model               names itself, its window and the size of the prompt
//	call TOOL {JSON}          calls the tool, if it is declared; one call a line.
//	                          After the results it says what came back
//	fail CLASS                fails: auth, rate_limit, quota, context_overflow,
//	                          body_too_large, unavailable, refused, stream_cut or
//	                          invalid
//	fail CLASS after N words  says N words first
//	think: COMMAND            shows some reasoning, then carries out COMMAND
//	slow: COMMAND             waits 200 ms before each word, so that one can cancel
//	slow 50ms: COMMAND        waits as long as it says, 10 s at most
//
// To anything else it says which turn this is, what was asked, and how much of
// the conversation it sees. A prompt that does not fit its window is refused with
// context_overflow, an answer longer than max_output ends with length.
type offline struct {
	registry *Registry
	provider string
	models   map[string]protocol.ModelSettings
}

var _ Provider = (*offline)(nil)

func (o *offline) target() target { return target{provider: o.provider, kind: KindOffline} }

func (o *offline) settings(name string) protocol.ModelSettings {
	if s, ok := o.models[o.provider+"/"+name]; ok || name != Offline {
		return s
	}
	return o.models[Offline]
}

// Capabilities returns the window and limits; settings can make them smaller.
func (o *offline) Capabilities(name string) Capabilities {
	c := Capabilities{Window: OfflineWindow, MaxOutput: offlineMaxOutput}
	s := o.settings(name)
	if s.Window > 0 {
		c.Window = s.Window
	}
	if s.MaxOutput > 0 {
		c.MaxOutput = s.MaxOutput
	}
	c.MaxOutput = min(c.MaxOutput, max(c.Window/8, 1))
	c.InputPrice, c.OutputPrice, c.CacheReadPrice = s.InputPrice, s.OutputPrice, s.CacheReadPrice
	return c
}

// List returns the one model.
func (o *offline) List(context.Context) ([]protocol.Model, error) {
	return []protocol.Model{o.Capabilities(Offline).model(o.provider, Offline)}, nil
}

// Count counts exactly.
func (o *offline) Count(_ context.Context, req Request) (int64, bool, error) {
	return o.registry.counter(o.target(), req.Model).Request(req), true, nil
}

// Stream answers; see [offline].
func (o *offline) Stream(ctx context.Context, req Request, emit func(Delta) error) (*Response, error) {
	messages, err := arrange(req.Messages, o.provider)
	if err != nil {
		return nil, o.target().invalid(req.Model, err)
	}
	counter := o.registry.counter(o.target(), req.Model)
	caps := o.Capabilities(req.Model)
	tokens := counter.Request(req)
	if tokens > caps.Window {
		return nil, &Error{
			Class: ClassContextOverflow, Provider: o.provider, Model: req.Model, Code: "context_length_exceeded",
			Message: fmt.Sprintf("the prompt has %d tokens, the window %d", tokens, caps.Window),
		}
	}
	limit := caps.MaxOutput
	if req.MaxOutput > 0 {
		limit = min(limit, req.MaxOutput)
	}
	script := o.script(req, messages, tokens, caps)
	a := &offlineAnswer{
		answer: answer{provider: o.provider, emit: emitter(emit), model: o.provider + "/" + req.Model},
		script: script, limit: limit, counter: counter,
	}
	if req.Model == Offline && o.provider == Offline {
		a.model = Offline
	}
	err = a.perform(ctx)
	a.usage = protocol.Usage{InputTokens: tokens, OutputTokens: a.written, Calls: 1}
	a.usage.CostUSD = caps.Cost(a.usage)
	if e, ok := errors.AsType[errEmit](err); ok {
		return a.response(), e.err
	}
	if e, ok := errors.AsType[*Error](err); ok {
		e.Provider, e.Model = o.provider, req.Model
		if !a.started() {
			return nil, e
		}
		return a.response(), e
	}
	res := a.response()
	for i, p := range res.Parts {
		if p.Type == protocol.PartToolCall {
			// The same prompt gets the same ids.
			res.Parts[i].CallID = fmt.Sprintf("call_%d_%d", len(messages), i)
		}
	}
	return res, nil
}

// offlineScript is what the offline model is going to do.
type offlineScript struct {
	reasoning string
	text      string
	calls     []offlineCall
	delay     time.Duration
	// fail ends the answer after the text.
	fail *Error
}

type offlineCall struct{ name, arguments string }

// offlineAnswer carries out a script.
type offlineAnswer struct {
	answer
	script  offlineScript
	counter *Counter
	limit   int64
	written int64
}

// perform streams the script. Its error is *Error or errEmit.
func (a *offlineAnswer) perform(ctx context.Context) error {
	cut, err := a.say(ctx, protocol.PartReasoning, a.script.reasoning)
	if err == nil && !cut {
		cut, err = a.say(ctx, protocol.PartText, a.script.text)
	}
	if err != nil {
		return err
	}
	if cut {
		a.stop = StopLength
		return nil
	}
	if a.script.fail != nil {
		return a.script.fail
	}
	for i, c := range a.script.calls {
		if err := a.pause(ctx); err != nil {
			return err
		}
		p, err := a.call(fmt.Sprint(i))
		if err != nil {
			return err
		}
		p.name = c.name
		if err := a.add(protocol.PartToolCall, p.key, c.arguments); err != nil {
			return err
		}
		a.written += int64(callTokens + a.counter.Text(c.name) + a.counter.Text(c.arguments))
	}
	a.stop = StopStop
	return nil
}

// say streams a text word by word; cut reports that the limit was reached.
func (a *offlineAnswer) say(ctx context.Context, kind protocol.PartType, text string) (cut bool, err error) {
	for len(text) > 0 {
		n := wordEnd(text)
		word := text[:n]
		text = text[n:]
		tokens := int64(a.counter.Text(word))
		if a.written+tokens > a.limit {
			return true, nil
		}
		if err := a.pause(ctx); err != nil {
			return false, err
		}
		if err := a.add(kind, "", word); err != nil {
			return false, err
		}
		a.written += tokens
	}
	return false, nil
}

// pause waits before a word, and ends when the context does.
func (a *offlineAnswer) pause(ctx context.Context) error {
	cancelled := func() error {
		return &Error{Class: ClassCancelled, Message: "the call was cancelled", Cause: context.Cause(ctx)}
	}
	if a.script.delay > 0 {
		timer := time.NewTimer(a.script.delay)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			return cancelled()
		}
	}
	if ctx.Err() != nil {
		return cancelled()
	}
	return nil
}

// wordEnd returns the end of the first word of s, the space after it included.
func wordEnd(s string) int {
	space := false
	for i, r := range s {
		switch {
		case unicode.IsSpace(r):
			space = true
		case space:
			return i
		}
	}
	return len(s)
}

// lastText returns the last text part of the last message of the user.
func lastText(messages []Message) string {
	for _, m := range slices.Backward(messages) {
		if m.Role != RoleUser {
			continue
		}
		for _, p := range slices.Backward(m.Parts) {
			if p.Type == protocol.PartText {
				return strings.TrimSpace(p.Text)
			}
		}
	}
	return ""
}
