package chat

import (
	"fmt"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"
)

// maxNotes is how many lines of notes are shown, so that a long error leaves the
// conversation in view.
const maxNotes = 5

// layout divides the screen: the transcript gets what the rest leaves.
func (m *screen) layout() {
	m.input.MaxHeight = max(min(8, m.height/3), 1)
	m.input.SetWidth(max(m.width-1, 8))
	m.input, _ = m.input.Update(nil) // brings its cursor into view again
	if m.painter == nil || m.painter.width != max(m.width, 20) || m.painter.theme.dark != m.theme.dark || m.painter.thoughts != m.thoughts {
		m.painter = newPainter(m.width, m.theme, m.thoughts)
	}
	m.repaint()
	m.transcript.resize(m.height - m.bottomHeight())
	if m.overlay.open() {
		m.overlay.resize(m)
	}
}

// bottomHeight is what stands under the transcript.
func (m *screen) bottomHeight() int {
	return len(m.noteLines()) + len(m.popupLines()) + 1 + m.input.Height() + 1
}

// overlayHeight is the room of an overlay, under its title.
func (m *screen) overlayHeight() int { return max(m.height-3-len(m.noteLines()), 1) }

// repaint turns the rows into lines.
func (m *screen) repaint() {
	m.painter.spinner = m.spinner.View()
	lines, begin := m.painter.paint(&m.conversation)
	m.begin = begin
	if m.before != "" {
		lines = append([]string{"   " + m.theme.muted.Render("… PgUp shows what comes before"), ""}, lines...)
		for id := range begin {
			begin[id] += 2
		}
	}
	if len(lines) == 0 {
		lines = m.welcome()
	}
	lines = append(lines, "")
	m.transcript.set(lines)
}

// welcome is shown while nothing was said.
func (m *screen) welcome() []string {
	out := []string{"", " " + m.theme.selected.Render("convls"), ""}
	for _, l := range []string{
		"Write a message and press Enter. Alt-Enter begins a new line.",
		"/help lists commands and keys, /sessions what you talked about before.",
	} {
		for _, w := range wrap(l, m.width-2) {
			out = append(out, " "+m.theme.muted.Render(w))
		}
	}
	return out
}

// View draws the screen.
func (m *screen) View() tea.View {
	var lines []string
	if m.overlay.open() {
		title, keys := m.overlay.title()
		lines = append(lines, m.titled(title, keys))
		lines = append(lines, m.overlay.view()...)
		for len(lines) < m.height-1-len(m.noteLines()) {
			lines = append(lines, "")
		}
		lines = append(lines, m.noteLines()...)
	} else {
		lines = append(lines, m.transcript.visible()...)
		lines = append(lines, m.noteLines()...)
		lines = append(lines, m.popupLines()...)
		lines = append(lines, m.ruleLine())
	}
	v := tea.View{AltScreen: true, MouseMode: tea.MouseModeCellMotion, WindowTitle: line(m.title(), 80) + " - convls"}
	if !m.overlay.open() {
		top := len(lines)
		lines = append(lines, strings.Split(m.input.View(), "\n")...)
		if c := m.input.Cursor(); c != nil && m.ask == nil {
			c.Y += top
			v.Cursor = c
		}
	}
	lines = append(lines, m.statusLine())
	if len(lines) > m.height && m.height > 0 {
		// Too small a window: what the person types stays in view.
		cut := len(lines) - m.height
		lines = lines[cut:]
		if v.Cursor != nil {
			v.Cursor.Y -= cut
		}
	}
	if c := v.Cursor; c != nil && (c.Y < 0 || c.Y >= m.height || c.X >= m.width) {
		v.Cursor = nil
	}
	for i, l := range lines {
		if ansi.StringWidth(l) > m.width {
			lines[i] = ansi.Truncate(l, m.width, "")
		}
	}
	v.SetContent(strings.Join(lines, "\n"))
	return v
}

// titled is a rule with a title to the left and text to the right.
func (m *screen) titled(title, right string) string {
	left := "── " + line(title, max(m.width-len(right)-10, 8)) + " "
	end := " " + right + " ──"
	if right == "" {
		end = ""
	}
	fill := max(m.width-ansi.StringWidth(left)-ansi.StringWidth(end), 0)
	return m.theme.rule.Render("── ") + m.theme.selected.Render(strings.TrimPrefix(left, "── ")) + m.theme.rule.Render(strings.Repeat("─", fill)) + m.theme.muted.Render(end)
}

// ruleLine is the line over the input: what the text will do, and what is out of
// view.
func (m *screen) ruleLine() string {
	var left, right []string
	if d := m.editing; d != nil {
		what := "edit of"
		if d.reply {
			what = "edit of the answer"
		}
		left = append(left, fmt.Sprintf("%s #%d, Esc gives it up", what, d.number))
	}
	for _, a := range m.attached {
		left = append(left, "+ "+a.name)
	}
	if n := m.transcript.below(); n > 0 {
		right = append(right, fmt.Sprintf("%s below, Ctrl-End", count(int64(n), "line")))
	}
	if len(left) == 0 {
		end := ""
		if len(right) > 0 {
			end = " " + right[0] + " ──"
		}
		return m.theme.rule.Render(strings.Repeat("─", max(m.width-ansi.StringWidth(end), 0))) + m.theme.muted.Render(end)
	}
	return m.titled(strings.Join(left, "  "), strings.Join(right, ""))
}

