package model

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"convls/protocol"
)

// offlineHelp is the answer to help.
const offlineHelp = `I am the offline model: I need no network and answer about the conversation that I see. Try:
- repeat: TEXT
- count to N
- say N words
- list what I said, list what you said, quote N
- which model
- call TOOL {"argument": "value"} (one call a line, for tools that are declared)
- fail CLASS, or fail CLASS after N words (auth, rate_limit, quota, context_overflow, body_too_large, unavailable, refused, stream_cut, invalid)
- think: COMMAND
- slow: COMMAND, or slow 50ms: COMMAND`

// offlineMost is the largest number in a command.
const offlineMost = 10_000

// The commands of the offline model.
var (
	offlineSlow   = lazily(`(?is)^slow(?:ly)?(?:\s+(\d+)\s*(ms|s))?\s*:\s*(.*)$`)
	offlineThink  = lazily(`(?is)^think\s*:\s*(.*)$`)
	offlineRepeat = lazily(`(?is)^repeat\s*:\s*(.*)$`)
	offlineCount  = lazily(`(?i)^count to (\d+)\b`)
	offlineSay    = lazily(`(?i)^say (\d+) words?\b`)
	offlineQuote  = lazily(`(?i)^quote (\d+)\b`)
	offlineFail   = lazily(`(?i)^fail ([a-z_]+)(?:\s+after (\d+) words?)?\b`)
	offlineTool   = lazily(`(?i)^call ([A-Za-z0-9_.:-]+)[ \t]*(.*)$`)
	offlineMine   = lazily(`(?i)^list what i said\b`)
	offlineYours  = lazily(`(?i)^list what you said\b`)
	offlineModel  = lazily(`(?i)^which model\b`)
	offlineAsk    = lazily(`(?i)^help\b[\s?!.]*$`)
)

// script decides what to answer.
func (o *offline) script(req Request, messages []Message, tokens int64, caps Capabilities) offlineScript {
	last := messages[len(messages)-1]
	if last.Role == RoleTool {
		var lines []string
		for _, r := range last.Parts {
			verb := "answered"
			if r.IsError {
				verb = "failed"
			}
			lines = append(lines, fmt.Sprintf("%s %s: %s", r.Name, verb, clip(r.Text, 2000)))
		}
		return offlineScript{text: strings.Join(lines, "\n")}
	}
	view := offlineView{req: req, messages: messages, tokens: tokens, caps: caps, id: o.provider + "/" + req.Model}
	if req.Model == Offline && o.provider == Offline {
		view.id = Offline
	}
	return view.command(lastText(messages), 0)
}

// offlineView is what the offline model can answer about.
type offlineView struct {
	req      Request
	messages []Message
	tokens   int64
	caps     Capabilities
	id       string
}

func (v offlineView) command(text string, depth int) offlineScript {
	if depth > 4 {
		return offlineScript{text: "That is too many commands in one another."}
	}
	if m := offlineSlow().FindStringSubmatch(text); m != nil {
		s := v.command(m[3], depth+1)
		s.delay = 200 * time.Millisecond
		if n, err := strconv.Atoi(m[1]); err == nil {
			unit := time.Millisecond
			if strings.EqualFold(m[2], "s") {
				unit = time.Second
			}
			s.delay = min(time.Duration(min(n, offlineMost))*unit, 10*time.Second)
		}
		return s
	}
	if m := offlineThink().FindStringSubmatch(text); m != nil {
		s := v.command(m[1], depth+1)
		s.reasoning = fmt.Sprintf("I see %d messages and was asked for: %s", len(v.messages), clip(clean(m[1]), 200))
		return s
	}
	if m := offlineRepeat().FindStringSubmatch(text); m != nil {
		return offlineScript{text: m[1]}
	}
	if m := offlineCount().FindStringSubmatch(text); m != nil {
		n := bounded(m[1])
		numbers := make([]string, n)
		for i := range numbers {
			numbers[i] = strconv.Itoa(i + 1)
		}
		return offlineScript{text: strings.Join(numbers, " ")}
	}
	if m := offlineSay().FindStringSubmatch(text); m != nil {
		return offlineScript{text: offlineWords(bounded(m[1]))}
	}
	if m := offlineFail().FindStringSubmatch(text); m != nil {
		return offlineFailure(strings.ToLower(m[1]), m[2])
	}
	if offlineTool().MatchString(firstLine(text)) {
		return v.tools(text)
	}
	switch {
	case offlineAsk().MatchString(text):
		return offlineScript{text: offlineHelp}
	case offlineMine().MatchString(text):
		return offlineScript{text: v.list(RoleUser, "You said nothing before this.")}
	case offlineYours().MatchString(text):
		return offlineScript{text: v.list(RoleAssistant, "I said nothing yet.")}
	case offlineModel().MatchString(text):
		return offlineScript{text: fmt.Sprintf("I am %s, the model that is built into convls. My window is %d tokens; this prompt takes %d of them.", v.id, v.caps.Window, v.tokens)}
	}
	if m := offlineQuote().FindStringSubmatch(text); m != nil {
		said := v.said(RoleUser)
		if n := bounded(m[1]); n >= 1 && n <= len(said) {
			return offlineScript{text: fmt.Sprintf("Your message %d in my context was: %q", n, clip(said[n-1], 2000))}
		}
		return offlineScript{text: fmt.Sprintf("There is no message %s: I see %d of yours.", m[1], len(said))}
	}
	return offlineScript{text: v.remark(text)}
}

