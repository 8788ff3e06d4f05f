package chat

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"
	"unicode"
)

// print writes what of a wanted answer is not out yet. A turn with tools has
// several answers, which follow its first.
func (p *plain) print(id string) {
	if len(p.wanted) == 0 {
		return
	}
	for _, w := range p.wanted {
		if id == w || p.index(w) >= 0 && p.index(id) > p.index(w) {
			p.printNode(id)
		}
	}
}

func (p *plain) printNode(id string) {
	text := ""
	if i := p.index(id); i >= 0 {
		text = p.text(p.rows[i])
	} else if k := p.competitor(id); k != nil && k.status.Final() {
		text = k.text
	} else if s := p.streams[id]; s != nil {
		text = s.text()
	}
	if n := p.printed[id]; len(text) > n {
		_, _ = io.WriteString(p.o.Stdout, p.safe(text[n:]))
		p.printed[id] = len(text)
	}
}

// newline ends the line of an answer that does not do so itself.
func (p *plain) newline(id string) {
	i := p.index(id)
	if i >= 0 && p.printed[id] > 0 && !strings.HasSuffix(p.text(p.rows[i]), "\n") || i < 0 && p.printed[id] > 0 {
		fmt.Fprintln(p.o.Stdout)
	}
}

// safe takes control characters out of what goes to a terminal. What goes to a
// file stays as it is.
func (p *plain) safe(text string) string {
	if !p.onTerminal {
		return text
	}
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\n' && r != '\t' || directional(r) {
			return -1
		}
		return r
	}, text)
}

// show prints an outcome. Beside an answer only a person at a prompt wants to hear
// more.
func (p *plain) show(ctx context.Context, o outcome) {
	p.effects(ctx, p.take(o))
	w := p.o.Stdout
	switch {
	case o.list != nil:
		if len(o.list.items) == 0 {
			fmt.Fprintln(w, o.list.empty)
		}
		for _, it := range o.list.items {
			mark := " "
			if it.current {
				mark = "*"
			}
			fmt.Fprintf(w, "%s %s  %s\n", mark, p.safe(it.title), p.safe(strings.Join(strings.Fields(it.about), " ")))
		}
	case o.page != nil:
		fmt.Fprintln(w, strings.TrimRight(p.safe(cmp.Or(o.page.plain, o.page.body)), "\n"))
		if o.say != "" && p.prompts {
			fmt.Fprintln(w, p.safe(o.say))
		}
	case o.draft != nil:
		fmt.Fprintln(w, p.safe(o.draft.text))
	case o.copy != "":
		fmt.Fprintln(w, p.safe(o.copy))
	case o.question != nil:
		p.question = o.question
	case o.say != "" && (p.prompts || len(o.turns) == 0):
		fmt.Fprintln(w, p.safe(o.say))
	}
}
