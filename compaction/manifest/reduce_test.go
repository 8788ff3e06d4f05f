package manifest

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func user(id, text string) Message { return Message{ID: id, Role: RoleUser, Text: text} }
func assistant(id, text string) Message {
	return Message{ID: id, Role: RoleAssistant, Text: text}
}
func tool(id, call, text string) Message {
	return Message{ID: id, Role: RoleTool, Name: "shell", CallID: call, Text: text}
}

// before is a manifest with one item in most sections.
func before(t *testing.T) *Manifest {
	t.Helper()
	item := func(id, text string, status Status) Item {
		return Item{ID: id, Text: text, Status: status, Sources: []string{"old1"}, Quote: text}
	}
	m := (*Manifest)(nil).clone()
	m.Goal = []Item{item("g1", "Build a parcel router", Fact)}
	m.Constraints = []Item{item("c2", "Never push to main", Fact), item("c3", "Always format src/a.go", Fact), item("c10", "Never skip the parser tests", Fact)}
	m.Constraints[0].Negative, m.Constraints[2].Negative = true, true
	m.Decisions = []Item{item("d4", "Parcels are sorted by depot", Decision)}
	m.Completed = []Item{item("x5", "The loader reads depots", Fact)}
	m.OpenTasks = []Item{item("t6", "Write the migration of stage 11", Fact)}
	path := item("a7", "the parser", Fact)
	path.Handle, path.Kind, path.Quote = "src/a.go", Path, "see src/a.go"
	m.Artifacts = []Item{path}
	result := item("r8", "12 passed, 1 failed", Fact)
	result.Kind = Failed
	m.Tests = []Item{result}
	m.Unknowns = []Item{item("u9", "The depot index is stale", Hypothesis)}
	m.SourceRange = SourceRange{"old1", "old1", 1}
	m.LastItem = 10
	if err := Validate(m); err != nil {
		t.Fatal(err)
	}
	return m
}

// newly are the messages that the changes below are proved by.
var newly = []Message{
	user("n1", "You may now push to main. Use British spelling, e.g. colour.\nPlease do not\ntouch the vendor folder."),
	assistant("n2", "The migration of stage 10 is done. The migration of stage 11 is not done yet. We sort by weight now."),
	assistant("n3", "Maybe the router leaks memory. The depot index is stale, I checked it. Is the loader slow?"),
	tool("n4", "call_77", "FAIL: TestRoute\n3 passed in router\nsee src/a.go.bak and src/b.go:12:3\nNever delete logs. We decided to use Redis.\nThe migration of stage 11 is done."),
	assistant("n5", "The migration of stage 11 is done and merged.\nParcels are no longer sorted by depot."),
	assistant("n7", "Perhaps the depot index is stale. The depot index is not stale."),
	user("n8", "Do not push to main without my review. Always deploy the staging site and never run the linter. Always review the code. Never skip the tests."),
	user("n6", "Is pushing to main allowed now? Maybe we should drop the rule to never push to main. Never skip the parser tests, and skip the rest."),
}

// TestRangeCounts: source_range counts nodes, and a long message that came in pieces,
// in one call or over two, is one node.
func TestRangeCounts(t *testing.T) {
	m, _ := Reduce(nil, Changes{}, []Message{user("n1", "Build it."), tool("n2", "call_1", "first"), tool("n2", "call_1", "second")}, Options{})
	m, _ = Reduce(m, Changes{}, []Message{tool("n2", "call_1", "third"), user("n3", "Thanks.")}, Options{})
	if want := (SourceRange{"n1", "n3", 3}); m.SourceRange != want {
		t.Errorf("%+v, want %+v", m.SourceRange, want)
	}
}

