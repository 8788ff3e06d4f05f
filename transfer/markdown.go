package transfer

import (
	"bufio"
	"context"
	"fmt"
	"html"
	"slices"
	"strings"

	"convls/projection"
	"convls/protocol"
	"convls/store"
)

// markdown writes one branch for people: every message of the spine as it was
// said, whatever summaries stand for it. Where a summary ends it is shown with what
// it covers.
type markdown struct {
	*store.Reader
	out *bufio.Writer
	// summaries are those that cover a stretch of this branch, by the last node.
	summaries map[store.Seq][]store.Seq
	// place numbers the messages of the branch, from 1.
	place map[store.Seq]int
}

func writeMarkdown(ctx context.Context, r *store.Reader, head string, out *bufio.Writer) error {
	m := &markdown{Reader: r, out: out, summaries: map[store.Seq][]store.Seq{}, place: map[store.Seq]int{}}
	tip, err := m.tip(head)
	if err != nil {
		return err
	}
	var spine []store.Seq
	for s, err := range r.Spine(tip) {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
		if s.Kind != protocol.KindRoot {
			spine = append(spine, s.Seq)
		}
	}
	slices.Reverse(spine)
	for i, seq := range spine {
		m.place[seq] = i + 1
	}
	if err := m.findSummaries(); err != nil {
		return err
	}
	if err := m.top(); err != nil {
		return err
	}
	for _, seq := range append([]store.Seq{store.Root}, spine...) {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := m.message(seq); err != nil {
			return err
		}
	}
	return nil
}

func (m *markdown) tip(head string) (store.Skeleton, error) {
	if head == "" {
		return m.Skeleton(m.State.Head)
	}
	return m.LookupChain(head)
}

// findSummaries finds the summaries whose stretch is on this branch. A void one
// may name nodes that are gone: it is shown where both ends are left.
func (m *markdown) findSummaries() error {
	for seq, err := range m.Summaries() {
		if err != nil {
			return err
		}
		c, err := m.Covers(seq)
		if err != nil {
			return err
		}
		if m.place[c.First] != 0 && m.place[c.Last] != 0 {
			m.summaries[c.Last] = append(m.summaries[c.Last], seq)
		}
	}
	return nil
}

func (m *markdown) top() error {
	info, err := m.Info()
	if err != nil {
		return err
	}
	m.para("# %s", orElse(escape(info.Title), "Conversation"))
	system, err := m.Text(info.SystemSHA256)
	if err != nil {
		return err
	}
	if system != "" {
		m.fold("system prompt", fenced(system, ""))
	}
	return nil
}

// para writes a paragraph. Errors of the writer are kept by it until it is flushed.
func (m *markdown) para(format string, args ...any) {
	_, _ = fmt.Fprintf(m.out, format+"\n\n", args...)
}

// fold writes what a reader can open.
func (m *markdown) fold(summary string, body ...string) {
	m.para("<details>\n<summary>%s</summary>", html.EscapeString(strings.Join(strings.Fields(summary), " ")))
	for _, b := range body {
		m.para("%s", b)
	}
	m.para("</details>")
}

// message writes a chain node, what it called, what hangs off it, and the
// summaries that end here.
func (m *markdown) message(seq store.Seq) error {
	s, err := m.Skeleton(seq)
	if err != nil {
		return err
	}
	c, err := settled(m.Reader, &s)
	if err != nil {
		return err
	}
	shown := map[string]bool{}
	if s.Kind != protocol.KindRoot {
		m.para("## %d. %s", m.place[seq], heading(s, c))
		if err := m.parts(c.Parts, shown); err != nil {
			return err
		}
		if err := m.attached(c.Source); err != nil {
			return err
		}
		if c.Error != nil {
			m.para("*%s*", escape(c.Error.Message))
		}
	}
	if err := m.subtree(s, shown); err != nil {
		return err
	}
	for hanging, err := range m.Hanging(seq) {
		if err != nil {
			return err
		}
		h, err := m.Skeleton(hanging)
		if err != nil {
			return err
		}
		if h.Kind == protocol.KindSummary || h.Caller != 0 {
			continue
		}
		if err := m.callee(h); err != nil {
			return err
		}
	}
	for _, summary := range m.summaries[seq] {
		if err := m.summary(summary); err != nil {
			return err
		}
	}
	return nil
}

