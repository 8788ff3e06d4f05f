package model

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"convls/protocol"
)

// The tests in this file hold for every provider, each through its own format.

func TestAnswer(t *testing.T) {
	eachWire(t, func(t *testing.T, w wire) {
		s := spoken{text: []string{"Hel", "lo ", "漢😀👨‍👩‍👧."}, stop: StopStop, in: 12, out: 5}
		f := &fakeTransport{replies: []reply{body(w.stream(s))}}
		a := ask(t, w.kind, f, question())
		if a.err != nil {
			t.Fatal(a.err)
		}
		want := &Response{
			Parts:      []protocol.Part{{Type: protocol.PartText, Text: joined(s.text)}},
			StopReason: StopStop, Model: "answering",
			Usage: protocol.Usage{InputTokens: 12, OutputTokens: 5, Calls: 1},
		}
		if diff := cmp.Diff(want, a.res); diff != "" {
			t.Error(diff)
		}
		if got := a.text(protocol.DeltaText); got != joined(s.text) {
			t.Errorf("streamed %q", got)
		}
		if len(a.deltas) != 3 {
			t.Errorf("%d deltas, want 3: it must stream", len(a.deltas))
		}
	})
}

func TestToolCall(t *testing.T) {
	eachWire(t, func(t *testing.T, w wire) {
		s := spoken{reasoning: []string{"let me ", "see"}, text: []string{"One moment."}, call: "look_up", args: `{"word":"é"}`, stop: StopToolCalls, in: 9, out: 9}
		f := &fakeTransport{replies: []reply{body(w.stream(s))}}
		req := question()
		req.Tools = []protocol.ToolDeclaration{{Name: "look_up", Description: "looks up", Schema: protocol.Raw(`{"type":"object","properties":{"word":{"type":"string"}},"required":["word"]}`)}}
		a := ask(t, w.kind, f, req)
		if a.err != nil {
			t.Fatal(a.err)
		}
		if a.res.StopReason != StopToolCalls || len(a.res.Parts) != 3 {
			t.Fatalf("%+v", a.res)
		}
		reasoning, text, call := a.res.Parts[0], a.res.Parts[1], a.res.Parts[2]
		if reasoning.Type != protocol.PartReasoning || reasoning.Text != "let me see" || a.text(protocol.DeltaReasoning) != "let me see" {
			t.Errorf("reasoning %+v", reasoning)
		}
		if text.Text != "One moment." {
			t.Errorf("text %+v", text)
		}
		if call.Type != protocol.PartToolCall || call.Name != "look_up" || call.CallID == "" || string(call.Arguments) != `{"word":"é"}` {
			t.Errorf("call %+v", call)
		}
		if a.text(protocol.DeltaToolArgs) != `{"word":"é"}` {
			t.Errorf("streamed arguments %q", a.text(protocol.DeltaToolArgs))
		}
		sent := indented(t, f.bodies[0])
		for _, want := range []string{`"look_up"`, `"looks up"`, `"required":["word"]`} {
			if !strings.Contains(sent, want) {
				t.Errorf("the request has no %s: %s", want, sent)
			}
		}
	})
}

// Whatever the stop reason is called, it means one of four things.
func TestStopReasons(t *testing.T) {
	eachWire(t, func(t *testing.T, w wire) {
		for _, stop := range []string{StopStop, StopLength, StopRefusal} {
			if stop == StopRefusal && w.kind == KindOllama {
				continue // has no such reason
			}
			f := &fakeTransport{replies: []reply{body(w.stream(spoken{text: []string{"x"}, stop: stop, in: 1, out: 1}))}}
			a := ask(t, w.kind, f, question())
			if a.err != nil || a.res.StopReason != stop {
				t.Errorf("%s: %+v, %v", stop, a.res, a.err)
			}
		}
	})
}

