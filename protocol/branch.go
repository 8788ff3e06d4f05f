package protocol

import "time"

// Branch is a tip: a chain node that no chain node follows. A name is a
// reference to a chain node, moved along by append while HEAD is attached to it.
type Branch struct {
	Tip       string    `json:"tip"`
	Name      string    `json:"name,omitzero"`
	Depth     int64     `json:"depth"`
	UpdatedAt time.Time `json:"updated_at"`
	IsHead    bool      `json:"is_head"`
	// Renders is raw, or compacted where a summary applies.
	Renders string `json:"renders"`
	Preview string `json:"preview,omitzero"`
	// Spawned says that the branch belongs to a spawned turn: its tip, or a node before
	// it, was invoked by another node.
	Spawned bool `json:"spawned,omitzero"`
	// Usage is the sum over the branch, from the root to the tip.
	Usage *Usage `json:"usage,omitzero"`
}

// BranchListResult is the reply to convls/branch/list: last used first.
type BranchListResult struct {
	Branches []Branch `json:"branches"`
}

// CheckoutParams are the parameters of convls/branch/checkout: exactly one of
// NodeID and Branch.
type CheckoutParams struct {
	Mutation
	SessionID string `json:"session_id"`
	NodeID    string `json:"node_id,omitzero"`
	Branch    string `json:"branch,omitzero"`
	// Descend goes on to the tip that was last used below the node.
	Descend bool `json:"descend,omitzero"`
}

// HeadResult is the reply of requests that move HEAD.
type HeadResult struct {
	Head   string `json:"head"`
	Branch string `json:"branch,omitzero"`
	Cursor string `json:"cursor"`
}

// ForkParams are the parameters of convls/branch/fork.
type ForkParams struct {
	Mutation
	SessionID string `json:"session_id"`
	NodeID    string `json:"node_id"`
	// Name has 100 bytes at most, no characters that can not be seen, and no space at
	// its ends: any other is refused.
	Name string `json:"name,omitzero"`
}

// ForkResult is the reply to convls/branch/fork.
type ForkResult struct {
	Head   string `json:"head"`
	Branch Branch `json:"branch"`
	Cursor string `json:"cursor"`
}

// RewindParams are the parameters of convls/branch/rewind.
type RewindParams struct {
	Mutation
	SessionID string `json:"session_id"`
	// NodeID is a user node on the spine of HEAD; HEAD goes to its predecessor.
	NodeID string `json:"node_id"`
}

// RewindResult is the reply to convls/branch/rewind: the message that was taken
// back, so that the person can write it anew.
type RewindResult struct {
	Head    string `json:"head"`
	Content []Part `json:"content"`
	Cursor  string `json:"cursor"`
}

// BranchRenameParams are the parameters of convls/branch/rename: the branch is
// told by tip or by its present name; an empty name takes the name away.
type BranchRenameParams struct {
	Mutation
	SessionID string `json:"session_id"`
	Tip       string `json:"tip,omitzero"`
	Branch    string `json:"branch,omitzero"`
	// Name is as in ForkParams; an empty one takes the name away.
	Name string `json:"name"`
}

// BranchResult is the reply to convls/branch/rename.
type BranchResult struct {
	Branch Branch `json:"branch"`
	Cursor string `json:"cursor"`
}

// BranchDeleteParams are the parameters of convls/branch/delete.
type BranchDeleteParams struct {
	Mutation
	SessionID string `json:"session_id"`
	Tip       string `json:"tip,omitzero"`
	Branch    string `json:"branch,omitzero"`
	// Confirm says that the person knows what goes, even if that is only the name.
	Confirm bool `json:"confirm,omitzero"`
	// Cancel stops running turns inside the branch first; without it they are
	// refused with turn_running.
	Cancel bool `json:"cancel,omitzero"`
}

// BranchDeleteResult is the reply to convls/branch/delete.
type BranchDeleteResult struct {
	// Removed is how many nodes went, tools and other subtrees included.
	Removed int64 `json:"removed"`
	// RemovedIDs are the chain nodes among them, the first 1,000.
	RemovedIDs []string `json:"removed_ids"`
	Head       string   `json:"head"`
	Cursor     string   `json:"cursor"`
}

// CompareParams are the parameters of convls/branch/compare.
type CompareParams struct {
	SessionID string `json:"session_id"`
	AID       string `json:"a_id"`
	BID       string `json:"b_id"`
}

// CompareResult is the reply to convls/branch/compare.
type CompareResult struct {
	AncestorID string      `json:"ancestor_id"`
	A          CompareSide `json:"a"`
	B          CompareSide `json:"b"`
}

// CompareSide is what one branch added after the common ancestor.
type CompareSide struct {
	ID    string `json:"id"`
	Count int64  `json:"count"`
	// Rows are the first 200 of its chain nodes.
	Rows   []Row `json:"rows"`
	Tokens int64 `json:"tokens"`
	Usage  Usage `json:"usage"`
}

// AttachParams are the parameters of convls/branch/attach.
type AttachParams struct {
	Mutation
	SessionID string `json:"session_id"`
	// AnchorID is the chain node after which the attach node goes.
	AnchorID string `json:"anchor_id"`
	// FromSessionID is another session; the same if it is left out.
	FromSessionID string `json:"from_session_id,omitzero"`
	// SourceID is a reply, a summary, or any chain node: of a branch its last
	// reply is what is attached.
	SourceID string `json:"source_id"`
}

// NodeResult is a node with the cursor of the change that made it so.
type NodeResult struct {
	Node
	Cursor string `json:"cursor"`
}

// NodeGetParams are the parameters of convls/node/get.
type NodeGetParams struct {
	SessionID string `json:"session_id"`
	NodeID    string `json:"node_id"`
	// Include names reads, content and provenance; content alone if left out.
	Include []string `json:"include,omitzero"`
	// MaxBytes cuts the text of content, at a character border, and leaves images
	// that do not fit without their data; 4 MiB if left out, 7 MiB at most.
	MaxBytes int64 `json:"max_bytes,omitzero"`
	// Part reads one part of content alone, counted from 0: the whole of it, however
	// long it is, comes in ranges. Content then has that part, with a range of its
	// data (an image), its arguments as text (a tool_call) or its text, and the reply
	// has size.
	Part *int `json:"part,omitzero"`
	// Offset is where the range begins, in bytes: of an image's data after base64 is
	// decoded, of text in UTF-8, where it must be the beginning of a character. The
	// next range begins where the bytes of this one end; at size there are no more.
	Offset int64 `json:"offset,omitzero"`
	// Limit is how many bytes to send, 4 MiB if left out and at most. Text ends with a
	// whole character, and has one at least.
	Limit int64 `json:"limit,omitzero"`
}

// NodeGetResult is the reply to convls/node/get.
type NodeGetResult struct {
	Node
	// Size is how many bytes the part has in all, in the measure of offset; sent when
	// part is asked for.
	Size *int64 `json:"size,omitzero"`
}

// NodeParams are the parameters of convls/node/pin and unpin.
type NodeParams struct {
	Mutation
	SessionID string `json:"session_id"`
	NodeID    string `json:"node_id"`
}

// RedactParams are the parameters of convls/node/redact.
type RedactParams struct {
	Mutation
	SessionID string `json:"session_id"`
	NodeID    string `json:"node_id"`
	Confirm   bool   `json:"confirm,omitzero"`
}
