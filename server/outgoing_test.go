package server

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"convls/protocol"

	"go.lsp.dev/jsonrpc2"
)

// asking returns options whose method ask calls the client and returns the answer.
func asking() Options {
	return Options{Methods: map[string]Method{"ask": {Handle: func(ctx context.Context, c *Conn, _ []byte) (any, error) {
		Admitted(ctx)
		var result struct {
			A int `json:"a"`
		}
		err := c.Call(ctx, "question", object{"b": 1}, &result)
		if wire, ok := errors.AsType[*jsonrpc2.Error](err); ok {
			return object{"wire": wire.Code}, nil
		}
		if code := protocol.CodeOf(err); code != "" && code != protocol.CodeRequestCancelled {
			return object{"code": code}, nil
		}
		if err != nil && ctx.Err() == nil {
			return object{"error": true}, nil
		}
		return object{"a": result.A}, err
	}}}}
}

func TestCallToTheClient(t *testing.T) {
	for name, tc := range map[string]struct{ answer, want string }{
		"result":             {`"result":{"a":5}`, `{"a":5}`},
		"result null":        {`"result":null`, `{"a":0}`},
		"empty array":        {`"result":[]`, `{"a":0}`},
		"unknown method":     {`"error":{"code":-32601,"message":"no"}`, `{"wire":-32601}`},
		"error with code":    {`"error":{"code":-32803,"message":"no","data":{"code":"provider_auth"}}`, `{"code":"provider_auth"}`},
		"odd data":           {`"error":{"code":-32602,"message":"no","data":[7]}`, `{"code":"invalid_params"}`},
		"wrong shape":        {`"result":{"a":"five"}`, `{"error":true}`},
		"damaged":            {"\"result\":{\"a\":\"\xff\"}", `{"wire":-32700}`},
		"large":              {`"result":{"a":5,"b":"` + strings.Repeat("x", 100_000) + `"}`, `{"a":5}`},
		"both of them":       {`"result":1,"error":{"code":1,"message":""}`, `{"wire":-32600}`},
		"error is no object": {`"error":5`, `{"wire":-32600}`},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				p := initialized(t, asking())
				p.call(1, "ask", `{}`)
				q := p.recv()
				if q.Method != "question" || string(q.Params) != `{"b":1}` {
					t.Fatalf("got %+v", q)
				}
				p.send(`{"jsonrpc":"2.0","id":%s,%s}`, q.ID, tc.answer)
				if got := p.result(1); got != tc.want {
					t.Errorf("got %s, want %s", got, tc.want)
				}
			})
		})
	}
}

// fault 89: an answer to a request of the server before this one is not taken for
// an answer to a new one, and answers to nothing end nothing.
func TestAnswersToOldRequestsAreDropped(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := initialized(t, asking())
		p.call(1, "ask", `{}`)
		q := p.recv()
		id, err := strconv.ParseInt(string(q.ID), 10, 64)
		if err != nil || id <= 0 || id >= 1<<46 {
			t.Errorf("id %s", q.ID)
		}
		for _, old := range []string{"1", "2", `"x"`, "null", fmt.Sprint(id + 1), fmt.Sprintf("%q", q.ID)} {
			p.send(`{"jsonrpc":"2.0","id":%s,"result":{"a":6}}`, old)
		}
		p.send(`{"jsonrpc":"2.0","id":%d,"result":{"a":5}}`, id)
		p.send(`{"jsonrpc":"2.0","id":%d,"result":{"a":7}}`, id)
		if got := p.result(1); got != `{"a":5}` {
			t.Errorf("got %s", got)
		}
		if other := initialized(t, asking()); true {
			other.call(1, "ask", `{}`)
			if q2 := other.recv(); string(q2.ID) == string(q.ID) {
				t.Errorf("two connections used the id %s", q.ID)
			}
		}
	})
}

func TestCancelledCallIsCancelledAtTheClient(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := initialized(t, asking())
		p.call(1, "ask", `{}`)
		q := p.recv()
		p.send(`{"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":1}}`)
		c := p.recv()
		if c.Method != "$/cancelRequest" || string(c.Params) != fmt.Sprintf(`{"id":%s}`, q.ID) {
			t.Errorf("got %+v", c)
		}
		p.refused(1, -32800, "request_cancelled")
	})
}

func TestCallEndsWithTheConnection(t *testing.T) {
	bubble(t, func(t *testing.T) {
		ended := make(chan error, 1)
		p := initialized(t, Options{OnShutdown: func(ctx context.Context, c *Conn) error {
			go func() { ended <- c.Call(context.WithoutCancel(ctx), "question", object{}, nil) }()
			return nil
		}})
		p.call(1, "shutdown", "null")
		for range 2 {
			p.recv()
		}
		p.conn.Close()
		if err := <-ended; protocol.CodeOf(err) != protocol.CodeServerRestarted {
			t.Errorf("the call ended with %v", err)
		}
	})
}

// A request that waits for the client's answer ends as soon as none can come.
func TestCallEndsWithTheInput(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := initialized(t, Options{Methods: map[string]Method{"ask": {Handle: func(ctx context.Context, c *Conn, _ []byte) (any, error) {
			return nil, c.Call(ctx, "question", object{}, nil)
		}}}})
		p.call(1, "ask", `{}`)
		p.recv()
		start := time.Now()
		p.send(`{"jsonrpc":"2.0","method":"exit"}`)
		p.refused(1, -32803, "server_restarted")
		if took := time.Since(start); took != 0 {
			t.Errorf("answered after %v", took)
		}
	})
}
