// Package server is the JSON-RPC side of convls: it speaks LSP's lifecycle with
// one client a connection, dispatches requests to the methods it is given, and
// brings events and deltas to the clients that asked for them. It knows nothing
// of stores, turns and models; cmd/convls joins it to package handlers.
//
// # Requests
//
// Requests that name one session are handled and answered one after the other, in
// the order they came; see [Admitted] for those that wait. All others are handled
// side by side. A panic ends its own request, an error of a notification ends nothing,
// and a client that stops reading holds up nobody but itself.
//
// # Events
//
// A subscription is a session and a position. Nothing is queued for it: a pump,
// one goroutine a connection, reads events from the [EventSource] when the client
// has taken what it was sent before. So a client that is slow, or asleep, costs
// no memory and misses no event. Deltas are live and may be dropped; the client
// sees the gap in their offsets.
package server
