package words

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

// MixBit is h after a truth.
func (h Hash64) MixBit(b bool) Hash64 {
	if b {
		return h.Mix(1)
	}
	return h.Mix(0)
}

func mix16(h Hash64, b *[16]byte) Hash64 {
	return h.Mix(binary.LittleEndian.Uint64(b[:8])).Mix(binary.LittleEndian.Uint64(b[8:]))
}

func mixText(h Hash64, text []byte) Hash64 {
	h = h.Mix(uint64(len(text)))
	for len(text) > 0 {
		var raw [8]byte
		text = text[copy(raw[:], text):]
		h = h.Mix(binary.LittleEndian.Uint64(raw[:]))
	}
	return h
}

// Mix is h after all of i.
func (i ID) Mix(h Hash64) Hash64 { return mix16(h, (*[16]byte)(&i)) }

// Mix is h after all of a.
func (a Asked) Mix(h Hash64) Hash64 { return mix16(h, (*[16]byte)(&a)) }

// Mix is h after all of p.
func (p Place) Mix(h Hash64) Hash64 { return h.Mix(uint64(p.LSN)).Mix(uint64(p.Index)) }

// Mix is h after all of t.
func (t Ticket) Mix(h Hash64) Hash64 { return h.Mix(uint64(t)) }

// Mix is h after all of t.
func (t Tenant) Mix(h Hash64) Hash64 { return h.Mix(uint64(t)) }

// Mix is h after all of k.
func (k KeyID) Mix(h Hash64) Hash64 { return h.Mix(uint64(k)) }

// Mix is h after all of t.
func (t TxID) Mix(h Hash64) Hash64 { return mix16(h, (*[16]byte)(&t)) }
