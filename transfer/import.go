package transfer

import (
	"context"
	"errors"
	"fmt"

	"convls/protocol"
	"convls/store"
)

// maxSkipped is how many skipped entries a report lists; it counts them all.
const maxSkipped = 100

// Import reads the sessions of a source into the store. Each is stored whole, in
// one batch, or not at all; what was left out, sessions and single records, is in
// the report with line and reason. progress, if not nil, is told how many bytes
// were read, and of how many, 0 if that is not known.
//
// A session whose id is taken gets a new one; ids of nodes stay as they are.
//
// Errors: import_refused if the source has a fault and nothing of it was stored;
// invalid_params for an unknown format; what the store says if it can not be
// written, or ctx ends: then the report tells what was stored before.
func Import(ctx context.Context, s *store.Store, src Source, progress func(done, total int64)) (protocol.ImportReport, error) {
	im := &importer{store: s, src: src, progress: progress,
		report: protocol.ImportReport{Sessions: []protocol.ImportedEntry{}, Skipped: []protocol.SkippedEntry{}}}
	err := im.run(ctx)
	if err == nil && len(im.report.Sessions) == 0 {
		err = im.nothing()
	}
	return im.report, err
}

// importer is one import.
type importer struct {
	store    *store.Store
	src      Source
	lines    *lines
	size     int64
	progress func(done, total int64)
	// told is the offset that progress was told last.
	told   int64
	report protocol.ImportReport
}

func (im *importer) run(ctx context.Context) error {
	r, size, err := im.src.open()
	if err != nil {
		return err
	}
	defer r.Close()
	im.size, im.lines = size, newLines(ctx, r)
	if err := begin(im.lines); err != nil {
		return err
	}
	format, values, err := detect(im.lines.buf)
	switch im.src.Format {
	case "":
		if err != nil {
			return err
		}
	case FormatConvls, FormatAgent:
		format = im.src.Format
	case FormatTree:
		if format != FormatTree {
			format, values = FormatTree, false
		}
	default:
		return protocol.Errorf(protocol.CodeInvalidParams, "there is no import format %q: it is convls, tree or agent", im.src.Format)
	}
	im.report.Format = format
	switch {
	case format == FormatConvls:
		err = im.convls(ctx)
	case format == FormatAgent:
		err = im.agent(ctx)
	case values:
		err = im.treeValues(ctx)
	default:
		err = im.treeLines(ctx)
	}
	im.tell(true)
	return err
}

// nothing makes the error of an import that stored no session.
func (im *importer) nothing() error {
	if len(im.report.Skipped) == 0 {
		return refused("the source holds no session")
	}
	first := im.report.Skipped[0]
	where := ""
	if first.Line > 0 {
		where = fmt.Sprintf("line %d: ", first.Line)
	}
	return refused("%s%s", where, first.Reason)
}

// tell reports progress, once a MiB unless it is the end.
func (im *importer) tell(end bool) {
	if im.progress == nil || !end && im.lines.offset-im.told < 1<<20 {
		return
	}
	im.told = im.lines.offset
	im.progress(im.lines.offset, max(im.size, 0))
}

// skip reports something that is left out.
func (im *importer) skip(f *fault) {
	im.report.SkippedCount++
	if len(im.report.Skipped) < maxSkipped {
		im.report.Skipped = append(im.report.Skipped, protocol.SkippedEntry{Line: f.line, ID: store.Clip(f.id, 128), Reason: f.reason})
	}
}

// stored adds a session, or skips it if err is a fault of the source.
func (im *importer) stored(e protocol.ImportedEntry, err error) error {
	if f, ok := errors.AsType[*fault](err); ok {
		im.skip(f)
		return nil
	}
	if err != nil {
		return err
	}
	im.report.Sessions = append(im.report.Sessions, e)
	im.report.Nodes += e.Nodes
	im.tell(false)
	return nil
}

// line returns the next line, as a fault if it can not be read; io.EOF ends.
func (im *importer) line() ([]byte, error) {
	line, err := im.lines.next()
	if err == nil {
		im.tell(false)
	}
	return line, err
}
