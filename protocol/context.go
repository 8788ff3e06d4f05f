package protocol

// ContextGetParams are the parameters of convls/context/get.
type ContextGetParams struct {
	SessionID string `json:"session_id"`
	Head      string `json:"head,omitzero"`
	// Raw ignores summaries.
	Raw bool `json:"raw,omitzero"`
	// Draft is a message that is not sent yet: it is counted and shown last.
	Draft *ContextDraft `json:"draft,omitzero"`
	// Text set to false leaves the texts out.
	Text *bool `json:"text,omitzero"`
	// Limit is 500 entries if it is left out, 5,000 at most.
	Limit  int    `json:"limit,omitzero"`
	Cursor string `json:"cursor,omitzero"`
}

// ContextDraft is a message that is not sent yet.
type ContextDraft struct {
	Content SendContent   `json:"content,omitzero"`
	Context []ContextItem `json:"context,omitzero"`
}

// Why says for what reason something is in the context.
type Why string

// The reasons.
const (
	WhySystem   Why = "system"
	WhySummary  Why = "summary"
	WhySpine    Why = "spine"
	WhySubtree  Why = "subtree"
	WhyAttached Why = "attached"
	WhyContext  Why = "context"
	WhyPinned   Why = "pinned"
	WhyDraft    Why = "draft"
)

// ContextEntry is one piece of what the model reads.
type ContextEntry struct {
	ID     string `json:"id"`
	Kind   Kind   `json:"kind"`
	Role   string `json:"role"`
	Text   string `json:"text"`
	Tokens int64  `json:"tokens"`
	Why    Why    `json:"why"`
}

// ContextView is exactly what the model would read from head: the system prompt
// (it may be empty), the summary if one applies, then each chain node followed by
// its subtree.
type ContextView struct {
	Head    string         `json:"head"`
	Entries []ContextEntry `json:"entries"`
	// SummaryID is the summary that applies; empty where the branch renders raw.
	SummaryID string    `json:"summary_id,omitzero"`
	Omitted   []Omitted `json:"omitted"`
	Budget    Budget    `json:"budget"`
	// Total is how many entries there are in all pages.
	Total int    `json:"total"`
	Next  string `json:"next,omitzero"`
}

// Omitted is what a summary stands for in the view.
type Omitted struct {
	SummaryID string `json:"summary_id"`
	Count     int64  `json:"count"`
	// Tokens is the estimate that was stored with the covered nodes; 0 if unknown.
	Tokens int64 `json:"tokens"`
}

// ModelListResult is the reply to convls/model/list.
type ModelListResult struct {
	Models []Model `json:"models"`
	// Errors are the providers that could not be asked.
	Errors []ProviderError `json:"errors"`
}

// ProviderError is a provider that could not be asked for its models.
type ProviderError struct {
	Provider string    `json:"provider"`
	Error    NodeError `json:"error"`
}

// Model is something that can answer.
type Model struct {
	// ID is provider/name, as the setting model takes it.
	ID       string `json:"id"`
	Provider string `json:"provider"`
	// Window and MaxOutput are tokens; 0 where unknown.
	Window    int64 `json:"window"`
	MaxOutput int64 `json:"max_output"`
	// InputPrice, OutputPrice and CacheReadPrice are dollars a million tokens; 0
	// where unknown.
	InputPrice     float64 `json:"input_price,omitzero"`
	OutputPrice    float64 `json:"output_price,omitzero"`
	CacheReadPrice float64 `json:"cache_read_price,omitzero"`
	IsDefault      bool    `json:"is_default,omitzero"`
}

// StatusResult is the reply to convls/status.
type StatusResult struct {
	Version            string              `json:"version"`
	ProtocolVersion    int                 `json:"protocol_version"`
	PID                int                 `json:"pid"`
	Store              StoreStatus         `json:"store"`
	Clients            int                 `json:"clients"`
	RunningTurns       []RunningTurn       `json:"running_turns"`
	RunningCompactions []RunningCompaction `json:"running_compactions"`
	UptimeMS           int64               `json:"uptime_ms"`
}

// StoreStatus describes the ledger.
type StoreStatus struct {
	Path     string `json:"path"`
	Format   int    `json:"format"`
	Sessions int64  `json:"sessions"`
	Bytes    int64  `json:"bytes"`
	ReadOnly bool   `json:"read_only"`
}

// RunningTurn is a turn that is being answered now.
type RunningTurn struct {
	SessionID string `json:"session_id"`
	ReplyID   string `json:"reply_id"`
	Model     string `json:"model"`
	ElapsedMS int64  `json:"elapsed_ms"`
}
