package types

import (
	"encoding/binary"
	"math/bits"
)

// Hash64 identifies a state. Ordered values are mixed, unordered ones summed.
type Hash64 uint64

// Mix mixes x into h. It does not resist chosen collisions: tables that store names of callers start
// with a secret seed.
func (h Hash64) Mix(x uint64) Hash64 {
	hi, lo := bits.Mul64(uint64(h)^x^0x9e3779b97f4a7c15, 0xd6e8feb86659fd93)
	return Hash64(hi ^ lo ^ x)
}

// MixBool mixes b into h.
func (h Hash64) MixBool(b bool) Hash64 {
	if b {
		return h.Mix(1)
	}
	return h.Mix(0)
}

func hash16(h Hash64, b *[16]byte) Hash64 {
	return h.Mix(binary.LittleEndian.Uint64(b[:8])).Mix(binary.LittleEndian.Uint64(b[8:]))
}

func hashText(h Hash64, text []byte) Hash64 {
	h = h.Mix(uint64(len(text)))
	for len(text) > 0 {
		var raw [8]byte
		text = text[copy(raw[:], text):]
		h = h.Mix(binary.LittleEndian.Uint64(raw[:]))
	}
	return h
}

// HashInto mixes i into h.
func (i NameHash) HashInto(h Hash64) Hash64 { return hash16(h, (*[16]byte)(&i)) }

// HashInto mixes a into h.
func (a RequestHash) HashInto(h Hash64) Hash64 { return hash16(h, (*[16]byte)(&a)) }

// HashInto mixes p into h.
func (p Position) HashInto(h Hash64) Hash64 { return h.Mix(uint64(p.LSN)).Mix(uint64(p.Index)) }

// HashInto mixes t into h.
func (t Ticket) HashInto(h Hash64) Hash64 { return h.Mix(uint64(t)) }

// HashInto mixes t into h.
func (t Tenant) HashInto(h Hash64) Hash64 { return h.Mix(uint64(t)) }

// HashInto mixes k into h.
func (k KeyID) HashInto(h Hash64) Hash64 { return h.Mix(uint64(k)) }

// HashInto mixes t into h.
func (t TxID) HashInto(h Hash64) Hash64 { return hash16(h, (*[16]byte)(&t)) }
