package types

import (
	"errors"
	"unicode/utf8"
)

// Why a text is not a name. Each is the caller's mistake.
var (
	ErrAccount  = errors.New("account: must be 1..256 of A-Z a-z 0-9 : / _ -")
	ErrReserved = errors.New("account: issuance: and burned: are the ledger's own")
	ErrAsset    = errors.New("asset: must be 1..32 of A-Z a-z 0-9 / _ -")
	ErrKey      = errors.New("idempotency key: must be 1..64 of A-Z a-z 0-9 _ : . -")
	ErrRef      = errors.New("ref: must be 1..64 of A-Z a-z 0-9 _ : . -")
	ErrLabel    = errors.New("name: must be 1..64 of A-Z a-z 0-9 _ : . -")
	ErrMemo     = errors.New("memo: must be at most 256 bytes of UTF-8 without control characters")
)

// The ledger's own accounts, one of each an asset: money comes from the one and
// goes to the other, so that all balances of an asset always add up to nothing.
const (
	Issuance = "issuance:"
	Burned   = "burned:"
)

// A Name is what a caller calls something: the text, which records keep, and its
// digest, which tables keep. An empty text is no name. The bytes are not written
// to by anyone who holds the Name.
type Name struct {
	ID   NameHash
	Text []byte
}

// A Label is a short text that is flat, so that it can stand in a row of a table.
type Label struct {
	size uint8
	text [MaxLabel]byte
}

// NewLabel is a label of s, which has been checked.
func NewLabel[T ~string | ~[]byte](s T) (l Label) {
	l.size = uint8(copy(l.text[:], s))
	return l
}

func (l *Label) String() string { return string(l.text[:l.size]) }

// HashInto is h after all of l.
func (l *Label) HashInto(h Hash64) Hash64 { return hashText(h, l.text[:l.size]) }

// CheckAccount says why s is no account. Reserved ones are accounts.
func CheckAccount[T ~string | ~[]byte](s T) error {
	return checkText(s, MaxAccount, ":/_-", ErrAccount)
}

// CheckUserAccount says why s is no account that a caller may move money of or to.
func CheckUserAccount[T ~string | ~[]byte](s T) error {
	if _, ok := ReservedAsset(s); ok {
		return ErrReserved
	}
	return CheckAccount(s)
}

// ReservedAsset splits a reserved account into its asset; ok is false for all others. The
// prefix tells which of the two it is.
func ReservedAsset[T ~string | ~[]byte](s T) (asset T, ok bool) {
	for _, prefix := range [...]string{Issuance, Burned} {
		if len(s) >= len(prefix) && string(s[:len(prefix)]) == prefix {
			return s[len(prefix):], true
		}
	}
	return s[:0], false
}

// CheckAsset says why s is no asset.
func CheckAsset[T ~string | ~[]byte](s T) error { return checkText(s, MaxAsset, "/_-", ErrAsset) }

// CheckKey says why s is no idempotency key.
func CheckKey[T ~string | ~[]byte](s T) error { return checkText(s, MaxKey, "_:.-", ErrKey) }

// CheckRef says why s is no ref, CheckLabel why it is nothing to call an API key.
func CheckRef[T ~string | ~[]byte](s T) error   { return checkText(s, MaxKey, "_:.-", ErrRef) }
func CheckLabel[T ~string | ~[]byte](s T) error { return checkText(s, MaxLabel, "_:.-", ErrLabel) }

// CheckMemo says why s is no memo. The empty one is.
func CheckMemo(s []byte) error {
	if len(s) > MaxMemo || !utf8.Valid(s) {
		return ErrMemo
	}
	for i, c := range s {
		if c < ' ' || c == 0x7f || c == 0xc2 && s[i+1] < 0xa0 { // C0, DEL, C1
			return ErrMemo
		}
	}
	return nil
}

// checkText checks letters, digits and what else is allowed.
func checkText[T ~string | ~[]byte](s T, most int, also string, not error) error {
	if len(s) == 0 || len(s) > most {
		return not
	}
	for i := range len(s) {
		c := s[i]
		if 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' {
			continue
		}
		if !containsByte(also, c) {
			return not
		}
	}
	return nil
}

func containsByte(set string, c byte) bool {
	for i := range len(set) {
		if set[i] == c {
			return true
		}
	}
	return false
}
