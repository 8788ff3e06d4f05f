package transfer

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"convls/protocol"
	"convls/store"
)

func openStore(t testing.TB) *store.Store {
	t.Helper()
	clock := func() time.Time { return time.Date(2025, 6, 1, 12, 0, 0, 0, time.UTC) }
	s, err := store.Open(context.Background(), store.Options{Dir: "ledger", FS: vfs.NewMem(), Clock: clock})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// clean fails the test if the store has any fault.
func clean(t testing.TB, s *store.Store) {
	t.Helper()
	if err := s.Check(context.Background(), func(p store.Problem) { t.Error(p) }); err != nil {
		t.Fatal(err)
	}
}

func importText(t testing.TB, s *store.Store, text, format string) (protocol.ImportReport, error) {
	t.Helper()
	return Import(context.Background(), s, Source{Reader: strings.NewReader(text), Name: "test", Format: format}, nil)
}

func mustImport(t testing.TB, s *store.Store, text string) protocol.ImportReport {
	t.Helper()
	r, err := importText(t, s, text, "")
	if err != nil {
		t.Fatal(err)
	}
	clean(t, s)
	return r
}

func session(t testing.TB, s *store.Store, id string) *store.Session {
	t.Helper()
	sess, err := s.Session(id)
	if err != nil {
		t.Fatal(err)
	}
	return sess
}

func reader(t testing.TB, sess *store.Session) *store.Reader {
	t.Helper()
	r, err := sess.Reader()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	return r
}

func export(t testing.TB, sess *store.Session, o Options) string {
	t.Helper()
	var b bytes.Buffer
	if err := Export(context.Background(), sess, o, &b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// roundTrip exports a session, imports that into another store, and fails unless
// both are equal, to the byte of what they export.
func roundTrip(t testing.TB, sess *store.Session) {
	t.Helper()
	out := export(t, sess, Options{Format: FormatJSONL})
	other := openStore(t)
	report := mustImport(t, other, out)
	if len(report.Sessions) != 1 || report.SkippedCount != 0 {
		t.Fatalf("the export was imported as %+v", report)
	}
	got := session(t, other, report.Sessions[0].SessionID)
	if diff, err := Equal(sess, got); err != nil || diff != "" {
		t.Fatalf("after the round trip: %s (%v)", diff, err)
	}
	const from = `"imported_from":"test",`
	if again := export(t, got, Options{Format: FormatJSONL}); strings.Replace(again, from, "", 1) != strings.Replace(out, from, "", 1) {
		t.Fatalf("the second export differs from the first:\n%s\n%s", out, again)
	}
}

// kinds counts the nodes of a session by kind and status.
func kinds(t testing.TB, r *store.Reader) map[string]int {
	t.Helper()
	n := map[string]int{}
	for sk, err := range skeletons(context.Background(), r) {
		if err != nil {
			t.Fatal(err)
		}
		n[string(sk.Kind)]++
		n[string(sk.Kind)+" "+string(sk.Status)]++
	}
	return n
}

// sharedFile returns a file of real conversations, or skips the test where they
// are not there.
func sharedFile(t testing.TB, name string) string {
	t.Helper()
	path := filepath.Join("..", "..", "shared", "data", name)
	if _, err := os.Stat(path); err != nil {
		t.Skip("no real conversations here: ", err)
	}
	return path
}
