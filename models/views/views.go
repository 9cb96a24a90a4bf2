// Package views is the reference model of adapters/index: lists of all events, searched from the
// beginning. It shares no code with the index, so that both cannot have the same bug.
package views

import (
	"slices"
	"strings"
	"time"

	"macronode/core/types"
)

// A Fact is a record with the fields that views use.
type Fact struct {
	Kind   string // posted, rejected, batched, hold_opened, hold_captured, hold_released, hold_expired, freeze_changed
	Op     string // issue, transfer, burn, freeze, unfreeze
	Tenant types.Tenant
	ID     types.TxID
	At     types.Time
	Key    string // empty for the items of a batch
	Asked  types.RequestHash
	Ref    string

	From, To, Asset string
	Amount          types.Amount
	Nonce           types.Nonce
	Seq             types.Seq
	Until           types.Time
	Hold            types.TxID
	Memo            string
}

// A Line is a movement from the side of one account.
type Line struct {
	Seq     types.Seq
	ID      types.TxID
	At      types.Time
	Op      string
	Asset   string
	Other   string
	Amount  types.Amount
	Credit  bool
	Balance types.Amount
	Held    types.Amount
	Hold    types.TxID
	Nonce   types.Nonce
	Ref     string
	Memo    string
}

// A Hold is a hold and its state: active, captured, released or expired.
type Hold struct {
	ID              types.TxID
	From, To, Asset string
	Amount          types.Amount
	Opened, Until   types.Time
	State           string
	Ended           types.TxID
	Captured        types.Amount
}

// State has all events and the balances: for an asset's issuance account, the negative balance.
type State struct {
	Facts []Fact
	Lines []Booked
	Holds []Booking
	has   []balanceOf
}

// Booked is a line with its owner, Booking a hold.
type Booked struct {
	Tenant  types.Tenant
	Account string
	Line
}
type Booking struct {
	Tenant types.Tenant
	Hold
}

type balanceOf struct {
	tenant         types.Tenant
	account, asset string
	balance, held  types.Amount
}

func (s *State) balanceOf(t types.Tenant, account, asset string) *balanceOf {
	for i := range s.has {
		if p := &s.has[i]; p.tenant == t && p.account == account && p.asset == asset {
			return p
		}
	}
	s.has = append(s.has, balanceOf{tenant: t, account: account, asset: asset})
	return &s.has[len(s.has)-1]
}

// Add adds a record.
func (s *State) Add(f Fact) {
	s.Facts = append(s.Facts, f)
	switch f.Kind {
	case "posted":
		from, to := f.From, f.To
		if f.Op == "issue" {
			from = types.Issuance + f.Asset
		}
		if f.Op == "burn" {
			to = types.Burned + f.Asset
		}
		s.move(f, f.Op, from, to, f.Op == "issue")
	case "hold_opened":
		p := s.balanceOf(f.Tenant, f.From, f.Asset)
		p.held, _ = p.held.Add(f.Amount)
		s.Holds = append(s.Holds, Booking{f.Tenant, Hold{ID: f.ID, From: f.From, To: f.To, Asset: f.Asset,
			Amount: f.Amount, Opened: f.At, Until: f.Until, State: "active"}})
		f.Hold = f.ID
		s.line(f, "hold", f.From, f.To, false, f.Nonce)
	case "hold_captured":
		h := s.end(f, "captured")
		h.Captured = f.Amount
		s.move(f, "capture", f.From, f.To, false)
	case "hold_released":
		s.end(f, "released")
		s.line(f, "release", f.From, f.To, false, 0)
	case "hold_expired":
		h := s.end(f, "expired")
		f.Amount, f.Asset = h.Amount, h.Asset
		s.line(f, "", h.From, h.To, false, 0)
	case "freeze_changed":
		s.line(f, f.Op, f.From, "", false, 0)
	}
}

func (s *State) move(f Fact, op, from, to string, owes bool) {
	p := s.balanceOf(f.Tenant, from, f.Asset)
	if owes {
		p.balance, _ = p.balance.Add(f.Amount)
	} else {
		p.balance, _ = p.balance.Sub(f.Amount)
	}
	s.line(f, op, from, to, false, f.Nonce)
	p = s.balanceOf(f.Tenant, to, f.Asset)
	p.balance, _ = p.balance.Add(f.Amount)
	s.line(f, op, to, from, true, 0)
}

