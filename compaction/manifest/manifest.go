// Package manifest is the typed memory that a compaction writes in place of the
// messages it covers (design.md, "Compaction"; spec/checkpoints.md, step 5).
//
// A model proposes changes, [Reduce] applies those that hold against the covered
// text, and what [Extract] finds by rule is merged in whatever the model said.
// So a model that forgets loses nothing, and what it invents is not taken in.
// Everything here is a pure function: no clock, no chance, no I/O.
package manifest

import (
	"iter"
	"slices"
)

// Version is the format of [Manifest] that this program writes.
const Version = 1

// Limits of a manifest. Lengths are bytes of UTF-8.
const (
	// MaxText is the longest text of one item.
	MaxText = 600
	// MaxQuote is the longest quote, and the longest handle.
	MaxQuote = 1200
	// MaxNarrative is the longest narrative; a longer one is clipped with a mark.
	MaxNarrative = 2400
	// MaxSources is how many sources one item names. An item that is seen again
	// and again keeps the first one of the list and the latest.
	MaxSources = 16
	// MaxRetired is how many retired items are listed one by one.
	MaxRetired = 64
	// MaxItems is how many items of one section [Reduce] takes from the extractor
	// unless [Options] says otherwise.
	MaxItems = 256
)

// EditSource is the source of an item that a person wrote into a manifest: it
// stands where other items name a node.
const EditSource = "edit"

// Message is one covered node as the summariser sees it: its secrets are masked
// (see [Mask]), long tool results may be clipped.
type Message struct {
	// ID is the id of the node in the ledger.
	ID   string `json:"id"`
	Role Role   `json:"role"`
	// Name is the tool's name, for role tool.
	Name string `json:"name,omitzero"`
	// CallID is the id of the tool call, for role tool.
	CallID string `json:"call_id,omitzero"`
	Text   string `json:"text"`
	// IsError says that the tool call failed.
	IsError bool `json:"is_error,omitzero"`
}

// Role says who wrote a covered message. A tool's text is never trusted to state
// goals, constraints or decisions.
type Role string

// The roles of covered messages.
const (
	RoleUser      Role = "user"
	RoleAssistant Role = "assistant"
	RoleTool      Role = "tool"
)

// Section names a part of the manifest.
type Section string

// The sections, in the order in which they are rendered.
const (
	Goal        Section = "goal"
	Constraints Section = "constraints"
	Decisions   Section = "decisions"
	Completed   Section = "completed"
	OpenTasks   Section = "open_tasks"
	Artifacts   Section = "artifacts"
	Tests       Section = "tests"
	Unknowns    Section = "unknowns"
)

// Sections returns all sections in the order in which they are rendered.
func Sections() []Section {
	return []Section{Goal, Constraints, Decisions, Completed, OpenTasks, Artifacts, Tests, Unknowns}
}

// Status is how far an item can be relied on.
type Status string

// The statuses. Fact and decision are firm: see [Status.Firm].
const (
	Fact       Status = "fact"
	Hypothesis Status = "hypothesis"
	Decision   Status = "decision"
	Unknown    Status = "unknown"
)

// Statuses returns all statuses.
func Statuses() []Status { return []Status{Fact, Hypothesis, Decision, Unknown} }

// Firm tells whether the status claims certainty. Only a quoted, newly covered
// source raises an item from a status that does not to one that does.
func (s Status) Firm() bool { return s == Fact || s == Decision }

// Kind says what an artifact or a test result is.
type Kind string

// The kinds of artifacts and of test results. Items of other sections have none.
const (
	Path   Kind = "path"
	Hash   Kind = "hash"
	CallID Kind = "call_id"
	Branch Kind = "branch"
	URL    Kind = "url"
	Stored Kind = "artifact" // an artifact:// handle
	Other  Kind = "other"
	Passed Kind = "passed"
	Failed Kind = "failed"
)

// ArtifactKinds returns the kinds that an artifact may have.
func ArtifactKinds() []Kind { return []Kind{Path, Hash, CallID, Branch, URL, Stored, Other} }

// TestKinds returns the kinds that a test result may have.
func TestKinds() []Kind { return []Kind{Passed, Failed} }

// Item is one remembered thing.
type Item struct {
	// ID names the item as long as it exists, in whatever section: c3.
	ID   string `json:"id"`
	Text string `json:"text"`
	// Status is never raised without a quoted source.
	Status Status `json:"status"`
	// Sources are the ids of the nodes that say so, at most [MaxSources]. If there
	// is a quote, the first one has it.
	Sources []string `json:"sources"`
	// Quote is word for word, white space aside, from one of the sources.
	// Constraints, artifacts and tests always have one.
	Quote string `json:"quote"`
	// Kind is set for artifacts and tests.
	Kind Kind `json:"kind"`
	// Handle is the exact identity of an artifact. Two handles never merge.
	Handle string `json:"handle"`
	// Negative marks a prohibition.
	Negative bool `json:"negative"`
}

