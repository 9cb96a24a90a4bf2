package ledger

import "macronode/core/types"

// The rows of the tables. The key of a holding has the places of its account and its asset, which never
// move. With its key, an account is half a cache line, a holding or a hold one.
type (
	tenant struct {
		seq      types.Seq
		accounts uint32
		holdings uint32
		assets   uint32
		holds    uint32
	}
	nameKey struct { // an account or an asset
		tenant types.Tenant
		id     types.NameHash
	}
	// account is the content of packed.
	account struct {
		nonce     types.Nonce // the last used
		holds     uint32      // active holds
		firstHold uint32      // place plus 1 of the hold that expires first; 0: none
		frozen    bool
	}
	packedAccount struct{ low, high, first uint32 }
	asset         struct {
		issued, burned types.Amount
		held           types.Amount
		issuedToday    types.Amount // issued on day
		day            uint32
	}
	holdingKey struct{ account, asset uint32 } // places
	holding    struct {
		balance      types.Amount
		held         types.Amount // part of the balance
		debitedToday types.Amount // debits on day
		day          uint32
	}
	hold struct {
		amount    types.Amount
		expiresAt types.Time
		to        types.NameHash // the beneficiary; all zeros: any account
		holding   holdingKey     // whose
	}
	// placement has sums over the places of all accounts and assets. Without them the hash would have
	// the balance of the first account, but not its name.
	placement struct{ accounts, assets types.Hash64 }
)

// holdBits are the bits below the nonce that count the holds of an account.
const holdBits = 11

const (
	_ = uint(1<<holdBits - 1 - types.MaxHolds)
	_ = uint(1<<(64-holdBits) - 1 - types.MaxNonce)
)

func (a account) pack() packedAccount {
	word := uint64(a.nonce)<<holdBits | uint64(a.holds)
	p := packedAccount{uint32(word), uint32(word >> 32), a.firstHold << 1}
	if a.frozen {
		p.first |= 1
	}
	return p
}

func (p packedAccount) word() uint64 { return uint64(p.high)<<32 | uint64(p.low) }

func (p packedAccount) unpack() account {
	return account{types.Nonce(p.word() >> holdBits), p.low & (1<<holdBits - 1), p.first >> 1, p.first&1 == 1}
}

// HashInto leaves out the place of the first hold.
func (p packedAccount) HashInto(h types.Hash64) types.Hash64 {
	if h = h.Mix(p.word()); p.first&1 == 1 {
		h = h.Mix(1)
	}
	return h
}

func (n nameKey) placeHash(place uint32) types.Hash64 { return n.HashInto(types.Hash64(place)) }

func (n nameKey) HashInto(h types.Hash64) types.Hash64 { return n.id.HashInto(n.tenant.HashInto(h)) }

func (p holdingKey) HashInto(h types.Hash64) types.Hash64 {
	return h.Mix(uint64(p.account)<<32 | uint64(p.asset))
}

// available returns the amount that may be debited or held.
func (v *holding) available() types.Amount {
	rest, _ := v.balance.Sub(v.held) // M6: ≤ balance
	return rest
}

func (v holding) HashInto(h types.Hash64) types.Hash64 {
	if h = v.debitedToday.HashInto(v.balance.HashInto(h)).Mix(uint64(v.day)); !v.held.IsZero() { // few rows have any
		h = v.held.HashInto(h)
	}
	return h
}

func (a asset) HashInto(h types.Hash64) types.Hash64 {
	return a.held.HashInto(a.issuedToday.HashInto(a.burned.HashInto(a.issued.HashInto(h)))).Mix(uint64(a.day))
}

func (v hold) HashInto(h types.Hash64) types.Hash64 {
	return v.to.HashInto(v.holding.HashInto(v.amount.HashInto(h).Mix(uint64(v.expiresAt))))
}

func (t tenant) HashInto(h types.Hash64) types.Hash64 {
	h = h.Mix(uint64(t.seq)).Mix(uint64(t.accounts)<<32 | uint64(t.holdings))
	return h.Mix(uint64(t.assets)<<32 | uint64(t.holds))
}
