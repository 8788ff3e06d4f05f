package protocol

import "slices"

// MinVersion is the oldest protocol version that this program serves.
const MinVersion = 1

// The features that a client can announce.
const (
	// FeatureSecrets says that the client answers convls/secret/get.
	FeatureSecrets = "secrets"
	// FeatureTools says that the client answers convls/tool/call.
	FeatureTools = "tools"
)

// ServerFeatures are what this server can do, as it tells in [Capability]: families
// of methods, and what it asks of clients that announced it. They are sorted.
func ServerFeatures() []string {
	return []string{"branches", "compaction", "context", "exec", "graph", FeatureSecrets, "sessions", "spawn", FeatureTools, "turns"}
}

// Announcement is what a client says of itself in the member
// capabilities.experimental.convls of initialize. A client that sends none
// speaks LSP alone, and gets no convls/* message unless it subscribes.
type Announcement struct {
	// ProtocolVersion is the newest version that the client knows. Left out, it is 1.
	ProtocolVersion int `json:"protocol_version,omitzero"`
	// Min is the oldest version that it accepts. Left out, it is ProtocolVersion.
	Min      int      `json:"min,omitzero"`
	Features []string `json:"features,omitzero"`
}

// Agree returns the newest version that both sides speak, or an [Error] with
// code version_mismatch that tells the client not to send initialize again.
func (a Announcement) Agree() (int, error) {
	newest := a.ProtocolVersion
	if newest == 0 {
		newest = 1
	}
	oldest := a.Min
	if oldest == 0 {
		oldest = newest
	}
	agreed := min(newest, Version)
	if newest < 0 || oldest > newest || agreed < max(oldest, MinVersion) {
		err := Errorf(CodeVersionMismatch,
			"this server speaks protocol versions %d to %d and the client %d to %d: update the older of the two",
			MinVersion, Version, oldest, newest)
		retry := false
		err.Data.Retry = &retry
		return 0, err
	}
	return agreed, nil
}

// Capability is what the server says of itself in the member
// capabilities.experimental.convls of the reply to initialize.
type Capability struct {
	// ProtocolVersion is the version that both sides speak from now on.
	ProtocolVersion int      `json:"protocol_version"`
	Features        []string `json:"features"`
	// ClientID names this connection: it is the client_id in the origin of events
	// that the connection's own requests cause.
	ClientID string `json:"client_id"`
}

// Experimental holds convls's part of the experimental capabilities.
type Experimental struct {
	Convls *Capability `json:"convls,omitzero"`
}

// InitializeParams is the part of LSP's initialize parameters that convls
// reads. The members that are raw are decoded one by one, so that a client's
// odd spelling of something convls does not need never refuses the handshake.
type InitializeParams struct {
	ProcessID             Raw `json:"processId,omitzero"`
	ClientInfo            Raw `json:"clientInfo,omitzero"`
	Locale                Raw `json:"locale,omitzero"`
	RootURI               Raw `json:"rootUri,omitzero"`
	WorkspaceFolders      Raw `json:"workspaceFolders,omitzero"`
	Capabilities          Raw `json:"capabilities,omitzero"`
	InitializationOptions Raw `json:"initializationOptions,omitzero"`
}

// ClientInfo is who the client says it is; both members may be empty.
type ClientInfo struct {
	Name    string `json:"name,omitzero"`
	Version string `json:"version,omitzero"`
}

// WorkspaceFolder is a folder that the client has open.
type WorkspaceFolder struct {
	URI  string `json:"uri"`
	Name string `json:"name,omitzero"`
}

// ResetNotification is the parameters of convls/reset. It comes to a subscriber
// whose position the ledger no longer holds, because events were trimmed or the
// store was restored: take a snapshot of the session. The events after Cursor
// follow. Without SessionID it belongs to convls/store/subscribe: list the
// sessions anew.
type ResetNotification struct {
	SessionID string `json:"session_id,omitzero"`
	Cursor    string `json:"cursor,omitzero"`
}

// Client is what the server knows of a client once it is initialised.
type Client struct {
	ClientInfo
	// Announced says that the client speaks convls; Version is then the protocol
	// version agreed on, and Features are its announced features.
	Announced       bool
	ProtocolVersion int
	Features        []string
	// PositionEncoding is utf-8 or utf-16: what LSP positions count.
	PositionEncoding string
	// WorkDoneProgress says that window/workDoneProgress/create may be sent.
	WorkDoneProgress bool
	// TextDocumentContent says that workspace/textDocumentContent/refresh may be
	// sent.
	TextDocumentContent bool
	// Folders are what is open in the client; of a client that names a root alone,
	// that root.
	Folders []WorkspaceFolder
}

// Supports reports whether the client announced feature.
func (c *Client) Supports(feature string) bool {
	return slices.Contains(c.Features, feature)
}
