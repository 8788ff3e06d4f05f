package store

import (
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"convls/protocol"
)

// extend makes a new chain node a tip, and moves HEAD and the branch name along
// where the chain grew at HEAD. What a spawned turn hangs off stays a tip: the
// conversation there still goes on from it.
func (tx *Tx) extend(sk Skeleton, n NodeSpec) error {
	advance := !n.HeadNeutral && sk.Predecessor == tx.State.Head
	from := key(famLeaf, tx.session, uint64(sk.Predecessor))
	used := uint64(0)
	if advance {
		tx.State.Uses++
		used = tx.State.Uses
	} else if was, err := tx.number(from); err == nil {
		used = was // the tip went on by itself: it was last used when it was
	} else if !errors.Is(err, pebble.ErrNotFound) && !isBadRecord(err) {
		return fmt.Errorf("read the tip before node %q: %w", sk.ID, err)
	}
	if sk.Caller != 0 && !advance {
		used = 0 // nobody was there yet
	} else if err := tx.batch.Delete(from, nil); err != nil {
		return err
	}
	if err := tx.putLeaf(sk.Seq, used); err != nil {
		return err
	}
	attached := ""
	if advance {
		attached = tx.State.Branch
		tx.moveHead(sk)
	}
	if n.HeadNeutral {
		return nil
	}
	if n.Continues {
		names, err := tx.namesOf(sk.Predecessor)
		if err != nil {
			return err
		}
		for _, name := range names {
			if name == attached {
				continue
			}
			if _, err := tx.follow(name, sk); err != nil {
				return err
			}
		}
	}
	if attached != "" {
		followed, err := tx.follow(attached, sk)
		if err != nil {
			return err
		}
		if !followed {
			tx.State.Branch = "" // the record of the name is damaged: HEAD goes on without it
		}
	}
	return nil
}

// follow moves a branch name from a node's predecessor to the node. A name that is
// gone, or refers to something else by now, stays as it is.
func (tx *Tx) follow(name string, sk Skeleton) (bool, error) {
	if at, err := tx.Named(name); err != nil || at != sk.Predecessor {
		return false, nil
	}
	tx.Emit(protocol.Event{Type: protocol.EventBranchChanged, Branch: name, Tip: sk.ID})
	return true, tx.putName(name, sk.Seq)
}

func (tx *Tx) putLeaf(seq Seq, used uint64) error {
	return tx.batch.Set(key(famLeaf, tx.session, uint64(seq)), numberRecord(used), nil)
}

func (tx *Tx) putName(name string, seq Seq) error {
	return tx.batch.Set(keyString(famName, tx.session, name), numberRecord(uint64(seq)), nil)
}

func (tx *Tx) moveHead(to Skeleton) {
	e := protocol.Event{Type: protocol.EventHeadMoved, Head: to.ID, Cause: tx.req.Cause}
	if previous, err := tx.idOf(tx.State.Head); err == nil {
		e.Previous = previous
	}
	tx.State.Head = to.Seq
	tx.Emit(e)
}

// SetHead moves HEAD to a chain node because a person asked for it: checkout,
// fork, rewind, retry, edit, delete. HEAD gets attached to branch, a name that
// refers to the node, or to nothing if that is "". With [Tx.Append] this is the
// only thing that moves HEAD.
func (tx *Tx) SetHead(to Skeleton, branch string) error {
	to, err := tx.Skeleton(to.Seq)
	if err != nil {
		return err
	}
	if !to.Kind.OnChain() {
		return protocol.Errorf(protocol.CodeNotAChainNode, "node %q is a %s and can not be HEAD", to.ID, to.Kind)
	}
	tx.State.Branch = branch
	tip, err := tx.IsTip(to.Seq)
	if err != nil && !isDamage(err) {
		return err
	}
	if tip {
		tx.State.Uses++
		if err := tx.putLeaf(to.Seq, tx.State.Uses); err != nil {
			return err
		}
	}
	if tx.State.Head != to.Seq {
		tx.moveHead(to)
	}
	return nil
}

// Name makes a branch name refer to a chain node; name_conflict if it is taken.
func (tx *Tx) Name(name string, to Skeleton) error {
	if err := checkName(name); err != nil {
		return err
	}
	to, err := tx.Skeleton(to.Seq)
	if err != nil {
		return err
	}
	if !to.Kind.OnChain() {
		return protocol.Errorf(protocol.CodeNotAChainNode, "node %q is a %s and can not be a branch", to.ID, to.Kind)
	}
	if _, err := tx.Named(name); err == nil {
		return protocol.Errorf(protocol.CodeNameConflict, "there is a branch named %q already", name)
	} else if protocol.CodeOf(err) != protocol.CodeUnknownBranch {
		return err
	}
	tx.Emit(protocol.Event{Type: protocol.EventBranchChanged, Branch: name, Tip: to.ID})
	return tx.putName(name, to.Seq)
}

// Unname takes a branch name away; the nodes stay. HEAD that is attached to it
// gets detached.
func (tx *Tx) Unname(name string) error {
	if _, err := tx.Named(name); protocol.CodeOf(err) == protocol.CodeUnknownBranch {
		return err
	}
	if tx.State.Branch == name {
		tx.State.Branch = ""
	}
	tx.Emit(protocol.Event{Type: protocol.EventBranchChanged, Branch: name})
	return tx.batch.Delete(keyString(famName, tx.session, name), nil)
}

// Attach attaches HEAD to a name that refers to it, so that append moves it. The
// mutation is refused if the name refers to another node.
func (tx *Tx) Attach(name string) { tx.State.Branch = name }

// checkHead refuses a mutation that would leave HEAD on something that is not a
// chain node, or attached to a name that refers elsewhere. Both would be defects
// of the caller; neither must reach the disk.
func (tx *Tx) checkHead() error {
	if tx.State.Head != tx.before.Head {
		head, err := tx.Skeleton(tx.State.Head)
		if err != nil {
			return fmt.Errorf("HEAD would be node %d: %w", tx.State.Head, err)
		}
		if !head.Kind.OnChain() {
			return protocol.Errorf(protocol.CodeNotAChainNode, "HEAD would be node %q, a %s", head.ID, head.Kind)
		}
	}
	b := tx.State.Branch
	if b == "" || b == tx.before.Branch && tx.State.Head == tx.before.Head {
		return nil
	}
	at, err := tx.Named(b)
	if err != nil {
		return err
	}
	if at != tx.State.Head {
		return protocol.Errorf(protocol.CodeUnknownBranch, "branch %q refers to node %d, and HEAD, at node %d, can not be attached to it", b, at, tx.State.Head)
	}
	return nil
}

// Pin pins a node, or takes its pin away.
func (tx *Tx) Pin(sk Skeleton, pinned bool) error {
	sk, err := tx.Skeleton(sk.Seq)
	if err != nil {
		return err
	}
	k := key(famPin, tx.session, uint64(sk.Seq))
	if !pinned {
		tx.Emit(protocol.Event{Type: protocol.EventNodeUnpinned, NodeID: sk.ID})
		return tx.batch.Delete(k, nil)
	}
	tx.Emit(protocol.Event{Type: protocol.EventNodePinned, NodeID: sk.ID})
	return tx.batch.Set(k, numberRecord(uint64(tx.now.UnixMilli())), nil)
}
