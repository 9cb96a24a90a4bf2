//go:build !race

package index_test

const slow = 1
