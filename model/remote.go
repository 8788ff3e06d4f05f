package model

import (
	"context"
	"errors"
	"slices"
	"strings"

	"convls/protocol"
)

// remote is a provider that is reached over HTTP. It finds the key, lets the
// adapter make the call, and adds what is the same for all: the model's settings,
// cost, estimated usage where none came, and the correction of the counter.
type remote struct {
	target
	registry *Registry
	adapter  adapter
	keys     KeySource
	settings protocol.ProviderSettings
	models   map[string]protocol.ModelSettings
}

var _ Provider = (*remote)(nil)

// key returns the key for a call of a model, or, without one, for a list of the models;
// "" where none is needed.
func (p *remote) key(ctx context.Context, model string, rejected bool) (string, error) {
	key := ""
	if p.keys != nil {
		var err error
		key, err = p.keys.Key(ctx, KeyRequest{Provider: p.provider, BaseURL: p.baseURL, Settings: p.settings, Rejected: rejected, Quiet: model == ""})
		if ctx.Err() != nil {
			return "", &Error{Class: ClassCancelled, Provider: p.provider, Model: model, Message: "the call was cancelled", Cause: context.Cause(ctx)}
		}
		if err != nil {
			return "", &Error{Class: ClassAuth, Provider: p.provider, Model: model, Reason: ReasonMissing, Message: scrub(clean(err.Error()), nil)}
		}
	}
	key = strings.TrimSpace(key)
	if strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return "", &Error{Class: ClassAuth, Provider: p.provider, Model: model, Reason: ReasonRejected, Message: "the key has a character that no key has; it was not sent"}
	}
	if key == "" && p.vendor != "" {
		return "", &Error{Class: ClassAuth, Provider: p.provider, Model: model, Reason: ReasonMissing, Message: "there is no key"}
	}
	return key, nil
}

// withKey runs call with the key, and once more if the key was rejected before
// anything had arrived and the source has another. A server on this machine that was
// called without a key and wants one is such a case, too.
func (p *remote) withKey(ctx context.Context, model string, call func(key string) (begun bool, err error)) error {
	key, err := p.key(ctx, model, false)
	if err != nil {
		return err
	}
	begun, err := call(key)
	e, ok := errors.AsType[*Error](err)
	if !ok || e.Class != ClassAuth || begun {
		return err
	}
	if key == "" {
		e.Reason = ReasonMissing
		if !Loopback(p.baseURL) { // the source has none, and was asked just now
			return err
		}
	}
	another, keyErr := p.key(ctx, model, true)
	if ClassOf(keyErr) == ClassCancelled {
		return keyErr
	}
	if keyErr != nil || another == "" || another == key {
		return err
	}
	_, err = call(another)
	return err
}

// Stream asks the model; see [Provider].
func (p *remote) Stream(ctx context.Context, req Request, emit func(Delta) error) (*Response, error) {
	req = p.prepare(req)
	var res *Response
	err := p.withKey(ctx, req.Model, func(key string) (begun bool, err error) {
		res, err = p.adapter.stream(ctx, key, req, emit)
		return res != nil, err
	})
	if res == nil {
		return nil, err
	}
	res.Usage = believable(res.Usage)
	counter := p.registry.counter(p.target, req.Model)
	if res.Usage.InputTokens == 0 && res.Usage.OutputTokens == 0 {
		res.Usage = protocol.Usage{
			InputTokens:  counter.Adjust(counter.Request(req)),
			OutputTokens: int64(outputTokens(counter, res.Parts)),
			Estimated:    true,
		}
	} else if err == nil {
		counter.Calibrate(counter.Request(req), res.Usage.InputTokens)
	}
	res.Usage.Calls = 1
	res.Usage.CostUSD = p.Capabilities(req.Model).Cost(res.Usage)
	if res.Model == "" {
		res.Model = req.Model
	}
	return res, err
}

// mostTokens is more than any model reads or writes in one call.
const mostTokens = 1 << 40

// believableCount returns a provider's count within 0 and mostTokens: servers that
// subtract wrongly or send a number of another width must not spoil sums.
func believableCount(n int64) int64 { return min(max(n, 0), mostTokens) }

func believable(u protocol.Usage) protocol.Usage {
	for _, n := range []*int64{&u.InputTokens, &u.OutputTokens, &u.CacheReadTokens, &u.CacheWriteTokens, &u.ReasoningTokens} {
		*n = believableCount(*n)
	}
	return u
}

// prepare fills in the model's settings.
func (p *remote) prepare(req Request) Request {
	s := p.models[p.provider+"/"+req.Model]
	if req.Temperature == nil {
		req.Temperature = s.Temperature
	}
	if req.MaxOutput <= 0 {
		req.MaxOutput = s.MaxOutput
	}
	return req
}

// outputTokens counts an answer, reasoning included.
func outputTokens(c *Counter, parts []protocol.Part) int {
	n := 0
	for _, part := range parts {
		n += c.Text(part.Text) + c.Text(part.Name) + c.Text(string(part.Arguments))
	}
	return n
}

// Count counts a prompt; see [Provider]. Anthropic and Gemini are asked over the
// network; where that fails, or elsewhere, it counts or estimates itself.
func (p *remote) Count(ctx context.Context, req Request) (int64, bool, error) {
	var tokens int64
	var exact bool
	err := p.withKey(ctx, req.Model, func(key string) (begun bool, err error) {
		tokens, exact, err = p.adapter.count(ctx, key, req)
		return false, err
	})
	if err == nil && exact {
		return tokens, true, nil
	}
	if ClassOf(err) == ClassCancelled {
		return 0, false, err
	}
	c := p.registry.counter(p.target, req.Model)
	return c.Adjust(c.Request(req)), c.Exact() && p.vendor == "openai", nil
}

// List returns the provider's models, with what settings and names tell where the
// provider says nothing.
func (p *remote) List(ctx context.Context) ([]protocol.Model, error) {
	var models []protocol.Model
	err := p.withKey(ctx, "", func(key string) (begun bool, err error) {
		models, err = p.adapter.list(ctx, key)
		return false, err
	})
	if err != nil {
		return nil, err
	}
	p.registry.learn(p.target, models)
	for i, m := range models {
		models[i] = p.Capabilities(m.ID).model(p.provider, m.ID)
	}
	slices.SortFunc(models, func(a, b protocol.Model) int { return strings.Compare(a.ID, b.ID) })
	return models, nil
}

// Capabilities returns what is known of a model.
func (p *remote) Capabilities(name string) Capabilities {
	return p.registry.capabilities(p.target, name, p.models[p.provider+"/"+name])
}

func (c Capabilities) model(provider, name string) protocol.Model {
	id := provider + "/" + name
	if provider == Offline && name == Offline {
		id = Offline
	}
	return protocol.Model{
		ID: id, Provider: provider, Window: c.Window, MaxOutput: c.MaxOutput,
		InputPrice: c.InputPrice, OutputPrice: c.OutputPrice, CacheReadPrice: c.CacheReadPrice,
	}
}

// Cost returns what usage costs in dollars, 0 where prices are unknown. What was
// read from the cache costs its own price if there is one.
func (c Capabilities) Cost(u protocol.Usage) float64 {
	cached := c.CacheReadPrice
	if cached == 0 {
		cached = c.InputPrice
	}
	fresh := max(u.InputTokens-u.CacheReadTokens, 0)
	return (float64(fresh)*c.InputPrice + float64(u.CacheReadTokens)*cached + float64(u.OutputTokens)*c.OutputPrice) / 1e6
}
