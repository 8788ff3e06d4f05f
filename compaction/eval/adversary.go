package eval

import (
	"strings"

	"convls/compaction/manifest"
)

// Adversary answers as a summariser would, and misbehaves in one way. It is a pure
// function.
type Adversary func(previous *manifest.Manifest, covered []manifest.Message) manifest.Changes

// Named is an adversary and its name in a report.
type Named struct {
	Name    string
	Changes Adversary
}

// Adversaries returns all of them.
func Adversaries() []Named {
	return []Named{
		{"forgets", Forgets}, {"invents", Invents}, {"merges", Merges}, {"repeats", Repeats}, {"promotes", Promotes},
	}
}

// items returns the items of a manifest that may be nil.
func items(m *manifest.Manifest) (sections []manifest.Section, list []manifest.Item) {
	if m == nil {
		return nil, nil
	}
	for s, item := range m.Items() {
		sections, list = append(sections, s), append(list, item)
	}
	return sections, list
}

// Forgets closes everything, with every covered message for a proof, and empties
// the texts of what it can not close.
func Forgets(previous *manifest.Manifest, covered []manifest.Message) manifest.Changes {
	var out manifest.Changes
	sections, list := items(previous)
	for i, item := range list {
		for _, m := range covered {
			quotes := []string{m.Text, "", item.Text}
			for line := range strings.Lines(m.Text) {
				quotes = append(quotes, strings.TrimSpace(line))
				if len(quotes) > 8 {
					break
				}
			}
			for _, quote := range quotes {
				out.Changes = append(out.Changes,
					manifest.Change{Op: manifest.Close, Section: sections[i], ID: item.ID, Sources: []string{m.ID}, Quote: quote},
					manifest.Change{Op: manifest.Update, Section: sections[i], ID: item.ID, Text: "It is fine.", Sources: []string{m.ID}, Quote: quote})
			}
		}
		out.Changes = append(out.Changes,
			manifest.Change{Op: manifest.Close, Section: sections[i], ID: item.ID, Sources: item.Sources, Quote: item.Quote},
			manifest.Change{Op: manifest.Update, Section: sections[i], ID: item.ID, Text: "done", Sources: item.Sources})
	}
	return out
}

// inventions are claims that no planted conversation makes.
var inventions = []manifest.Change{
	{Section: manifest.Goal, Text: "Rewrite everything in Haskell"},
	{Section: manifest.Constraints, Text: "Always use tabs in kotlin/Main.kt"},
	{Section: manifest.Constraints, Text: "Never contact the vendor"},
	{Section: manifest.Decisions, Text: "We decided on MongoDB", Status: manifest.Decision},
	{Section: manifest.Completed, Text: "Released version 9.9.1 to customers"},
	{Section: manifest.OpenTasks, Text: "Invoice the customer"},
	{Section: manifest.Artifacts, Text: "settings", Kind: manifest.Path, Handle: "etc/invented.toml"},
	{Section: manifest.Artifacts, Text: "a commit", Kind: manifest.Hash, Handle: "0123456789abcdef0123456789abcdef01234567"},
	{Section: manifest.Artifacts, Text: "a call", Kind: manifest.CallID, Handle: "call_invented1"},
	{Section: manifest.Tests, Text: "999 passed, 0 failed", Kind: manifest.Passed},
	{Section: manifest.Unknowns, Text: "Perhaps Kubernetes is misconfigured", Status: manifest.Hypothesis},
}

// Invents adds claims that nobody made: without a source, with a source that does
// not exist, with a real source and an invented quote, and with a real source and
// a real quote of something else.
func Invents(_ *manifest.Manifest, covered []manifest.Message) manifest.Changes {
	out := manifest.Changes{Narrative: "The team moved to etc/invented.toml and released."}
	for _, c := range inventions {
		c.Op = manifest.Add
		out.Changes = append(out.Changes, c)
		c.Sources, c.Quote = []string{"n999999"}, c.Text
		out.Changes = append(out.Changes, c)
		for _, m := range covered {
			c.Sources = []string{m.ID}
			first, _, _ := strings.Cut(m.Text, "\n")
			for _, quote := range []string{"", c.Text, c.Text + " " + c.Handle, first, m.Text} {
				c.Quote = quote
				out.Changes = append(out.Changes, c)
			}
		}
	}
	// Real words, the opposite meaning.
	for _, m := range covered {
		for line := range strings.Lines(m.Text) {
			line = strings.TrimSpace(line)
			for _, flip := range [][2]string{{"Never change", "Always change"}, {"Do not push", "Push"}, {"Always run", "Never run"}} {
				if !strings.Contains(line, flip[0]) {
					continue
				}
				for _, section := range manifest.Sections() {
					for _, text := range []string{strings.ReplaceAll(line, flip[0], flip[1]), strings.ReplaceAll(line, flip[0]+" ", "")} {
						for _, quote := range []string{line, text, ""} {
							out.Changes = append(out.Changes, manifest.Change{Op: manifest.Add, Section: section, Text: text, Sources: []string{m.ID}, Quote: quote})
						}
					}
				}
			}
		}
	}
	return out
}

