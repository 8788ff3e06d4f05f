package model

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// Whatever bytes come as a stream, in whatever chunks: no adapter panics, an
// answer without an error has a stop reason, what was streamed is what is kept,
// and it is valid UTF-8.
func FuzzStream(f *testing.F) {
	s := spoken{reasoning: []string{"hm"}, text: []string{"Hel", "lo 漢😀"}, call: "f", args: `{"a":1}`, stop: StopToolCalls, in: 3, out: 2}
	for i, w := range wires() {
		f.Add(uint8(i), 7, []byte(w.stream(s)))
		f.Add(uint8(i), 1, []byte(w.stream(spoken{text: []string{"x"}, failure: w.failure})))
		if w.document != nil {
			f.Add(uint8(i), 0, []byte(w.document(s)))
		}
	}
	f.Add(uint8(0), 3, []byte("data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"\xf0\x9f\"}}]}\n\n"))
	f.Add(uint8(2), 0, []byte("data: {\"candidates\":\"answering\"}\n\n"))
	f.Add(uint8(1), 3, []byte("event: x\ndata: []\n\nevent: message_stop\ndata: null\n\n"))
	f.Fuzz(func(t *testing.T, kind uint8, size int, data []byte) {
		w := wires()[int(kind)%len(wires())]
		var chunks []string
		for rest := string(data); rest != ""; {
			n := len(rest)
			if size > 0 {
				n = min(n, size)
			}
			chunks = append(chunks, rest[:n])
			rest = rest[n:]
		}
		a := ask(t, w.kind, &fakeTransport{replies: []reply{body(chunks...)}}, question())
		if a.err == nil && (a.res == nil || a.res.StopReason == "") {
			t.Fatalf("no error and no end: %+v", a.res)
		}
		if a.err != nil && ClassOf(a.err) == "" {
			t.Fatalf("an error without a class: %v", a.err)
		}
		var streamed strings.Builder
		for _, d := range a.deltas {
			streamed.WriteString(d.Text)
			if d.Text == "" || !utf8.ValidString(d.Text) || a.res == nil || d.Part >= len(a.res.Parts) {
				t.Fatalf("delta %+v of %+v", d, a.res)
			}
		}
		if a.res == nil {
			return
		}
		kept := 0
		for _, p := range a.res.Parts {
			if !utf8.ValidString(p.Text) || !utf8.ValidString(p.Name) || !utf8.ValidString(p.CallID) || !utf8.ValidString(string(p.Arguments)) {
				t.Fatalf("%+v is no valid text", p)
			}
			kept += len(p.Text)
		}
		if kept > streamed.Len() {
			t.Fatalf("kept %d bytes of text, streamed %d", kept, streamed.Len())
		}
	})
}

// Texts are never cut inside a character (fault 91).
func TestClip(t *testing.T) {
	const s = "é漢😀👨‍👩‍👧"
	for n := 3; n <= len(s)+1; n++ {
		got := clip(s, n)
		if !utf8.ValidString(got) || len(got) > n || (n >= len(s)) != (got == s) {
			t.Errorf("%d: %q", n, got)
		}
	}
	for n := range len(s) + 1 {
		cut := incomplete(s[:n])
		if !utf8.ValidString(s[:n-cut]) || cut > 3 {
			t.Errorf("%d: %d bytes are of a character that is not whole", n, cut)
		}
	}
}