func (s *State) end(f Fact, state string) *Hold {
	for i := range s.Holds {
		if h := &s.Holds[i]; h.Tenant == f.Tenant && h.ID == f.Hold {
			p := s.balanceOf(h.Tenant, h.From, h.Asset)
			p.held, _ = p.held.Sub(h.Amount)
			h.State, h.Ended = state, f.ID
			return &h.Hold
		}
	}
	return &Hold{}
}

func (s *State) line(f Fact, op, account, other string, credit bool, nonce types.Nonce) {
	l := Line{Seq: f.Seq, ID: f.ID, At: f.At, Op: op, Asset: f.Asset, Other: other, Amount: f.Amount, Credit: credit,
		Hold: f.Hold, Nonce: nonce, Ref: f.Ref, Memo: f.Memo}
	if f.Kind == "freeze_changed" {
		l.Asset, l.Amount = "", types.Amount{}
	} else {
		p := s.balanceOf(f.Tenant, account, f.Asset)
		l.Balance, l.Held = p.balance, p.held
	}
	s.Lines = append(s.Lines, Booked{f.Tenant, account, l})
}

// Key returns the last outcome of a key within its TTL.
func (s *State) Key(t types.Tenant, key string, ttl time.Duration, at types.Time) (last Fact, found bool) {
	for _, f := range s.Facts {
		if f.Tenant == t && f.Key == key && key != "" {
			last, found = f, true
		}
	}
	return last, found && last.At.Add(ttl) > at
}

// Ref returns the owner of a ref.
func (s *State) Ref(t types.Tenant, ref string) (record types.TxID) {
	for _, f := range s.Facts {
		if f.Tenant == t && f.Ref == ref && ref != "" {
			record = f.ID
		}
	}
	return record
}

// Entries returns the first lines of an account after a seq.
func (s *State) Entries(t types.Tenant, account string, after types.Seq, limit int) (list []Line) {
	for _, l := range s.Lines {
		if l.Tenant == t && l.Account == account && l.Seq > after && len(list) < limit {
			list = append(list, l.Line)
		}
	}
	return list
}

// Last returns the tenant's last movement; with a time, the last one not after it.
func (s *State) Last(t types.Tenant, at types.Time) (last types.Seq) {
	for _, f := range s.Facts {
		if f.Tenant == t && f.At <= at {
			last = max(last, f.Seq)
		}
	}
	return last
}

// BalanceAt returns the balance of an account after a movement.
func (s *State) BalanceAt(t types.Tenant, account, asset string, seq types.Seq) (balance, held types.Amount) {
	for _, l := range s.Lines {
		if l.Tenant == t && l.Account == account && l.Asset == asset && l.Seq <= seq {
			balance, held = l.Balance, l.Held
		}
	}
	return balance, held
}

// Accounts returns the accounts and assets of a tenant with a prefix, sorted, as account, zero
// byte, asset.
func (s *State) Accounts(t types.Tenant, prefix, after string, limit int) (list []string) {
	for _, l := range s.Lines {
		if l.Tenant == t && l.Asset != "" {
			list = append(list, l.Account+"\x00"+l.Asset)
		}
	}
	return sorted(list, prefix, after, limit)
}

// Assets returns the assets of a tenant.
func (s *State) Assets(t types.Tenant, prefix, after string, limit int) (list []string) {
	for _, l := range s.Lines {
		if l.Tenant == t && l.Asset != "" {
			list = append(list, l.Asset)
		}
	}
	return sorted(list, prefix, after, limit)
}

func sorted(list []string, prefix, after string, limit int) []string {
	list = slices.DeleteFunc(list, func(n string) bool { return !strings.HasPrefix(n, prefix) || n <= after })
	slices.Sort(list)
	list = slices.Compact(list)
	return list[:min(limit, len(list))]
}

// Listed returns the holds of an account, or of all, sorted by ID, in their state at a time.
func (s *State) Listed(t types.Tenant, account, state string, now types.Time) (list []Hold) {
	for _, h := range s.Holds {
		if h.State == "active" && h.Until <= now {
			h.State = "expired"
		}
		if h.Tenant == t && (account == "" || h.From == account) && (state == "" || h.State == state) {
			list = append(list, h.Hold)
		}
	}
	slices.SortFunc(list, func(a, b Hold) int { return slices.Compare(a.ID[:], b.ID[:]) })
	return list
}

// Changes returns the movements of a tenant after a seq.
func (s *State) Changes(t types.Tenant, after types.Seq, limit int) (list []Fact) {
	for _, f := range s.Facts {
		if f.Tenant == t && f.Seq > after && len(list) < limit {
			list = append(list, f)
		}
	}
	return list
}
