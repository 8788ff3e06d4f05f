package protocol

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestUnmarshalAcceptsWhatClientsSend(t *testing.T) {
	limit := func(n int) SessionListParams { return SessionListParams{Limit: n} }
	for _, tc := range []struct {
		name, in string
		want     SessionListParams
		bad      bool
	}{
		{name: "plain", in: `{"limit":3}`, want: limit(3)},
		{name: "unknown members are ignored", in: `{"limit":3,"shiny":{"a":[1]}}`, want: limit(3)},
		{name: "an empty array is an empty object", in: `[]`, want: limit(0)},
		{name: "spaces inside the empty array", in: `[ ]`, want: limit(0)},
		{name: "null is absent", in: `null`, want: limit(0)},
		{name: "null member is absent", in: `{"limit":null,"query":null}`, want: limit(0)},
		{name: "a whole float", in: `{"limit":1500.0}`, want: limit(1500)},
		{name: "an exponent", in: `{"limit":15e2}`, want: limit(1500)},
		{name: "a fraction", in: `{"limit":1.5}`, bad: true},
		{name: "a string for a number", in: `{"limit":"3"}`, bad: true},
		{name: "out of range", in: `{"limit":1e300}`, bad: true},
		{name: "an array with content", in: `[1]`, bad: true},
		{name: "invalid UTF-8", in: "{\"query\":\"\xff\"}", bad: true},
		{name: "lone surrogate", in: `{"query":"\ud800"}`, bad: true},
		{name: "duplicate member", in: `{"limit":1,"limit":2}`, bad: true},
		{name: "trailing text", in: `{} {}`, bad: true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var got SessionListParams
			err := Unmarshal([]byte(tc.in), &got)
			if tc.bad != (err != nil) {
				t.Fatalf("Unmarshal(%s): error %v, want error: %v", tc.in, err, tc.bad)
			}
			if !tc.bad && !cmp.Equal(got, tc.want) {
				t.Error(cmp.Diff(tc.want, got))
			}
		})
	}
}

func TestSendContentIsStringOrParts(t *testing.T) {
	for _, tc := range []struct {
		in   string
		want SendContent
		bad  bool
	}{
		{in: `{"content":"hi"}`, want: SendContent{{Type: PartText, Text: "hi"}}},
		{in: `{"content":[{"type":"text","text":"hi"}]}`, want: SendContent{{Type: PartText, Text: "hi"}}},
		{in: `{"content":7}`, bad: true},
		{in: `{"content":{"type":"text"}}`, bad: true},
	} {
		var got TurnSendParams
		err := Unmarshal([]byte(tc.in), &got)
		if tc.bad != (err != nil) {
			t.Errorf("%s: error %v, want error: %v", tc.in, err, tc.bad)
		} else if !tc.bad && !cmp.Equal(got.Content, tc.want) {
			t.Errorf("%s: %s", tc.in, cmp.Diff(tc.want, got.Content))
		}
	}
}

func TestArraysAreNeverNull(t *testing.T) {
	got, err := Marshal(SessionListResult{})
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != `{"sessions":[]}` {
		t.Errorf("got %s", got)
	}
}
