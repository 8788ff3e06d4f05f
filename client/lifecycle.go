package client

import (
	"context"
	"errors"
	"os"

	"convls/protocol"
)

// Server is what a server says of itself.
type Server struct {
	protocol.ClientInfo
	protocol.Capability
	// PositionEncoding is what LSP positions count.
	PositionEncoding string
	// Capabilities are all of LSP's capabilities, as they came.
	Capabilities protocol.Raw
}

// initializeParams is LSP's InitializeParams as this client sends them.
type initializeParams struct {
	ProcessID             int                        `json:"processId"`
	ClientInfo            protocol.ClientInfo        `json:"clientInfo"`
	RootURI               *string                    `json:"rootUri"`
	WorkspaceFolders      []protocol.WorkspaceFolder `json:"workspaceFolders"`
	InitializationOptions any                        `json:"initializationOptions,omitempty"`
	Capabilities          capabilities               `json:"capabilities"`
}

type capabilities struct {
	General struct {
		PositionEncodings []string `json:"positionEncodings"`
	} `json:"general"`
	Experimental struct {
		Convls protocol.Announcement `json:"convls"`
	} `json:"experimental"`
}

// Initialize does LSP's handshake and returns what the server says of itself.
func (c *Client) Initialize(ctx context.Context) (*Server, error) {
	p := initializeParams{
		ProcessID:             os.Getpid(),
		ClientInfo:            protocol.ClientInfo{Name: c.opts.Name, Version: c.opts.Version},
		WorkspaceFolders:      c.opts.Folders,
		InitializationOptions: c.opts.Settings,
	}
	if p.ClientInfo.Name == "" {
		p.ClientInfo.Name = "go-client"
	}
	p.Capabilities.General.PositionEncodings = []string{"utf-8", "utf-16"}
	announced := &p.Capabilities.Experimental.Convls
	announced.ProtocolVersion, announced.Min = protocol.Version, protocol.MinVersion
	if c.opts.CallTool != nil {
		announced.Features = append(announced.Features, protocol.FeatureTools)
	}
	if c.opts.Secret != nil {
		announced.Features = append(announced.Features, protocol.FeatureSecrets)
	}
	var result struct {
		ServerInfo   protocol.ClientInfo `json:"serverInfo"`
		Capabilities protocol.Raw        `json:"capabilities"`
	}
	if err := c.Call(ctx, "initialize", p, &result); err != nil {
		return nil, err
	}
	var caps struct {
		PositionEncoding string                `json:"positionEncoding"`
		Experimental     protocol.Experimental `json:"experimental"`
	}
	if err := protocol.Unmarshal(result.Capabilities, &caps); err != nil {
		return nil, err
	}
	if caps.Experimental.Convls == nil {
		return nil, errors.New("the server speaks LSP, but is not convls")
	}
	server := &Server{
		ClientInfo:       result.ServerInfo,
		Capability:       *caps.Experimental.Convls,
		PositionEncoding: caps.PositionEncoding,
		Capabilities:     result.Capabilities,
	}
	return server, c.Notify(ctx, "initialized", struct{}{})
}

// Configure sends settings by workspace/didChangeConfiguration.
func (c *Client) Configure(ctx context.Context, settings any) error {
	return c.Notify(ctx, "workspace/didChangeConfiguration", map[string]any{"settings": settings})
}

// Shutdown ends the connection as LSP wants it, and waits until it is over. The
// error is that of the shutdown request, of ctx, or [Client.Err].
func (c *Client) Shutdown(ctx context.Context) error {
	if err := c.Call(ctx, "shutdown", nil, nil); err != nil {
		return err
	}
	if err := c.Notify(ctx, "exit", nil); err != nil {
		return err
	}
	select {
	case <-c.done:
		return c.err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
