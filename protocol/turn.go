package protocol

import (
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// ContextItem is something that the person attaches to a message. Its text is
// stored with the message as it was.
type ContextItem struct {
	// Type is file, selection, diagnostics, text or another word of the client's.
	Type  string     `json:"type"`
	URI   string     `json:"uri,omitzero"`
	Range *TextRange `json:"range,omitzero"`
	Text  string     `json:"text"`
}

// ToolDeclaration is a tool that the client offers to the model for one turn.
type ToolDeclaration struct {
	Name        string `json:"name"`
	Description string `json:"description,omitzero"`
	// Schema is the JSON Schema of the arguments, an object.
	Schema Raw `json:"schema,omitzero"`
	// Approval is always, once or never (the default): whether the client wants to
	// ask a person first. The client asks; convls passes it on.
	Approval string `json:"approval,omitzero"`
}

// SendContent is what a message says: on the wire a string, or an array of parts.
type SendContent []Part

// UnmarshalJSONFrom accepts a string as one text part.
func (c *SendContent) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	if dec.PeekKind() == '"' {
		var s string
		if err := json.UnmarshalDecode(dec, &s); err != nil {
			return err
		}
		*c = SendContent{{Type: PartText, Text: s}}
		return nil
	}
	var parts []Part
	if err := json.UnmarshalDecode(dec, &parts); err != nil {
		return err
	}
	*c = parts
	return nil
}

// TurnSendParams are the parameters of convls/turn/send.
type TurnSendParams struct {
	Mutation
	SessionID string      `json:"session_id"`
	Content   SendContent `json:"content"`
	// Context is what the person attached to the message.
	Context []ContextItem `json:"context,omitzero"`
	// Model answers this turn; the session's model if it is left out.
	Model string `json:"model,omitzero"`
	// Tools are what the model may call in this turn.
	Tools []ToolDeclaration `json:"tools,omitzero"`
	// Wait makes the reply come when the turn has ended.
	Wait bool `json:"wait,omitzero"`
	// Spawn makes a turn on a side branch of its own, which moves neither HEAD nor a
	// name, waits for no other turn, and is waited for by none. The rest is of a
	// spawned turn alone: a message to another session is an ordinary send there.
	Spawn bool `json:"spawn,omitzero"`
	// Caller is the node that invokes it, of any kind; the node that it follows if it
	// is left out.
	Caller string `json:"caller,omitzero"`
	// Head is the chain node that it follows: if it is left out the one that Caller
	// hangs off, or HEAD. In the place of one that is being written it follows the
	// last one before that.
	Head string `json:"head,omitzero"`
	// Expose shows the message and its replies in the context of the node that they
	// hang off.
	Expose bool `json:"expose,omitzero"`
}

// TurnResult is the reply to convls/turn/send and to an edit of a user node.
type TurnResult struct {
	UserID  string `json:"user_id"`
	ReplyID string `json:"reply_id"`
	// State is running or queued, or with wait how the turn ended; with wait, queued
	// means that the turn before did not succeed and that this one is held.
	State Status `json:"state"`
	Head  string `json:"head"`
	// Node is the last reply of the turn; sent with wait.
	Node   *Node  `json:"node,omitzero"`
	Cursor string `json:"cursor"`
}

// ExecParams are the parameters of convls/exec.
type ExecParams struct {
	Mutation
	SessionID string `json:"session_id"`
	// Prompt is what the model is asked, after the context.
	Prompt SendContent `json:"prompt"`
	// Context is what the person attached to the prompt.
	Context []ContextItem `json:"context,omitzero"`
	// Head is the chain node whose context the model reads; HEAD if it is left out. In
	// the place of one that is being written it is the last one before that.
	Head string `json:"head,omitzero"`
	// RenderRange is how many entries of the chain the model reads, the last ones, the
	// summary counted as one of them; all if it is left out. The system prompt is
	// always there.
	RenderRange *int `json:"render_range,omitzero"`
	// Caller is the node that invokes the call, of any kind; the call hangs off it. If
	// it is left out, the call hangs off the node that it reads the context of.
	Caller string `json:"caller,omitzero"`
	// Expose shows prompt and answer in the context of the chain node that the call
	// hangs off.
	Expose bool `json:"expose,omitzero"`
	// Model answers the call; the session's model if it is left out.
	Model string `json:"model,omitzero"`
	// Wait makes the reply come when the call has ended.
	Wait bool `json:"wait,omitzero"`
}

