package server

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
)

func TestLogFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state", "convls.log")
	l, err := NewLogger(path, "")
	if err != nil {
		t.Fatal(err)
	}
	l.Debug("one")
	l.Info("two", zap.String("k", "v"))
	if err := l.SetLevel("debug"); err != nil {
		t.Fatal(err)
	}
	l.Debug("three")
	if err := l.SetLevel("loud"); err == nil {
		t.Error("an unknown level was taken")
	}
	l.Debug("four")
	if err := l.SetLevel("error"); err != nil {
		t.Fatal(err)
	}
	l.Warn("five")
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for line := range strings.Lines(string(b)) {
		var e struct {
			Msg, K string
			PID    int
		}
		if err := json.Unmarshal([]byte(line), &e); err != nil || e.PID != os.Getpid() {
			t.Errorf("line %q: %v", line, err)
		}
		got = append(got, e.Msg+e.K)
	}
	if strings.Join(got, " ") != "twov three four" {
		t.Errorf("logged %q", got)
	}
	if info, err := os.Stat(path); err != nil || runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if _, err := NewLogger(path, "loud"); err == nil {
		t.Error("an unknown level was taken")
	}
}

func TestWarningsReachInitializedClients(t *testing.T) {
	bubble(t, func(t *testing.T) {
		h := NewHub(newLedger())
		logger := h.Tee(zap.NewNop()).With(zap.String("b", "2"))
		early := connect(t, Options{Hub: h, Logger: logger})
		p := initialized(t, Options{Hub: h, Logger: logger, Methods: methods()})
		synctest.Wait()
		logger.Info("not for clients")
		logger.Warn("careful", zap.Error(errors.New("why")), zap.ByteString("stack", []byte("long")))
		if m := p.recv(); m.Method != "window/logMessage" || string(m.Params) != `{"type":2,"message":"careful (b: 2, error: why)"}` {
			t.Errorf("got %s %s", m.Method, m.Params)
		}
		logger.Error(strings.Repeat("漢", 1000) + "\xff")
		var params struct {
			Type    int
			Message string
		}
		if err := json.Unmarshal(p.recv().Params, &params); err != nil || params.Type != 1 || len(params.Message) > maxLogMessage+3 || strings.Contains(params.Message, "\ufffd") {
			t.Errorf("%d bytes, %v", len(params.Message), err)
		}

		// A flood: some, and then how many were left out.
		for range 100 {
			logger.Warn("flood")
		}
		for range logBurst - 2 {
			p.recv()
		}
		<-time.After(logInterval)
		logger.Warn("after")
		if m := p.recv(); !strings.Contains(string(m.Params), "[92 messages before this one are in the log only]") {
			t.Errorf("got %s", m.Params)
		}
		// The one that is not initialised got nothing: its first message is a reply.
		early.call(1, "initialize", "{}")
		if m := early.recv(); string(m.ID) != "1" {
			t.Errorf("got %+v", m)
		}
	})
}
