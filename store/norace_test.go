//go:build !race

package store

// sized returns n; see race_test.go.
func sized(n int) int { return n }
