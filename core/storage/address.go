package storage

import (
	"encoding/hex"
	"errors"

	"macronode/core/types"
)

// ErrAddress reports a text that is not an address.
var ErrAddress = errors.New("address: must be b3: and 64 lowercase hexadecimal digits")

// Scheme is the prefix of every address: BLAKE3 with 256 bits.
const Scheme = "b3:"

// AddressLen is the length of an address as text.
const AddressLen = len(Scheme) + 64

// An Address identifies an object by its content: the BLAKE3-256 digest of its bytes.
type Address [32]byte

// ParseAddress returns the address that s is the text of. An address has one text only: uppercase
// digits are an error.
func ParseAddress(s string) (a Address, err error) { return parseAddress(s) }

func parseAddress[T ~string | ~[]byte](s T) (a Address, err error) {
	if len(s) != AddressLen || string(s[:len(Scheme)]) != Scheme {
		return a, ErrAddress
	}
	for i := range a {
		hi, lo := digit(s[len(Scheme)+2*i]), digit(s[len(Scheme)+2*i+1])
		if hi > 15 || lo > 15 {
			return a, ErrAddress
		}
		a[i] = hi<<4 | lo
	}
	return a, nil
}

// digit returns the value of a lowercase hexadecimal digit, or 16.
func digit(c byte) byte {
	switch {
	case '0' <= c && c <= '9':
		return c - '0'
	case 'a' <= c && c <= 'f':
		return c - 'a' + 10
	}
	return 16
}

// AppendText appends the text of a to b.
func (a Address) AppendText(b []byte) ([]byte, error) {
	return hex.AppendEncode(append(b, Scheme...), a[:]), nil
}

func (a Address) String() string {
	b, _ := a.AppendText(make([]byte, 0, AddressLen))
	return string(b)
}

// HashInto mixes a into h.
func (a Address) HashInto(h types.Hash64) types.Hash64 {
	return types.NameHash(a[:16]).HashInto(types.NameHash(a[16:]).HashInto(h))
}
