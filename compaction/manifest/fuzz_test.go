package manifest

import (
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"convls/protocol"
)

func FuzzParseChanges(f *testing.F) {
	f.Add(oneAdd)
	f.Add("```json\n" + oneAdd + "\n```")
	f.Add("<think>a</think>" + oneAdd)
	f.Add(`{"changes":[],"narrative":""}`)
	f.Fuzz(func(t *testing.T, text string) {
		changes, err := ParseChanges(text)
		if err != nil {
			if pe, ok := errors.AsType[*ParseError](err); !ok || pe.Reason == "" || pe.Message == "" {
				t.Errorf("an error without a reason: %v", err)
			}
			return
		}
		for _, c := range changes.Changes {
			if err := c.check(); err != nil {
				t.Errorf("accepted: %v", err)
			}
		}
		m, _ := Reduce(nil, changes, []Message{{ID: "n1", Role: RoleUser, Text: text}}, Options{})
		if err := Validate(m); err != nil {
			t.Error(err)
		}
	})
}

func FuzzDecode(f *testing.F) {
	m, _ := Reduce(nil, Changes{}, newly, Options{})
	raw, err := protocol.Marshal(m)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(raw)
	f.Add([]byte(`{"version":1,"goal":[]}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		m, err := Decode(raw)
		if err != nil {
			return
		}
		m.Render(RenderOptions{IDs: true})
		if _, err := Fit(m, 100, tokensOf); err != nil {
			if _, ok := errors.AsType[*TooLargeError](err); !ok {
				t.Error(err)
			}
		}
		next, _ := Reduce(m, Changes{}, newly, Options{})
		if err := Validate(next); err != nil {
			t.Error(err)
		}
	})
}

func FuzzExtract(f *testing.F) {
	for _, m := range newly {
		f.Add(m.Text, m.CallID, byte(1))
	}
	f.Add(strings.Repeat("a/", 5000), "call_1", byte(2))
	f.Add("\xff\xfe。\n```\n[ ] \\ ", "", byte(0))
	f.Fuzz(func(t *testing.T, text, call string, role byte) {
		m := Message{ID: "n1", Role: []Role{RoleUser, RoleAssistant, RoleTool}[role%3], CallID: call, Text: text}
		found := Extract([]Message{m})
		if len(found) > 8*foundPerUserMessage {
			t.Errorf("%d findings in one message", len(found))
		}
		norm := newPassage(&m).norm
		for _, c := range found {
			if c.Quote == "" || !strings.Contains(norm, c.Quote) {
				t.Errorf("%q is not in the message", c.Quote)
			}
			if utf8.ValidString(text) && utf8.ValidString(call) && !utf8.ValidString(c.Text+c.Quote) {
				t.Errorf("a rune was cut: %q", c.Text)
			}
		}
		reduced, _ := Reduce(nil, Changes{}, []Message{m}, Options{})
		if err := Validate(reduced); err != nil {
			t.Error(err)
		}
		if masked, n := Mask(text); n == 0 && masked != text {
			t.Error("masked without a count")
		}
	})
}
