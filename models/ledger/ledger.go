// Package ledger is the reference model of core/wallet/ledger: maps of names and big integers. It
// shares no code with core/wallet/ledger, so that both cannot have the same bug.
package ledger

import (
	"bytes"
	"maps"
	"math/big"
	"slices"

	"macronode/core/types"
)

// Limits are the numbers of rows and the limits of amounts.
type Limits struct {
	Tenants, Accounts, Holdings, Assets, Holds                int
	TenantAccounts, TenantHoldings, TenantAssets, TenantHolds int // of one tenant; 0: as many as it leaves to others
	AccountHolds                                              int
	HoldFor                                                   int64 // ms
	Amount, Day, IssueDay, Supply                             *big.Int
}

// An Op is an operation. Kind is issue, transfer, burn, hold, capture, release, freeze or
// unfreeze.
type Op struct {
	At              types.Time
	Tenant          types.Tenant
	Kind            string
	From, To, Asset string
	Amount          *big.Int // nil for a release
	Nonce           types.Nonce
	Until           types.Time
	Hold            types.TxID // the hold that is opened, captured or released
}

// State has the books of all tenants. Its values are replaced, never changed in place.
type State struct {
	limits Limits
	books  map[types.Tenant]*book
	holds  map[types.TxID]hold // active holds
}