// remark is the answer to what is no command.
func (v offlineView) remark(text string) string {
	turns := len(v.said(RoleUser))
	var b strings.Builder
	fmt.Fprintf(&b, "This is turn %d in my context. You said: %q.", turns, clip(clean(text), 200))
	switch images := v.images(); images {
	case 0:
	case 1:
		b.WriteString(" There is an image, which I can not see.")
	default:
		fmt.Fprintf(&b, " There are %d images, which I can not see.", images)
	}
	if said := v.said(RoleUser); turns > 1 {
		fmt.Fprintf(&b, " Before that you said: %q.", clip(clean(said[turns-2]), 100))
	}
	fmt.Fprintf(&b, " I see %d messages, %d tokens of %d.", len(v.messages), v.tokens, v.caps.Window)
	if turns == 1 {
		b.WriteString(` Say "help" to see what I can do.`)
	}
	return b.String()
}

// said returns the texts of the messages of one role. Neighbours of one role are
// one message.
func (v offlineView) said(role string) []string {
	var texts []string
	for _, m := range v.messages {
		if m.Role != role {
			continue
		}
		if text := strings.TrimSpace(joinText(m.Parts)); text != "" {
			texts = append(texts, text)
		}
	}
	return texts
}

func (v offlineView) images() int {
	n := 0
	for _, m := range v.messages {
		for _, p := range m.Parts {
			if p.Type == protocol.PartImage {
				n++
			}
		}
	}
	return n
}

// list lists what one side said, without the request to list it.
func (v offlineView) list(role, nothing string) string {
	said := v.said(role)
	if role == RoleUser && len(said) > 0 {
		said = said[:len(said)-1]
	}
	if len(said) == 0 {
		return nothing
	}
	lines := make([]string, len(said))
	for i, text := range said {
		lines[i] = fmt.Sprintf("%d. %s", i+1, clip(clean(text), 500))
	}
	return strings.Join(lines, "\n")
}

// tools makes one call a line, and says which tools there are if one is not.
func (v offlineView) tools(text string) offlineScript {
	var s offlineScript
	for line := range strings.SplitSeq(text, "\n") {
		m := offlineTool().FindStringSubmatch(strings.TrimSpace(line))
		if m == nil {
			continue
		}
		declared := slices.ContainsFunc(v.req.Tools, func(t protocol.ToolDeclaration) bool { return t.Name == m[1] })
		if !declared {
			names := []string{}
			for _, t := range v.req.Tools {
				names = append(names, t.Name)
			}
			if len(names) == 0 {
				return offlineScript{text: fmt.Sprintf("There is no tool %s: no tools are declared.", m[1])}
			}
			return offlineScript{text: fmt.Sprintf("There is no tool %s. There are: %s.", m[1], strings.Join(names, ", "))}
		}
		s.calls = append(s.calls, offlineCall{name: m[1], arguments: strings.TrimSpace(m[2])})
	}
	return s
}

// offlineFailure fails as a provider would.
func offlineFailure(class, after string) offlineScript {
	status := map[Class]int{
		ClassAuth: 401, ClassRateLimit: 429, ClassQuota: 429, ClassContextOverflow: 400, ClassBodyTooLarge: 413,
		ClassUnavailable: 503, ClassRefused: 400, ClassStreamCut: 200, ClassInvalid: 400,
	}
	code, ok := status[Class(class)]
	if !ok {
		return offlineScript{text: fmt.Sprintf("There is no class %s. Say \"help\" to see them.", class)}
	}
	e := &Error{Class: Class(class), Status: code, Message: "the offline model was asked to fail"}
	switch e.Class {
	case ClassAuth:
		e.Reason = ReasonRejected
	case ClassRateLimit:
		e.RetryAfter = time.Second
	}
	s := offlineScript{fail: e}
	if after != "" {
		s.text = offlineWords(bounded(after))
	} else if e.Class == ClassStreamCut {
		s.text = offlineWords(3)
	}
	return s
}

// offlineLexicon is what the offline model says when only the number of words
// matters.
var offlineLexicon = strings.Fields("the quick brown fox jumps over the lazy dog while seven wise owls watch from an old oak and count every step")

func offlineWords(n int) string {
	list := make([]string, n)
	for i := range list {
		list[i] = offlineLexicon[i%len(offlineLexicon)]
	}
	return strings.Join(list, " ")
}

// bounded reads a number of a command.
func bounded(digits string) int {
	n, err := strconv.Atoi(digits)
	if err != nil {
		return offlineMost
	}
	return min(n, offlineMost)
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return strings.TrimSpace(line)
}
