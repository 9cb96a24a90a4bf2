//go:build race

package index_test

// with the race detector the engine checks itself at every step
const slow = 4
