package types

import (
	"errors"
	"unicode/utf8"
)

// Why a text is not a valid name. Each is a mistake of the caller.
var (
	ErrAccount  = errors.New("account: must be 1..256 of A-Z a-z 0-9 : / _ -")
	ErrReserved = errors.New("account: issuance: and burned: are the ledger's own")
	ErrAsset    = errors.New("asset: must be 1..32 of A-Z a-z 0-9 / _ -")
	ErrKey      = errors.New("idempotency key: must be 1..64 of A-Z a-z 0-9 _ : . -")
	ErrRef      = errors.New("ref: must be 1..64 of A-Z a-z 0-9 _ : . -")
	ErrLabel    = errors.New("name: must be 1..64 of A-Z a-z 0-9 _ : . -")
	ErrMemo     = errors.New("memo: must be at most 256 bytes of UTF-8 without control characters")
)

// The prefixes of the ledger's own accounts of an asset: issued money comes from one and burned money
// goes to the other, so that all balances of an asset always sum to 0.
const (
	Issuance = "issuance:"
	Burned   = "burned:"
)

// ChargeRef begins the ref of each transfer that charges usage. The rest of such a ref can be computed by anyone, and a ref is used once for
// ever: so an API key that is limited to accounts may use none that begins like this.
const ChargeRef = "usage:"

// IsChargeRef reports whether a ref begins with ChargeRef.
func IsChargeRef[T ~string | ~[]byte](ref T) bool {
	return len(ref) >= len(ChargeRef) && string(ref[:len(ChargeRef)]) == ChargeRef
}

// A Name is a name that a caller chose: its text, which records store, and its digest, which tables
// store. An empty text is no name. The bytes are read-only.
type Name struct {
	ID   NameHash
	Text []byte
}

// A Label is a short text without pointers, so that a table row can store it.
type Label struct {
	size uint8
	text [MaxLabel]byte
}

// NewLabel returns the label of s, which CheckLabel has accepted.
func NewLabel[T ~string | ~[]byte](s T) (l Label) {
	l.size = uint8(copy(l.text[:], s))
	return l
}

func (l *Label) String() string { return string(l.text[:l.size]) }

// HashInto mixes l into h.
func (l *Label) HashInto(h Hash64) Hash64 { return hashText(h, l.text[:l.size]) }

// CheckAccount returns why s is not an account. Reserved accounts are valid.
func CheckAccount[T ~string | ~[]byte](s T) error {
	return checkText(s, MaxAccount, ":/_-", ErrAccount)
}

// CheckUserAccount returns why s is not an account that a caller may debit or credit.
func CheckUserAccount[T ~string | ~[]byte](s T) error {
	if _, ok := ReservedAsset(s); ok {
		return ErrReserved
	}
	return CheckAccount(s)
}

// ReservedAsset returns the asset of a reserved account; ok is false for all other accounts. The prefix
// tells which of the two accounts it is.
func ReservedAsset[T ~string | ~[]byte](s T) (asset T, ok bool) {
	for _, prefix := range [...]string{Issuance, Burned} {
		if len(s) >= len(prefix) && string(s[:len(prefix)]) == prefix {
			return s[len(prefix):], true
		}
	}
	return s[:0], false
}

// CheckAsset returns why s is not an asset.
func CheckAsset[T ~string | ~[]byte](s T) error { return checkText(s, MaxAsset, "/_-", ErrAsset) }

// CheckKey returns why s is not an idempotency key.
func CheckKey[T ~string | ~[]byte](s T) error { return checkText(s, MaxKey, "_:.-", ErrKey) }

// CheckRef returns why s is not a ref, CheckLabel why it is not a label of an API key.
func CheckRef[T ~string | ~[]byte](s T) error   { return checkText(s, MaxKey, "_:.-", ErrRef) }
func CheckLabel[T ~string | ~[]byte](s T) error { return checkText(s, MaxLabel, "_:.-", ErrLabel) }

// CheckMemo returns why s is not a memo. An empty memo is valid.
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

// checkText accepts letters, digits and the other allowed characters.
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
