package eval

import (
	"fmt"
	"strings"
	"time"
	"unicode"

	"charm.land/lipgloss/v2"
	"charm.land/lipgloss/v2/table"
	"github.com/dustin/go-humanize"

	"convls/compaction/eval"
)

// text returns the report as people read it: Markdown tables, one for all
// summarisers if there are several, and one for each.
func (x *evaluation) text() string {
	var b strings.Builder
	if len(x.Evaluations) > 1 {
		t := newTable("summariser")
		for _, e := range x.Evaluations {
			t.Row(append([]string{e.Summariser}, columns(total(e), e)...)...)
		}
		fmt.Fprintf(&b, "After %d cycles:\n\n%s\n", x.Cycles, t)
	}
	for _, e := range x.Evaluations {
		t := newTable("cycle")
		for i := range e.Results {
			r := &e.Results[i]
			t.Row(append([]string{fmt.Sprint(r.Cycle)}, columns(r, nil)...)...)
		}
		if b.Len() > 0 {
			b.WriteString("\n")
		}
		fmt.Fprintf(&b, "%s:\n\n%s\n", e.Summariser, t)
		reasons(&b, e)
	}
	return b.String()
}

// newTable makes a table whose rows begin with what first names.
func newTable(first string) *table.Table {
	cell := lipgloss.NewStyle().Padding(0, 1)
	return table.New().Border(lipgloss.MarkdownBorder()).BorderTop(false).BorderBottom(false).Wrap(false).
		StyleFunc(func(_, column int) lipgloss.Style {
			if column < 2 {
				return cell
			}
			return cell.Align(lipgloss.Right)
		}).
		Headers(first, "compacted", "constraints", "prohibitions", "identities", "open work", "invented", "identity errors", "status errors",
			"rejected", "tokens before", "after", "calls", "cost", "time")
}

// columns are a result's cells but the first; of is set for what a whole evaluation
// came to.
func columns(r *eval.Result, of *eval.Evaluation) []string {
	state := "yes"
	if r.State != eval.Compacted {
		state = fmt.Sprintf("%s (%s)", r.State, r.Reason)
	}
	if of != nil {
		state = fmt.Sprintf("%d of %d", count(of, eval.Compacted), len(of.Results))
	}
	return []string{state, kept(r.Constraints), kept(r.Prohibitions), kept(r.Identities), kept(r.OpenTasks),
		fmt.Sprint(len(r.Invented)), fmt.Sprint(len(r.Identity)), fmt.Sprint(len(r.Status)), humanize.Comma(int64(r.Rejected)),
		humanize.Comma(r.TokensBefore), humanize.Comma(r.TokensAfter), humanize.Comma(r.Calls), fmt.Sprintf("$%.4f", r.CostUSD),
		time.Duration(r.DurationMS * float64(time.Millisecond)).Round(time.Millisecond).String()}
}

func kept(t eval.Tally) string {
	if t.Planted == 0 {
		return "-"
	}
	return fmt.Sprintf("%d/%d", t.Kept, t.Planted)
}

func count(e *eval.Evaluation, s eval.State) int {
	n := 0
	for _, r := range e.Results {
		if r.State == s {
			n++
		}
	}
	return n
}

// total is what an evaluation came to: what the last summary holds, the most errors
// that any had, and the sums of what was spent.
func total(e *eval.Evaluation) *eval.Result {
	sum := e.Results[len(e.Results)-1]
	sum.Rejected, sum.Calls, sum.CostUSD, sum.DurationMS = 0, 0, 0, 0
	for _, r := range e.Results {
		sum.Rejected += r.Rejected
		sum.Calls += r.Calls
		sum.CostUSD += r.CostUSD
		sum.DurationMS += r.DurationMS
		sum.Invented, sum.Identity, sum.Status = longer(sum.Invented, r.Invented), longer(sum.Identity, r.Identity), longer(sum.Status, r.Status)
	}
	return &sum
}

func longer(a, b []string) []string {
	if len(b) > len(a) {
		return b
	}
	return a
}

// reasons says in words what the table only counts: the first of each, since they
// mostly come again in every cycle.
func reasons(b *strings.Builder, e *eval.Evaluation) {
	if n := count(e, eval.Compacted); n < len(e.Results) {
		fmt.Fprintf(b, "\n%d of %d compactions changed nothing:\n", len(e.Results)-n, len(e.Results))
		for _, r := range e.Results {
			if r.State != eval.Compacted {
				fmt.Fprintf(b, "- cycle %d: %s\n", r.Cycle, printable(r.Message))
			}
		}
	}
	for _, r := range e.Results {
		for _, list := range [][]string{r.Lost, r.Invented, r.Identity, r.Status} {
			if len(list) > 0 {
				fmt.Fprintf(b, "\ncycle %d: %s\n", r.Cycle, printable(list[0]))
			}
		}
	}
}

// printable returns text without what a terminal would obey: it may be a model's.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, text)
}
