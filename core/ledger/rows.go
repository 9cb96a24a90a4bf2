package ledger

import "macronode/core/words"

// The rows of the tables. A holding is found by the places of its account and its
// asset, which never move: so it fits, with its key, into one cache line.
type (
	tenant struct {
		seq      words.Seq
		accounts uint32
		holdings uint32
		assets   uint32
	}
	named struct { // an account or an asset
		tenant words.Tenant
		id     words.ID
	}
	account struct{ nonce words.Nonce } // the last used
	asset   struct {
		issued, burned words.Amount
		spent          words.Amount // issued on day
		day            uint32
	}
	pair    struct{ account, asset uint32 } // places
	holding struct {
		balance words.Amount
		spent   words.Amount // sent on day
		day     uint32
	}
	// places are sums over all accounts and assets of what stands where. Without them
	// the hash would tell that the first account has 10, and not who that is.
	places struct{ accounts, assets words.Hash64 }
)

func (n named) at(place uint32) words.Hash64 { return n.Mix(words.Hash64(place)) }

func (n named) Mix(h words.Hash64) words.Hash64   { return n.id.Mix(n.tenant.Mix(h)) }
func (a account) Mix(h words.Hash64) words.Hash64 { return h.Mix(uint64(a.nonce)) }

func (p pair) Mix(h words.Hash64) words.Hash64 {
	return h.Mix(uint64(p.account)<<32 | uint64(p.asset))
}

func (v holding) Mix(h words.Hash64) words.Hash64 {
	return v.spent.Mix(v.balance.Mix(h)).Mix(uint64(v.day))
}

func (a asset) Mix(h words.Hash64) words.Hash64 {
	return a.spent.Mix(a.burned.Mix(a.issued.Mix(h))).Mix(uint64(a.day))
}

func (t tenant) Mix(h words.Hash64) words.Hash64 {
	return h.Mix(uint64(t.seq)).Mix(uint64(t.accounts)).Mix(uint64(t.holdings)).Mix(uint64(t.assets))
}
