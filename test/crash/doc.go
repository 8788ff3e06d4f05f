// Package crash kills the real program at random instants, while it streams and
// while sessions change, and checks after each kill what docs/architecture.md
// promises: nothing that was acknowledged is lost, nothing is left half done, and
// a request whose answer was lost can be sent again and happens once.
//
// Nothing here is told by the clock. What must be there is told by what the server
// has said: a reply, an event, text that was streamed before a change that was
// acknowledged.
package crash
