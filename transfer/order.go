package transfer

import "slices"

// none is the parent of what has no parent.
const none = -1

// parentsFirst returns the indexes so that parents come before their children and
// all else keeps its order. It takes one step for each index and each parent; if
// the parents run in a circle it returns an index on the circle, and false.
func parentsFirst(parents []int) (order []int, cycle int, ok bool) {
	const (
		unseen = iota
		waiting
		done
	)
	state := make([]uint8, len(parents))
	order = make([]int, 0, len(parents))
	var path []int
	for i := range parents {
		path = path[:0]
		for j := i; j != none && state[j] != done; j = parents[j] {
			if state[j] == waiting {
				return nil, j, false
			}
			state[j] = waiting
			path = append(path, j)
		}
		for _, j := range slices.Backward(path) {
			state[j] = done
			order = append(order, j)
		}
	}
	return order, none, true
}