func TestRules(t *testing.T) {
	add := func(c Change) Change { c.Op = Add; return c }
	update := func(c Change) Change { c.Op = Update; return c }
	closing := func(c Change) Change { c.Op = Close; return c }
	n := func(ids ...string) []string { return ids }
	for _, tc := range []struct {
		name string
		c    Change
		rule Rule // "" if the change holds
	}{
		{"a constraint with its quote", add(Change{Section: Constraints, Text: "Use British spelling", Sources: n("n1"), Quote: "Use British spelling"}), ""},
		{"white space in a quote does not matter", add(Change{Section: Constraints, Text: "Do not touch the vendor folder", Sources: n("n1"), Quote: "do not  touch the\nvendor folder"}), ""},
		{"an unknown op", Change{Op: "replace", Section: Goal}, RuleShape},
		{"an unknown section", add(Change{Section: "facts"}), RuleShape},
		{"an unknown status", add(Change{Section: Goal, Status: "sure"}), RuleShape},
		{"an empty text", add(Change{Section: Decisions, Text: " ", Sources: n("n2")}), RuleShape},
		{"a text that is too long", add(Change{Section: Decisions, Text: strings.Repeat("sort ", 200), Sources: n("n2")}), RuleShape},
		{"an add with an id", add(Change{Section: Decisions, ID: "d4", Text: "We sort by weight", Sources: n("n2")}), RuleShape},
		{"a handle on what is no artifact", add(Change{Section: Decisions, Text: "We sort by weight", Handle: "src/b.go", Sources: n("n2")}), RuleShape},

		{"no source", add(Change{Section: Decisions, Text: "We sort by weight"}), RuleSources},
		{"a source that does not exist", add(Change{Section: Decisions, Text: "We sort by weight", Sources: n("n2", "n99")}), RuleSources},
		{"a source that was covered before", add(Change{Section: Decisions, Text: "Parcels are sorted by weight", Sources: n("old1")}), RuleSources},

		{"a constraint without a quote", add(Change{Section: Constraints, Text: "Use British spelling", Sources: n("n1")}), RuleQuote},
		{"a quote that is not there", add(Change{Section: Constraints, Text: "Use American spelling", Sources: n("n1"), Quote: "Use American spelling"}), RuleQuote},
		{"a quote from another message", add(Change{Section: Constraints, Text: "Use British spelling", Sources: n("n6"), Quote: "Use British spelling"}), RuleQuote},
		{"a test without a quote", add(Change{Section: Tests, Text: "TestRoute", Kind: Failed, Sources: n("n4")}), RuleQuote},
		{"an artifact without a quote", add(Change{Section: Artifacts, Handle: "src/b.go", Kind: Path, Sources: n("n4")}), RuleQuote},

		{"a constraint from a tool", add(Change{Section: Constraints, Text: "Never delete logs", Sources: n("n4"), Quote: "Never delete logs."}), RuleRole},
		{"a constraint from the assistant", add(Change{Section: Constraints, Text: "We sort by weight", Sources: n("n2"), Quote: "We sort by weight now."}), RuleRole},
		{"a goal from a tool", add(Change{Section: Goal, Text: "Delete logs", Sources: n("n4")}), RuleRole},
		{"a decision from a tool", add(Change{Section: Decisions, Text: "We decided to use Redis", Sources: n("n4"), Quote: "We decided to use Redis."}), RuleRole},
		{"an open task from a tool", add(Change{Section: OpenTasks, Text: "Delete logs", Sources: n("n4")}), RuleRole},

		{"a real quote of something else", add(Change{Section: Constraints, Text: "The database is MongoDB", Sources: n("n1"), Quote: "Use British spelling, e.g. colour."}), RuleGrounds},
		{"a constraint made much wider", add(Change{Section: Constraints, Text: "Do not touch the vendor folder or databases", Sources: n("n1"), Quote: "Please do not touch the vendor folder."}), RuleGrounds},
		{"a real source that does not say so", add(Change{Section: Completed, Text: "Released to customers", Sources: n("n2")}), RuleGrounds},
		{"a number that the source does not have", add(Change{Section: Completed, Text: "The migration of stage 12 is done", Sources: n("n2")}), RuleGrounds},
		{"a name that the source does not have", add(Change{Section: Decisions, Text: "We sort by weight in sortKeys2", Sources: n("n2")}), RuleGrounds},

		{"a prohibition without its not", add(Change{Section: Constraints, Text: "Touch the vendor folder", Sources: n("n1"), Quote: "touch the vendor folder"}), RuleNegation},
		{"a prohibition without one of its nots", add(Change{Section: Constraints, Text: "Push to main without my review", Sources: n("n8"), Quote: "Do not push to main without my review."}), RuleNegation},
		{"a prohibition of the other thing", add(Change{Section: Constraints, Text: "Never deploy the staging site and always run the linter", Sources: n("n8"), Quote: "Always deploy the staging site and never run the linter."}), RuleNegation},
		{"two sentences whose not changes places", add(Change{Section: Constraints, Text: "Never review the code. Always skip the tests.", Sources: n("n8"), Quote: "Always review the code. Never skip the tests."}), RuleNegation},
		{"a prohibition with half an order before it", add(Change{Section: Constraints, Text: "the code. Never skip the tests", Sources: n("n8"), Quote: "Always review the code. Never skip the tests."}), RuleNegation},
		{"a task that was forbidden", add(Change{Section: OpenTasks, Text: "Push to main without my review", Sources: n("n8"), Quote: "Do not push to main without my review."}), RuleNegation},
		{"a goal that was forbidden", add(Change{Section: Goal, Text: "Push to main without my review", Sources: n("n8")}), RuleNegation},
		{"a goal that was forbidden, behind one that was not", add(Change{Section: Goal, Text: "Always review the code. Always skip the tests.", Sources: n("n8")}), RuleNegation},
		{"something done that was not", add(Change{Section: Completed, Text: "The migration of stage 11 is done", Sources: n("n2"), Quote: "The migration of stage 11 is not done yet."}), RuleNegation},
		{"a prohibition with all its nots", add(Change{Section: Constraints, Text: "do not push to main without my review", Sources: n("n8"), Quote: "Do not push to main without my review."}), ""},
		{"a prohibition nobody made", add(Change{Section: Constraints, Text: "Never use British spelling", Sources: n("n1"), Quote: "Use British spelling"}), RuleNegation},

		{"a supposition as a hypothesis", add(Change{Section: Unknowns, Text: "The router leaks memory", Status: Hypothesis, Sources: n("n3")}), ""},
		{"a supposition as a fact", add(Change{Section: Completed, Text: "The router leaks memory", Sources: n("n3")}), RuleStatus},
		{"a supposition as a fact, half quoted", add(Change{Section: Completed, Text: "The router leaks memory", Sources: n("n3"), Quote: "the router leaks memory."}), RuleStatus},
		{"a question as a fact", add(Change{Section: Completed, Text: "The loader is slow", Sources: n("n3"), Quote: "Is the loader slow?"}), RuleStatus},
		{"a fact among the unknowns", add(Change{Section: Unknowns, Text: "We sort by weight", Status: Fact, Sources: n("n2")}), RuleStatus},
		{"a hypothesis again, as a fact", add(Change{Section: Decisions, Text: "The depot index is stale", Status: Fact, Sources: n("n3")}), RuleStatus},

		{"an artifact", add(Change{Section: Artifacts, Handle: "src/b.go", Kind: Path, Sources: n("n4"), Quote: "src/b.go:12:3"}), ""},
		{"a handle that is a piece of another", add(Change{Section: Artifacts, Handle: "src/a.go", Kind: Path, Sources: n("n4"), Quote: "src/a.go"}), RuleIdentity},
		{"a handle that is not in the quote", add(Change{Section: Artifacts, Handle: "src/b.go", Kind: Path, Sources: n("n4"), Quote: "3 passed in router"}), RuleIdentity},
		{"a handle with more than the name", add(Change{Section: Artifacts, Handle: "src/b.go:12:3", Kind: Path, Sources: n("n4"), Quote: "see src/a.go.bak and src/b.go:12:3"}), RuleIdentity},
		{"a word as an artifact", add(Change{Section: Artifacts, Handle: "router", Kind: Other, Sources: n("n4"), Quote: "3 passed in router"}), RuleIdentity},
		{"no handle", add(Change{Section: Artifacts, Kind: Path, Sources: n("n4"), Quote: "src/b.go:12:3"}), RuleIdentity},
		{"another handle for an artifact", update(Change{Section: Artifacts, ID: "a7", Handle: "src/b.go", Sources: n("n4")}), RuleIdentity},
		{"another kind for an artifact", update(Change{Section: Artifacts, ID: "a7", Kind: Hash, Sources: n("n4")}), RuleIdentity},
		{"an artifact closed", closing(Change{Section: Artifacts, ID: "a7", Sources: n("n4"), Quote: "see src/a.go.bak"}), RuleKeep},

		{"a test that failed", add(Change{Section: Tests, Text: "FAIL TestRoute", Kind: Failed, Sources: n("n4"), Quote: "FAIL: TestRoute"}), ""},
		{"a failed test as passed", add(Change{Section: Tests, Text: "TestRoute", Kind: Passed, Sources: n("n4"), Quote: "TestRoute"}), RuleStatus},
		{"a test without a kind", add(Change{Section: Tests, Text: "TestRoute", Sources: n("n4"), Quote: "FAIL: TestRoute"}), RuleShape},

		{"an item that is not there", closing(Change{Section: OpenTasks, ID: "t99", Sources: n("n5"), Quote: "done"}), RuleItem},
		{"an item of another section", closing(Change{Section: Goal, ID: "t6", Sources: n("n5"), Quote: "done"}), RuleItem},

		{"a task that is done", closing(Change{Section: OpenTasks, ID: "t6", Sources: n("n5"), Quote: "The migration of stage 11 is done and merged."}), ""},
		{"a task closed without a quote", closing(Change{Section: OpenTasks, ID: "t6", Sources: n("n5")}), RuleQuote},
		{"a task closed by an old source", closing(Change{Section: OpenTasks, ID: "t6", Sources: n("old1"), Quote: "Write the migration of stage 11"}), RuleQuote},
		{"a task closed by another task", closing(Change{Section: OpenTasks, ID: "t6", Sources: n("n2"), Quote: "The migration of stage 10 is done."}), RuleGrounds},
		{"a task that is not done yet", closing(Change{Section: OpenTasks, ID: "t6", Sources: n("n2"), Quote: "The migration of stage 11 is not done yet."}), RuleKeep},
		{"a task that a tool calls done", closing(Change{Section: OpenTasks, ID: "t6", Sources: n("n4"), Quote: "The migration of stage 11 is done."}), RuleRole},
		{"completed work closed", closing(Change{Section: Completed, ID: "x5", Sources: n("n3"), Quote: "Is the loader slow?"}), RuleKeep},

		{"a constraint that the user lifts", closing(Change{Section: Constraints, ID: "c2", Sources: n("n1"), Quote: "You may now push to main."}), ""},
		{"a constraint closed by another request", closing(Change{Section: Constraints, ID: "c2", Sources: n("n1"), Quote: "Use British spelling"}), RuleGrounds},
		{"a constraint closed by a question", closing(Change{Section: Constraints, ID: "c2", Sources: n("n6"), Quote: "Is pushing to main allowed now?"}), RuleStatus},
		{"a constraint closed by a supposition", closing(Change{Section: Constraints, ID: "c2", Sources: n("n6"), Quote: "Maybe we should drop the rule to never push to main."}), RuleStatus},
		{"a constraint closed by the assistant", closing(Change{Section: Constraints, ID: "c2", Sources: n("n5"), Quote: "The migration of stage 11 is done and merged."}), RuleRole},
		{"a constraint closed by being repeated", closing(Change{Section: Constraints, ID: "c10", Sources: n("n6"), Quote: "Never skip the parser tests, and skip the rest."}), RuleKeep},
		{"a decision taken back", closing(Change{Section: Decisions, ID: "d4", Sources: n("n5"), Quote: "Parcels are no longer sorted by depot."}), ""},
		{"a decision closed by something else", closing(Change{Section: Decisions, ID: "d4", Sources: n("n5"), Quote: "The migration of stage 11 is done and merged."}), RuleGrounds},

		{"a constraint changed without a quote", update(Change{Section: Constraints, ID: "c3", Text: "Always format src/a.go twice", Sources: n("n1")}), RuleQuote},
		{"a constraint that loses its name", update(Change{Section: Constraints, ID: "c3", Text: "Always format", Sources: n("old1")}), RuleKeep},
		{"a task that loses its words", update(Change{Section: OpenTasks, ID: "t6", Text: "Stage 11", Sources: n("old1")}), RuleKeep},
		{"a decision turned round", update(Change{Section: Decisions, ID: "d4", Text: "Parcels are not sorted by depot", Sources: n("old1")}), RuleNegation},
		{"a task in fewer words", update(Change{Section: OpenTasks, ID: "t6", Text: "Write migration for stage 11", Sources: n("old1")}), ""},

		{"a hypothesis confirmed", update(Change{Section: Unknowns, ID: "u9", Status: Fact, Sources: n("n3"), Quote: "The depot index is stale, I checked it."}), ""},
		{"a hypothesis raised without a quote", update(Change{Section: Unknowns, ID: "u9", Status: Fact, Sources: n("n3")}), RuleStatus},
		{"a hypothesis raised by its old source", update(Change{Section: Unknowns, ID: "u9", Status: Fact, Sources: n("old1"), Quote: "The depot index is stale"}), RuleQuote},
		{"a hypothesis raised by something else", update(Change{Section: Unknowns, ID: "u9", Status: Fact, Sources: n("n2"), Quote: "We sort by weight now."}), RuleGrounds},
		{"a hypothesis raised by another supposition", update(Change{Section: Unknowns, ID: "u9", Status: Fact, Sources: n("n7"), Quote: "the depot index is stale."}), RuleStatus},
		{"a hypothesis raised by its opposite", update(Change{Section: Unknowns, ID: "u9", Status: Fact, Sources: n("n7"), Quote: "The depot index is not stale."}), RuleNegation},
		{"a constraint made a hypothesis", update(Change{Section: Constraints, ID: "c2", Status: Hypothesis, Sources: n("n1")}), RuleStatus},
		{"a source more", update(Change{Section: Unknowns, ID: "u9", Sources: n("n3")}), ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			previous := before(t)
			got, rejections := Reduce(previous, Changes{Changes: []Change{tc.c}}, newly, Options{})
			if diff := cmp.Diff(before(t), previous); diff != "" {
				t.Fatalf("the previous manifest was changed:\n%s", diff)
			}
			if err := Validate(got); err != nil {
				t.Error(err)
			}
			if tc.rule == "" {
				if len(rejections) != 0 {
					t.Errorf("rejected: %s: %s", rejections[0].Rule, rejections[0].Reason)
				}
				return
			}
			if len(rejections) != 1 || rejections[0].Rule != tc.rule || rejections[0].Reason == "" || rejections[0].Index != 0 {
				t.Errorf("rejections: %+v, want one by rule %s", rejections, tc.rule)
			}
		})
	}
}

