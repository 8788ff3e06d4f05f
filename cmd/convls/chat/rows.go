package chat

import (
	"fmt"
	"hash/maphash"
	"strings"
	"time"

	"convls/protocol"

	"github.com/charmbracelet/x/ansi"
)

// painter turns rows into lines of the screen, and keeps what it painted: only an
// answer that is being written is painted anew as it grows.
type painter struct {
	theme    theme
	width    int
	thoughts bool
	markdown *markdown
	blocks   map[string]block
	seed     maphash.Seed
	// spinner is the present frame; now is the time for running answers.
	spinner string
	now     func() time.Time
}

// block is a painted row; key tells what it was painted from.
type block struct {
	key   uint64
	lines []string
}

// maxText is the widest that answers are set: longer lines are hard to read.
const maxText = 110

func newPainter(width int, t theme, thoughts bool) *painter {
	width = max(width, 20)
	return &painter{theme: t, width: width, thoughts: thoughts, markdown: newMarkdown(min(width-4, maxText), t), blocks: map[string]block{}, seed: maphash.MakeSeed(), now: time.Now}
}

// paint returns the lines of all rows, and at which line each begins.
func (p *painter) paint(c *conversation) (lines []string, begin map[string]int) {
	begin = make(map[string]int, len(c.rows))
	keep := make(map[string]block, len(c.rows))
	for _, r := range c.rows {
		b := p.block(c, r)
		keep[r.ID] = b
		if len(b.lines) == 0 {
			continue
		}
		if len(lines) > 0 {
			lines = append(lines, "")
		}
		begin[r.ID] = len(lines)
		lines = append(lines, b.lines...)
	}
	p.blocks = keep
	lines = append(lines, p.candidates(c)...)
	for _, q := range c.queue {
		lines = append(lines, "", p.queued(q))
	}
	return lines, begin
}

// queued shows a message that waits behind an answer.
func (p *painter) queued(q protocol.QueuedSend) string {
	state := "waiting"
	if q.Held {
		state = "held: the answer before it failed"
	}
	text := fmt.Sprintf(" ▌ %s · ", state)
	return p.theme.muted.Render(text + line(q.Preview, p.width-ansi.StringWidth(text)-2))
}

func (p *painter) block(c *conversation, r protocol.Row) block {
	// The root shows the session's system prompt, which is not in its row.
	live := r.Kind == protocol.KindRoot || !r.Status.Final()
	old, ok := p.blocks[r.ID]
	var key uint64
	if !live {
		key = p.key(r)
		if ok && old.key == key {
			return old
		}
	}
	return block{key: key, lines: p.row(c, r, live)}
}

// key changes with everything that a painted row shows.
func (p *painter) key(r protocol.Row) uint64 {
	var h maphash.Hash
	h.SetSeed(p.seed)
	fmt.Fprintf(&h, "%s\x00%s\x00%s\x00%v\x00%v\x00%v\x00%v\x00%v\x00%d", r.ID, r.Status, r.Branch, r.Pinned, r.Redacted, r.SupersededSummary, r.Void, r.InContext, r.Depth)
	if s := r.Siblings; s != nil {
		fmt.Fprintf(&h, "\x00%d/%d", s.Index, s.Count)
	}
	for _, part := range r.Content {
		fmt.Fprintf(&h, "\x00%s\x00%d\x00%s", part.Type, len(part.Text), part.URI)
	}
	if s := r.Source; s != nil {
		fmt.Fprintf(&h, "\x00%s\x00%v\x00%s", sourceText(s), s.Deleted, r.Preview)
	}
	if r.Error != nil {
		_, _ = h.WriteString(r.Error.Message)
	}
	return h.Sum64()
}

func (p *painter) row(c *conversation, r protocol.Row, live bool) []string {
	switch r.Kind {
	case protocol.KindRoot:
		return p.root(c)
	case protocol.KindUser:
		return p.user(r)
	case protocol.KindAssistant:
		return p.answer(c, r, live)
	case protocol.KindTool:
		return p.tool(r)
	case protocol.KindSummary:
		return p.summary(r)
	}
	if r.Source != nil {
		return p.attached(r)
	}
	return p.other(r)
}

func (p *painter) root(c *conversation) []string {
	if c.session.System == "" {
		return nil
	}
	return []string{" " + p.theme.muted.Render("system  "+line(c.session.System, p.width-10))}
}

