package transfer

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"iter"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"convls/protocol"
	"convls/settings"
	"convls/store"
)

// convls imports what Export wrote: one session after another. Nodes go into the
// batch as they are read.
func (im *importer) convls(ctx context.Context) error {
	for {
		line, err := im.line()
		switch f, isFault := errors.AsType[*fault](err); {
		case errors.Is(err, io.EOF):
			return nil
		case isFault:
			im.skip(f)
			continue
		case err != nil:
			return err
		}
		switch typeOf(line) {
		case typeHeader:
			var h headerRecord
			if err := protocol.Unmarshal(line, &h); err != nil {
				im.skip(faultf(im.lines.number, "the header can not be read: %v", err))
			} else if h.Format > exportFormat {
				// What a newer program means by its lines nobody here knows.
				im.skip(faultf(im.lines.number, "the export has format %d and this program reads up to %d: use the newer convls", h.Format, exportFormat))
				if err := im.toNext(typeHeader); err != nil {
					return err
				}
			}
		case typeSession:
			if err := im.convlsSession(ctx, bytes.Clone(line)); err != nil {
				return err
			}
		default:
			im.skip(faultf(im.lines.number, "the line belongs to no session"))
			if err := im.toNext(typeHeader, typeSession); err != nil {
				return err
			}
		}
	}
}

// toNext reads on to the next line of one of these types, or the end.
func (im *importer) toNext(types ...string) error {
	for {
		line, err := im.line()
		switch _, isFault := errors.AsType[*fault](err); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil && !isFault:
			return err
		}
		if slices.Contains(types, typeOf(line)) {
			im.lines.unread()
			return nil
		}
	}
}

func (im *importer) convlsSession(ctx context.Context, line []byte) error {
	at := im.lines.number
	entry, err := func() (protocol.ImportedEntry, error) {
		var r sessionRecord
		if err := protocol.Unmarshal(line, &r); err != nil {
			return protocol.ImportedEntry{}, faultf(at, "the session's record can not be read: %v", err)
		}
		root, err := im.node()
		if err != nil {
			return protocol.ImportedEntry{}, err
		}
		if root == nil || root.Kind != protocol.KindRoot || !validID(root.ID) {
			return protocol.ImportedEntry{}, faultf(at, "the session does not begin with its root node")
		}
		return im.put(ctx, im.convlsDraft(at, &r, root))
	}()
	if err := im.stored(entry, err); err != nil {
		return err
	}
	return im.toNext(typeHeader, typeSession)
}

// kept returns what is kept of a session's settings: an export can come from
// anybody, and must not bring commands or addresses along. What is left out is
// reported; settings without such stay as they are, to the letter.
func (im *importer) kept(at int64, own protocol.Raw) protocol.Raw {
	if len(own) == 0 {
		return nil
	}
	clean, left, err := settings.Untrusted(own)
	if err != nil {
		clean, left = nil, []string{err.Error()}
	}
	for _, why := range left {
		im.skip(faultf(at, "a setting of the session: %s", why))
	}
	if len(left) == 0 {
		return own
	}
	return clean
}

func (im *importer) convlsDraft(at int64, r *sessionRecord, root *nodeRecord) *draft {
	return &draft{
		line: at,
		info: store.Info{ID: r.SessionID, Title: store.CleanTitle(r.Title), Model: r.Model, Policy: cmp.Or(r.Policy, policyRolling), Workspace: r.Workspace, CreatedAt: r.CreatedAt,
			Settings: im.kept(at, r.Settings), ImportedFrom: r.ImportedFrom},
		system: r.System, titleFrom: r.TitleFrom, root: *root, nodes: im.nodes(), want: r.Nodes,
		head: r.Head, branch: r.Branch, branches: r.Branches, active: r.ActiveSummary, tips: r.Tips,
		total: &store.Totals{Input: r.Total.InputTokens, Output: r.Total.OutputTokens, Calls: r.Total.Calls, CostMicro: r.Total.CostMicroUSD},
		queue: r.Queue,
	}
}

// nodes yields the nodes of a session up to the next one.
func (im *importer) nodes() iter.Seq2[*nodeRecord, error] {
	return func(yield func(*nodeRecord, error) bool) {
		for {
			n, err := im.node()
			if n == nil && err == nil || !yield(n, err) || err != nil {
				return
			}
		}
	}
}

// node reads the next node with the texts before it; nil at the session's end.
func (im *importer) node() (*nodeRecord, error) {
	var texts []textRecord
	for {
		line, err := im.line()
		if errors.Is(err, io.EOF) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		at := im.lines.number
		switch typeOf(line) {
		case typeHeader, typeSession:
			im.lines.unread()
			return nil, nil
		case typeText:
			var t textRecord
			if err := protocol.Unmarshal(line, &t); err != nil {
				return nil, faultf(at, "the text can not be read: %v", err)
			}
			texts = append(texts, t)
		case typeNode:
			n := &nodeRecord{line: at, texts: texts}
			if err := protocol.Unmarshal(line, n); err != nil {
				return nil, faultf(at, "the node can not be read: %v", err)
			}
			return n, nil
		case "":
			if truncated(line) {
				return nil, faultf(at, "the last line is torn: the file was cut")
			}
			return nil, faultf(at, "the line is no record")
		default: // a later program may write more
		}
	}
}

// typeOf returns the member type of a line, "" if it has none or is no object. We
// write it first; others may not.
func typeOf(line []byte) string {
	d := jsontext.NewDecoder(bytes.NewReader(line))
	if t, err := d.ReadToken(); err != nil || t.Kind() != '{' {
		return ""
	}
	for d.PeekKind() == '"' {
		name, err := d.ReadToken()
		if err != nil {
			return ""
		}
		if name.String() != "type" {
			if d.SkipValue() != nil {
				return ""
			}
			continue
		}
		v, err := d.ReadToken()
		if err != nil || v.Kind() != '"' {
			return ""
		}
		return v.String()
	}
	return ""
}
