// Package ledger is what money means, in the fewest words: books of names and big
// numbers. It shares no code with core/ledger, so that the two cannot be wrong in
// the same way.
package ledger

import (
	"math/big"

	"macronode/core/words"
)

// Limits are how much the books take, and the ceilings on what moves.
type Limits struct {
	Tenants, Accounts, Holdings, Assets          int
	TenantAccounts, TenantHoldings, TenantAssets int // of one tenant
	Amount, Day, IssueDay, Supply                *big.Int
}

// An Op is what somebody wants. Kind is issue, transfer or burn.
type Op struct {
	At              words.Time
	Tenant          words.Tenant
	Kind            string
	From, To, Asset string
	Amount          *big.Int
	Nonce           words.Nonce
}

// State is everybody's books.
type State struct {
	limits                     Limits
	books                      map[words.Tenant]*book
	accounts, holdings, assets int // in all books
}

type book struct {
	seq      words.Seq
	nonces   map[string]words.Nonce // of each account, the last used
	holdings map[holding]*big.Int
	issued   map[string]*big.Int // of each asset
	burned   map[string]*big.Int
	left     map[left]*big.Int
}

type holding struct{ account, asset string }

// left is what left an account on a day; what is issued leaves nobody.
type left struct {
	holding
	day int64
}

// New is empty books.
func New(l Limits) *State { return &State{limits: l, books: map[words.Tenant]*book{}} }

// of is a tenant's book; who has none sees an empty one.
func (s *State) of(t words.Tenant) *book {
	if b := s.books[t]; b != nil {
		return b
	}
	return &book{nonces: map[string]words.Nonce{}, holdings: map[holding]*big.Int{},
		issued: map[string]*big.Int{}, burned: map[string]*big.Int{}, left: map[left]*big.Int{}}
}

// Do moves the money and answers nothing, or says why not and does nothing.
func (s *State) Do(o Op) (why string) {
	b, today := s.of(o.Tenant), o.leaves()
	if why := s.refuses(b, o, today); why != "" {
		return why
	}
	s.books[o.Tenant] = b
	b.seq++
	add(b.left, today, o.Amount)
	if b.issued[o.Asset] == nil {
		b.issued[o.Asset] = new(big.Int)
		s.assets++
	}
	if o.Kind == "issue" {
		add(b.issued, o.Asset, o.Amount)
	} else {
		b.nonces[o.From] = o.Nonce
		add(b.holdings, holding{o.From, o.Asset}, new(big.Int).Neg(o.Amount))
	}
	if o.Kind == "burn" {
		add(b.burned, o.Asset, o.Amount)
		return ""
	}
	if _, known := b.nonces[o.To]; !known {
		b.nonces[o.To] = 0
		s.accounts++
	}
	if b.holdings[holding{o.To, o.Asset}] == nil {
		s.holdings++
	}
	add(b.holdings, holding{o.To, o.Asset}, o.Amount)
	return ""
}

// refuses asks in the contract's order: nonce, amount, funds, ceilings, room.
func (s *State) refuses(b *book, o Op, today left) string {
	next := b.nonces[o.From] + 1
	switch {
	case o.Kind != "issue" && o.Nonce > next:
		return "nonce ahead"
	case o.Kind != "issue" && o.Nonce < next:
		return "nonce used"
	case o.Amount.Cmp(s.limits.Amount) > 0:
		return "amount"
	case o.Kind == "issue" && sum(b.issued[o.Asset], o.Amount).Cmp(s.limits.Supply) > 0:
		return "supply"
	case o.Kind != "issue" && sum(b.holdings[holding{o.From, o.Asset}]).Cmp(o.Amount) < 0:
		return "funds"
	case o.Kind == "issue" && sum(b.left[today], o.Amount).Cmp(s.limits.IssueDay) > 0:
		return "day"
	case o.Kind != "issue" && sum(b.left[today], o.Amount).Cmp(s.limits.Day) > 0:
		return "day"
	case s.full(b, o):
		return "room"
	}
	return ""
}

// full reports that there is no room, of all or of the tenant's own.
func (s *State) full(b *book, o Op) bool {
	if !s.Fits(o) || b.issued[o.Asset] == nil && len(b.issued) == s.limits.TenantAssets {
		return true
	}
	if o.Kind == "burn" {
		return false
	}
	_, known := b.nonces[o.To]
	return !known && len(b.nonces) == s.limits.TenantAccounts ||
		b.holdings[holding{o.To, o.Asset}] == nil && len(b.holdings) == s.limits.TenantHoldings
}

// Fits reports that there is room for what o needs, whatever its tenant may have.
func (s *State) Fits(o Op) bool {
	b := s.of(o.Tenant)
	switch {
	case s.books[o.Tenant] == nil && len(s.books) == s.limits.Tenants:
		return false
	case b.issued[o.Asset] == nil && s.assets == s.limits.Assets:
		return false
	case o.Kind == "burn":
		return true
	}
	_, known := b.nonces[o.To]
	return (known || s.accounts < s.limits.Accounts) &&
		(b.holdings[holding{o.To, o.Asset}] != nil || s.holdings < s.limits.Holdings)
}

// leaves is whom the amount leaves, and when.
func (o Op) leaves() left {
	const day = 24 * 60 * 60 * 1000
	if o.Kind == "issue" {
		return left{holding{"", o.Asset}, int64(o.At) / day}
	}
	return left{holding{o.From, o.Asset}, int64(o.At) / day}
}

// Balance is what an account has of an asset, and the nonce that it must use next.
func (s *State) Balance(t words.Tenant, account, asset string) (*big.Int, words.Nonce) {
	b := s.of(t)
	return sum(b.holdings[holding{account, asset}]), b.nonces[account] + 1
}

// Supply is what was ever issued and burned of an asset.
func (s *State) Supply(t words.Tenant, asset string) (issued, burned *big.Int) {
	b := s.of(t)
	return sum(b.issued[asset]), sum(b.burned[asset])
}

// Left is what has left o's source on o's day.
func (s *State) Left(o Op) *big.Int { return sum(s.of(o.Tenant).left[o.leaves()]) }

// Seq is the last of a tenant's movements.
func (s *State) Seq(t words.Tenant) words.Seq { return s.of(t).seq }

// Accounts is how many accounts there are.
func (s *State) Accounts() int { return s.accounts }

// sum is a new number; nil is nothing.
func sum(numbers ...*big.Int) *big.Int {
	all := new(big.Int)
	for _, n := range numbers {
		if n != nil {
			all.Add(all, n)
		}
	}
	return all
}

func add[K comparable](m map[K]*big.Int, k K, n *big.Int) { m[k] = sum(m[k], n) }
