// Package turn runs turns: from the admission of a message to its last sealed
// reply, tool calls included.
//
// [Engine] admits, queues, runs and cancels. Each turn has one goroutine and one
// [TurnWriter], and the writer alone writes to the ledger, so that it alone decides
// whether HEAD may move. Turns of different sessions, and candidates of one
// message, do not wait for each other.
package turn