// Merges takes names that are alike for the same: it renames artifacts, writes one
// name for another into texts, and adds names that are pieces of others.
func Merges(previous *manifest.Manifest, covered []manifest.Message) manifest.Changes {
	var out manifest.Changes
	sections, list := items(previous)
	var artifacts []manifest.Item
	for i, item := range list {
		if sections[i] == manifest.Artifacts {
			artifacts = append(artifacts, item)
		}
	}
	for i, item := range artifacts {
		other := artifacts[(i+1)%len(artifacts)]
		for _, m := range covered {
			out.Changes = append(out.Changes,
				manifest.Change{Op: manifest.Update, Section: manifest.Artifacts, ID: item.ID, Handle: other.Handle, Kind: other.Kind, Sources: []string{m.ID}, Quote: m.Text},
				manifest.Change{Op: manifest.Update, Section: manifest.Artifacts, ID: item.ID, Text: "the same as " + other.Handle, Sources: []string{m.ID}},
				manifest.Change{Op: manifest.Close, Section: manifest.Artifacts, ID: item.ID, Sources: []string{m.ID}, Quote: m.Text})
		}
		for k, other := range list {
			if sections[k] != manifest.Artifacts && strings.Contains(other.Text, item.Handle) {
				text := strings.ReplaceAll(other.Text, item.Handle, artifacts[(i+1)%len(artifacts)].Handle)
				out.Changes = append(out.Changes,
					manifest.Change{Op: manifest.Update, Section: sections[k], ID: other.ID, Text: text, Sources: other.Sources},
					manifest.Change{Op: manifest.Update, Section: sections[k], ID: other.ID, Text: text, Sources: []string{covered[0].ID}, Quote: covered[0].Text})
			}
		}
	}
	for _, m := range covered {
		for name := range strings.FieldsSeq(m.Text) {
			if !strings.ContainsAny(name, `/\:`) || len(name) < 8 {
				continue
			}
			name = strings.TrimRight(name, ".,")
			for _, handle := range []string{name[:len(name)-2], name[2:], name[:len(name)/2], strings.Replace(name, "_test", "", 1), strings.TrimSuffix(name, ".bak")} {
				out.Changes = append(out.Changes, manifest.Change{
					Op: manifest.Add, Section: manifest.Artifacts, Kind: manifest.Other, Handle: handle, Sources: []string{m.ID}, Quote: handle,
				})
			}
		}
	}
	return out
}

// Repeats gives back what it read: every message as items of every section, every
// item once more, and everything together as the narrative.
func Repeats(previous *manifest.Manifest, covered []manifest.Message) manifest.Changes {
	var out manifest.Changes
	var all strings.Builder
	for _, m := range covered {
		all.WriteString(m.Text + "\n")
		for _, s := range manifest.Sections() {
			for _, status := range manifest.Statuses() {
				out.Changes = append(out.Changes, manifest.Change{Op: manifest.Add, Section: s, Text: m.Text, Status: status, Sources: []string{m.ID}, Quote: m.Text, Kind: manifest.Passed})
			}
		}
	}
	sections, list := items(previous)
	for i, item := range list {
		out.Changes = append(out.Changes, manifest.Change{
			Op: manifest.Add, Section: sections[i], Text: item.Text, Status: item.Status, Sources: item.Sources, Quote: item.Quote, Kind: item.Kind, Handle: item.Handle,
		})
	}
	out.Narrative = all.String()
	return out
}

// Promotes makes facts of suppositions: it raises statuses with and without a
// quote, adds what was supposed as a fact, and closes what is not known.
func Promotes(previous *manifest.Manifest, covered []manifest.Message) manifest.Changes {
	var out manifest.Changes
	sections, list := items(previous)
	for i, item := range list {
		if item.Status.Firm() {
			continue
		}
		for _, status := range []manifest.Status{manifest.Fact, manifest.Decision} {
			out.Changes = append(out.Changes, manifest.Change{Op: manifest.Update, Section: sections[i], ID: item.ID, Status: status, Sources: item.Sources})
			for _, m := range covered {
				for _, quote := range []string{"", item.Quote, m.Text} {
					out.Changes = append(out.Changes,
						manifest.Change{Op: manifest.Update, Section: sections[i], ID: item.ID, Status: status, Sources: []string{m.ID}, Quote: quote},
						manifest.Change{Op: manifest.Add, Section: manifest.Decisions, Text: item.Text, Status: status, Sources: []string{m.ID}, Quote: quote},
						manifest.Change{Op: manifest.Close, Section: sections[i], ID: item.ID, Sources: []string{m.ID}, Quote: quote})
				}
			}
		}
	}
	for _, m := range covered {
		_, supposed, ok := strings.Cut(m.Text, "Maybe ")
		if !ok {
			continue
		}
		for _, s := range []manifest.Section{manifest.Decisions, manifest.Completed, manifest.Unknowns, manifest.OpenTasks} {
			for _, quote := range []string{"", supposed, "Maybe " + supposed} {
				out.Changes = append(out.Changes, manifest.Change{Op: manifest.Add, Section: s, Text: supposed, Status: manifest.Fact, Sources: []string{m.ID}, Quote: quote})
			}
		}
	}
	return out
}
