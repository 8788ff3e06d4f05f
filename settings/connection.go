package settings

import (
	"sync"
	"sync/atomic"

	"convls/protocol"
)

// Connection is the settings of one client. It is safe for concurrent use.
type Connection struct {
	base *Base

	mu sync.Mutex
	// options are of initialize, configured of the last change; each is what the
	// client says itself, and what the workspace says.
	options, configured []layer

	resolved atomic.Pointer[protocol.Settings]
}

// Initialize takes initializationOptions; nil and null are none. The error, code
// invalid_params, names every setting with a value that it can not have, and
// leaves the former settings in force.
//
// The member workspace_settings holds what the workspace brings along, and
// whether it is trusted; it wins over what stands beside it. Of a workspace that
// is not trusted, what names commands, addresses or environment variables is
// refused with a warning and the rest applies, and so do its faults.
func (c *Connection) Initialize(options protocol.Raw) (warnings []string, err error) {
	return c.replace(&c.options, options)
}

// Configure takes the settings of workspace/didChangeConfiguration. They are all
// that the client has to say, and replace what it said there before; what it said
// in initialize stays. null says nothing: that client waits to be asked. Otherwise
// it is like [Connection.Initialize].
func (c *Connection) Configure(settings protocol.Raw) (warnings []string, err error) {
	if settings == nil || settings.Kind() == 'n' {
		return nil, nil
	}
	return c.replace(&c.configured, settings)
}

// replace puts new layers in the place of those at to.
func (c *Connection) replace(to *[]layer, raw protocol.Raw) ([]string, error) {
	layers, warnings, err := readClient(raw)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	before := *to
	*to = layers
	s, err := c.base.resolve(append(append([]layer{}, c.options...), c.configured...)...)
	if err != nil {
		*to = before
		return nil, err
	}
	c.resolved.Store(&s)
	return warnings, nil
}

// Settings returns what holds now. It is shared: change nothing in it.
func (c *Connection) Settings() protocol.Settings { return *c.resolved.Load() }
