// Package digest computes every hash of the node: names, requests, frames, objects.
package digest

import (
	"github.com/zeebo/blake3"

	"macronode/core/types"
)

// Name returns the digest of a name. Two names with one digest would be one account, so it is a
// cryptographic hash: 2^64 work to find a collision, 2^128 to find a second name for a given
// digest.
func Name(text []byte) (id types.NameHash) {
	sum := blake3.Sum256(text)
	copy(id[:], sum[:])
	return id
}

// RequestHash returns the digest of a canonical encoding of a request.
func RequestHash(canonical []byte) (a types.RequestHash) {
	sum := blake3.Sum256(canonical)
	copy(a[:], sum[:])
	return a
}

// Sum returns BLAKE3 of b.
func Sum(b []byte) [32]byte { return blake3.Sum256(b) }

// Chain returns the root after a frame: BLAKE3(prev ‖ body). It uses scratch and returns it,
// grown.
func Chain(scratch []byte, prev types.Root, body []byte) (root types.Root, grown []byte) {
	scratch = append(append(scratch[:0], prev[:]...), body...)
	return blake3.Sum256(scratch), scratch
}