// A stream cut at any byte is either complete, because its finish reason had
// come, or a cut stream that keeps what had arrived (fault 88).
func TestCutAtEveryByte(t *testing.T) {
	eachWire(t, func(t *testing.T, w wire) {
		s := spoken{text: []string{"one ", "zwei 漢", " three"}, stop: StopStop, in: 3, out: 3}
		whole := w.stream(s)
		open := len(w.stream(spoken{text: s.text})) // up to here no finish reason is in it
		complete := 0
		for k := range len(whole) {
			// The connection ends in an orderly way or not; the answer is cut either way.
			end := []error{nil, io.ErrUnexpectedEOF}[k%2]
			f := &fakeTransport{replies: []reply{{status: 200, chunks: []string{whole[:k]}, err: end}}}
			a := ask(t, w.kind, f, question())
			switch {
			case a.err == nil:
				if k <= open {
					t.Fatalf("cut after %d of %d bytes, before the finish reason: no error, %+v", k, len(whole), a.res)
				}
				if a.res.Parts[0].Text != joined(s.text) {
					t.Fatalf("cut after %d bytes: complete with %q", k, a.res.Parts[0].Text)
				}
				complete++
			case ClassOf(a.err) != ClassStreamCut:
				t.Fatalf("cut after %d bytes: %v", k, a.err)
			default:
				got := ""
				if a.res != nil {
					got = a.res.Parts[0].Text
				}
				if !strings.HasPrefix(joined(s.text), got) || got != a.text(protocol.DeltaText) {
					t.Fatalf("cut after %d bytes: kept %q, streamed %q", k, got, a.text(protocol.DeltaText))
				}
			}
		}
		if w.kind == KindOpenAI && complete == 0 {
			t.Error("an answer whose finish reason had come never counted as complete without [DONE]")
		}
	})
}

// Every multi-byte character is cut by every border of two chunks (fault 92).
func TestChunkBorders(t *testing.T) {
	eachWire(t, func(t *testing.T, w wire) {
		text := "é漢😀👨‍👩‍👧 가"
		whole := w.stream(spoken{text: []string{text}, stop: StopStop, in: 1, out: 1})
		check := func(name string, chunks ...string) {
			t.Helper()
			a := ask(t, w.kind, &fakeTransport{replies: []reply{body(chunks...)}}, question())
			if a.err != nil || a.res.Parts[0].Text != text || a.text(protocol.DeltaText) != text {
				t.Fatalf("%s: %+v, %v", name, a.res, a.err)
			}
		}
		for k := range len(whole) {
			check("two chunks", whole[:k], whole[k:])
		}
		check("single bytes", bytewise(whole)...)
	})
}

func TestErrorObjectInStream(t *testing.T) {
	eachWire(t, func(t *testing.T, w wire) {
		for _, text := range [][]string{nil, {"some ", "text"}} {
			// Even a finish reason after it does not make the answer complete.
			for _, stop := range []string{"", StopStop} {
				f := &fakeTransport{replies: []reply{body(w.stream(spoken{text: text, failure: w.failure, stop: stop}))}}
				a := ask(t, w.kind, f, question())
				if ClassOf(a.err) != ClassUnavailable {
					t.Errorf("text %q: %v", text, a.err)
				}
				if got := a.text(protocol.DeltaText); got != joined(text) {
					t.Errorf("streamed %q", got)
				}
				if len(text) > 0 && (a.res == nil || a.res.Parts[0].Text != joined(text)) {
					t.Errorf("kept %+v", a.res)
				}
			}
		}
	})
}

// A server that answers a request for a stream with one document.
func TestDocumentInsteadOfStream(t *testing.T) {
	eachWire(t, func(t *testing.T, w wire) {
		if w.document == nil {
			t.Skip("its stream is made of documents")
		}
		s := spoken{text: []string{"all ", "at once"}, call: "look_up", args: `{"a":1}`, stop: StopToolCalls, in: 4, out: 2}
		whole := w.document(s)
		a := ask(t, w.kind, &fakeTransport{replies: []reply{{status: 200, chunks: []string{whole}, header: http.Header{"Content-Type": {"application/json"}}}}}, question())
		if a.err != nil {
			t.Fatal(a.err)
		}
		if a.res.Parts[0].Text != "all at once" || a.res.Parts[1].Name != "look_up" || string(a.res.Parts[1].Arguments) != `{"a":1}` ||
			a.res.Usage.InputTokens != 4 || a.res.StopReason != StopToolCalls {
			t.Errorf("%+v", a.res)
		}
		for k := 1; k < len(whole); k++ {
			a := ask(t, w.kind, &fakeTransport{replies: []reply{body(whole[:k])}}, question())
			if ClassOf(a.err) != ClassStreamCut {
				t.Fatalf("a document of %d of %d bytes: %v", k, len(whole), a.err)
			}
		}
		s.stop = ""
		if a := ask(t, w.kind, &fakeTransport{replies: []reply{body(w.document(s))}}, question()); ClassOf(a.err) != ClassStreamCut {
			t.Errorf("without a finish reason: %v", a.err)
		}
		for doc, class := range map[string]Class{
			`{"error":"model overloaded"}`:                                                 ClassUnavailable,
			`{"error":{"message":"This model's maximum context length is 8 tokens"}}`:      ClassContextOverflow,
			`{"object":"error","message":"invalid key","code":401}`:                        ClassAuth,
			`<html><head><title>Log in to the network</title></head><body>x</body></html>`: ClassInvalid,
		} {
			if a := ask(t, w.kind, &fakeTransport{replies: []reply{body(doc)}}, question()); ClassOf(a.err) != class {
				t.Errorf("%s: %v, want %s", doc, a.err, class)
			}
		}
	})
}

