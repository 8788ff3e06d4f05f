package editor

import (
	"bufio"
	"fmt"
	"io"
	"net/textproto"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"convls/protocol"
)

// Wire speaks to a server in bytes.
type Wire struct {
	t     testing.TB
	cmd   *exec.Cmd
	in    io.WriteCloser
	lines chan Answer
	id    int
	// Notices are the notifications and requests of the server that [Wire.Next] has
	// passed over.
	Notices []Answer
}

// Answer is a message of the server.
type Answer struct {
	ID     protocol.Raw `json:"id,omitzero"`
	Method string       `json:"method,omitzero"`
	Params protocol.Raw `json:"params,omitzero"`
	Result protocol.Raw `json:"result,omitzero"`
	Error  *WireError   `json:"error,omitzero"`
	// Body is the whole message.
	Body []byte `json:"-"`
}

// WireError is the error member of an answer.
type WireError struct {
	Code    int                `json:"code"`
	Message string             `json:"message"`
	Data    protocol.ErrorData `json:"data,omitzero"`
}

// Wire starts a server and leaves the handshake to the test.
func (h *Home) Wire(t testing.TB) *Wire {
	t.Helper()
	w := &Wire{t: t, cmd: h.Command(t.Context(), "--stdio"), lines: make(chan Answer, 1024)}
	var err error
	if w.in, err = w.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := w.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := w.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go w.read(bufio.NewReader(out))
	t.Cleanup(func() {
		_ = w.cmd.Process.Kill()
		for range w.lines { // until the reader is done
			continue
		}
		_ = w.cmd.Wait()
	})
	return w
}

func (w *Wire) read(r *bufio.Reader) {
	defer close(w.lines)
	for {
		header, err := textproto.NewReader(r).ReadMIMEHeader()
		if err != nil {
			return
		}
		n, err := strconv.Atoi(header.Get("Content-Length"))
		if err != nil {
			return
		}
		body := make([]byte, n)
		if _, err := io.ReadFull(r, body); err != nil {
			return
		}
		a := Answer{Body: body}
		if err := protocol.Unmarshal(body, &a); err != nil {
			a.Method = "not JSON: " + err.Error()
		}
		w.lines <- a
	}
}

// Frame returns a message with its header.
func Frame(body string) string { return fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(body), body) }

// Write sends bytes as they are.
func (w *Wire) Write(raw string) {
	w.t.Helper()
	if _, err := io.WriteString(w.in, raw); err != nil {
		w.t.Fatalf("write to the server: %v", err)
	}
}

// CloseInput ends the server's input.
func (w *Wire) CloseInput() { _ = w.in.Close() }

// Next returns the next message of the server that is an answer; false at the end
// of its output.
func (w *Wire) Next() (Answer, bool) {
	w.t.Helper()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	for {
		select {
		case a, ok := <-w.lines:
			if !ok {
				return a, false
			}
			if a.Method == "" {
				return a, true
			}
			w.Notices = append(w.Notices, a)
		case <-timer.C:
			w.t.Fatal("the server gave no answer")
		}
	}
}

// Call sends a request, params as they are spelt, and returns the answer to it.
func (w *Wire) Call(method, params string) Answer {
	w.t.Helper()
	w.id++
	return w.Send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`, w.id, method, params), strconv.Itoa(w.id))
}

// Send sends a body and returns the answer with this id.
func (w *Wire) Send(body, id string) Answer {
	w.t.Helper()
	w.Write(Frame(body))
	for {
		a, ok := w.Next()
		if !ok {
			w.t.Fatalf("the server ended instead of answering %.200s", body)
		}
		if string(a.ID) == id {
			return a
		}
	}
}

// Initialize does the handshake.
func (w *Wire) Initialize() {
	w.t.Helper()
	a := w.Call("initialize", `{"processId":null,"capabilities":{}}`)
	if a.Error != nil {
		w.t.Fatalf("initialize: %+v", a.Error)
	}
	w.Write(Frame(`{"jsonrpc":"2.0","method":"initialized","params":{}}`))
}

// Wait waits for the server's end and returns its exit code.
func (w *Wire) Wait() int {
	w.t.Helper()
	for {
		if _, ok := w.Next(); !ok {
			break
		}
	}
	_ = w.cmd.Wait()
	return w.cmd.ProcessState.ExitCode()
}
