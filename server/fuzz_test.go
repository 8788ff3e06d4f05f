package server

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"testing"

	"convls/server/frame"

	"github.com/go-json-experiment/json/jsontext"
	"go.lsp.dev/jsonrpc2"
)

// Whatever a message says, it gets at most one answer, every request that has an
// id gets one with that id, and the connection serves the next request.
func FuzzMessage(f *testing.F) {
	for _, s := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"m","params":{"session_id":"s"}}`,
		`{"jsonrpc":"2.0","id":"x","method":"initialize","params":{"capabilities":{"experimental":{"convls":{"protocol_version":1}}}}}`,
		`{"jsonrpc":"2.0","id":2,"method":"m","params":[]}`, `{"jsonrpc":"2.0","id":2.0,"method":"m","params":null}`,
		`{"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":1}}`, `{"jsonrpc":"2.0","id":3,"result":{}}`,
		`{"jsonrpc":"2.0","id":4,"error":{"code":1,"message":"x"}}`, `[]`, ``, `{"jsonrpc":"2.0","id":5,"method":"m","params":{"a":"\ud800"}}`,
		`{"jsonrpc":"2.0","method":"workspace/didChangeConfiguration","params":{"settings":{}}}`,
	} {
		f.Add([]byte(s), true)
		f.Add([]byte(s), false)
	}
	methods := map[string]Method{"m": {Handle: func(_ context.Context, _ *Conn, params []byte) (any, error) {
		return object{"n": len(params)}, nil
	}}}
	f.Fuzz(func(t *testing.T, body []byte, ready bool) {
		if bytes.Contains(body, []byte(`"shutdown"`)) || bytes.Contains(body, []byte(`"exit"`)) {
			return
		}
		a, b := net.Pipe()
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			_ = Serve(context.Background(), a, Options{Methods: methods})
		}()
		s := frame.New(b, frame.Options{})
		defer func() {
			s.Close()
			<-s.Done()
			<-ended
		}()
		send := func(body []byte) {
			if err := s.Send(t.Context(), body); err != nil {
				t.Fatal(err)
			}
		}
		// await reads until the answer with the id last, and returns what came before.
		await := func(last string) (others []string) {
			for {
				got, _, err := s.ReadFrame(t.Context())
				if err != nil {
					t.Fatalf("after %q the connection ended: %v", body, err)
				}
				var m struct{ ID json.RawMessage }
				if err := json.Unmarshal(got, &m); err != nil {
					t.Fatal(err)
				}
				if string(m.ID) == last {
					return others
				}
				others = append(others, string(m.ID))
			}
		}
		if ready {
			send([]byte(`{"jsonrpc":"2.0","id":"init","method":"initialize","params":{}}`))
			await(`"init"`)
		}
		send(body)
		send([]byte(`{"jsonrpc":"2.0","id":"last","method":"nothing"}`))
		answers := await(`"last"`)
		msg, err := jsonrpc2.DecodeMessage(body)
		call, isCall := msg.(*jsonrpc2.Call)
		if err != nil || !isCall || !jsontext.Value(body).IsValid() {
			if len(answers) > 1 {
				t.Fatalf("%q got the answers %q", body, answers)
			}
			return
		}
		if len(answers) == 0 {
			// It runs beside what came after it.
			got, _, err := s.ReadFrame(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			var m struct{ ID json.RawMessage }
			if err := json.Unmarshal(got, &m); err != nil {
				t.Fatal(err)
			}
			answers = []string{string(m.ID)}
		}
		want := fmt.Sprint(call.ID())
		if text, ok := call.ID().StringValue(); ok {
			_ = json.Unmarshal([]byte(answers[0]), &want)
			if want != text {
				t.Fatalf("%q was answered with id %s", body, answers[0])
			}
			return
		}
		if len(answers) != 1 || answers[0] != want {
			t.Fatalf("%q was answered with ids %q", body, answers)
		}
	})
}
