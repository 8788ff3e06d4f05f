// Package client speaks to a convls server from Go: it is what `convls chat` and
// the tests use. A [Client] runs over any connection, and [Start] gives it a
// server process of its own.
//
// Notifications reach the callbacks of [Options] one at a time and in the order
// the server sent them, on a goroutine of their own, so that a callback may make
// calls itself. Replies do not wait for callbacks; see [Client.Delivered]. A
// callback that is slow loses deltas first, and the gap in their offsets shows
// it; then the server is made to wait, which costs it nothing.
package client
