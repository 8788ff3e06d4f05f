package manifest

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Options bound and complete what [Reduce] writes.
type Options struct {
	// Range is the stretch that the new manifest speaks for. Where it is zero, the
	// range of the previous manifest is extended by the covered messages.
	Range SourceRange
	// Pinned are the nodes to carry word for word, added to the previous ones, of
	// which those in Unpinned are left out.
	Pinned   []Verbatim
	Unpinned []string
	// MaxItems is how many items a section may have before [Reduce] stops taking
	// more of what the extractor finds in the text of tools and of the assistant,
	// and counts them. What the user says and the artifacts that the assistant names
	// are taken in any case, and so is what the model adds. 0 means [MaxItems]. Since
	// artifacts are never dropped, a small window needs a small number here.
	MaxItems int
}

// Rule names the rule that a rejected change breaks.
type Rule string

// The rules.
const (
	// RuleShape: an unknown word, a missing or an overlong field.
	RuleShape Rule = "shape"
	// RuleItem: the item does not exist, or is in another section.
	RuleItem Rule = "item"
	// RuleSources: no source, or one that is not covered.
	RuleSources Rule = "sources"
	// RuleQuote: no quote where one is needed, or it is not in its source.
	RuleQuote Rule = "quote"
	// RuleRole: who said it can not decide it.
	RuleRole Rule = "role"
	// RuleGrounds: the source does not say so.
	RuleGrounds Rule = "grounds"
	// RuleNegation: a "not" was lost, or put in.
	RuleNegation Rule = "negation"
	// RuleStatus: the source is less certain than the change.
	RuleStatus Rule = "status"
	// RuleIdentity: an artifact's handle is changed, or is not in the quote.
	RuleIdentity Rule = "identity"
	// RuleKeep: the change would lose what must be kept.
	RuleKeep Rule = "keep"
	// RuleNarrative: the narrative repeats its input, or names what nobody named.
	RuleNarrative Rule = "narrative"
)

// Rejection is a change that was not applied, and why.
type Rejection struct {
	// Index is the place in Changes, and -1 for the narrative.
	Index  int    `json:"index"`
	Change Change `json:"change"`
	Rule   Rule   `json:"rule"`
	// Reason can be sent to the model for a repair.
	Reason string `json:"reason"`
}

// rejected is a Rejection on its way.
type rejected struct {
	rule   Rule
	reason string
}

func reject(rule Rule, format string, args ...any) *rejected {
	return &rejected{rule, fmt.Sprintf(format, args...)}
}

// Reduce applies a model's changes to the previous manifest, which may be nil and
// is never changed, against the newly covered messages, and merges in what
// [Extract] finds in them. It is deterministic. What does not hold is rejected,
// one by one, and the rest is applied:
//
//   - nothing disappears unless a change closes it with a quote; a closed open task
//     becomes a completed one; artifacts and completed work are not closed;
//   - goals and constraints come from a user's message, and only the quoted text of
//     a user's message in covered changes or closes one;
//   - constraints, artifacts and tests quote one of their sources word for word,
//     white space aside; the quote is widened to whole sentences;
//   - sources are in covered, or already on the item;
//   - a handle is exact, never changes, and stands in the quote;
//   - a status changes only by a quote, and becomes firm only by one that does not
//     suppose or ask;
//   - the words of a text are those of its source, its names and numbers exactly;
//     what forbids or denies something, word for word;
//   - the same text, or the same handle, is one item with the sources of both.
func Reduce(previous *Manifest, changes Changes, covered []Message, o Options) (*Manifest, []Rejection) {
	r := &reducer{
		m: previous.clone(), covered: make(map[string]*Message, len(covered)), order: make(map[string]int, len(covered)),
		passages: map[string]*passage{}, added: map[Section]int{}, reader: newReader(),
	}
	for i := range covered {
		m := &covered[i]
		if piece, ok := r.covered[m.ID]; ok { // a long message may come in pieces
			whole := *piece
			whole.Text += "\n" + m.Text
			m = &whole
		}
		r.covered[m.ID], r.order[m.ID] = m, i
	}
	r.m.LastItem = max(r.m.LastItem, highestNumber(r.m))
	rejections := []Rejection{}
	for i, c := range changes.Changes {
		if why := r.apply(c); why != nil {
			rejections = append(rejections, Rejection{Index: i, Change: c, Rule: why.rule, Reason: why.reason})
		}
	}
	limit := o.MaxItems
	if limit <= 0 {
		limit = MaxItems
	}
	r.merge(covered, limit, previous != nil && len(previous.Goal) > 0)
	if why := r.narrate(changes.Narrative, covered); why != nil {
		rejections = append(rejections, Rejection{Index: -1, Rule: why.rule, Reason: why.reason})
	}
	r.m.pin(o.Pinned, o.Unpinned)
	r.m.SourceRange = extendRange(r.m.SourceRange, o.Range, covered)
	return r.m, rejections
}

