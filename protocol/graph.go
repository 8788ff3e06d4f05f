package protocol

import "time"

// GraphGetParams are the parameters of convls/graph/get: a window of the graph of a
// session, as a person sees it from head. Without around, before and after it is the
// window around head.
type GraphGetParams struct {
	SessionID string `json:"session_id"`
	// Head is the chain node whose folds and context are shown; the session's HEAD if
	// it is left out. Where rows and lanes are does not depend on it.
	Head string `json:"head,omitzero"`
	// Expanded are summaries whose covered nodes are shown, as ghosts, and chain nodes
	// whose calls are shown. An id that no node has is passed over, as in
	// TranscriptParams.
	Expanded []string `json:"expanded,omitzero"`
	// Around, Before and After are ids of nodes: the window around a node's row, or the
	// rows before or after it. One of them at most. A node that is folded away counts
	// as the row that it is folded into.
	Around string `json:"around,omitzero"`
	Before string `json:"before,omitzero"`
	After  string `json:"after,omitzero"`
	// Limit is how many rows to send, 200 if it is left out, 2,000 at most.
	Limit int `json:"limit,omitzero"`
	// Since is the revision of a window that the client has, asked for with the same
	// parameters: only what changed after it is sent. One that is greater than the
	// session's is refused.
	Since int64 `json:"since,omitzero"`
	// ReadsOf is the id of a reply, call or summary: rows whose content entered that
	// model call are marked as read.
	ReadsOf string `json:"reads_of,omitzero"`
	// Covers is ids, or count to leave the ids of covered nodes out; ids if it is left
	// out.
	Covers string `json:"covers,omitzero"`
}

// GraphChange says what of a window changed since a revision.
type GraphChange string

// The extents of a change.
const (
	// GraphUnchanged sends no rows: the client has them.
	GraphUnchanged GraphChange = "none"
	// GraphRows sends the rows of the window that are new or changed, and the edges at
	// them; all others are as they were.
	GraphRows GraphChange = "rows"
	// GraphAll sends the whole window.
	GraphAll GraphChange = "all"
)

// GraphView is a window of the graph. Rows are in the order in which they are drawn,
// top to bottom. A client draws and lays nothing out.
type GraphView struct {
	// Revision is that of the session at which the window was read.
	Revision int64 `json:"revision"`
	// Head is the chain node whose folds are shown.
	Head    string      `json:"head"`
	Changed GraphChange `json:"changed"`
	Rows    []GraphRow  `json:"rows"`
	// Edges are those that begin, end, or pass in the window.
	Edges []GraphEdge `json:"edges"`
	// Passing is how many edges pass the window from above it to below it: the first
	// 100 of them are in Edges.
	Passing int `json:"passing,omitzero"`
	// TotalRows counts the rows of the whole graph with these folds, without the calls
	// of expanded nodes.
	TotalRows int64 `json:"total_rows"`
	// Lanes is how many lanes the layout of the session has.
	Lanes int `json:"lanes"`
	// Damage tells of a record that can not be read: what hangs on it is left out.
	Damage string `json:"damage,omitzero"`
	// Before and After are what to send for the windows before and after this one;
	// empty at the ends.
	Before string `json:"before,omitzero"`
	After  string `json:"after,omitzero"`
}

