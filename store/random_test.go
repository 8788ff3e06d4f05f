package store

import "math/rand/v2"

// random returns the same numbers in every run.
func random() *rand.Rand { return rand.New(rand.NewPCG(7, 11)) }
