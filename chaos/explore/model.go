package explore

import (
	"bytes"
	"fmt"

	"macronode/core/event"
	"macronode/core/record"
	"macronode/core/types"
)

// The accounts of a tenant, and the limits.
var people = [...]string{"ann", "bob", "shop"}

const (
	maxTenants = 2
	maxKeys    = 5
	maxRefs    = 2 // of a tenant
	maxHolds   = 2
	most       = 40 // largest amount of an operation
	parties    = maxTenants * len(people)
)

// books is the reference model: a simple ledger with one asset per tenant.
type books struct {
	has            [parties]int64
	nonce          [parties]uint64 // the last used
	frozen         [parties]bool
	issued, burned [maxTenants]int64
	holds          [maxHolds]paper
	refs           [maxTenants * maxRefs]kept
	keys           [maxKeys]kept
}

// paper is a hold.
type paper struct {
	id     types.TxID
	of     int
	amount int64
	until  types.Time
	open   bool
}

// kept is the last outcome of a key or of a ref.
type kept struct {
	page    *page // nil: none
	index   uint16
	problem event.Problem
	item    uint16 // the item of a batch that has the problem, from 1
}

// accountOf returns the index of an account; -1 if it is reserved.
func accountOf(t types.Tenant, n types.Name) int {
	for i, p := range people {
		if string(n.Text) == p {
			return int(t-1)*len(people) + i
		}
	}
	return -1
}

// ref returns the outcome of a ref; nil if there is none.
func (b *books) ref(t types.Tenant, n types.Name) *kept {
	for i := range maxRefs {
		if string(n.Text) == fmt.Sprint("ref", i) {
			return &b.refs[int(t-1)*maxRefs+i]
		}
	}
	return nil
}

// free returns the available balance of an account.
func (b *books) free(at types.Time, of int) int64 {
	rest := b.has[of]
	for _, p := range b.holds {
		if p.open && p.of == of && p.until > at {
			rest -= p.amount
		}
	}
	return rest
}

func (b *books) hold(id types.TxID) *paper {
	for i := range b.holds {
		if p := &b.holds[i]; p.open && p.id == id {
			return p
		}
	}
	return nil
}

// decide returns the expected outcome of an operation.
func (b *books) decide(at types.Time, t types.Tenant, r *event.Item) event.Problem {
	from, amount := accountOf(t, r.From), int64(r.Amount.Lo)
	if k := b.ref(t, r.Ref); k != nil && k.page != nil {
		return event.RefUsed
	}
	if r.Nonce > 0 && uint64(r.Nonce) != b.nonce[from]+1 {
		if uint64(r.Nonce) > b.nonce[from] {
			return event.NonceAhead
		}
		return event.NonceUsed
	}
	if amount > most {
		return event.AmountLimitExceeded
	}
	switch r.Op {
	case event.Transfer, event.Burn, event.Hold, event.Capture:
		if b.frozen[from] {
			return event.AccountFrozen
		}
	default:
	}
	switch r.Op {
	case event.Hold:
		if r.ExpiresAt <= at {
			return event.BadExpiry
		}
		fallthrough
	case event.Transfer, event.Burn:
		if b.free(at, from) < amount {
			return event.InsufficientFunds
		}
	case event.Capture, event.Release:
		p := b.hold(r.Hold)
		if p == nil || p.until <= at || p.of != from {
			return event.HoldNotActive
		}
		if amount > p.amount {
			return event.HoldAmountExceeded
		}
	default: // an issue or a freeze always succeeds
	}
	return event.None
}

// A verdict is the expected outcome of a request; item is the item of an atomic batch that has
// the problem, from 1, and nonce the expected nonce.
type verdict struct {
	why   event.Problem
	nonce types.Nonce
	item  uint16
}

