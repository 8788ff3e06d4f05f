// Package compaction tests compaction on the real program over real stdio: what a
// summary covers, what each branch renders before and after, what is refused, and
// what a crash, a cancel, or a change under a run leaves behind.
//
// The known defects of spec/recovered and where each is tested:
//
//	1, 2, 3, 8, 16  TestCoverage
//	4               TestLostNodes
//	5, 7            TestTwoBranches
//	6               TestHeadOnTheLastCovered
//	9               TestRefusedSummaries
//	10              TestChangesUnderARun, TestLostDrafts
//	11, 12          package store, and test/scenario
//	13              the graph is not part of compaction
//	14              the benchmarks of compaction and of test/bench
//	15              package store: order is a number
//	17, 18          test/crash; package store: one batch, one lock
//
// The exercises of spec/checkpoints: A TestAutomatic, B TestPromptAfterCompaction,
// C TestRefusedSummaries, D TestEditedDraft, E TestToolPairs, F TestCycles. The eight
// invariants: TestInvariants.
package compaction
