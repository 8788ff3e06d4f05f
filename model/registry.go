package model

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"convls/protocol"
)

// Offline is the id of the built-in model.
const Offline = "offline"

// Registry knows the providers. A process builds one and shares it: it keeps the
// connections, the token counters with what usage has taught them, and the
// windows that providers named. It keeps no keys and no settings: those come with
// each call, from the client that asks.
type Registry struct {
	client    *http.Client
	base      *http.Transport
	encodings *encodings

	mu       sync.Mutex
	counters map[string]*Counter
	learned  map[string]Capabilities
}

// maxRemembered bounds how many models the registry remembers something of.
const maxRemembered = 10_000

// NewRegistry makes a registry. It opens no connection and loads no tokeniser.
func NewRegistry() *Registry {
	base := &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           (&net.Dialer{Timeout: 15 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
		ForceAttemptHTTP2:     true,
		TLSHandshakeTimeout:   15 * time.Second,
		MaxIdleConnsPerHost:   8,
		IdleConnTimeout:       90 * time.Second,
		ExpectContinueTimeout: time.Second,
	}
	return &Registry{
		base: base,
		client: &http.Client{
			Transport: transport{base},
			// A redirect would carry the key, and the conversation, to another host.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
		encodings: newEncodings(),
		counters:  map[string]*Counter{},
		learned:   map[string]Capabilities{},
	}
}

// Close closes idle connections.
func (r *Registry) Close() { r.base.CloseIdleConnections() }

// Resolve returns the provider of a model and the model's name with it. id is
// "provider/name" or "offline", which "" means too; everything after the first
// slash is the name. Nothing is sent and no key is asked for. It refuses with
// unknown_model where there is no such provider, and with invalid_params where
// its settings are wrong; both say what to do.
func (r *Registry) Resolve(s protocol.Settings, id string, keys KeySource) (Provider, string, error) {
	provider, name, err := SplitID(id)
	if err != nil {
		return nil, "", err
	}
	p, err := r.provider(s, provider, keys)
	return p, name, err
}

// SplitID splits a model's id into provider and name.
func SplitID(id string) (provider, name string, err error) {
	if id == "" || id == Offline {
		return Offline, Offline, nil
	}
	provider, name, ok := strings.Cut(id, "/")
	if !ok || provider == "" || name == "" {
		return "", "", protocol.Errorf(protocol.CodeUnknownModel,
			"%q is no model: write provider/name, for example openai/gpt-4o or ollama/llama3.2, or offline", clip(clean(id), 200))
	}
	return provider, name, nil
}

func (r *Registry) provider(s protocol.Settings, name string, keys KeySource) (Provider, error) {
	settings := s.Providers[name]
	resolved, err := resolveProvider(name, settings)
	if err != nil {
		return nil, err
	}
	if resolved.kind == KindOffline {
		return &offline{registry: r, provider: name, models: s.Models}, nil
	}
	overflow, err := OverflowPatterns(name, settings.OverflowPatterns)
	if err != nil {
		return nil, err
	}
	t := target{
		provider: name,
		kind:     resolved.kind,
		baseURL:  resolved.baseURL,
		vendor:   resolved.vendor,
		timeout:  DefaultTimeout,
		overflow: overflow,
		http:     r.client,
	}
	if settings.TimeoutMS > 0 {
		t.timeout = time.Duration(settings.TimeoutMS) * time.Millisecond
	}
	p := &remote{registry: r, target: t, keys: keys, settings: settings, models: s.Models}
	switch resolved.kind {
	case KindAnthropic:
		p.adapter = anthropicAdapter{target: t, maxOutput: func(m string) int64 { return p.Capabilities(m).MaxOutput }}
	case KindGemini:
		p.adapter = geminiAdapter{t}
	case KindOllama:
		p.adapter = ollamaAdapter{
			target:   t,
			window:   func(m string) int64 { return p.Capabilities(m).Window },
			estimate: func(req Request) int64 { return r.counter(t, req.Model).Request(req) },
		}
	default:
		p.adapter = openaiAdapter{t}
	}
	return p, nil
}

// Counter returns the token counter of a model; every caller gets the same one,
// and each answered call corrects it.
func (r *Registry) Counter(s protocol.Settings, id string) (*Counter, error) {
	provider, name, err := SplitID(id)
	if err != nil {
		return nil, err
	}
	resolved, err := resolveProvider(provider, s.Providers[provider])
	if err != nil {
		return nil, err
	}
	return r.counter(target{provider: provider, kind: resolved.kind, baseURL: resolved.baseURL}, name), nil
}

func (r *Registry) counter(t target, model string) *Counter {
	key := t.provider + "/" + model + " " + t.kind + " " + t.baseURL
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.counters[key]
	if c == nil {
		if len(r.counters) >= maxRemembered {
			clear(r.counters)
		}
		c = newCounter(t.provider, t.kind, model, r.encodings)
		r.counters[key] = c
	}
	return c
}

// learn keeps what a provider said of its models.
func (r *Registry) learn(t target, models []protocol.Model) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, m := range models {
		if len(r.learned) >= maxRemembered {
			clear(r.learned)
		}
		r.learned[t.baseURL+" "+m.ID] = Capabilities{
			Window: m.Window, MaxOutput: m.MaxOutput,
			InputPrice: m.InputPrice, OutputPrice: m.OutputPrice, CacheReadPrice: m.CacheReadPrice,
		}
	}
}

const (
	// DefaultWindow is assumed where nothing is known of a model, in tokens.
	DefaultWindow = 32_768
	// maxDefaultOutput is the most that is reserved for an answer where nothing is
	// known, in tokens.
	maxDefaultOutput = 8_192
)

// capabilities says what is known of a model: settings first, then what the
// provider said, then what is known of that name, then defaults.
func (r *Registry) capabilities(t target, model string, s protocol.ModelSettings) Capabilities {
	r.mu.Lock()
	said := r.learned[t.baseURL+" "+model]
	r.mu.Unlock()
	known, _ := lookupModel(model)
	if t.vendor == "" {
		known.input, known.output, known.cacheRead = 0, 0, 0
	}
	c := Capabilities{
		Window:         cmp.Or(s.Window, said.Window, known.window, DefaultWindow),
		Schema:         t.kind != KindOffline,
		InputPrice:     cmp.Or(s.InputPrice, said.InputPrice, known.input),
		OutputPrice:    cmp.Or(s.OutputPrice, said.OutputPrice, known.output),
		CacheReadPrice: cmp.Or(s.CacheReadPrice, said.CacheReadPrice, known.cacheRead),
	}
	c.MaxOutput = cmp.Or(s.MaxOutput, said.MaxOutput, known.maxOutput, min(c.Window/8, maxDefaultOutput))
	if c.MaxOutput >= c.Window {
		c.MaxOutput = max(c.Window/8, 1)
	}
	return c
}

// Models lists the models of all providers that are set up: those with settings,
// the known ones that there is a key for, and offline. They are asked side by
// side. A provider that was set up and can not be asked comes in Errors; a known
// one that was not is left out.
func (r *Registry) Models(ctx context.Context, s protocol.Settings, keys KeySource) protocol.ModelListResult {
	names := map[string]bool{Offline: true, "openai": true, "anthropic": true, "gemini": true, "openrouter": true, "ollama": true}
	for name := range s.Providers {
		names[name] = true
	}
	sorted := slices.Sorted(maps.Keys(names))
	type reply struct {
		models []protocol.Model
		err    error
	}
	replies := make([]reply, len(sorted))
	var wg sync.WaitGroup
	for i, name := range sorted {
		p, err := r.provider(s, name, keys)
		if err != nil {
			replies[i].err = err
			continue
		}
		wg.Go(func() { replies[i].models, replies[i].err = p.List(ctx) })
	}
	wg.Wait()
	result := protocol.ModelListResult{Models: []protocol.Model{}, Errors: []protocol.ProviderError{}}
	chosen := cmp.Or(s.Model, Offline)
	for i, name := range sorted {
		if err := replies[i].err; err != nil {
			if _, configured := s.Providers[name]; configured {
				result.Errors = append(result.Errors, protocol.ProviderError{Provider: name, Error: nodeError(err)})
			}
			continue
		}
		for _, m := range replies[i].models {
			m.IsDefault = m.ID == chosen
			result.Models = append(result.Models, m)
		}
	}
	return result
}

// nodeError returns any error of this package as it is sent.
func nodeError(err error) protocol.NodeError {
	if e, ok := errors.AsType[*Error](err); ok {
		return *e.Node()
	}
	if e, ok := errors.AsType[*protocol.Error](err); ok {
		return protocol.NodeError{Code: e.Code, Message: e.Message}
	}
	return protocol.NodeError{Code: protocol.CodeInternal, Message: err.Error()}
}
