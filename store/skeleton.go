package store

import (
	"encoding/binary"
	"math/bits"
	"slices"
	"time"

	"convls/protocol"
)

// Skeleton is the small record of a node: what walks over the DAG need.
type Skeleton struct {
	Seq    Seq
	ID     string
	Kind   protocol.Kind
	Status protocol.Status
	// Predecessor is the chain edge, Caller the call edge; 0 for none.
	Predecessor, Caller Seq
	// Depth is the number of chain nodes before this one. A node off the chain has
	// the depth that a chain node in its place would have.
	Depth uint64
	// Jump is the ancestor at depth [jumpDepth](Depth).
	Jump    Seq
	Created time.Time
	// Tokens is how many tokens the node's own content takes, as counted by
	// Tokenizer; 0 and "" if nobody counted.
	Tokens    uint64
	Tokenizer string
	// Total sums the usage of this node and the chain nodes before it, so that the
	// usage of any stretch of a chain is one subtraction.
	Total    Totals
	Redacted bool
	// Exposed says that a call's subtree is shown in the context.
	Exposed bool
	// Called says that a chain node stands in the subtree of a call: it, or a chain
	// node before it, has a Caller.
	Called bool
	// Lane is the column of a chain node in the graph, and Run the first node of the
	// stretch of its chain that stands in that lane without a break; both never
	// change.
	Lane uint64
	Run  Seq
}

// Totals are running sums over a chain.
type Totals struct {
	Input, Output, Calls uint64
	// CostMicro is in millionths of a dollar.
	CostMicro uint64
}

// Usage returns the totals as the wire has them.
func (t Totals) Usage() protocol.Usage {
	return protocol.Usage{InputTokens: int64(t.Input), OutputTokens: int64(t.Output), Calls: int64(t.Calls),
		CostUSD: float64(t.CostMicro) / 1e6}
}

// Sub returns what was added between u and t.
func (t Totals) Sub(u Totals) Totals {
	return Totals{t.Input - u.Input, t.Output - u.Output, t.Calls - u.Calls, t.CostMicro - u.CostMicro}
}

// mostTotal is where sums end: the greatest number that every client of the wire
// reads exactly (RFC 8259, section 6).
const mostTotal = 1<<53 - 1

func (t Totals) add(u *protocol.Usage) Totals {
	if u == nil {
		return t
	}
	return Totals{
		Input:     t.Input + uint64(max(u.InputTokens, 0)),
		Output:    t.Output + uint64(max(u.OutputTokens, 0)),
		Calls:     t.Calls + uint64(max(u.Calls, 1)),
		CostMicro: t.CostMicro + micro(u.CostUSD),
	}.bounded()
}

// bounded ends sums at mostTotal. What is added to one that was bounded is less than
// 1<<63, so it has not wrapped before.
func (t Totals) bounded() Totals {
	return Totals{min(t.Input, mostTotal), min(t.Output, mostTotal), min(t.Calls, mostTotal), min(t.CostMicro, mostTotal)}
}

// micro returns dollars in millionths, as far as they are a sum of money.
func micro(usd float64) uint64 {
	switch m := usd*1e6 + 0.5; {
	case m >= mostTotal:
		return mostTotal
	case m > 0:
		return uint64(m)
	}
	return 0 // negative, or no number
}

// kinds and statuses are the bytes that stand for them in records. They only ever
// grow at the end.
var (
	kinds = [...]protocol.Kind{"", protocol.KindRoot, protocol.KindUser, protocol.KindAssistant, protocol.KindAttach,
		protocol.KindTool, protocol.KindCall, protocol.KindSummary, protocol.KindNotice}
	statuses = [...]protocol.Status{"", protocol.StatusOpen, protocol.StatusSealed, protocol.StatusFailed,
		protocol.StatusCancelled, protocol.StatusInterrupted}
)