type book struct {
	seq      types.Seq
	nonces   map[string]types.Nonce // last used nonce of each account
	frozen   map[string]bool
	holdings map[holding]*big.Int
	issued   map[string]*big.Int // total of each asset
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

// left is the key of a daily total: an account and a day; for an issue, no account.
type left struct {
	holding
	day int64
}

// New returns empty books.
func New(l Limits) *State {
	return &State{limits: l, books: map[types.Tenant]*book{}, holds: map[types.TxID]hold{}}
}

// Clone returns a copy.
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

// of returns a tenant's book, empty if it has none.
func (s *State) of(t types.Tenant) *book {
	if b := s.books[t]; b != nil {
		return b
	}
	return &book{nonces: map[string]types.Nonce{}, frozen: map[string]bool{}, holdings: map[holding]*big.Int{},
		issued: map[string]*big.Int{}, burned: map[string]*big.Int{}, left: map[left]*big.Int{}}
}

// Do applies an operation and returns "", or returns why it is rejected and changes nothing.
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

// refuses checks in the order of the API: nonce, amount, accounts and holds, funds, amount
// limits, room.
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

// may reports whether the hold permits the operation.
func (s *State) may(o Op) bool {
	h, active := s.holds[o.Hold]
	return active && h.until > o.At && h.tenant == o.Tenant && h.holding == holding{o.From, o.Asset}
}

// isBeneficiary reports whether a capture pays an account that its hold permits.
func (s *State) isBeneficiary(o Op) bool {
	to := s.holds[o.Hold].to
	return to == "" || to == o.To
}

// poor returns why the amount is not available or too large.
func (s *State) poor(b *book, o Op) string {
	today, held := sum(b.left[o.leaves()], o.Amount), s.Kept(0, o.Tenant, o.From, o.Asset)
	free := sum(b.holdings[holding{o.From, o.Asset}])
	free.Sub(free, held)
	switch {
	case o.Kind == "issue" && sum(b.issued[o.Asset], o.Amount).Cmp(s.limits.Supply) > 0:
		return "supply"
	case o.pays() && free.Cmp(o.Amount) < 0:
		return "funds"
	case o.Kind == "capture" && s.holds[o.Hold].amount.Cmp(o.Amount) < 0:
		return "over hold"
	case o.Kind == "issue" && today.Cmp(s.limits.IssueDay) > 0, o.pays() && today.Add(today, held).Cmp(s.limits.Day) > 0:
		return "day"
	}
	return ""
}

// DebitLimit returns the largest amount that the limits of amounts let one operation debit an account.
func (s *State) DebitLimit(at types.Time, t types.Tenant, account, asset string) *big.Int {
	used := sum(s.Left(Op{At: at, Tenant: t, Kind: "burn", From: account, Asset: asset}), s.Kept(at, t, account, asset))
	left := new(big.Int).Sub(s.limits.Day, used)
	switch {
	case left.Sign() < 0:
		return new(big.Int)
	case s.limits.Amount.Cmp(left) < 0:
		return s.limits.Amount
	}
	return left
}

// full reports whether a row limit, of the node or of the tenant, rejects the operation.
func (s *State) full(b *book, o Op) bool {
	account, had, asset, held := s.wants(b, o)
	accounts, holdings, assets := s.rows()
	l := &s.limits
	return !s.Fits(o) || asset && exhausted(l.TenantAssets, len(b.issued), l.Assets-assets) ||
		account && exhausted(l.TenantAccounts, len(b.nonces), l.Accounts-accounts) ||
		had && exhausted(l.TenantHoldings, len(b.holdings), l.Holdings-holdings) ||
		held && exhausted(l.TenantHolds, s.Holds(o.Tenant), l.Holds-len(s.holds))
}

// exhausted reports whether a tenant gets no row beside those that it has: it is at its limit, or has no limit and as many rows as are left.
func exhausted(limit, has, left int) bool {
	if limit == 0 {
		return has >= left
	}
	return has >= limit
}

// rows counts those of all tenants.
func (s *State) rows() (accounts, holdings, assets int) {
	for _, t := range slices.Sorted(maps.Keys(s.books)) {
		accounts += len(s.books[t].nonces)
		holdings += len(s.books[t].holdings)
		assets += len(s.books[t].issued)
	}
	return accounts, holdings, assets
}

// wants returns which rows o needs that are missing: an account, a holding, an asset, a hold.
func (s *State) wants(b *book, o Op) (account, had, asset, held bool) {
	_, from := b.nonces[o.From]
	_, to := b.nonces[o.To]
	freezes := o.Kind == "freeze" || o.Kind == "unfreeze"
	account = o.credits() && !to || freezes && !from
	had = o.credits() && b.holdings[holding{o.To, o.Asset}] == nil
	return account, had, !freezes && b.issued[o.Asset] == nil, o.Kind == "hold"
}

// Fits reports whether there is room for what o needs, regardless of the limits of its tenant.
func (s *State) Fits(o Op) bool {
	b := s.of(o.Tenant)
	accounts, holdings, assets := s.rows()
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

// leaves returns the key of the daily total.
func (o Op) leaves() left {
	const day = 24 * 60 * 60 * 1000
	if o.Kind == "issue" {
		return left{holding{"", o.Asset}, int64(o.At) / day}
	}
	return left{holding{o.From, o.Asset}, int64(o.At) / day}
}

// Over returns the hold that expired first, of an account or, for "", of any account; ok is false
// if none has expired.
func (s *State) Over(at types.Time, t types.Tenant, account string) (id types.TxID, tenant types.Tenant, over bool) {
	for _, next := range s.active() {
		h := s.holds[next]
		if h.until > at || account != "" && (h.tenant != t || h.account != account) {
			continue
		}
		if first := s.holds[id]; !over || h.until < first.until { // equal times are ordered by ID
			id, tenant, over = next, h.tenant, true
		}
	}
	return id, tenant, over
}

// Lapse expires a hold.
func (s *State) Lapse(id types.TxID) {
	s.of(s.holds[id].tenant).seq++
	delete(s.holds, id)
}

// active returns the active holds sorted by ID.
func (s *State) active() []types.TxID {
	return slices.SortedFunc(maps.Keys(s.holds), func(a, b types.TxID) int { return bytes.Compare(a[:], b[:]) })
}

// held returns the sum of some holds.
func (s *State) held(meant func(hold) bool) *big.Int {
	all := new(big.Int)
	for _, id := range s.active() {
		if h := s.holds[id]; meant(h) {
			all.Add(all, h.amount)
		}
	}
	return all
}

// Hold returns an active hold.
func (s *State) Hold(id types.TxID) (o Op, ok bool) {
	h, ok := s.holds[id]
	return Op{Tenant: h.tenant, From: h.account, To: h.to, Asset: h.asset, Amount: h.amount, Until: h.until, Hold: id}, ok
}

// Active returns the IDs of all active holds in order.
func (s *State) Active() []types.TxID { return s.active() }

// Holds returns the number of holds of a tenant.
func (s *State) Holds(t types.Tenant) int {
	n := 0
	for _, id := range s.active() {
		if s.holds[id].tenant == t {
			n++
		}
	}
	return n
}

// Balance returns the balance of an account in an asset, and its next nonce.
func (s *State) Balance(t types.Tenant, account, asset string) (*big.Int, types.Nonce) {
	b := s.of(t)
	return sum(b.holdings[holding{account, asset}]), b.nonces[account] + 1
}

// Kept returns the part held by holds that expire after a time; for 0, by all active holds.
func (s *State) Kept(after types.Time, t types.Tenant, account, asset string) *big.Int {
	return s.held(func(h hold) bool {
		return h.tenant == t && h.holding == holding{account, asset} && h.until > after
	})
}

// Held returns the held amount of an asset.
func (s *State) Held(t types.Tenant, asset string) *big.Int {
	return s.held(func(h hold) bool { return h.tenant == t && h.asset == asset })
}

// Frozen reports whether debits of an account are rejected.
func (s *State) Frozen(t types.Tenant, account string) bool { return s.of(t).frozen[account] }

// Supply returns the totals ever issued and burned of an asset.
func (s *State) Supply(t types.Tenant, asset string) (issued, burned *big.Int) {
	b := s.of(t)
	return sum(b.issued[asset]), sum(b.burned[asset])
}

// Left returns the total of o's source on o's day.
func (s *State) Left(o Op) *big.Int { return sum(s.of(o.Tenant).left[o.leaves()]) }

// Seq returns the last movement of a tenant.
func (s *State) Seq(t types.Tenant) types.Seq { return s.of(t).seq }

// Accounts returns the number of accounts.
func (s *State) Accounts() int {
	n := 0
	for _, t := range slices.Sorted(maps.Keys(s.books)) {
		n += len(s.books[t].nonces)
	}
	return n
}

// sum returns a new number; nil counts as 0.
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
