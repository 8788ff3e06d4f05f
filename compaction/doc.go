// Package compaction keeps a conversation inside the model's window. It replaces
// the oldest messages of a branch, for the model's eyes, by a summary: one node
// that is added, while everything that it stands for stays (spec/compaction).
//
// A run goes through one pipeline, whoever began it:
//
//	plan       render the branch and choose what to cover             plan.go, cut.go
//	summarise  have a summariser propose changes to a typed manifest  summarise.go
//	check      reduce, fit, and refuse what does not hold             manifest, check.go
//	commit     one node, in one batch, if the ledger still stands     commit.go
//
// [Engine] has at most one run a session at a time. HEAD is never touched here.
package compaction
