package server

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"convls/protocol"
	"convls/server/frame"

	"github.com/google/go-cmp/cmp"
)

func TestInitialize(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := connect(t, Options{Version: "1.2.3", Features: []string{"b", "a"}})
		p.call(1, "initialize", `{"processId":1,"capabilities":{"general":{"positionEncodings":["utf-16","utf-8"]},"experimental":{"convls":{"protocol_version":1,"min":1,"features":["secrets"]}}}}`)
		var got struct {
			Capabilities struct {
				PositionEncoding string
				Experimental     struct{ Convls protocol.Capability }
			}
			ServerInfo protocol.ClientInfo
		}
		if err := json.Unmarshal([]byte(p.result(1)), &got); err != nil {
			t.Fatal(err)
		}
		if got.ServerInfo != (protocol.ClientInfo{Name: "convls", Version: "1.2.3"}) {
			t.Errorf("serverInfo %+v", got.ServerInfo)
		}
		c := got.Capabilities.Experimental.Convls
		if got.Capabilities.PositionEncoding != "utf-8" || c.ClientID == "" || !cmp.Equal(c.Features, []string{"a", "b"}) {
			t.Errorf("capabilities %+v", got.Capabilities)
		}
	})
}

// protocol.md, "What clients really send": all of it is accepted.
func TestInitializeAcceptsWhatClientsSend(t *testing.T) {
	for name, tc := range map[string]struct {
		params string
		want   protocol.Client
	}{
		"no params":           {`null`, protocol.Client{}},
		"empty array":         {`[]`, protocol.Client{}},
		"process id null":     {`{"processId":null,"rootUri":null,"capabilities":{}}`, protocol.Client{}},
		"process id as float": {`{"processId":1500.0,"capabilities":{}}`, protocol.Client{}},
		"no client info":      {`{"capabilities":{"window":{"workDoneProgress":true}}}`, protocol.Client{WorkDoneProgress: true}},
		"client info null":    {`{"clientInfo":null,"capabilities":null}`, protocol.Client{}},
		"empty tables as arrays": {`{"clientInfo":[],"capabilities":{"window":[],"workspace":[],"general":[],"experimental":[]},"initializationOptions":[],"workspaceFolders":{}}`,
			protocol.Client{}},
		"capabilities as array":    {`{"capabilities":[]}`, protocol.Client{}},
		"odd shapes":               {`{"capabilities":{"window":7,"general":{"positionEncodings":"utf-8"},"experimental":true,"textDocument":[1]},"clientInfo":"x"}`, protocol.Client{}},
		"utf-16 only":              {`{"capabilities":{"general":{"positionEncodings":["utf-16"]}}}`, protocol.Client{}},
		"utf-32 first":             {`{"capabilities":{"general":{"positionEncodings":["utf-32","utf-8"]}}}`, protocol.Client{PositionEncoding: "utf-8"}},
		"announced as an array":    {`{"capabilities":{"experimental":{"convls":[]}}}`, protocol.Client{Announced: true}},
		"announced null":           {`{"capabilities":{"experimental":{"convls":null}}}`, protocol.Client{}},
		"announced with a float":   {`{"capabilities":{"experimental":{"convls":{"protocol_version":1.0,"features":["secrets"]}}}}`, protocol.Client{Announced: true, Features: []string{"secrets"}}},
		"a newer client":           {`{"capabilities":{"experimental":{"convls":{"protocol_version":9,"min":1}}}}`, protocol.Client{Announced: true}},
		"folders":                  {`{"capabilities":{},"rootUri":"file:///r","workspaceFolders":[{"uri":"file:///a","name":"a"}]}`, protocol.Client{Folders: []protocol.WorkspaceFolder{{URI: "file:///a", Name: "a"}}}},
		"root alone":               {`{"capabilities":{},"rootUri":"file:///r","workspaceFolders":null}`, protocol.Client{Folders: []protocol.WorkspaceFolder{{URI: "file:///r"}}}},
		"virtual documents":        {`{"capabilities":{"workspace":{"textDocumentContent":{}}}}`, protocol.Client{TextDocumentContent: true}},
		"name without version":     {`{"clientInfo":{"name":"ed"},"capabilities":{}}`, protocol.Client{ClientInfo: protocol.ClientInfo{Name: "ed"}}},
		"members nobody knows yet": {`{"capabilities":{"future":{"a":[1]}},"future":1}`, protocol.Client{}},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				var got protocol.Client
				p := connect(t, Options{OnInitialize: func(_ context.Context, c *Conn, _ protocol.Raw) error {
					got = c.Client()
					return nil
				}})
				p.call(1, "initialize", tc.params)
				p.result(1)
				tc.want.ProtocolVersion = 1
				if tc.want.PositionEncoding == "" {
					tc.want.PositionEncoding = "utf-16"
				}
				if !cmp.Equal(got, tc.want) {
					t.Error(cmp.Diff(tc.want, got))
				}
			})
		})
	}
}

