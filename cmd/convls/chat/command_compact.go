package chat

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"convls/protocol"
)

// compactArgs are what /compact was given.
type compactArgs struct {
	verb string // preview, cancel, or nothing
	upTo string // the number of a message, as it was written
	// matters is what the summary should keep, in the person's words.
	matters string
}

func readCompactArgs(arg string) compactArgs {
	var a compactArgs
	words := strings.Fields(arg)
	if len(words) > 0 && (words[0] == "preview" || words[0] == "cancel") {
		a.verb, words = words[0], words[1:]
	}
	if len(words) > 0 && strings.HasPrefix(words[0], "#") {
		a.upTo, words = words[0], words[1:]
	}
	a.matters = strings.Join(words, " ")
	return a
}

func prepareCompact(s *state, arg string) (job, error) {
	if err := s.needSession(); err != nil {
		return nil, err
	}
	a := readCompactArgs(arg)
	id := s.session.SessionID
	if a.verb == "cancel" {
		if a.upTo != "" || a.matters != "" {
			return nil, errors.New("/compact cancel stands alone")
		}
		return func(ctx context.Context, c caller) (outcome, error) {
			r, err := call[protocol.CompactionResult](ctx, c, protocol.MethodCompactionCancel, protocol.CompactionCancelParams{Mutation: mutation(), SessionID: id})
			if err != nil {
				return outcome{}, err
			}
			if r.State == protocol.RunFinished {
				return outcome{say: "it was too late: the compaction is finished; /undo-compact takes it back"}, nil
			}
			return outcome{say: "the compaction was cancelled, nothing was changed"}, nil
		}, nil
	}
	upTo := found(protocol.Row{})
	if a.upTo != "" {
		var err error
		if upTo, err = s.messageOr(a.upTo, nil, ""); err != nil {
			return nil, err
		}
	}
	spec := protocol.CompactionSpec{Instructions: a.matters}
	if a.verb == "preview" {
		return previewCompaction(id, spec, upTo), nil
	}
	return s.look().after(func(ctx context.Context, c caller) (outcome, error) {
		at, err := uncovered(ctx, c, upTo)
		if err != nil {
			return outcome{}, err
		}
		spec.UpToID = at.ID
		r, err := call[protocol.CompactionResult](ctx, c, protocol.MethodCompactionRun, protocol.CompactionRunParams{Mutation: mutation(), SessionID: id, CompactionSpec: spec, Wait: true})
		if err != nil {
			return outcome{}, err
		}
		o, err := compactionOutcome(r)
		if a.matters != "" && r.Summariser == extractive {
			o.say += "; the built-in rules wrote it, which do not read what you said it should keep: set compaction.model for that"
		}
		return o, err
	}), nil
}

// extractive is the name of the summariser that is built into the server.
const extractive = "extractive"

// uncovered is a target that no summary stands for yet.
func uncovered(ctx context.Context, c caller, t target) (protocol.Row, error) {
	r, err := t(ctx, c)
	switch {
	case err != nil:
		return r, err
	case r.CoveredBy != "":
		return r, fmt.Errorf("message #%d is in the present summary already: name a later one", r.Depth)
	case r.ID != "" && r.Kind == protocol.KindRoot:
		return r, errors.New("#0 is the beginning: name a message")
	}
	return r, nil
}

// compactionOutcome tells how a run ended that a person asked for.
func compactionOutcome(r *protocol.CompactionResult) (outcome, error) {
	switch r.State {
	case protocol.RunFinished:
		text := fmt.Sprintf("compacted: a summary stands for %s, the context went from %s to %s tokens; /summary shows it, /undo-compact takes it back",
			count(r.Covered, "message"), thousands(r.TokensBefore), thousands(r.TokensAfter))
		if len(r.RawTips) > 0 {
			text += fmt.Sprintf("; %s that had the summary before read every message again", count(int64(len(r.RawTips)), "branch"))
		}
		return outcome{say: text}, nil
	case protocol.RunCancelled:
		return outcome{say: "the compaction was cancelled, nothing was changed"}, nil
	}
	text := "the compaction failed, nothing was changed"
	if r.Error != nil {
		text += ": " + withHint(r.Error.Message, r.Error.Hint)
	}
	return outcome{}, errors.New(text)
}

