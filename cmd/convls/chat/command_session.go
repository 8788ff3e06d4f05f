package chat

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"convls/protocol"
)

// open takes a snapshot of a session. rows is how many rows are on the screen, so
// that a look at the same session does not shorten it.
func open(ctx context.Context, c caller, id string, subscribe bool, rows int) (*protocol.SessionOpenResult, error) {
	tail := min(max(rows, 50), maxRows)
	return call[protocol.SessionOpenResult](ctx, c, protocol.MethodSessionOpen, protocol.SessionOpenParams{SessionID: id, Tail: &tail, Subscribe: subscribe})
}

// enter opens a session and stops following the one before.
func enter(ctx context.Context, c caller, id, before string) (outcome, error) {
	snap, err := open(ctx, c, id, true, 0)
	if err != nil {
		return outcome{}, err
	}
	if before != "" && before != id {
		// If it fails, its events go on coming and are not shown.
		_, _ = call[protocol.Empty](ctx, c, protocol.MethodSessionUnsubscribe, protocol.SessionParams{SessionID: before})
	}
	return outcome{snapshot: snap, followed: true}, nil
}

func prepareSessions(s *state, arg string) (job, error) {
	current := s.session.SessionID
	return func(ctx context.Context, c caller) (outcome, error) {
		r, err := call[protocol.SessionListResult](ctx, c, protocol.MethodSessionList, protocol.SessionListParams{Query: arg, Limit: 200})
		if err != nil {
			return outcome{}, err
		}
		return outcome{list: sessionList(r.Sessions, current, time.Now()), sessions: r.Sessions}, nil
	}, nil
}

func sessionList(sessions []protocol.Session, current string, now time.Time) *list {
	l := &list{title: "Conversations", empty: "there is no conversation yet"}
	for i, x := range sessions {
		title := x.Title
		if title == "" {
			title = "untitled"
		}
		about := []string{ago(x.UpdatedAt, now), count(max(x.Nodes-1, 0), "node"), x.Model}
		if x.Usage.CostUSD > 0 {
			about = append(about, dollars(x.Usage.CostUSD))
		}
		if x.Workspace != "" {
			about = append(about, shortPath(x.Workspace))
		}
		about = slices.DeleteFunc(about, func(s string) bool { return s == "" })
		l.items = append(l.items, item{title: fmt.Sprintf("%d  %s", i+1, title), about: strings.Join(about, " · "), input: "/open " + x.SessionID, current: x.SessionID == current})
	}
	return l
}

// shortPath writes a path with ~ for the home directory.
func shortPath(path string) string {
	path = strings.TrimPrefix(path, "file://")
	if home, err := os.UserHomeDir(); err == nil && home != "/" {
		if rest, ok := strings.CutPrefix(path, home); ok && (rest == "" || rest[0] == filepath.Separator) {
			return "~" + rest
		}
	}
	return path
}

func prepareNew(s *state, arg string) (job, error) {
	before := s.session.SessionID
	next := fresh{title: arg, model: s.next.model, system: s.next.system}
	if s.exists() {
		next.model = s.session.Model
	}
	return func(ctx context.Context, c caller) (outcome, error) {
		if before != "" {
			_, _ = call[protocol.Empty](ctx, c, protocol.MethodSessionUnsubscribe, protocol.SessionParams{SessionID: before})
		}
		return outcome{fresh: &next, say: "a new conversation: it is kept from its first message on"}, nil
	}, nil
}

func prepareOpen(s *state, arg string) (job, error) {
	if arg == "" {
		return prepareSessions(s, "")
	}
	before := s.session.SessionID
	if x, ok := s.sessionNamed(arg); ok {
		arg = x.SessionID
	} else if _, err := strconv.Atoi(arg); err == nil && len(arg) < 4 {
		return nil, fmt.Errorf("there is no conversation %s in the list: /sessions shows it", arg)
	}
	return func(ctx context.Context, c caller) (outcome, error) { return openNamed(ctx, c, arg, before) }, nil
}

// openNamed opens a session by its id, or by words that only its title has.
func openNamed(ctx context.Context, c caller, word, before string) (outcome, error) {
	o, err := enter(ctx, c, word, before)
	if protocol.CodeOf(err) != protocol.CodeUnknownSession {
		return o, err
	}
	r, lerr := call[protocol.SessionListResult](ctx, c, protocol.MethodSessionList, protocol.SessionListParams{Query: word, Limit: 200})
	if lerr != nil {
		return outcome{}, lerr
	}
	same := slices.DeleteFunc(slices.Clone(r.Sessions), func(x protocol.Session) bool { return !strings.EqualFold(x.Title, word) })
	switch {
	case len(same) == 1:
		return enter(ctx, c, same[0].SessionID, before)
	case len(r.Sessions) == 1:
		return enter(ctx, c, r.Sessions[0].SessionID, before)
	case len(r.Sessions) == 0:
		return outcome{}, fmt.Errorf("there is no conversation %q: /sessions lists them", word)
	}
	return outcome{list: sessionList(r.Sessions, before, time.Now()), sessions: r.Sessions, say: fmt.Sprintf("%s fit %q: choose one", count(int64(len(r.Sessions)), "conversation"), word)}, nil
}

