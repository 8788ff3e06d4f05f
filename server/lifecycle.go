package server

import (
	"context"
	"slices"

	"convls/protocol"

	"go.lsp.dev/jsonrpc2"
	lsp "go.lsp.dev/protocol"
	"go.uber.org/zap"
)

// state is where a connection is in LSP's lifecycle (LSP 3.18, "Server
// lifecycle").
type state int

const (
	// stateNew takes initialize and exit alone.
	stateNew state = iota
	stateReady
	// stateShutdown takes exit alone.
	stateShutdown
	// stateExited was left by exit after shutdown, stateLeft by exit without.
	stateExited
	stateLeft
)

// left reports whether the client said exit.
func (c *Conn) left() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.state == stateExited || c.state == stateLeft
}

// allows returns the refusal of a request in the present state. c.mu is held.
func (c *Conn) allows(method string) error {
	switch {
	case c.ending:
		return errEnded
	case c.state == stateNew && method != lsp.MethodInitialize:
		return jsonrpc2.NewError(jsonrpc2.ServerNotInitialized, "initialize must come first")
	case c.state == stateReady && method == lsp.MethodInitialize:
		return jsonrpc2.NewError(jsonrpc2.InvalidRequest, "the connection is initialised already")
	case c.state > stateReady:
		return jsonrpc2.NewError(jsonrpc2.InvalidRequest, "after shutdown only exit is expected")
	}
	return nil
}

// initialize answers LSP's initialize. It must come through whatever a client
// says about things convls does not use, so those are read leniently.
func (c *Conn) initialize(ctx context.Context, _ *Conn, params []byte) (any, error) {
	var p protocol.InitializeParams
	if err := protocol.UnmarshalParams(params, &p); err != nil {
		return nil, err
	}
	client, err := c.readClient(p)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	c.client = client
	c.mu.Unlock()
	if c.opts.OnInitialize != nil {
		options := p.InitializationOptions
		if string(options) == "null" {
			options = nil
		}
		if err := c.opts.OnInitialize(ctx, c, options); err != nil {
			return nil, err
		}
	}
	features := slices.Clone(c.opts.Features)
	slices.Sort(features)
	experimental, err := protocol.Marshal(protocol.Experimental{Convls: &protocol.Capability{
		ProtocolVersion: client.ProtocolVersion, Features: features, ClientID: c.id,
	}})
	if err != nil {
		return nil, err
	}
	capabilities := c.opts.Capabilities
	capabilities.PositionEncoding = lsp.PositionEncodingKind(client.PositionEncoding)
	capabilities.Experimental = experimental

	AfterReply(ctx, func() {
		c.mu.Lock()
		c.live = true
		c.mu.Unlock()
	})
	c.mu.Lock()
	c.state = stateReady
	c.mu.Unlock()
	c.log.Info("client connected", zap.String("name", client.Name), zap.String("version", client.Version),
		zap.Bool("convls", client.Announced), zap.Strings("features", client.Features))
	info := lsp.ServerInfo{Name: c.opts.Name}
	if c.opts.Version != "" {
		info.Version = lsp.NewOptional(c.opts.Version)
	}
	return lsp.InitializeResult{Capabilities: capabilities, ServerInfo: info}, nil
}

// readClient reads what initialize says about the client.
func (c *Conn) readClient(p protocol.InitializeParams) (protocol.Client, error) {
	client := protocol.Client{ProtocolVersion: protocol.Version}
	var caps struct {
		General      protocol.Raw `json:"general"`
		Window       protocol.Raw `json:"window"`
		Workspace    protocol.Raw `json:"workspace"`
		Experimental protocol.Raw `json:"experimental"`
	}
	var general struct {
		PositionEncodings []string `json:"positionEncodings"`
	}
	var window struct {
		WorkDoneProgress bool `json:"workDoneProgress"`
	}
	var workspace struct {
		TextDocumentContent protocol.Raw `json:"textDocumentContent"`
	}
	var experimental struct {
		Convls protocol.Raw `json:"convls"`
	}
	var root string
	c.lenient("clientInfo", p.ClientInfo, &client.ClientInfo)
	c.lenient("capabilities", p.Capabilities, &caps)
	c.lenient("general", caps.General, &general)
	c.lenient("window", caps.Window, &window)
	c.lenient("workspace", caps.Workspace, &workspace)
	c.lenient("experimental", caps.Experimental, &experimental)
	c.lenient("workspaceFolders", p.WorkspaceFolders, &client.Folders)
	c.lenient("rootUri", p.RootURI, &root)

	if len(client.Folders) == 0 && root != "" {
		client.Folders = []protocol.WorkspaceFolder{{URI: root}}
	}
	// The first that we know; UTF-16 must be understood by everybody.
	client.PositionEncoding = string(lsp.PositionEncodingKindUTF16)
	if slices.Contains(general.PositionEncodings, string(lsp.PositionEncodingKindUTF8)) {
		client.PositionEncoding = string(lsp.PositionEncodingKindUTF8)
	}
	client.WorkDoneProgress = window.WorkDoneProgress
	client.TextDocumentContent = given(workspace.TextDocumentContent)

	if given(experimental.Convls) {
		var a protocol.Announcement
		if err := protocol.UnmarshalParams(experimental.Convls, &a); err != nil {
			return client, protocol.Errorf(protocol.CodeInvalidParams, "capabilities.experimental.convls: %v", err)
		}
		version, err := a.Agree()
		if err != nil {
			return client, err
		}
		client.Announced, client.ProtocolVersion, client.Features = true, version, a.Features
	}
	return client, nil
}

// given reports whether a member is there and not null.
func given(raw protocol.Raw) bool { return len(raw) > 0 && string(raw) != "null" }

// lenient decodes what it can.
func (c *Conn) lenient(name string, raw protocol.Raw, v any) {
	if !given(raw) {
		return
	}
	if err := protocol.Unmarshal(raw, v); err != nil {
		c.log.Debug("a part of initialize was not understood", zap.String("part", name), zap.Error(err))
	}
}

func (c *Conn) shutdown(ctx context.Context, _ *Conn, _ []byte) (any, error) {
	if c.opts.OnShutdown != nil {
		if err := c.opts.OnShutdown(ctx, c); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

// exit ends the connection: the next read finds its end.
func (c *Conn) exit() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.state == stateShutdown {
		c.state = stateExited
	} else {
		c.state = stateLeft
	}
}