// head is the line over a message: who, and to the right which version it is and
// what branch ends there.
func (p *painter) head(r protocol.Row, who, about string) string {
	left := " " + p.theme.number.Render(fmt.Sprintf("#%d", r.Depth)) + " " + who
	if about != "" {
		left += p.theme.muted.Render("  " + about)
	}
	var marks []string
	if r.Pinned {
		marks = append(marks, p.theme.good.Render("pinned"))
	}
	if r.Branch != "" {
		marks = append(marks, p.theme.muted.Render("branch "+line(r.Branch, 24)))
	}
	if hasSiblings(r) {
		marks = append(marks, p.theme.warn.Render(fmt.Sprintf("‹ %d/%d ›", r.Siblings.Index, r.Siblings.Count)))
	}
	right := strings.Join(marks, "  ")
	room := p.width - 1 - ansi.StringWidth(right)
	if ansi.StringWidth(left) > room-1 {
		left = ansi.Truncate(left, max(room-1, 0), "…")
	}
	if right == "" {
		return left
	}
	return left + strings.Repeat(" ", max(room-ansi.StringWidth(left), 1)) + right
}

// user shows a message as it was typed, at a bar.
func (p *painter) user(r protocol.Row) []string {
	out := []string{p.head(r, p.theme.you.Render("you"), "")}
	bar := " " + p.theme.bar.Render("▌") + " "
	if r.Redacted {
		return append(out, bar+p.theme.muted.Render("(redacted)"))
	}
	for _, l := range wrap(clean(strings.TrimRight(partsText(r.Content), "\n")), min(p.width-4, maxText)) {
		out = append(out, bar+l)
	}
	for _, part := range r.Content {
		if text := attachmentText(part); text != "" {
			out = append(out, bar+p.theme.muted.Render(line(text, p.width-5)))
		}
	}
	return out
}

// attachmentText describes a part that is no text; empty for text.
func attachmentText(part protocol.Part) string {
	switch part.Type {
	case protocol.PartResource:
		name := part.URI
		if name == "" {
			name = part.ContextType
		}
		return fmt.Sprintf("+ %s (%s)", shortPath(name), count(int64(len(part.Text)), "byte"))
	case protocol.PartImage:
		return fmt.Sprintf("+ image %s (%s)", part.MIMEType, count(int64(len(part.Data)), "byte"))
	}
	return ""
}

func (p *painter) answer(c *conversation, r protocol.Row, live bool) []string {
	model := r.Model
	if model == "" {
		model = "answer"
	}
	who := p.theme.reply.Render(clean(model))
	if !live {
		out := append([]string{p.head(r, who, answerAbout(r))}, p.thought(reasoningText(r.Content), false)...)
		if r.Redacted {
			return append(out, "   "+p.theme.muted.Render("(redacted)"))
		}
		out = append(out, indent(p.markdown.lines(partsText(r.Content)))...)
		return append(out, p.ending(r)...)
	}
	since := ""
	if !r.CreatedAt.IsZero() {
		if d := p.now().Sub(r.CreatedAt); d >= time.Second {
			since = fmt.Sprintf(" %d s", int(d.Seconds()))
		}
	}
	doing := "waiting for the model"
	var text, thought string
	if s := c.streams[r.ID]; s != nil {
		text, thought = s.text(), s.reasoning()
	}
	switch {
	case text != "":
		doing = "writing"
	case thought != "":
		doing = "thinking"
	}
	out := []string{p.head(r, who, p.spinner+" "+doing+since)}
	out = append(out, p.thought(thought, text == "")...)
	if retry := c.retries[r.ID]; retry != "" && text == "" {
		for _, l := range wrap(clean(retry), min(p.width-4, maxText)) {
			out = append(out, "   "+p.theme.warn.Render(l))
		}
	}
	return append(out, indent(p.markdown.partial(text))...)
}

// answerAbout tells how long an answer took and what it cost.
func answerAbout(r protocol.Row) string {
	var about []string
	if r.DurationMS > 0 {
		about = append(about, took(time.Duration(r.DurationMS)*time.Millisecond))
	}
	if u := r.Usage; u != nil {
		if u.OutputTokens > 0 {
			about = append(about, count(u.OutputTokens, "token"))
		}
		if u.CostUSD > 0 {
			about = append(about, dollars(u.CostUSD))
		}
	}
	if r.StopReason == "edited" {
		about = append(about, "edited by you")
	}
	return strings.Join(about, " · ")
}

// took writes how long something took.
func took(d time.Duration) string {
	if d < 10*time.Second {
		return fmt.Sprintf("%.1f s", max(d.Seconds(), 0.1))
	}
	return d.Round(time.Second).String()
}

