package manifest

import (
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"

	"convls/protocol"
)

// Op is what a change does.
type Op string

// The operations.
const (
	// Add brings a new item.
	Add Op = "add"
	// Update changes text, status, quote or sources of the item ID.
	Update Op = "update"
	// Close ends the item ID. An open task becomes a completed one.
	Close Op = "close"
)

// Ops returns all operations.
func Ops() []Op { return []Op{Add, Update, Close} }

// Change is one proposal about a manifest.
type Change struct {
	Op      Op      `json:"op"`
	Section Section `json:"section"`
	// ID names the item, for update and close.
	ID   string `json:"id"`
	Text string `json:"text"`
	// Status of an update may be empty: it stays as it is. Empty in an add, it is
	// what is usual in the section.
	Status  Status   `json:"status"`
	Sources []string `json:"sources"`
	Quote   string   `json:"quote"`
	Kind    Kind     `json:"kind"`
	Handle  string   `json:"handle"`
}

// Changes is what a summariser answers.
type Changes struct {
	Changes   []Change `json:"changes"`
	Narrative string   `json:"narrative"`
}

// maxChanges and maxAnswer bound what [ParseChanges] accepts.
const (
	maxChanges = 1000
	maxAnswer  = 4 << 20
)

// noKind stands for the empty kind in the schema: Gemini refuses an empty string
// in an enum.
const noKind Kind = "none"

// Schema returns the JSON schema of [Changes], for providers with structured
// output. It keeps to what OpenAI's strict mode, Anthropic's tool input and
// Gemini's response schema all take: objects are closed, every property is
// required, enums hold no empty string, and no other keyword is used.
func Schema() protocol.Raw {
	type object = map[string]any
	text := func(description string) object {
		return object{"type": "string", "description": description}
	}
	properties := object{
		"op":      object{"type": "string", "enum": Ops(), "description": "add a new item, update or close one of the previous manifest"},
		"section": object{"type": "string", "enum": Sections(), "description": "section of the item"},
		"id":      text("id of the item in the previous manifest; empty for add"),
		"text":    text("what is to be remembered, in the words of the source; empty for close"),
		"status":  object{"type": "string", "enum": Statuses(), "description": "how certain the source is: what it only supposes is a hypothesis"},
		"sources": object{"type": "array", "items": object{"type": "string"}, "description": "ids of the covered messages that say so"},
		"quote":   text("word for word from one of the sources, whole sentences; required for constraints, artifacts, tests, for every close, and for a change of status"),
		"kind":    object{"type": "string", "enum": slices.Concat([]Kind{noKind}, ArtifactKinds(), TestKinds()), "description": "of an artifact or a test; none elsewhere"},
		"handle":  text("exact path, hash, id, branch or URL of an artifact; empty elsewhere"),
	}
	schema := object{
		"type":                 "object",
		"additionalProperties": false,
		"required":             []string{"changes", "narrative"},
		"properties": object{
			"changes": object{"type": "array", "items": object{
				"type":                 "object",
				"additionalProperties": false,
				"required":             []string{"op", "section", "id", "text", "status", "sources", "quote", "kind", "handle"},
				"properties":           properties,
			}},
			"narrative": text("a few sentences on where the work stands; may be empty"),
		},
	}
	raw, err := protocol.Marshal(schema)
	if err != nil { // maps of strings can not fail
		panic(err)
	}
	return raw
}

// ParseReason says why an answer is no set of changes.
type ParseReason string

// The reasons of a [ParseError].
const (
	// AnswerEmpty: nothing, or white space.
	AnswerEmpty ParseReason = "empty"
	// AnswerScratch: the answer has a block of private reasoning (fault 11).
	AnswerScratch ParseReason = "scratch"
	// AnswerNotJSON: no JSON object, or more than one, or text around it.
	AnswerNotJSON ParseReason = "not_json"
	// AnswerInvalid: JSON of another shape.
	AnswerInvalid ParseReason = "invalid_schema"
	// AnswerTooLarge: more changes or bytes than anybody needs.
	AnswerTooLarge ParseReason = "too_large"
)

// ParseError says what is wrong with a summariser's answer, in words that can be
// sent back to it for one repair.
type ParseError struct {
	Reason  ParseReason
	Message string
}

// Error returns the message.
func (e *ParseError) Error() string { return e.Message }

func parseErrorf(reason ParseReason, format string, args ...any) error {
	return &ParseError{Reason: reason, Message: fmt.Sprintf(format, args...)}
}