// TestApplied checks what an accepted change does.
func TestApplied(t *testing.T) {
	m, rejections := Reduce(before(t), Changes{Changes: []Change{
		{Op: Close, Section: OpenTasks, ID: "t6", Sources: []string{"n5"}, Quote: "The migration of stage 11 is done"},
		{Op: Close, Section: Constraints, ID: "c2", Sources: []string{"n1"}, Quote: "You may now push to main."},
		{Op: Update, Section: Unknowns, ID: "u9", Status: Fact, Sources: []string{"n3"}, Quote: "depot index is stale"},
		{Op: Add, Section: Constraints, Text: "Do not touch the vendor folder", Sources: []string{"n1"}, Quote: "touch the vendor folder"},
		{Op: Add, Section: Artifacts, Kind: Other, Handle: "src/b.go", Sources: []string{"n4"}, Quote: "src/b.go:12:3"},
	}}, newly, Options{Pinned: []Verbatim{{ID: "p1", Role: RoleUser, Text: "word for word"}}})
	if len(rejections) != 0 {
		t.Fatalf("rejections: %+v", rejections)
	}
	section, done, ok := m.Find("t6")
	want := Item{
		ID: "t6", Text: "Write the migration of stage 11", Status: Fact, Sources: []string{"n5", "old1"},
		Quote: "The migration of stage 11 is done and merged.",
	}
	if diff := cmp.Diff(want, done); !ok || section != Completed || diff != "" {
		t.Errorf("the closed task is in %q:\n%s", section, diff)
	}
	if _, _, ok := m.Find("c2"); ok || !slices.Contains(m.Retired, Retired{Constraints, "c2", "Never push to main", ByClose}) {
		t.Errorf("the lifted constraint: still there %v, retired %v", ok, m.Retired)
	}
	if _, u, _ := m.Find("u9"); u.Status != Fact || u.Quote != "The depot index is stale, I checked it." || u.Sources[0] != "n3" {
		t.Errorf("the confirmed hypothesis: %+v", u)
	}
	i := slices.IndexFunc(m.Constraints, func(i Item) bool { return i.Text == "Do not touch the vendor folder" })
	if i < 0 || !m.Constraints[i].Negative || m.Constraints[i].Quote != "Please do not touch the vendor folder." {
		t.Errorf("the prohibition is not whole: %+v", m.Constraints)
	}
	i = slices.IndexFunc(m.Artifacts, func(i Item) bool { return i.Handle == "src/b.go" })
	if i < 0 || m.Artifacts[i].Kind != Path {
		t.Errorf("the artifact: %+v", m.Artifacts)
	}
	if len(m.Pinned) != 1 || m.SourceRange != (SourceRange{"old1", "n6", 9}) {
		t.Errorf("pinned %v, range %v", m.Pinned, m.SourceRange)
	}
	again, _ := Reduce(m, Changes{}, nil, Options{Unpinned: []string{"p1"}})
	if len(again.Pinned) != 0 || again.SourceRange != m.SourceRange {
		t.Errorf("unpinned: %v, range %v", again.Pinned, again.SourceRange)
	}
}