// Statuses mean the same everywhere; nothing is sent twice by an SDK; the wait
// that a provider asks for is kept; no key is in any text.
func TestHTTPErrors(t *testing.T) {
	for _, c := range []struct {
		status int
		body   string
		class  Class
		code   protocol.Code
		retry  bool
	}{
		{401, `{"error":{"message":"Incorrect API key provided: ` + testKey + `"}}`, ClassAuth, protocol.CodeProviderAuth, false},
		{403, `forbidden`, ClassAuth, protocol.CodeProviderAuth, false},
		{402, ``, ClassQuota, protocol.CodeProviderQuota, false},
		{404, `{"error":{"message":"The model some-model does not exist","code":"model_not_found"}}`, ClassInvalid, protocol.CodeUnknownModel, false},
		{408, ``, ClassUnavailable, protocol.CodeProviderDown, true},
		{413, `Request Entity Too Large`, ClassBodyTooLarge, protocol.CodeBodyTooLarge, false},
		{429, `{"error":"slow down"}`, ClassRateLimit, protocol.CodeProviderRateLimit, true},
		{400, `{"error":{"message":"das ist zu lang"}}`, ClassContextOverflow, protocol.CodeContextOverflow, false}, // fault 25: by setting
		{400, `{"error":{"message":"invalid image data"}}`, ClassInvalid, protocol.CodeProviderRefused, false},
		{500, `{"error":{"message":"oops ` + testKey + `"}}`, ClassUnavailable, protocol.CodeProviderDown, true},
		{502, `<html><head><title>502 Bad Gateway</title></head></html>`, ClassUnavailable, protocol.CodeProviderDown, true},
		{503, ``, ClassUnavailable, protocol.CodeProviderDown, true},
		{529, `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`, ClassUnavailable, protocol.CodeProviderDown, true},
		{302, ``, ClassInvalid, protocol.CodeProviderRefused, false},
	} {
		eachWire(t, func(t *testing.T, w wire) {
			f := &fakeTransport{replies: []reply{{status: c.status, chunks: []string{c.body}, header: http.Header{
				"Content-Type": {"application/json"}, "Retry-After": {"7"}, "X-Should-Retry": {"true"}, "Location": {"http://elsewhere.test/"},
			}}}}
			a := ask(t, w.kind, f, question())
			e, ok := errors.AsType[*Error](a.err)
			if !ok || e.Class != c.class || e.Status != c.status || a.res != nil {
				t.Fatalf("%d %s: %v", c.status, c.body, a.err)
			}
			if len(f.requests) != 1 {
				t.Errorf("%d: sent %d times", c.status, len(f.requests))
			}
			if e.RetryAfter != 7*time.Second {
				t.Errorf("%d: wait %s", c.status, e.RetryAfter)
			}
			if e.Provider != "fake" || e.Model != "some-model" {
				t.Errorf("%d: of %s/%s", c.status, e.Provider, e.Model)
			}
			n := e.Node()
			if n.Code != c.code || n.Retryable != c.retry || n.Hint == "" || n.Message == "" || n.RetryAfterMS != 7000 {
				t.Errorf("%d: %+v", c.status, n)
			}
			mustNotLeak(t, e.Error(), n.Message, n.Hint, e.Protocol().Error())
		})
	}
}

func TestConnectionErrors(t *testing.T) {
	eachWire(t, func(t *testing.T, w wire) {
		f := &fakeTransport{replies: []reply{{fail: errors.New("dial tcp: lookup model.test: no such host, key " + testKey)}}}
		a := ask(t, w.kind, f, question())
		e, ok := errors.AsType[*Error](a.err)
		if !ok || e.Class != ClassUnavailable || e.Status != 0 || !strings.Contains(e.Message, "no such host") {
			t.Fatal(a.err)
		}
		if len(f.requests) != 1 {
			t.Errorf("sent %d times", len(f.requests))
		}
		mustNotLeak(t, e.Error())
	})
}

