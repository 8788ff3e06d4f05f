package store

import (
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"
)

// A lane is a column of the graph. A chain node gets its lane when it is appended
// and keeps it, so that a drawing grows at its end and never moves: the rows are the
// sequence numbers.
//
// A node goes on in the lane of its predecessor if nothing has been put there since,
// which is so for a first child, and takes another one that has been free since then
// if not. The line from the predecessor runs in the lane of the node, so lanes can
// be used again, and two lines are never in one place: a conversation of a thousand
// retries needs two lanes and not a thousand. Only a branch that is taken up again
// after its lane was given away goes on in another.
//
// What stands in one lane without a break is a run, named by its first node. Every
// chain node is in exactly one run, and a run is a stretch of one chain. So views
// find all that there is beside a branch from the tips up, run by run, without
// reading the nodes in between.

// laneReach is how far from its predecessor's lane a node looks for a free one
// before it opens a new one. It bounds what a fork costs.
const laneReach = 32

// laneTable is what is known of the lanes of a session.
type laneTable interface {
	// lastIn tells which node was put into a lane last; ok is false for a lane that is
	// not there, or whose record can not be read, and so must not be used again.
	lastIn(lane uint64) (last Seq, ok bool, err error)
	// Lanes returns how many lanes there are.
	Lanes() (uint64, error)
}

// laneList is a laneTable at hand: of each lane its last node.
type laneList []Seq

func (l laneList) lastIn(lane uint64) (last Seq, ok bool, err error) {
	if lane >= uint64(len(l)) {
		return 0, false, nil
	}
	return l[lane], true, nil
}

func (l laneList) Lanes() (uint64, error) { return uint64(len(l)), nil }

// freeLane returns the lane nearest to from that nothing was put into after since;
// of two the left one. It returns ok false if there is none in reach. first is 1 if
// from itself is not wanted.
func freeLane(lanes laneTable, from uint64, since Seq, first uint64) (lane uint64, ok bool, err error) {
	for d := first; d <= laneReach; d++ {
		for _, lane := range [2]uint64{from - d, from + d} {
			if lane > from+d { // below 0
				continue
			}
			at, there, err := lanes.lastIn(lane)
			if err != nil {
				return 0, false, err
			}
			if there && at <= since {
				return lane, true, nil
			}
		}
	}
	return 0, false, nil
}

// takeLane gives a chain node its lane and its run: one that is free, or a new
// one. What another node called never goes on in the lane of its predecessor,
// where the conversation itself does.
func (s *Skeleton) takeLane(pred Skeleton, lanes laneTable) error {
	first := uint64(0)
	if s.Caller != 0 {
		first = 1
	}
	lane, ok, err := freeLane(lanes, pred.Lane, s.Predecessor, first)
	if err == nil && !ok {
		lane, err = lanes.Lanes()
	}
	s.Lane, s.Run = lane, s.Seq
	if ok && lane == pred.Lane && first == 0 && pred.Run != 0 {
		s.Run = pred.Run
	}
	return err
}

// setLane gives a new chain node its lane and its run, and marks the lane.
func (tx *Tx) setLane(sk *Skeleton, pred Skeleton) error {
	if err := sk.takeLane(pred, tx); err != nil {
		return err
	}
	return tx.putLane(sk.Lane, sk.Seq)
}

func (tx *Tx) putLane(lane uint64, last Seq) error {
	return tx.batch.Set(key(famLane, tx.session, lane), numberRecord(uint64(last)), nil)
}

func (v *view) lastIn(lane uint64) (last Seq, ok bool, err error) {
	n, err := v.number(key(famLane, v.session, lane))
	switch {
	case errors.Is(err, pebble.ErrNotFound) || isBadRecord(err):
		return 0, false, nil
	case err != nil:
		return 0, false, v.readError(err)
	}
	return Seq(n), true, nil
}

// Lanes returns how many lanes the session's layout has.
func (v *view) Lanes() (uint64, error) {
	prefix := key(famLane, v.session)
	it, err := v.r.NewIter(&pebble.IterOptions{LowerBound: prefix, UpperBound: after(prefix)})
	if err != nil {
		return 0, v.readError(err)
	}
	n := uint64(0)
	if it.Last() {
		n = lastNumber(it.Key()) + 1
	}
	if err := it.Close(); err != nil {
		return 0, v.readError(err)
	}
	return n, nil
}

