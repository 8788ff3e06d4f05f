package chat

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"convls/protocol"

	"github.com/charmbracelet/x/ansi"
)

// maxCandidateReplies is how many answers can be asked for side by side (the
// protocol's limit).
const maxCandidateReplies = 8

func prepareCandidates(s *state, arg string) (job, error) {
	word, rest := firstWord(arg)
	n, err := strconv.Atoi(word)
	if err != nil || n < 2 || n > maxCandidateReplies {
		return nil, fmt.Errorf("how many answers? /candidates <n> [#n] [model], with 2 to %d", maxCandidateReplies)
	}
	return s.retry(rest, n)
}

// competitor is one of the answers that are written side by side.
type competitor struct {
	id     string
	status protocol.Status
	// text is what it says, once it is complete.
	text string
}

// compete keeps answers that were asked for together. Only one of them is on the
// branch of HEAD; the others are shown beside it. They may be complete already, so
// they are read.
func (c *conversation) compete(ids []string) effects {
	c.competitors = nil
	for _, id := range ids {
		c.competitors = append(c.competitors, competitor{id: id, status: protocol.StatusOpen})
	}
	return effects{catchUp: ids}
}

// competes takes in what a node says that is one of the answers.
func (c *conversation) competes(n *protocol.Node) {
	if n == nil || !n.Status.Final() {
		return
	}
	for i := range c.competitors {
		if k := &c.competitors[i]; k.id == n.ID {
			k.status, k.text = n.Status, partsText(n.Content)
		}
	}
}

// competitor returns the answer with this id, nil if it is none of those side by side.
func (c *conversation) competitor(id string) *competitor {
	if i := slices.IndexFunc(c.competitors, func(k competitor) bool { return k.id == id }); i >= 0 {
		return &c.competitors[i]
	}
	return nil
}

// writing returns the replies that are being written where HEAD is: of answers side by
// side all, else the last one.
func (c *conversation) writing() []string {
	var ids []string
	if c.competitor(c.tip()) != nil {
		for _, k := range c.competitors {
			if !k.status.Final() {
				ids = append(ids, k.id)
			}
		}
	}
	if open := c.open(); len(ids) == 0 && len(open) > 0 {
		ids = []string{open[len(open)-1].ID}
	}
	return ids
}

// candidates shows the answers side by side while HEAD is at one of them: a line
// each, with its end as long as it is written.
func (p *painter) candidates(c *conversation) []string {
	at := slices.IndexFunc(c.competitors, func(k competitor) bool { return k.id == c.tip() })
	if at < 0 {
		return nil
	}
	first, of := 1, len(c.competitors)
	if r := c.rows[c.index(c.competitors[at].id)]; hasSiblings(r) && r.Siblings.Count >= of {
		first, of = max(r.Siblings.Index-at, 1), r.Siblings.Count
	}
	out := []string{"", " " + p.theme.muted.Render("side by side; Alt-P and Alt-N, or /prev and /next, go through them")}
	for i, k := range c.competitors {
		mark, style := "   ", p.theme.muted
		if i == at {
			mark, style = " ▸ ", p.theme.selected
		}
		doing, text := p.competing(c, k)
		left := fmt.Sprintf("%s%d/%d  %-11s ", mark, first+i, of, doing)
		if i == at {
			text = "(shown above)"
		}
		out = append(out, style.Render(left)+p.theme.muted.Render(excerpt(text, p.width-ansi.StringWidth(left)-1, k.status.Final())))
	}
	return out
}

// competing tells what an answer is doing, and what it says.
func (p *painter) competing(c *conversation, k competitor) (doing, text string) {
	if k.status.Final() {
		if k.status == protocol.StatusSealed {
			return "done", k.text
		}
		return string(k.status), k.text
	}
	if s := c.streams[k.id]; s != nil {
		text = s.text()
	}
	if text == "" {
		return "waiting", ""
	}
	return p.spinner + " writing", text
}

// lastBytes is how much of the end of a text is looked at for one line.
const lastBytes = 2_000

// excerpt is one line of a text: its beginning if it is complete, else its end.
func excerpt(text string, width int, complete bool) string {
	if complete || width < 1 {
		return line(text, width)
	}
	text = strings.ToValidUTF8(text[max(len(text)-lastBytes, 0):], "")
	text = strings.Join(strings.Fields(clean(text)), " ")
	if over := ansi.StringWidth(text) - width; over > 0 {
		return ansi.TruncateLeft(text, over+1, "…")
	}
	return text
}
