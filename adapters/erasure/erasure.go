// Package erasure computes the parity of stripes, and restores shards from the others: a Reed–Solomon code over GF(2^8) whose shard r is
// the value at r of the polynomial that has the values of the data at 0, 1, … Files contain its output, so it never changes.
package erasure

import (
	"fmt"

	"github.com/klauspost/reedsolomon"

	"macronode/core/coding"
)

// A Codec encodes the stripes of one scheme. It is safe for concurrent use.
type Codec struct {
	scheme coding.Scheme
	code   reedsolomon.Encoder
}

// New returns the codec of a scheme. A stripe is small, so one goroutine encodes it.
func New(s coding.Scheme) *Codec {
	code, err := reedsolomon.New(int(s.Data), int(s.Parity), reedsolomon.WithMaxGoroutines(1))
	if err != nil {
		panic("erasure: scheme " + s.String() + ": " + err.Error()) // coding.Parse has accepted it
	}
	return &Codec{s, code}
}

// Encode computes the parity of a stripe. shards has all shards, each of the same length.
func (c *Codec) Encode(shards [][]byte) error {
	if err := c.code.Encode(shards); err != nil {
		return fmt.Errorf("encode a stripe: %w", err)
	}
	return nil
}

// RestoreData computes the data shards of a stripe that are missing: their length is 0, and their capacity that of the others. As many
// shards are present as the scheme has data.
func (c *Codec) RestoreData(shards [][]byte) error {
	if err := c.code.ReconstructData(shards); err != nil {
		return fmt.Errorf("restore a stripe: %w", err)
	}
	return nil
}
