package manifest

import (
	"slices"
	"strings"
)

// Bounds of what the extractor keeps. What is over them is counted, never lost
// without a word.
const (
	// foundPerMessage is how many findings of one section one message gives. A
	// user's message gives more, because a list of rules is one message.
	foundPerMessage     = 12
	foundPerUserMessage = 64
	// maxGoals is how many goals one run finds.
	maxGoals = 8
	// maxRequest is how much of the first request becomes the goal.
	maxRequest = 400
)

// finding is one change of the extractor, with what decides which ones stay when
// there are too many.
type finding struct {
	section Section
	role    Role
	// at is the message, as an index into the covered ones.
	at     int
	text   string
	quote  string
	status Status
	kind   Kind
	handle string
	// sources are ids of messages; the first one holds the quote.
	sources []string
	// failed marks what an error says: the most telling of a tool's findings.
	failed bool
	// request marks the goal that is one only for being the first request.
	request bool
}

// Extract finds, by rule and without a model, what the covered messages say:
// goals, constraints, decisions, completed and open work, suppositions, artifacts
// and test results. Each is an add with its source and a quote. The text of tools
// gives artifacts and test results alone, because it is data: an instruction in it
// is nobody's constraint. Time is linear in the text; a message and a section give
// a bounded number, those of the user, of errors and of the latest messages first.
func Extract(covered []Message) []Change {
	found, _ := extract(covered, MaxItems)
	changes := make([]Change, len(found))
	for i := range found {
		changes[i] = found[i].change()
	}
	return changes
}

func (f *finding) change() Change {
	return Change{
		Op: Add, Section: f.section, Text: f.text, Status: f.status, Sources: slices.Clone(f.sources),
		Quote: f.quote, Kind: f.kind, Handle: f.handle,
	}
}

// extract returns the findings in the order of the conversation, at most limit of
// a section, and how many were left out.
func extract(covered []Message, limit int) (found []finding, unlisted int64) {
	x := &extractor{reader: newReader(), handles: map[string]int{}, counts: map[Section]int{}}
	answered := lastAnswer(covered)
	for i := range covered {
		x.message(i, &covered[i], i > answered)
	}
	unlisted = x.unlisted
	for _, s := range Sections() {
		keep := limit
		if s == Goal {
			keep = min(keep, maxGoals)
		}
		unlisted += x.bound(s, keep)
	}
	for i := range x.found {
		f := &x.found[i]
		f.quote = normalise(f.quote)
		if f.text != "" {
			f.text = clip(plain(normalise(f.text)), MaxText)
		}
	}
	return x.found, unlisted
}

// lastAnswer returns the index of the last assistant message with text, or -1.
func lastAnswer(covered []Message) int {
	for i := len(covered) - 1; i >= 0; i-- {
		if covered[i].Role == RoleAssistant && covered[i].Text != "" {
			return i
		}
	}
	return -1
}

type extractor struct {
	*reader
	found    []finding
	handles  map[string]int // where in found an artifact is
	unlisted int64
	request  bool // the first request was seen

	// of the message that is being read
	at     int
	msg    *Message
	counts map[Section]int
}

func (x *extractor) message(at int, m *Message, open bool) {
	x.at, x.msg = at, m
	clear(x.counts)
	if m.Role == RoleTool {
		if id := normalise(m.CallID); id != "" {
			text := "failed"
			if !m.IsError {
				text = ""
			}
			x.artifact(CallID, id, normalise(id+" "+m.Name), text)
		}
		x.results(m.Text)
		return
	}
	if m.Role == RoleUser && !x.request && isRequest(m.Text) {
		x.firstRequest()
	}
	fenced := false
	sentences(m.Text, true, func(start, end int) {
		s := m.Text[start:end]
		if strings.HasPrefix(s, "```") {
			fenced = !fenced || strings.Count(s, "```") > 1
			return
		}
		if !fenced {
			x.prose(s, open)
		}
		x.scan(s)
	})
}

