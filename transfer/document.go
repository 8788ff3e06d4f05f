package transfer

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"convls/projection"
	"convls/protocol"
	"convls/store"
)

// The views that virtual documents show.
const (
	ViewTranscript = "transcript"
	ViewContext    = "context"
	ViewGraph      = "graph"
	ViewNode       = "node"
)

// Document is what the URI of a virtual document names.
type Document struct {
	SessionID string
	// View is one of the views.
	View string
	// NodeID is the node of a ViewNode.
	NodeID string
	// Head is the chain node that a view of the session is seen from; HEAD if it is
	// empty.
	Head string
	// Expanded are what a graph shows of what it would fold.
	Expanded []string
}

// ParseURI takes a URI of a virtual document apart; protocol.TextDocumentContentParams
// tells its forms. invalid_params for all others.
func ParseURI(uri string) (Document, error) {
	bad := func() (Document, error) {
		return Document{}, protocol.Errorf(protocol.CodeInvalidParams,
			"%q names no document: it is convls:/session/SESSION/transcript.md, context.md or graph.md, or convls:/node/SESSION/NODE.md", uri)
	}
	u, err := url.Parse(uri)
	if err != nil || u.Scheme != protocol.DocumentScheme || u.Host != "" {
		return bad()
	}
	path := u.Path
	if path == "" {
		path = "/" + u.Opaque
	}
	words := strings.Split(strings.TrimLeft(path, "/"), "/")
	if len(words) != 3 {
		return bad()
	}
	name, ok := strings.CutSuffix(words[2], ".md")
	if !ok || name == "" || words[1] == "" {
		return bad()
	}
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return bad()
	}
	d := Document{SessionID: words[1], Head: query.Get("head"), Expanded: query["expand"]}
	switch {
	case words[0] == "node":
		d.View, d.NodeID = ViewNode, name
	case words[0] == "session" && (name == ViewTranscript || name == ViewContext || name == ViewGraph):
		d.View = name
	default:
		return bad()
	}
	return d, checkQuery(uri, d.View, query)
}

// checkQuery refuses members that a view does not know, or that it can have once: what
// is mistyped would be left out of the document, and nothing would tell.
func checkQuery(uri, view string, query url.Values) error {
	known := map[string]bool{"head": view != ViewNode, "expand": view == ViewGraph}
	for _, member := range slices.Sorted(maps.Keys(query)) {
		if !known[member] {
			return protocol.Errorf(protocol.CodeInvalidParams, "%q: a document of the view %s has no member %q in its query", uri, view, member)
		}
	}
	if n := len(query["head"]); n > 1 {
		return protocol.Errorf(protocol.CodeInvalidParams, "%q has %d members head in its query, and can have one", uri, n)
	}
	return nil
}

// URI returns the URI of a node's document.
func nodeURI(sessionID, id string) string {
	return (&url.URL{Scheme: protocol.DocumentScheme, OmitHost: true, Path: "/node/" + sessionID + "/" + id + ".md"}).String()
}

// WriteContext writes a page of a context view as Markdown: what the model reads,
// entry by entry, each with its tokens and why it is there.
func WriteContext(sessionID string, v *protocol.ContextView, w io.Writer) error {
	out := bufio.NewWriter(w)
	m := &markdown{out: out}
	m.para("# What the model reads")
	m.para("%s", budget(v))
	for _, o := range v.Omitted {
		m.para("A [summary](%s) stands for %d messages.", nodeURI(sessionID, o.SummaryID), o.Count)
	}
	for i, e := range v.Entries {
		title := fmt.Sprintf("%d. %s", i+1, e.Kind)
		if e.ID != "" {
			title = fmt.Sprintf("%d. [%s](%s)", i+1, e.Kind, nodeURI(sessionID, e.ID))
		}
		m.para("## %s, %s, %d tokens", title, e.Why, e.Tokens)
		if e.Text != "" {
			m.para("%s", fenced(e.Text, ""))
		}
	}
	if v.Next != "" {
		m.para("*%d more entries are not shown here.*", v.Total-len(v.Entries))
	}
	return flushed(out)
}

