package chat

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// candidate is one way to complete the input.
type candidate struct {
	// input is the whole input if it is chosen.
	input string
	// label and about are shown.
	label, about string
}

// maxCandidates bounds what is offered: a list that one can not take in at a
// glance is no help.
const maxCandidates = 50

// complete returns the ways to complete a command line. Messages have none.
func (s *state) complete(input string) []candidate {
	if !strings.HasPrefix(input, "/") || strings.ContainsAny(input, "\n") {
		return nil
	}
	name, arg, hasArg := strings.Cut(input[1:], " ")
	if !hasArg {
		return completeCommand(name)
	}
	c, err := lookup(name)
	if err != nil {
		return nil
	}
	arg = strings.TrimLeft(arg, " ")
	prefix := "/" + c.name + " "
	if rest, ok := strings.CutPrefix(arg, "--yes "); ok && c.asks {
		prefix, arg = prefix+"--yes ", strings.TrimLeft(rest, " ")
	}
	var all []candidate
	switch c.complete {
	case argBranch:
		if rest, ok := strings.CutPrefix(arg, "expand "); ok && c.name == "graph" {
			prefix, arg = prefix+"expand ", strings.TrimLeft(rest, " ")
		}
		return s.completeBranch(prefix, arg)
	case argSession:
		for _, x := range s.sessions {
			if x.Title != "" {
				all = append(all, candidate{label: x.Title, about: x.SessionID})
			}
		}
	case argCount, argModel:
		if word, rest, ok := strings.Cut(arg, " "); c.complete == argCount && !ok {
			return nil
		} else if c.complete == argCount {
			prefix, arg = prefix+word+" ", strings.TrimLeft(rest, " ")
		}
		if word, rest := firstWord(arg); strings.HasPrefix(word, "#") && c.name != "model" && strings.Contains(arg, " ") {
			prefix, arg = prefix+word+" ", rest
		}
		for _, m := range s.models {
			all = append(all, candidate{label: m.ID})
		}
	case argCommand:
		for _, o := range commands() {
			all = append(all, candidate{label: o.name, about: o.about})
		}
	case argFile:
		if rest, ok := strings.CutPrefix(arg, "branch "); ok && c.name == "attach" {
			return s.completeBranch(prefix+"branch ", strings.TrimLeft(rest, " "))
		}
		return completeFile(prefix, arg)
	}
	return matching(all, prefix, arg)
}

func (s *state) completeBranch(prefix, arg string) []candidate {
	var all []candidate
	for _, b := range s.branches {
		if b.Name != "" {
			all = append(all, candidate{label: b.Name, about: b.Preview})
		}
	}
	return matching(all, prefix, arg)
}

func completeCommand(begin string) []candidate {
	var out []candidate
	for _, c := range commands() {
		if !strings.HasPrefix(c.name, begin) {
			continue
		}
		k := candidate{input: "/" + c.name, label: "/" + c.name, about: c.about}
		if c.args != "" {
			k.label += " " + c.args
			k.input += " "
		}
		out = append(out, k)
	}
	return out
}

// matching returns those that begin with arg, then those that hold it elsewhere,
// without regard to case, each once. What is complete already needs no offer.
func matching(all []candidate, prefix, arg string) []candidate {
	var begin, hold []candidate
	seen := map[string]bool{}
	want := strings.ToLower(arg)
	for _, k := range all {
		label := strings.ToLower(k.label)
		if seen[k.label] || k.label == arg || strings.ContainsAny(k.label, "\n") {
			continue
		}
		seen[k.label] = true
		k.input = prefix + k.label
		switch {
		case strings.HasPrefix(label, want):
			begin = append(begin, k)
		case strings.Contains(label, want):
			hold = append(hold, k)
		}
	}
	begin = append(begin, hold...)
	return begin[:min(len(begin), maxCandidates)]
}

// completeFile offers the files that a path can go on to; hidden ones if the name
// begins with a dot.
func completeFile(prefix, arg string) []candidate {
	dir, begin := filepath.Split(arg)
	read := expandHome(dir)
	if arg == "~" {
		dir, begin, read = "~/", "", expandHome("~")
	}
	if read == "" {
		read = "."
	}
	entries, err := os.ReadDir(read)
	if err != nil {
		return nil
	}
	var all []candidate
	for _, e := range entries {
		name := e.Name()
		if !strings.HasPrefix(name, begin) || strings.HasPrefix(name, ".") && !strings.HasPrefix(begin, ".") || clean(name) != name {
			continue
		}
		about := ""
		if info, err := os.Stat(filepath.Join(read, name)); err == nil && info.IsDir() {
			name, about = name+string(filepath.Separator), "folder"
		}
		if dir+name != arg {
			all = append(all, candidate{input: prefix + dir + name, label: name, about: about})
		}
	}
	slices.SortFunc(all, func(a, b candidate) int { return strings.Compare(a.label, b.label) })
	return all[:min(len(all), maxCandidates)]
}

// common returns the longest input that all candidates go on from.
func common(all []candidate) string {
	if len(all) == 0 {
		return ""
	}
	p := []rune(all[0].input)
	for _, k := range all[1:] {
		r := []rune(k.input)
		n := 0
		for n < len(p) && n < len(r) && p[n] == r[n] {
			n++
		}
		p = p[:n]
	}
	return string(p)
}
