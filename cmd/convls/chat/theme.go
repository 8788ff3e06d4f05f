package chat

import (
	"image/color"

	"charm.land/glamour/v2/ansi"
	glamour "charm.land/glamour/v2/styles"
	"charm.land/lipgloss/v2"
)

// theme is how things look on a dark or a light terminal. Colours that carry
// meaning are never the only sign of it: there is always a word or a mark too.
type theme struct {
	dark, noColor bool

	you, reply, number, muted, failed, warn, good, selected lipgloss.Style
	bar, status, statusTitle, statusModel, statusWarn       lipgloss.Style
	thought, rule, note, popup, popupAbout                  lipgloss.Style
	cursor                                                  color.Color
	heading, code                                           string // of Markdown
}

func newTheme(dark, noColor bool) theme {
	pick := lipgloss.LightDark(dark)
	c := func(light, dark string) color.Color {
		if noColor {
			return lipgloss.NoColor{}
		}
		return pick(lipgloss.Color(light), lipgloss.Color(dark))
	}
	accent := c("#0B7285", "#4DD0E1")
	violet := c("#6741D9", "#B197FC")
	muted := c("#6C757D", "#8A919A")
	red := c("#C92A2A", "#FF7B72")
	amber := c("#A05A00", "#F2B84B")
	green := c("#2B8A3E", "#69DB7C")
	ground := c("#E9ECEF", "#2A2E35")
	text := c("#212529", "#DEE2E6")
	heading, code := "#6741D9", "#A05A00"
	if dark {
		heading, code = "#B197FC", "#F2B84B"
	}
	s := lipgloss.NewStyle
	t := theme{
		dark: dark, noColor: noColor, cursor: accent, heading: heading, code: code,
		you:         s().Foreground(accent).Bold(true),
		reply:       s().Foreground(violet).Bold(true),
		number:      s().Foreground(muted),
		muted:       s().Foreground(muted),
		failed:      s().Foreground(red),
		warn:        s().Foreground(amber),
		good:        s().Foreground(green),
		selected:    s().Foreground(accent).Bold(true),
		bar:         s().Foreground(accent),
		thought:     s().Foreground(muted).Italic(true),
		rule:        s().Foreground(c("#CED4DA", "#3B4048")),
		note:        s().Foreground(muted),
		popup:       s().Foreground(text),
		popupAbout:  s().Foreground(muted),
		status:      s().Foreground(muted).Background(ground),
		statusTitle: s().Foreground(text).Background(ground).Bold(true),
		statusModel: s().Foreground(violet).Background(ground),
		statusWarn:  s().Foreground(amber).Background(ground).Bold(true),
	}
	if noColor {
		t.status, t.statusTitle, t.statusModel, t.statusWarn = s().Reverse(true), s().Reverse(true).Bold(true), s().Reverse(true), s().Reverse(true).Bold(true)
	}
	return t
}

// markdown is glamour's style without its own margins: answers are indented with
// everything else.
func (t theme) markdown() ansi.StyleConfig {
	s := glamour.DarkStyleConfig
	switch {
	case t.noColor:
		s = glamour.NoTTYStyleConfig
	case !t.dark:
		s = glamour.LightStyleConfig
	}
	none := uint(0)
	s.Document.Margin, s.Document.BlockPrefix, s.Document.BlockSuffix = &none, "", ""
	s.Document.Color = nil // the terminal's own
	if !t.noColor {
		heading, code := t.heading, t.code
		s.Code.Color, s.Code.BackgroundColor, s.Code.Prefix, s.Code.Suffix = &code, nil, "", ""
		s.H1.BackgroundColor, s.H1.Color, s.H1.Prefix, s.H1.Suffix = nil, &heading, "", ""
		s.Heading.Color = &heading
		s.H2.Prefix, s.H3.Prefix, s.H4.Prefix, s.H5.Prefix, s.H6.Prefix = "", "", "", "", ""
		s.H6.Color, s.H6.Bold = &heading, s.Heading.Bold
	}
	return s
}
