package event

import (
	"encoding/binary"
	"errors"

	"macronode/core/command"
	"macronode/core/digest"
	"macronode/core/types"
)

// Why a request is no operation. Each is the caller's mistake.
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

// An Op is what is done to money. Its number stands in records.
type Op uint8

const (
	Issue Op = iota + 1
	Transfer
	Burn
	Hold     // keep an amount of From for somebody
	Capture  // pay of a hold, and let go of the rest
	Release  // let go of a hold
	Freeze   // let nothing leave From
	Unfreeze //
	Batch    // several of the first six
	numOps   // how many there are, and one
)

// Known reports that o is an operation of this version.
func (o Op) Known() bool { return o > 0 && o < numOps }

func (o Op) String() string {
	return [numOps]string{"", "issue", "transfer", "burn", "hold", "capture", "release", "freeze", "unfreeze", "batch"}[o]
}

// Scope is what a key needs for o. Of a batch, each item wants its own.
func (o Op) Scope() Scopes {
	return [numOps]Scopes{0, ScopeIssue, ScopeTransfer, ScopeBurn, ScopeHold, ScopeCapture, ScopeHold, ScopeAdmin, ScopeAdmin, 0}[o]
}

// traits say what an operation carries.
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

// has reports any of them.
func (t opTraits) has(any opTraits) bool { return t&any != 0 }

// An Item is one operation.
type Item struct {
	Op        Op
	From      types.Name // empty for an issue; of a hold's capture and release, its holder
	To        types.Name // empty for a burn; of a hold, perhaps its beneficiary
	Asset     types.Name // empty for a freeze
	Amount    types.Amount
	Nonce     types.Nonce // 0 where nobody pays with one
	ExpiresAt types.Time  // a hold's
	Hold      types.TxID  // that is captured or released
	Ref       types.Name  // the caller's own name for it, once for ever; perhaps empty
	Memo      []byte      // of a freeze, its reason

	PriorRef types.TxID // what the index says of Ref; all zeros: nothing
}

// A Request is the command of the wallet: one operation on money, or a batch of them. Seal computes
// its digests outside of the step.
type Request struct {
	command.Header
	Item
	Items  []Item // of a batch; then Item has only its Op
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

// Cost returns the idempotency keys and refs of the outcome of r, and its bytes in the journal at
// most.
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

// Seal computes the digests of r's names and of what r asks. It returns scratch,
// grown.
func (r *Request) Seal(scratch []byte) []byte {
	identify(&r.Key)
	b := scratch[:0]
	if r.Op != Batch {
		b = r.Item.seal(b, r.Op > Burn || len(r.Ref.Text) > 0) // no more than the first version had
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

// Seal computes the digest of the key that is asked for.
func (f *FindOutcome) Seal() { identify(&f.Key) }

// seal appends what r asks. Digests stand in records: these bytes are for ever.
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
	n.ID = types.NameHash{} // a request is used again
	if len(n.Text) > 0 {
		n.ID = digest.Name(n.Text)
	}
}

// Validate says why r, sealed, is no operation: the one rule for all doors. It reads the
// texts, so it is asked where they are parsed; the step asks Sane.
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

// ValidateFields says why the numbers of r are no operation.
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

// isEmpty reports that r says nothing but its operation, or what it says would be no part
// of what is asked.
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

// AuthorizedAccount is the account that a caller's key must cover for r: whose money it is, and of
// what comes in or is captured, whose it becomes.
func (r *Item) AuthorizedAccount() *types.Name {
	if r.Op == Issue || r.Op == Capture {
		return &r.To
	}
	return &r.From
}
