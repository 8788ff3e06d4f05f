package server

import (
	"context"
	"time"

	"convls/protocol"
)

// secretTimeout is how long a client may take to look a key up.
const secretTimeout = 60 * time.Second

// CallTool has the client carry out a tool call that it declared. It takes as
// long as ctx lets it, because a person may be asked first.
func (c *Conn) CallTool(ctx context.Context, call protocol.ToolCallParams) (protocol.ToolCallResult, error) {
	var result protocol.ToolCallResult
	err := c.Call(ctx, protocol.MethodToolCall, call, &result)
	return result, err
}

// Secret asks the client for a provider's key. A client that did not announce
// secrets, answers with an error or takes 60 s has none: the key is empty. The
// error is that of ctx.
func (c *Conn) Secret(ctx context.Context, p protocol.SecretGetParams) (key string, err error) {
	if !c.Supports(protocol.FeatureSecrets) {
		return "", nil
	}
	limited, cancel := context.WithTimeout(ctx, secretTimeout)
	defer cancel()
	var result protocol.SecretGetResult
	if err := c.Call(limited, protocol.MethodSecretGet, p, &result); err != nil {
		// What went wrong is the client's; it could quote the key.
		return "", context.Cause(ctx)
	}
	return result.Key, nil
}
