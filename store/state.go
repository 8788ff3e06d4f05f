package store

import (
	"encoding/binary"
	"time"

	"convls/protocol"
)

// State is what a session's head record holds: small, and rewritten with every
// mutation.
type State struct {
	// Head is HEAD: the chain node that the conversation continues from.
	Head Seq
	// Next is the sequence number that the next node gets.
	Next Seq
	// Events is the number of the newest event.
	Events uint64
	// Active is the summary that the rolling policy consults; 0 for none.
	Active Seq
	// Removals counts deletes and redactions: a compaction that began before one
	// is stale.
	Removals uint64
	// Uses counts moves of HEAD; a tip remembers the count at its last use.
	Uses  uint64
	Nodes uint64
	// Updated never goes back, whatever the clock does.
	Updated time.Time
	Total   Totals
	// Branch is the name that HEAD is attached to, or "".
	Branch string
}

func (s *State) encode() []byte {
	b := []byte{recordVersion}
	for _, v := range []uint64{
		uint64(s.Head), uint64(s.Next), s.Events, uint64(s.Active), s.Removals, s.Uses, s.Nodes,
		uint64(s.Updated.UnixMilli()), s.Total.Input, s.Total.Output, s.Total.Calls, s.Total.CostMicro,
	} {
		b = binary.AppendUvarint(b, v)
	}
	b = appendString(b, s.Branch)
	return seal(b)
}

func decodeState(b []byte) (State, error) {
	var s State
	body, err := unseal(b)
	if err != nil {
		return s, err
	}
	d := decoder{b: body[1:]}
	s.Head, s.Next = Seq(d.uvarint()), Seq(d.uvarint())
	s.Events, s.Active, s.Removals, s.Uses, s.Nodes = d.uvarint(), Seq(d.uvarint()), d.uvarint(), d.uvarint(), d.uvarint()
	s.Updated = time.UnixMilli(int64(d.uvarint())).UTC()
	s.Total = Totals{d.uvarint(), d.uvarint(), d.uvarint(), d.uvarint()}
	s.Branch = d.string()
	return s, d.err
}

// Info is what a session's own record holds: what changes only when a person
// changes it.
type Info struct {
	ID        string    `json:"session_id"`
	Title     string    `json:"title"`
	Model     string    `json:"model,omitzero"`
	Policy    string    `json:"policy"`
	Workspace string    `json:"workspace,omitzero"`
	CreatedAt time.Time `json:"created_at"`
	// SystemSHA256 names the system prompt, which is stored once a text.
	SystemSHA256 string       `json:"system_sha256,omitzero"`
	Settings     protocol.Raw `json:"settings,omitzero"`
	// TitleFrom is the node whose text the title was taken from, 0 if a person gave
	// it: redacting that node scrubs the title.
	TitleFrom Seq `json:"title_from,omitzero"`
	// ImportedFrom says where an imported session came from.
	ImportedFrom string `json:"imported_from,omitzero"`
}

// Queued is a send that waits for the turn before it. It becomes two nodes, with
// the ids it was promised, when it starts.
type Queued struct {
	Number uint64 `json:"-"`
	// After is a reply of the turn that it waits for, and begins after the end of. One
	// that is held keeps it until another turn begins that goes on with that chain, or
	// answers the message of it anew; from then on it waits for that turn.
	After   Seq    `json:"after"`
	UserID  string `json:"user_id"`
	ReplyID string `json:"reply_id"`
	// Held is set when the turn before it failed or the process was restarted.
	Held    bool            `json:"held,omitzero"`
	At      time.Time       `json:"at"`
	Origin  protocol.Origin `json:"origin,omitzero"`
	Content []protocol.Part `json:"content"`
	Model   string          `json:"model,omitzero"`
	// Tools are those that the client declared.
	Tools []protocol.ToolDeclaration `json:"tools,omitempty"`
	// Advance is false for turns that must not move HEAD.
	Advance bool `json:"advance"`
}