func extendRange(old, given SourceRange, covered []Message) SourceRange {
	if given != (SourceRange{}) {
		return given
	}
	if len(covered) == 0 {
		return old
	}
	if old.FirstID == "" {
		old.FirstID = covered[0].ID
	}
	for i := range covered {
		if covered[i].ID != old.LastID { // else it is a further piece of a long message
			old.Count++
		}
		old.LastID = covered[i].ID
	}
	return old
}

func (m *Manifest) pin(add []Verbatim, drop []string) {
	m.Pinned = slices.DeleteFunc(m.Pinned, func(v Verbatim) bool {
		return slices.Contains(drop, v.ID) || slices.ContainsFunc(add, func(a Verbatim) bool { return a.ID == v.ID })
	})
	m.Pinned = append(m.Pinned, add...)
}

// highestNumber returns the highest number in the ids: people may have added some.
func highestNumber(m *Manifest) int64 {
	var highest int64
	for _, item := range m.Items() {
		if n, err := strconv.ParseInt(strings.TrimLeft(item.ID, "abcdefghijklmnopqrstuvwxyz"), 10, 64); err == nil && n < 1<<53 {
			highest = max(highest, n)
		}
	}
	return highest
}

type reducer struct {
	*reader
	m        *Manifest
	covered  map[string]*Message
	order    map[string]int
	passages map[string]*passage
	added    map[Section]int
}

func (r *reducer) passage(id string) *passage {
	p, ok := r.passages[id]
	if !ok {
		p = newPassage(r.covered[id])
		r.passages[id] = p
	}
	return p
}

// newID returns an id that no item has had.
func (r *reducer) newID(s Section) string {
	return r.m.newID(s)
}

// newID returns an id that no item has had.
func (m *Manifest) newID(s Section) string {
	letters := map[Section]string{
		Goal: "g", Constraints: "c", Decisions: "d", Completed: "x", OpenTasks: "t", Artifacts: "a", Tests: "r", Unknowns: "u",
	}
	m.LastItem++
	return letters[s] + strconv.FormatInt(m.LastItem, 10)
}

func (r *reducer) apply(c Change) *rejected {
	if err := c.check(); err != nil {
		return reject(RuleShape, "%v", err)
	}
	c.Text, c.Quote = strings.TrimSpace(c.Text), normalise(c.Quote)
	switch {
	case len(c.Text) > MaxText:
		return reject(RuleShape, "the text has %d bytes: at most %d", len(c.Text), MaxText)
	case len(c.Quote) > MaxQuote || len(c.Handle) > MaxQuote/2:
		return reject(RuleShape, "the quote has %d bytes and the handle %d: at most %d and %d", len(c.Quote), len(c.Handle), MaxQuote, MaxQuote/2)
	case len(c.Sources) > 4*MaxSources:
		return reject(RuleShape, "%d sources: name the ones that say it", len(c.Sources))
	}
	if c.Op == Add {
		return r.add(c)
	}
	section, item := r.find(c.ID)
	if item == nil {
		return reject(RuleItem, "there is no item %q", c.ID)
	}
	if section != c.Section {
		return reject(RuleItem, "item %s is in section %s, not in %s", c.ID, section, c.Section)
	}
	if c.Op == Close {
		return r.close(section, *item, c)
	}
	return r.update(section, item, c)
}