// ParseChanges reads a summariser's answer: one JSON object, bare or inside one
// ```json fence, with nothing but white space around it. Every error is a
// [*ParseError].
func ParseChanges(text string) (Changes, error) {
	body := strings.TrimSpace(text)
	if body == "" {
		return Changes{}, parseErrorf(AnswerEmpty, "the answer is empty: expected one JSON object with changes and narrative")
	}
	if len(body) > maxAnswer {
		return Changes{}, parseErrorf(AnswerTooLarge, "the answer has %d bytes, at most %d are read", len(body), maxAnswer)
	}
	if tag := scratchTag(body); tag != "" {
		return Changes{}, parseErrorf(AnswerScratch, "the answer has a private block <%s>: answer with the JSON object alone", tag)
	}
	if rest, ok := strings.CutPrefix(body, "```"); ok {
		rest = strings.TrimPrefix(rest, "json")
		inner, ok := strings.CutSuffix(rest, "```")
		if !ok {
			return Changes{}, parseErrorf(AnswerNotJSON, "the ``` fence is not closed at the end of the answer: expected one JSON object and nothing after it")
		}
		body = strings.TrimSpace(inner)
	}
	if !strings.HasPrefix(body, "{") {
		return Changes{}, parseErrorf(AnswerNotJSON, "the answer begins with %q: expected one JSON object and no text before it", clip(body, 20))
	}
	var answer struct {
		Changes   *[]Change `json:"changes"`
		Narrative string    `json:"narrative"`
	}
	// Unknown members are refused: a misspelt one would be lost without a word.
	if err := json.Unmarshal([]byte(body), &answer, json.RejectUnknownMembers(true)); err != nil {
		reason := AnswerInvalid
		if !protocol.Raw(body).IsValid() {
			reason = AnswerNotJSON
		}
		return Changes{}, parseErrorf(reason, "the answer is not one JSON object of the schema: %v", err)
	}
	if answer.Changes == nil {
		return Changes{}, parseErrorf(AnswerInvalid, "the member changes is missing: expected an array, which may be empty")
	}
	if n := len(*answer.Changes); n > maxChanges {
		return Changes{}, parseErrorf(AnswerTooLarge, "the answer has %d changes, at most %d are read", n, maxChanges)
	}
	if tag := scratchTag(strings.TrimSpace(answer.Narrative)); tag != "" {
		return Changes{}, parseErrorf(AnswerScratch, "the narrative has a private block <%s>: leave it out", tag)
	}
	for i := range *answer.Changes {
		c := &(*answer.Changes)[i]
		if c.Kind == noKind {
			c.Kind = ""
		}
		if err := c.check(); err != nil {
			return Changes{}, parseErrorf(AnswerInvalid, "changes[%d]: %v", i, err)
		}
	}
	return Changes{Changes: *answer.Changes, Narrative: answer.Narrative}, nil
}

// check returns what is wrong with the words of the change: what can be told
// without a manifest.
func (c *Change) check() error {
	switch {
	case !slices.Contains(Ops(), c.Op):
		return fmt.Errorf("unknown op %q: expected %s", c.Op, oneOf(Ops()))
	case !slices.Contains(Sections(), c.Section):
		return fmt.Errorf("unknown section %q: expected %s", c.Section, oneOf(Sections()))
	case c.Status != "" && !slices.Contains(Statuses(), c.Status):
		return fmt.Errorf("unknown status %q: expected %s", c.Status, oneOf(Statuses()))
	case c.Kind != "" && !slices.Contains(ArtifactKinds(), c.Kind) && !slices.Contains(TestKinds(), c.Kind):
		return fmt.Errorf("unknown kind %q: expected %s", c.Kind, oneOf(slices.Concat([]Kind{noKind}, ArtifactKinds(), TestKinds())))
	case c.Op != Add && c.ID == "":
		return fmt.Errorf("op %s needs the id of the item", c.Op)
	}
	return nil
}

func oneOf[T ~string](values []T) string {
	names := make([]string, len(values))
	for i, v := range values {
		names[i] = string(v)
	}
	return strings.Join(names, ", ")
}

// scratchTag returns the name of the private block that text begins with, or
// has as an element of its own, or "".
func scratchTag(text string) string {
	if !strings.HasPrefix(text, "<") {
		return ""
	}
	for _, tag := range []string{"analysis", "think", "thinking", "reasoning", "scratchpad"} {
		if len(text) > len(tag)+1 && strings.EqualFold(text[1:1+len(tag)], tag) && strings.ContainsRune(" >\n\t", rune(text[1+len(tag)])) {
			return tag
		}
	}
	return ""
}
