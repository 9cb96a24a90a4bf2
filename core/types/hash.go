package types

import (
	"encoding/binary"
	"math/bits"
)

// Hash64 identifies states. Ordered things are mixed, unordered ones summed.
type Hash64 uint64

// Mix is h after x. It is no defence against those who choose x to collide:
// where strangers' names are placed by it, h begins with a secret seed.
func (h Hash64) Mix(x uint64) Hash64 {
	hi, lo := bits.Mul64(uint64(h)^x^0x9e3779b97f4a7c15, 0xd6e8feb86659fd93)
	return Hash64(hi ^ lo ^ x)
}

// MixBool is h after a truth.
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

// HashInto is h after all of i.
func (i NameHash) HashInto(h Hash64) Hash64 { return hash16(h, (*[16]byte)(&i)) }

// HashInto is h after all of a.
func (a RequestHash) HashInto(h Hash64) Hash64 { return hash16(h, (*[16]byte)(&a)) }

// HashInto is h after all of p.
func (p Position) HashInto(h Hash64) Hash64 { return h.Mix(uint64(p.LSN)).Mix(uint64(p.Index)) }

// HashInto is h after all of t.
func (t Ticket) HashInto(h Hash64) Hash64 { return h.Mix(uint64(t)) }

// HashInto is h after all of t.
func (t Tenant) HashInto(h Hash64) Hash64 { return h.Mix(uint64(t)) }

// HashInto is h after all of k.
func (k KeyID) HashInto(h Hash64) Hash64 { return h.Mix(uint64(k)) }

// HashInto is h after all of t.
func (t TxID) HashInto(h Hash64) Hash64 { return hash16(h, (*[16]byte)(&t)) }