func (r *reducer) find(id string) (Section, *Item) {
	for _, s := range Sections() {
		items := *r.m.section(s)
		for i := range items {
			if items[i].ID == id {
				return s, &items[i]
			}
		}
	}
	return "", nil
}

// usualStatus is the status of an item that was added without one.
func usualStatus(s Section) Status {
	switch s {
	case Decisions:
		return Decision
	case Unknowns:
		return Unknown
	}
	return Fact
}

func (r *reducer) add(c Change) *rejected {
	if c.ID != "" {
		return reject(RuleShape, "an add has no id: %q was given; use update to change that item", c.ID)
	}
	if c.Status == "" {
		c.Status = usualStatus(c.Section)
	}
	if why := checkKind(&c); why != nil {
		return why
	}
	if why := r.checkSources(c.Sources, nil); why != nil {
		return why
	}
	e, why := r.evidence(c, speakers(c.Section))
	if why != nil {
		return why
	}
	if e.sentence == "" && quoted(c.Section) {
		return reject(RuleQuote, "%s need a quote: copy the sentence from the source", c.Section)
	}
	if why := e.supports(c, ""); why != nil {
		return why
	}
	if c.Section == Unknowns && c.Status.Firm() {
		return reject(RuleStatus, "an unknown is a hypothesis or unknown, not a %s", c.Status)
	}
	if c.Status.Firm() {
		if why := r.certain(c, e); why != nil {
			return why
		}
	}
	item := Item{Text: c.Text, Status: c.Status, Sources: r.bySequence(c.Sources, e.source), Quote: e.sentence, Kind: c.Kind, Handle: c.Handle}
	if c.Section == Artifacts {
		if why := r.identity(c, e, &item); why != nil {
			return why
		}
	}
	if c.Section == Tests {
		if kind, _ := outcome(e.sentence); kind != c.Kind {
			return reject(RuleStatus, "the quote does not say that the test %s: %q", c.Kind, clip(e.sentence, 120))
		}
	}
	item.Negative = r.negative(c.Section, e.line(c.Text))
	return r.put(c.Section, item)
}

// quoted tells whether the items of section s must quote their source.
func quoted(s Section) bool { return s == Constraints || s == Artifacts || s == Tests }

// speakers returns whose word an item of section s can rest on. What a tool
// prints may be anybody's text: it never asks for something.
func speakers(s Section) []Role {
	switch s {
	case Goal, Constraints:
		return []Role{RoleUser}
	case Decisions, OpenTasks:
		return []Role{RoleUser, RoleAssistant}
	}
	return []Role{RoleUser, RoleAssistant, RoleTool}
}

// checkKind checks kind and handle against the section.
func checkKind(c *Change) *rejected {
	switch c.Section {
	case Artifacts:
		if strings.TrimSpace(c.Handle) == "" || c.Handle != normalise(c.Handle) {
			return reject(RuleIdentity, "an artifact needs its exact handle, not %q", c.Handle)
		}
		if !slices.Contains(ArtifactKinds(), c.Kind) {
			return reject(RuleShape, "the kind of an artifact is %s, not %q", oneOf(ArtifactKinds()), c.Kind)
		}
		return nil
	case Tests:
		if !slices.Contains(TestKinds(), c.Kind) {
			return reject(RuleShape, "the kind of a test is %s, not %q", oneOf(TestKinds()), c.Kind)
		}
	default:
		c.Kind = ""
	}
	if c.Text == "" {
		return reject(RuleShape, "the text is empty")
	}
	if c.Handle != "" {
		return reject(RuleShape, "only artifacts have a handle")
	}
	return nil
}

