package model

import (
	"net"
	"net/url"
	"strings"

	"convls/protocol"
)

// The kinds of providers, as the setting providers.NAME.kind spells them.
const (
	KindOpenAI    = "openai"
	KindAnthropic = "anthropic"
	KindGemini    = "gemini"
	KindOllama    = "ollama"
	KindOffline   = "offline"
)

// knownProvider is a provider that needs no settings but a key.
type knownProvider struct {
	kind, baseURL string
	// vendor is the known provider whose own service this is. They refuse every
	// call without a key, so none is made.
	vendor string
}

// knownProviders returns the provider of that name, if it is a known one.
func knownProviders(name string) (knownProvider, bool) {
	switch name {
	case "openai":
		return knownProvider{KindOpenAI, "https://api.openai.com/v1", "openai"}, true
	case "anthropic":
		return knownProvider{KindAnthropic, "https://api.anthropic.com", "anthropic"}, true
	case "gemini":
		return knownProvider{KindGemini, "https://generativelanguage.googleapis.com", "gemini"}, true
	case "openrouter":
		return knownProvider{KindOpenAI, "https://openrouter.ai/api/v1", "openrouter"}, true
	case "ollama":
		return knownProvider{KindOllama, "http://127.0.0.1:11434", ""}, true
	case "offline":
		return knownProvider{kind: KindOffline}, true
	}
	return knownProvider{}, false
}

// resolveProvider completes the settings of a provider.
func resolveProvider(name string, s protocol.ProviderSettings) (p knownProvider, _ error) {
	p, _ = knownProviders(name)
	if s.Kind != "" {
		p.kind = s.Kind
	}
	if p.kind == "" {
		p.kind = KindOpenAI
	}
	switch p.kind {
	case KindOpenAI, KindAnthropic, KindGemini, KindOllama, KindOffline:
	default:
		return p, protocol.Errorf(protocol.CodeInvalidParams, "providers.%s.kind is %q; it must be openai, anthropic, gemini, ollama or offline", name, s.Kind)
	}
	if s.BaseURL != "" {
		p.baseURL = s.BaseURL
	}
	if p.kind == KindOffline {
		return p, nil
	}
	if p.baseURL == "" && s.Kind != "" {
		// Another name for a vendor's own service, for a second key.
		vendor, _ := knownProviders(s.Kind)
		p.baseURL = vendor.baseURL
	}
	if p.baseURL == "" {
		return p, protocol.Errorf(protocol.CodeUnknownModel,
			"there is no provider %q: set providers.%s.base_url (and kind, if it is not OpenAI-compatible), or use openai, anthropic, gemini, ollama, openrouter or offline", name, name)
	}
	u, err := url.Parse(p.baseURL)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
		return p, protocol.Errorf(protocol.CodeInvalidParams, "providers.%s.base_url is not an http or https address", name)
	}
	if u.User != nil {
		return p, protocol.Errorf(protocol.CodeInvalidParams, "providers.%s.base_url holds a password; keys belong into api_key_env, api_key_cmd or the keyring", name)
	}
	p.baseURL = strings.TrimSuffix(p.baseURL, "/")
	p.vendor = vendorOf(p.baseURL)
	return p, nil
}

// vendorOf returns the known hosted provider whose service an address is, or "".
func vendorOf(baseURL string) string {
	for _, name := range []string{"openai", "anthropic", "gemini", "openrouter"} {
		if known, _ := knownProviders(name); sameHost(baseURL, known.baseURL) {
			return name
		}
	}
	return ""
}

func sameHost(a, b string) bool {
	ua, errA := url.Parse(a)
	ub, errB := url.Parse(b)
	return errA == nil && errB == nil && strings.EqualFold(ua.Host, ub.Host) && ua.Scheme == ub.Scheme
}

// Loopback reports whether a base URL is on this machine, where no key is needed.
func Loopback(baseURL string) bool {
	u, err := url.Parse(baseURL)
	if err != nil {
		return false
	}
	host := u.Hostname()
	if strings.EqualFold(host, "localhost") || strings.HasSuffix(strings.ToLower(host), ".localhost") {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}

// Address completes the settings of a provider from what is known of its name and
// kind, and returns its kind and the address of its API, which the offline
// provider has none of. Errors are those of [Registry.Resolve].
func Address(name string, s protocol.ProviderSettings) (kind, baseURL string, err error) {
	p, err := resolveProvider(name, s)
	return p.kind, p.baseURL, err
}