// SourceRange is the stretch of the conversation that the manifest speaks for.
type SourceRange struct {
	FirstID string `json:"first_id"`
	LastID  string `json:"last_id"`
	// Count is how many nodes were read, tool nodes included.
	Count int64 `json:"count"`
}

// Verbatim is a node that is carried on word for word: a pinned one, or the
// user's text of a turn that the cut went through.
type Verbatim struct {
	ID   string `json:"id"`
	Role Role   `json:"role"`
	Text string `json:"text"`
}

// Reason says why an item is no longer in its section.
type Reason string

// Why an item was retired.
const (
	// ForSpace: the manifest had outgrown its share (see [Fit]).
	ForSpace Reason = "space"
	// ByClose: a change closed it, with proof.
	ByClose Reason = "closed"
)

// Retired is what is left of an item that is no longer in its section.
type Retired struct {
	Section Section `json:"section"`
	ID      string  `json:"id"`
	// Text is the beginning of the item's text.
	Text   string `json:"text"`
	Reason Reason `json:"reason"`
}

// Manifest is the memory of one summary. Every section is always there, and no
// array is null. A Manifest is a value: no function here changes one it is given.
type Manifest struct {
	Version     int         `json:"version"`
	Goal        []Item      `json:"goal"`
	Constraints []Item      `json:"constraints"`
	Decisions   []Item      `json:"decisions"`
	Completed   []Item      `json:"completed"`
	OpenTasks   []Item      `json:"open_tasks"`
	Artifacts   []Item      `json:"artifacts"`
	Tests       []Item      `json:"tests"`
	Unknowns    []Item      `json:"unknowns"`
	SourceRange SourceRange `json:"source_range"`
	// Narrative is a short account that a model wrote. It is shown as such, and
	// nothing is derived from it.
	Narrative string     `json:"narrative"`
	Pinned    []Verbatim `json:"pinned"`
	// Retired lists what was dropped or closed, the latest last; RetiredUnlisted
	// counts the older ones, which are listed no more.
	Retired         []Retired `json:"retired"`
	RetiredUnlisted int64     `json:"retired_unlisted"`
	// Unlisted counts what the extractor found and left out because a message or
	// the section had too many.
	Unlisted int64 `json:"unlisted"`
	// LastItem is the highest number that an item's id has had, so that no id is
	// used twice.
	LastItem int64 `json:"last_item"`
}

// Section returns the items of section s, and nil for an unknown section. The
// slice is the manifest's own.
func (m *Manifest) Section(s Section) []Item {
	if p := m.section(s); p != nil {
		return *p
	}
	return nil
}

func (m *Manifest) section(s Section) *[]Item {
	switch s {
	case Goal:
		return &m.Goal
	case Constraints:
		return &m.Constraints
	case Decisions:
		return &m.Decisions
	case Completed:
		return &m.Completed
	case OpenTasks:
		return &m.OpenTasks
	case Artifacts:
		return &m.Artifacts
	case Tests:
		return &m.Tests
	case Unknowns:
		return &m.Unknowns
	}
	return nil
}

// Items ranges over every item, section by section.
func (m *Manifest) Items() iter.Seq2[Section, Item] {
	return func(yield func(Section, Item) bool) {
		for _, s := range Sections() {
			for _, item := range *m.section(s) {
				if !yield(s, item) {
					return
				}
			}
		}
	}
}

// Find returns the item with this id, and false if there is none.
func (m *Manifest) Find(id string) (Section, Item, bool) {
	for s, item := range m.Items() {
		if item.ID == id {
			return s, item, true
		}
	}
	return "", Item{}, false
}

// Empty tells whether the manifest has no item at all. Such a summary stands for
// nothing and must be refused (fault 3).
func (m *Manifest) Empty() bool {
	for range m.Items() {
		return false
	}
	return true
}

// clone returns a copy that shares nothing with m. A nil manifest gives an empty
// one.
func (m *Manifest) clone() *Manifest {
	if m == nil {
		m = &Manifest{}
	}
	c := *m
	c.Version = Version
	for _, s := range Sections() {
		items := make([]Item, 0, len(*m.section(s)))
		for _, item := range *m.section(s) {
			item.Sources = slices.Clone(item.Sources)
			items = append(items, item)
		}
		*c.section(s) = items
	}
	c.Pinned = append([]Verbatim{}, m.Pinned...)
	c.Retired = append([]Retired{}, m.Retired...)
	return &c
}

// retire takes note that an item left its section.
func (m *Manifest) retire(s Section, item Item, why Reason) {
	text := item.Text
	if text == "" {
		text = item.Handle
	}
	m.Retired = append(m.Retired, Retired{Section: s, ID: item.ID, Text: clip(text, 80), Reason: why})
	m.boundRetired(MaxRetired)
}

// boundRetired keeps the latest n entries of the list and counts the others.
func (m *Manifest) boundRetired(n int) {
	if over := len(m.Retired) - n; over > 0 {
		m.RetiredUnlisted += int64(over)
		m.Retired = slices.Clone(m.Retired[over:])
	}
}
