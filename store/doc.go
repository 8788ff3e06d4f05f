// Package store is the ledger of convls on Pebble: sessions, their nodes, HEAD,
// branches and events.
//
// The ledger is append-only. A node is written once, sealed, and never changes;
// only a person's delete and redact take something away. Every mutation is one
// atomic batch that is synced before anybody is told of it; see [Apply].
//
// # Records
//
// A node is two records. The skeleton (about 60 bytes) has its edges, depth, jump
// pointer and counters, so that walks and ancestor questions never touch content.
// The content record has parts, usage, reads and the rest; what is longer than 64
// KiB goes ahead of its batch in chunks. Every record carries a version and a
// checksum, and readers ignore what a later version appends.
//
// # Damage
//
// A record that can not be read gives store_damaged to who asks for it, and to
// nobody else: sessions, branches and neighbours go on. Opening never deletes or
// truncates. [Store.Check] finds all damage.
//
// # The disk
//
// Below [Reserve] mutations are refused with disk_full, but for those that end what
// runs. A commit that the disk holds up answers after two seconds, with an unknown
// outcome, and locks its session until it returns. A store whose disk is below the
// reserve opens read-only.
//
// # Order
//
// Within a session nodes are numbered by a sequence ([Seq]) that is advanced in
// the batch that writes the node. That number, never an id and never a clock, is
// the order of things. Ids are for the wire.
package store

// Seq is a node's number within its session, from 1, the root. 0 means none.
type Seq uint64

// Root is the sequence number of every session's root node.
const Root Seq = 1