// identity checks that the handle of an artifact stands in its quote as a whole,
// and in its source, of which the quote could be a piece.
func (r *reducer) identity(c Change, e *evidence, item *Item) *rejected {
	kind, handle := classify(c.Handle)
	switch {
	case !occurs(c.Quote, c.Handle) || !isName(r.passage(e.source).norm, c.Handle):
		return reject(RuleIdentity, "the handle %q is not in the quote as a whole name", c.Handle)
	case handle != "" && handle != c.Handle:
		return reject(RuleIdentity, "the handle of %q is %q", c.Handle, handle)
	case handle != "":
		item.Kind = kind
	case c.Kind == Other && !identifier(c.Handle) && !strings.ContainsAny(c.Handle, "/:#-."):
		return reject(RuleIdentity, "%q is a word, not the name of an artifact", c.Handle)
	}
	item.Quote = around(e.sentence, c.Handle)
	return nil
}

// certain checks that an added firm item does not make certain what its source
// only supposes, or what the manifest holds as not certain.
func (r *reducer) certain(c Change, e *evidence) *rejected {
	if line := e.line(c.Text); line != "" && !r.read(line).firm() {
		return reject(RuleStatus, "the source supposes or asks, so this is no %s: %q", c.Status, clip(line, 120))
	}
	if e.sentence != "" {
		return nil
	}
	same := sameText(c.Text)
	for _, item := range r.m.Items() {
		if !item.Status.Firm() && sameText(item.Text) == same {
			return reject(RuleStatus, "item %s has it as a %s: update it, with a quote that confirms it", item.ID, item.Status)
		}
	}
	return nil
}

func (r *reducer) negative(s Section, line string) bool {
	return (s == Constraints || s == Decisions) && r.read(line).has(cueNegative)
}

// maxAdded is how many items a model may add to one section at once: one that
// gives back what it read would fill the memory with it.
const maxAdded = 64

// put adds an item, or unites it with the one that is the same.
func (r *reducer) put(s Section, item Item) *rejected {
	items := r.m.section(s)
	for i := range *items {
		old := &(*items)[i]
		if s == Artifacts && old.Handle == item.Handle || s != Artifacts && sameText(old.Text) == sameText(item.Text) {
			unite(old, &item)
			return nil
		}
	}
	if r.added[s]++; r.added[s] > maxAdded {
		return reject(RuleKeep, "more than %d new items for %s: say what matters", maxAdded, s)
	}
	item.ID = r.newID(s)
	*items = append(*items, item)
	return nil
}

// unite adds the sources of item to old. Status, kind and handle stay as they are.
func unite(old, item *Item) {
	old.Sources = boundSources(append(slices.Clone(old.Sources), item.Sources...))
	if old.Quote == "" && item.Quote != "" {
		old.quoteFrom(item)
	}
	if old.Text == "" {
		old.Text = item.Text
	}
}

// quoteFrom takes over the quote of other, and puts the source that has it first.
func (i *Item) quoteFrom(other *Item) {
	i.Quote = other.Quote
	i.Sources = boundSources(append(other.Sources[:1:1], i.Sources...))
}

// bySequence orders sources as the conversation has them, with first in front
// because it holds the quote, and bounds them.
func (r *reducer) bySequence(ids []string, first string) []string {
	out := slices.Clone(ids)
	slices.SortStableFunc(out, func(a, b string) int { return r.order[a] - r.order[b] })
	if first != "" {
		out = append([]string{first}, out...)
	}
	return boundSources(out)
}

func (r *reducer) checkSources(ids, known []string) *rejected {
	if len(ids) == 0 {
		return reject(RuleSources, "no source: name the covered messages that say so")
	}
	for _, id := range ids {
		if _, ok := r.covered[id]; !ok && !slices.Contains(known, id) {
			return reject(RuleSources, "the source %q is not among the covered messages", id)
		}
	}
	return nil
}