func heading(s store.Skeleton, c *store.Content) string {
	who := map[protocol.Kind]string{protocol.KindUser: "User", protocol.KindAssistant: "Assistant", protocol.KindAttach: "Attached"}[s.Kind]
	if c.Model != "" {
		who += " (" + escape(c.Model) + ")"
	}
	if s.Status != protocol.StatusSealed {
		who += ", " + string(s.Status)
	}
	return who
}

// attached writes what an attach node points at: where it is, and all that it says.
func (m *markdown) attached(src *store.Source) error {
	if src == nil {
		return nil
	}
	s, parts, err := projection.Source(m.Reader, *src)
	if err != nil {
		return err
	}
	what := "a message"
	switch {
	case s.Branch != "":
		what = "branch " + s.Branch
	case s.Depth > 0:
		what = fmt.Sprintf("message %d of an unnamed branch", s.Depth)
	case s.Kind == protocol.KindSummary:
		what = "a summary"
	}
	if s.Title != "" {
		what += ", of " + s.Title
	}
	if s.Deleted {
		m.para("*attached: %s that was deleted*", escape(what))
		return nil
	}
	if preview := projection.Preview(parts); preview != "" {
		what += ": " + preview
	}
	m.fold("attached: "+what, closed(store.Text(parts)))
	return nil
}

// parts writes content; a place of a tool call is where the tool goes.
func (m *markdown) parts(parts []protocol.Part, shown map[string]bool) error {
	for _, p := range parts {
		switch p.Type {
		case protocol.PartText:
			m.para("%s", closed(p.Text))
		case protocol.PartReasoning:
			if p.Text != "" {
				m.fold("reasoning", fenced(p.Text, ""))
			}
		case protocol.PartImage:
			m.para("*image, %s, %d bytes*", escape(p.MIMEType), len(p.Data))
		case protocol.PartResource:
			m.fold("context: "+resourceName(p), fenced(p.Text, ""))
		case protocol.PartToolCall:
			if p.NodeID == "" {
				m.para("*calls %s*", escape(p.Name))
				continue
			}
			tool, err := m.Lookup(p.NodeID)
			if err != nil {
				return err
			}
			shown[p.NodeID] = true
			if err := m.callee(tool); err != nil {
				return err
			}
		case protocol.PartToolResult:
			m.para("%s", fenced(p.Text, ""))
		}
	}
	return nil
}

func resourceName(p protocol.Part) string {
	name := p.ContextType
	if name == "" {
		name = "resource"
	}
	if p.URI != "" {
		name += " " + p.URI
	}
	if p.Range != nil {
		first, last := p.Range.Lines()
		name += fmt.Sprintf(" lines %d-%d", first, last)
	}
	return name
}

// summary writes a summary after the last message that it covers.
func (m *markdown) summary(seq store.Seq) error {
	c, err := m.Content(seq)
	if err != nil {
		return err
	}
	void, err := m.Void(seq)
	if err != nil {
		return err
	}
	undone, err := projection.Undone(m.Reader, seq)
	if err != nil {
		return err
	}
	state := "superseded"
	switch {
	case void:
		state = "void"
	case m.State.Active == seq:
		state = "active"
	case undone:
		state = "undone"
	}
	what := fmt.Sprintf("messages %d to %d", m.place[c.Covers.First], m.place[c.Covers.Last])
	if c.Covers.Count == 1 {
		what = fmt.Sprintf("message %d", m.place[c.Covers.First])
	}
	m.fold(fmt.Sprintf("summary of %s (%s)", what, state), closed(store.Text(c.Parts)))
	return nil
}

// escape keeps a short text from being taken as Markdown or HTML.
func escape(s string) string {
	var b strings.Builder
	for _, c := range strings.Join(strings.Fields(s), " ") {
		if strings.ContainsRune("\\`*_[]<>&#", c) {
			b.WriteByte('\\')
		}
		b.WriteRune(c)
	}
	return b.String()
}
