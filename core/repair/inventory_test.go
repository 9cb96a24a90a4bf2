package repair

import (
	"fmt"
	"testing"
)

// TestLostObjectsArePlannedLast: however many objects are lost, what can be restored gets a place in the queue.
func TestLostObjectsArePlannedLast(t *testing.T) {
	for _, c := range []struct {
		needed int
		has    []int // of each object
		want   string
	}{
		{1, []int{0, 0, 1, 2, 0}, "[2 true 3 false 0 false 1 false]"},
		{6, []int{5, 6, 8, 0, 7}, "[1 true 2 false 4 false 0 false 3 false]"},
		{1, []int{0, 0, 0}, "[0 false 1 false]"},
	} {
		var planned []string
		o := InventoryOrder{Limit: 2, Plan: func(t Task) { planned = append(planned, fmt.Sprint(t.File, t.Urgent)) }}
		for file, has := range c.has {
			o.Add(Task{File: uint64(file)}, has, c.needed)
		}
		o.Close()
		if got := fmt.Sprint(planned); got != c.want {
			t.Errorf("%v of %d needed: planned %s, want %s", c.has, c.needed, got, c.want)
		}
	}
}