// TestOneFirstRequest: the first request is the goal only while there is no other.
func TestOneFirstRequest(t *testing.T) {
	covered := []Message{user("n1", "Please sort all parcels by weight.")}
	for _, tc := range []struct {
		name     string
		previous *Manifest
		changes  []Change
		want     []string
	}{
		{"nothing", nil, nil, []string{"Please sort all parcels by weight."}},
		{"a goal from before", before(t), nil, []string{"Build a parcel router"}},
		{"the model's goal", nil, []Change{{Op: Add, Section: Goal, Text: "Sort parcels by weight", Sources: []string{"n1"}}}, []string{"Sort parcels by weight"}},
	} {
		m, rejections := Reduce(tc.previous, Changes{Changes: tc.changes}, covered, Options{})
		if diff := cmp.Diff(tc.want, texts(m.Goal)); diff != "" || len(rejections) != 0 {
			t.Errorf("%s: rejections %v\n%s", tc.name, rejections, diff)
		}
	}
}

// TestTaskMoves: a task that is found done leaves the others as they are.
func TestTaskMoves(t *testing.T) {
	previous := before(t)
	for _, text := range []string{"write docs", "print the report", "sort the depots"} {
		previous.OpenTasks = append(previous.OpenTasks, Item{ID: "t-" + text, Text: text, Status: Fact, Sources: []string{"old1"}})
	}
	m, _ := Reduce(previous, Changes{}, []Message{assistant("n1", "- [x] write docs\n- [ ] print the report")}, Options{})
	_, report, _ := m.Find("t-print the report")
	_, depots, _ := m.Find("t-sort the depots")
	if len(m.OpenTasks) != 3 || len(m.Completed) != 2 || len(report.Sources) != 2 || len(depots.Sources) != 1 {
		t.Errorf("open %+v, completed %+v", m.OpenTasks, m.Completed)
	}
}

