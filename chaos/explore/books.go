package explore

import (
	"fmt"

	"macronode/core/event"
	"macronode/core/record"
	"macronode/core/words"
)

// The people of a scope, and how much of everything there may be.
var people = [...]string{"ann", "bob", "shop"}

const (
	maxKeys  = 5
	maxHolds = 2
	most     = 40 // one operation may move
)

// books are the twin: money as a child would count it, of one tenant and one asset.
type books struct {
	has            [len(people)]int64
	nonce          [len(people)]uint64 // the last used
	issued, burned int64
	holds          [maxHolds]paper
	keys           [maxKeys]kept
}

// paper is a hold.
type paper struct {
	id     words.TxID
	of     int
	amount int64
	until  words.Time
	open   bool
}

// kept is what became of a key last.
type kept struct {
	page    *page // nil: nothing did
	index   uint16
	problem event.Problem
}

func who(n words.Name) int {
	for i, p := range people {
		if string(n.Text) == p {
			return i
		}
	}
	return -1
}

// free is what somebody has that is not held.
func (b *books) free(at words.Time, of int) int64 {
	rest := b.has[of]
	for _, p := range b.holds {
		if p.open && p.of == of && p.until > at {
			rest -= p.amount
		}
	}
	return rest
}

func (b *books) hold(id words.TxID) *paper {
	for i := range b.holds {
		if p := &b.holds[i]; p.open && p.id == id {
			return p
		}
	}
	return nil
}

// decide says what an operation would come to.
func (b *books) decide(at words.Time, r *event.Item) event.Problem {
	from, amount := who(r.From), int64(r.Amount.Lo)
	if r.Nonce > 0 && uint64(r.Nonce) != b.nonce[from]+1 {
		if uint64(r.Nonce) > b.nonce[from] {
			return event.NonceAhead
		}
		return event.NonceUsed
	}
	if amount > most {
		return event.OverAmount
	}
	switch r.Op {
	case event.Hold:
		if r.Until <= at {
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
			return event.HoldState
		}
		if amount > p.amount {
			return event.OverHold
		}
	default: // an issue is always good
	}
	return event.None
}

// apply does what the record of an operation says, and wants it to say what is so.
func (b *books) apply(p *page, index uint16, r *record.Record) error {
	from, to, amount := who(r.From), who(r.To), int64(r.Amount.Lo)
	switch r.Op {
	case event.Issue:
		b.issued += amount
		b.has[to] += amount
	case event.Transfer:
		b.has[from] -= amount
		b.has[to] += amount
	case event.Burn:
		b.burned += amount
		b.has[from] -= amount
	case event.Hold:
		for i := range b.holds {
			if !b.holds[i].open {
				b.holds[i] = paper{words.NewTxID(p.journal, words.Place{LSN: p.lsn, Index: index}), from, amount, r.Until, true}
				break
			}
		}
	case event.Capture, event.Release:
		if b.hold(r.Hold).open = false; r.Op == event.Capture {
			b.has[from] -= amount
			b.has[to] += amount
		}
	default:
		return fmt.Errorf("the twin: knows no %v", r.Op)
	}
	if r.Nonce > 0 {
		b.nonce[from]++
	}
	return b.agree(p.at, r, from, to)
}

// agree wants a record to have what the books have.
func (b *books) agree(at words.Time, r *record.Record, from, to int) error {
	sum := b.burned
	for _, has := range b.has {
		sum += has
	}
	held := int64(0)
	if from >= 0 {
		held = b.has[from] - b.free(at, from)
	}
	said := func(what string, got words.Amount, want int64) error {
		if got != words.Units(uint64(want)) {
			return fmt.Errorf("the twin: %s has %v, want %d", what, got, want)
		}
		return nil
	}
	err := error(nil)
	note := func(e error) {
		if err == nil {
			err = e
		}
	}
	if sum != b.issued {
		note(fmt.Errorf("conservation: %d of %d issued", sum, b.issued))
	}
	switch r.Op {
	case event.Issue:
		note(said("all that was issued", r.FromNow, b.issued))
		note(said(people[to], r.ToNow, b.has[to]))
	case event.Burn:
		note(said("all that was burned", r.ToNow, b.burned))
		note(said(people[from], r.FromNow, b.has[from]))
	case event.Transfer:
		note(said(people[from], r.FromNow, b.has[from]))
		note(said(people[to], r.ToNow, b.has[to]))
	case event.Capture:
		note(said(people[from], r.FromNow, b.has[from]))
		note(said(people[to], r.ToNow, b.has[to]))
		note(said("what is held", r.HeldNow, held))
	default:
		note(said("what is held", r.HeldNow, held))
	}
	return err
}

// lapse ends a hold whose time is over, and no other.
func (b *books) lapse(at words.Time, r *record.Record) error {
	p := b.hold(r.Hold)
	if p == nil || p.until > at {
		return fmt.Errorf("a hold lapses: which is not over, or nobody's")
	}
	p.open = false
	return nil
}
