package event

import (
	"encoding/binary"
	"errors"

	"macronode/core/command"
	"macronode/core/digest"
	"macronode/core/types"
)

// Why a request is not a valid operation. Each is an error of the caller.
var (
	ErrOp     = errors.New("operation: unknown")
	ErrAmount = errors.New("amount: must be more than 0; not accepted for a release or a freeze")
	ErrNonce  = errors.New("nonce: must be 1..2^53-1 for a debit; not accepted elsewhere")
	ErrSide   = errors.New("account: an operation has a side that it does not know")
	ErrSelf   = errors.New("account: from and to are the same")
	ErrHold   = errors.New("hold: required for a capture or a release, not accepted elsewhere")
	ErrExpiry = errors.New("expires_at: required for a hold, not accepted elsewhere")
	ErrItems  = errors.New("batch: must be 1..1000 items of one operation each")
)

// An Op is an operation of the wallet. Its number is stored in records.
type Op uint8

const (
	Issue Op = iota + 1
	Transfer
	Burn
	Hold     // reserve an amount of From
	Capture  // debit part of a hold and release the rest
	Release  // release a hold
	Freeze   // reject debits of From
	Unfreeze //
	Batch    // several of the first six
	numOps   // their number plus one
)

// Known reports whether o is an operation of this version.
func (o Op) Known() bool { return o > 0 && o < numOps }

func (o Op) String() string {
	return [numOps]string{"", "issue", "transfer", "burn", "hold", "capture", "release", "freeze", "unfreeze", "batch"}[o]
}

// Scope returns the scope that o needs. Each item of a batch needs its own.
func (o Op) Scope() Scopes {
	return [numOps]Scopes{0, ScopeIssue, ScopeTransfer, ScopeBurn, ScopeHold, ScopeCapture, ScopeHold, ScopeAdmin, ScopeAdmin, 0}[o]
}

// opTraits are the fields of an operation.
type opTraits uint16

const (
	debitsFrom opTraits = 1 << iota // From, whose nonce it uses
	hasFrom                         // From, without a nonce
	hasTo
	optionalTo
	hasAmount // Asset and Amount
	hasAsset  // without an amount
	hasHold
	hasExpiry
)

func (o Op) traits() opTraits {
	return [numOps]opTraits{
		Issue:    hasTo | hasAmount,
		Transfer: debitsFrom | hasTo | hasAmount,
		Burn:     debitsFrom | hasAmount,
		Hold:     debitsFrom | optionalTo | hasAmount | hasExpiry,
		Capture:  hasFrom | hasTo | hasAmount | hasHold,
		Release:  hasFrom | hasAsset | hasHold,
		Freeze:   hasFrom,
		Unfreeze: hasFrom,
	}[o]
}

// has reports whether t has any of them.
func (t opTraits) has(any opTraits) bool { return t&any != 0 }

// An Item is one operation.
type Item struct {
	Op        Op
	From      types.Name // empty for an issue; for a capture or release, the holder
	To        types.Name // empty for a burn; for a hold, the beneficiary, if any
	Asset     types.Name // empty for a freeze
	Amount    types.Amount
	Nonce     types.Nonce // 0 without a debit
	ExpiresAt types.Time  // of a hold
	Hold      types.TxID  // that is captured or released
	Ref       types.Name  // the caller's reference, used once for ever; may be empty
	Memo      []byte      // for a freeze, its reason

	PriorRef types.TxID // the record with Ref in the index; zero: none
}

// A Request is the command of the wallet: one operation, or a batch of them. Seal computes its digests outside the
// step.
type Request struct {
	command.Header
	Item
	Items  []Item // of a batch; Item then has only its Op
	Atomic bool   // of a batch: all or nothing
}

// Plane is the wallet.
func (r *Request) Plane() types.Plane { return types.PlaneWallet }

// Each yields the operations of r: its only one, or its items.
func (r *Request) Each(yield func(int, *Item) bool) {
	if r.Op != Batch {
		yield(0, &r.Item)
		return
	}
	for i := range r.Items {
		if !yield(i, &r.Items[i]) {
			return
		}
	}
}

// Cost returns how many idempotency keys and refs the outcome of r takes, and the most bytes of its records in the
// journal.
func (r *Request) Cost() command.Cost {
	const plain = types.MaxRecord - 2*types.MaxAccount - types.MaxAsset - 2*types.MaxKey - types.MaxMemo
	c := command.Cost{Rows: 1, Bytes: types.MaxRecord} // the keys that it evicts, and the header of a batch
	for _, item := range r.Each {
		c.Bytes += plain + len(r.Key.Text) + len(item.From.Text) + len(item.To.Text) + len(item.Asset.Text) + len(item.Ref.Text) + len(item.Memo)
		if len(item.Ref.Text) > 0 {
			c.Rows++
		}
	}
	return c
}

// Seal computes the digests of the names and of the content of r. It returns scratch, grown.
func (r *Request) Seal(scratch []byte) []byte {
	identify(&r.Key)
	b := scratch[:0]
	if r.Op != Batch {
		b = r.Item.seal(b, r.Op > Burn || len(r.Ref.Text) > 0) // the format of the first version
	} else {
		b = binary.AppendUvarint(append(b, byte(r.Op)), uint64(len(r.Items)))
		if r.Atomic {
			b[0] |= 0x80
		}
		for i := range r.Items {
			b = r.Items[i].seal(b, true)
		}
	}
	r.Hash = digest.RequestHash(b)
	return b
}

