package model

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"regexp"
	"sync"
	"time"
)

// DefaultTimeout is how long nothing may arrive before a call counts as cut, if
// providers.NAME.timeout_ms does not say otherwise.
const DefaultTimeout = 120 * time.Second

// maxDocument bounds a whole answer that comes as one JSON document, and one
// event of a stream, in bytes.
const maxDocument = 64 << 20

// errStalled is the cancellation cause of a call in which nothing arrived for
// the whole timeout.
var errStalled = errors.New("nothing arrived in time")

// shape says how a successful response is laid out.
type shape int

const (
	// shapeEvents is a stream of server-sent events, or by mistake one document.
	shapeEvents shape = iota
	// shapeLines is a stream of JSON lines (Ollama).
	shapeLines
	// shapeDocument is one JSON document.
	shapeDocument
)

// exchange is one HTTP request and what came of it, seen from below the SDK. The
// SDKs lose what decides: status and body of odd errors, whether a stream ended
// or was cut, errors inside a stream. So the transport notes it here, and the
// adapter judges the call by these notes and takes only decoded events from
// the SDK.
type exchange struct {
	target
	ctx    context.Context
	caller context.Context
	cancel context.CancelCauseFunc
	shape  shape
	key    string

	stall   *time.Timer
	timeout time.Duration

	mu       sync.Mutex
	status   int
	header   http.Header
	body     []byte // of an error, or a whole document where events were asked for
	document bool   // body is such a document
	failure  []byte // an error object inside a stream
	err      error  // how the request or the body ended, other than by its end
}

// target is what an adapter knows of the provider it talks to.
type target struct {
	provider string
	kind     string
	baseURL  string
	// vendor is the known hosted provider whose own service baseURL is; "" for any
	// other server.
	vendor   string
	timeout  time.Duration
	overflow []*regexp.Regexp
	http     *http.Client
}

type exchangeKey struct{}

// begin starts an exchange. Its context must be used for exactly one request;
// end must be called.
func (t target) begin(caller context.Context, key string, s shape) *exchange {
	ctx, cancel := context.WithCancelCause(caller)
	x := &exchange{target: t, caller: caller, cancel: cancel, shape: s, key: key, timeout: t.timeout}
	x.stall = time.AfterFunc(x.timeout, func() { cancel(errStalled) })
	x.ctx = context.WithValue(ctx, exchangeKey{}, x)
	return x
}

func (x *exchange) end() {
	x.stall.Stop()
	x.cancel(context.Canceled)
}

// transport fills the exchange of each request that carries one.
type transport struct{ base http.RoundTripper }

var _ http.RoundTripper = transport{}

// RoundTrip sends the request and notes status, headers and an error's body
// before the SDK sees them.
func (t transport) RoundTrip(req *http.Request) (*http.Response, error) {
	x, ok := req.Context().Value(exchangeKey{}).(*exchange)
	if !ok {
		return t.base.RoundTrip(req)
	}
	req = req.Clone(req.Context())
	if x.key == "" {
		// SDKs insist on some key; a server on this machine gets none.
		for _, name := range []string{"Authorization", "X-Api-Key", "X-Goog-Api-Key"} {
			req.Header.Del(name)
		}
	} else if x.kind == KindOllama {
		req.Header.Set("Authorization", "Bearer "+x.key)
	}
	res, err := t.base.RoundTrip(req)
	x.stall.Stop()
	if err != nil {
		x.note(err)
		return nil, err
	}
	x.mu.Lock()
	x.status, x.header = res.StatusCode, res.Header
	x.mu.Unlock()
	raw := &tappedBody{x: x, rc: res.Body}
	switch {
	case res.StatusCode/100 != 2:
		body, _ := io.ReadAll(io.LimitReader(raw, maxErrorBody))
		_ = raw.Close()
		x.mu.Lock()
		x.body = body
		x.mu.Unlock()
		res.Body = io.NopCloser(bytes.NewReader(body))
	case x.shape == shapeEvents:
		res.Body = newEventReader(x, raw)
	case x.shape == shapeLines:
		res.Body = newLineReader(x, raw)
	default:
		res.Body = raw
	}
	res.ContentLength = -1
	return res, nil
}

