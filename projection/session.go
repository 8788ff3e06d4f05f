package projection

import (
	"slices"

	"convls/protocol"
	"convls/store"
)

// Session returns a session in the wire's form, with its system prompt.
func Session(r *store.Reader) (protocol.Session, error) {
	info, err := r.Info()
	if err != nil {
		return protocol.Session{}, err
	}
	head, err := r.Skeleton(r.State.Head)
	if err != nil {
		return protocol.Session{}, err
	}
	s := session(info, r.State, head.ID, "")
	if s.ActiveSummaries, err = ActiveSummaries(r, head); err != nil {
		return s, err
	}
	s.System, err = r.Text(info.SystemSHA256)
	return s, err
}

// ActiveSummaries returns the summaries that views stand on: under rolling the one
// that the session's record names, under per-branch the one of head's branch.
func ActiveSummaries(r *store.Reader, head store.Skeleton) ([]string, error) {
	policy, err := policyOf(r)
	if err != nil {
		return nil, err
	}
	if policy == protocol.PolicyPerBranch {
		s, _, err := longest(r, head)
		if s == nil || err != nil {
			return []string{}, err
		}
		return []string{s.Summary.ID}, nil
	}
	id, err := r.ID(r.State.Active)
	if id == "" || err != nil {
		return []string{}, nil //nolint:nilerr // a damaged summary must not keep the session from opening
	}
	return []string{id}, nil
}

// ListedSession returns a session of a list in the wire's form. It reads nothing
// but the session's own records, so under per-branch it names no summary.
func ListedSession(l store.Listed) protocol.Session {
	return session(l.Info, l.State, l.HeadID, l.Active)
}

func session(info store.Info, state store.State, head, active string) protocol.Session {
	s := protocol.Session{SessionID: info.ID, Title: info.Title, Head: head, Branch: state.Branch, Model: info.Model, Policy: info.Policy,
		Workspace: info.Workspace, ActiveSummaries: []string{}, CreatedAt: info.CreatedAt, UpdatedAt: state.Updated,
		Usage: state.Total.Usage(), Nodes: int64(state.Nodes), Settings: info.Settings}
	if active != "" {
		s.ActiveSummaries = append(s.ActiveSummaries, active)
	}
	return s
}

// Branches returns the session's tips, and the names that refer to nodes inside,
// last used first.
func Branches(r *store.Reader) ([]protocol.Branch, error) {
	leaves, err := r.Leaves()
	if err != nil {
		return nil, err
	}
	names, err := r.Names()
	if err != nil {
		return nil, err
	}
	byNode := map[store.Seq][]string{}
	for name, seq := range names {
		byNode[seq] = append(byNode[seq], name)
	}
	at := make([]store.Seq, 0, len(leaves))
	for _, l := range leaves {
		at = append(at, l.Seq)
	}
	inner := make([]store.Seq, 0, len(byNode))
	for seq := range byNode {
		if !slices.Contains(at, seq) {
			inner = append(inner, seq)
		}
	}
	slices.Sort(inner)
	branches := []protocol.Branch{}
	for _, seq := range append(at, inner...) {
		mine := byNode[seq]
		slices.Sort(mine)
		if len(mine) == 0 {
			mine = []string{""}
		}
		for _, name := range mine {
			b, err := branch(r, seq, name)
			if err != nil {
				return nil, err
			}
			branches = append(branches, b)
		}
	}
	return branches, nil
}

// BranchAt returns the branch with this tip, under this name if it has that.
func BranchAt(r *store.Reader, tip, name string) (protocol.Branch, error) {
	s, err := r.LookupChain(tip)
	if err != nil {
		return protocol.Branch{}, err
	}
	if at, err := r.Named(name); err != nil || at != s.Seq {
		name = ""
	}
	return branch(r, s.Seq, name)
}

func branch(r *store.Reader, seq store.Seq, name string) (protocol.Branch, error) {
	s, err := r.Skeleton(seq)
	if err != nil {
		return protocol.Branch{}, err
	}
	usage := s.Total.Usage()
	b := protocol.Branch{Tip: s.ID, Name: name, Depth: int64(s.Depth), UpdatedAt: s.Created, IsHead: r.State.Head == seq && (name == "" || r.State.Branch == name || r.State.Branch == ""),
		Renders: "raw", Usage: &usage, Spawned: s.Called}
	sub, _, err := Substituted(r, s)
	if err != nil {
		return b, err
	}
	if sub != nil {
		b.Renders = "compacted"
	}
	if content, err := r.Content(seq); err == nil { // a damaged tip is still a tip
		b.Preview = Preview(content.Parts)
		if content.Source != nil {
			_, b.Preview, err = sourceOf(r, *content.Source, content.Parts)
			return b, err
		}
	}
	return b, nil
}

