// Package frame carries JSON-RPC messages over a byte stream as LSP's base
// protocol does: a header with Content-Length in bytes, an empty line, and the
// body (LSP 3.18, "Base Protocol").
//
// A [Stream] is what go.lsp.dev/jsonrpc2 reads from and writes to. It replaces
// that library's own stream, which answers a damaged message by ending the
// connection, keeps its largest buffer for good, and queues without bound for a
// peer that does not read. What this one promises:
//
//   - A message that is well framed but no good (not JSON, invalid UTF-8,
//     duplicate members, a batch, over the limit) is answered with an error, with
//     its id where that can be read, and the connection goes on. Only a header
//     that makes no sense ends it, because nobody knows where the next one begins.
//   - Memory follows the bytes that came, never the length that was claimed, and
//     is given back after a large message.
//   - What is written goes through one bounded queue. Who must not lose a message
//     waits there alone ([Stream.Send]); who may, drops it ([Stream.TrySend]).
//   - Close never hangs, whatever the other side does.
package frame
