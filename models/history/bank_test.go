package history_test

import (
	"macronode/core/types"
	"macronode/models/history"
)

const accounts = 3

// ask is an operation of the small bank: issue to an account, pay from one to another with a
// nonce, or read one.
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

// answer is the state of both accounts, or why the operation was rejected.
type answer struct {
	why      string
	from, to uint32
	nonce    uint16 // the next nonce
}

type wallet struct {
	has   uint32
	nonce uint16 // the last used nonce
}

// bank is the model of the tests. It is comparable, so that a search recognises a state.
type bank [accounts]wallet

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

// execution is a history and the journal that belongs to it.
type execution struct {
	ops     []op
	journal []record
}

func (s execution) certify() *history.Fault {
	return history.Certify(new(bank), s.ops, func(yield func(record) bool) {
		for _, e := range s.journal {
			if !yield(e) {
				return
			}
		}
	})
}
