// Package ledger is what money means, in the fewest words: books of names and big
// numbers. It shares no code with core/wallet/ledger, so that the two cannot be wrong in
// the same way.
package ledger

import (
	"bytes"
	"maps"
	"math/big"
	"slices"

	"macronode/core/types"
)

// Limits are how much the books take, and the ceilings on what moves.
type Limits struct {
	Tenants, Accounts, Holdings, Assets, Holds                int
	TenantAccounts, TenantHoldings, TenantAssets, TenantHolds int // of one tenant
	AccountHolds                                              int
	HoldFor                                                   int64 // ms
	Amount, Day, IssueDay, Supply                             *big.Int
}

// An Op is what somebody wants. Kind is issue, transfer, burn, hold, capture, release,
// freeze or unfreeze.
type Op struct {
	At              types.Time
	Tenant          types.Tenant
	Kind            string
	From, To, Asset string
	Amount          *big.Int // of a release: nothing
	Nonce           types.Nonce
	Until           types.Time
	Hold            types.TxID // that is opened, captured or released
}

// State is everybody's books. Nothing in it is ever changed but by replacing it.
type State struct {
	limits Limits
	books  map[types.Tenant]*book
	holds  map[types.TxID]hold // the active ones
}

type book struct {
	seq      types.Seq
	nonces   map[string]types.Nonce // of each account, the last used
	frozen   map[string]bool
	holdings map[holding]*big.Int
	issued   map[string]*big.Int // of each asset
	burned   map[string]*big.Int
	left     map[left]*big.Int
}

type holding struct{ account, asset string }

type hold struct {
	holding
	tenant types.Tenant
	to     string
	amount *big.Int
	until  types.Time
}

// left is what left an account on a day; what is issued leaves nobody.
type left struct {
	holding
	day int64
}

// New is empty books.
func New(l Limits) *State {
	return &State{limits: l, books: map[types.Tenant]*book{}, holds: map[types.TxID]hold{}}
}

// Clone is the same books, apart.
func (s *State) Clone() *State {
	c := &State{limits: s.limits, books: map[types.Tenant]*book{}, holds: maps.Clone(s.holds)}
	for _, t := range slices.Sorted(maps.Keys(s.books)) {
		b := *s.books[t]
		b.nonces, b.frozen, b.holdings = maps.Clone(b.nonces), maps.Clone(b.frozen), maps.Clone(b.holdings)
		b.issued, b.burned, b.left = maps.Clone(b.issued), maps.Clone(b.burned), maps.Clone(b.left)
		c.books[t] = &b
	}
	return c
}

// of is a tenant's book; who has none sees an empty one.
func (s *State) of(t types.Tenant) *book {
	if b := s.books[t]; b != nil {
		return b
	}
	return &book{nonces: map[string]types.Nonce{}, frozen: map[string]bool{}, holdings: map[holding]*big.Int{},
		issued: map[string]*big.Int{}, burned: map[string]*big.Int{}, left: map[left]*big.Int{}}
}

// Do does it and answers nothing, or says why not and does nothing.
func (s *State) Do(o Op) (why string) {
	b := s.of(o.Tenant)
	if why := s.refuses(b, o); why != "" {
		return why
	}
	s.books[o.Tenant] = b
	b.seq++
	if o.debits() {
		add(b.left, o.leaves(), o.Amount)
	}
	switch o.Kind {
	case "issue":
		add(b.issued, o.Asset, o.Amount)
	case "transfer", "capture":
		add(b.holdings, holding{o.From, o.Asset}, new(big.Int).Neg(o.Amount))
	case "burn":
		add(b.holdings, holding{o.From, o.Asset}, new(big.Int).Neg(o.Amount))
		add(b.burned, o.Asset, o.Amount)
	case "hold":
		s.holds[o.Hold] = hold{holding{o.From, o.Asset}, o.Tenant, o.To, o.Amount, o.Until}
	case "freeze", "unfreeze":
		b.nonces[o.From] += 0
		b.frozen[o.From] = o.Kind == "freeze"
	}
	if o.Kind == "capture" || o.Kind == "release" {
		delete(s.holds, o.Hold)
	}
	if o.pays() {
		b.nonces[o.From] = o.Nonce
	}
	if o.credits() {
		b.nonces[o.To] += 0
		add(b.holdings, holding{o.To, o.Asset}, o.Amount)
	}
	return ""
}

