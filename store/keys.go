package store

import (
	"encoding/binary"
)

// The families of keys. A key is the family's letter, then, for all but the
// store's own records, the session's number (8 bytes, big endian), then what the
// family says. Numbers are big endian, so that Pebble's order is theirs.
const (
	famMeta     = 'M' // name -> the store's own facts
	famHead     = 'H' // -> head record
	famInfo     = 'I' // -> session record
	famSkeleton = 'n' // seq -> skeleton
	famContent  = 'c' // seq -> content record
	famChunk    = 'C' // seq, generation, index -> a piece of a long content
	famWriting  = 'w' // seq, generation -> nothing: chunks whose batch has not come yet
	famID       = 'd' // node id -> seq
	famChild    = 'k' // predecessor, seq -> kind
	famCallee   = 'a' // caller, seq -> kind
	famLane     = 'L' // lane -> seq of the chain node that was put there last
	famLeaf     = 'l' // seq of a tip -> when it was last used
	famName     = 'b' // branch name -> seq
	famOpen     = 'o' // seq -> nothing: the node is open
	famPiece    = 'p' // seq, part, kind -> streamed text so far (merged)
	famEvent    = 'e' // number -> event
	famSummary  = 'y' // seq of a summary -> what it covers
	famVoid     = 'v' // seq of a summary -> why it is void
	famUndone   = 'u' // seq of a summary -> when a person took it back
	famRun      = 'R' // -> id of the compaction that is under way
	famBreaker  = 'B' // -> why automatic compaction is off, if it is
	famPin      = 'x' // seq -> when it was pinned
	famQueue    = 'q' // number -> a send that waits
	famSession  = 's' // session id -> number (no session number in the key)
	famReceipt  = 'r' // day, session number, request id -> receipt
	famGone     = 'g' // -> nothing: the number is that of a deleted session
	famText     = 't' // SHA-256 (hex) -> text stored once (no session number in the key)
)

// sessionFamilies are the families whose keys begin with a session's number: what
// goes when the session goes.
var sessionFamilies = []byte{
	famHead, famInfo, famSkeleton, famContent, famChunk, famWriting, famID, famChild, famCallee, famLane, famLeaf, famName,
	famOpen, famPiece, famEvent, famSummary, famVoid, famUndone, famRun, famBreaker, famPin, famQueue,
}

func key(family byte, session uint64, more ...uint64) []byte {
	k := make([]byte, 9, 9+8*len(more))
	k[0] = family
	binary.BigEndian.PutUint64(k[1:], session)
	for _, m := range more {
		k = binary.BigEndian.AppendUint64(k, m)
	}
	return k
}

func keyString(family byte, session uint64, s string) []byte {
	return append(key(family, session), s...)
}

func metaKey(name string) []byte { return append([]byte{famMeta}, name...) }

func sessionKey(id string) []byte { return append([]byte{famSession}, id...) }

func pieceKey(session uint64, seq Seq, part int, kind byte) []byte {
	k := key(famPiece, session, uint64(seq))
	k = binary.BigEndian.AppendUint32(k, uint32(part))
	return append(k, kind)
}

func receiptKey(day, session uint64, id string) []byte {
	k := make([]byte, 0, 17+len(id))
	k = append(k, famReceipt)
	k = binary.BigEndian.AppendUint64(k, day)
	k = binary.BigEndian.AppendUint64(k, session)
	return append(k, id...)
}

// lastNumber returns the last number in a key made by [key].
func lastNumber(k []byte) uint64 { return binary.BigEndian.Uint64(k[len(k)-8:]) }

// after returns the least key that is greater than every key with this prefix.
func after(prefix []byte) []byte {
	end := append([]byte(nil), prefix...)
	for i := len(end) - 1; i >= 0; i-- {
		end[i]++
		if end[i] != 0 {
			return end[:i+1]
		}
	}
	return nil
}

func textKey(sum string) []byte { return append([]byte{famText}, sum...) }