// isRequest tells whether a message asks for something: a greeting or a command of
// the client (/model) does not.
func isRequest(text string) bool {
	text = strings.TrimSpace(text)
	return text != "" && text[0] != '/' && len(contentWords(cut(text, maxRequest))) >= 2
}

// firstRequest makes a goal of the beginning of the first user message: its first
// sentences, up to one that is an item of its own.
func (x *extractor) firstRequest() {
	x.request = true
	text := x.msg.Text
	from, to, full := -1, 0, false
	sentences(text, true, func(start, end int) {
		switch {
		case from < 0:
			from, to = start, end
		case full || end-from > maxRequest || x.read(text[start:end]).has(cueConstraint|cueOpen|cueRest|cueHedge|cueUnknown) || strings.HasPrefix(text[start:], "```"):
			full = true
		default:
			to = end
		}
	})
	quote := cut(text[from:to], maxRequest)
	x.add(finding{section: Goal, text: quote, quote: quote, status: Fact, request: true})
}

// prose reads one sentence of a person or of the assistant.
func (x *extractor) prose(s string, open bool) {
	r := x.read(s)
	if r.cues == 0 {
		return
	}
	user := x.msg.Role == RoleUser
	question := r.has(cueQuestion)
	put := func(section Section, status Status) {
		x.add(finding{section: section, text: s, quote: s, status: status})
	}
	if user && !question {
		if r.has(cueGoal) {
			put(Goal, Fact)
		}
		if r.has(cueConstraint) {
			status := Fact
			if r.has(cueHedge) {
				status = Hypothesis
			}
			put(Constraints, status)
		}
	}
	switch {
	case question:
		if user && (open || r.has(cueUnknown)) {
			put(Unknowns, Unknown)
		}
	case r.has(cueOpen) || user && r.has(cueRest): // the assistant says "next" of every step
		put(OpenTasks, Fact)
	case r.has(cueUnknown):
		put(Unknowns, Unknown)
	case r.has(cueHedge):
		if !user || !r.has(cueConstraint) {
			put(Unknowns, Hypothesis)
		}
	case r.has(cueDecision) || user && r.has(cueContrast|cueLift|cueWish):
		// What takes something back closes nothing by itself, and has to stand beside it.
		put(Decisions, Decision)
	case r.has(cueCompleted) && !r.has(cueNegative|cueConstraint) && len(x.words) > 2: // not "Done."
		put(Completed, Fact)
	}
}

// add keeps a finding of the message that is being read, within its bound.
func (x *extractor) add(f finding) {
	limit := foundPerMessage
	if x.msg.Role == RoleUser {
		limit = foundPerUserMessage
	}
	if x.counts[f.section]++; x.counts[f.section] > limit {
		x.unlisted++
		return
	}
	f.at, f.role, f.sources = x.at, x.msg.Role, []string{x.msg.ID}
	f.failed = f.failed || x.msg.IsError
	x.found = append(x.found, f)
}

// results reads the output of a tool, line by line.
func (x *extractor) results(text string) {
	sentences(text, false, func(start, end int) { x.scan(text[start:end]) })
}

// scan finds the artifacts and the test results in one sentence or line.
func (x *extractor) scan(s string) {
	before, telling := "", false
	tokens(s, func(start, end int) {
		tok := s[start:end]
		kind, handle := classify(tok)
		if handle == "" {
			kind, handle = byNeighbour(before, tok, s[end:])
		}
		if handle != "" {
			x.artifact(kind, handle, s, "")
		}
		telling = telling || resultWord(tok)
		before = tok
	})
	if !telling {
		return
	}
	if kind, certain := outcome(s); certain {
		x.add(finding{section: Tests, text: s, quote: s, status: Fact, kind: kind, failed: kind == Failed})
	}
}