func (r *reducer) update(s Section, item *Item, c Change) *rejected {
	if c.Handle != "" && c.Handle != item.Handle {
		return reject(RuleIdentity, "item %s is %q: another handle is another artifact, add it", item.ID, item.Handle)
	}
	if c.Kind != "" && c.Kind != item.Kind {
		return reject(RuleIdentity, "item %s is of kind %q, which does not change", item.ID, item.Kind)
	}
	if why := r.checkSources(c.Sources, item.Sources); why != nil {
		return why
	}
	e, why := r.evidence(c, speakers(s))
	if why != nil {
		return why
	}
	next := *item
	if c.Text != "" && c.Text != item.Text {
		if why := r.rewrite(s, item, c, e); why != nil {
			return why
		}
		next.Text = c.Text
		next.Negative = r.negative(s, c.Text)
	}
	if c.Status != "" && c.Status != item.Status {
		if why := r.restate(s, item, c, e); why != nil {
			return why
		}
		next.Status = c.Status
	}
	if next.Text != item.Text || next.Status != item.Status {
		if (s == Constraints || s == Goal) && e.sentence == "" {
			return reject(RuleQuote, "only a quoted new message of the user changes a goal or a constraint")
		}
	}
	next.Sources = r.mergeSources(item.Sources, c.Sources)
	if (next.Text != item.Text || next.Status != item.Status) && e.sentence != "" && s != Artifacts && s != Tests {
		next.quoteFrom(&Item{Quote: e.sentence, Sources: []string{e.source}})
	}
	*item = next
	return nil
}

// mergeSources adds covered sources to those an item has.
func (r *reducer) mergeSources(old, add []string) []string {
	fresh := slices.DeleteFunc(slices.Clone(add), func(id string) bool { return slices.Contains(old, id) })
	return boundSources(append(slices.Clone(old), r.bySequence(fresh, "")...))
}

// rewrite checks a new text for an item: it says no less than the old one, and
// nothing that its sources do not say.
func (r *reducer) rewrite(s Section, item *Item, c Change, e *evidence) *rejected {
	for _, name := range names(item.Text) {
		if !occurs(c.Text, name) {
			return reject(RuleKeep, "the new text of %s leaves out %q: close it and add another, if it is another", item.ID, name)
		}
	}
	old := contentWords(item.Text)
	if kept := holds(strings.ToLower(c.Text), old); 2*kept < len(old) {
		return reject(RuleKeep, "the new text of %s keeps %d of %d words: close it and add another, if it is another", item.ID, kept, len(old))
	}
	if quoted(s) && s != Artifacts && e.sentence == "" {
		return reject(RuleQuote, "a new text for %s needs a quote from a new source", item.ID)
	}
	if e.sentence != "" && (s == Constraints || s == Goal) && 2*holds(strings.ToLower(e.sentence), old) < len(old) {
		return reject(RuleGrounds, "the quote is not about %s: %q", item.ID, clip(item.Text, 80))
	}
	if why := e.supports(c, item.Text+" "+item.Quote+" "+item.Handle); why != nil {
		return why
	}
	if e.sentence == "" && !r.faithful(c.Text, item.Text) {
		return reject(RuleNegation, "the new text of %s loses or adds a negation without a quote", item.ID)
	}
	if s == Tests {
		if kind, _ := outcome(c.Text); kind != "" && kind != item.Kind {
			return reject(RuleStatus, "item %s is a test that %s", item.ID, item.Kind)
		}
	}
	return nil
}

// restate checks a change of status: it takes a new quote about the item, and to
// make it firm one that neither supposes nor asks.
func (r *reducer) restate(s Section, item *Item, c Change, e *evidence) *rejected {
	if e.sentence == "" {
		return reject(RuleStatus, "item %s is a %s: a change to %s needs a quote from a new source", item.ID, item.Status, c.Status)
	}
	if words := contentWords(item.Text); 2*holds(strings.ToLower(e.sentence), words) < len(words) || !sameNames(item, e.sentence) {
		return reject(RuleGrounds, "the quote is not about %s: %q", item.ID, clip(item.Text, 80))
	}
	reading, raised := r.read(e.sentence), c.Status.Firm() && !item.Status.Firm()
	if raised && !reading.firm() {
		return reject(RuleStatus, "the quote supposes or asks, so %s stays a %s: %q", item.ID, item.Status, clip(e.sentence, 120))
	}
	if (raised || s == Constraints || s == Goal) && reading.has(cueNegative) != r.read(item.Text).has(cueNegative) {
		return reject(RuleNegation, "the quote says the opposite of %s: %q", item.ID, clip(e.sentence, 120))
	}
	return nil
}

