package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	"convls/protocol"
)

// Problem is something that [Store.Check] found wrong.
type Problem struct {
	SessionID string `json:"session_id"`
	// Node is the node's number, 0 if the session itself is meant.
	Node Seq    `json:"node,omitzero"`
	ID   string `json:"id,omitzero"`
	// What is wrong, for people.
	What string `json:"what"`
}

// String returns the problem on one line.
func (p Problem) String() string {
	return fmt.Sprintf("session %s node %d %s: %s", p.SessionID, p.Node, p.ID, p.What)
}

// Check reads everything and reports dangling edges, cycles, wrong depths and
// jumps, missing or left-over index records, faults of HEAD, names and tips,
// summaries whose covers are not what they say, and records that are damaged. It
// changes nothing, and stops early only if ctx ends or the store can not be read
// at all.
func (s *Store) Check(ctx context.Context, report func(Problem)) error {
	return s.CheckEach(ctx, report, func(int, int) {})
}

// CheckEach is [Store.Check], and tells after each session how many of them all
// have been read.
func (s *Store) CheckEach(ctx context.Context, report func(Problem), read func(sessions, all int)) error {
	if err := s.enter(); err != nil {
		return err
	}
	defer s.leave()
	snap := s.db.NewSnapshot()
	defer func() { _ = snap.Close() }()
	all := view{store: s, r: snap}
	known := map[uint64]string{}
	it, err := snap.NewIter(&pebble.IterOptions{LowerBound: []byte{famSession}, UpperBound: []byte{famSession + 1}})
	if err != nil {
		return fmt.Errorf("list sessions: %w", err)
	}
	defer it.Close()
	for ok := it.First(); ok; ok = it.Next() {
		id := string(it.Key()[1:])
		num, err := readNumber(it.Value())
		switch {
		case err != nil:
			report(Problem{SessionID: id, What: "the record of its id: " + err.Error()})
		case known[num] != "":
			report(Problem{SessionID: id, What: "it has the number of session " + known[num]})
		default:
			known[num] = id
		}
	}
	if err := it.Error(); err != nil {
		return fmt.Errorf("list sessions: %w", err)
	}
	for i, num := range slices.Sorted(maps.Keys(known)) {
		if err := s.checkSession(ctx, snap, num, known[num], report); err != nil {
			report(Problem{SessionID: known[num], What: err.Error()})
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		read(i+1, len(known))
	}
	return all.strays(known, report)
}

// checkSession checks one session. Sessions that are being made or deleted
// meanwhile are as the snapshot has them.
func (s *Store) checkSession(ctx context.Context, snap *pebble.Snapshot, num uint64, id string, report func(Problem)) error {
	c := &checker{view: view{store: s, session: num, id: id, r: snap}, report: report, digests: map[Seq][]digested{}, lanes: map[uint64]Seq{}}
	b, err := getCopy(snap, key(famHead, num))
	if err == nil {
		c.State, err = decodeState(b)
	}
	c.headless = err != nil
	if err != nil {
		c.say(0, "", "its head record: %v", err)
	}
	if info, err := c.Info(); err != nil {
		c.say(0, "", "%v: %v", err, errors.Unwrap(err))
	} else if info.ID != id {
		c.say(0, "", "its record says that it is session %q", info.ID)
	} else if _, err := c.Text(info.SystemSHA256); err != nil {
		c.say(0, "", "%v", err)
	}
	for n, err := range c.numbers(key(famSkeleton, num)) {
		if err != nil {
			return err
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		c.nodes++
		sk, err := decodeSkeleton(Seq(n.Number), n.Value)
		if err != nil {
			c.say(Seq(n.Number), "", "the skeleton: %v", err)
			continue
		}
		c.node(sk)
	}
	if !c.headless {
		if c.nodes != c.State.Nodes {
			c.say(0, "", "the head record counts %d nodes, there are %d", c.State.Nodes, c.nodes)
		}
		c.head()
	}
	c.checkLanes()
	c.names()
	c.indexes()
	c.ids()
	c.records()
	return nil
}

// strays reports what belongs to no session.
func (v *view) strays(known map[uint64]string, report func(Problem)) error {
	for _, family := range sessionFamilies {
		for num, err := range v.owners(family) {
			if err != nil {
				return err
			}
			if known[num] == "" {
				report(Problem{SessionID: Seq(num).placeholder(), What: fmt.Sprintf("there are records of family %q, and no session", family)})
			}
		}
	}
	return nil
}

// owners yields the numbers of the sessions that have records in a family.
func (v *view) owners(family byte) iter.Seq2[uint64, error] {
	return func(yield func(uint64, error) bool) {
		it, err := v.r.NewIter(&pebble.IterOptions{LowerBound: []byte{family}, UpperBound: []byte{family + 1}})
		if err != nil {
			yield(0, fmt.Errorf("read the store: %w", err))
			return
		}
		defer it.Close()
		for ok := it.First(); ok; {
			num := lastNumber(it.Key()[:9])
			if !yield(num, nil) {
				return
			}
			ok = it.SeekGE(after(key(family, num)))
		}
		if err := it.Error(); err != nil {
			yield(0, fmt.Errorf("read the store: %w", err))
		}
	}
}

// checker walks one session.
type checker struct {
	view
	State    State
	headless bool // the head record can not be read
	report   func(Problem)
	nodes    uint64
	// lanes are the last nodes of the lanes, of those that were checked.
	lanes map[uint64]Seq
	// digests are those of the covers that were checked, by their first node.
	digests map[Seq][]digested
}

// digested is a stretch of a chain whose digest is known.
type digested struct {
	last   Skeleton
	count  uint64
	digest string
}

func (c *checker) say(seq Seq, id, format string, args ...any) {
	c.report(Problem{SessionID: c.id, Node: seq, ID: id, What: fmt.Sprintf(format, args...)})
}

func (c *checker) node(sk Skeleton) {
	say := func(format string, args ...any) { c.say(sk.Seq, sk.ID, format, args...) }
	if sk.Seq >= c.State.Next && !c.headless {
		say("its number is not below the next one, %d", c.State.Next)
	}
	if seq, err := c.seqOf(sk.ID); err != nil || seq != sk.Seq {
		say("its id does not lead to it (%v)", err)
	}
	if open, err := c.has(key(famOpen, c.session, uint64(sk.Seq))); err != nil || open != (sk.Status == protocol.StatusOpen) {
		say("it is %s, and its open mark says otherwise (%v)", sk.Status, err)
	}
	content, err := c.readContent(sk.Seq)
	if err != nil {
		say("the content: %v", err)
	}
	c.edges(sk)
	if sk.Kind.OnChain() {
		c.tip(sk)
	}
	if sk.Kind == protocol.KindSummary && content != nil {
		c.summary(sk, content)
	}
	if content != nil {
		for _, p := range content.Parts {
			if p.Type == protocol.PartToolCall && p.NodeID != "" {
				if t, err := c.Lookup(p.NodeID); err != nil || t.Caller != sk.Seq {
					say("it names tool node %q, which is not its callee", p.NodeID)
				}
			}
		}
	}
}

// edges checks predecessor, caller, depth and jump. Edges lead to smaller numbers
// only, so there can be no cycle.
func (c *checker) edges(sk Skeleton) {
	say := func(format string, args ...any) { c.say(sk.Seq, sk.ID, format, args...) }
	if sk.Kind == protocol.KindRoot {
		if sk.Seq != Root || sk.Predecessor != 0 || sk.Depth != 0 {
			say("it is a root in the wrong place")
		}
		c.checkLane(sk, Skeleton{})
		return
	}
	if sk.Predecessor == 0 && sk.Caller == 0 {
		say("it has neither predecessor nor caller")
	}
	for _, e := range []struct {
		name   string
		to     Seq
		family byte
	}{{"predecessor", sk.Predecessor, famChild}, {"caller", sk.Caller, famCallee}} {
		if e.to == 0 {
			continue
		}
		if e.to >= sk.Seq {
			say("its %s %d is not older than itself", e.name, e.to)
			continue
		}
		if b, err := getCopy(c.r, key(e.family, c.session, uint64(e.to), uint64(sk.Seq))); err != nil {
			say("its %s does not know it (%v)", e.name, err)
		} else if !bytes.Equal(b, []byte{kindByte(sk.Kind)}) {
			say("its %s takes it for another kind of node", e.name)
		}
	}
	if sk.Predecessor == 0 {
		if _, err := c.Skeleton(sk.Caller); err != nil {
			say("its caller: %v", err)
		}
		return
	}
	pred, err := c.Skeleton(sk.Predecessor)
	switch {
	case err != nil:
		say("its predecessor: %v", err)
		return
	case !pred.Kind.OnChain():
		say("its predecessor is a %s", pred.Kind)
	case sk.Depth != pred.Depth+1:
		say("its depth is %d, its predecessor's %d", sk.Depth, pred.Depth)
	}
	if !sk.Kind.OnChain() {
		return
	}
	if sk.Called != (pred.Called || sk.Caller != 0) {
		say("it says that it is called: %v", sk.Called)
	}
	c.checkLane(sk, pred)
	jump, err := c.Skeleton(sk.Jump)
	if err != nil {
		say("its jump: %v", err)
		return
	}
	// The jump of a node is its predecessor, or the jump of its predecessor's jump:
	// with every node checked, that proves that all jumps stay on the spine.
	if jump.Depth != jumpDepth(sk.Depth) {
		say("its jump leads to depth %d, not %d", jump.Depth, jumpDepth(sk.Depth))
		return
	}
	if jump.Seq != pred.Seq {
		over, err := c.Skeleton(pred.Jump)
		if err != nil || over.Jump != jump.Seq {
			say("its jump leaves its spine (%v)", err)
		}
	}
}

func (c *checker) tip(sk Skeleton) {
	followed := false
	for child, err := range c.Children(sk.Seq) {
		if err != nil {
			break
		}
		called, err := c.wasCalled(child)
		if followed = err == nil && !called; followed {
			break
		}
	}
	marked, err := c.IsTip(sk.Seq)
	if err != nil || marked == followed {
		c.say(sk.Seq, sk.ID, "its tip mark is wrong: marked %v, followed %v (%v)", marked, followed, err)
	}
}

func (c *checker) summary(sk Skeleton, content *Content) {
	say := func(format string, args ...any) { c.say(sk.Seq, sk.ID, format, args...) }
	covers, err := c.Covers(sk.Seq)
	switch {
	case err != nil:
		say("%v", err)
		return
	case content.Covers == nil || *content.Covers != covers:
		say("what it covers is not what its content says")
		return
	}
	if void, err := c.Void(sk.Seq); err != nil || void {
		if err != nil {
			say("%v", err)
		}
		return // it may name nodes that are gone: that is what void means
	}
	first, err := c.Skeleton(covers.First)
	if err != nil {
		say("its first covered node: %v", err)
		return
	}
	last, err := c.Skeleton(covers.Last)
	if err != nil {
		say("its last covered node: %v", err)
		return
	}
	if first.Predecessor != sk.Predecessor {
		say("its predecessor is not that of its first covered node")
	}
	d, err := c.digest(first, last)
	switch {
	case err != nil:
		say("its covered nodes: %v", err)
	case d.count != covers.Count:
		say("it covers %d nodes, the chain has %d", covers.Count, d.count)
	case d.digest != covers.Digest:
		say("the digest of its covered ids is not theirs")
	}
}

// maxDigests bounds the stretches from one node that are remembered.
const maxDigests = 64

// digest counts and digests the stretch from first to last. It goes on from the
// longest stretch it knows, so that a thousand summaries of one chain cost one
// walk and not a thousand.
func (c *checker) digest(first, last Skeleton) (digested, error) {
	d := digested{last: last}
	from := first
	known := c.digests[first.Seq]
	for _, k := range slices.Backward(known) {
		on, err := c.IsAncestor(k.last, last)
		if err != nil {
			return d, err
		}
		if !on {
			continue
		}
		d.count, d.digest = k.count, k.digest
		if k.last.Seq == last.Seq {
			return d, nil
		}
		if from, err = c.AncestorAt(last, k.last.Depth+1); err != nil {
			return d, err
		}
		break
	}
	if on, err := c.IsAncestor(from, last); err != nil {
		return d, err
	} else if !on {
		return d, fmt.Errorf("node %d is not on the chain of node %d", first.Seq, last.Seq)
	}
	var ids []string
	for s, err := range c.Path(from, last) {
		if err != nil {
			return d, err
		}
		ids = append(ids, s.ID)
	}
	slices.Reverse(ids)
	d.count += uint64(len(ids))
	d.digest = extendDigest(d.digest, ids)
	if len(known) == maxDigests {
		known = known[1:]
	}
	c.digests[first.Seq] = append(known, d)
	return d, nil
}

func (c *checker) head() {
	for _, h := range []struct {
		name string
		seq  Seq
		ok   func(protocol.Kind) bool
	}{
		{"HEAD", c.State.Head, protocol.Kind.OnChain},
		{"the active summary", c.State.Active, func(k protocol.Kind) bool { return k == protocol.KindSummary }},
	} {
		if h.seq == 0 && h.name != "HEAD" {
			continue
		}
		sk, err := c.Skeleton(h.seq)
		if err != nil {
			c.say(h.seq, "", "%s: %v", h.name, err)
		} else if !h.ok(sk.Kind) {
			c.say(h.seq, sk.ID, "%s is a %s", h.name, sk.Kind)
		}
	}
	if void, err := c.Void(c.State.Active); err != nil || void {
		c.say(c.State.Active, "", "the active summary is void (%v)", err)
	}
}

func (c *checker) names() {
	at := map[string]Seq{}
	for name, record := range c.nameRecords() {
		n, err := uint64(0), record.err
		if err == nil {
			n, err = readNumber(record.value)
		}
		if err != nil {
			c.say(0, "", "branch %q: %v", name, err)
			continue
		}
		at[name] = Seq(n)
		if sk, err := c.Skeleton(Seq(n)); err != nil || !sk.Kind.OnChain() {
			c.say(Seq(n), sk.ID, "branch %q refers to it, and it is no chain node (%v)", name, err)
		}
	}
	if b := c.State.Branch; b != "" && at[b] != c.State.Head {
		c.say(c.State.Head, "", "HEAD is attached to branch %q, which refers to node %d", b, at[b])
	}
}

// indexes looks for index records of nodes that are not there, or not as the index
// has them.
func (c *checker) indexes() {
	for _, x := range []struct {
		family byte
		ok     func(k []byte, value []byte, sk Skeleton) bool
	}{
		{famContent, func(k, _ []byte, _ Skeleton) bool { return len(k) == 17 }},
		{famChild, func(k, _ []byte, sk Skeleton) bool { return lastNumber(k[:17]) == uint64(sk.Predecessor) }},
		{famCallee, func(k, _ []byte, sk Skeleton) bool { return lastNumber(k[:17]) == uint64(sk.Caller) }},
		{famLeaf, func(_, v []byte, sk Skeleton) bool { return sk.Kind.OnChain() && isNumber(v) }},
		{famOpen, func(_, _ []byte, sk Skeleton) bool { return sk.Status == protocol.StatusOpen }},
		{famSummary, func(_, _ []byte, sk Skeleton) bool { return sk.Kind == protocol.KindSummary }},
		{famVoid, func(_, v []byte, sk Skeleton) bool {
			_, err := unframe(v)
			return sk.Kind == protocol.KindSummary && err == nil
		}},
		{famPin, func(_, v []byte, _ Skeleton) bool { return isNumber(v) }},
	} {
		prefix := key(x.family, c.session)
		it, err := c.r.NewIter(&pebble.IterOptions{LowerBound: prefix, UpperBound: after(prefix)})
		if err != nil {
			c.say(0, "", "index %q: %v", x.family, err)
			continue
		}
		for ok := it.First(); ok; ok = it.Next() {
			seq := Seq(lastNumber(it.Key()))
			if has, err := c.has(key(famSkeleton, c.session, uint64(seq))); err != nil || !has {
				c.say(seq, "", "index %q has a record of a node that is not there (%v)", x.family, err)
			} else if sk, err := c.Skeleton(seq); err == nil && !x.ok(it.Key(), it.Value(), sk) {
				c.say(seq, sk.ID, "index %q has a wrong record of it", x.family)
			}
		}
		if err := it.Close(); err != nil {
			c.say(0, "", "index %q: %v", x.family, err)
		}
	}
}

func isNumber(b []byte) bool { _, err := readNumber(b); return err == nil }

// ids looks for ids of nodes that are not there.
func (c *checker) ids() {
	prefix := key(famID, c.session)
	it, err := c.r.NewIter(&pebble.IterOptions{LowerBound: prefix, UpperBound: after(prefix)})
	if err != nil {
		c.say(0, "", "ids: %v", err)
		return
	}
	defer it.Close()
	for ok := it.First(); ok; ok = it.Next() {
		id := string(it.Key()[len(prefix):])
		if _, err := c.Lookup(id); protocol.CodeOf(err) == protocol.CodeUnknownNode {
			c.say(0, id, "the id leads to a node that is not there")
		}
	}
	if err := it.Error(); err != nil {
		c.say(0, "", "ids: %v", err)
	}
}

// records checks what belongs to no node: events, queued sends, and the text of
// replies that are not open any more.
func (c *checker) records() {
	last := uint64(0)
	for n, err := range c.numbers(key(famEvent, c.session)) {
		if err == nil {
			_, err = readEvent(n.Value)
		}
		if err != nil {
			c.say(0, "", "event %d: %v", n.Number, err)
		}
		if last != 0 && n.Number != last+1 {
			c.say(0, "", "event %d follows event %d", n.Number, last)
		}
		last = n.Number
	}
	if !c.headless && last != c.State.Events {
		c.say(0, "", "the newest event is %d, the head record says %d", last, c.State.Events)
	}
	for n, err := range c.numbers(key(famQueue, c.session)) {
		if err == nil {
			_, err = readQueued(n)
		}
		if err != nil {
			c.say(0, "", "queued send %d: %v", n.Number, err)
		}
	}
	c.pieces()
}

// pieces looks for streamed text of nodes that are not open any more. That of a
// node whose content is damaged is kept, and so is its report.
func (c *checker) pieces() {
	prefix := key(famPiece, c.session)
	it, err := c.r.NewIter(&pebble.IterOptions{LowerBound: prefix, UpperBound: after(prefix)})
	if err != nil {
		c.say(0, "", "streamed text: %v", err)
		return
	}
	defer it.Close()
	for ok := it.First(); ok; {
		seq := lastNumber(it.Key()[:17])
		if open, err := c.has(key(famOpen, c.session, seq)); err != nil || !open {
			c.say(Seq(seq), "", "it has streamed text left, and is not open (%v)", err)
		}
		ok = it.SeekGE(after(key(famPiece, c.session, seq)))
	}
	if err := it.Error(); err != nil {
		c.say(0, "", "streamed text: %v", err)
	}
}
