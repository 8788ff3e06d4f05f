package chat

import (
	"strings"

	bubbles "charm.land/bubbles/v2/list"
	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"
)

// overlay is what stands in the place of the transcript: a page to read, or a
// list to choose from.
type overlay struct {
	text    *page
	window  scroll
	choices *list
	picker  bubbles.Model
}

func (o *overlay) open() bool { return o.text != nil || o.choices != nil }

func (o *overlay) close() { *o = overlay{} }

// page shows a text.
func (o *overlay) page(p page, m *screen) {
	*o = overlay{text: &p}
	o.resize(m)
	if p.graph != nil {
		_, head := graphLines(p.graph, m)
		o.window.to(head - o.window.height/2)
	}
}

// list shows things to choose from.
func (o *overlay) list(l list, m *screen) {
	items := make([]bubbles.Item, len(l.items))
	at := 0
	for i, it := range l.items {
		items[i] = listed{it}
		if it.current {
			at = i
		}
	}
	picker := bubbles.New(items, pickerDelegate(m.theme), m.width, 10)
	picker.SetShowTitle(false)
	picker.SetShowHelp(false)
	picker.SetShowStatusBar(false)
	picker.DisableQuitKeybindings()
	picker.Styles = bubbles.DefaultStyles(m.theme.dark)
	picker.Select(at)
	*o = overlay{choices: &l, picker: picker}
	o.resize(m)
}

// listed is an item as the list component wants it.
type listed struct{ item }

func (l listed) FilterValue() string { return clean(l.title + " " + l.about) }

// Title marks the item in use.
func (l listed) Title() string {
	t := strings.Join(strings.Fields(clean(l.title)), " ")
	if l.current {
		t += " ●"
	}
	return t
}

// Description is one line.
func (l listed) Description() string { return strings.Join(strings.Fields(clean(l.about)), " ") }

func pickerDelegate(t theme) bubbles.DefaultDelegate {
	d := bubbles.NewDefaultDelegate()
	d.SetSpacing(0)
	s := bubbles.NewDefaultItemStyles(t.dark)
	left := lipgloss.NewStyle().Padding(0, 0, 0, 3)
	mark := lipgloss.NewStyle().Border(lipgloss.Border{Left: "▌"}, false, false, false, true).BorderForeground(t.bar.GetForeground()).Padding(0, 0, 0, 1).Margin(0, 0, 0, 1)
	s.NormalTitle, s.NormalDesc = left.Inherit(t.popup), left.Inherit(t.muted)
	s.SelectedTitle, s.SelectedDesc = mark.Inherit(t.selected), mark.Inherit(t.muted)
	s.DimmedTitle, s.DimmedDesc = left.Inherit(t.muted), left.Inherit(t.muted)
	d.Styles = s
	return d
}

// resize fits the overlay to the screen.
func (o *overlay) resize(m *screen) {
	height := m.overlayHeight()
	switch {
	case o.text != nil:
		o.window.set(pageLines(*o.text, m))
		o.window.resize(height)
	case o.choices != nil:
		o.picker.SetSize(m.width, height)
	}
}

func pageLines(p page, m *screen) []string {
	if p.graph != nil {
		lines, _ := graphLines(p.graph, m)
		return lines
	}
	if p.markdown {
		return indent(newMarkdown(max(min(m.width-4, maxText), 16), m.theme).lines(p.body))
	}
	var out []string
	for l := range strings.SplitSeq(clean(p.body), "\n") {
		if strings.HasPrefix(l, "  ") {
			out = append(out, " "+ansi.Truncate(l, m.width-2, "…")) // a column line
			continue
		}
		if l == "" {
			out = append(out, "")
		}
		for _, w := range wrap(l, m.width-4) {
			out = append(out, "   "+w)
		}
	}
	return out
}

func (o *overlay) scroll(by int) {
	switch {
	case o.text != nil:
		o.window.by(by)
	case by < 0:
		o.picker.CursorUp()
	default:
		o.picker.CursorDown()
	}
}

// update takes messages that belong to the list's own commands.
func (o *overlay) update(msg tea.Msg) tea.Cmd {
	if o.choices == nil {
		return nil
	}
	var cmd tea.Cmd
	o.picker, cmd = o.picker.Update(msg)
	return cmd
}

// view returns the lines of the overlay.
func (o *overlay) view() []string {
	if o.text != nil {
		return o.window.visible()
	}
	return strings.Split(o.picker.View(), "\n")
}

// title is the line over the overlay, with the keys that work in it.
func (o *overlay) title() (title, keys string) {
	if o.text != nil {
		if o.window.below() > 0 {
			return o.text.title, "PgDn shows more · Esc closes"
		}
		return o.text.title, "Esc closes"
	}
	if o.picker.SettingFilter() {
		return o.choices.title, "Enter keeps the filter · Esc gives it up"
	}
	return o.choices.title, "Enter chooses · / filters · Esc closes"
}

// overlayKey acts on a key while an overlay is shown.
func (m *screen) overlayKey(k tea.KeyPressMsg) tea.Cmd {
	o := &m.overlay
	name := k.String()
	if o.text != nil {
		m.pageKey(name)
		return nil
	}
	if o.picker.SettingFilter() {
		return o.update(k)
	}
	switch name {
	case "esc", "q":
		if o.picker.IsFiltered() {
			return o.update(k)
		}
		o.close()
		m.layout()
	case "enter":
		it, ok := o.picker.SelectedItem().(listed)
		if !ok || it.input == "" {
			return nil
		}
		o.close()
		return m.command(it.input)
	default:
		return o.update(k)
	}
	return nil
}

func (m *screen) pageKey(name string) {
	w := &m.overlay.window
	page := max(w.height-2, 1)
	switch name {
	case "esc", "q", "enter":
		m.overlay.close()
		m.layout()
	case "up", "k", "ctrl+up":
		w.by(-1)
	case "down", "j", "ctrl+down":
		w.by(1)
	case "pgup", "b":
		w.by(-page)
	case "pgdown", "space":
		w.by(page)
	case "home", "g", "ctrl+home":
		w.to(0)
	case "end", "G", "ctrl+end":
		w.bottom()
	}
}