// TestDuplicatesUnite: the same text, or the same handle, is one item.
func TestDuplicatesUnite(t *testing.T) {
	covered := []Message{assistant("n1", "We sort by weight, see src/a.go."), assistant("n2", "we sort by weight; src/a.go has it.")}
	m, rejections := Reduce(before(t), Changes{Changes: []Change{
		{Op: Add, Section: Decisions, Text: "We sort by weight.", Sources: []string{"n1"}},
		{Op: Add, Section: Decisions, Text: "we sort  by weight", Sources: []string{"n2"}},
	}}, covered, Options{})
	if len(rejections) != 0 || len(m.Decisions) != 2 || !slices.Equal(m.Decisions[1].Sources, []string{"n1", "n2"}) {
		t.Errorf("decisions %+v, rejections %+v", m.Decisions, rejections)
	}
	if len(m.Artifacts) != 1 || m.Artifacts[0].ID != "a7" || !slices.Equal(m.Artifacts[0].Sources, []string{"old1", "n1", "n2"}) {
		t.Errorf("artifacts %+v", m.Artifacts)
	}
}

// TestSettled: what was opened and then done in the same stretch is not open, what
// comes up again later is.
func TestSettled(t *testing.T) {
	for _, tc := range []struct {
		name    string
		covered []Message
		open    []string
		done    []string
	}{
		{"opened, done", []Message{assistant("n1", "- [ ] write docs"), assistant("n2", "- [x] write docs")}, nil, []string{"write docs"}},
		{"done, opened again", []Message{assistant("n1", "- [x] write docs"), assistant("n2", "- [ ] write docs")}, []string{"write docs"}, []string{"write docs"}},
		{"another task", []Message{assistant("n1", "- [ ] write docs"), assistant("n2", "- [x] write more docs")}, []string{"write docs"}, []string{"write more docs"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			m, _ := Reduce(nil, Changes{}, tc.covered, Options{})
			if diff := cmp.Diff([][]string{tc.open, tc.done}, [][]string{texts(m.OpenTasks), texts(m.Completed)}); diff != "" {
				t.Errorf("open and done:\n%s", diff)
			}
		})
	}
}

