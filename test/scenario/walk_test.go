package scenario

import (
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"convls/protocol"
	"convls/test/editor"
	"convls/test/reference"
)

var (
	walkSeed  = flag.Uint64("walk.seed", 0, "the seed of the only walk to take")
	walkSteps = flag.Int("walk.steps", 0, "the steps of a walk")
)

// fullEvery is how many steps lie between two comparisons of everything.
const fullEvery = 40

// TestWalk takes random operations, each checked against the reference, with kills
// and restarts between them (fault 100). What fails prints its operations as a
// scenario; the seed makes the same operations again.
func TestWalk(t *testing.T) {
	seeds, steps := []uint64{1, 2}, 150
	if editor.Long() {
		seeds, steps = []uint64{1, 2, 3, 4}, 600
	}
	if *walkSeed != 0 {
		seeds = []uint64{*walkSeed}
	}
	if *walkSteps != 0 {
		steps = *walkSteps
	}
	for _, seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { takeWalk(t, seed, steps) })
	}
}

func takeWalk(t *testing.T, seed uint64, steps int) {
	w := newWorld(t)
	w.full = false
	g := &walker{world: w, Rand: rand.New(rand.NewPCG(seed, 1)), count: map[string]int{}, ends: map[string]int{}}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("seed %d; the operations up to here, as a scenario:\n%s", seed, w.log())
		}
	})
	sample, err := os.ReadFile("testdata/summary.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	g.step("import i1", string(sample))
	g.step("session s1", "")
	for i := 1; i < steps; i++ {
		line, input := g.choose()
		g.step(line, input)
		if i%fullEvery == 0 {
			w.checkAll()
		}
	}
	for op := ""; op != "release"; {
		op = g.release()
		g.step(op, "")
	}
	w.checkAll()
	g.step("restart", "")
	w.checkAll()
	w.ed.Leave(t)
	w.home.Check(t)
	nodes := 0
	for _, s := range w.sessions {
		nodes += len(s.Nodes)
	}
	t.Logf("%d operations, %d of them refused; %d kills, %d restarts; compactions %v; %d prompts, %d nodes in %d sessions",
		steps+1, g.refused, g.count["kill"], g.count["restart"], g.ends, len(w.model.prompts), nodes, len(w.sessions))
	if made := g.ends["a summary"] + g.ends["another summary"]; steps >= 500 && made < steps/50 {
		t.Errorf("%d summaries in %d steps: the walk compacts too little", made, steps)
	}
}

// walker makes operations up.
type walker struct {
	*world
	*rand.Rand
	count   map[string]int
	refused int
	// ends are how the compactions ended.
	ends     map[string]int
	sessions int
	said     int
}

func (g *walker) step(line, input string) {
	out := g.run(line, input)
	op, _, _ := strings.Cut(line, " ")
	g.count[op]++
	if strings.HasPrefix(out, "refused") {
		g.refused++
	}
	if op == "compact" {
		end, _, _ := strings.Cut(out, ";")
		if strings.Contains(end, " covers ") {
			end = "a summary"
			if s := g.now.Summaries(); len(s) > 1 && reference.Applies(s[len(s)-2], g.now.Head) {
				end = "another summary"
			}
		}
		g.ends[end]++
	}
	if op == "kill" || op == "restart" {
		g.checkAll()
	}
}

// choice is a kind of operation and how often it is chosen.
type choice struct {
	weight int
	make   func() (line, input string)
}

