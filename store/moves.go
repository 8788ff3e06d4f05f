package store

import (
	"context"
	"fmt"
	"slices"

	"convls/protocol"
)

// Moved is where HEAD is after a move.
type Moved struct {
	Head   string `json:"head"`
	Branch string `json:"branch,omitzero"`
	// Content is the message that a rewind took back.
	Content []protocol.Part `json:"content,omitempty"`
}

// target finds a node by id, or by branch name if id is "".
func (v *view) target(id, branch string) (Skeleton, error) {
	switch {
	case id != "" && branch != "":
		return Skeleton{}, protocol.Errorf(protocol.CodeInvalidParams, "name the node or the branch, not both")
	case id != "":
		return v.LookupChain(id)
	case branch != "":
		seq, err := v.Named(branch)
		if err != nil {
			return Skeleton{}, err
		}
		return v.Skeleton(seq)
	}
	return Skeleton{}, protocol.Errorf(protocol.CodeInvalidParams, "name a node or a branch")
}

// nameOf returns the name that refers to seq, the first in alphabetical order if
// there are several, "" if there is none.
func (v *view) nameOf(seq Seq) (string, error) {
	names, err := v.namesOf(seq)
	if err != nil || len(names) == 0 {
		return "", err
	}
	return names[0], nil
}

// namesOf returns the names that refer to seq, in alphabetical order.
func (v *view) namesOf(seq Seq) ([]string, error) {
	names, err := v.Names()
	if err != nil {
		return nil, err
	}
	var mine []string
	for name, at := range names {
		if at == seq {
			mine = append(mine, name)
		}
	}
	slices.Sort(mine)
	return mine, nil
}

// Checkout moves HEAD to a chain node, or to what a branch name refers to. With
// descend it goes on to the tip that was last used below. HEAD is attached to the
// branch, or to the name that refers to exactly that node.
func Checkout(ctx context.Context, s *Session, req Request, id, branch string, descend bool) (Outcome[Moved], error) {
	return Apply(ctx, s, req, func(tx *Tx) (Moved, error) {
		to, err := tx.target(id, branch)
		if err != nil {
			return Moved{}, err
		}
		name := branch
		if descend {
			at := to.Seq
			if to, err = tx.LastTip(to); err != nil {
				return Moved{}, err
			}
			if to.Seq != at {
				name = ""
			}
		}
		if name == "" {
			if name, err = tx.nameOf(to.Seq); err != nil {
				return Moved{}, err
			}
		}
		return Moved{Head: to.ID, Branch: name}, tx.SetHead(to, name)
	})
}

// Fork moves HEAD to a chain node, so that what is sent next begins a branch
// there. A name is given to that branch, and HEAD attached to it.
func Fork(ctx context.Context, s *Session, req Request, id, name string) (Outcome[Moved], error) {
	return Apply(ctx, s, req, func(tx *Tx) (Moved, error) {
		to, err := tx.LookupChain(id)
		if err != nil {
			return Moved{}, err
		}
		if name != "" {
			if err := tx.Name(name, to); err != nil {
				return Moved{}, err
			}
		}
		return Moved{Head: to.ID, Branch: name}, tx.SetHead(to, name)
	})
}

// Rewind moves HEAD to before a message of its spine, and returns the message.
// Nothing is deleted: a checkout of the old tip undoes it.
func Rewind(ctx context.Context, s *Session, req Request, id string) (Outcome[Moved], error) {
	out, err := Apply(ctx, s, req, func(tx *Tx) (Moved, error) {
		user, err := tx.LookupChain(id)
		if err != nil {
			return Moved{}, err
		}
		if user.Kind != protocol.KindUser {
			return Moved{}, protocol.Errorf(protocol.CodeInvalidParams, "node %q is a %s: rewind goes to before a message of the user", id, user.Kind)
		}
		head, err := tx.Skeleton(tx.State.Head)
		if err != nil {
			return Moved{}, err
		}
		if on, err := tx.IsAncestor(user, head); err != nil {
			return Moved{}, err
		} else if !on {
			return Moved{}, protocol.Errorf(protocol.CodeInvalidParams, "message %q is not on the current branch: check its branch out first", id)
		}
		to, err := tx.Skeleton(user.Predecessor)
		if err != nil {
			return Moved{}, err
		}
		name, err := tx.nameOf(to.Seq)
		if err != nil {
			return Moved{}, err
		}
		return Moved{Head: to.ID, Branch: name}, tx.SetHead(to, name)
	})
	if err != nil {
		return out, err
	}
	// The message is not part of the receipt: a redaction would not reach it there.
	r, err := s.Reader()
	if err != nil {
		return out, err
	}
	defer r.Close()
	user, err := r.Lookup(id)
	if err == nil {
		var content *Content
		if content, err = r.Content(user.Seq); err == nil {
			out.Result.Content = content.Parts
		}
	}
	if isDamage(err) {
		err = nil // HEAD has moved, whether the message can be read or not
	}
	return out, err
}

