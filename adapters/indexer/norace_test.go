//go:build !race

package indexer_test

const slow = 1
