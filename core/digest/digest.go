// Package digest is the one place that hashes: names, questions, the chain.
package digest

import (
	"github.com/zeebo/blake3"

	"macronode/core/types"
)

// Name is the digest of a name's text. Two names with one digest would be one
// account, so it is cut from a cryptographic hash: 2^64 work to find a pair,
// 2^128 to find a second name for a given one.
func Name(text []byte) (id types.NameHash) {
	sum := blake3.Sum256(text)
	copy(id[:], sum[:])
	return id
}

// RequestHash is the digest of what was asked, over bytes that say it unambiguously.
func RequestHash(said []byte) (a types.RequestHash) {
	sum := blake3.Sum256(said)
	copy(a[:], sum[:])
	return a
}

// Sum is BLAKE3 over b.
func Sum(b []byte) [32]byte { return blake3.Sum256(b) }

// Chain is the root after the frame body that follows prev:
// BLAKE3(prev ‖ body). It uses scratch and returns it, grown.
func Chain(scratch []byte, prev types.Root, body []byte) (root types.Root, grown []byte) {
	scratch = append(append(scratch[:0], prev[:]...), body...)
	return blake3.Sum256(scratch), scratch
}
