package scenario

import (
	"bytes"
	"fmt"
	"testing"

	"convls/protocol"
	"convls/test/editor"
)

// TestLargePart sends an image and a text that no reply has room for, and reads
// them back in ranges.
func TestLargePart(t *testing.T) {
	ed := editor.NewHome(t).Start(t, editor.Options{})
	s := editor.Ask[protocol.SessionResult](ed, protocol.MethodSessionCreate, protocol.SessionCreateParams{})
	image := bytes.Repeat([]byte("\x89PNG\r\n\x1a\n\x00\xff"), 1_000_000)
	text := []byte("repeat: x " + string(bytes.Repeat([]byte("aé漢😀"), 900_000)))
	r := editor.Ask[protocol.TurnResult](ed, protocol.MethodTurnSend, protocol.TurnSendParams{SessionID: s.SessionID, Wait: true,
		Content: protocol.SendContent{{Type: protocol.PartText, Text: string(text)}, {Type: protocol.PartImage, MIMEType: "image/png", Data: image}}})
	whole := editor.Ask[protocol.Node](ed, protocol.MethodNodeGet, protocol.NodeGetParams{SessionID: s.SessionID, NodeID: r.UserID})
	if !whole.Truncated || len(whole.Content) != 2 || len(whole.Content[1].Data) != 0 {
		t.Fatalf("the whole node comes with %d parts, cut: %v", len(whole.Content), whole.Truncated)
	}
	for part, want := range [][]byte{text, image} {
		var got []byte
		replies := 0
		for size := int64(1); int64(len(got)) < size; replies++ {
			n := editor.Ask[protocol.NodeGetResult](ed, protocol.MethodNodeGet,
				protocol.NodeGetParams{SessionID: s.SessionID, NodeID: r.UserID, Part: &part, Offset: int64(len(got))})
			got = append(append(got, n.Content[0].Text...), n.Content[0].Data...)
			size = *n.Size
		}
		if !bytes.Equal(got, want) {
			t.Errorf("part %d has %d bytes in %d replies, and was sent with %d", part, len(got), replies, len(want))
		}
		if replies != 3 {
			t.Errorf("part %d comes in %d replies", part, replies)
		}
	}
	zero := 0
	editor.Refused(ed, protocol.CodeInvalidParams, protocol.MethodNodeGet, protocol.NodeGetParams{SessionID: s.SessionID, NodeID: r.UserID, Part: &zero, Offset: int64(len(text)) + 1})
}

// TestWordsOfRefusals checks on the wire that a person can act on what is refused.
func TestWordsOfRefusals(t *testing.T) {
	v := newVictim(t)
	for _, tc := range []struct {
		method, params string
		number         int
		message        string
	}{
		{protocol.MethodNodeGet, `{"session_id":$s}`, invalidParams, "node_id is missing"},
		{protocol.MethodNodeGet, `{"session_id":$s,"node_id":5}`, invalidParams, "node_id must be a string, not a number"},
		{protocol.MethodSessionList, `{"cursor":"3.5"}`, invalidParams, `cursor "3.5" is not one that session/list gave: leave it out for the first page`},
		{protocol.MethodTranscriptGet, `{"session_id":$s,"before":"a","after":"b"}`, invalidParams, "before, after and around are three ways to choose the rows: give one of them"},
		{protocol.MethodSessionOpen, `{"session_id":" x "}`, requestFailed, `there is no session " x ": convls sessions, or convls/session/list, names them all`},
	} {
		params := fmt.Sprintf("%q", v.session)
		a := v.Call(tc.method, string(bytes.ReplaceAll([]byte(tc.params), []byte("$s"), []byte(params))))
		if a.Error == nil || a.Error.Code != tc.number || a.Error.Message != tc.message {
			t.Errorf("%s %s is answered by %s", tc.method, tc.params, a.Body)
		}
	}
	v.unchanged()
}
