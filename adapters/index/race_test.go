//go:build race

package index_test

// slow: the engine checks itself at every step where races are looked for.
const slow = 4