// OpenReplies returns the replies that are being written; bytes tells how much
// text of one there is.
func OpenReplies(r *store.Reader, bytes func(id string) int64) ([]protocol.OpenNode, error) {
	open := []protocol.OpenNode{}
	for seq, err := range r.OpenNodes() {
		if err != nil {
			return nil, err
		}
		s, err := r.Skeleton(seq)
		if err != nil {
			return nil, err
		}
		if s.Kind != protocol.KindAssistant {
			continue
		}
		n := protocol.OpenNode{NodeID: s.ID, Bytes: bytes(s.ID)}
		if pred, err := r.Skeleton(s.Predecessor); err == nil && pred.Kind == protocol.KindUser {
			n.UserID = pred.ID
		}
		open = append(open, n)
	}
	return open, nil
}

// Queue returns the sends that wait, first to start first.
func Queue(r *store.Reader) ([]protocol.QueuedSend, error) {
	queue, err := r.Queue()
	if err != nil {
		return nil, err
	}
	out := []protocol.QueuedSend{}
	for i, q := range queue {
		out = append(out, protocol.QueuedSend{UserID: q.UserID, ReplyID: q.ReplyID, Position: i + 1, Held: q.Held, Preview: Preview(q.Content), At: q.At})
	}
	return out, nil
}

// Node returns a node in the wire's form.
func Node(r *store.Reader, id string, reads, provenance bool) (protocol.Node, error) {
	s, err := r.Lookup(id)
	if err != nil {
		return protocol.Node{}, err
	}
	content, err := r.Content(s.Seq)
	if err != nil {
		return protocol.Node{}, err
	}
	n, err := r.NodeOf(s, content)
	if err != nil {
		return n, err
	}
	if content.Covers != nil {
		head, err := r.Skeleton(r.State.Head)
		if err != nil {
			return n, err
		}
		if err := FillSummary(r, &n, *content.Covers, head); err != nil {
			return n, err
		}
	}
	if reads {
		if n.Reads, err = r.Reads(content); err != nil {
			return n, err
		}
	}
	if provenance {
		n.Call = content.Call
	} else {
		n.Provenance = nil
	}
	return n, nil
}

// ReplyOf returns the id of the reply that belongs to a node: of a message its
// newest answer, of a tool the reply that called it; "" if there is none.
func ReplyOf(r *store.Reader, s store.Skeleton) (string, error) {
	if s.Kind != protocol.KindUser {
		owner, err := r.Owner(s)
		if err != nil || owner.Kind != protocol.KindAssistant || s.Kind == protocol.KindSummary {
			return "", err
		}
		return owner.ID, nil
	}
	id := ""
	for seq, err := range r.Children(s.Seq) {
		if err != nil {
			return "", err
		}
		child, err := r.Skeleton(seq)
		if err != nil {
			return "", err
		}
		if child.Kind == protocol.KindAssistant {
			id = child.ID
		}
	}
	return id, nil
}

// AttachSource returns the node whose text stands for what a person attaches: a
// summary or reply itself, and for any other chain node the last reply at or
// before it.
func AttachSource(r *store.Reader, id string) (string, error) {
	s, err := r.Lookup(id)
	if err != nil {
		return "", err
	}
	if s.Kind == protocol.KindSummary {
		return s.ID, nil
	}
	if !s.Kind.OnChain() {
		return "", protocol.Errorf(protocol.CodeNotAChainNode, "node %q is a %s: attach a reply, a summary, or a branch", id, s.Kind)
	}
	for at, err := range r.Spine(s) {
		if err != nil {
			return "", err
		}
		if at.Kind != protocol.KindAssistant {
			continue
		}
		if at.Status == protocol.StatusOpen {
			return "", protocol.Errorf(protocol.CodeTurnRunning, "reply %q is being written: attach it when it has ended, or cancel it", at.ID)
		}
		return at.ID, nil
	}
	return "", protocol.Errorf(protocol.CodeInvalidParams, "there is no reply before node %q that could be attached", id)
}