func previewCompaction(session string, spec protocol.CompactionSpec, upTo target) job {
	return func(ctx context.Context, c caller) (outcome, error) {
		at, err := uncovered(ctx, c, upTo)
		if err != nil {
			return outcome{}, err
		}
		spec.UpToID = at.ID
		p, err := call[protocol.CompactionPreview](ctx, c, protocol.MethodCompactionPreview, protocol.CompactionPreviewParams{SessionID: session, CompactionSpec: spec})
		if err != nil {
			return outcome{}, err
		}
		return outcome{page: &page{title: "What /compact would do", body: previewText(p)}}, nil
	}
}

func previewText(p *protocol.CompactionPreview) string {
	if p.WhyNot != "" && p.Covered == 0 {
		return "Nothing: " + p.WhyNot + ".\n"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "A summary would stand for %s", count(p.Covered, "message"))
	if p.PreviousID != "" {
		fmt.Fprintf(&b, ", %s of them new, and take the place of the present summary", thousands(p.NewlyCovered))
	}
	fmt.Fprintf(&b, ".\n%s would stay word for word.\n", count(int64(len(p.KeptIDs)), "message"))
	fmt.Fprintf(&b, "The context would go from %s to about %s tokens.\n", thousands(p.TokensBefore), thousands(p.TokensAfter))
	if p.Calls == 0 {
		b.WriteString("It would be written by built-in rules: no model is asked.\n")
	} else {
		fmt.Fprintf(&b, "It would be written by %s, in %s.\n", p.Summariser, count(int64(p.Calls), "call"))
	}
	if p.WhyNot != "" {
		fmt.Fprintf(&b, "It would be refused: %s.\n", p.WhyNot)
	}
	b.WriteString("Nothing is deleted: the messages stay, and /undo-compact takes a summary back.\n")
	return b.String()
}

// summaries asks for the summaries of a session.
func summaries(ctx context.Context, c caller, session string) (*protocol.CompactionListResult, error) {
	return call[protocol.CompactionListResult](ctx, c, protocol.MethodCompactionList, protocol.SessionParams{SessionID: session})
}

// activate makes a summary the one that stands, none if it is "".
func activate(ctx context.Context, c caller, session, summary string) error {
	_, err := call[protocol.CompactionActivateResult](ctx, c, protocol.MethodCompactionActivate,
		protocol.CompactionActivateParams{Mutation: mutation(), SessionID: session, SummaryID: summary})
	return err
}

// prepareUndoCompact goes back to the summary before the present one, or to none.
func prepareUndoCompact(s *state, arg string) (job, error) {
	if err := s.needSession(); err != nil {
		return nil, err
	}
	if arg != "" {
		return nil, errors.New("/undo-compact takes back the present summary: it needs no argument")
	}
	id := s.session.SessionID
	return s.look().after(func(ctx context.Context, c caller) (outcome, error) {
		l, err := summaries(ctx, c, id)
		if err != nil {
			return outcome{}, err
		}
		if l.Undo == nil {
			return outcome{}, errors.New("no summary stands here: there is nothing to undo")
		}
		if err := activate(ctx, c, id, l.Undo.SummaryID); err != nil {
			return outcome{}, err
		}
		if l.Undo.SummaryID == "" {
			return outcome{say: fmt.Sprintf("undone: the model reads the %s again; /redo-compact takes the summary up again", count(l.Undo.Covered, "message")) + autoWaits}, nil
		}
		return outcome{say: "undone: the summary before stands again; /redo-compact goes forward" + autoWaits}, nil
	}), nil
}

// autoWaits is what an undo means for the compactions that nobody asks for.
const autoWaits = ". None is made by itself until you /compact or redo"

