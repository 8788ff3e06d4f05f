package main

import (
	"context"
	"errors"
	"os"
	"sync"

	"convls/handlers"
	"convls/model"
	"convls/protocol"
	"convls/server"
	"convls/server/frame"
	"convls/settings"
)

// connection is a client as the handlers see it: the transport's connection with
// the client's settings and keys.
type connection struct {
	*server.Conn
	settings *settings.Connection
	keys     *clientKeys
}

var _ handlers.Conn = (*connection)(nil)

// Settings returns the client's settings.
func (c *connection) Settings() protocol.Settings { return c.settings.Settings() }

// Keys returns where the client's keys are looked for.
func (c *connection) Keys() model.KeySource { return c.keys }

// CallTool has the client carry out a tool call. When the editor leaves, this process
// goes with it: the call then waits for its turn to be interrupted, so that nobody
// asks a model once more about a tool that only went away.
func (c *connection) CallTool(ctx context.Context, call protocol.ToolCallParams) (protocol.ToolCallResult, error) {
	result, err := c.Conn.CallTool(ctx, call)
	if protocol.CodeOf(err) == protocol.CodeServerRestarted || errors.Is(err, frame.ErrClosed) {
		<-ctx.Done()
		return result, context.Cause(ctx)
	}
	return result, err
}

// ForgetKeys drops what is remembered of a provider's keys.
func (c *connection) ForgetKeys(provider string) { c.keys.forget(provider) }

// clientKeys finds the keys of a client: in the environment, by a command, in the
// keyring, and last by asking the client itself, for one that announced secrets.
// What the client gave is remembered in memory, for its base URL only.
type clientKeys struct {
	conn   *server.Conn
	system *model.SystemKeys

	mu   sync.Mutex
	held map[heldKey]string
}

type heldKey struct{ provider, baseURL string }

func newClientKeys(c *server.Conn) *clientKeys {
	return &clientKeys{conn: c, system: model.NewSystemKeys(os.Getenv), held: map[heldKey]string{}}
}

// Key finds a provider's key; see [model.KeySource]. For a server on this machine,
// which mostly wants none, the client is asked only when one was refused.
func (k *clientKeys) Key(ctx context.Context, r model.KeyRequest) (string, error) {
	at := heldKey{r.Provider, r.BaseURL}
	reason := "missing"
	if r.Rejected {
		reason = "rejected"
		k.forget(r.Provider)
	} else if key := k.get(at); key != "" {
		return key, nil
	}
	key, err := k.system.Key(ctx, r)
	if key != "" || !k.conn.Supports(protocol.FeatureSecrets) || !r.Rejected && model.Loopback(r.BaseURL) {
		return key, err
	}
	asked, askErr := k.conn.Secret(ctx, protocol.SecretGetParams{Provider: r.Provider, BaseURL: r.BaseURL, Reason: reason, Quiet: r.Quiet})
	if askErr != nil || asked == "" {
		return "", err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.held[at] = asked
	return asked, nil
}

func (k *clientKeys) get(at heldKey) string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.held[at]
}

func (k *clientKeys) forget(provider string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for at := range k.held {
		if at.provider == provider {
			delete(k.held, at)
		}
	}
}

// Progress shows the progress of a long request.
func (c *connection) Progress(ctx context.Context, token protocol.Raw, title string) handlers.Progress {
	return c.Conn.Progress(ctx, token, title)
}