// thought shows what the model thought: in full if the person wants it, the end of
// it while there is nothing else to see, else in one line.
func (p *painter) thought(text string, alone bool) []string {
	text = strings.TrimSpace(clean(text))
	if text == "" {
		return nil
	}
	if !p.thoughts && !alone {
		return []string{"   " + p.theme.thought.Render(fmt.Sprintf("thought: %s (Ctrl-R shows it)", count(int64(len(strings.Fields(text))), "word")))}
	}
	lines := wrap(text, min(p.width-6, maxText))
	if !p.thoughts && len(lines) > 4 {
		lines = lines[len(lines)-4:]
	}
	out := make([]string, 0, len(lines)+1)
	for _, l := range lines {
		out = append(out, "   "+p.theme.thought.Render("┆ "+l))
	}
	return append(out, "")
}

func reasoningText(content []protocol.Part) string {
	var b strings.Builder
	for _, part := range content {
		if part.Type == protocol.PartReasoning {
			b.WriteString(part.Text)
		}
	}
	return b.String()
}

// ending says why an answer is not complete.
func (p *painter) ending(r protocol.Row) []string {
	mark := func(style interface{ Render(...string) string }, text string) []string {
		var out []string
		for _, l := range wrap(clean(text), min(p.width-4, maxText)) {
			out = append(out, "   "+style.Render(l))
		}
		return out
	}
	switch r.Status {
	case protocol.StatusCancelled:
		return mark(p.theme.warn, "■ stopped here")
	case protocol.StatusInterrupted:
		return mark(p.theme.warn, "■ interrupted: the server ended here (/retry answers again)")
	case protocol.StatusFailed:
		return mark(p.theme.failed, "✗ "+explainNode(r.Error))
	}
	if r.StopReason == "length" || r.StopReason == "max_tokens" {
		return mark(p.theme.warn, "■ cut: the model may not write more at once (\"go on\" makes it continue)")
	}
	return nil
}

// tool shows a call and the beginning of its result.
func (p *painter) tool(r protocol.Row) []string {
	var out []string
	for _, part := range r.Content {
		switch part.Type {
		case protocol.PartToolCall:
			out = append(out, "   "+p.theme.muted.Render(line("→ "+part.Name+"("+string(part.Arguments)+")", p.width-4)))
		case protocol.PartToolResult:
			style := p.theme.muted
			if part.IsError {
				style = p.theme.failed
			}
			out = append(out, "   "+style.Render(line("← "+part.Text, p.width-4)))
		}
	}
	if !r.Status.Final() {
		out = append(out, "   "+p.theme.muted.Render(p.spinner+" running"))
	}
	return out
}

// summary shows a capsule: what the model reads in place of the turns before.
func (p *painter) summary(r protocol.Row) []string {
	n := int64(len(r.CoversIDs))
	if r.Fold != nil {
		n = r.Fold.Count
	}
	title := fmt.Sprintf(" a summary stands for %s ", count(n, "message"))
	room := max(p.width-2-ansi.StringWidth(title), 4)
	out := []string{" " + p.theme.rule.Render(strings.Repeat("─", room/2)) + p.theme.muted.Render(title) + p.theme.rule.Render(strings.Repeat("─", room-room/2))}
	for _, l := range p.markdown.lines(partsText(r.Content)) {
		out = append(out, "   "+l)
	}
	return append(out, " "+p.theme.rule.Render(strings.Repeat("─", p.width-2)))
}

// attached shows what was attached: where it comes from, and how it begins.
func (p *painter) attached(r protocol.Row) []string {
	head := p.head(r, p.theme.muted.Render("attached: "+line(sourceText(r.Source), p.width/2)), "")
	if r.Source.Deleted {
		return []string{head, "   " + p.theme.warn.Render("it was deleted: the model reads that it is gone")}
	}
	out := []string{head}
	for _, l := range wrap(clean(r.Preview), min(p.width-4, maxText)) {
		out = append(out, "   "+p.theme.muted.Render(l))
	}
	return out
}

// sourceText says what an attach node points at: a branch or a message, and of another
// conversation which.
func sourceText(s *protocol.GraphSource) string {
	text := "a message"
	switch {
	case s.Branch != "":
		text = "branch " + s.Branch
	case s.Depth > 0:
		text = fmt.Sprintf("#%d of an unnamed branch", s.Depth)
	case s.Kind == protocol.KindSummary:
		text = "a summary"
	}
	if s.Title != "" {
		text += ", of " + s.Title
	}
	return text
}

// other shows what has no form of its own: a notice.
func (p *painter) other(r protocol.Row) []string {
	text := partsText(r.Content)
	if text == "" {
		text = r.Preview
	}
	who := p.theme.muted.Render(string(r.Kind))
	head := " " + who
	if r.Kind.OnChain() {
		head = p.head(r, who, "")
	}
	return append([]string{head}, indent(p.markdown.lines(text))...)
}

func indent(lines []string) []string {
	out := make([]string, len(lines))
	for i, l := range lines {
		if l != "" {
			l = "   " + l
		}
		out[i] = l
	}
	return out
}
