package transfer

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"convls/protocol"
)

func TestRefusedSources(t *testing.T) {
	for _, c := range []struct{ name, text, format, want string }{
		{"empty", "", "", "the source is empty"},
		{"blank lines", "\n \r\n\n", "", "the source is empty"},
		{"byte order mark alone", "\uFEFF", "", "the source is empty"},
		{"UTF-16", "\xFF\xFE{\x00", "", "UTF-16"},
		{"gzip", "\x1F\x8B\x08\x00", "", "gzip"},
		{"prose", "Dear diary", "", `it begins with "Dear diary"`},
		{"no UTF-8", "\xff\xff", "", "neither JSON Lines nor JSON"},
		{"unknown object", `{"a":1}`, "", "the format is not known"},
		{"broken object", `{"a" 1}`, "", "the first line can not be read"},
		{"empty array", `[]`, "", "the source holds no session"},
		{"array of numbers", `[1,2]`, "", "value 1 can not be read"},
		{"trees read as a session", message("a", "", "prompter", "A"), FormatAgent, "belongs to no session"},
		{"session read as trees", header, FormatTree, "neither a message nor a tree"},
		{"session read as an export", header, FormatConvls, "does not begin with its root"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := openStore(t)
			r, err := importText(t, s, c.text, c.format)
			if protocol.CodeOf(err) != protocol.CodeImportRefused || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want import_refused with %q", err, c.want)
			}
			if r.Sessions == nil || r.Skipped == nil || len(r.Sessions) != 0 {
				t.Errorf("report %+v", r)
			}
			empty(t, s)
			clean(t, s)
		})
	}
}

func TestSourceOpens(t *testing.T) {
	s := openStore(t)
	dir := t.TempDir()
	for _, c := range []struct {
		src  Source
		want protocol.Code
	}{
		{Source{}, protocol.CodeInvalidParams},
		{Source{Path: dir}, protocol.CodeImportRefused},
		{Source{Path: filepath.Join(dir, "none")}, protocol.CodeImportRefused},
		{Source{Reader: strings.NewReader(header), Format: "word"}, protocol.CodeInvalidParams},
	} {
		if _, err := Import(t.Context(), s, c.src, nil); protocol.CodeOf(err) != c.want {
			t.Errorf("%+v: error %v, want %s", c.src, err, c.want)
		}
	}
	path := filepath.Join(dir, "talk.jsonl")
	if err := os.WriteFile(path, []byte(header+"\n"+said("user", "u")), 0o600); err != nil {
		t.Fatal(err)
	}
	r, err := Import(t.Context(), s, Source{Path: path}, nil)
	if err != nil {
		t.Fatal(err)
	}
	info, err := reader(t, session(t, s, r.Sessions[0].SessionID)).Info()
	if err != nil || info.ImportedFrom != "talk.jsonl" || info.Title != "u" {
		t.Errorf("%+v %v", info, err)
	}
}

// failing breaks after its text.
type failing struct {
	r   io.Reader
	err error
}

func (f *failing) Read(p []byte) (int, error) {
	n, err := f.r.Read(p)
	if errors.Is(err, io.EOF) {
		err = f.err
	}
	return n, err
}

// What was stored before a source breaks stays, and nothing of the session that it
// broke in.
func TestSourceBreaks(t *testing.T) {
	broken := errors.New("the disk is gone")
	two := header + "\n" + said("user", "u") + "\n" + strings.Replace(header, `"s"`, `"s2"`, 1) + "\n" + said("user", "u2") + "\n"
	s := openStore(t)
	r, err := Import(t.Context(), s, Source{Reader: &failing{strings.NewReader(two), broken}}, nil)
	if !errors.Is(err, broken) || len(r.Sessions) != 1 || r.Sessions[0].SessionID != "s" {
		t.Errorf("%+v %v", r, err)
	}
	clean(t, s)
	out := export(t, session(t, s, "s"), Options{Format: FormatJSONL})
	other := openStore(t)
	if _, err := Import(t.Context(), other, Source{Reader: &failing{strings.NewReader(out[:len(out)-5]), broken}}, nil); !errors.Is(err, broken) {
		t.Errorf("error %v", err)
	}
	empty(t, other)
	clean(t, other)
}

func TestCancelledImport(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s := openStore(t)
	for _, text := range []string{header + "\n" + said("user", "u"), strings.Join(chain("a", 3), "\n"), "[" + strings.Join(chain("a", 3), ",") + "]"} {
		if _, err := Import(ctx, s, Source{Reader: strings.NewReader(text)}, nil); !errors.Is(err, context.Canceled) {
			t.Errorf("error %v, want cancelled", err)
		}
	}
	empty(t, s)
}
