// Package bench measures what a person waits for, on the real program and a real
// disk: go test -bench . ./test/bench. The ledger's own benchmarks, against bare
// Pebble and SQLite, are in package store. Nothing here asserts a time; each
// figure that has a baseline reports the ratio to it in the same run.
package bench
