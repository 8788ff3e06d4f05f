package store

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/cockroachdb/pebble/v2"
	"go.uber.org/zap"

	"convls/protocol"
)

// recover seals what a dead process left open, and holds the sends that waited.
// What is damaged stays as it is and keeps nothing else from being recovered.
func (s *Store) recover(ctx context.Context) error {
	open := map[uint64][]Seq{}
	var order []uint64
	it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: []byte{famOpen}, UpperBound: []byte{famOpen + 1}})
	if err != nil {
		return fmt.Errorf("look for open nodes: %w", err)
	}
	for ok := it.First(); ok; ok = it.Next() {
		num := lastNumber(it.Key()[:9])
		if open[num] == nil {
			order = append(order, num)
		}
		open[num] = append(open[num], Seq(lastNumber(it.Key())))
	}
	// What could be read is recovered all the same.
	damage := it.Close()
	for _, family := range []byte{famQueue, famRun} {
		sessions, err := s.sessionsWith(family)
		damage = errors.Join(damage, err)
		for _, num := range sessions {
			if !slices.Contains(order, num) {
				order = append(order, num)
			}
		}
	}
	for _, num := range order {
		if err := s.recoverSession(ctx, num, open[num]); err != nil {
			// One damaged session must not keep the others from opening.
			s.log.Error("a session could not be recovered", zap.Uint64("session", num), zap.Error(err))
		}
	}
	if damage != nil {
		return fmt.Errorf("look for what a dead process left: %w", damage)
	}
	return nil
}

// sessionsWith returns the numbers of the sessions that have records of a family.
func (s *Store) sessionsWith(family byte) ([]uint64, error) {
	it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: []byte{family}, UpperBound: []byte{family + 1}})
	if err != nil {
		return nil, fmt.Errorf("look for what was under way: %w", err)
	}
	var nums []uint64
	for ok := it.First(); ok; {
		num := lastNumber(it.Key()[:9])
		nums = append(nums, num)
		ok = it.SeekGE(key(family, num+1))
	}
	return nums, it.Close()
}

func (s *Store) recoverSession(ctx context.Context, num uint64, open []Seq) error {
	b, err := s.get(key(famInfo, num))
	if err != nil {
		return fmt.Errorf("read the session's record: %w", err)
	}
	info, err := readInfo(b)
	if err != nil {
		return fmt.Errorf("decode the session's record: %w", err)
	}
	sess, err := s.session(info.ID)
	if err != nil {
		return err
	}
	var sealed []Recovered
	_, err = Apply(ctx, sess, Request{Cause: "recover", Unreserved: true, within: true}, func(tx *Tx) (struct{}, error) {
		for _, seq := range open {
			id, err := tx.interrupt(seq)
			if isDamage(err) {
				s.log.Error("an open node can not be sealed", zap.String("session", info.ID), zap.Uint64("node", uint64(seq)), zap.Error(err))
				continue
			}
			if err != nil {
				return struct{}{}, err
			}
			sealed = append(sealed, Recovered{info.ID, id})
		}
		if err := tx.interruptCompaction(); err != nil && !isDamage(err) {
			return struct{}{}, err
		}
		if err := tx.HoldQueue(); !isDamage(err) {
			return struct{}{}, err
		}
		return struct{}{}, nil
	})
	if err == nil {
		s.recovered = append(s.recovered, sealed...)
	}
	return err
}

// interrupt seals an open node that a dead process left, with the text that had
// reached the disk, and returns its id.
func (tx *Tx) interrupt(seq Seq) (string, error) {
	sk, err := tx.Skeleton(seq)
	if err != nil {
		return "", err
	}
	c, err := tx.Content(seq)
	switch {
	case isDamage(err):
		return sk.ID, tx.interruptDamaged(sk)
	case err != nil:
		return "", err
	}
	parts, err := tx.Partial(seq)
	if err != nil {
		return "", err
	}
	c.Parts = append(c.Parts, parts...)
	c.Error = &protocol.NodeError{Code: protocol.CodeServerRestarted, Message: "convls ended while this was being written", Retryable: true,
		Hint: "retry it: what had arrived is kept here"}
	if _, err := tx.Seal(seq, Final{Status: protocol.StatusInterrupted, Content: *c}); err != nil {
		return "", err
	}
	tx.interrupted(sk)
	return sk.ID, nil
}

// interruptDamaged ends an open node whose content can not be read. That record,
// and the pieces of text, stay as they are: opening takes nothing away.
func (tx *Tx) interruptDamaged(sk Skeleton) error {
	sk.Status = protocol.StatusInterrupted
	tx.Emit(protocol.Event{Type: protocol.EventNodeSealed, NodeID: sk.ID, Status: sk.Status})
	tx.interrupted(sk)
	return errors.Join(tx.putSkeleton(sk), tx.batch.Delete(key(famOpen, tx.session, uint64(sk.Seq)), nil))
}

func (tx *Tx) interrupted(sk Skeleton) {
	if sk.Kind == protocol.KindAssistant || sk.Kind == protocol.KindCall {
		tx.Emit(protocol.Event{Type: protocol.EventTurnInterrupted, NodeID: sk.ID, ReplyID: sk.ID, Status: protocol.StatusInterrupted})
	}
}