func (o Op) pays() bool    { return o.Kind == "transfer" || o.Kind == "burn" || o.Kind == "hold" }
func (o Op) credits() bool { return o.Kind == "issue" || o.Kind == "transfer" || o.Kind == "capture" }
func (o Op) debits() bool  { return o.credits() || o.Kind == "burn" }

// refuses asks in the contract's order: nonce, amount, accounts and holds, funds,
// ceilings, room.
func (s *State) refuses(b *book, o Op) string {
	next := b.nonces[o.From] + 1
	switch {
	case o.pays() && o.Nonce > next:
		return "nonce ahead"
	case o.pays() && o.Nonce < next:
		return "nonce used"
	case o.Amount != nil && o.Amount.Cmp(s.limits.Amount) > 0:
		return "amount"
	case b.frozen[o.From] && (o.pays() || o.Kind == "capture"):
		return "frozen"
	case o.Kind == "hold" && (o.Until <= o.At || int64(o.Until-o.At) > s.limits.HoldFor):
		return "expiry"
	case (o.Kind == "capture" || o.Kind == "release") && !s.may(o):
		return "hold"
	case o.Kind == "capture" && !s.isBeneficiary(o):
		return "beneficiary"
	}
	if why := s.poor(b, o); why != "" {
		return why
	}
	if s.full(b, o) {
		return "room"
	}
	return ""
}

// may reports that the hold is there for what o wants of it.
func (s *State) may(o Op) bool {
	h, active := s.holds[o.Hold]
	return active && h.until > o.At && h.tenant == o.Tenant && h.holding == holding{o.From, o.Asset}
}

// isBeneficiary reports that a capture pays an account that its hold may be captured for.
func (s *State) isBeneficiary(o Op) bool {
	to := s.holds[o.Hold].to
	return to == "" || to == o.To
}

// poor says what money is missing, or what there is too much of.
func (s *State) poor(b *book, o Op) string {
	today, ceiling := sum(b.left[o.leaves()], o.Amount), s.limits.Day
	if o.Kind == "issue" {
		ceiling = s.limits.IssueDay
	}
	free := sum(b.holdings[holding{o.From, o.Asset}])
	free.Sub(free, s.Kept(0, o.Tenant, o.From, o.Asset))
	switch {
	case o.Kind == "issue" && sum(b.issued[o.Asset], o.Amount).Cmp(s.limits.Supply) > 0:
		return "supply"
	case o.pays() && free.Cmp(o.Amount) < 0:
		return "funds"
	case o.Kind == "capture" && s.holds[o.Hold].amount.Cmp(o.Amount) < 0:
		return "over hold"
	case o.debits() && today.Cmp(ceiling) > 0:
		return "day"
	}
	return ""
}

// full reports that there is no room, of all or of the tenant's own.
func (s *State) full(b *book, o Op) bool {
	account, had, asset, held := s.wants(b, o)
	return !s.Fits(o) || asset && len(b.issued) == s.limits.TenantAssets ||
		account && len(b.nonces) == s.limits.TenantAccounts ||
		had && len(b.holdings) == s.limits.TenantHoldings ||
		held && s.Holds(o.Tenant) >= s.limits.TenantHolds
}

// wants says which rows o needs that are not there: an account, a holding, an asset, a
// hold.
func (s *State) wants(b *book, o Op) (account, had, asset, held bool) {
	_, from := b.nonces[o.From]
	_, to := b.nonces[o.To]
	freezes := o.Kind == "freeze" || o.Kind == "unfreeze"
	account = o.credits() && !to || freezes && !from
	had = o.credits() && b.holdings[holding{o.To, o.Asset}] == nil
	return account, had, !freezes && b.issued[o.Asset] == nil, o.Kind == "hold"
}

