package history_test

import (
	"macronode/core/types"
	"macronode/models/history"
)

const accounts = 3

// ask is what the small bank is asked: issue to an account, pay from one to another with
// a nonce, or look at one.
type ask struct {
	kind     uint8
	from, to uint8
	nonce    uint16
	amount   uint32
}

const (
	issue uint8 = iota
	pay
	look
)

// answer is what both accounts have then, or why nothing was done.
type answer struct {
	why      string
	from, to uint32
	nonce    uint16 // the next
}

type purse struct {
	has   uint32
	nonce uint16 // the last used
}

// bank is the twin of the tests: comparable, so that a search can meet it again.
type bank [accounts]purse

func (b *bank) Step(_ types.Position, q *ask) (a answer, changed bool) {
	from, to := &b[q.from], &b[q.to]
	switch {
	case q.kind == look:
		return answer{from: from.has, nonce: from.nonce + 1}, false
	case q.kind == pay && q.nonce != from.nonce+1:
		return answer{why: "nonce", nonce: from.nonce + 1}, false
	case q.kind == pay && q.amount > from.has:
		return answer{why: "funds"}, false
	case q.kind == pay:
		from.has -= q.amount
		from.nonce++
	}
	to.has += q.amount
	return answer{from: from.has, to: to.has, nonce: from.nonce + 1}, true
}

type (
	op     = history.Op[ask, answer]
	record = history.Entry
)

// story is a history, and the journal that was found behind it.
type story struct {
	ops     []op
	journal []record
}

func (s story) certify() *history.Fault {
	return history.Certify(new(bank), s.ops, func(yield func(record) bool) {
		for _, e := range s.journal {
			if !yield(e) {
				return
			}
		}
	})
}
