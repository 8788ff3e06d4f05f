package chat

import (
	"testing"

	"convls/protocol"

	"pgregory.net/rapid"
)

func TestStreamJoins(t *testing.T) {
	d := func(part int, offset int64, text string) protocol.Delta {
		return protocol.Delta{Part: part, Kind: protocol.DeltaText, Offset: offset, Text: text}
	}
	for _, tc := range []struct {
		name    string
		deltas  []protocol.Delta
		catchUp []protocol.Part
		text    string
		gap     bool
	}{
		{name: "in order", deltas: []protocol.Delta{d(0, 0, "a漢"), d(0, 4, "b")}, text: "a漢b"},
		{name: "the same twice", deltas: []protocol.Delta{d(0, 0, "ab"), d(0, 0, "ab"), d(0, 2, "c")}, text: "abc"},
		{name: "an overlap", deltas: []protocol.Delta{d(0, 0, "abc"), d(0, 1, "bcd")}, text: "abcd"},
		{name: "a gap", deltas: []protocol.Delta{d(0, 0, "a"), d(0, 5, "x")}, text: "a", gap: true},
		{name: "a gap that a late piece fills", deltas: []protocol.Delta{d(0, 2, "c"), d(0, 0, "ab")}, text: "abc"},
		{name: "a gap that is read", deltas: []protocol.Delta{d(0, 0, "a"), d(0, 5, "f")}, catchUp: []protocol.Part{{Type: protocol.PartText, Text: "abcde"}}, text: "abcdef"},
		{name: "read less than is there", deltas: []protocol.Delta{d(0, 0, "abc")}, catchUp: []protocol.Part{{Type: protocol.PartText, Text: "ab"}}, text: "abc"},
		{name: "read, and still a gap", deltas: []protocol.Delta{d(0, 9, "x")}, catchUp: []protocol.Part{{Type: protocol.PartText, Text: "ab"}}, text: "ab", gap: true},
		{name: "two parts", deltas: []protocol.Delta{d(1, 0, "B"), d(0, 0, "A")}, text: "AB"},
		{name: "nonsense", deltas: []protocol.Delta{d(-1, 0, "x"), d(0, -1, "x"), d(1<<30, 0, "x")}, text: ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := &stream{}
			gap := false
			for _, d := range tc.deltas {
				gap = s.add(d)
			}
			if tc.catchUp != nil {
				gap = s.catchUp(tc.catchUp)
			}
			if s.text() != tc.text || gap != tc.gap {
				t.Errorf("text %q, gap %v; want %q, %v", s.text(), gap, tc.text, tc.gap)
			}
		})
	}
}

func TestStreamKeepsKindsApart(t *testing.T) {
	s := &stream{}
	s.add(protocol.Delta{Part: 0, Kind: protocol.DeltaReasoning, Text: "hm"})
	s.add(protocol.Delta{Part: 1, Kind: protocol.DeltaText, Text: "yes"})
	s.add(protocol.Delta{Part: 2, Kind: protocol.DeltaToolArgs, Text: "{}"})
	if s.text() != "yes" || s.reasoning() != "hm" || s.bytes() != 7 {
		t.Errorf("text %q, reasoning %q, %d bytes", s.text(), s.reasoning(), s.bytes())
	}
}

// TestStreamWhateverIsLost: deltas in any order, any of them lost or doubled, with
// the node read at the end, give the text (fault 87).
func TestStreamWhateverIsLost(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringN(0, 60, 200).Draw(t, "text")
		var deltas []protocol.Delta
		for at := 0; at < len(text); {
			n := min(rapid.IntRange(1, 12).Draw(t, "length"), len(text)-at)
			deltas = append(deltas, protocol.Delta{Offset: int64(at), Text: text[at : at+n], Kind: protocol.DeltaText})
			at += n
		}
		s := &stream{}
		for _, d := range rapid.Permutation(deltas).Draw(t, "order") {
			for range rapid.IntRange(0, 2).Draw(t, "times") {
				s.add(d)
			}
		}
		if gap := s.catchUp([]protocol.Part{{Type: protocol.PartText, Text: text}}); gap || s.text() != text {
			t.Fatalf("text %q, gap %v; want %q", s.text(), gap, text)
		}
	})
}

func TestOrder(t *testing.T) {
	var o order
	if !o.snapshot("c5", true) {
		t.Fatal("the first snapshot is refused")
	}
	if !o.event("c6") {
		t.Error("an event after the snapshot is taken for old")
	}
	if o.snapshot("c5", false) {
		t.Error("a snapshot from before c6 was accepted after c6")
	}
	if !o.snapshot("c5", false) {
		t.Error("the same snapshot is refused for ever")
	}
	o.event("c6")
	if !o.snapshot("c6", false) || !o.event("c7") {
		t.Error("the snapshot that fits, or the event after it, is refused")
	}
	// A snapshot that is ahead of the events on their way.
	if !o.snapshot("c9", false) {
		t.Fatal("a snapshot that is ahead is refused")
	}
	if o.event("c8") || o.event("c9") {
		t.Error("events that the snapshot holds are taken for new")
	}
	if !o.event("c10") {
		t.Error("the event after is taken for old")
	}
}

// TestOrderDoesNotWaitForEver: an event that never comes must not silence all that
// follow.
func TestOrderDoesNotWaitForEver(t *testing.T) {
	var o order
	o.snapshot("a", true)
	o.snapshot("never", false)
	for i := range maxSeen + 1 {
		if o.event(string(rune(0x4E00 + i))) {
			return
		}
	}
	t.Error("all events are taken for old")
}