// Fits reports that there is room for what o needs, whatever its tenant may have.
func (s *State) Fits(o Op) bool {
	b := s.of(o.Tenant)
	accounts, holdings, assets := 0, 0, 0
	for _, t := range slices.Sorted(maps.Keys(s.books)) {
		accounts += len(s.books[t].nonces)
		holdings += len(s.books[t].holdings)
		assets += len(s.books[t].issued)
	}
	account, had, asset, held := s.wants(b, o)
	mine := 0
	for _, id := range s.active() {
		if h := s.holds[id]; h.tenant == o.Tenant && h.account == o.From {
			mine++
		}
	}
	return (s.books[o.Tenant] != nil || len(s.books) < s.limits.Tenants) &&
		(!account || accounts < s.limits.Accounts) && (!had || holdings < s.limits.Holdings) &&
		(!asset || assets < s.limits.Assets) && (!held || len(s.holds) < s.limits.Holds && mine < s.limits.AccountHolds)
}

// leaves is whom the amount leaves, and when.
func (o Op) leaves() left {
	const day = 24 * 60 * 60 * 1000
	if o.Kind == "issue" {
		return left{holding{"", o.Asset}, int64(o.At) / day}
	}
	return left{holding{o.From, o.Asset}, int64(o.At) / day}
}

// Over is the hold that ended first, of an account or (of "") of anybody; false when no
// time is over.
func (s *State) Over(at types.Time, t types.Tenant, account string) (id types.TxID, tenant types.Tenant, over bool) {
	for _, next := range s.active() {
		h := s.holds[next]
		if h.until > at || account != "" && (h.tenant != t || h.account != account) {
			continue
		}
		if first := s.holds[id]; !over || h.until < first.until { // of one time, by id
			id, tenant, over = next, h.tenant, true
		}
	}
	return id, tenant, over
}

// Lapse ends a hold.
func (s *State) Lapse(id types.TxID) {
	s.of(s.holds[id].tenant).seq++
	delete(s.holds, id)
}

// active are the holds, by id.
func (s *State) active() []types.TxID {
	return slices.SortedFunc(maps.Keys(s.holds), func(a, b types.TxID) int { return bytes.Compare(a[:], b[:]) })
}

// held is how much the holds that are meant hold.
func (s *State) held(meant func(hold) bool) *big.Int {
	all := new(big.Int)
	for _, id := range s.active() {
		if h := s.holds[id]; meant(h) {
			all.Add(all, h.amount)
		}
	}
	return all
}

// Hold finds an active hold.
func (s *State) Hold(id types.TxID) (o Op, ok bool) {
	h, ok := s.holds[id]
	return Op{Tenant: h.tenant, From: h.account, To: h.to, Asset: h.asset, Amount: h.amount, Until: h.until, Hold: id}, ok
}

// Active are the ids of all holds, in order.
func (s *State) Active() []types.TxID { return s.active() }

// Holds is how many holds a tenant has.
func (s *State) Holds(t types.Tenant) int {
	n := 0
	for _, id := range s.active() {
		if s.holds[id].tenant == t {
			n++
		}
	}
	return n
}

// Balance is what an account has of an asset, and the nonce that it must use next.
func (s *State) Balance(t types.Tenant, account, asset string) (*big.Int, types.Nonce) {
	b := s.of(t)
	return sum(b.holdings[holding{account, asset}]), b.nonces[account] + 1
}

// Kept is what of it is held by holds that end after a time; at none, by all active ones.
func (s *State) Kept(after types.Time, t types.Tenant, account, asset string) *big.Int {
	return s.held(func(h hold) bool {
		return h.tenant == t && h.holding == holding{account, asset} && h.until > after
	})
}

// Held is what of an asset is held.
func (s *State) Held(t types.Tenant, asset string) *big.Int {
	return s.held(func(h hold) bool { return h.tenant == t && h.asset == asset })
}

// Frozen reports that nothing may leave an account.
func (s *State) Frozen(t types.Tenant, account string) bool { return s.of(t).frozen[account] }

// Supply is what was ever issued and burned of an asset.
func (s *State) Supply(t types.Tenant, asset string) (issued, burned *big.Int) {
	b := s.of(t)
	return sum(b.issued[asset]), sum(b.burned[asset])
}

// Left is what has left o's source on o's day.
func (s *State) Left(o Op) *big.Int { return sum(s.of(o.Tenant).left[o.leaves()]) }

// Seq is the last of a tenant's movements.
func (s *State) Seq(t types.Tenant) types.Seq { return s.of(t).seq }

// Accounts is how many accounts there are.
func (s *State) Accounts() int {
	n := 0
	for _, t := range slices.Sorted(maps.Keys(s.books)) {
		n += len(s.books[t].nonces)
	}
	return n
}

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