func (r *reducer) close(s Section, item Item, c Change) *rejected {
	switch s {
	case Artifacts:
		return reject(RuleKeep, "identities are kept: say in the text of %s what became of it", item.ID)
	case Completed:
		return reject(RuleKeep, "completed work is kept: %s is retired when space is needed", item.ID)
	}
	if why := r.checkSources(c.Sources, item.Sources); why != nil {
		return why
	}
	e, why := r.evidence(c, closers(s))
	if why != nil {
		return why
	}
	if e.sentence == "" {
		return reject(RuleQuote, "closing %s needs a quote from a newly covered message that shows it", item.ID)
	}
	if why := r.ends(s, item, e); why != nil {
		return why
	}
	items := r.m.section(s)
	*items = slices.DeleteFunc(*items, func(i Item) bool { return i.ID == item.ID })
	item.Sources = r.mergeSources(item.Sources, c.Sources)
	if s == OpenTasks && r.read(e.sentence).has(cueCompleted|cueResult) {
		item.Status = Fact
		item.quoteFrom(&Item{Quote: e.sentence, Sources: []string{e.source}})
		r.m.Completed = append(r.m.Completed, item)
		return nil
	}
	r.m.retire(s, item, ByClose)
	return nil
}

// sameNames tells whether a sentence can be about an item: if it names something
// at all, it names all that the item does. "Stage 10 is done" ends no work on
// stage 11.
func sameNames(item *Item, sentence string) bool {
	if len(names(sentence)) == 0 {
		return true
	}
	for _, name := range names(item.Text) {
		if !occurs(sentence, name) {
			return false
		}
	}
	return true
}

// closers returns whose word can end an item of section s.
func closers(s Section) []Role {
	if s == Goal || s == Constraints {
		return []Role{RoleUser}
	}
	if s == Tests || s == Unknowns {
		return []Role{RoleUser, RoleAssistant, RoleTool}
	}
	return []Role{RoleUser, RoleAssistant}
}

// ends checks that a quote shows the end of an item: it is about it, is certain,
// and says that it is done or no longer holds.
func (r *reducer) ends(s Section, item Item, e *evidence) *rejected {
	reading := r.read(e.sentence)
	if !reading.firm() {
		return reject(RuleStatus, "the quote supposes or asks, so it does not close %s: %q", item.ID, clip(e.sentence, 120))
	}
	words := contentWords(item.Text)
	near, far := holds(strings.ToLower(e.sentence), words), holds(r.passage(e.source).folded(), words)
	strict := s == Goal || s == Constraints
	if near == 0 || 2*far < len(words) || strict && 2*near < len(words) || !sameNames(&item, e.sentence) {
		return reject(RuleGrounds, "the quote is not about %s: %q", item.ID, clip(item.Text, 80))
	}
	// A phrase that the item itself has ("never skip a test") takes nothing back.
	lifted := false
	own := r.read(item.Text + " " + item.Quote).lifts
	for _, l := range reading.lifts {
		lifted = lifted || !slices.Contains(own, l)
	}
	done := reading.has(cueCompleted|cueResult) && !reading.has(cueNegative|cueOpen|cueRest)
	switch {
	case lifted:
		return nil
	case s == Constraints || s == Decisions:
		return reject(RuleKeep, "the quote does not take %s back: %q", item.ID, clip(e.sentence, 120))
	case (s == OpenTasks || s == Goal) && !done:
		return reject(RuleKeep, "the quote does not say that %s is done or dropped: %q", item.ID, clip(e.sentence, 120))
	case sameText(e.sentence) == sameText(item.Text):
		return reject(RuleKeep, "the quote only repeats %s", item.ID)
	}
	return nil
}
