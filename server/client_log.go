package server

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	lsp "go.lsp.dev/protocol"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

const (
	// Of warnings and errors a client gets at most logBurst at once and one every
	// logInterval after that; the log file has them all.
	logBurst    = 10
	logInterval = time.Second
	// maxLogMessage is the longest message to a client, in bytes.
	maxLogMessage = 2000
)

// Tee returns logger with an addition: warnings and errors go to the clients
// too, as window/logMessage, once they are initialised.
func (h *Hub) Tee(logger *zap.Logger) *zap.Logger {
	return logger.WithOptions(zap.WrapCore(func(core zapcore.Core) zapcore.Core {
		return zapcore.NewTee(core, &clientLog{LevelEnabler: zapcore.WarnLevel, hub: h, rate: &rate{}})
	}))
}

// clientLog is a zap core that writes to the clients of a hub. It waits for
// nothing and logs nothing itself, so a client that is stuck can not make it
// call itself.
type clientLog struct {
	zapcore.LevelEnabler
	hub    *Hub
	rate   *rate
	fields []zapcore.Field
}

var _ zapcore.Core = (*clientLog)(nil)

// With returns a core that adds fields to every message.
func (l *clientLog) With(fields []zapcore.Field) zapcore.Core {
	copied := *l
	copied.fields = append(slices.Clip(l.fields), fields...)
	return &copied
}

// Check adds the core to those that write e, if the level is right.
func (l *clientLog) Check(e zapcore.Entry, checked *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if l.Enabled(e.Level) {
		return checked.AddCore(e, l)
	}
	return checked
}

// Write sends the entry to all clients, unless there were too many.
func (l *clientLog) Write(e zapcore.Entry, fields []zapcore.Field) error {
	missed, ok := l.rate.take(e.Time)
	if !ok {
		return nil
	}
	params := lsp.LogMessageParams{Type: lsp.MessageTypeWarning, Message: message(e.Message, append(slices.Clip(l.fields), fields...), missed)}
	if e.Level >= zapcore.ErrorLevel {
		params.Type = lsp.MessageTypeError
	}
	body, err := notification(lsp.MethodWindowLogMessage, params)
	if err != nil {
		return err
	}
	for _, c := range l.hub.live() {
		c.stream.TrySend(body)
	}
	return nil
}

// Sync does nothing: nothing is kept.
func (l *clientLog) Sync() error { return nil }

// live returns the connections that may be sent messages.
func (h *Hub) live() []*Conn {
	h.mu.RLock()
	conns := make([]*Conn, 0, len(h.conns))
	for c := range h.conns {
		conns = append(conns, c)
	}
	h.mu.RUnlock()
	return slices.DeleteFunc(conns, func(c *Conn) bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return !c.live
	})
}

// message writes an entry as one line for people. A stack trace is for the file.
func message(text string, fields []zapcore.Field, missed int) string {
	enc := zapcore.NewMapObjectEncoder()
	for _, f := range fields {
		if f.Key != "stack" {
			f.AddTo(enc)
		}
	}
	pairs := make([]string, 0, len(enc.Fields))
	for k, v := range enc.Fields {
		pairs = append(pairs, fmt.Sprintf("%s: %v", k, v))
	}
	slices.Sort(pairs)
	if len(pairs) > 0 {
		text += " (" + strings.Join(pairs, ", ") + ")"
	}
	if missed > 0 {
		text += fmt.Sprintf(" [%d messages before this one are in the log only]", missed)
	}
	text = strings.ToValidUTF8(text, "\ufffd")
	if len(text) > maxLogMessage {
		n := maxLogMessage
		for !utf8.RuneStart(text[n]) {
			n--
		}
		text = text[:n] + "..."
	}
	return text
}

// rate bounds how many messages go out: a bucket that fills by one an interval.
type rate struct {
	mu     sync.Mutex
	used   int
	since  time.Time
	missed int
}

// take reports whether a message may go out at now, and how many could not since
// the last that did.
func (r *rate) take(now time.Time) (missed int, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if refill := int(now.Sub(r.since) / logInterval); refill > 0 {
		r.used = max(0, r.used-refill)
		r.since = now
	}
	if r.used >= logBurst {
		r.missed++
		return 0, false
	}
	r.used++
	missed, r.missed = r.missed, 0
	return missed, true
}