// standing returns the summary that stands on this branch.
func standing(l *protocol.CompactionListResult) (protocol.SummaryInfo, bool) {
	i := slices.IndexFunc(l.Summaries, func(s protocol.SummaryInfo) bool { return s.Applies })
	if i < 0 {
		return protocol.SummaryInfo{}, false
	}
	return l.Summaries[i], true
}

// prepareRedoCompact takes up the summary that came after the present one.
func prepareRedoCompact(s *state, arg string) (job, error) {
	if err := s.needSession(); err != nil {
		return nil, err
	}
	if arg != "" {
		return nil, errors.New("/redo-compact takes up the summary after the present one: it needs no argument")
	}
	id := s.session.SessionID
	return s.look().after(func(ctx context.Context, c caller) (outcome, error) {
		l, err := summaries(ctx, c, id)
		if err != nil {
			return outcome{}, err
		}
		if l.Redo == nil {
			return outcome{}, errors.New("there is no later summary to take up")
		}
		if err := activate(ctx, c, id, l.Redo.SummaryID); err != nil {
			return outcome{}, err
		}
		where := "stands again"
		if after, err := summaries(ctx, c, id); err == nil {
			if now, ok := standing(after); !ok || now.SummaryID != l.Redo.SummaryID {
				where = "is taken up again; it stands on another branch than this"
			}
		}
		return outcome{say: fmt.Sprintf("the summary of %s %s", count(l.Redo.Covered, "message"), where)}, nil
	}), nil
}

func prepareSummary(s *state, arg string) (job, error) {
	if err := s.needSession(); err != nil {
		return nil, err
	}
	if arg != "" && arg != "list" {
		return nil, errors.New("/summary shows the summary that stands here, /summary list all of the conversation")
	}
	id := s.session.SessionID
	return func(ctx context.Context, c caller) (outcome, error) {
		l, err := summaries(ctx, c, id)
		if err != nil {
			return outcome{}, err
		}
		if arg == "list" {
			return outcome{page: &page{title: "Summaries, the newest first", body: summariesText(l)}}, nil
		}
		now, ok := standing(l)
		if !ok {
			return outcome{}, errors.New("no summary stands here: the model reads every message; /compact makes one")
		}
		n, err := call[protocol.NodeGetResult](ctx, c, protocol.MethodNodeGet, protocol.NodeGetParams{SessionID: id, NodeID: now.SummaryID})
		if err != nil {
			return outcome{}, err
		}
		text := strings.TrimPrefix(strings.TrimSpace(partsText(n.Content)), protocol.SummaryMarker)
		return outcome{page: &page{title: summaryTitle(now), body: strings.TrimSpace(text) + "\n", markdown: true}}, nil
	}, nil
}

func summaryTitle(s protocol.SummaryInfo) string {
	title := "The summary of " + count(s.Covered, "message")
	if p := s.Provenance; p != nil {
		if p.Model != "" {
			title += ", by " + p.Model
		}
		if p.TokensAfter > 0 {
			title += fmt.Sprintf("; %s to %s tokens", thousands(p.TokensBefore), thousands(p.TokensAfter))
		}
	}
	return title
}

func summariesText(l *protocol.CompactionListResult) string {
	if len(l.Summaries) == 0 {
		return "none yet: /compact makes one\n"
	}
	var b strings.Builder
	for _, s := range l.Summaries {
		mark, state := " ", "superseded"
		switch {
		case s.Void:
			state = "void: " + s.VoidReason
		case s.Undone:
			state = "undone"
		case s.Applies:
			mark, state = "*", "stands here"
		case s.Active:
			state = "stands on another branch"
		}
		by := ""
		if p := s.Provenance; p != nil {
			by = fmt.Sprintf("%s, %s", p.Trigger, p.Model)
			if p.TokensAfter > 0 {
				by += fmt.Sprintf(", %s to %s tokens", thousands(p.TokensBefore), thousands(p.TokensAfter))
			}
		}
		fmt.Fprintf(&b, "%s %s  %-14s %-12s %s\n", mark, s.CreatedAt.Local().Format("2006-01-02 15:04"), count(s.Covered, "message"), state, by)
	}
	return b.String()
}
