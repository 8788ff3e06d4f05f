package transfer

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"convls/protocol"
	"convls/store"
)

// FuzzImport gives the importers any bytes: they never panic, a refused source
// leaves nothing, and what is stored is whole: the ledger has no fault, and the
// session's export makes an equal one.
func FuzzImport(f *testing.F) {
	samples, err := filepath.Glob(filepath.Join("testdata", "*.jsonl"))
	if err != nil {
		f.Fatal(err)
	}
	for _, path := range samples {
		b, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Add([]byte(export(f, rich(f, openStore(f)), Options{Format: FormatJSONL})))
	f.Add([]byte("[" + message("a", "", "prompter", "A") + "," + message("b", "a", "assistant", "B") + "]"))
	f.Add([]byte(header + "\n" + calls("a") + "\n" + gave("a", "r") + "\n" + compacted(2)))
	s, other := openStore(f), openStore(f) // opening one for each input would take most of the time
	f.Fuzz(func(t *testing.T, source []byte) {
		if len(source) > 64<<10 {
			t.Skip("a longer one finds nothing that a short one does not")
		}
		for _, format := range []string{"", FormatConvls, FormatTree, FormatAgent} {
			checkImport(t, s, other, source, format)
		}
	})
}

func checkImport(t *testing.T, s, other *store.Store, source []byte, format string) {
	r, err := importText(t, s, string(source), format)
	clean(t, s)
	n, cerr := s.Count(context.Background())
	if cerr != nil || int(n) != len(r.Sessions) {
		t.Fatalf("%d sessions are stored and %d reported (%v)", n, len(r.Sessions), cerr)
	}
	if e, ok := errors.AsType[*protocol.Error](err); err != nil && (!ok || e.Code != protocol.CodeImportRefused || e.Message == "") {
		t.Fatalf("format %q: error %v is not for people", format, err)
	}
	for _, e := range r.Sessions {
		sess := session(t, s, e.SessionID)
		again := mustImport(t, other, export(t, sess, Options{Format: FormatJSONL}))
		if diff, err := Equal(sess, session(t, other, again.Sessions[0].SessionID)); err != nil || diff != "" {
			t.Fatalf("after the round trip: %s (%v)", diff, err)
		}
		_ = export(t, sess, Options{Format: FormatMarkdown})
		remove(t, other, again.Sessions[0].SessionID)
		remove(t, s, e.SessionID)
	}
}

func remove(t *testing.T, s *store.Store, id string) {
	t.Helper()
	if _, err := s.DeleteSession(context.Background(), id, store.Request{}); err != nil {
		t.Fatal(err)
	}
}

// FuzzClosed: after the text of one message the next heading is a heading.
func FuzzClosed(f *testing.F) {
	for _, s := range []string{"", "a", "```\nx", "````\n```\n", "~~~\n```\n~~~", "<!-- x", "<pre>\n```", "``` a`b", "   ```\n", "    ```\n"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		once := closed(text)
		if twice := closed(once); twice != once {
			t.Errorf("closing %q again gives %q", once, twice)
		}
		if !strings.HasPrefix(once, strings.TrimRight(text, "\n")) {
			t.Errorf("the text was changed: %q", once)
		}
	})
}
