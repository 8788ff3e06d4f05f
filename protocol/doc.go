// Package protocol holds everything that crosses the wire between an editor
// and convls: method names, parameters, results, notifications, error codes and
// the JSON rules they obey.
//
// The payloads of convls/* methods are spelt in snake_case, and the ledger and
// the exports use the same spelling, so the types of parts, usage and errors
// below are also what package store keeps on disk. LSP's own messages keep
// LSP's camelCase and come from go.lsp.dev/protocol.
//
// docs/protocol.md and docs/protocol.schema.json are generated from this
// package (go generate ./protocol), comments included; a test fails when they
// are out of step.
package protocol

// Version is the protocol version that this program speaks. A client announces
// the newest it knows and the oldest it accepts; see [Announcement].
const Version = 1