func budget(v *protocol.ContextView) string {
	b := v.Budget
	if b.Window == 0 {
		return fmt.Sprintf("%d tokens; the model's window is not known.", b.Used)
	}
	return fmt.Sprintf("%d of %d tokens, %.0f %%: a window of %d with %d kept for the answer; compaction begins at %d.",
		b.Used, b.Limit, b.Percent, b.Window, b.OutputReserve, b.TriggerAt)
}

func flushed(out *bufio.Writer) error {
	if err := out.Flush(); err != nil {
		return fmt.Errorf("write the document: %w", err)
	}
	return nil
}

// WriteNode writes one node as Markdown: what it is, what it says, what it called, and
// what entered the call that made it.
func WriteNode(r *store.Reader, id string, w io.Writer) error {
	n, err := projection.Node(r, id, true, true)
	if err != nil {
		return err
	}
	s, err := r.Lookup(id)
	if err != nil {
		return err
	}
	out := bufio.NewWriter(w)
	m := &markdown{Reader: r, out: out}
	name := string(n.Kind)
	m.para("# %s", strings.ToUpper(name[:1])+name[1:])
	m.facts(n)
	shown := map[string]bool{}
	if len(n.Prompt) > 0 {
		m.para("## Prompt")
		if err := m.parts(n.Prompt, shown); err != nil {
			return err
		}
	}
	if len(n.Content) > 0 {
		m.para("## Content")
		if err := m.parts(n.Content, shown); err != nil {
			return err
		}
	}
	content, err := r.Content(s.Seq)
	if err != nil {
		return err
	}
	if err := m.attached(content.Source); err != nil {
		return err
	}
	if n.Error != nil {
		m.para("*%s*", escape(n.Error.Message))
	}
	if err := m.subtree(s, shown); err != nil {
		return err
	}
	m.links(r.SessionID(), "Covers", n.CoversIDs)
	m.links(r.SessionID(), "Read", n.Reads)
	return flushed(out)
}

// facts lists what is known of a node beside its content.
func (m *markdown) facts(n protocol.Node) {
	session := m.SessionID()
	link := func(id string) string { return fmt.Sprintf("[%s](%s)", escape(id), nodeURI(session, id)) }
	var lines []string
	fact := func(name, value string) {
		if value != "" {
			lines = append(lines, "- "+name+": "+value)
		}
	}
	fact("id", escape(n.ID))
	fact("status", string(n.Status))
	fact("written", n.CreatedAt.UTC().Format(time.RFC3339))
	fact("model", escape(n.Model))
	if n.Predecessor != "" {
		fact("follows", link(n.Predecessor))
	}
	if n.Caller != "" {
		fact("called by", link(n.Caller))
	}
	if u := n.Usage; u != nil {
		cost := ""
		if u.CostUSD > 0 {
			cost = fmt.Sprintf(", %.4f USD", u.CostUSD)
		}
		fact("usage", fmt.Sprintf("%d tokens in, %d out%s", u.InputTokens, u.OutputTokens, cost))
	}
	if n.DurationMS > 0 {
		fact("took", (time.Duration(n.DurationMS) * time.Millisecond).String())
	}
	retired := "superseded: nothing reads it"
	if undone, err := projection.Undone(m.Reader, store.Seq(n.Seq)); err == nil && undone {
		retired = "undone: nothing reads it"
	}
	for _, mark := range []struct {
		is   bool
		name string
	}{{n.Pinned, "pinned"}, {n.Redacted, "redacted"}, {n.Void, "void: it lost a message that it covers"}, {n.SupersededSummary, retired}} {
		if mark.is {
			lines = append(lines, "- "+mark.name)
		}
	}
	if n.CoversCount > 0 {
		fact("covers", fmt.Sprintf("%d messages", n.CoversCount))
	}
	m.para("%s", strings.Join(lines, "\n"))
}

// maxLinks bounds a list of nodes.
const maxLinks = 1_000

func (m *markdown) links(session, title string, ids []string) {
	if len(ids) == 0 {
		return
	}
	m.para("## %s (%d)", title, len(ids))
	var lines []string
	for _, id := range ids[:min(len(ids), maxLinks)] {
		lines = append(lines, fmt.Sprintf("- [%s](%s)", escape(id), nodeURI(session, id)))
	}
	if more := len(ids) - maxLinks; more > 0 {
		lines = append(lines, fmt.Sprintf("- and %d more", more))
	}
	m.para("%s", strings.Join(lines, "\n"))
}