func TestVersionMismatch(t *testing.T) {
	for _, announced := range []string{`{"protocol_version":2}`, `{"protocol_version":5,"min":3}`, `{"protocol_version":1,"min":2}`, `{"protocol_version":-1}`} {
		bubble(t, func(t *testing.T) {
			p := connect(t, Options{})
			p.call(1, "initialize", `{"capabilities":{"experimental":{"convls":`+announced+`}}}`)
			m := p.refused(1, -32803, "version_mismatch")
			if !strings.Contains(string(m.Error.Data), `"retry":false`) {
				t.Errorf("data %s", m.Error.Data)
			}
			// The connection is as if nothing had been sent.
			p.call(2, "initialize", `{}`)
			p.result(2)
		})
	}
}

func TestInitializeRefusesWrongShapes(t *testing.T) {
	for _, params := range []string{`[1]`, `{"capabilities":{"experimental":{"convls":{"protocol_version":"new"}}}}`, `{"capabilities":{"experimental":{"convls":1.5}}}`} {
		bubble(t, func(t *testing.T) {
			p := connect(t, Options{})
			p.call(1, "initialize", params)
			p.refused(1, -32602, "invalid_params")
		})
	}
}

func TestLifecycleStates(t *testing.T) {
	bubble(t, func(t *testing.T) {
		handled := 0
		p := connect(t, Options{
			Methods: map[string]Method{"m": reply(object{"ok": true})},
			Notifications: map[string]Notification{"n": {Handle: func(context.Context, *Conn, []byte) error {
				handled++
				return nil
			}}},
		})
		p.call(1, "m", `{}`)
		p.refused(1, -32002, "")
		p.call(2, "nothing", `{}`)
		p.refused(2, -32002, "")
		p.call(3, "shutdown", `null`)
		p.refused(3, -32002, "")
		p.send(`{"jsonrpc":"2.0","method":"n"}`)
		p.call(4, "initialize", `{}`)
		p.result(4)
		p.call(5, "initialize", `{}`)
		p.refused(5, -32600, "")
		if handled != 0 {
			t.Error("a notification before initialize was handled")
		}
		p.send(`{"jsonrpc":"2.0","method":"n"}`)
		// Between the reply to initialize and initialized requests are fine.
		p.call(6, "m", `{}`)
		if got := p.result(6); got != `{"ok":true}` {
			t.Errorf("result %s", got)
		}
		if handled != 1 {
			t.Errorf("%d notifications handled", handled)
		}
		p.send(`{"jsonrpc":"2.0","method":"initialized","params":[]}`)
		p.call(7, "nothing", `{}`)
		p.refused(7, -32601, "")
		p.call(8, "$/unknown", `{}`)
		p.refused(8, -32601, "")
		p.call(9, "shutdown", `[]`)
		if got := p.result(9); got != "null" {
			t.Errorf("shutdown replies %s", got)
		}
		p.call(10, "m", `{}`)
		p.refused(10, -32600, "")
		p.call(11, "shutdown", `null`)
		p.refused(11, -32600, "")
		p.send(`{"jsonrpc":"2.0","method":"n"}`)
		p.send(`{"jsonrpc":"2.0","method":"exit"}`)
		if err := p.end(); err != nil {
			t.Errorf("ended with %v", err)
		}
		if handled != 1 {
			t.Error("a notification after shutdown was handled")
		}
	})
}

