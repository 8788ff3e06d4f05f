package transfer

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"convls/protocol"
	"convls/store"
)

// The formats of [Export].
const (
	FormatJSONL    = "jsonl"
	FormatMarkdown = "markdown"
)

// Options say how a session is exported.
type Options struct {
	// Format is jsonl (all of it, can be imported) or markdown (one branch, to read).
	Format string
	// Head is the id of the chain node that a Markdown export ends with; HEAD if it
	// is empty. JSON Lines have all branches anyway.
	Head string
}

// Export writes a session to w, as it is when Export begins.
//
// JSON Lines: a header, the session, then every node in the order of their
// numbers; an import of that makes an equal session. A node that is being written
// goes out as interrupted, with the text that it has. The same session gives the
// same bytes.
//
// Errors: invalid_params for an unknown format, unknown_node or not_a_chain_node
// for a wrong Head, store_damaged if a node can not be read: a copy with a hole
// in it would not be one.
func Export(ctx context.Context, s *store.Session, o Options, w io.Writer) error {
	r, err := s.Reader()
	if err != nil {
		return err
	}
	defer r.Close()
	out := bufio.NewWriterSize(w, 64<<10)
	switch o.Format {
	case FormatJSONL:
		err = (&exporter{Reader: r, out: out, kept: map[string]bool{}}).run(ctx)
	case FormatMarkdown:
		err = writeMarkdown(ctx, r, o.Head, out)
	default:
		return protocol.Errorf(protocol.CodeInvalidParams, "there is no export format %q: it is jsonl or markdown", o.Format)
	}
	if err != nil {
		return err
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("write the export: %w", err)
	}
	return nil
}

// exporter writes JSON Lines.
type exporter struct {
	*store.Reader
	out *bufio.Writer
	// kept are the hashes of texts that were written, or are nowhere.
	kept map[string]bool
}

func (e *exporter) run(ctx context.Context) error {
	if err := e.put(headerRecord{Type: typeHeader, Format: exportFormat}); err != nil {
		return err
	}
	if err := e.session(); err != nil {
		return err
	}
	for sk, err := range skeletons(ctx, e.Reader) {
		if err != nil {
			return err
		}
		if err := e.node(sk); err != nil {
			return err
		}
	}
	return nil
}

// skeletons yields all nodes in the order of their numbers. Numbers of deleted
// nodes are passed over; a damaged one is an error.
func skeletons(ctx context.Context, r *store.Reader) func(yield func(store.Skeleton, error) bool) {
	return func(yield func(store.Skeleton, error) bool) {
		for seq := store.Root; seq < r.State.Next; seq++ {
			sk, err := r.Skeleton(seq)
			if protocol.CodeOf(err) == protocol.CodeUnknownNode {
				continue
			}
			if cerr := ctx.Err(); err == nil {
				err = cerr
			}
			if !yield(sk, err) || err != nil {
				return
			}
		}
	}
}

func (e *exporter) put(record any) error {
	b, err := protocol.Marshal(record)
	if err != nil {
		return fmt.Errorf("encode a line of the export: %w", err)
	}
	if _, err := e.out.Write(append(b, '\n')); err != nil {
		return fmt.Errorf("write the export: %w", err)
	}
	return nil
}

func (e *exporter) session() error {
	info, err := e.Info()
	if err != nil {
		return err
	}
	r := sessionRecord{Type: typeSession, SessionID: info.ID, Title: info.Title, Model: info.Model, Policy: info.Policy,
		Workspace: info.Workspace, CreatedAt: info.CreatedAt, Settings: info.Settings, ImportedFrom: info.ImportedFrom,
		Branch: e.State.Branch, Branches: map[string]string{}, Tips: []string{}, Nodes: e.State.Nodes,
		Total: totalsRecord{e.State.Total.Input, e.State.Total.Output, e.State.Total.Calls, e.State.Total.CostMicro}}
	if r.System, err = e.Text(info.SystemSHA256); err != nil {
		return err
	}
	e.kept[info.SystemSHA256] = true
	if r.TitleFrom, err = e.idIfThere(info.TitleFrom); err != nil {
		return err
	}
	if r.Head, err = e.ID(e.State.Head); err != nil {
		return err
	}
	if r.ActiveSummary, err = e.ID(e.State.Active); err != nil {
		return err
	}
	names, err := e.Names()
	if err != nil {
		return err
	}
	for name, seq := range names {
		if r.Branches[name], err = e.ID(seq); err != nil {
			return err
		}
	}
	leaves, err := e.Leaves()
	if err != nil {
		return err
	}
	for _, leaf := range slices.Backward(leaves) {
		id, err := e.ID(leaf.Seq)
		if err != nil {
			return err
		}
		r.Tips = append(r.Tips, id)
	}
	if r.Queue, err = e.queue(); err != nil {
		return err
	}
	return e.put(r)
}

