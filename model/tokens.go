package model

import (
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/tiktoken-go/tokenizer"

	"convls/protocol"
)

// The sources of a count, as protocol.Budget.Source spells them.
const (
	SourceProvider  = "provider"
	SourceTokenizer = "tokenizer"
	SourceEstimate  = "estimate"
)

const (
	// messageTokens is what a message takes beside its content: role and borders
	// (OpenAI cookbook, "How to count tokens with tiktoken").
	messageTokens = 4
	// promptTokens is what every prompt takes: the beginning of the answer.
	promptTokens = 3
	// callTokens is what a tool call or a result takes beside name and content.
	callTokens = 8
	// anthropicToolTokens is the system prompt that Anthropic adds when there are
	// tools (its documentation names 313 to 346).
	anthropicToolTokens = 330
)

// Counter counts the tokens that a model reads: with the model's tokeniser where
// it is at hand, else by an estimate. What Text, Parts, Tools and Request return
// depends on nothing but the content and the ID, so it can be stored beside the
// content. Adjust then corrects a sum by what the provider has reported so far.
// Its methods are safe for concurrent use.
type Counter struct {
	id       string
	provider string
	kind     string
	encoding *encoding // nil: estimate

	mu      sync.Mutex
	ratio   float64
	samples int
}

// newCounter makes a counter for a model of a provider.
func newCounter(provider, kind, model string, e *encodings) *Counter {
	c := &Counter{provider: provider, kind: kind, ratio: 1}
	c.id = scriptID
	switch kind {
	case KindOffline:
		c.encoding = &e.o200k
	case KindOpenAI:
		c.encoding = e.of(model)
	}
	if c.encoding != nil {
		c.id = string(c.encoding.name)
	}
	c.id += "/" + kind
	if kind == KindAnthropic && provider != KindAnthropic {
		c.id += "/" + provider // whose reasoning is counted
	}
	return c
}

// ID names the way of counting: counts under one ID are comparable. Calibration
// does not change it.
func (c *Counter) ID() string { return c.id }

// Source says where adjusted counts come from: "tokenizer", "estimate", or
// "provider" once the provider's usage has corrected them.
func (c *Counter) Source() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.samples > 0:
		return SourceProvider
	case c.encoding != nil:
		return SourceTokenizer
	}
	return SourceEstimate
}

// Exact reports whether the model's own tokeniser counts.
func (c *Counter) Exact() bool { return c.encoding != nil }

// Text returns how many tokens a text takes.
func (c *Counter) Text(s string) int {
	if s == "" {
		return 0
	}
	if c.encoding != nil {
		return c.encoding.count(s)
	}
	n := estimateText(s)
	if c.kind == KindAnthropic {
		// Its documentation reckons with 3.5 characters a token where others have 4.
		n *= 4 / 3.5
	}
	return int(n + 0.999)
}

// Parts returns how many tokens a message with these parts takes, its borders
// included; 0 for no parts. Reasoning counts only where it is sent back: for
// Anthropic, with this provider's signature.
func (c *Counter) Parts(parts []protocol.Part) int {
	if len(parts) == 0 {
		return 0
	}
	n := messageTokens
	for _, p := range parts {
		switch p.Type {
		case protocol.PartImage:
			n += imageTokens(c.kind, p.Data)
		case protocol.PartReasoning:
			if c.kind == KindAnthropic && p.Signature != "" && p.Provider == c.provider {
				n += c.Text(p.Text)
			}
		case protocol.PartToolCall:
			if p.Name != "" || len(p.Arguments) > 0 {
				n += callTokens + c.Text(p.Name) + c.Text(string(p.Arguments))
			}
		case protocol.PartToolResult:
			n += callTokens + c.Text(p.Text)
		default:
			n += c.Text(p.Text)
		}
	}
	return n
}

// Tools returns how many tokens the declarations of tools take.
func (c *Counter) Tools(tools []protocol.ToolDeclaration) int {
	n := 0
	for _, t := range tools {
		n += callTokens + c.Text(t.Name) + c.Text(t.Description) + c.Text(string(t.Schema))
	}
	if n > 0 && c.kind == KindAnthropic {
		n += anthropicToolTokens
	}
	return n
}