// Seal computes the digest of the key.
func (f *FindOutcome) Seal() { identify(&f.Key) }

// seal appends the content of r. Its digest is stored in records, so this format never changes.
func (r *Item) seal(b []byte, whole bool) []byte {
	for _, n := range [...]*types.Name{&r.From, &r.To, &r.Asset, &r.Ref} {
		identify(n)
	}
	b = append(b, byte(r.Op))
	for _, text := range [...][]byte{r.From.Text, r.To.Text, r.Asset.Text, r.Memo} {
		b = append(binary.AppendUvarint(b, uint64(len(text))), text...)
	}
	for _, n := range [...]uint64{r.Amount.Lo, r.Amount.Hi, uint64(r.Nonce)} {
		b = binary.LittleEndian.AppendUint64(b, n)
	}
	if !whole {
		return b
	}
	b = append(binary.AppendUvarint(b, uint64(len(r.Ref.Text))), r.Ref.Text...)
	return append(binary.LittleEndian.AppendUint64(b, uint64(r.ExpiresAt)), r.Hold[:]...)
}

func identify(n *types.Name) {
	n.ID = types.NameHash{} // a request can be reused
	if len(n.Text) > 0 {
		n.ID = digest.Name(n.Text)
	}
}

// Validate returns an error unless the sealed r is a valid operation. It is the only such rule for all interfaces.
// It reads the texts, so it is called where they are parsed; the step calls ValidateFields.
func (r *Request) Validate() error {
	if err := types.CheckKey(r.Key.Text); err != nil {
		return err
	}
	for _, item := range r.Each {
		if err := item.validate(); err != nil {
			return err
		}
	}
	return r.ValidateFields()
}

func (r *Item) validate() error {
	if !r.Op.Known() {
		return ErrOp
	}
	t := r.Op.traits()
	if t.has(debitsFrom | hasFrom) {
		if err := types.CheckUserAccount(r.From.Text); err != nil {
			return err
		}
	}
	if t.has(hasTo) || len(r.To.Text) > 0 {
		if err := types.CheckUserAccount(r.To.Text); err != nil {
			return err
		}
	}
	if t.has(hasAmount | hasAsset) {
		if err := types.CheckAsset(r.Asset.Text); err != nil {
			return err
		}
	}
	if len(r.Ref.Text) > 0 {
		if err := types.CheckRef(r.Ref.Text); err != nil {
			return err
		}
	}
	return types.CheckMemo(r.Memo)
}

// ValidateFields returns an error unless the numbers of r are valid.
func (r *Request) ValidateFields() error {
	if r.Op != Batch {
		if len(r.Items) > 0 || r.Atomic {
			return ErrItems
		}
		return r.Item.validateFields()
	}
	if len(r.Items) == 0 || len(r.Items) > types.MaxItems || !r.Item.isEmpty() {
		return ErrItems
	}
	for i := range r.Items {
		if r.Items[i].Op > Release {
			return ErrItems
		}
		if err := r.Items[i].validateFields(); err != nil {
			return err
		}
	}
	return nil
}

// isEmpty reports whether r has only its operation, or nothing that is part of its content.
func (r *Item) isEmpty() bool {
	return len(r.From.Text)+len(r.To.Text)+len(r.Asset.Text)+len(r.Ref.Text)+len(r.Memo) == 0 &&
		r.Amount.IsZero() && r.Nonce == 0 && r.ExpiresAt == 0 && r.Hold == types.TxID{}
}

func (r *Item) validateFields() error {
	if !r.Op.Known() || r.Op == Batch {
		return ErrOp
	}
	t := r.Op.traits()
	switch {
	case t.has(hasAmount) == r.Amount.IsZero():
		return ErrAmount
	case t.has(debitsFrom) != (r.Nonce > 0) || r.Nonce > types.MaxNonce:
		return ErrNonce
	case t.has(debitsFrom|hasFrom) != (len(r.From.Text) > 0),
		t.has(hasTo) && len(r.To.Text) == 0, !t.has(hasTo|optionalTo) && len(r.To.Text) > 0,
		t.has(hasAmount|hasAsset) != (len(r.Asset.Text) > 0):
		return ErrSide
	case len(r.From.Text) > 0 && r.From.ID == r.To.ID:
		return ErrSelf
	case t.has(hasHold) && r.Hold.Position().LSN == 0, !t.has(hasHold) && r.Hold != types.TxID{}:
		return ErrHold
	case t.has(hasExpiry) && r.ExpiresAt <= 0, !t.has(hasExpiry) && r.ExpiresAt != 0:
		return ErrExpiry
	}
	return nil
}

// AuthorizedAccount returns the account that the caller's key must cover: the debited account, or the credited one
// of an issue or a capture.
func (r *Item) AuthorizedAccount() *types.Name {
	if r.Op == Issue || r.Op == Capture {
		return &r.To
	}
	return &r.From
}
