package ledger

import (
	"encoding/binary"
	"errors"
	"fmt"

	"macronode/core/types"
)

// Why a dumped row is rejected.
var (
	ErrRow  = errors.New("ledger: not a row of a dump")
	ErrRoom = errors.New("ledger: more rows than there is room for")
)

// The kinds of rows of a dump, in this order. Their layouts, little-endian, are frozen:
//
//	tenant   tenant 4 · seq 8
//	account  tenant 4 · id 16 · nonce 8 · frozen 1
//	asset    tenant 4 · id 16 · issued 16 · burned 16 · spent 16 · day 4
//	holding  account 4 · asset 4 · balance 16 · spent 16 · day 4
//	hold     id 16 · account 4 · asset 4 · amount 16 · until 8 · to 16
//
// A holding and a hold refer to accounts and assets by their row number, from 0. An amount is
// stored low half first. Counts are recomputed and not dumped.
const (
	rowTenant uint8 = iota + 1
	rowAccount
	rowAsset
	rowHolding
	rowHold
)

// Dump passes every row to row; b is valid until row returns. Loaded into an empty ledger with
// the same or larger limits, the rows give the same hash.
func (l *Ledger) Dump(row func(kind uint8, b []byte)) {
	var b [80]byte
	for i := range l.tenants.Len() {
		id, t := l.tenants.Row(uint32(i))
		row(rowTenant, u64(u32(b[:0], uint32(id)), uint64(t.seq)))
	}
	for i := range l.accounts.Len() {
		k, p := l.accounts.Row(uint32(i))
		a, frozen := p.unpack(), byte(0)
		if a.frozen {
			frozen = 1
		}
		row(rowAccount, append(u64(k.append(b[:0]), uint64(a.nonce)), frozen))
	}
	for i := range l.assets.Len() {
		k, s := l.assets.Row(uint32(i))
		row(rowAsset, u32(amounts(k.append(b[:0]), s.issued, s.burned, s.issuedToday), s.day))
	}
	for i := range l.holdings.Len() {
		k, v := l.holdings.Row(uint32(i))
		row(rowHolding, u32(amounts(k.append(b[:0]), v.balance, v.debitedToday), v.day))
	}
	for i := range l.accounts.Len() {
		_, p := l.accounts.Row(uint32(i))
		a := p.unpack()
		for at := a.firstHold; at > 0; at = l.holds.next(at, a.firstHold) {
			id, v := l.holds.rows.Row(at - 1)
			row(rowHold, append(u64(amounts(v.holding.append(append(b[:0], id[:]...)), v.amount), uint64(v.expiresAt)), v.to[:]...))
		}
	}
}

func u32(b []byte, n uint32) []byte { return binary.LittleEndian.AppendUint32(b, n) }
func u64(b []byte, n uint64) []byte { return binary.LittleEndian.AppendUint64(b, n) }

func amounts(b []byte, all ...types.Amount) []byte {
	for _, a := range all {
		b = u64(u64(b, a.Lo), a.Hi)
	}
	return b
}

func (n nameKey) append(b []byte) []byte    { return append(u32(b, uint32(n.tenant)), n.id[:]...) }
func (p holdingKey) append(b []byte) []byte { return u32(u32(b, p.account), p.asset) }

// Load adds a row of a dump. Every row is validated; Check validates the sums after the last row.
func (l *Ledger) Load(kind uint8, b []byte) error {
	rd := reader{b: b}
	var err error
	switch kind {
	case rowTenant:
		err = l.loadTenant(&rd)
	case rowAccount:
		err = l.loadAccount(&rd)
	case rowAsset:
		err = l.loadAsset(&rd)
	case rowHolding:
		err = l.loadHolding(&rd)
	case rowHold:
		err = l.loadHold(&rd)
	default:
		err = ErrRow
	}
	if err != nil {
		return fmt.Errorf("%w: kind %d, %x", err, kind, b)
	}
	return nil
}

func (l *Ledger) loadTenant(rd *reader) error {
	id, t := types.Tenant(rd.u32()), tenant{seq: types.Seq(rd.u64())}
	switch _, known := l.tenants.Find(id); {
	case !rd.checkWhole(), known, t.seq > types.MaxNonce:
		return ErrRow
	case l.tenants.Room() == 0:
		return ErrRoom
	}
	l.tenants.Put(id, t)
	return nil
}

