package manifest

import (
	"slices"
	"strings"
)

// evidence is what the sources of one change say.
type evidence struct {
	reader *reader
	// sentence holds the quoted sentences, whole, and source the message that has
	// them; both are empty without a quote.
	sentence, source string
	// sources are the covered sources of a role that counts.
	sources []*passage
}

// evidence looks up the quote and the sources of c. Of the sources, only covered
// ones by the given roles can prove something.
func (r *reducer) evidence(c Change, roles []Role) (*evidence, *rejected) {
	e := &evidence{reader: r.reader}
	inOther := false
	for _, id := range c.Sources {
		m, ok := r.covered[id]
		if !ok {
			continue
		}
		p := r.passage(id)
		if c.Quote == "" {
			if slices.Contains(roles, m.Role) {
				e.sources = append(e.sources, p)
			}
			continue
		}
		whole, found := p.whole(c.Quote)
		switch {
		case !slices.Contains(roles, m.Role):
			inOther = inOther || found
			continue
		case found && e.source == "":
			e.sentence, e.source = whole, id
		}
		e.sources = append(e.sources, p)
	}
	switch {
	case c.Quote != "" && e.source == "" && inOther:
		return nil, reject(RuleRole, "the quote is not from the %s: only that decides about %s", strings.ReplaceAll(oneOf(roles), ", ", " or the "), c.Section)
	case c.Quote != "" && e.source == "":
		return nil, reject(RuleQuote, "the quote is in none of the covered sources named: copy it word for word: %q", clip(c.Quote, 120))
	case len(e.sentence) > MaxQuote:
		return nil, reject(RuleQuote, "the sentences around the quote have %d bytes: quote less", len(e.sentence))
	case c.Op == Add && len(e.sources) == 0:
		return nil, reject(RuleRole, "none of the sources is from the %s: only that decides about %s", strings.ReplaceAll(oneOf(roles), ", ", " or the "), c.Section)
	}
	return e, nil
}

// line returns the sentence that the change rests on: the quoted one, or else the
// one that supports the text best.
func (e *evidence) line(text string) string {
	if e.sentence != "" {
		return e.sentence
	}
	words := contentWords(text)
	best, most := "", 0
	for _, p := range e.sources {
		if s, n := p.support(words); n > most {
			best, most = s, n
		}
	}
	return best
}

// supports checks that the text of c says only what its sources say, or what is
// in known: its names exactly, at least half of its words (of a constraint four
// fifths, in the quote itself), and word for word what denies or forbids something.
func (e *evidence) supports(c Change, known string) *rejected {
	var texts, folded []string
	if e.sentence != "" && quoted(c.Section) && c.Section != Artifacts {
		texts, folded = []string{e.sentence}, []string{strings.ToLower(e.sentence)}
	} else {
		for _, p := range e.sources {
			texts, folded = append(texts, p.norm), append(folded, p.folded())
		}
	}
	if known != "" {
		texts, folded = append(texts, known), append(folded, strings.ToLower(known))
	}
	for _, name := range names(c.Text) {
		if !slices.ContainsFunc(texts, func(t string) bool { return occurs(t, name) }) {
			return reject(RuleGrounds, "%q is not in the sources named", name)
		}
	}
	words := contentWords(c.Text)
	found := 0
	for _, w := range words {
		if slices.ContainsFunc(folded, func(t string) bool { return strings.Contains(t, w) }) {
			found++
		}
	}
	enough := 2*found >= len(words)
	if c.Section == Constraints {
		enough = 5*found >= 4*len(words)
	}
	if !enough {
		return reject(RuleGrounds, "the sources do not say so: they have %d of the %d words of the text; use their words", found, len(words))
	}
	if len(words) == 0 && c.Text != "" && !slices.ContainsFunc(folded, func(t string) bool { return strings.Contains(t, sameText(c.Text)) }) {
		return reject(RuleGrounds, "the sources do not say so")
	}
	if line := e.contradicts(c.Text); line != "" {
		return reject(RuleNegation, "the source denies or forbids, or the text does: copy the words, with every \"not\" and \"always\", and quote that sentence alone: %q", clip(line, 120))
	}
	return nil
}

// contradicts returns the line that a text is not faithful to, "" if there is none:
// the quote, or else for each sentence of the text the one that it rests on.
func (e *evidence) contradicts(text string) (line string) {
	if e.sentence != "" {
		if !e.reader.faithful(text, e.sentence) {
			return e.sentence
		}
		return ""
	}
	sentences(text, true, func(start, end int) {
		if said := text[start:end]; line == "" {
			if rests := e.line(said); rests != "" && !e.reader.faithful(said, rests) {
				line = rests
			}
		}
	})
	return line
}

// faithful tells whether a text says nothing else than a line where either denies or
// forbids something: then it is a piece of the line, word for word, and has every
// "not" and "always" that the line has. With fewer or other words it could forbid what
// was asked for, and ask for what was forbidden.
func (r *reader) faithful(text, line string) bool {
	said, stated := r.read(text), r.read(line)
	if text == "" || !said.has(cueNegative) && !stated.has(cueNegative) {
		return true
	}
	return said.orders == stated.orders && strings.Contains(wordRun(line), wordRun(text))
}