// A cancelled call ends at once, as cancelled, with what had arrived.
func TestCancel(t *testing.T) {
	eachWire(t, func(t *testing.T, w wire) {
		open := w.stream(spoken{text: []string{"some ", "text "}})
		for name, r := range map[string]reply{
			"before the response": {wait: true},
			"in the stream":       {status: 200, chunks: []string{open}, hang: true},
			"in a document":       {status: 200, chunks: []string{"{"}, hang: true},
		} {
			ctx, cancel := context.WithCancel(t.Context())
			p := fakeProvider(t, fakeRegistry(&fakeTransport{replies: []reply{r}}), w.kind)
			if name != "in the stream" {
				// Nothing arrives by which the test could tell that it has begun.
				cancel()
			}
			got := ""
			res, err := p.Stream(ctx, question(), func(d Delta) error {
				if got += d.Text; got == "some text " {
					cancel()
				}
				return nil
			})
			cancel()
			if ClassOf(err) != ClassCancelled || !errors.Is(err, context.Canceled) {
				t.Errorf("%s: %v", name, err)
			}
			if name == "in the stream" && (res == nil || res.Parts[0].Text != "some text ") {
				t.Errorf("%s: kept %+v", name, res)
			}
		}
	})
}

// An error of emit ends the call and is returned as it is.
func TestEmitError(t *testing.T) {
	eachWire(t, func(t *testing.T, w wire) {
		mine := errors.New("disk full")
		p := fakeProvider(t, fakeRegistry(&fakeTransport{replies: []reply{body(w.stream(spoken{text: []string{"a", "b"}, stop: StopStop}))}}), w.kind)
		calls := 0
		_, err := p.Stream(t.Context(), question(), func(Delta) error {
			calls++
			return mine
		})
		if !errors.Is(err, mine) || calls != 1 {
			t.Errorf("%v after %d calls", err, calls)
		}
	})
}

// A panic of emit is the caller's own and is not taken for a broken answer.
func TestEmitPanic(t *testing.T) {
	eachWire(t, func(t *testing.T, w wire) {
		p := fakeProvider(t, fakeRegistry(&fakeTransport{replies: []reply{body(w.stream(spoken{text: []string{"a"}, stop: StopStop}))}}), w.kind)
		defer func() {
			if r := recover(); r != "mine" {
				t.Errorf("recovered %v", r)
			}
		}()
		_, err := p.Stream(t.Context(), question(), func(Delta) error { panic("mine") })
		t.Errorf("it went on: %v", err)
	})
}

// Nothing for the whole timeout ends a call; a stream that is slow but alive
// does not.
func TestStall(t *testing.T) {
	eachWire(t, func(t *testing.T, w wire) {
		open := w.stream(spoken{text: []string{"some text"}})
		for name, c := range map[string]struct {
			reply reply
			class Class
		}{
			"no response":   {reply{wait: true}, ClassUnavailable},
			"in the stream": {reply{status: 200, chunks: []string{open}, hang: true}, ClassStreamCut},
		} {
			synctest.Test(t, func(t *testing.T) {
				begun := time.Now()
				a := ask(t, w.kind, &fakeTransport{replies: []reply{c.reply}}, question())
				if ClassOf(a.err) != c.class {
					t.Errorf("%s: %v", name, a.err)
				}
				if e, ok := errors.AsType[*Error](a.err); !ok || !strings.Contains(e.Hint(), "providers.fake.timeout_ms") {
					t.Errorf("%s: hint %+v", name, e)
				}
				if waited := time.Since(begun); waited != DefaultTimeout {
					t.Errorf("%s: gave up after %s", name, waited)
				}
				synctest.Wait()
			})
		}
		synctest.Test(t, func(t *testing.T) {
			// The consumer takes its time; that is not the provider's fault.
			p := fakeProvider(t, fakeRegistry(&fakeTransport{replies: []reply{body(bytewise(w.stream(spoken{text: []string{"a", "b"}, stop: StopStop}))...)}}), w.kind)
			if _, err := p.Stream(t.Context(), question(), func(Delta) error {
				<-time.After(2 * DefaultTimeout)
				return nil
			}); err != nil {
				t.Errorf("a slow consumer: %v", err)
			}
			synctest.Wait()
		})
	})
}

// Usage that the provider does not send is estimated, and marked.
func TestEstimatedUsage(t *testing.T) {
	eachWire(t, func(t *testing.T, w wire) {
		a := ask(t, w.kind, &fakeTransport{replies: []reply{body(w.stream(spoken{text: []string{"some words of text"}, stop: StopStop}))}}, question())
		if a.err != nil || !a.res.Usage.Estimated && w.kind != KindAnthropic || a.res.Usage.OutputTokens < 1 {
			t.Errorf("%+v, %v", a.res, a.err)
		}
	})
}