// kindByte returns the byte of a kind, 0 for one that no node can have.
func kindByte(k protocol.Kind) byte { return byte(max(slices.Index(kinds[1:], k)+1, 0)) }

// statusByte returns the byte of a status, 0 for one that no node can have.
func statusByte(s protocol.Status) byte { return byte(max(slices.Index(statuses[1:], s)+1, 0)) }

func kindOf(b byte) (protocol.Kind, bool) {
	if b == 0 || int(b) >= len(kinds) {
		return "", false
	}
	return kinds[b], true
}

func statusOf(b byte) (protocol.Status, bool) {
	if b == 0 || int(b) >= len(statuses) {
		return "", false
	}
	return statuses[b], true
}

const (
	flagRedacted = 1 << iota
	flagExposed
	flagCalled
)

// encode returns the record: version, kind, status, flags, numbers, strings, and
// last a checksum of all that. A later version may put more before the checksum.
func (s *Skeleton) encode() []byte {
	var flags byte
	if s.Redacted {
		flags |= flagRedacted
	}
	if s.Exposed {
		flags |= flagExposed
	}
	if s.Called {
		flags |= flagCalled
	}
	b := []byte{recordVersion, kindByte(s.Kind), statusByte(s.Status), flags}
	for _, v := range []uint64{
		uint64(s.Predecessor), uint64(s.Caller), s.Depth, uint64(s.Jump), uint64(s.Created.UnixMilli()), s.Tokens,
		s.Total.Input, s.Total.Output, s.Total.Calls, s.Total.CostMicro,
	} {
		b = binary.AppendUvarint(b, v)
	}
	b = appendString(b, s.Tokenizer)
	b = appendString(b, s.ID)
	b = binary.AppendUvarint(b, s.Lane)
	b = binary.AppendUvarint(b, uint64(s.Run))
	return seal(b)
}

// decodeSkeleton reads the record of node seq; it keeps nothing of b.
func decodeSkeleton(seq Seq, b []byte) (Skeleton, error) {
	s := Skeleton{Seq: seq}
	body, err := unseal(b)
	if err != nil {
		return s, err
	}
	if len(body) < 4 {
		return s, errShort
	}
	var ok1, ok2 bool
	s.Kind, ok1 = kindOf(body[1])
	s.Status, ok2 = statusOf(body[2])
	if !ok1 || !ok2 {
		return s, errUnknown
	}
	s.Redacted = body[3]&flagRedacted != 0
	s.Exposed = body[3]&flagExposed != 0
	s.Called = body[3]&flagCalled != 0
	d := decoder{b: body[4:]}
	s.Predecessor, s.Caller = Seq(d.uvarint()), Seq(d.uvarint())
	s.Depth, s.Jump = d.uvarint(), Seq(d.uvarint())
	s.Created = time.UnixMilli(int64(d.uvarint())).UTC()
	s.Tokens = d.uvarint()
	s.Total = Totals{d.uvarint(), d.uvarint(), d.uvarint(), d.uvarint()}
	s.Tokenizer, s.ID = d.string(), d.string()
	if d.err == nil && len(d.b) > 0 { // format 1 ends here
		s.Lane, s.Run = d.uvarint(), Seq(d.uvarint())
	}
	return s, d.err
}

// jumpDepth returns the depth that the jump pointer of a node at depth d leads
// to. Jump lengths are those of skew-binary numbers (Myers, "An applicative
// random-access stack", 1983): d is written as a sum of numbers 2^k-1, greatest
// first, and the last of them is the length. So the shape is a function of depth
// alone, needs one pointer a node, and gives walks of O(log n).
func jumpDepth(d uint64) uint64 {
	if d == 0 {
		return 0
	}
	rest, last := d, uint64(1)
	for rest > 0 {
		// The greatest 2^k-1 that is at most rest.
		k := bits.Len64(rest+1) - 1
		last = 1<<k - 1
		rest -= last
	}
	return d - last
}
