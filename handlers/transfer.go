package handlers

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strings"

	"convls/protocol"
	"convls/transfer"
)

// maxExportText is the greatest export that a reply carries, in bytes; a greater
// one needs a path.
const maxExportText = 6 << 20

func (h *Handlers) sessionExport(ctx context.Context, _ Conn, p *protocol.ExportParams, _ input) (*protocol.ExportResult, error) {
	sess, err := h.Store.Session(p.SessionID)
	if err != nil {
		return nil, err
	}
	o := transfer.Options{Format: p.Format, Head: p.Head}
	if p.Path != "" {
		n, err := transfer.ExportFile(ctx, sess, o, p.Path)
		return &protocol.ExportResult{Path: p.Path, Bytes: n}, err
	}
	var b bytes.Buffer
	if err := transfer.Export(ctx, sess, o, &bounded{&b, maxExportText, "the export is greater than %d MiB: give a path to write it to"}); err != nil {
		return nil, err
	}
	return &protocol.ExportResult{Text: b.String(), Bytes: int64(b.Len())}, nil
}

// bounded refuses to write more than left bytes.
type bounded struct {
	to   *bytes.Buffer
	left int
	// says is the message of the error, with a place for the bound in MiB.
	says string
}

func (b *bounded) Write(p []byte) (int, error) {
	if b.left -= len(p); b.left < 0 {
		return 0, protocol.Errorf(protocol.CodeTooLarge, b.says, maxExportText>>20)
	}
	return b.to.Write(p)
}

func (h *Handlers) sessionImport(ctx context.Context, c Conn, p *protocol.ImportParams, in input) (*protocol.ImportReport, error) {
	src := transfer.Source{Format: p.Format, Request: request(c, in, protocol.Mutation{RequestID: p.RequestID})}
	if k, err := h.Models.Counter(c.Settings(), c.Settings().Model); err == nil {
		src.Count, src.Tokenizer = k.Parts, k.ID()
	} // without a counter the view counts when it is asked
	switch {
	case (p.Path == "") == (p.Text == ""):
		return nil, protocol.Errorf(protocol.CodeInvalidParams, "give the path of a file or its text, one of the two")
	case p.Path != "":
		if _, err := os.Stat(p.Path); err != nil {
			return nil, protocol.Errorf(protocol.CodeInvalidParams, "the file can not be read: %v", err)
		}
		src.Path = p.Path
	default:
		src.Reader = strings.NewReader(p.Text)
	}
	progress := c.Progress(ctx, p.WorkDoneToken, "Importing conversations")
	report, err := transfer.Import(ctx, h.Store, src, func(done, total int64) {
		if total > 0 {
			progress.Report(int(done*100/total), fmt.Sprintf("%d of %d KiB", done>>10, total>>10))
		}
	})
	progress.End(fmt.Sprintf("%d sessions", len(report.Sessions)))
	return &report, err
}