// ExecResult is the reply to convls/exec.
type ExecResult struct {
	// NodeID is the call node: turn/cancel takes it as reply_id.
	NodeID string `json:"node_id"`
	// State is running, or with wait how the call ended.
	State Status `json:"state"`
	// Head is where HEAD is: the call does not move it.
	Head string `json:"head"`
	// Node is the call; sent with wait.
	Node   *Node  `json:"node,omitzero"`
	Cursor string `json:"cursor"`
}

// TurnRetryParams are the parameters of convls/turn/retry.
type TurnRetryParams struct {
	Mutation
	SessionID string `json:"session_id"`
	// NodeID is a user node (the reply becomes a new child of it) or a reply (the
	// new one gets the same predecessor).
	NodeID string            `json:"node_id"`
	Model  string            `json:"model,omitzero"`
	Tools  []ToolDeclaration `json:"tools,omitzero"`
	// Count is how many candidates to make side by side, 1 to 8; HEAD goes to the
	// first.
	Count int  `json:"count,omitzero"`
	Wait  bool `json:"wait,omitzero"`
}

// TurnRetryResult is the reply to convls/turn/retry.
type TurnRetryResult struct {
	UserID     string      `json:"user_id"`
	Candidates []Candidate `json:"candidates"`
	Head       string      `json:"head"`
	Cursor     string      `json:"cursor"`
}

// Candidate is one of the replies that a retry makes.
type Candidate struct {
	ReplyID string `json:"reply_id"`
	State   Status `json:"state"`
	Node    *Node  `json:"node,omitzero"`
}

// TurnEditParams are the parameters of convls/turn/edit.
type TurnEditParams struct {
	Mutation
	SessionID string `json:"session_id"`
	// NodeID is a user node (a sibling with the new text is made and answered) or
	// a reply (a sibling with the given text is made; nothing is asked).
	NodeID  string            `json:"node_id"`
	Content SendContent       `json:"content"`
	Context []ContextItem     `json:"context,omitzero"`
	Model   string            `json:"model,omitzero"`
	Tools   []ToolDeclaration `json:"tools,omitzero"`
	Wait    bool              `json:"wait,omitzero"`
}

// TurnEditResult is the reply to convls/turn/edit: of a user node as of send; of
// a reply NodeID and Head.
type TurnEditResult struct {
	NodeID  string `json:"node_id,omitzero"`
	UserID  string `json:"user_id,omitzero"`
	ReplyID string `json:"reply_id,omitzero"`
	State   Status `json:"state"`
	Head    string `json:"head"`
	Node    *Node  `json:"node,omitzero"`
	Cursor  string `json:"cursor"`
}

// TurnCancelParams are the parameters of convls/turn/cancel.
type TurnCancelParams struct {
	RequestID string `json:"request_id,omitzero"`
	SessionID string `json:"session_id"`
	// ReplyID is any reply of the turn, the reply id of a queued send, or a call node.
	ReplyID string `json:"reply_id"`
}

// TurnCancelResult is the reply to convls/turn/cancel: the state that the turn
// ended in. A turn that had ended before keeps its state.
type TurnCancelResult struct {
	State Status `json:"state"`
	// Content is what a message said that was taken out of the queue: no node holds it.
	Content []Part `json:"content,omitempty"`
	Cursor  string `json:"cursor"`
}

// ToolCallParams are the parameters of convls/tool/call, which the server sends
// to the client that declared the tool.
type ToolCallParams struct {
	SessionID string `json:"session_id"`
	// NodeID is the tool node that will hold the result.
	NodeID    string `json:"node_id"`
	Name      string `json:"name"`
	Arguments Raw    `json:"arguments"`
	Approval  string `json:"approval,omitzero"`
}

// ToolCallResult is a client's answer to convls/tool/call.
type ToolCallResult struct {
	Content SendContent `json:"content"`
	IsError bool        `json:"is_error,omitzero"`
}

// SecretGetParams are the parameters of convls/secret/get, which the server
// sends to a client that announced the feature secrets.
type SecretGetParams struct {
	Provider  string `json:"provider"`
	BaseURL   string `json:"base_url"`
	SessionID string `json:"session_id,omitzero"`
	// Reason is missing, or rejected: the provider refused the last key, or, for a
	// server on this machine, a call without one.
	Reason string `json:"reason"`
	// Quiet says that nobody waits for what the key is for, as for a list of models:
	// a client gives a key that it has, and asks no person.
	Quiet bool `json:"quiet,omitzero"`
}

// SecretGetResult is a client's answer to convls/secret/get. A missing key means
// that it has none.
type SecretGetResult struct {
	Key string `json:"key,omitzero"`
}

// SecretChangedParams are the parameters of convls/secret/changed: the client's
// key for a provider changed, and what the server holds of it is forgotten.
type SecretChangedParams struct {
	Provider string `json:"provider"`
}
