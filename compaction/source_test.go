package compaction

import (
	"errors"
	"fmt"
	"iter"
	"strings"
	"testing"
	"unicode/utf8"

	"convls/compaction/manifest"
)

func stream(messages ...manifest.Message) iter.Seq2[manifest.Message, error] {
	return func(yield func(manifest.Message, error) bool) {
		for _, m := range messages {
			if !yield(m, nil) {
				return
			}
		}
	}
}

// quarter counts a token for four bytes.
func quarter(s string) int { return (len(s) + 3) / 4 }

// TestChunks: groups have room tokens at most, nothing is left out or said twice, and
// no character is cut in two (faults 36, 37, 91).
func TestChunks(t *testing.T) {
	letters := "é漢😀 word\n\"quoted\"\t"
	messages := []manifest.Message{
		{ID: "1", Role: manifest.RoleUser, Text: strings.Repeat(letters, 10)},
		{ID: "2", Role: manifest.RoleAssistant, Text: strings.Repeat(letters, 900)},
		{ID: "3", Role: manifest.RoleTool, Text: strings.Repeat("a line of a log\n", 20_000)},
		{ID: "4", Role: manifest.RoleUser, Text: strings.Repeat("漢", 3_000)},
		{ID: "5", Role: manifest.RoleUser, Text: "x"},
		{ID: "6", Role: manifest.RoleUser, Text: ""},
		{ID: "7", Role: manifest.RoleUser, Text: strings.Repeat(" ", 30_000)},
	}
	for _, room := range []int64{300, 500, 5_000, 0} {
		t.Run(fmt.Sprint(room), func(t *testing.T) {
			texts := map[string]string{}
			asked := int64(0)
			beside := func() (int64, error) { asked++; return room, nil }
			n := 0
			for c, err := range chunks(stream(messages...), beside, quarter) {
				if err != nil {
					t.Fatal(err)
				}
				n++
				if room > 0 && c.tokens > room {
					t.Errorf("group %d has %d tokens of %d", n, c.tokens, room)
				}
				tokens := int64(0)
				for i, m := range c.messages {
					texts[m.ID] += m.Text
					if !utf8.ValidString(m.Text) || !utf8.ValidString(c.shown[i].Text) || c.shown[i].ID != m.ID {
						t.Errorf("a piece of %s is broken", m.ID)
					}
					tokens += size(c.shown[i].Text, quarter)
					if m.ID == "3" && room > 0 && !strings.Contains(c.shown[i].Text, "bytes left out") {
						t.Error("the clipped result has no mark")
					}
				}
				if room > 0 && tokens > room {
					t.Errorf("group %d is shown with %d tokens of %d", n, tokens, room)
				}
			}
			for _, m := range messages {
				if texts[m.ID] != m.Text {
					t.Errorf("of message %s %d bytes came, of %d", m.ID, len(texts[m.ID]), len(m.Text))
				}
			}
			if asked != int64(n) {
				t.Errorf("the room was asked %d times for %d groups", asked, n)
			}
		})
	}
}

// TestChunksTakeWhatRoomThereIs: the room of a group is what is left when it begins,
// and a room that is gone ends it.
func TestChunksTakeWhatRoomThereIs(t *testing.T) {
	m := manifest.Message{ID: "1", Role: manifest.RoleUser, Text: strings.Repeat("some words ", 2_000)}
	rooms := []int64{2_000, 1_000, 400}
	gone := errors.New("gone")
	beside := func() (int64, error) {
		if len(rooms) == 0 {
			return 0, gone
		}
		room := rooms[0]
		rooms = rooms[1:]
		return room, nil
	}
	var sizes []int64
	var last error
	for c, err := range chunks(stream(m), beside, quarter) {
		if last = err; err == nil {
			sizes = append(sizes, c.tokens)
		}
	}
	if len(sizes) != 3 || sizes[0] > 2_000 || sizes[1] > 1_000 || sizes[2] > 400 || !errors.Is(last, gone) {
		t.Errorf("the groups have %v tokens, and end with %v", sizes, last)
	}
	failing := func(yield func(manifest.Message, error) bool) { yield(manifest.Message{}, gone) }
	for _, err := range chunks(failing, func() (int64, error) { return 0, nil }, quarter) {
		if !errors.Is(err, gone) {
			t.Errorf("an error of the ledger became %v", err)
		}
	}
}
