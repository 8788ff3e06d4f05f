package transfer

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"convls/protocol"
	"convls/store"
)

// The formats of [Import].
const (
	FormatConvls = "convls"
	FormatTree   = "tree"
	FormatAgent  = "agent"
)

// Source is what an import reads.
type Source struct {
	// Path is a regular file. Reader is used if it is empty.
	Path   string
	Reader io.Reader
	// Name tells people where a session came from; the file's name by default.
	Name string
	// Format is convls, tree or agent; it is detected if it is empty.
	Format string
	// Count returns the tokens of a node's content, by Tokenizer; nobody counts if
	// it is nil. Sessions in convls's own format keep the counts that they have.
	Count     func([]protocol.Part) int
	Tokenizer string
	// Request makes the import safe to repeat: each session gets a request id of its
	// own from it. Its ExpectedHead is not used.
	Request store.Request
}

// open opens the source and returns its size in bytes, 0 if that is not known.
func (src *Source) open() (io.ReadCloser, int64, error) {
	if src.Path == "" {
		if src.Reader == nil {
			return nil, 0, protocol.Errorf(protocol.CodeInvalidParams, "an import needs a path or a text")
		}
		size := int64(0)
		if s, ok := src.Reader.(interface{ Len() int }); ok {
			size = int64(s.Len())
		}
		return io.NopCloser(src.Reader), size, nil
	}
	if src.Name == "" {
		src.Name = filepath.Base(src.Path)
	}
	info, err := os.Stat(src.Path)
	if err != nil {
		return nil, 0, refused("%s", reasonOf(err, src.Path))
	}
	if !info.Mode().IsRegular() {
		return nil, 0, refused("%s is not a file", src.Path)
	}
	f, err := os.Open(src.Path)
	if err != nil {
		return nil, 0, refused("%s", reasonOf(err, src.Path))
	}
	return f, info.Size(), nil
}

func reasonOf(err error, path string) string {
	switch {
	case errors.Is(err, os.ErrNotExist):
		return "there is no file " + path
	case errors.Is(err, os.ErrPermission):
		return "the file " + path + " may not be read"
	}
	return fmt.Sprintf("the file %s can not be read: %v", path, err)
}

// refused makes the error of an import that stored nothing.
func refused(format string, args ...any) *protocol.Error {
	reason := fmt.Sprintf(format, args...)
	return &protocol.Error{Code: protocol.CodeImportRefused, Message: "nothing was imported: " + reason, Data: protocol.ErrorData{Reason: reason}}
}

// begin reads the source's first line, without its byte order mark, and leaves it
// to be read again.
func begin(l *lines) error {
	switch mark, _ := l.r.Peek(4); {
	case bytes.HasPrefix(mark, []byte("\xEF\xBB\xBF")):
		n, err := l.r.Discard(3)
		if err != nil {
			return fmt.Errorf("read the source: %w", err)
		}
		l.offset += int64(n)
	case bytes.HasPrefix(mark, []byte("\xFF\xFE")), bytes.HasPrefix(mark, []byte("\xFE\xFF")):
		return refused("the source is UTF-16: save it as UTF-8")
	case bytes.HasPrefix(mark, []byte("\x1F\x8B")):
		return refused("the source is compressed with gzip: decompress it first")
	}
	_, err := l.next()
	if f, ok := errors.AsType[*fault](err); ok {
		return refused("%s", f)
	}
	if errors.Is(err, io.EOF) {
		return refused("the source is empty")
	}
	if err != nil {
		return err
	}
	l.unread()
	return nil
}

// detect tells the format by the first line, and whether the source has values
// that are longer than a line, such as one array of messages.
func detect(line []byte) (format string, values bool, err error) {
	switch {
	case line[0] == '[':
		return FormatTree, true, nil
	case line[0] != '{':
		return "", false, refused("the source is neither JSON Lines nor JSON: it begins with %q", store.Clip(string(bytes.ToValidUTF8(line, nil)), 20))
	}
	format, err = formatOf(line)
	switch {
	case format != "":
		return format, format == FormatTree && truncated(line), nil
	case truncated(line):
		return FormatTree, true, nil
	case err != nil:
		return "", false, refused("the first line can not be read: %v", err)
	}
	return "", false, refused("the format is not known: the first line has neither a type nor a message")
}

// formatOf tells the format by the first member of an object that tells it, so
// that a fault further on is found where it can be reported.
func formatOf(line []byte) (string, error) {
	d := jsontext.NewDecoder(bytes.NewReader(line))
	if _, err := d.ReadToken(); err != nil {
		return "", err
	}
	for {
		name, err := d.ReadToken()
		if err != nil || name.Kind() != '"' {
			return "", err
		}
		switch name.String() {
		case "message_tree_id", "message_id", "prompt":
			return FormatTree, nil
		case "type":
			v, err := d.ReadToken()
			switch {
			case err != nil:
				return "", err
			case v.Kind() == '"' && v.String() == typeHeader:
				return FormatConvls, nil
			case v.Kind() == '"':
				return FormatAgent, nil
			case v.Kind() == '{' || v.Kind() == '[':
				return "", nil
			}
		default:
			if err := d.SkipValue(); err != nil {
				return "", err
			}
		}
	}
}

// truncated reports whether a line is the beginning of a longer value.
func truncated(line []byte) bool {
	d := jsontext.NewDecoder(bytes.NewReader(line), jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true))
	for {
		if _, err := d.ReadToken(); err != nil {
			return errors.Is(err, io.ErrUnexpectedEOF)
		}
		if d.StackDepth() == 0 {
			return false
		}
	}
}

// unmarshal decodes a line of another program. Such programs cut text between the
// halves of a UTF-16 pair; half a character becomes U+FFFD here, because all the
// rest of the line is right, and one bad character must not make a session
// unreadable (fault 91). Bytes that are no UTF-8 are refused.
func unmarshal(line []byte, v any) error {
	err := protocol.Unmarshal(line, v)
	if err == nil || !utf8.Valid(line) || !bytes.Contains(line, []byte(`\u`)) {
		return err
	}
	mended := jsontext.Value(bytes.Clone(line))
	if mended.Format(jsontext.AllowInvalidUTF8(true), jsontext.PreserveRawStrings(false)) != nil {
		return err
	}
	if bytes.Equal(mended, line) {
		return err
	}
	return protocol.Unmarshal(mended, v)
}

// validName reports whether a label can be a branch's name: the store's own rule.
func validName(name string) bool {
	return name != "" && len(name) <= 100 && strings.TrimSpace(name) == name && !strings.ContainsFunc(name, unicode.IsControl)
}

// validID reports whether an id of another program can be one of ours: the
// store's own rule.
func validID(id string) bool {
	if id == "" || len(id) > 128 {
		return false
	}
	for _, c := range []byte(id) {
		ok := c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' || c == '-' || c == '.'
		if !ok {
			return false
		}
	}
	return true
}