func prepareRename(s *state, arg string) (job, error) {
	if arg == "" {
		return nil, errors.New("which title? /rename <title>")
	}
	if !s.exists() {
		next := s.next
		next.title = arg
		return done(outcome{fresh: &next, say: "the conversation will be called " + arg}), nil
	}
	p := protocol.SessionRenameParams{Mutation: mutation(), SessionID: s.session.SessionID, Title: arg}
	return s.look().after(func(ctx context.Context, c caller) (outcome, error) {
		_, err := call[protocol.SessionResult](ctx, c, protocol.MethodSessionRename, p)
		return outcome{say: "the conversation is called " + arg + " now"}, err
	}), nil
}

func prepareModel(s *state, arg string) (job, error) {
	if arg == "" {
		current := s.modelName()
		return func(ctx context.Context, c caller) (outcome, error) {
			r, err := call[protocol.ModelListResult](ctx, c, protocol.MethodModelList, protocol.Empty{})
			if err != nil {
				return outcome{}, err
			}
			return outcome{list: modelList(r, current), models: r.Models}, nil
		}, nil
	}
	if !s.exists() {
		next := s.next
		next.model = arg
		return done(outcome{fresh: &next, say: "the first message goes to " + arg}), nil
	}
	p := protocol.SessionConfigureParams{Mutation: mutation(), SessionID: s.session.SessionID, Model: &arg}
	return s.look().after(func(ctx context.Context, c caller) (outcome, error) {
		_, err := call[protocol.SessionResult](ctx, c, protocol.MethodSessionConfigure, p)
		return outcome{say: "from now on " + arg + " answers"}, err
	}), nil
}

func modelList(r *protocol.ModelListResult, current string) *list {
	l := &list{title: "Models", empty: "no model can be asked: see docs/settings.md"}
	for _, m := range r.Models {
		var about []string
		if m.Window > 0 {
			about = append(about, thousands(m.Window)+" tokens")
		}
		if m.InputPrice > 0 || m.OutputPrice > 0 {
			about = append(about, fmt.Sprintf("$%g in, $%g out a million", m.InputPrice, m.OutputPrice))
		}
		if m.IsDefault {
			about = append(about, "default")
		}
		l.items = append(l.items, item{title: m.ID, about: strings.Join(about, " · "), input: "/model " + m.ID, current: m.ID == current})
	}
	for _, e := range r.Errors {
		about := e.Error.Message
		if e.Error.Hint != "" {
			about += "; " + e.Error.Hint
		}
		l.items = append(l.items, item{title: e.Provider + " can not be asked", about: about})
	}
	return l
}

func prepareSystem(s *state, arg string) (job, error) {
	switch {
	case arg == "":
		text := s.session.System
		if !s.exists() {
			text = s.next.system
		}
		if text == "" {
			return say("there is no system prompt; /system <text> sets one"), nil
		}
		return done(outcome{page: &page{title: "System prompt", body: text}}), nil
	case !s.exists():
		next := s.next
		next.system = arg
		return done(outcome{fresh: &next, say: "the conversation will have this system prompt"}), nil
	}
	p := protocol.SessionConfigureParams{Mutation: mutation(), SessionID: s.session.SessionID, System: &arg}
	return s.look().after(func(ctx context.Context, c caller) (outcome, error) {
		_, err := call[protocol.SessionResult](ctx, c, protocol.MethodSessionConfigure, p)
		return outcome{say: "the system prompt is set; it holds from the next answer on"}, err
	}), nil
}

func prepareExport(s *state, arg string) (job, error) {
	if err := s.needSession(); err != nil {
		return nil, err
	}
	if arg == "" {
		arg = fileName(s.title()) + ".md"
	}
	path, err := filepath.Abs(expandHome(arg))
	if err != nil {
		return nil, fmt.Errorf("export to %s: %w", arg, err)
	}
	p := protocol.ExportParams{SessionID: s.session.SessionID, Format: "markdown", Path: path}
	switch strings.ToLower(filepath.Ext(path)) {
	case ".jsonl", ".ndjson":
		p.Format = "jsonl"
	case ".md", ".markdown":
	default:
		return nil, fmt.Errorf("%s: write .md for this branch to read, or .jsonl for everything, to import again", arg)
	}
	return func(ctx context.Context, c caller) (outcome, error) {
		if _, err := os.Lstat(path); err == nil {
			return outcome{}, fmt.Errorf("%s exists already: give another name", path)
		}
		r, err := call[protocol.ExportResult](ctx, c, protocol.MethodSessionExport, p)
		if err != nil {
			return outcome{}, err
		}
		return outcome{say: fmt.Sprintf("wrote %s (%s)", shortPath(path), count(r.Bytes, "byte"))}, nil
	}, nil
}

// fileName makes a name of a file of a title.
func fileName(title string) string {
	var b strings.Builder
	for _, r := range title {
		switch {
		case unicode.IsLetter(r), unicode.IsDigit(r), r == '-', r == '_':
			b.WriteRune(unicode.ToLower(r))
		case b.Len() > 0 && !strings.HasSuffix(b.String(), "-"):
			b.WriteByte('-')
		}
		if b.Len() >= 60 {
			break
		}
	}
	if name := strings.Trim(b.String(), "-"); name != "" {
		return name
	}
	return "conversation"
}

// openLast opens the session that was used last.
func openLast(ctx context.Context, c caller) (outcome, error) {
	r, err := call[protocol.SessionListResult](ctx, c, protocol.MethodSessionList, protocol.SessionListParams{Limit: 1})
	if err != nil {
		return outcome{}, err
	}
	if len(r.Sessions) == 0 {
		return outcome{say: "there is no conversation to continue: this is a new one"}, nil
	}
	return enter(ctx, c, r.Sessions[0].SessionID, "")
}
