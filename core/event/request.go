package event

import (
	"encoding/binary"
	"errors"

	"macronode/core/digest"
	"macronode/core/words"
)

// Why a request is no operation. Each is the caller's mistake.
var (
	ErrOp     = errors.New("operation: unknown")
	ErrAmount = errors.New("amount: wants more than 0")
	ErrNonce  = errors.New("nonce: wants 1..2^53-1, and none for an issue")
	ErrSide   = errors.New("account: an issue has no from, a burn no to")
	ErrSelf   = errors.New("account: from and to are the same")
)

// An Op is what is done to money. Its number stands in records.
type Op uint8

const (
	Issue Op = iota + 1
	Transfer
	Burn
	ops // how many there are, and one
)

// Known reports that o is an operation of this version.
func (o Op) Known() bool { return o > 0 && o < ops }

func (o Op) String() string { return [ops]string{"", "issue", "transfer", "burn"}[o] }

// Scope is what a key needs for o.
func (o Op) Scope() Scopes { return [ops]Scopes{0, MayIssue, MayTransfer, MayBurn}[o] }

// A Request is one operation on money, parsed, and sealed outside so that the step
// need not hash.
type Request struct {
	Ticket words.Ticket
	Caller words.KeyID
	Tenant words.Tenant // the caller's
	Key    words.Name   // idempotency key
	Asked  words.Asked  // digest of all below
	Op     Op
	From   words.Name // empty for an issue
	To     words.Name // empty for a burn
	Asset  words.Name
	Amount words.Amount
	Nonce  words.Nonce // 0 for an issue
	Memo   []byte
}

// Seal computes the digests of r's names and of what r asks. It returns scratch,
// grown.
func (r *Request) Seal(scratch []byte) []byte {
	for _, n := range [...]*words.Name{&r.Key, &r.From, &r.To, &r.Asset} {
		n.ID = words.ID{} // a request is used again
		if len(n.Text) > 0 {
			n.ID = digest.Name(n.Text)
		}
	}
	b := append(scratch[:0], byte(r.Op))
	for _, text := range [...][]byte{r.From.Text, r.To.Text, r.Asset.Text, r.Memo} {
		b = append(binary.AppendUvarint(b, uint64(len(text))), text...)
	}
	b = binary.LittleEndian.AppendUint64(b, r.Amount.Lo)
	b = binary.LittleEndian.AppendUint64(b, r.Amount.Hi)
	b = binary.LittleEndian.AppendUint64(b, uint64(r.Nonce))
	r.Asked = digest.Asked(b)
	return b
}

// Check says why r, sealed, is no operation: the one rule for all doors. It reads the
// texts, so it is asked where they are parsed; the step asks Sane.
func (r *Request) Check() error {
	if err := words.CheckKey(r.Key.Text); err != nil {
		return err
	}
	if r.Op != Issue {
		if err := words.CheckParty(r.From.Text); err != nil {
			return err
		}
	}
	if r.Op != Burn {
		if err := words.CheckParty(r.To.Text); err != nil {
			return err
		}
	}
	if err := words.CheckAsset(r.Asset.Text); err != nil {
		return err
	}
	if err := words.CheckMemo(r.Memo); err != nil {
		return err
	}
	return r.Sane()
}

// Sane says why the numbers of r are no operation, in no time.
func (r *Request) Sane() error {
	switch {
	case !r.Op.Known():
		return ErrOp
	case r.Amount.Zero():
		return ErrAmount
	case r.Op == Issue && r.Nonce != 0 || r.Op != Issue && (r.Nonce == 0 || r.Nonce > words.MaxNonce):
		return ErrNonce
	case r.Op == Issue && len(r.From.Text) > 0 || r.Op == Burn && len(r.To.Text) > 0:
		return ErrSide
	case r.Op == Transfer && r.From.ID == r.To.ID:
		return ErrSelf
	}
	return nil
}