// noteLines are what the program has to say, or to ask.
func (m *screen) noteLines() []string {
	if m.ask != nil {
		var out []string
		for _, l := range wrap(clean(m.ask.text), m.width-2) {
			out = append(out, " "+m.theme.warn.Render(l))
		}
		return append(out, " "+m.theme.muted.Render("y deletes it · n keeps it"))
	}
	var out []string
	for _, n := range slices.Backward(m.notes) {
		style := m.theme.note
		text := n.text
		if n.error {
			style, text = m.theme.failed, "✗ "+text
		}
		var lines []string
		for _, l := range wrap(clean(text), m.width-2) {
			lines = append(lines, " "+style.Render(l))
		}
		if len(out) == 0 && len(lines) > maxNotes {
			return append(lines[:maxNotes-1:maxNotes-1], " "+m.theme.muted.Render("…"))
		}
		if len(out)+len(lines) > maxNotes {
			break // the newest are what matters
		}
		out = append(lines, out...)
	}
	return out
}

// popupLines are what the input can be completed to.
func (m *screen) popupLines() []string {
	p := m.popup
	if p.closed || len(p.candidates) == 0 || m.ask != nil {
		return nil
	}
	n := min(len(p.candidates), maxPopup, max(m.height-8, 1))
	first := 0
	if p.at >= n {
		first = p.at - n + 1
	}
	labels := 0
	for _, c := range p.candidates[first : first+n] {
		labels = max(labels, lipgloss.Width(c.label))
	}
	labels = min(labels, max(m.width/2, 8))
	var out []string
	for i, c := range p.candidates[first : first+n] {
		mark, style := "   ", m.theme.popup
		if p.chosen && first+i == p.at {
			mark, style = " ▸ ", m.theme.selected
		}
		label := line(c.label, labels)
		pad := strings.Repeat(" ", max(labels-lipgloss.Width(label), 0))
		out = append(out, style.Render(mark+label)+pad+"  "+m.theme.popupAbout.Render(line(c.about, m.width-labels-6)))
	}
	if more := len(p.candidates) - n; more > 0 && m.height > 12 {
		out = append(out, "   "+m.theme.popupAbout.Render(fmt.Sprintf("%d more: Down, or write on", more)))
	}
	return out
}

// statusLine tells where one is: conversation and branch to the left; model, how
// full its window is, cost and what waits to the right.
func (m *screen) statusLine() string {
	t := m.theme
	sep := t.status.Render(" · ")
	var right []string
	if m.down != "" {
		right = append(right, t.statusWarn.Render("no server"))
	} else if open := m.open(); len(open) > 0 {
		word := "answering"
		if m.cancelling[open[len(open)-1].ID] {
			word = "stopping"
		}
		right = append(right, t.statusWarn.Render(word)+t.status.Render(", Ctrl-C stops"))
	}
	if n := len(m.queue); n > 0 {
		text := fmt.Sprintf("%d queued", n)
		if m.queue[0].Held {
			text = fmt.Sprintf("%d held", n)
		}
		right = append(right, t.statusWarn.Render(text))
	}
	if name := m.modelName(); name != "" {
		right = append(right, t.statusModel.Render(line(name, max(m.width/3, 8))))
	}
	if b := m.budget; b != nil && b.Limit > 0 {
		style := t.status
		if b.Used >= b.TriggerAt && b.TriggerAt > 0 {
			style = t.statusWarn
		}
		right = append(right, style.Render(percent(b.Percent)+" full"))
	}
	if usd := m.session.Usage.CostUSD; usd > 0 {
		right = append(right, t.status.Render(dollars(usd)))
	}
	end := strings.Join(right, sep) + t.status.Render(" ")
	room := m.width - ansi.StringWidth(end) - 2
	branch := ""
	if m.exists() {
		branch = line(m.branchName(), 32)
		if n := len(m.branches); n > 1 {
			branch += fmt.Sprintf(" (%d branches)", n)
		}
	}
	title := line(m.title(), max(room-ansi.StringWidth(branch)-3, 6))
	left := t.statusTitle.Render(" " + title)
	if branch != "" && room > ansi.StringWidth(title)+ansi.StringWidth(branch)+2 {
		left += t.status.Render("  " + branch)
	}
	fill := max(m.width-ansi.StringWidth(left)-ansi.StringWidth(end), 0)
	return left + t.status.Render(strings.Repeat(" ", fill)) + end
}

// percent writes how full the window is.
func percent(p float64) string {
	if p > 0 && p < 1 {
		return "<1 %"
	}
	return fmt.Sprintf("%.0f %%", p)
}