func (l *Ledger) loadAccount(rd *reader) error {
	k, a, frozen := rd.named(), account{nonce: types.Nonce(rd.u64())}, rd.u8()
	_, known := l.accounts.Find(k)
	of, owned := l.tenants.Find(k.tenant)
	switch {
	case !rd.checkWhole(), known, !owned, a.nonce > types.MaxNonce, frozen > 1:
		return ErrRow
	case l.accounts.Room() == 0:
		return ErrRoom
	}
	a.frozen = frozen == 1
	l.placement.accounts += k.placeHash(l.accounts.Put(k, a.pack()))
	l.count(of, func(t *tenant) { t.accounts++ })
	return nil
}

func (l *Ledger) loadAsset(rd *reader) error {
	k, s := rd.named(), asset{issued: rd.amount(), burned: rd.amount(), issuedToday: rd.amount(), day: rd.u32()}
	_, known := l.assets.Find(k)
	of, owned := l.tenants.Find(k.tenant)
	switch {
	case !rd.checkWhole(), known, !owned, s.issued.Less(s.burned), types.MaxSupply().Less(s.issued):
		return ErrRow
	case l.assets.Room() == 0:
		return ErrRoom
	}
	l.placement.assets += k.placeHash(l.assets.Put(k, s))
	l.count(of, func(t *tenant) { t.assets++ })
	return nil
}

func (l *Ledger) loadHolding(rd *reader) error {
	k, v := rd.pair(), holding{balance: rd.amount(), debitedToday: rd.amount(), day: rd.u32()}
	of, whole := l.owner(k)
	_, known := l.holdings.Find(k)
	switch {
	case !rd.checkWhole(), !whole, known, types.MaxSupply().Less(v.balance):
		return ErrRow
	case l.holdings.Room() == 0:
		return ErrRoom
	}
	l.holdings.Put(k, v)
	l.count(of, func(t *tenant) { t.holdings++ })
	return nil
}

func (l *Ledger) loadHold(rd *reader) error {
	var id types.TxID
	rd.bytes(id[:])
	v := hold{holding: rd.pair(), amount: rd.amount(), expiresAt: types.Time(rd.u64())}
	rd.bytes(v.to[:])
	of, whole := l.owner(v.holding)
	from, _ := l.holdings.Get(v.holding) // if missing, nothing is available
	_, known := l.holds.rows.Find(id)
	if !rd.checkWhole() || !whole || known || v.amount.IsZero() || v.expiresAt <= 0 || from.available().Less(v.amount) {
		return ErrRow
	}
	_, p := l.accounts.Row(v.holding.account)
	a := p.unpack()
	switch {
	case a.holds == types.MaxHolds:
		return ErrRow
	case l.holds.rows.Room() == 0:
		return ErrRoom
	}
	held, _ := from.held.Add(v.amount) // ≤ the balance
	l.setHeld(v.holding, held, nil)
	a.firstHold = l.holds.add(id, v, a.firstHold)
	a.holds++
	l.accounts.Set(v.holding.account, a.pack())
	l.count(of, func(t *tenant) { t.holds++ })
	return nil
}

// owner returns the place of the tenant that has both an account and an asset.
func (l *Ledger) owner(k holdingKey) (place uint32, whole bool) {
	if int(k.account) >= l.accounts.Len() || int(k.asset) >= l.assets.Len() {
		return 0, false
	}
	owner, _ := l.accounts.Row(k.account)
	kind, _ := l.assets.Row(k.asset)
	place, known := l.tenants.Find(owner.tenant)
	return place, known && owner.tenant == kind.tenant
}

func (l *Ledger) count(of uint32, add func(*tenant)) {
	_, t := l.tenants.Row(of)
	add(&t)
	l.tenants.Set(of, t)
}

// reader decodes a row. Reading past the end returns zeros and makes it not whole.
type reader struct {
	b    []byte
	less bool
}

func (r *reader) bytes(to []byte) {
	n := copy(to, r.b)
	r.b, r.less = r.b[n:], r.less || n < len(to)
}

func (r *reader) u8() byte {
	var raw [1]byte
	r.bytes(raw[:])
	return raw[0]
}

func (r *reader) u32() uint32 {
	var raw [4]byte
	r.bytes(raw[:])
	return binary.LittleEndian.Uint32(raw[:])
}

func (r *reader) u64() uint64 {
	var raw [8]byte
	r.bytes(raw[:])
	return binary.LittleEndian.Uint64(raw[:])
}

func (r *reader) amount() (a types.Amount) {
	a.Lo = r.u64()
	a.Hi = r.u64()
	return a
}

func (r *reader) named() (n nameKey) {
	n.tenant = types.Tenant(r.u32())
	r.bytes(n.id[:])
	return n
}

func (r *reader) pair() (p holdingKey) {
	p.account = r.u32()
	p.asset = r.u32()
	return p
}

// checkWhole reports whether the row was read completely, and no byte was missing.
func (r *reader) checkWhole() bool { return !r.less && len(r.b) == 0 }
