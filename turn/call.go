package turn

import (
	"context"
	"errors"
	"strings"
	"time"

	"go.uber.org/zap"

	"convls/compaction"
	"convls/model"
	"convls/projection"
	"convls/protocol"
	"convls/store"
)

// called is the outcome of one model call.
type called struct {
	final store.Final
	calls []toolCall
}

// call asks the model once, with retries where nothing was streamed yet, and
// returns what the open reply is to be sealed with.
func (e *Engine) call(r *run, round int) called {
	began := time.Now()
	fail := func(code protocol.Code, format string, args ...any) called {
		err := protocol.Errorf(code, format, args...)
		return called{final: store.Final{Status: protocol.StatusFailed, Content: store.Content{Model: r.model, DurationMS: time.Since(began).Milliseconds(),
			Error: &protocol.NodeError{Code: err.Code, Message: err.Message}}}}
	}
	if most := maxRounds(r.env.Settings); round >= most {
		return fail(protocol.CodeToolRoundsExceeded, "the turn made %d model calls with tools and was stopped: raise turn.max_tool_rounds, or send a message to go on", most)
	}
	p, err := e.prompt(r)
	if err != nil {
		code := protocol.CodeOf(err)
		if code == "" {
			code = protocol.CodeInternal
		}
		return fail(code, "the context can not be rendered: %v", err)
	}
	tried := r.ask != nil // a side question is no reason to compact the conversation
	if tried {
		err = overflow(p, r.settings, nil)
	} else {
		p, tried, err = e.makeRoom(r, p)
	}
	if err != nil {
		status, nodeErr := failure(r.ctx, err)
		if nodeErr != nil && nodeErr.Code == protocol.CodeContextOverflow {
			nodeErr.Hint = hintOverflow
		}
		return called{final: store.Final{Status: status, Content: store.Content{Model: r.model, DurationMS: time.Since(began).Milliseconds(), Error: nodeErr}}}
	}
	resp, attempts, err := e.stream(r, p)
	if model.ClassOf(err) == model.ClassContextOverflow && !tried && !r.live.started() {
		var next *prompt
		if next, err = e.reactive(r, p, err); next != nil {
			p = next
			resp, attempts, err = e.stream(r, p)
		}
	}
	c := store.Content{Model: r.model, DurationMS: time.Since(began).Milliseconds(), Reads: p.reads, Call: p.record}
	c.Call.Attempts = attempts
	if resp != nil {
		c.Parts, c.StopReason = resp.Parts, resp.StopReason
		usage := p.usage(resp)
		c.Usage = &usage
	}
	f := store.Final{Status: protocol.StatusSealed, Content: c}
	if err != nil {
		f.Status, f.Content.Error = failure(r.ctx, err)
		if resp == nil || len(resp.Parts) == 0 {
			f.Content.Parts = r.live.kept()
		}
		f.Content.Parts = withoutCalls(f.Content.Parts)
		f.Tokens, f.Tokenizer = p.counter.Parts(f.Content.Parts), p.counter.ID()
		return called{final: f}
	}
	var calls []toolCall
	if f.Content.Parts, calls = splitCalls(resp.Parts); r.ask != nil {
		f.Content.Parts, calls = withoutCalls(resp.Parts), nil // it was offered no tools
	}
	f.Tokens, f.Tokenizer = p.counter.Parts(f.Content.Parts), p.counter.ID()
	return called{final: f, calls: calls}
}

// failure returns the status and error of a reply whose call ended with err.
func failure(ctx context.Context, err error) (protocol.Status, *protocol.NodeError) {
	if ctx.Err() != nil {
		status := endOf(ctx)
		if status == protocol.StatusInterrupted {
			return status, &protocol.NodeError{Code: protocol.CodeServerRestarted, Message: "convls ended while this was being written", Retryable: true,
				Hint: "retry it: what had arrived is kept here"}
		}
		return status, nil
	}
	if me, ok := errors.AsType[*model.Error](err); ok {
		return protocol.StatusFailed, me.Node()
	}
	code := protocol.CodeOf(err)
	if code == "" {
		code = protocol.CodeInternal
	}
	return protocol.StatusFailed, &protocol.NodeError{Code: code, Message: err.Error()}
}

// splitCalls gives each tool call a node of its own, and leaves its place in the
// reply.
func splitCalls(parts []protocol.Part) ([]protocol.Part, []toolCall) {
	out := make([]protocol.Part, 0, len(parts))
	var calls []toolCall
	for _, p := range parts {
		if p.Type == protocol.PartToolCall {
			id := store.NewID("")
			p.Name, p.Arguments = toolName(p.Name), wholeJSON(p.Arguments)
			calls = append(calls, toolCall{id: id, part: p})
			p = protocol.Part{Type: protocol.PartToolCall, NodeID: id, Signature: p.Signature, Provider: p.Provider}
		}
		out = append(out, p)
	}
	return out, calls
}