func (g *walker) choose() (line, input string) {
	if g.now == nil || len(g.now.Nodes) > 220 {
		return g.newSession()
	}
	simple := func(format string, args ...any) func() (string, string) {
		return func() (string, string) { return fmt.Sprintf(format, args...), "" }
	}
	choices := []choice{
		{36, func() (string, string) { return "send" + g.maybe(6, " expect="+g.any()), g.message() }},
		{4, func() (string, string) { return "send" + g.wait(), g.plain() }},
		{7, func() (string, string) { return g.exec() }},
		{7, func() (string, string) { return g.spawn() }},
		{8, func() (string, string) { return "retry " + g.any() + g.maybe(4, " count=2"), "" }},
		{4, func() (string, string) { return "edit " + g.any(), g.message() }},
		{12, func() (string, string) { return "checkout " + g.place() + g.maybe(2, " descend"), "" }},
		{6, func() (string, string) { return "fork " + g.any() + g.maybe(2, " name="+g.branchName()), "" }},
		{4, func() (string, string) { return "rewind " + g.any(), "" }},
		{3, func() (string, string) { return "name " + g.place() + g.maybe(4, " to="+g.branchName()), "" }},
		{5, func() (string, string) {
			return "delete " + g.placeOf(g.tip()) + g.maybe(2, " confirm") + g.maybe(2, " cancel"), ""
		}},
		{2, func() (string, string) { return "pin " + g.any(), "" }},
		{2, func() (string, string) { return "unpin " + g.any(), "" }},
		{2, func() (string, string) { return "redact " + g.any() + g.maybe(2, " confirm"), "" }},
		{4, func() (string, string) { return g.attach(), "" }},
		{2, func() (string, string) { g.said++; return "title", fmt.Sprintf("title %d", g.said) }},
		{6, func() (string, string) { return "cancel " + g.any(), "" }},
		{3, func() (string, string) { return "cancel " + g.running(), "" }},
		{8, func() (string, string) { return g.release(), "" }},
		{2, func() (string, string) { return g.newSession() }},
		{5, func() (string, string) { return "use " + g.session(), "" }},
		{1, func() (string, string) { return "remove " + g.session() + g.maybe(2, " confirm"), "" }},
		{26, func() (string, string) { return g.compaction() }},
		{8, func() (string, string) { return "activate " + g.summaryName(), "" }},
		{2, simple("activate none")},
		{2, func() (string, string) { return "rebuild " + g.summaryName(), "" }},
		{4, func() (string, string) {
			return "policy " + g.oneOf(protocol.PolicyRolling, protocol.PolicyPerBranch), ""
		}},
		{3, simple("kill")},
		{2, simple("restart")},
	}
	total := 0
	for _, c := range choices {
		total += c.weight
	}
	n := g.IntN(total)
	for _, c := range choices {
		if n -= c.weight; n < 0 {
			return c.make()
		}
	}
	panic("the weights are counted wrong")
}

func (g *walker) maybe(oneIn int, text string) string {
	if g.IntN(oneIn) == 0 {
		return text
	}
	return ""
}

// wait makes a send wait for its reply, where that will come by itself.
func (g *walker) wait() string {
	for _, t := range g.now.Turns {
		if t.Reply == g.now.Head {
			return ""
		}
	}
	return " wait"
}

// exec makes a call off the chain up. Waiting for one is safe unless it is held.
func (g *walker) exec() (line, input string) {
	line = "exec" + g.sides() + g.maybe(4, fmt.Sprintf(" range=%d", g.IntN(5)))
	if g.IntN(3) == 0 {
		return line + " wait", g.plain()
	}
	return line, g.message()
}

func (g *walker) spawn() (line, input string) {
	if line = "spawn" + g.sides(); g.IntN(4) == 0 {
		return line + " wait", g.plain()
	}
	return line, g.message()
}

func (g *walker) sides() string {
	return g.maybe(4, " head="+g.any()) + g.maybe(2, " caller="+g.any()) + g.maybe(2, " expose")
}

func (g *walker) newSession() (line, input string) {
	g.sessions++
	return fmt.Sprintf("session w%d%s%s", g.sessions, g.maybe(2, " system=(be brief)"), g.maybe(2, " policy=per-branch")), ""
}

func (g *walker) session() string {
	names := g.sessionNames()
	return names[g.IntN(len(names))]
}

// any returns a node of the session, now and then one that is not there.
func (g *walker) any() string {
	if g.IntN(60) == 0 {
		return "nowhere"
	}
	nodes := g.now.Nodes
	// Late nodes are chosen more often: a conversation goes on at its end.
	if n := len(nodes); n > 12 && g.IntN(2) == 0 {
		nodes = nodes[n-12:]
	}
	return g.called(nodes[g.IntN(len(nodes))])
}

func (g *walker) called(n *reference.Node) string { return g.names[n.ID] }

func (g *walker) tip() *reference.Node {
	tips := g.now.Tips()
	return tips[g.IntN(len(tips))]
}

