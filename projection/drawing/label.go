package drawing

import (
	"fmt"
	"strconv"
	"strings"

	"convls/protocol"
)

// mostCalls is the count that stands for that many calls or more.
const mostCalls = 1000

// fold returns the state and count of a summary's fold; "" for other rows.
func fold(r *protocol.GraphRow) (state string, count int64) {
	switch {
	case r.Kind != protocol.KindSummary:
		return "", 0
	case r.Void:
		state = "void"
	case r.SupersededSummary && r.Fold != nil && r.Fold.State == "undone":
		state = "undone"
	case r.SupersededSummary:
		state = "superseded"
	case r.Fold != nil:
		state = r.Fold.State
	}
	if r.Fold != nil {
		return state, r.Fold.Count
	}
	return state, r.CoversCount
}

// foldText says what a capsule does.
func foldText(r *protocol.GraphRow) string {
	state, n := fold(r)
	what := counted(n, "message")
	switch state {
	case "":
		return ""
	case "folded":
		return what + " folded"
	case "expanded":
		return what + ", shown above"
	case "inert":
		return what + ": not on this branch"
	case "superseded":
		return what + ": superseded"
	case "undone":
		return what + ": undone"
	case "void":
		return what + ": void"
	}
	return what
}

// text is what a row says, on one line.
func text(r *protocol.GraphRow) string {
	s := clean(r.Preview)
	switch {
	case s != "":
		return s
	case r.Redacted:
		return "(redacted)"
	case r.Kind == protocol.KindAttach:
		return "(attached)"
	case r.Kind == protocol.KindRoot:
		return "(beginning)"
	case !r.Status.Final() && r.Status != "":
		return ""
	}
	return "(empty)"
}

// status is the state of a node that is not simply sealed.
func status(r *protocol.GraphRow) string {
	if r.Status == protocol.StatusSealed {
		return ""
	}
	return clean(string(r.Status))
}

// callsText counts the calls that are no rows.
func callsText(n int) string {
	switch {
	case n <= 0:
		return ""
	case n == 1:
		return "+1 call"
	case n >= mostCalls:
		return "+" + thousands(int64(n)) + " or more calls"
	}
	return "+" + thousands(int64(n)) + " calls"
}

// sourceText says what an attach node points at: by the name of its branch, or its
// number, or by its id where no more is known. local says that its session is the one
// that is drawn, cut is the mark of what is cut.
func sourceText(s *protocol.GraphSource, local bool, cut string) string {
	if s == nil {
		return ""
	}
	node := shortID(s.NodeID, cut)
	switch {
	case s.Deleted:
		return "<- deleted"
	case s.Branch != "":
		node = clean(s.Branch)
	case s.Depth > 0:
		node = "#" + thousands(s.Depth)
	case s.Kind == protocol.KindSummary:
		node = "summary"
	}
	session := shortID(s.SessionID, cut)
	if s.Title != "" {
		session = clean(s.Title)
	}
	if local || session == "" {
		return "<- " + node
	}
	return "<- " + session + "/" + node
}

// shortID is an id as far as it helps to tell two apart: the end of a ULID is random,
// its beginning is a time.
func shortID(id, cut string) string {
	id = clean(id)
	if r := []rune(id); len(r) > 16 {
		return cut + string(r[len(r)-8:])
	}
	return id
}

// counted returns n with its noun.
func counted(n int64, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return thousands(n) + " " + noun + "s"
}

// thousands writes n with commas.
func thousands(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// about tells all of a node that a drawing has no room for.
func about(r *protocol.GraphRow) string {
	parts := []string{clean(string(r.Kind)) + " " + clean(r.ID)}
	add := func(s string) {
		if s != "" {
			parts = append(parts, s)
		}
	}
	add(status(r))
	if r.Error != nil {
		add(clean(r.Error.Message))
	}
	add(clean(r.Model))
	if r.Tokens > 0 {
		add(counted(r.Tokens, "token"))
	}
	if r.Usage != nil && r.Usage.CostUSD > 0 {
		add(fmt.Sprintf("$%.4f", r.Usage.CostUSD))
	}
	if !r.CreatedAt.IsZero() {
		add(r.CreatedAt.UTC().Format("2006-01-02 15:04 UTC"))
	}
	add(foldText(r))
	add(callsText(r.Calls))
	if r.Ghost {
		add("a summary stands for it")
	}
	return strings.Join(parts, ", ") + ": " + text(r)
}

// sources are the attach nodes whose source is in the session that is drawn, each
// with the row of that; -1 if it is outside the window.
func (l *layout) sources() map[string]int {
	rows := make(map[string]int, len(l.arrows))
	for _, e := range l.arrows {
		rows[e.To] = -1
		if i, ok := l.index[e.From]; ok {
			rows[e.To] = i
		}
	}
	return rows
}

// label is the text of a row. An attach node says what its source says.
func (l *layout) label(i int, sources map[string]int) string {
	r := &l.rows[i]
	if r.Kind != protocol.KindAttach || r.Preview != "" || r.Redacted {
		return text(r)
	}
	if from, ok := sources[r.ID]; ok && from >= 0 {
		return text(&l.rows[from])
	}
	return ""
}

// callsHidden is the count of calls of a row that are no rows below it.
func (l *layout) callsHidden(i int) int {
	if i+1 < len(l.rows) && l.rows[i+1].Tier > 0 && l.rows[i+1].Row == l.rows[i].Row {
		return 0
	}
	return l.rows[i].Calls
}
