package turn

import (
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"convls/model"
	"convls/protocol"
	"convls/store"
)

// flushEvery is how often streamed text is sent and kept, at most: often enough
// to look smooth, seldom enough that a fast model does not drown a client.
const flushEvery = 40 * time.Millisecond

// live is the text of a reply while it is being written. It gathers pieces, and
// at most every flushEvery publishes what is new as deltas and keeps it in the
// ledger.
type live struct {
	publish func(protocol.Delta)
	keep    func(part int, kind protocol.DeltaKind, text string)
	session string
	node    string

	mu     sync.Mutex
	parts  []livePart
	last   time.Time
	timer  *time.Timer
	closed bool
}

type livePart struct {
	kind protocol.DeltaKind
	text []byte
	sent int
}

func newLive(w *TurnWriter, publish func(protocol.Delta), reply store.Skeleton) *live {
	return &live{publish: publish, session: w.sess.ID(), node: reply.ID,
		keep: func(part int, kind protocol.DeltaKind, text string) { w.checkpoint(reply.Seq, part, kind, text) }}
}

// add takes a piece from the model.
func (l *live) add(d model.Delta) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed || d.Part < 0 || d.Part > len(l.parts)+64 {
		return
	}
	for d.Part >= len(l.parts) {
		l.parts = append(l.parts, livePart{kind: d.Kind})
	}
	p := &l.parts[d.Part]
	p.kind = d.Kind
	p.text = append(p.text, d.Text...)
	if time.Since(l.last) >= flushEvery {
		l.flush(false)
	} else if l.timer == nil {
		l.timer = time.AfterFunc(flushEvery-time.Since(l.last), func() {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.timer = nil
			if !l.closed {
				l.flush(false)
			}
		})
	}
}

// flush publishes and keeps what is new. It holds back the bytes of a character
// whose end has not come, unless this is the last flush.
func (l *live) flush(last bool) {
	l.last = time.Now()
	for i := range l.parts {
		p := &l.parts[i]
		end := len(p.text)
		if !last {
			end = wholeRunes(p.text)
		}
		if end <= p.sent {
			continue
		}
		text := strings.ToValidUTF8(string(p.text[p.sent:end]), "\uFFFD")
		// Kept first: what a client has seen is in the log before whatever the client
		// does next, so the sync of that makes it durable.
		l.keep(i, p.kind, text)
		l.publish(protocol.Delta{SessionID: l.session, NodeID: l.node, Part: i, Kind: p.kind, Offset: int64(p.sent), Text: text})
		// What replaced invalid bytes may have another length: the text is what was
		// published.
		p.text = append(append(p.text[:p.sent:p.sent], text...), p.text[end:]...)
		p.sent += len(text)
	}
}

// close publishes the rest. Nothing is kept or published after it.
func (l *live) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return
	}
	l.flush(true)
	l.closed = true
	if l.timer != nil {
		l.timer.Stop()
		l.timer = nil
	}
}

// published returns the parts as far as they were published.
func (l *live) published() []protocol.Part {
	l.mu.Lock()
	defer l.mu.Unlock()
	parts := make([]protocol.Part, 0, len(l.parts))
	for _, p := range l.parts {
		part := protocol.Part{Type: protocol.PartText, Text: string(p.text[:p.sent])}
		switch p.kind {
		case protocol.DeltaReasoning:
			part.Type = protocol.PartReasoning
		case protocol.DeltaToolArgs:
			part.Type = protocol.PartToolCall
		}
		parts = append(parts, part)
	}
	return parts
}

// kept returns the text of all parts, for a reply that broke off: calls of tools
// that were not finished are left out.
func (l *live) kept() []protocol.Part {
	l.close()
	return withoutCalls(l.published())
}

// started reports whether anything came from the model.
func (l *live) started() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.parts) > 0
}

// wholeRunes returns the length of the beginning of b that ends with a whole
// character, or holds what can not become one.
func wholeRunes(b []byte) int {
	for back := 1; back <= utf8.UTFMax && back <= len(b); back++ {
		i := len(b) - back
		if !utf8.RuneStart(b[i]) {
			continue
		}
		if !utf8.FullRune(b[i:]) {
			return i
		}
		break
	}
	return len(b)
}
