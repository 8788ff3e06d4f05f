// Package reference is a second, simple-minded implementation of what a session
// is, to hold the real one against: nodes in a slice, names in a map, and every
// question answered by a walk over all of it. It shares no code with store, turn
// or projection; the rules are those of docs/architecture.md and of the
// specification.
//
// An operation checks everything first and returns a code of protocol, "" for
// done; what it refuses changes nothing.
package reference