// RenameBranch gives a branch, told by its tip or by its present name, another
// name; an empty one takes the name away. It returns the id of the node that the
// name refers, or referred, to.
func RenameBranch(ctx context.Context, s *Session, req Request, tip, branch, name string) (Outcome[string], error) {
	return Apply(ctx, s, req, func(tx *Tx) (string, error) {
		at, err := tx.target(tip, branch)
		if err != nil {
			return "", err
		}
		old := branch
		if old == "" {
			if old, err = tx.nameOf(at.Seq); err != nil {
				return "", err
			}
		}
		if old == name {
			return at.ID, nil
		}
		attached := tx.State.Head == at.Seq && (tx.State.Branch == "" || tx.State.Branch == old)
		if old != "" {
			if err := tx.Unname(old); err != nil {
				return "", err
			}
		}
		if name == "" {
			return at.ID, nil
		}
		if attached {
			tx.State.Branch = name
		}
		return at.ID, tx.Name(name, at)
	})
}

// Removed is what a delete took away.
type Removed struct {
	Count int64    `json:"count"`
	IDs   []string `json:"ids"`
	Head  string   `json:"head"`
}

// maxRemovedIDs bounds the ids in a [Removed].
const maxRemovedIDs = 1_000

// DeleteBranch takes a branch's exclusive part away. Without confirm it answers
// confirm_required with the count. A name that refers to a node inside a longer
// branch is all that such a branch has: only the name goes, and the count is 0.
func DeleteBranch(ctx context.Context, s *Session, req Request, tip, branch string, confirm bool) (Outcome[Removed], error) {
	return Apply(ctx, s, req, func(tx *Tx) (Removed, error) {
		at, err := tx.target(tip, branch)
		if err != nil {
			return Removed{}, err
		}
		isTip, err := tx.IsTip(at.Seq)
		if err != nil {
			return Removed{}, err
		}
		if branch != "" && !isTip {
			if !confirm {
				return Removed{}, ConfirmRequired(0, fmt.Sprintf("the name %q", branch))
			}
			if err := tx.Unname(branch); err != nil {
				return Removed{}, err
			}
			head, err := tx.ID(tx.State.Head)
			return Removed{IDs: []string{}, Head: head}, err
		}
		r, err := tx.Exclusive(at)
		if err != nil {
			return Removed{}, err
		}
		if len(r.Chain) == 0 {
			return Removed{}, protocol.Errorf(protocol.CodeInvalidParams, "the root can not be deleted")
		}
		if !confirm {
			return Removed{}, ConfirmRequired(r.Count, "this branch")
		}
		if err := tx.Delete(r); err != nil {
			return Removed{}, err
		}
		out := Removed{Count: r.Count, IDs: []string{}}
		for _, n := range r.Chain[:min(len(r.Chain), maxRemovedIDs)] {
			out.IDs = append(out.IDs, n.ID)
		}
		out.Head, err = tx.ID(tx.State.Head)
		return out, err
	})
}

// ConfirmRequired is the answer to a delete or redaction that was not confirmed:
// how many nodes would go.
func ConfirmRequired(count int64, what string) error {
	nodes := fmt.Sprintf("%d nodes", count)
	switch count {
	case 0:
		nodes = "and no node"
	case 1:
		nodes = "1 node"
	}
	e := protocol.Errorf(protocol.CodeConfirmRequired, "this takes %s away for good, %s: send it again with confirm", what, nodes)
	e.Data.Count = count
	return e
}

// Attach writes an attach node after anchor that points at a reply or summary of
// this session or of another. Attaching the same source again at the same place
// gives the node that is there.
func Attach(ctx context.Context, s *Session, req Request, anchor string, src Source, onSpine bool) (Outcome[string], error) {
	return Apply(ctx, s, req, func(tx *Tx) (string, error) {
		at, err := tx.LookupChain(anchor)
		if err != nil {
			return "", err
		}
		if onSpine {
			own, err := tx.Lookup(src.NodeID)
			if err != nil {
				return "", err
			}
			if own.Kind.OnChain() {
				if on, err := tx.IsAncestor(own, at); err != nil {
					return "", err
				} else if on {
					return "", protocol.Errorf(protocol.CodeInvalidParams, "node %q is on the branch of %q already: there is nothing to attach", src.NodeID, anchor)
				}
			}
		}
		for seq, err := range tx.linked(famChild, at.Seq, func(k protocol.Kind) bool { return k == protocol.KindAttach }) {
			if err != nil {
				return "", err
			}
			c, err := tx.Content(seq)
			if err != nil && !isDamage(err) {
				return "", err
			}
			if err == nil && c.Source != nil && *c.Source == src {
				return tx.ID(seq)
			}
		}
		n, err := tx.Append(NodeSpec{Kind: protocol.KindAttach, Predecessor: at.Seq, Status: protocol.StatusSealed, Content: Content{Source: &src}})
		return n.ID, err
	})
}
