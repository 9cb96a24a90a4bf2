package ledger

import "macronode/core/words"

// The rows of the tables. A holding is found by the places of its account and its
// asset, which never move. With their keys, an account is half a cache line, a holding
// and a hold are one each.
type (
	tenant struct {
		seq      words.Seq
		accounts uint32
		holdings uint32
		assets   uint32
		holds    uint32
	}
	named struct { // an account or an asset
		tenant words.Tenant
		id     words.ID
	}
	// account is what packed holds.
	account struct {
		nonce  words.Nonce // the last used
		holds  uint32      // how many are active
		first  uint32      // of them, the place + 1 of the one that ends first; 0: there is none
		frozen bool
	}
	packed struct{ low, high, first uint32 }
	asset  struct {
		issued, burned words.Amount
		held           words.Amount
		spent          words.Amount // issued on day
		day            uint32
	}
	pair    struct{ account, asset uint32 } // places
	holding struct {
		balance words.Amount
		held    words.Amount // of the balance
		spent   words.Amount // sent on day
		day     uint32
	}
	hold struct {
		amount words.Amount
		until  words.Time
		to     words.ID // the beneficiary; all zeros: whoever is paid
		of     pair     // whose
	}
	// places are sums over all accounts and assets of what stands where. Without them
	// the hash would tell that the first account has 10, and not who that is.
	places struct{ accounts, assets words.Hash64 }
)

// holdBits are those below the nonce that count an account's holds.
const holdBits = 11

const (
	_ = uint(1<<holdBits - 1 - words.MaxHolds)
	_ = uint(1<<(64-holdBits) - 1 - words.MaxNonce)
)

func (a account) pack() packed {
	word := uint64(a.nonce)<<holdBits | uint64(a.holds)
	p := packed{uint32(word), uint32(word >> 32), a.first << 1}
	if a.frozen {
		p.first |= 1
	}
	return p
}

func (p packed) word() uint64 { return uint64(p.high)<<32 | uint64(p.low) }

func (p packed) open() account {
	return account{words.Nonce(p.word() >> holdBits), p.low & (1<<holdBits - 1), p.first >> 1, p.first&1 == 1}
}

// Mix leaves out where the account's first hold is.
func (p packed) Mix(h words.Hash64) words.Hash64 {
	if h = h.Mix(p.word()); p.first&1 == 1 {
		h = h.Mix(1)
	}
	return h
}

func (n named) at(place uint32) words.Hash64 { return n.Mix(words.Hash64(place)) }

func (n named) Mix(h words.Hash64) words.Hash64 { return n.id.Mix(n.tenant.Mix(h)) }

func (p pair) Mix(h words.Hash64) words.Hash64 {
	return h.Mix(uint64(p.account)<<32 | uint64(p.asset))
}

// available is what may be paid, or held.
func (v *holding) available() words.Amount {
	rest, _ := v.balance.Minus(v.held) // M6: ≤ balance
	return rest
}

func (v holding) Mix(h words.Hash64) words.Hash64 {
	if h = v.spent.Mix(v.balance.Mix(h)).Mix(uint64(v.day)); !v.held.Zero() { // few have any
		h = v.held.Mix(h)
	}
	return h
}

func (a asset) Mix(h words.Hash64) words.Hash64 {
	return a.held.Mix(a.spent.Mix(a.burned.Mix(a.issued.Mix(h)))).Mix(uint64(a.day))
}

func (v hold) Mix(h words.Hash64) words.Hash64 {
	return v.to.Mix(v.of.Mix(v.amount.Mix(h).Mix(uint64(v.until))))
}

func (t tenant) Mix(h words.Hash64) words.Hash64 {
	h = h.Mix(uint64(t.seq)).Mix(uint64(t.accounts)<<32 | uint64(t.holdings))
	return h.Mix(uint64(t.assets)<<32 | uint64(t.holds))
}