// GraphRow is one node of the graph, laid out.
type GraphRow struct {
	ID     string `json:"id"`
	Kind   Kind   `json:"kind"`
	Role   string `json:"role"`
	Status Status `json:"status"`
	// Preview is the beginning of the text on one line, 200 characters at most; of an
	// attach node that of its source.
	Preview     string `json:"preview"`
	Predecessor string `json:"predecessor,omitzero"`
	Caller      string `json:"caller,omitzero"`
	// Seq is the order in which the session's nodes were written.
	Seq int64 `json:"seq"`
	// Row is the slot of the row, and never changes: the seq of the chain node that
	// stands there, that a call hangs off, or that a summary's covered nodes end with.
	// It grows from top to bottom; rows of one slot follow each other.
	Row int64 `json:"row"`
	// Lane is the column, from 0, and never changes.
	Lane int `json:"lane"`
	// Tier is 0 for chain nodes and summaries, and for a call how deep it is called:
	// 1 for one that a chain node made.
	Tier int `json:"tier,omitzero"`

	Model     string    `json:"model,omitzero"`
	CreatedAt time.Time `json:"created_at"`
	// Tokens is how many tokens the content takes, as it was counted when it was
	// written; 0 if it was not.
	Tokens int64      `json:"tokens,omitzero"`
	Usage  *Usage     `json:"usage,omitzero"`
	Error  *NodeError `json:"error,omitzero"`

	// IsHead marks the session's HEAD, or the capsule that it is folded into.
	IsHead bool `json:"is_head,omitzero"`
	// OnHead marks what stands on the spine of the view's head.
	OnHead bool `json:"on_head,omitzero"`
	// InContext marks what a model reads from the view's head.
	InContext bool `json:"in_context,omitzero"`
	// Read marks what the call that reads_of names has read.
	Read bool `json:"read,omitzero"`
	// Ghost marks what an expanded summary stands for; CoveredBy is that summary.
	Ghost     bool   `json:"ghost,omitzero"`
	CoveredBy string `json:"covered_by,omitzero"`

	// Branches are the names that refer to this node, or into this capsule; Tip marks
	// an end that no chain node follows.
	Branches []string `json:"branches,omitzero"`
	Tip      bool     `json:"tip,omitzero"`
	// Spawned marks chain nodes of a turn that another node called.
	Spawned bool `json:"spawned,omitzero"`
	// Calls is how many nodes this chain node called, with all that those called:
	// 1,000 stands for that many or more. They are rows only where the node is
	// expanded.
	Calls    int   `json:"calls,omitzero"`
	Pinned   bool  `json:"pinned,omitzero"`
	Redacted bool  `json:"redacted,omitzero"`
	Fold     *Fold `json:"fold,omitzero"`
	// CoversIDs are, for the summary that views stand on, the ids it stands for: the
	// chain nodes, each followed by what it called. CoversCount comes instead where
	// there are more than 1,000, or where only the count was asked for.
	CoversIDs         []string `json:"covers_ids,omitzero"`
	CoversCount       int64    `json:"covers_count,omitzero"`
	SupersededSummary bool     `json:"superseded_summary,omitzero"`
	Void              bool     `json:"void,omitzero"`
	// Source is what an attach node points at.
	Source *GraphSource `json:"source,omitzero"`
	// Actions are the commands that are allowed here now.
	Actions []string `json:"actions,omitzero"`
}

// GraphSource is what an attach node points at.
type GraphSource struct {
	SessionID string `json:"session_id"`
	NodeID    string `json:"node_id"`
	// Title is that of the session, if it is another one.
	Title string `json:"title,omitzero"`
	// Kind and Depth are the node's; Depth belongs to chain nodes.
	Kind  Kind  `json:"kind,omitzero"`
	Depth int64 `json:"depth,omitzero"`
	// Branch is a name that refers to the node, or the nearest that refers to one after
	// it; empty if there is none.
	Branch string `json:"branch,omitzero"`
	// Deleted says that the node is gone: the model reads that it is, and nothing else.
	Deleted bool `json:"deleted,omitzero"`
}

// EdgeStyle says what an edge means.
type EdgeStyle string

// The styles of edges.
const (
	// EdgeChain leads from a chain node to one that follows it.
	EdgeChain EdgeStyle = "chain"
	// EdgeFolded ends or begins at a capsule, in the place of a node that is folded
	// into it.
	EdgeFolded EdgeStyle = "folded"
	// EdgeSpawn leads to the first node of a turn that another node called.
	EdgeSpawn EdgeStyle = "spawn"
	// EdgeAttach leads from a node to an attach node that points at it, across the
	// lanes: it has no lane of its own.
	EdgeAttach EdgeStyle = "attach"
)

// GraphEdge is a line to draw. It leaves its beginning sideways, in the row
// FromRow and from FromLane to the lane it runs in, then goes down in that lane
// to its end, ToRow. Where it has bends it changes its lane on the way. No other edge and no
// node of the chain is in its lane between its ends. An edge whose FromRow is its ToRow
// is sideways only: it leaves the line of a folded stretch beside its end.
type GraphEdge struct {
	From  string    `json:"from"`
	To    string    `json:"to"`
	Style EdgeStyle `json:"style"`
	// FromRow, FromLane, ToRow and ToLane are where the ends are, in the window or out
	// of it.
	FromRow  int64 `json:"from_row"`
	FromLane int   `json:"from_lane"`
	ToRow    int64 `json:"to_row"`
	ToLane   int   `json:"to_lane"`
	// Bends, top to bottom, are where an edge that stands for folded nodes changes its
	// lane. Before the first one it runs in the lane of that one's From; an edge
	// without bends runs in ToLane.
	Bends []GraphBend `json:"bends,omitzero"`
}

// GraphBend is where an edge changes its lane, in the slot Row or where that would be.
type GraphBend struct {
	Row  int64 `json:"row"`
	From int   `json:"from"`
	To   int   `json:"to"`
}
