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
func ParseAddress(s string) (a Address, err error) {
	if len(s) != AddressLen || s[:len(Scheme)] != Scheme {
		return a, ErrAddress
	}
	for _, c := range []byte(s[len(Scheme):]) {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return a, ErrAddress
		}
	}
	_, err = hex.Decode(a[:], []byte(s[len(Scheme):]))
	return a, err
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
