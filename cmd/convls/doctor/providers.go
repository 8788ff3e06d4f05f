package doctor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"convls/model"
	"convls/protocol"
)

// hosted are the providers that need nothing but a key.
func hosted() []string { return []string{"openai", "anthropic", "gemini", "openrouter"} }

// examineProviders describes the providers that are set up: those with settings,
// those of the chosen models, and hosted ones that there is a key for. If asking is
// allowed, each is asked for its models, all at once.
func (x *examination) examineProviders(ctx context.Context, s protocol.Settings, keys model.KeySource) {
	chosen := x.chosen(s)
	names := append([]string{}, chosen...)
	for name := range s.Providers {
		names = append(names, name)
	}
	for _, name := range hosted() {
		if x.variable(model.DefaultKeyEnv(name)) != "" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	names = slices.Compact(names)

	registry := model.NewRegistry()
	defer registry.Close()
	found := make([]*patient, len(names))
	var wg sync.WaitGroup
	for i, name := range names {
		_, configured := s.Providers[name]
		p := &patient{Provider: Provider{Name: name, Configured: configured}, needed: configured || slices.Contains(chosen, name)}
		found[i] = p
		wg.Go(func() { p.examine(ctx, x, registry, s, keys) })
	}
	wg.Wait()
	for _, p := range found {
		x.report.Providers = append(x.report.Providers, p.Provider)
		if p.finding == nil {
			continue
		}
		if p.needed {
			x.report.Problems = append(x.report.Problems, *p.finding)
		} else {
			x.report.Notes = append(x.report.Notes, *p.finding)
		}
	}
	for _, c := range choices(s) {
		x.examineModel(c, found)
	}
}

// choice is a setting that names a model.
type choice struct{ setting, id string }

func choices(s protocol.Settings) []choice {
	c := []choice{{"model", s.Model}}
	if id := s.Compaction.Model; id != "" && id != "extractive" && id != s.Model {
		c = append(c, choice{"compaction.model", id})
	}
	return c
}

// chosen returns the providers of the chosen models.
func (x *examination) chosen(s protocol.Settings) []string {
	var names []string
	for _, c := range choices(s) {
		name, _, err := model.SplitID(c.id)
		if err != nil {
			x.report.problem("settings", "write it as provider/name", "%s: %v", c.setting, err)
			continue
		}
		names = append(names, name)
	}
	return names
}

// examineModel notes a chosen model that its provider does not list. Gateways may
// well serve models that they do not list, so it is no problem.
func (x *examination) examineModel(c choice, found []*patient) {
	name, _, err := model.SplitID(c.id)
	if err != nil {
		return
	}
	for _, p := range found {
		if p.Name != name || !p.Asked || p.Error != "" || slices.Contains(p.models, c.id) {
			continue
		}
		next := "choose another with the setting " + c.setting
		if len(p.models) > 0 {
			next += ", for example " + strings.Join(p.models[:min(3, len(p.models))], ", ")
		}
		x.report.note("provider "+name, next, "%s is %s, which is not among the %d models that the provider lists", c.setting, c.id, len(p.models))
	}
}

// patient is a provider under examination.
type patient struct {
	Provider
	// needed says that somebody set it up or chose it, so that its faults matter.
	needed  bool
	models  []string
	finding *Finding
}

func (p *patient) examine(ctx context.Context, x *examination, registry *model.Registry, s protocol.Settings, keys model.KeySource) {
	settings := s.Providers[p.Name]
	var err error
	if p.Kind, p.BaseURL, err = model.Address(p.Name, settings); err != nil {
		p.fail(err)
		return
	}
	provider, _, err := registry.Resolve(s, p.Name+"/any", keys)
	if err != nil {
		p.fail(err)
		return
	}
	ask := x.timeout > 0
	if ask {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, x.timeout)
		defer cancel()
	}
	p.findKey(ctx, x, settings, keys, ask)
	if !ask {
		if p.Key == keyMissing {
			p.fail(&model.Error{Class: model.ClassAuth, Provider: p.Name, Reason: model.ReasonMissing, Message: "there is no key"})
		}
		return
	}
	p.Asked = true
	models, err := provider.List(ctx)
	if err != nil {
		if ctx.Err() != nil {
			err = &model.Error{Class: model.ClassUnavailable, Provider: p.Name, Message: fmt.Sprintf("it did not answer within %s", x.timeout)}
		}
		p.fail(err)
		return
	}
	p.Models = len(models)
	for _, m := range models {
		p.models = append(p.models, m.ID)
	}
}

// What Provider.Key says where it names no place.
const (
	keyMissing = "missing"
	keyNone    = "none needed"
)

// findKey says where the provider's key is. A key command is run only where the
// provider is asked, which needs the key anyway.
func (p *patient) findKey(ctx context.Context, x *examination, s protocol.ProviderSettings, keys model.KeySource, run bool) {
	if p.Kind == model.KindOffline {
		p.Key = keyNone
		return
	}
	variable := s.APIKeyEnv
	if variable == "" {
		variable = model.DefaultKeyEnv(p.Name)
	}
	unrun := s
	unrun.APIKeyCmd = ""
	key, err := keys.Key(ctx, model.KeyRequest{Provider: p.Name, BaseURL: p.BaseURL, Settings: unrun})
	switch {
	case err == nil && key != "" && strings.TrimSpace(x.variable(variable)) == key:
		p.Key, p.KeyFound = "in the variable "+variable, true
	case s.APIKeyCmd != "" && !run:
		p.Key = "from a command, which was not run"
	case s.APIKeyCmd != "":
		p.Key = "from a command"
		key, err = keys.Key(ctx, model.KeyRequest{Provider: p.Name, BaseURL: p.BaseURL, Settings: s})
		p.KeyFound = err == nil && key != ""
	case err == nil && key != "":
		p.Key, p.KeyFound = "in the keyring", true
	case model.Loopback(p.BaseURL):
		p.Key = keyNone
	default:
		p.Key = keyMissing
	}
}

// fail notes why the provider is of no use, and what to do.
func (p *patient) fail(err error) {
	p.Error = strings.TrimPrefix(err.Error(), p.Name+": ") // the finding names it already
	next := "correct its settings"
	if e, ok := errors.AsType[*model.Error](err); ok {
		next = e.Hint()
		if e.Class == model.ClassAuth && e.Reason == model.ReasonMissing {
			next = fmt.Sprintf("set %s, keep the key in the keyring (service %s, user %q), or let providers.%s.api_key_cmd print it",
				model.DefaultKeyEnv(p.Name), model.KeyringService, model.KeyringUser(p.Name, p.BaseURL), p.Name)
		}
	}
	p.finding = &Finding{About: "provider " + p.Name, What: p.Error, Next: next}
}
