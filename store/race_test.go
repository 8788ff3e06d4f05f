//go:build race

package store

// sized shrinks a test's numbers: with the race detector Pebble checks itself, a
// hundred times slower.
func sized(n int) int { return max(n/20, 1) }