func TestHowConnectionsEnd(t *testing.T) {
	for name, tc := range map[string]struct {
		do   func(p *peer)
		want error
	}{
		"exit without shutdown":       {func(p *peer) { p.send(`{"jsonrpc":"2.0","method":"exit"}`) }, ErrNoShutdown},
		"end of input":                {func(p *peer) { p.conn.Close() }, ErrNoShutdown},
		"end of input after shutdown": {func(p *peer) { p.call(1, "shutdown", "null"); p.result(1); p.conn.Close() }, nil},
		"the server's own end":        {func(p *peer) { p.stop() }, nil},
		"a header of nonsense": {func(p *peer) {
			go p.conn.Write([]byte("nonsense\r\n\r\n"))
			if m := p.recv(); m.Error == nil || m.Error.Code != -32700 || string(m.ID) != "null" {
				p.t.Errorf("answered %+v", m)
			}
		}, frame.ErrHeader},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				closed := false
				p := initialized(t, Options{OnClose: func(*Conn) { closed = true }})
				tc.do(p)
				if err := p.end(); !errors.Is(err, tc.want) || (tc.want == nil) != (err == nil) {
					t.Errorf("ended with %v, want %v", err, tc.want)
				}
				if !closed {
					t.Error("OnClose did not run")
				}
			})
		})
	}
}

func TestShutdownHookRunsBeforeTheReply(t *testing.T) {
	bubble(t, func(t *testing.T) {
		release := make(chan struct{})
		p := initialized(t, Options{OnShutdown: func(context.Context, *Conn) error {
			<-release
			return protocol.Errorf(protocol.CodeDiskFull, "full")
		}})
		p.call(1, "shutdown", "null")
		p.call(2, "m", "null")
		p.refused(2, -32600, "")
		close(release)
		p.refused(1, -32803, "disk_full")
	})
}

// Everything an editor sends unasked is taken without a word.
func TestNotificationsAreTakenQuietly(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := initialized(t, Options{
			Methods: map[string]Method{"m": reply(object{})},
			Notifications: map[string]Notification{
				"fails":  {Handle: func(context.Context, *Conn, []byte) error { return errors.New("no") }},
				"panics": {Handle: func(context.Context, *Conn, []byte) error { panic("no") }},
			},
		})
		for _, n := range []string{
			`"textDocument/didOpen","params":{"textDocument":{"uri":"file:///a","languageId":"x","version":0,"text":""}}`,
			`"textDocument/didChange","params":{}`, `"textDocument/didClose","params":[]`, `"$/setTrace","params":{"value":"off"}`,
			`"$/unknown"`, `"unknown","params":[1]`, `"$/cancelRequest","params":{"id":77}`, `"$/cancelRequest"`, `"$/cancelRequest","params":[]`,
			`"$/cancelRequest","params":{"id":{}}`, `"workspace/didChangeConfiguration","params":{"settings":null}`, `"workspace/didChangeConfiguration"`,
			`"fails"`, `"panics"`, `"initialized"`, `"m","params":{}`,
		} {
			p.send(`{"jsonrpc":"2.0","method":%s}`, n)
		}
		p.call(1, "m", "{}")
		if got := p.result(1); got != "{}" || len(p.skipped) != 0 {
			t.Errorf("result %s, and before it %v", got, p.skipped)
		}
	})
}

func TestSettingsReachTheCallbacks(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var got []string
		p := connect(t, Options{
			OnInitialize: func(_ context.Context, _ *Conn, o protocol.Raw) error {
				got = append(got, "init "+string(o))
				return nil
			},
			OnConfigure: func(_ context.Context, _ *Conn, s protocol.Raw) error {
				got = append(got, "conf "+string(s))
				return nil
			},
		})
		p.call(1, "initialize", `{"initializationOptions":{"model":"a"}}`)
		p.result(1)
		p.send(`{"jsonrpc":"2.0","method":"workspace/didChangeConfiguration","params":{"settings":{"model":"b"}}}`)
		p.send(`{"jsonrpc":"2.0","method":"workspace/didChangeConfiguration","params":{"settings":{"model":"c"}}}`)
		synctest.Wait()
		if want := []string{`init {"model":"a"}`, `conf {"model":"b"}`, `conf {"model":"c"}`}; !cmp.Equal(got, want) {
			t.Errorf("got %q", got)
		}
	})
}

func TestInitializeCanBeRefusedByTheCallback(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := connect(t, Options{OnInitialize: func(context.Context, *Conn, protocol.Raw) error {
			return protocol.Errorf(protocol.CodeStoreLocked, "the store is taken")
		}})
		p.call(1, "initialize", `{}`)
		p.refused(1, -32803, "store_locked")
		p.call(2, "m", `{}`)
		p.refused(2, -32002, "")
	})
}