// place returns a node or a branch.
func (g *walker) place() string {
	if g.IntN(3) == 0 {
		return "branch=" + g.branchName()
	}
	return g.any()
}

func (g *walker) placeOf(n *reference.Node) string {
	if g.IntN(6) == 0 {
		return g.place()
	}
	return g.called(n)
}

func (g *walker) branchName() string { return string(rune('A' + g.IntN(6))) }

func (g *walker) attach() string {
	from := g.session()
	nodes := g.world.sessions[from].Nodes
	source := nodes[g.IntN(len(nodes))]
	if source.Kind == protocol.KindRoot && from != g.names[g.now.ID] {
		from = g.names[g.now.ID] // every root has the same name
	}
	return fmt.Sprintf("attach %s source=%s from=%s", g.any(), g.called(source), from)
}

// release lets what is held go on, or cancels a turn where the outcome of that
// would be anybody's guess.
func (g *walker) release() string {
	for _, name := range g.sessionNames() {
		if t := g.world.sessions[name].Race(); t != nil {
			if g.now != g.world.sessions[name] {
				return "use " + name
			}
			return "cancel " + g.called(t.Reply)
		}
	}
	return "release"
}

// compaction makes one up: its ends, and what the summariser does. Mostly it goes
// where there is enough to compact first.
func (g *walker) compaction() (line, input string) {
	const enough = 6
	if long := func(n *reference.Node) int { return len(g.now.Context(n, false)) }; long(g.now.Head) < enough && g.IntN(4) > 0 {
		at := slices.MaxFunc(g.now.Tips(), func(a, b *reference.Node) int { return long(a) - long(b) })
		if at != g.now.Head && long(at) >= enough {
			return "checkout " + g.called(at), ""
		}
		return "send", g.plain() + " [long]"
	}
	line = "compact"
	switch g.IntN(6) {
	case 0:
		line += " keep=0"
	case 1:
		line += fmt.Sprintf(" keep=%d", g.IntN(600))
	case 2, 3:
		line += " upto=" + g.onSpine()
	}
	line += g.maybe(5, " from="+g.onSpine())
	switch n := g.IntN(30); {
	case n < 2:
		line += " cancel"
	case n < 3:
		line += " kill"
	case n < 6:
		scripts := slices.Sorted(maps.Keys(refusals))
		input = scripts[g.IntN(len(scripts))]
	}
	return line, input
}

// onSpine returns a node of HEAD's branch, now and then any other.
func (g *walker) onSpine() string {
	if g.IntN(10) == 0 {
		return g.any()
	}
	spine := reference.Spine(g.now.Head)
	return g.called(spine[g.IntN(len(spine))])
}

// summaryName returns a summary of the session, now and then any node.
func (g *walker) summaryName() string {
	summaries := g.now.Summaries()
	if len(summaries) == 0 || g.IntN(20) == 0 {
		return g.any()
	}
	return g.called(summaries[g.IntN(len(summaries))])
}

func (g *walker) oneOf(words ...string) string { return words[g.IntN(len(words))] }

// running returns a turn that runs, or a send that waits.
func (g *walker) running() string {
	if q := g.now.Queue; len(q) > 0 && g.IntN(2) == 0 {
		g.name(q[0].UserID, protocol.KindUser)
		g.name(q[0].ReplyID, protocol.KindAssistant)
		return g.names[q[0].ReplyID]
	}
	if t := g.now.Turns; len(t) > 0 {
		return g.called(t[g.IntN(len(t))].Reply)
	}
	return g.any()
}

func (g *walker) plain() string {
	g.said++
	return fmt.Sprintf("message %d", g.said)
}

func (g *walker) message() string {
	text := g.plain()
	switch n := g.IntN(20); {
	case n < 5:
		text += " [hold]"
	case n < 7:
		text += " [tool]"
	case n < 8:
		text += " [tools]"
	case n < 9:
		text += " [holdtool]"
	case n < 10:
		text += " [fail]"
	case n < 11:
		text += " [cut]"
	case n < 18:
		text += " [long]"
	case n < 19:
		text += " — \U0001F468\u200D\U0001F469\u200D\U0001F467 漢字 é"
	}
	return text
}
