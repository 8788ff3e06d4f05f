package scenario

import (
	"strings"

	"convls/protocol"
	"convls/test/reference"
)

// imported reads an export for the reference.
func imported(w *world, sessionID, text string) *reference.Session {
	type line struct {
		Type        string            `json:"type"`
		ID          string            `json:"id"`
		Kind        protocol.Kind     `json:"kind"`
		Status      protocol.Status   `json:"status"`
		Predecessor string            `json:"predecessor"`
		Caller      string            `json:"caller"`
		Title       string            `json:"title"`
		System      string            `json:"system"`
		Head        string            `json:"head"`
		Branch      string            `json:"branch"`
		Branches    map[string]string `json:"branches"`
		Active      string            `json:"active_summary"`
		Policy      string            `json:"policy"`
		Tips        []string          `json:"tips"`
		Content     []protocol.Part   `json:"content"`
		Pinned      bool              `json:"pinned"`
		Redacted    bool              `json:"redacted"`
		Void        bool              `json:"void"`
		Covers      *struct {
			First string `json:"first"`
			Last  string `json:"last"`
		} `json:"covers"`
	}
	var s *reference.Session
	var record line
	for _, raw := range strings.Split(strings.TrimSpace(text), "\n") {
		var l line
		if err := protocol.Unmarshal([]byte(raw), &l); err != nil {
			w.t.Fatalf("%v in %s", err, raw)
		}
		switch {
		case l.Type == "session":
			record = l
		case l.Type == "node" && l.Kind == "root":
			s = reference.New(sessionID, l.ID, record.Title, record.System)
		case l.Type == "node":
			n := &reference.Node{ID: l.ID, Kind: l.Kind, Status: l.Status, Pinned: l.Pinned, Redacted: l.Redacted, Void: l.Void,
				Pred: s.Find(l.Predecessor), Caller: s.Find(l.Caller)}
			for _, p := range l.Content {
				switch p.Type {
				case protocol.PartText:
					n.Text = p.Text
				case protocol.PartToolCall:
					n.Call.Name, n.Call.Arguments = p.Name, string(p.Arguments)
				case protocol.PartToolResult:
					n.Call.Answered, n.Call.Result, n.Call.IsError = true, p.Text, p.IsError
				}
			}
			if l.Covers != nil {
				n.First, n.Last = s.Find(l.Covers.First), s.Find(l.Covers.Last)
				n.Pred = n.First.Pred
			}
			s.Restore(n)
		}
	}
	s.Head, s.Branch, s.Active = s.Find(record.Head), record.Branch, s.Find(record.Active)
	s.Policy = record.Policy
	for name, id := range record.Branches {
		s.Names[name] = s.Find(id)
	}
	s.UseTips(record.Tips)
	return s
}
