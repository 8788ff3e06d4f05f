package server

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"slices"
	"testing"
	"testing/synctest"

	"convls/server/frame"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	// lumberjack starts one goroutine a file and has no way to end it.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("gopkg.in/natefinch/lumberjack%2ev2.(*Logger).millRun"))
}

// peer is the client's end of a connection to Serve, message by message.
type peer struct {
	t      *testing.T
	conn   net.Conn
	stream *frame.Stream
	ended  chan error
	stop   context.CancelFunc
	// skipped are the messages that expect passed over.
	skipped []msg
}

// msg is one message from the server.
type msg struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Code    int             `json:"code"`
		Message string          `json:"message"`
		Data    json.RawMessage `json:"data"`
	} `json:"error"`
}

// connect serves a connection. Tests run inside a synctest bubble.
func connect(t *testing.T, opts Options) *peer {
	t.Helper()
	a, b := net.Pipe()
	ctx, stop := context.WithCancel(context.Background())
	p := &peer{t: t, conn: b, stream: frame.New(b, frame.Options{}), ended: make(chan error, 1), stop: stop}
	go func() { p.ended <- Serve(ctx, a, opts) }()
	t.Cleanup(func() {
		stop()
		p.stream.Close()
		b.Close()
		<-p.stream.Done()
		select {
		case <-p.ended:
		default:
			<-p.ended
		}
	})
	return p
}

// initialized is connect with the handshake done.
func initialized(t *testing.T, opts Options) *peer {
	t.Helper()
	p := connect(t, opts)
	p.send(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"capabilities":{}}}`)
	if m := p.recv(); string(m.ID) != "0" || m.Error != nil {
		t.Fatalf("initialize: %+v", m)
	}
	p.send(`{"jsonrpc":"2.0","method":"initialized","params":{}}`)
	return p
}

func (p *peer) send(format string, args ...any) {
	p.t.Helper()
	if err := p.stream.Send(context.Background(), []byte(fmt.Sprintf(format, args...))); err != nil {
		p.t.Fatalf("send: %v", err)
	}
}

// call sends a request.
func (p *peer) call(id int, method, params string) {
	p.t.Helper()
	p.send(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`, id, method, params)
}

// recv returns the next message.
func (p *peer) recv() msg {
	p.t.Helper()
	body, _, err := p.stream.ReadFrame(context.Background())
	if err != nil {
		p.t.Fatalf("receive: %v", err)
	}
	var m msg
	if err := json.Unmarshal(body, &m); err != nil {
		p.t.Fatalf("%s: %v", body, err)
	}
	return m
}

// expect returns the reply to the request id; what comes before it is skipped.
func (p *peer) expect(id int) msg {
	p.t.Helper()
	is := func(m msg) bool { return m.Method == "" && string(m.ID) == fmt.Sprint(id) }
	if i := slices.IndexFunc(p.skipped, is); i >= 0 {
		m := p.skipped[i]
		p.skipped = slices.Delete(p.skipped, i, i+1)
		return m
	}
	for {
		m := p.recv()
		if is(m) {
			return m
		}
		p.skipped = append(p.skipped, m)
	}
}

// result returns the result of the request id.
func (p *peer) result(id int) string {
	p.t.Helper()
	m := p.expect(id)
	if m.Error != nil {
		p.t.Fatalf("request %d: %+v", id, m.Error)
	}
	return string(m.Result)
}

// refused checks that the request id was refused.
func (p *peer) refused(id, code int, dataCode string) msg {
	p.t.Helper()
	m := p.expect(id)
	if m.Error == nil || m.Error.Code != code || m.dataCode() != dataCode {
		p.t.Fatalf("request %d: %+v, %+v; want code %d %s", id, m, m.Error, code, dataCode)
	}
	return m
}

func (m msg) dataCode() string {
	var d struct{ Code string }
	if m.Error != nil && m.Error.Data != nil {
		_ = json.Unmarshal(m.Error.Data, &d)
	}
	return d.Code
}

// end returns how Serve ended.
func (p *peer) end() error {
	err := <-p.ended
	p.ended <- err
	return err
}

// bubble runs a test with a clock of its own, where synctest.Wait waits until
// nothing moves any more.
func bubble(t *testing.T, fn func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, fn)
}

// reply is a method that returns value.
func reply(value any) Method {
	return Method{Handle: func(context.Context, *Conn, []byte) (any, error) { return value, nil }}
}

type object = map[string]any
