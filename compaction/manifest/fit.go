package manifest

import (
	"fmt"
	"slices"
	"strings"
)

// TooLargeError says that a manifest can not be brought under its limit: what is
// never dropped (goals, constraints, open tasks, handles, pinned text) alone
// exceeds it.
type TooLargeError struct {
	// Tokens is the size of what is never dropped, Limit what was allowed.
	Tokens, Limit int
}

// Error says what to do.
func (e *TooLargeError) Error() string {
	return fmt.Sprintf("goals, constraints, open tasks, artifacts and pinned text take %d tokens, and %d are allowed: edit the summary, unpin nodes, or use a larger window", e.Tokens, e.Limit)
}

// shortText is how long a shortened text may be, in bytes.
const shortText = 120

// Fit returns a manifest whose rendering has at most limit tokens by count, and m
// itself if it fits already. It gives up, one after the other and no more than is
// needed: the narrative, completed items (the oldest first), the list of what was
// retired, the contexts of artifacts, tests (passed before failed, the oldest
// first), long texts of unknowns and decisions, and in the end unknowns and decisions
// (the oldest first). What it drops is listed as retired, or counted where the list
// has no room. Goals, constraints, open tasks and artifacts are never dropped: if
// they are too large, the error is a [*TooLargeError].
func Fit(m *Manifest, limit int, count func(string) int) (*Manifest, error) {
	return fit(m, limit, count, steps())
}

// Squeeze is [Fit] for a manifest that has grown over years of talk: a summary that
// can not be written any more would lose all of it. After what Fit gives up it gives
// up, the oldest first: artifacts that one message alone names, open tasks, other
// artifacts, goals but for the first, and constraints that were said once, wishes
// before prohibitions. All of that is listed as retired, or counted.
func Squeeze(m *Manifest, limit int, count func(string) int) (*Manifest, error) {
	return fit(m, limit, count, append(steps(), lastSteps()...))
}

func fit(m *Manifest, limit int, count func(string) int, steps []step) (*Manifest, error) {
	size := func(m *Manifest) int { return count(m.Render(RenderOptions{})) }
	if size(m) <= limit {
		return m, nil
	}
	f := m.clone()
	f.Narrative = ""
	if size(f) <= limit {
		return f, nil
	}
	for _, s := range steps {
		all := f.clone()
		s.apply(all, s.units(f))
		if size(all) > limit {
			f = all
			continue
		}
		// The least n that is enough, by halving: rendering and counting cost. The
		// manifest at high always fits.
		low, high := 0, s.units(f)
		for fitting := all; ; {
			if low >= high {
				return fitting, nil
			}
			mid := (low + high) / 2
			part := f.clone()
			s.apply(part, mid)
			if size(part) <= limit {
				fitting, high = part, mid
			} else {
				low = mid + 1
			}
		}
	}
	return nil, &TooLargeError{Tokens: size(f), Limit: limit}
}

// step is one way to make a manifest smaller, in units of which as many are taken
// as are needed.
type step struct {
	units func(m *Manifest) int
	// apply takes the first n units off m.
	apply func(m *Manifest, n int)
}

func steps() []step {
	return []step{
		retireOldest(Completed), listed(),
		{func(m *Manifest) int { return len(m.Artifacts) }, func(m *Manifest, n int) {
			for i := range m.Artifacts[:n] {
				m.Artifacts[i].Text, m.Artifacts[i].Quote = "", m.Artifacts[i].Handle
			}
		}},
		retireTests(Passed), listed(), retireTests(Failed), listed(),
		{func(m *Manifest) int { return len(m.Unknowns) }, func(m *Manifest, n int) { shorten(m.Unknowns[:n]) }},
		{func(m *Manifest) int { return len(m.Decisions) }, func(m *Manifest, n int) { shorten(m.Decisions[:n]) }},
		retireOldest(Unknowns), listed(), retireOldest(Decisions), listed(),
	}
}

// retireOldest retires the first items of a section.
func retireOldest(s Section) step {
	return step{
		func(m *Manifest) int { return len(*m.section(s)) },
		func(m *Manifest, n int) {
			items := m.section(s)
			for _, item := range (*items)[:n] {
				m.retire(s, item, ForSpace)
			}
			*items = (*items)[n:]
		},
	}
}

// listed shortens the list of retired items: the oldest are only counted.
func listed() step {
	return step{
		func(m *Manifest) int { return len(m.Retired) },
		func(m *Manifest, n int) { m.boundRetired(len(m.Retired) - n) },
	}
}

// lastSteps are those of [Squeeze].
func lastSteps() []step {
	once := func(item Item) bool { return len(item.Sources) == 1 }
	var out []step
	for _, s := range []step{
		retireIf(Artifacts, once), retireOldest(OpenTasks), retireOldest(Artifacts), laterGoals(),
		retireIf(Constraints, func(item Item) bool { return once(item) && !item.Negative }), retireIf(Constraints, once),
	} {
		out = append(out, s, listed())
	}
	return out
}

// laterGoals retires goals, but for the first.
func laterGoals() step {
	return step{
		func(m *Manifest) int { return max(len(m.Goal)-1, 0) },
		func(m *Manifest, n int) {
			if n == 0 {
				return
			}
			for _, item := range m.Goal[1 : 1+n] {
				m.retire(Goal, item, ForSpace)
			}
			m.Goal = slices.Delete(m.Goal, 1, 1+n)
		},
	}
}

// retireIf retires the first items of a section that are as is says.
func retireIf(s Section, is func(Item) bool) step {
	return step{
		func(m *Manifest) int {
			n := 0
			for _, item := range *m.section(s) {
				if is(item) {
					n++
				}
			}
			return n
		},
		func(m *Manifest, n int) {
			items := m.section(s)
			*items = slices.DeleteFunc(*items, func(item Item) bool {
				if n == 0 || !is(item) {
					return false
				}
				n--
				m.retire(s, item, ForSpace)
				return true
			})
		},
	}
}

// retireTests retires the oldest results of one kind.
func retireTests(kind Kind) step {
	return retireIf(Tests, func(item Item) bool { return item.Kind == kind })
}

// shorten clips texts. The names in them stay: a name that is cut off is put
// behind the text.
func shorten(items []Item) {
	for i := range items {
		text := clip(items[i].Text, shortText)
		var lost []string
		for _, name := range names(items[i].Text) {
			if !occurs(text, name) && !slices.Contains(lost, name) {
				lost = append(lost, name)
			}
		}
		if len(lost) > 0 {
			text += " [" + strings.Join(lost, ", ") + "]"
		}
		if len(text) < len(items[i].Text) {
			items[i].Text = text
		}
	}
}
