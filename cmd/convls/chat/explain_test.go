package chat

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"convls/client"
	"convls/protocol"
)

// TestExplain: every refusal says what was refused and what to do next.
func TestExplain(t *testing.T) {
	for _, tc := range []struct {
		err  error
		want []string
	}{
		{fmt.Errorf("convls/turn/send: %w", client.ErrClosed), []string{"/restart"}},
		{context.DeadlineExceeded, []string{"try again"}},
		{protocol.Errorf(protocol.CodeStaleHead, "HEAD is elsewhere"), []string{"HEAD is elsewhere", "send again"}},
		{fmt.Errorf("x: %w", protocol.Errorf(protocol.CodeUnknownModel, "no model x.")), []string{"no model x (/model lists"}},
		{protocol.Errorf(protocol.CodeNameConflict, "taken"), []string{"another name"}},
		{errors.New("as it is"), []string{"as it is"}},
	} {
		got := explain(tc.err)
		for _, want := range tc.want {
			if !strings.Contains(got, want) {
				t.Errorf("%v: %q, want %q", tc.err, got, want)
			}
		}
	}
	for _, tc := range []struct {
		err  *protocol.NodeError
		want string
	}{
		{nil, "/retry"},
		{&protocol.NodeError{Message: "slow down", Retryable: true}, "slow down (/retry answers again)"},
		{&protocol.NodeError{Message: "no key", Hint: "set X_API_KEY"}, "no key (set X_API_KEY)"},
		{&protocol.NodeError{Message: "too long", Code: protocol.CodeContextOverflow}, "/rewind"},
		{&protocol.NodeError{Message: "refused"}, "/model"},
	} {
		if got := explainNode(tc.err); !strings.Contains(got, tc.want) {
			t.Errorf("%+v: %q, want %q", tc.err, got, tc.want)
		}
	}
}

func TestSpawnTellsWhatFailed(t *testing.T) {
	for _, tc := range []struct {
		argv []string
		want string
	}{
		{nil, "no command"},
		{[]string{filepath.Join(t.TempDir(), "nothing")}, "nothing"},
		{[]string{"sh", "-c", "echo the store is locked >&2; exit 3"}, "the store is locked"},
	} {
		l, err := spawn(tc.argv, "test")(t.Context())
		if err == nil {
			t.Errorf("%v: a server was started", tc.argv)
			_ = l.end()
			continue
		}
		if !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%v: %v, want %q", tc.argv, err, tc.want)
		}
	}
}

func TestOptionsThatContradict(t *testing.T) {
	for _, tc := range []struct {
		o  Options
		ok bool
	}{
		{Options{}, true},
		{Options{Once: true, Message: "x"}, true},
		{Options{Once: true, Attach: []string{"-"}}, true},
		{Options{Continue: true, Model: "m"}, true},
		{Options{Once: true}, false},
		{Options{Session: "s", Continue: true}, false},
		{Options{Session: "s", Title: "t"}, false},
		{Options{Continue: true, System: "t"}, false},
		{Options{Attach: []string{"-"}}, false},
		{Options{Once: true, Attach: []string{"-", "-"}, Message: "x"}, false},
	} {
		if err := tc.o.check(); (err == nil) != tc.ok {
			t.Errorf("%+v: %v", tc.o, err)
		}
	}
}

func TestAttachData(t *testing.T) {
	png := "\x89PNG\r\n\x1a\n0000"
	for _, tc := range []struct {
		name, data  string
		text, image bool
	}{
		{"a.go", "package a", true, false},
		{"a.png", png, false, true},
		{"漢字.txt", "漢字", true, false},
		{"a.bin", "\xff\xfe\x00", false, false},
		{"empty", "", false, false},
	} {
		a, err := attachData(tc.name, "file:///x", []byte(tc.data))
		if (a.item != nil) != tc.text || (a.part != nil) != tc.image || (err == nil) != (tc.text || tc.image) {
			t.Errorf("%s: %+v, %v", tc.name, a, err)
		}
	}
	big := filepath.Join(t.TempDir(), "big")
	f, err := os.Create(big)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(f.Truncate(maxAttached+1), f.Close()); err != nil {
		t.Fatal(err)
	}
	if _, err := attachFile(big); err == nil || !strings.Contains(err.Error(), "most that can be attached") {
		t.Errorf("a file that is too large: %v", err)
	}
}
