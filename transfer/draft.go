package transfer

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"convls/protocol"
	"convls/store"
)

// draft is a session on its way into the store, in terms of ids.
type draft struct {
	// line is where the session began in the source.
	line int64
	// info.ID is the id that it should have; a new one if it is empty or taken.
	info   store.Info
	system string
	// titleFrom is the node whose text the title was taken from.
	titleFrom string
	root      nodeRecord
	// nodes are those after the root, in the order to store them. It ends with an
	// error if they can not be had.
	nodes iter.Seq2[*nodeRecord, error]
	// want is how many nodes there must be with the root; 0 if nobody knows.
	want         uint64
	head, branch string
	branches     map[string]string
	active       string
	// tips are in the order of their last use; may be empty.
	tips  []string
	total *store.Totals
	queue []queueEntry
}

// put stores a draft in one batch. The error is a *fault if the source is wrong.
func (im *importer) put(ctx context.Context, d *draft) (protocol.ImportedEntry, error) {
	original := d.info.ID
	if !validID(d.info.ID) {
		d.info.ID = ""
	}
	if d.info.ImportedFrom == "" {
		d.info.ImportedFrom = im.src.Name
	}
	req := im.src.Request
	req.ExpectedHead, req.Cause = "", "import"
	if req.ID != "" {
		req.ID = fmt.Sprintf("%s/%d", req.ID, len(im.report.Sessions))
	}
	for {
		out, err := store.CreateWith(ctx, im.store, req, d.info, d.system, d.root.spec(0, 0), func(tx *store.Tx) (protocol.ImportedEntry, error) {
			w := &draftWriter{tx: tx, d: d, original: original, ids: map[string]store.Seq{}, calls: map[string]store.Seq{}, followed: map[store.Seq]bool{}}
			return w.write()
		})
		if protocol.CodeOf(err) == protocol.CodeIDConflict && d.info.ID != "" {
			d.info.ID = "" // the session's id is taken: conflicts of nodes are faults
			continue
		}
		if out.Result.SessionID != original {
			out.Result.OriginalID = original
		}
		return out.Result, err
	}
}

// spec returns the store's form of a record, but for what names other nodes.
func (n *nodeRecord) spec(pred, caller store.Seq) store.NodeSpec {
	return store.NodeSpec{ID: n.ID, Kind: n.Kind, Predecessor: pred, Caller: caller, Status: n.Status, Content: n.content(),
		Tokens: int(min(n.Tokens, 1<<40)), Tokenizer: n.Tokenizer, Created: n.CreatedAt, HeadNeutral: true, Exposed: n.Exposed}
}

// maxTitle is the longest title that is made of a text, in bytes.
const maxTitle = 80

// titleOf makes a title of a text: its first line, cut at a word.
func titleOf(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	line = store.CleanTitle(line)
	if len(line) <= maxTitle {
		return line
	}
	line = store.Clip(line, maxTitle)
	if i := strings.LastIndexByte(line, ' '); i > maxTitle/2 {
		line = line[:i]
	}
	return line + " …"
}

// policyRolling is the compaction policy of imported sessions that name none.
const policyRolling = protocol.PolicyRolling

// count counts a node's tokens, if anybody can.
func (im *importer) count(n *nodeRecord) {
	if im.src.Count == nil || len(n.Content) == 0 {
		return
	}
	n.Tokens, n.Tokenizer = uint64(max(im.src.Count(n.Content), 0)), im.src.Tokenizer
}

// timeOf reads a time; the zero time, which means now, if it is none or outside of
// what RFC 3339 can write.
func timeOf(s string) time.Time {
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		return time.Time{}
	}
	return sane(t)
}

func sane(t time.Time) time.Time {
	if t = t.UTC(); t.Year() < 1970 || t.Year() > 9999 {
		return time.Time{}
	}
	return t.Truncate(time.Millisecond)
}

// quote returns s as a JSON string.
func quote(s string) protocol.Raw {
	b, err := jsontext.AppendQuote(nil, s)
	if err != nil {
		return protocol.Raw(`""`)
	}
	return b
}
