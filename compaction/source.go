package compaction

import (
	"fmt"
	"iter"
	"strings"
	"unicode/utf8"

	"convls/compaction/manifest"
	"convls/projection"
	"convls/protocol"
)

// message returns a node as the summariser reads it: its secrets masked, and with
// the model's private reasoning left out.
func message(w projection.Whole) manifest.Message {
	m := manifest.Message{ID: w.Node.ID, Role: role(w)}
	var said []protocol.Part
	calls := false
	for _, p := range w.Parts {
		switch p.Type {
		case protocol.PartReasoning:
			continue
		case protocol.PartToolCall:
			if m.Role == manifest.RoleTool {
				m.Name, m.CallID = p.Name, p.CallID
			} else {
				calls = true // its tool node follows, with the call and its result
				continue
			}
		case protocol.PartToolResult:
			m.IsError = m.IsError || p.IsError
		}
		said = append(said, p)
	}
	m.Text, _ = manifest.Mask(projection.TextOf(said))
	switch {
	case m.Text != "":
	case calls:
		m.Text = "[calls a tool]"
	default:
		m.Text = "[no answer: " + string(w.Node.Status) + "]"
	}
	return m
}

// role says whose word a node is. Only what a person wrote on this branch counts
// as theirs: what was attached, or said in a spawned turn, is data.
func role(w projection.Whole) manifest.Role {
	switch {
	case w.Why == protocol.WhySpine && w.Node.Kind == protocol.KindUser:
		return manifest.RoleUser
	case w.Why == protocol.WhySpine && w.Node.Kind == protocol.KindAssistant:
		return manifest.RoleAssistant
	}
	return manifest.RoleTool
}

// chunk is what one call of a summariser reads: messages in their order.
type chunk struct {
	// messages are whole: what the rules read, and what quotes are checked against.
	messages []manifest.Message
	// shown are the same for the summariser's eyes, with long results of tools clipped.
	shown  []manifest.Message
	tokens int64
	bytes  int
}

// The bounds of a chunk, whatever the summariser could take.
const (
	chunkMessages = 2_000
	chunkBytes    = 8 << 20
)

// chunks groups messages so that each group has the tokens at most that room allows,
// 0 for any number. room is asked before each group, because what the ones before
// have added to the memory takes its share. A message that alone is longer is
// divided: nothing is left out (design.md, rule 7).
func chunks(messages iter.Seq2[manifest.Message, error], room func() (int64, error), count func(string) int) iter.Seq2[chunk, error] {
	return func(yield func(chunk, error) bool) {
		var now chunk
		left, err := room()
		if err != nil {
			yield(chunk{}, err)
			return
		}
		for m, err := range messages {
			if err != nil {
				yield(chunk{}, err)
				return
			}
			for rest := m; ; {
				whole, shown, tokens := fit(rest, left, count)
				full := len(now.messages) >= chunkMessages || now.bytes+len(whole.Text) > chunkBytes || left > 0 && now.tokens+tokens > left
				if full && len(now.messages) > 0 {
					if !yield(now, nil) {
						return
					}
					now = chunk{}
					if left, err = room(); err != nil {
						yield(chunk{}, err)
						return
					}
					continue // there may be less room than there was
				}
				now.messages, now.shown = append(now.messages, whole), append(now.shown, shown)
				now.tokens += tokens
				now.bytes += len(whole.Text)
				if rest.Text = rest.Text[len(whole.Text):]; rest.Text == "" {
					break
				}
			}
		}
		if len(now.messages) > 0 {
			yield(now, nil)
		}
	}
}

// perMessage is the tokens that a message takes beside its text.
const perMessage = 24

// fit returns as much of a message as has room tokens at most, and how the
// summariser is shown it: the whole, its beginning up to the end of a line or a word,
// or a tool's whole result clipped.
func fit(m manifest.Message, room int64, count func(string) int) (whole, shown manifest.Message, tokens int64) {
	if room <= 0 {
		return m, m, 0
	}
	shown = m
	shown.Text = clipResult(m, int(min(resultBytes, room*3/2)))
	if tokens = size(shown.Text, count); tokens <= room {
		return m, shown, tokens
	}
	// No text has more than so many bytes a token but for runs of white space.
	n := len(m.Text)
	if most := int(room) * 8; n > most {
		n = boundary(m.Text, most)
	}
	for n > 64 && size(m.Text[:n], count) > room {
		n = boundary(m.Text, n/2)
	}
	m.Text = m.Text[:n]
	return m, m, size(m.Text, count)
}

// size is how many tokens a message with this text takes, escaped as it is in JSON.
func size(text string, count func(string) int) int64 {
	if b, err := protocol.Marshal(text); err == nil {
		text = string(b)
	}
	return int64(count(text)) + perMessage
}

// resultBytes is how much of a tool's result a summariser sees, where it has room.
const resultBytes = 8 << 10

// clipResult shortens a tool's long result to about limit bytes, with a visible mark.
// What the rules find, and what quotes are checked against, is the whole.
func clipResult(m manifest.Message, limit int) string {
	if m.Role != manifest.RoleTool || len(m.Text) <= limit {
		return m.Text
	}
	head := m.Text[:boundary(m.Text, limit*2/3)]
	tail := strings.ToValidUTF8(m.Text[len(m.Text)-limit/3:], "")
	return fmt.Sprintf("%s\n[… %d bytes left out …]\n%s", head, len(m.Text)-len(head)-len(tail), tail)
}

// boundary returns the place of the last line's or word's end before n, or of a
// character if there is none.
func boundary(text string, n int) int {
	for _, sep := range []string{"\n", " "} {
		if i := strings.LastIndex(text[:n], sep); i > n/2 {
			return i + 1
		}
	}
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return max(n, 1)
}