// byNeighbour knows short hashes and branches by the word before them.
func byNeighbour(before, tok, after string) (Kind, string) {
	hash, branch := shortHash(tok), branchName(tok)
	if !hash && !branch {
		return "", ""
	}
	switch strings.ToLower(strings.Trim(before, ":#")) {
	case "commit", "commits", "sha", "sha1", "hash", "revision", "rev", "head", "checkout", "revert", "cherry-pick", "提交":
		if hash {
			return Hash, tok
		}
	case "branch", "zweig", "分支", "-b", "-c", "switch":
		if branch {
			return Branch, tok
		}
	}
	// "[main 1a2b3c4] fix the parser": what git prints after a commit
	if hash && strings.HasPrefix(after, "]") && branchName(before) {
		return Hash, tok
	}
	return "", ""
}

// branchName tells whether a word after "branch" is a branch's name and not a
// word of the sentence.
func branchName(tok string) bool {
	switch tok {
	case "main", "master", "develop", "dev", "trunk", "staging", "production", "release":
		return true
	}
	if !namelike(tok) || tok[0] == '-' {
		return false
	}
	for _, c := range []byte(tok) {
		if !isLetter(c) && !isDigit(c) && strings.IndexByte("/-_.#", c) < 0 && c < 0x80 {
			return false
		}
	}
	return true
}

// artifact keeps one artifact, once for all messages: later ones add a source.
func (x *extractor) artifact(kind Kind, handle, context, text string) {
	if len(handle) > MaxQuote/2 {
		return
	}
	i, ok := x.handles[handle]
	if !ok {
		n := len(x.found)
		x.add(finding{section: Artifacts, text: text, quote: around(context, handle), status: Fact, kind: kind, handle: handle})
		if len(x.found) > n {
			x.handles[handle] = n
		}
		return
	}
	f := &x.found[i]
	if f.at == x.at {
		return
	}
	if len(f.sources) >= MaxSources { // the first and the latest stay
		f.sources = slices.Delete(f.sources, 1, 2)
	}
	f.sources = append(f.sources, x.msg.ID)
	f.failed = f.failed || x.msg.IsError
	f.at = x.at
	if rank(x.msg.Role) < rank(f.role) {
		f.role = x.msg.Role
	}
}

// around returns a stretch of context that holds handle, short enough for a
// memory: a line of a log may be long.
func around(context, handle string) string {
	const room = 160
	if len(context) <= room {
		return context
	}
	i := strings.Index(context, handle)
	start, end := i, i+len(handle)
	for start > 0 && end-start < room && context[start-1] < 0x80 && i-start < room/2 {
		start--
	}
	for end < len(context) && end-start < room && context[end] < 0x80 {
		end++
	}
	// whole words
	for start > 0 && start < i && !isSpace(context[start-1]) {
		start++
	}
	for end < len(context) && end > i+len(handle) && !isSpace(context[end]) {
		end--
	}
	return context[start:end]
}

// boundSources keeps the first source and the latest ones, each once.
func boundSources(ids []string) []string {
	seen := map[string]bool{}
	out := slices.DeleteFunc(slices.Clone(ids), func(id string) bool {
		again := seen[id]
		seen[id] = true
		return again
	})
	if over := len(out) - MaxSources; over > 0 {
		out = slices.Delete(out, 1, 1+over)
	}
	return out
}

func rank(r Role) int {
	switch r {
	case RoleUser:
		return 0
	case RoleAssistant:
		return 1
	case RoleTool:
		return 2
	}
	return 3
}

// bound keeps the most telling findings of section s, in their order, and returns
// how many it left out: the user's go before the assistant's, those before a
// tool's, of these the failed ones go first, and the latest before the earlier.
func (x *extractor) bound(s Section, limit int) int64 {
	var at []int
	for i := range x.found {
		if x.found[i].section == s {
			at = append(at, i)
		}
	}
	if len(at) <= limit {
		return 0
	}
	weight := func(f *finding) int {
		w := 2 * rank(f.role)
		if f.role == RoleTool && f.failed {
			w--
		}
		return w
	}
	slices.SortStableFunc(at, func(a, b int) int {
		fa, fb := &x.found[a], &x.found[b]
		if d := weight(fa) - weight(fb); d != 0 {
			return d
		}
		return fb.at - fa.at
	})
	drop := make(map[int]bool, len(at)-limit)
	for _, i := range at[limit:] {
		drop[i] = true
	}
	kept := x.found[:0]
	for i := range x.found {
		if !drop[i] {
			kept = append(kept, x.found[i])
		}
	}
	x.found = kept
	return int64(len(drop))
}

