package event // want `far_plan9.go is not portable Go` `near.s is not portable Go`

import (
	"errors"
	"fmt"
	"maps"
	"slices"
)

var hits int // want `no package state here: hits`

var lost = errors.New("lost") // want `no package state here: lost`

var ErrCount int // want `no package state here: ErrCount`

func init() { hits++ } // want `no init here`

type kinds map[string]float64 // want `no float here`

func Sins(m kinds, n int) {
	for k := range m { // want `map order is random`
		_ = k
	}
	for range maps.Keys(m) { // want `map order is random: sort it at once`
	}
	_ = slices.Collect(maps.Values(m)) // want `map order is random: sort it at once`
	_ = slices.Sorted(maps.Keys(m))
	fmt.Println(n) // want `no output here`
	fmt.Scan(&n)   // want `no input here`
	println(n)     // want `no output here`
	_ = m["a"] * 2 // want `no float here`
	_ = fmt.Sprint(n)
}