// freeLanes gives back what deleted nodes held of their lanes: each lane whose last
// node goes is free from where that node's run left what stays.
func (tx *Tx) freeLanes(all []Skeleton, gone map[Seq]bool) error {
	// The first of the deleted nodes of each run: branches lose their ends.
	begin := map[Seq]Skeleton{}
	lanes := map[uint64]bool{}
	for _, s := range all {
		if !s.Kind.OnChain() {
			continue
		}
		lanes[s.Lane] = true
		if b, ok := begin[s.Run]; !ok || s.Seq < b.Seq {
			begin[s.Run] = s
		}
	}
	for lane := range lanes {
		last, ok, err := tx.lastIn(lane)
		if err != nil {
			return err
		}
		if !ok || !gone[last] {
			continue
		}
		s, err := tx.Skeleton(last)
		if err != nil {
			return err
		}
		if s.Lane != lane {
			continue // an earlier delete gave the lane back up to here; what is left in it stays
		}
		if err := tx.putLane(lane, begin[s.Run].Predecessor); err != nil {
			return err
		}
	}
	return nil
}

// checkLane checks a chain node's lane and run against those of its predecessor,
// whose own are checked: with every node checked, no two runs overlap in a lane.
func (c *checker) checkLane(sk, pred Skeleton) {
	say := func(format string, args ...any) { c.say(sk.Seq, sk.ID, format, args...) }
	if sk.Run != sk.Seq && (sk.Run != pred.Run || sk.Lane != pred.Lane) {
		say("it is in run %d in lane %d, its predecessor in run %d in lane %d", sk.Run, sk.Lane, pred.Run, pred.Lane)
	}
	if busy := c.lanes[sk.Lane]; busy > sk.Predecessor {
		say("its lane %d holds node %d, which is later than its predecessor %d", sk.Lane, busy, sk.Predecessor)
	}
	c.lanes[sk.Lane] = sk.Seq
}

// checkLanes checks the records of the lanes after all nodes.
func (c *checker) checkLanes() {
	for lane, seq := range c.lanes {
		if last, ok, err := c.lastIn(lane); err != nil || !ok || last < seq {
			c.say(seq, "", "lane %d says that node %d is its last (%v)", lane, last, err)
		}
	}
	n, err := c.Lanes()
	if err != nil {
		c.say(0, "", "the lanes: %v", err)
	}
	for lane := range c.lanes {
		if lane >= n {
			c.say(c.lanes[lane], "", "its lane %d is none of the %d that there are", lane, n)
		}
	}
}

// layOut gives lanes to the chain nodes of a session that was written before nodes
// had lanes (store format 1).
func (s *Store) layOut(num uint64) error {
	v := view{store: s, session: num, r: s.db, id: Seq(num).placeholder()}
	var lanes laneList
	type place struct {
		lane uint64
		run  Seq
	}
	places := map[Seq]place{}
	batch := s.db.NewBatch()
	defer func() { _ = batch.Close() }()
	for n, err := range v.numbers(key(famSkeleton, num)) {
		if err != nil {
			return err
		}
		sk, err := decodeSkeleton(Seq(n.Number), n.Value)
		if err != nil || !sk.Kind.OnChain() {
			continue // damage stays where it is, and is told when it is read
		}
		pred := places[sk.Predecessor]
		if err := sk.takeLane(Skeleton{Lane: pred.lane, Run: pred.run}, lanes); err != nil {
			return err
		}
		if sk.Lane == uint64(len(lanes)) {
			lanes = append(lanes, 0)
		}
		lanes[sk.Lane] = sk.Seq
		places[sk.Seq] = place{sk.Lane, sk.Run}
		if err := batch.Set(key(famSkeleton, num, uint64(sk.Seq)), sk.encode(), nil); err != nil {
			return err
		}
		if batch.Len() > 1<<20 {
			if err := batch.Commit(pebble.NoSync); err != nil {
				return fmt.Errorf("lay out a session: %w", err)
			}
			_ = batch.Close()
			batch = s.db.NewBatch()
		}
	}
	for lane, last := range lanes {
		if err := batch.Set(key(famLane, num, uint64(lane)), numberRecord(uint64(last)), nil); err != nil {
			return err
		}
	}
	if err := batch.Commit(pebble.Sync); err != nil {
		return fmt.Errorf("lay out a session: %w", err)
	}
	return nil
}
