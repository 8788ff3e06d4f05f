package transfer

import (
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"convls/protocol"
)

// agentEntry is a line of a session of the coding agent pi (packages/coding-agent,
// session-manager.ts), all its versions: in version 1 each entry follows the one
// before it; from version 2 on entries have ids and name their parents.
type agentEntry struct {
	Type      string  `json:"type"`
	ID        string  `json:"id"`
	ParentID  *string `json:"parentId"`
	Timestamp string  `json:"timestamp"`

	// The session's header, always the first entry.
	Version      int64        `json:"version"`
	CWD          string       `json:"cwd"`
	SystemPrompt string       `json:"systemPrompt"`
	Message      agentMessage `json:"message"`

	// The header, model_change and thinking_level_change.
	Provider      string `json:"provider"`
	ModelID       string `json:"modelId"`
	ThinkingLevel string `json:"thinkingLevel"`

	// compaction and branch_summary.
	Summary             string `json:"summary"`
	FirstKeptEntryIndex *int64 `json:"firstKeptEntryIndex"`
	FirstKeptEntryID    string `json:"firstKeptEntryId"`
	TokensBefore        int64  `json:"tokensBefore"`
	FromID              string `json:"fromId"`

	// custom_message, session_info and label.
	CustomType string       `json:"customType"`
	Content    agentContent `json:"content"`
	Details    protocol.Raw `json:"details"`
	Name       string       `json:"name"`
	TargetID   string       `json:"targetId"`
	Label      string       `json:"label"`

	Rest map[string]protocol.Raw `json:",embed"`
	line int64
}

// The types of entries that mean something here.
const (
	entrySession       = "session"
	entryMessage       = "message"
	entryModel         = "model_change"
	entryThinking      = "thinking_level_change"
	entryCompaction    = "compaction"
	entryBranchSummary = "branch_summary"
	entryCustomMessage = "custom_message"
	entryInfo          = "session_info"
	entryLabel         = "label"
)

// agentMessage is the message of an entry.
type agentMessage struct {
	Role      string       `json:"role"`
	Content   agentContent `json:"content"`
	Timestamp agentTime    `json:"timestamp"`

	Provider     string      `json:"provider"`
	Model        string      `json:"model"`
	Usage        *agentUsage `json:"usage"`
	StopReason   string      `json:"stopReason"`
	ErrorMessage string      `json:"errorMessage"`

	ToolCallID string `json:"toolCallId"`
	ToolName   string `json:"toolName"`
	IsError    bool   `json:"isError"`

	Command            string `json:"command"`
	Output             string `json:"output"`
	ExitCode           *int64 `json:"exitCode"`
	Cancelled          bool   `json:"cancelled"`
	ExcludeFromContext bool   `json:"excludeFromContext"`

	// Rest goes into the node's metadata as it is.
	Rest map[string]protocol.Raw `json:",embed"`
}

// agentUsage counts tokens; unlike ours, Input leaves out what the cache gave.
type agentUsage struct {
	Input      int64 `json:"input"`
	Output     int64 `json:"output"`
	CacheRead  int64 `json:"cacheRead"`
	CacheWrite int64 `json:"cacheWrite"`
	Cost       struct {
		Total float64 `json:"total"`
	} `json:"cost"`
}

func (u *agentUsage) usage() *protocol.Usage {
	if u == nil {
		return nil
	}
	return &protocol.Usage{InputTokens: u.Input + u.CacheRead + u.CacheWrite, OutputTokens: u.Output, CacheReadTokens: u.CacheRead,
		CacheWriteTokens: u.CacheWrite, CostUSD: u.Cost.Total}
}

// agentTime is milliseconds since 1970, or RFC 3339; the zero time if it is
// neither.
type agentTime struct{ time.Time }

// UnmarshalJSONFrom accepts a number or a string.
func (t *agentTime) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	switch d.PeekKind() {
	case '0':
		tok, err := d.ReadToken()
		if err != nil {
			return err
		}
		if ms, err := tok.Float(); err == nil && ms > 0 && ms < 1e15 {
			t.Time = sane(time.UnixMilli(int64(ms)))
		}
		return nil
	case '"':
		tok, err := d.ReadToken()
		if err != nil {
			return err
		}
		t.Time = timeOf(tok.String())
		return nil
	}
	return d.SkipValue()
}
