package store

import (
	"context"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"convls/protocol"
)

// Titles are cleaned, names refused: a person types the one, and refers to things by
// the other.
func TestTitlesAndNames(t *testing.T) {
	s := openTest(t, vfs.NewMem())
	for title, kept := range map[string]string{
		"plain":                         "plain",
		"  two\n lines\tand tabs ":      "two lines and tabs",
		"a \x00 b":                      "a b",
		"\x1b[31mred\x1b[0m":            "[31mred[0m",
		"left \u202eright":              "left right",
		"\u2028\u00a0":                  "",
		"漢字 \U0001F468\u200D\U0001F469": "漢字 \U0001F468\u200D\U0001F469",
	} {
		out, err := s.Create(context.Background(), Request{}, Info{Title: title}, "")
		if err != nil {
			t.Fatal(err)
		}
		info := read(t, session(t, s, out.Result), func(r *Reader) (Info, error) { return r.Info() })
		want(t, "title", info.Title, kept)
		want(t, "policy of a session that names none", info.Policy, protocol.PolicyRolling)
	}
	_, err := s.Create(context.Background(), Request{}, Info{Title: strings.Repeat("x", maxTitle+1)}, "")
	wantCode(t, err, protocol.CodeInvalidParams)
	sess := newSession(t, s)
	for _, name := range []string{"a\nb", "a\x00", "\x1b[1m", "a\u202eb", " a", "a ", "", "\u2028", strings.Repeat("x", maxName+1)} {
		refused(t, sess, protocol.CodeInvalidParams, func(tx *Tx) error { return tx.Name(name, Skeleton{Seq: Root}) })
	}
	clean(t, s)
}
