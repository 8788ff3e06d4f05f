// Package projection holds the views: pure functions of the ledger, a head and a
// policy. The context view is what a model reads, the transcript what a person
// reads. Both ask one function, [Applies], whether a summary stands for a part of
// the branch, so they can not disagree.
package projection