// tappedBody reads a body under the stall timer, and notes how it ends.
type tappedBody struct {
	x  *exchange
	rc io.ReadCloser
}

// Read reads under the timer. The timer stands still between two reads: a slow
// reader is no slow provider.
func (b *tappedBody) Read(p []byte) (int, error) {
	b.x.stall.Reset(b.x.timeout)
	n, err := b.rc.Read(p)
	b.x.stall.Stop()
	if err != nil && err != io.EOF {
		b.x.note(err)
	}
	return n, err
}

func (b *tappedBody) Close() error { return b.rc.Close() }

// note keeps the first error.
func (x *exchange) note(err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.err == nil {
		x.err = err
	}
}

// fail keeps an error object of a stream.
func (x *exchange) fail(object []byte) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.failure = bytes.Clone(object)
}

// whole keeps a document that came where events were asked for.
func (x *exchange) whole(body []byte) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.body, x.document = body, true
}

// wholeAnswer returns that document, or nil.
func (x *exchange) wholeAnswer() []byte {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.document {
		return x.body
	}
	return nil
}

// error says why there is no complete answer. sdk is what the SDK said; it is
// used for its text only, and only where nothing better is known.
func (x *exchange) error(model string, sdk error) *Error {
	x.mu.Lock()
	defer x.mu.Unlock()
	e := &Error{Provider: x.provider, Model: model, Status: x.status}
	switch {
	case x.caller.Err() != nil:
		e.Class, e.Cause = ClassCancelled, context.Cause(x.caller)
		e.Message = "the call was cancelled"
	case x.failure != nil:
		return Classify(x.problem(model, x.failure))
	case x.status != 0 && x.status/100 != 2:
		return Classify(x.problem(model, x.body))
	case x.document && bytes.HasPrefix(x.body, []byte("<")):
		return Classify(x.problem(model, x.body))
	case errors.Is(context.Cause(x.ctx), errStalled):
		e.Class, e.Cause = ClassStreamCut, errStalled
		if x.status == 0 {
			e.Class = ClassUnavailable
		}
		e.Message = "nothing arrived for " + x.timeout.String()
	case x.status == 0 && x.err != nil:
		e.Class, e.Cause = ClassUnavailable, transportCause(x.err)
		e.Message = x.scrub("no connection: " + x.err.Error())
	case x.status == 0:
		// The SDK refused to send it.
		e.Class = ClassInvalid
		e.Message = "the request could not be made"
		if sdk != nil {
			e.Message = x.scrub("the request could not be made: " + sdk.Error())
		}
	case x.err != nil:
		e.Class, e.Cause = ClassStreamCut, transportCause(x.err)
		e.Message = x.scrub("the answer was cut: " + x.err.Error())
	case sdk != nil:
		e.Class = ClassStreamCut
		e.Message = x.scrub("the answer can not be read: " + sdk.Error())
	default:
		e.Class = ClassStreamCut
		e.Message = "the answer ended without a finish reason"
	}
	return e
}

func (x *exchange) problem(model string, body []byte) Failure {
	return Failure{
		Kind: x.kind, Provider: x.provider, Model: model,
		Status: x.status, Header: x.header, Body: body,
		Overflow: x.overflow, Secrets: []string{x.key},
	}
}

func (x *exchange) scrub(text string) string {
	return clip(scrub(clean(text), []string{x.key}), maxMessage)
}

// transportCause keeps errors that a caller can test for, and nothing that could
// hold a request: errors of package net and io name an address at most.
func transportCause(err error) error {
	if e, ok := errors.AsType[*net.OpError](err); ok {
		return e
	}
	for _, known := range []error{io.ErrUnexpectedEOF, io.EOF, context.Canceled, context.DeadlineExceeded} {
		if errors.Is(err, known) {
			return known
		}
	}
	return nil
}
