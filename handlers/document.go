package handlers

import (
	"bytes"
	"context"

	"convls/projection"
	"convls/projection/drawing"
	"convls/protocol"
	"convls/store"
	"convls/transfer"
)

// maxDocumentRows and maxDocumentEntries are how much of a graph or a context a
// document shows.
const (
	maxDocumentRows    = 2_000
	maxDocumentEntries = 5_000
)

func (h *Handlers) documentContent(ctx context.Context, c Conn, p *protocol.TextDocumentContentParams, _ input) (*protocol.TextDocumentContentResult, error) {
	d, err := transfer.ParseURI(p.URI)
	if err != nil {
		return nil, err
	}
	sess, err := h.Store.Session(d.SessionID)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	switch d.View {
	case transfer.ViewTranscript:
		err = transfer.Export(ctx, sess, transfer.Options{Format: transfer.FormatMarkdown, Head: d.Head}, document(&b))
	case transfer.ViewContext:
		err = h.contextDocument(c, sess, d, &b)
	case transfer.ViewGraph:
		err = h.graphDocument(d, &b)
	default:
		err = h.read(d.SessionID, func(_ *store.Session, r *store.Reader) error { return transfer.WriteNode(r, d.NodeID, document(&b)) })
	}
	if err != nil {
		return nil, err
	}
	return &protocol.TextDocumentContentResult{Text: b.String()}, nil
}

// document bounds what is written into a document.
func document(to *bytes.Buffer) *bounded {
	return &bounded{to, maxExportText, "the document is greater than %d MiB: read the session in windows, or export it"}
}

func (h *Handlers) contextDocument(c Conn, sess *store.Session, d transfer.Document, b *bytes.Buffer) error {
	page, err := h.contextPage(c, sess, projection.Options{}, d.Head, "", maxDocumentEntries, true)
	if err != nil {
		return err
	}
	return transfer.WriteContext(d.SessionID, page, document(b))
}

func (h *Handlers) graphDocument(d transfer.Document, b *bytes.Buffer) error {
	return h.read(d.SessionID, func(_ *store.Session, r *store.Reader) error {
		w := projection.GraphWindow{Limit: maxDocumentRows, Expanded: d.Expanded, CountCovers: true}
		var err error
		if w.Head, err = seenFrom(r, d.Head); err != nil {
			return err
		}
		view, err := projection.Graph(r, w)
		if err != nil {
			return err
		}
		b.WriteString("# Graph\n\n````text\n")
		if err := drawing.Text(b, view, drawing.Options{IDs: true}); err != nil {
			return err
		}
		b.WriteString("````\n")
		return nil
	})
}