func (e *exporter) queue() ([]queueEntry, error) {
	queue, err := e.Queue()
	if err != nil {
		return nil, err
	}
	var entries []queueEntry
	for i, q := range queue {
		id, err := e.ID(q.After)
		if err != nil {
			return nil, err
		}
		q.After, q.Held = 0, true
		entries = append(entries, queueEntry{Queued: q, AfterID: id, Place: uint64(i) + 1})
	}
	return entries, nil
}

// idIfThere returns the id of a node, "" for one that was deleted since.
func (e *exporter) idIfThere(seq store.Seq) (string, error) {
	id, err := e.ID(seq)
	if protocol.CodeOf(err) == protocol.CodeUnknownNode {
		return "", nil
	}
	return id, err
}

func (e *exporter) node(sk store.Skeleton) error {
	c, err := settled(e.Reader, &sk)
	if err != nil {
		return err
	}
	n := nodeRecord{Type: typeNode, ID: sk.ID, Kind: sk.Kind, Status: sk.Status, CreatedAt: sk.Created, Tokens: sk.Tokens, Tokenizer: sk.Tokenizer,
		Redacted: sk.Redacted, Exposed: sk.Exposed, Content: c.Parts, Prompt: c.Prompt, Model: c.Model, DurationMS: c.DurationMS, StopReason: c.StopReason,
		Error: c.Error, Usage: c.Usage, Call: c.Call, Metadata: c.Metadata, Source: c.Source, Manifest: c.Manifest, Provenance: c.Provenance}
	var errs [7]error
	n.Predecessor, errs[0] = e.ID(sk.Predecessor)
	n.Caller, errs[1] = e.ID(sk.Caller)
	n.Pinned, errs[2] = e.Pinned(sk.Seq)
	n.VoidReason, n.Void, errs[3] = e.VoidReason(sk.Seq)
	n.Reads, errs[4] = e.reads(c)
	n.Covers, errs[5] = e.covers(c)
	n.Undone, errs[6] = e.Undone(sk.Seq)
	if err := errors.Join(errs[:]...); err != nil {
		return err
	}
	if err := e.texts(c); err != nil {
		return err
	}
	return e.put(n)
}

// settled returns a node's content. An open node becomes one that was interrupted
// here, with the text that it has.
func settled(r *store.Reader, sk *store.Skeleton) (*store.Content, error) {
	c, err := r.Content(sk.Seq)
	if err != nil || sk.Status != protocol.StatusOpen {
		return c, err
	}
	parts, err := r.Partial(sk.Seq)
	if err != nil {
		return nil, err
	}
	c.Parts = append(c.Parts, parts...)
	c.Error = &protocol.NodeError{Code: protocol.CodeServerRestarted, Message: "this was being written when the session was exported",
		Retryable: true, Hint: "retry it: what had arrived is kept here"}
	sk.Status = protocol.StatusInterrupted
	return c, nil
}

// reads names the runs by their ids. Runs of nodes that were deleted since are
// left out, as everywhere.
func (e *exporter) reads(c *store.Content) ([]runRecord, error) {
	var runs []runRecord
	for _, run := range c.Reads {
		last, err := e.idIfThere(run.Last)
		if err != nil {
			return nil, err
		}
		first, err := e.idIfThere(run.First)
		if err != nil {
			return nil, err
		}
		if first != "" && last != "" {
			runs = append(runs, runRecord{First: first, Last: last})
		}
	}
	return runs, nil
}

func (e *exporter) covers(c *store.Content) (*coversRecord, error) {
	if c.Covers == nil {
		return nil, nil
	}
	first, err1 := e.idIfThere(c.Covers.First)
	last, err2 := e.idIfThere(c.Covers.Last)
	return &coversRecord{First: first, Last: last, Count: c.Covers.Count, Digest: c.Covers.Digest, Tokens: c.Covers.Tokens}, errors.Join(err1, err2)
}

// texts writes the texts that a node names by hash, each once. Hashes whose text
// the ledger never had are nothing to write.
func (e *exporter) texts(c *store.Content) error {
	var sums []string
	if c.Call != nil {
		sums = append(sums, c.Call.SystemSHA256, c.Call.ToolsSHA256)
	}
	if c.Provenance != nil {
		sums = append(sums, c.Provenance.PromptSHA256)
	}
	for _, sum := range sums {
		if sum == "" || e.kept[sum] {
			continue
		}
		e.kept[sum] = true
		text, err := e.Text(sum)
		if err != nil {
			continue
		}
		if err := e.put(textRecord{Type: typeText, SHA256: sum, Text: text}); err != nil {
			return err
		}
	}
	return nil
}