func texts(items []Item) (out []string) {
	for _, i := range items {
		out = append(out, i.Text)
	}
	return out
}

func TestNarrative(t *testing.T) {
	long := strings.Repeat("The router reads the depots one after the other and sorts them. ", 5)
	covered := []Message{user("n1", long+" See src/a.go.")}
	for _, tc := range []struct {
		name, text, want string
		rejected         bool
	}{
		{"short", "The parser in src/a.go is half done.", "The parser in src/a.go is half done.", false},
		{"blank leaves the old one", " \n", "the old one", false},
		{"input given back", "Summary: " + long, "the old one", true},
		{"a name that nobody named", "Work goes on in src/b.go.", "the old one", true},
		{"private reasoning", "Fine. <think>hm</think>", "the old one", true},
		{"too long", strings.Repeat("Work goes on. ", 300), clip(strings.TrimSpace(strings.Repeat("Work goes on. ", 300)), MaxNarrative), false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			previous := before(t)
			previous.Narrative = "the old one"
			m, rejections := Reduce(previous, Changes{Narrative: tc.text}, covered, Options{})
			if m.Narrative != tc.want || tc.rejected != (len(rejections) == 1) {
				t.Errorf("narrative %q, rejections %v", m.Narrative, rejections)
			}
			if tc.rejected && (rejections[0].Rule != RuleNarrative || rejections[0].Index != -1) {
				t.Errorf("rejection %+v", rejections[0])
			}
		})
	}
}

