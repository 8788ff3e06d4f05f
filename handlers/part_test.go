package handlers

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"testing"

	"convls/protocol"
)

// TestPartInRanges reads a text and an image in ranges of many lengths: put
// together they are the whole, and none ends inside a character (fault 91).
func TestPartInRanges(t *testing.T) {
	v := serve(t)
	text := "repeat: " + strings.Repeat("aé漢😀", 9)
	data := make([]byte, 200)
	for i := range data {
		data[i] = byte(i)
	}
	sent := do[*protocol.TurnResult](v, protocol.MethodTurnSend, fmt.Sprintf(
		`{"session_id":"$s","wait":true,"content":[{"type":"text","text":%q},{"type":"image","mime_type":"image/png","data":%q}]}`, text, base64.StdEncoding.EncodeToString(data)))
	for _, limit := range []int{1, 2, 3, 4, 5, 7, 64, 4 << 20} {
		for part, whole := range [][]byte{[]byte(text), data} {
			var got []byte
			for {
				r := do[*protocol.NodeGetResult](v, protocol.MethodNodeGet, fmt.Sprintf(`{"session_id":"$s","node_id":%q,"part":%d,"offset":%d,"limit":%d}`, sent.UserID, part, len(got), limit))
				if r.Size == nil || *r.Size != int64(len(whole)) {
					t.Fatalf("the size of part %d is %v, want %d", part, r.Size, len(whole))
				}
				if len(r.Content) != 1 || r.Truncated {
					t.Fatalf("%d parts come, cut: %v", len(r.Content), r.Truncated)
				}
				if part == 1 && (r.Content[0].Type != protocol.PartImage || r.Content[0].MIMEType != "image/png") {
					t.Fatalf("the image comes as %+v", r.Content[0])
				}
				piece := slices.Concat([]byte(r.Content[0].Text), r.Content[0].Data)
				if len(piece) > max(limit, 4) {
					t.Fatalf("a range of %d has %d bytes", limit, len(piece))
				}
				if len(piece) == 0 {
					break
				}
				got = append(got, piece...)
			}
			if !bytes.Equal(got, whole) {
				t.Errorf("part %d in ranges of %d is %q", part, limit, got)
			}
		}
	}
}

// TestListPages goes through the list of sessions by its own cursors.
func TestListPages(t *testing.T) {
	v := serve(t)
	want := []string{v.ids["$s"]}
	for range 4 {
		want = append(want, do[*protocol.SessionResult](v, protocol.MethodSessionCreate, `{}`).SessionID)
	}
	slices.Reverse(want)
	var got []string
	cursor := ""
	for {
		r := do[*protocol.SessionListResult](v, protocol.MethodSessionList, fmt.Sprintf(`{"limit":2,"cursor":%q}`, cursor))
		for _, s := range r.Sessions {
			got = append(got, s.SessionID)
		}
		if cursor = r.Next; cursor == "" {
			break
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("the pages hold %v, want %v", got, want)
	}
}

// TestCancelOfWhatIsOver tells how a turn ended.
func TestCancelOfWhatIsOver(t *testing.T) {
	v := serve(t)
	if r := do[*protocol.TurnCancelResult](v, protocol.MethodTurnCancel, `{"session_id":"$s","reply_id":"$a"}`); r.State != protocol.StatusSealed {
		t.Errorf("the state is %s", r.State)
	}
}