// expects returns the expected outcome of a request. A ref that an item of the same batch uses is
// a different problem: it is not stored.
func (b *books) expects(at types.Time, r *event.Request) (v verdict) {
	trial, here := b, &page{}
	for i, one := range r.Each {
		if r.Op == event.Batch {
			if !r.Atomic {
				return verdict{}
			}
			v.item = uint16(i + 1)
		}
		if v.why = trial.decide(at, r.Tenant, one); v.why != event.None {
			if k := trial.ref(r.Tenant, one.Ref); v.why == event.RefUsed && k.page == here {
				v.why = event.BadRequest
			}
			if v.why == event.NonceAhead {
				v.nonce = types.Nonce(trial.nonce[accountOf(r.Tenant, one.From)] + 1)
			}
			return v
		}
		if trial == b {
			trial = new(books)
			*trial = *b
		}
		trial.does(here, uint16(i), r.Tenant, one)
	}
	return verdict{}
}

// does makes an operation whose outcome is at a position.
func (b *books) does(p *page, index uint16, t types.Tenant, r *event.Item) {
	from, to, amount := accountOf(t, r.From), accountOf(t, r.To), int64(r.Amount.Lo)
	switch r.Op {
	case event.Issue:
		b.issued[t-1] += amount
		b.has[to] += amount
	case event.Transfer:
		b.has[from] -= amount
		b.has[to] += amount
	case event.Burn:
		b.burned[t-1] += amount
		b.has[from] -= amount
	case event.Hold:
		for i := range b.holds {
			if !b.holds[i].open {
				b.holds[i] = paper{types.NewTxID(p.journal, types.Position{LSN: p.lsn, Index: index}), from, amount, r.ExpiresAt, true}
				break
			}
		}
	case event.Capture, event.Release:
		if b.hold(r.Hold).open = false; r.Op == event.Capture {
			b.has[from] -= amount
			b.has[to] += amount
		}
	case event.Freeze, event.Unfreeze:
		b.frozen[from] = r.Op == event.Freeze
	case event.Batch:
	}
	if r.Nonce > 0 {
		b.nonce[from]++
	}
	if k := b.ref(t, r.Ref); k != nil {
		k.page, k.index = p, index
	}
}

// apply makes the operation of a record, and compares the record with the books.
func (b *books) apply(p *page, index uint16, r *record.Record, asked *event.Item) error {
	if r.Op != asked.Op || !bytes.Equal(r.From.Text, asked.From.Text) || !bytes.Equal(r.To.Text, asked.To.Text) || r.Nonce != asked.Nonce ||
		r.Op != event.Release && r.Amount != asked.Amount {
		return fmt.Errorf("the model: %v of %v is not the request", r.Op, r.Amount)
	}
	b.does(p, index, r.Tenant, asked)
	return b.agree(p.at, r)
}

// agree compares a record with the books.
func (b *books) agree(at types.Time, r *record.Record) error {
	t := int(r.Tenant - 1)
	from, to := accountOf(r.Tenant, r.From), accountOf(r.Tenant, r.To)
	sum := b.burned[t]
	for _, has := range b.has[t*len(people) : (t+1)*len(people)] {
		sum += has
	}
	held := int64(0)
	if from >= 0 {
		held = b.has[from] - b.free(at, from)
	}
	err := error(nil)
	note := func(e error) {
		if err == nil {
			err = e
		}
	}
	report := func(what string, got types.Amount, want int64) {
		if got != types.MinorUnits(uint64(want)) {
			note(fmt.Errorf("the model: %s has %v, want %d", what, got, want))
		}
	}
	pays := func() { report(string(r.From.Text), r.FromBalance, b.has[from]) }
	gets := func() { report(string(r.To.Text), r.ToBalance, b.has[to]) }
	if sum != b.issued[t] {
		note(fmt.Errorf("conservation: %d of %d issued", sum, b.issued[t]))
	}
	switch r.Op {
	case event.Issue:
		report("all that was issued", r.FromBalance, b.issued[t])
		gets()
	case event.Burn:
		report("all that was burned", r.ToBalance, b.burned[t])
		pays()
	case event.Transfer:
		pays()
		gets()
	case event.Capture:
		pays()
		gets()
		report("what is held", r.HeldBalance, held)
	case event.Freeze, event.Unfreeze, event.Batch:
	default:
		report("what is held", r.HeldBalance, held)
	}
	return err
}

// lapse expires a hold, if it has expired.
func (b *books) lapse(at types.Time, r *record.Record) error {
	p := b.hold(r.Hold)
	if p == nil || p.until > at {
		return fmt.Errorf("an expiry of a hold that has not expired or does not exist")
	}
	p.open = false
	return nil
}
