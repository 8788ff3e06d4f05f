package doctor

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// shownProblems is how many problems of the ledger the text repeats.
const shownProblems = 50

// text returns the report as people read it.
func (r *Report) text(checked bool) string {
	var b strings.Builder
	fmt.Fprintln(&b, r.Program)
	if r.Program.Revision != "" {
		fmt.Fprintf(&b, "commit %s\n", r.Program.Revision)
	}

	section(&b, "Settings")
	line(&b, "file", described(r.Settings.File))
	line(&b, "model", r.Settings.Model)
	if r.Settings.Summariser != "" {
		line(&b, "summaries", r.Settings.Summariser)
	}

	section(&b, "Store")
	r.Store.text(&b)
	if checked {
		r.Check.text(&b)
	}

	section(&b, "Providers")
	for _, p := range r.Providers {
		p.text(&b)
	}

	section(&b, "Log")
	line(&b, "file", described(r.Log))

	findings(&b, "Notes", r.Notes)
	findings(&b, "Problems", r.Problems)
	if len(r.Problems) == 0 {
		b.WriteString("\nNo problems found.\n")
	}
	return printable(b.String())
}

// printable returns text without what a terminal would obey: error messages and
// the names of models come from servers.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if r != '\n' && unicode.IsControl(r) {
			return '?'
		}
		return r
	}, text)
}

func section(b *strings.Builder, name string) { fmt.Fprintf(b, "\n%s\n", name) }

func line(b *strings.Builder, name, value string) {
	if value != "" {
		fmt.Fprintf(b, "  %-12s %s\n", name, value)
	}
}

func described(f File) string {
	switch {
	case f.Path == "":
		return "none"
	case !f.Found:
		return f.Path + " (not there)"
	}
	return fmt.Sprintf("%s (%s)", f.Path, bytes(f.Bytes))
}

func (s *Store) text(b *strings.Builder) {
	path := s.Path
	if path != "" && !s.Found {
		path += " (no store there)"
	}
	line(b, "folder", path)
	if s.Found {
		line(b, "size", bytes(s.Bytes))
	}
	if s.Holder != "" {
		line(b, "in use by", s.Holder)
	}
	if s.Opened {
		line(b, "format", strconv.Itoa(s.Format))
		line(b, "sessions", strconv.FormatInt(s.Sessions, 10))
	}
	if s.FreeBytes >= 0 && s.Path != "" {
		line(b, "disk", fmt.Sprintf("%s free, of which %s are kept in reserve", bytes(s.FreeBytes), bytes(s.ReserveBytes)))
	}
}

func (c *Check) text(b *strings.Builder) {
	if c == nil {
		line(b, "check", "not done")
		return
	}
	took := (time.Duration(c.DurationMS) * time.Millisecond).Round(10 * time.Millisecond)
	outcome := "sound"
	switch {
	case c.ProblemCount > 0:
		outcome = fmt.Sprintf("%d %s", c.ProblemCount, plural(c.ProblemCount, "fault"))
	case !c.Complete:
		outcome = "could not be read to its end"
	}
	line(b, "check", fmt.Sprintf("%s (%d %s in %s)", outcome, c.Sessions, plural(int(c.Sessions), "session"), took))
	for i, p := range c.Problems {
		if i == shownProblems {
			fmt.Fprintf(b, "    and %d more; --json lists up to %d\n", c.ProblemCount-i, maxProblems)
			break
		}
		fmt.Fprintf(b, "    %s\n", p)
	}
}

func (p *Provider) text(b *strings.Builder) {
	var facts []string
	if p.BaseURL != "" {
		facts = append(facts, p.BaseURL)
	}
	if p.Key != "" {
		facts = append(facts, "key: "+p.Key)
	}
	switch {
	case p.Error != "":
		facts = append(facts, "does not work, see below")
	case p.Asked:
		facts = append(facts, fmt.Sprintf("%d %s", p.Models, plural(p.Models, "model")))
	default:
		facts = append(facts, "not asked")
	}
	line(b, cmp.Or(p.Name, "?"), strings.Join(facts, ", "))
}

func findings(b *strings.Builder, title string, list []Finding) {
	if len(list) == 0 {
		return
	}
	section(b, title)
	for i, f := range list {
		fmt.Fprintf(b, "  %d. %s: %s\n", i+1, f.About, strings.ReplaceAll(f.What, "\n", "\n     "))
		if f.Next != "" {
			fmt.Fprintf(b, "     -> %s\n", f.Next)
		}
	}
}