// toolName returns a name that every provider takes back: what a model made up is
// sent to it again with each later message.
func toolName(name string) string {
	const most = 64
	name = strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '_', r == '-':
			return r
		}
		return '_'
	}, name)
	if name == "" {
		return "unnamed"
	}
	return name[:min(len(name), most)]
}

// wholeJSON returns arguments that can be stored: what is no JSON, or has a member
// twice, becomes a JSON string of itself, which the tool's schema will refuse.
func wholeJSON(args protocol.Raw) protocol.Raw {
	if args.IsValid() {
		return args
	}
	quoted, err := protocol.Marshal(strings.ToValidUTF8(string(args), "\uFFFD"))
	if err != nil {
		return protocol.Raw(`""`)
	}
	return quoted
}

// withoutCalls drops half calls of a reply that broke off: they were never made.
func withoutCalls(parts []protocol.Part) []protocol.Part {
	var out []protocol.Part
	for _, p := range parts {
		if p.Type != protocol.PartToolCall {
			out = append(out, p)
		}
	}
	return out
}

// prompt is a model call that is ready to be made.
type prompt struct {
	provider model.Provider
	request  model.Request
	counter  *model.Counter
	caps     model.Capabilities
	reads    []store.Run
	record   *protocol.CallRecord
	// estimate is the tokens of the request as we count them.
	estimate int64
}

// prompt renders the context before the open reply.
func (e *Engine) prompt(r *run) (*prompt, error) {
	provider, name, err := e.Models.Resolve(r.env.Settings, r.model, r.env.Keys)
	if err != nil {
		return nil, err
	}
	counter := r.counter
	reader, err := r.sess.Reader()
	if err != nil {
		return nil, err
	}
	defer reader.Close()
	o := e.options(counter, r.env.Settings, store.Skeleton{})
	if r.ask != nil {
		o.Head, o.Range, o.Draft = r.ask.at, r.ask.entries, r.ask.prompt
	} else if o.Head, err = reader.Skeleton(r.reply.Predecessor); err != nil {
		return nil, err
	}
	view, err := projection.Render(reader, o)
	if err != nil {
		return nil, err
	}
	if view.Damage != nil {
		e.Logger.Warn("a record of the context can not be read", zap.String("session", r.sess.ID()), zap.Error(view.Damage))
	}
	caps := provider.Capabilities(name)
	req := model.Request{Model: name, System: view.System, Messages: Messages(view), Tools: r.tools, MaxOutput: caps.MaxOutput}
	if m, ok := r.env.Settings.Models[r.model]; ok {
		req.Temperature = m.Temperature
	}
	record := &protocol.CallRecord{Model: r.model}
	if view.System != "" {
		info, err := reader.Info()
		if err != nil {
			return nil, err
		}
		record.SystemSHA256 = info.SystemSHA256
	}
	if len(r.tools) > 0 {
		record.ToolsSHA256 = digest(r.tools)
	}
	if r.ask != nil && r.ask.entries != nil {
		if record.Parameters, err = protocol.Marshal(map[string]int{"render_range": *r.ask.entries}); err != nil {
			return nil, err
		}
	}
	if view.Substitution != nil {
		record.SummaryID = view.Substitution.Summary.ID
	}
	p := &prompt{provider: provider, request: req, counter: counter, caps: caps, reads: view.Reads(), record: record, estimate: int64(view.Tokens + counter.Tools(r.tools))}
	r.window, r.settings = caps, r.env.Settings.Compaction
	return p, nil
}

// options are those of the context view that models read.
func (e *Engine) options(counter projection.Counter, s protocol.Settings, head store.Skeleton) projection.Options {
	return projection.Options{Head: head, Counter: counter, ToolResultBytes: ToolResultBytes(s), Other: e.Store.Session}
}

// ToolResultBytes returns how much of a tool's result a model is shown, in bytes.
func ToolResultBytes(s protocol.Settings) int {
	if s.Turn.ToolResultBytes > 0 {
		return s.Turn.ToolResultBytes
	}
	return 64 << 10
}

func maxRounds(s protocol.Settings) int {
	if s.Turn.MaxToolRounds > 0 {
		return s.Turn.MaxToolRounds
	}
	return 32
}

// usage returns what a call used: the provider's own count, or an estimate where
// it sent none.
func (p *prompt) usage(resp *model.Response) protocol.Usage {
	u := resp.Usage
	if u.InputTokens == 0 && u.OutputTokens == 0 {
		u = protocol.Usage{InputTokens: p.counter.Adjust(p.estimate), OutputTokens: int64(p.counter.Parts(resp.Parts)), Estimated: true}
	}
	if u.CostUSD == 0 {
		u.CostUSD = p.caps.Cost(u)
	}
	u.Calls = 1
	return u
}

// budget returns how full the window is after a reply.
func (r *run) budget(f *store.Final) *protocol.Budget {
	u := f.Content.Usage
	if u == nil {
		return nil
	}
	source := "provider"
	if u.Estimated {
		source = "estimate"
	}
	b := compaction.Budget(u.InputTokens+u.OutputTokens, r.window.Window, r.window.MaxOutput, source, r.settings)
	return &b
}