// Request returns how many tokens a whole prompt takes, tools and the schema of
// the answer included.
func (c *Counter) Request(req Request) int64 {
	n := promptTokens + c.Tools(req.Tools) + c.Text(string(req.Schema))
	if req.System != "" {
		n += messageTokens + c.Text(req.System)
	}
	for _, m := range req.Messages {
		n += c.Parts(m.Parts)
	}
	return int64(n)
}

const (
	// The correction never goes beyond these: a wrong report must not make a full
	// window look empty (fault 40) or an empty one full (fault 41).
	minRatio, maxRatio = 0.25, 4.0
	// calibrationFloor is the prompt below which overhead says more than content.
	calibrationFloor = 64
)

// Calibrate corrects the counter by one call: what Request had returned for it,
// and the input tokens that the provider reported, those from its cache
// included. Later calls weigh at least a quarter.
func (c *Counter) Calibrate(counted, reported int64) {
	if counted < calibrationFloor || reported <= 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.samples++
	seen := min(max(float64(reported)/float64(counted), minRatio), maxRatio)
	weight := max(0.25, 1/float64(c.samples))
	c.ratio += weight * (seen - c.ratio)
}

// Adjust corrects a count, or a sum of counts, by what the provider has reported
// for this model so far.
func (c *Counter) Adjust(tokens int64) int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return int64(float64(tokens)*c.ratio + 0.5)
}

// encodings are the tokenisers at hand. Each is loaded when it first counts:
// 10 to 25 ms and a few MB that starting up does not pay.
type encodings struct{ o200k, cl100k encoding }

func newEncodings() *encodings {
	return &encodings{o200k: encoding{name: tokenizer.O200kBase}, cl100k: encoding{name: tokenizer.Cl100kBase}}
}

// of returns the tokeniser of an OpenAI model, nil if the model is none. Gateways
// put a vendor before the name.
func (e *encodings) of(model string) *encoding {
	name := strings.ToLower(model[strings.LastIndexByte(model, '/')+1:])
	name = strings.TrimPrefix(name, "ft:")
	for _, prefix := range []string{"gpt-4o", "gpt-4.", "gpt-5", "gpt-6", "gpt-oss", "chatgpt-", "codex-", "o1", "o3", "o4"} {
		if rest, ok := strings.CutPrefix(name, prefix); ok && (len(prefix) > 2 || rest == "" || rest[0] == '-' || rest[0] == ':') {
			return &e.o200k
		}
	}
	if strings.HasPrefix(name, "gpt-4") || strings.HasPrefix(name, "gpt-3.5") || strings.HasPrefix(name, "gpt-35") {
		return &e.cl100k
	}
	return nil
}

// encoding is a tokeniser that is loaded on first use.
type encoding struct {
	name  tokenizer.Encoding
	once  sync.Once
	codec tokenizer.Codec
}

// sampleBytes is the size of a slice of a long text, of which only the
// beginning, the middle and the end are counted.
const sampleBytes = 512 << 10

func (e *encoding) count(s string) int {
	if len(s) <= 4*sampleBytes {
		return e.exact(s)
	}
	counted, size := 0, 0
	for _, start := range []int{0, len(s)/2 - sampleBytes/2, len(s) - sampleBytes} {
		slice := s[border(s, start):border(s, start+sampleBytes)]
		counted += e.exact(slice)
		size += len(slice)
	}
	return int(float64(counted) * float64(len(s)) / float64(size))
}

func (e *encoding) exact(s string) int {
	e.once.Do(func() { e.codec, _ = tokenizer.Get(e.name) })
	if e.codec != nil {
		if n, err := e.codec.Count(s); err == nil {
			return n
		}
	}
	return int(estimateText(s) + 0.999)
}

// border returns the first character border at or after i.
func border(s string, i int) int {
	for i < len(s) && !utf8.RuneStart(s[i]) {
		i++
	}
	return i
}