// TestAddsAreBounded: a model that gives back what it read does not fill the memory.
func TestAddsAreBounded(t *testing.T) {
	var text strings.Builder
	var changes Changes
	for i := range 3 * maxAdded {
		name := strings.Repeat("a", i+1)
		text.WriteString("Call " + name + ".\n")
		changes.Changes = append(changes.Changes, Change{Op: Add, Section: OpenTasks, Text: "Call " + name, Sources: []string{"n1"}})
	}
	m, rejections := Reduce(nil, changes, []Message{user("n1", text.String())}, Options{})
	if len(m.OpenTasks) != maxAdded || rejections[len(rejections)-1].Rule != RuleKeep {
		t.Errorf("%d open tasks, last rejection %+v", len(m.OpenTasks), rejections[len(rejections)-1])
	}
}

// TestPieces: a long message that comes in pieces is one source.
func TestPieces(t *testing.T) {
	m, rejections := Reduce(nil, Changes{Changes: []Change{
		{Op: Add, Section: Constraints, Text: "Use tabs", Sources: []string{"n1"}, Quote: "Use tabs."},
		{Op: Add, Section: Constraints, Text: "Write short names", Sources: []string{"n1"}, Quote: "Write short names."},
	}}, []Message{user("n1", "Use tabs."), user("n1", "Write short names.")}, Options{})
	if len(rejections) != 0 || len(m.Constraints) != 2 {
		t.Errorf("constraints %v, rejections %v", m.Constraints, rejections)
	}
}