// resultWord tells whether a line with this word may report a test.
func resultWord(tok string) bool {
	if len(tok) > 16 || tok[0] < 0x80 && strings.IndexByte("pfoesb", tok[0]|0x20) < 0 {
		return false
	}
	switch strings.ToLower(tok) {
	case "pass", "passed", "passing", "fail", "failed", "failing", "failures", "failure", "ok", "exit", "exited", "succeeded", "bestanden", "fehlgeschlagen", "通过", "失败":
		return true
	}
	return strings.Contains(tok, "通过") || strings.Contains(tok, "失败")
}

// outcome reads a test result off a line: its kind, or "" if it reports none.
// certain means that it has the form of a report (a count, a runner's own mark, an
// exit code) and is not merely a sentence about tests.
func outcome(line string) (kind Kind, certain bool) {
	fields := strings.FieldsFunc(line, func(r rune) bool {
		return r == ' ' || r == '\t' || r == ',' || r == ';' || r == '(' || r == ')' || r == '|' || r == '='
	})
	passed, failed := false, false
	for i, f := range fields {
		word := strings.ToLower(strings.Trim(f, ".:!*-`"))
		number := ""
		if i > 0 {
			number = strings.Trim(fields[i-1], ":")
		}
		switch word {
		case "passed", "passing", "pass", "succeeded", "bestanden":
			switch {
			case isNumber(number):
				passed, certain = passed || number != "0", true
			case f == "PASS" || f == "PASS:" || f == "PASSED":
				passed, certain = true, true
			default:
				passed = true
			}
		case "failed", "failing", "fail", "failures", "failure", "fehlgeschlagen":
			switch {
			case isNumber(number):
				failed, certain = failed || number != "0", true
			case i+1 < len(fields) && isNumber(fields[i+1]) && strings.HasSuffix(f, ":"): // Failures: 0
				failed, certain = failed || fields[i+1] != "0", true
			case f == "FAIL" || f == "FAIL:" || f == "FAILED":
				failed, certain = true, true
			default:
				failed = true
			}
		case "tests", "test":
			if isNumber(number) && i+1 < len(fields) && strings.HasPrefix(strings.ToLower(fields[i+1]), "fail") {
				failed, certain = failed || number != "0", true
			}
		case "ok":
			if i == 0 && f == "ok" && runTime(fields) {
				passed, certain = true, true
			}
		case "code", "status":
			if i > 0 && i+1 < len(fields) && exitWord(fields, i) {
				if code := strings.Trim(fields[i+1], ".:"); isNumber(code) {
					certain = true
					passed, failed = passed || code == "0", failed || code != "0"
				}
			}
		default:
			passed = passed || strings.Contains(word, "通过") && !strings.Contains(word, "未通过") && !strings.Contains(word, "没通过")
			failed = failed || strings.Contains(word, "失败") || strings.Contains(word, "未通过") || strings.Contains(word, "没通过")
		}
	}
	switch {
	case failed:
		return Failed, certain
	case passed:
		return Passed, certain
	}
	return "", false
}

// runTime tells whether a line of fields is go test's "ok package 0.1s".
func runTime(fields []string) bool {
	if len(fields) < 3 {
		return false
	}
	t := fields[2]
	return t == "cached" || strings.HasSuffix(t, "s") && isDigit(t[0]) && strings.Contains(t, ".")
}

func exitWord(fields []string, i int) bool {
	for _, f := range fields[max(0, i-2):i] {
		if w := strings.ToLower(f); w == "exit" || w == "exited" || w == "exits" || w == "return" {
			return true
		}
	}
	return false
}

func isNumber(s string) bool {
	for _, c := range []byte(s) {
		if !isDigit(c) {
			return false
		}
	}
	return s != ""
}
