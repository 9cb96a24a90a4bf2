//go:build race

package indexer_test

// slow: the engine checks itself at every step where races are looked for.
const slow = 4
