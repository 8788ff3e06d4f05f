package protocol_test

import (
	"errors"
	"testing"

	"convls/protocol"
)

// TestUnmarshalParams checks that what does not fit is told in the words of the
// wire: the member, what is wanted, what came.
func TestUnmarshalParams(t *testing.T) {
	for _, tc := range []struct {
		params string
		into   any
		want   string // "" fits
	}{
		{``, &protocol.NodeGetParams{}, ""},
		{`null`, &protocol.NodeGetParams{}, ""},
		{`[]`, &protocol.NodeGetParams{}, ""},
		{`{"max_bytes":1500.0}`, &protocol.NodeGetParams{}, ""},
		{`5`, &protocol.NodeGetParams{}, "params must be an object, not a number"},
		{`[1]`, &protocol.NodeGetParams{}, "params must be an object, not an array"},
		{`"x"`, &protocol.NodeGetParams{}, "params must be an object, not a string"},
		{`{"node_id":5}`, &protocol.NodeGetParams{}, "node_id must be a string, not a number"},
		{`{"node_id":{}}`, &protocol.NodeGetParams{}, "node_id must be a string, not an object"},
		{`{"max_bytes":"5"}`, &protocol.NodeGetParams{}, "max_bytes must be a whole number, not a string"},
		{`{"max_bytes":1.5}`, &protocol.NodeGetParams{}, "max_bytes must be a whole number, not 1.5"},
		{`{"max_bytes":99999999999999999999}`, &protocol.NodeGetParams{}, "max_bytes is out of range: 99999999999999999999"},
		{`{"max_bytes":1e300}`, &protocol.NodeGetParams{}, "max_bytes is out of range: 1e300"},
		{`{"max_bytes":true}`, &protocol.NodeGetParams{}, "max_bytes must be a whole number, not a boolean"},
		{`{"include":"content"}`, &protocol.NodeGetParams{}, "include must be an array of strings, not a string"},
		{`{"include":["content",1]}`, &protocol.NodeGetParams{}, "include[1] must be a string, not a number"},
		{`{"confirm":"yes"}`, &protocol.RedactParams{}, "confirm must be true or false, not a string"},
		{`{"content":5}`, &protocol.TurnSendParams{}, "content must be a string or an array of parts, not a number"},
		{`{"content":{}}`, &protocol.TurnSendParams{}, "content must be a string or an array of parts, not an object"},
		{`{"content":[1]}`, &protocol.TurnSendParams{}, "content[0] must be an object, not a number"},
		{`{"content":[{"type":"text","text":7}]}`, &protocol.TurnSendParams{}, "content[0].text must be a string, not a number"},
		{`{"content":[{"type":"image","data":"#"}]}`, &protocol.TurnSendParams{}, "content[0].data must be a string of base64, not other text"},
		{`{"context":[{"range":{"start":{"line":-1}}}]}`, &protocol.TurnSendParams{}, "context[0].range.start.line is out of range: -1"},
		{`{"tools":{"name":"x"}}`, &protocol.TurnSendParams{}, "tools must be an array, not an object"},
		{`{"tail":"5"}`, &protocol.SessionOpenParams{}, "tail must be a whole number, not a string"},
		{`{"model":5}`, &protocol.SessionConfigureParams{}, "model must be a string, not a number"},
		{`{"node_id":"a","node_id":"b"}`, &protocol.NodeGetParams{}, "node_id is there twice"},
	} {
		err := protocol.UnmarshalParams([]byte(tc.params), tc.into)
		if tc.want == "" {
			if err != nil {
				t.Errorf("%s: %v", tc.params, err)
			}
			continue
		}
		refused, ok := errors.AsType[*protocol.Error](err)
		if !ok || refused.Code != protocol.CodeInvalidParams {
			t.Errorf("%s: %v", tc.params, err)
			continue
		}
		if refused.Message != tc.want {
			t.Errorf("%s:\n %s, want\n %s", tc.params, refused.Message, tc.want)
		}
	}
}
