// Package receipt renders answers: a record and the roots of its frame in, bytes out. The first
// answer, every replay and every look-up call it, so they are the same bytes. Version 1 is frozen
// by golden vectors.
//
//	receipt: txid op from to asset amount_minor nonce idem ref ts seq index
//	         prev_root root receipt_hash hold_id expires_at      absent fields are omitted
//	change:  the receipt; for an expired hold, which no caller ended:
//	         txid op hold_id held_minor ts seq index prev_root root receipt_hash
//	batch:   atomic: {"receipts":[receipt …]}, or the problem that rejected it;
//	         otherwise {"results":[{"status":200,"receipt":…} | {"status":409,"problem":…} …]}
//
// The hash covers all fields but itself.
package receipt

import (
	"errors"
	"strconv"

	"macronode/core/event"
	"macronode/core/record"
	"macronode/core/types"
)

// ErrNoAnswer reports that there is no answer at a position: no record, or a record without a
// caller.
var ErrNoAnswer = errors.New("receipt: no answer there")

// ErrUnreadable reports that the record of an answer is damaged on disk.
var ErrUnreadable = errors.New("receipt: the record cannot be read")

// A proof is a record in its frame.
type proof struct {
	in    *record.Sealed
	at    types.Time
	index uint16
	r     *record.Record
}

// Render appends the answer of the record at an index of s: a receipt, a stored problem, or the
// answers of all items of a batch. It returns the HTTP status and the tenant of the answer.
func Render(to []byte, s *record.Sealed, index uint16) (answer []byte, status int, owner types.Tenant, err error) {
	var r record.Record
	h, behind, err := find(s, index, &r)
	if err != nil {
		return to, 0, 0, err
	}
	p := proof{s, h.At, index, &r}
	switch {
	case r.Kind == record.Batched && r.Problem == event.None:
		if answer, err = p.batch(to, behind, h.Count); err != nil {
			return to, 0, 0, err
		}
		return answer, event.None.Status(), r.Tenant, nil
	case r.IsOutcome():
		answer, status = p.answer(to)
		return answer, status, r.Tenant, nil
	default:
		return to, 0, 0, ErrNoAnswer
	}
}

// Change appends the movements of the record at an index of s, one object each.
func Change(to []byte, s *record.Sealed, index uint16) (change []byte, owner types.Tenant, err error) {
	var r record.Record
	h, _, err := find(s, index, &r)
	if err == nil && !r.IsMovement() {
		err = ErrNoAnswer
	}
	if err != nil {
		return to, 0, err
	}
	p := proof{s, h.At, index, &r}
	return p.receipt(to), r.Tenant, nil
}

// find reads the record at an index of s, and returns the bytes after it.
func find(s *record.Sealed, index uint16, r *record.Record) (h record.Header, behind []byte, err error) {
	if h, _, err = record.Open(s.Body); err != nil {
		return h, nil, err
	}
	if index >= h.Count {
		return h, nil, ErrNoAnswer
	}
	if _, behind, err = record.Seek(s.Body, index); err == nil {
		behind, err = record.Next(behind, r)
	}
	return h, behind, err
}

// answer appends the outcome of one operation, or the problem of an atomic batch.
func (p *proof) answer(to []byte) ([]byte, int) {
	if p.r.Problem == event.None {
		return p.receipt(to), event.None.Status()
	}
	return Rejection(to, p.in, p.index, p.r)
}

// batch appends the items after their header, in one pass. If the frame lacks an item, the frame
// is invalid.
func (p *proof) batch(to, behind []byte, count uint16) (answer []byte, err error) {
	if int(p.index)+int(p.r.Items) >= int(count) {
		return to, record.ErrFrame
	}
	var r record.Record
	item := proof{p.in, p.at, p.index, &r}
	if p.r.Atomic {
		to = append(to, `{"receipts":[`...)
	} else {
		to = append(to, `{"results":[`...)
	}
	for i := range p.r.Items {
		if behind, err = record.Next(behind, &r); err != nil {
			return to, err
		}
		if !r.IsOutcome() || r.Kind == record.Batched || r.Tenant != p.r.Tenant || p.r.Atomic && r.Kind == record.Rejected {
			return to, record.ErrFrame
		}
		if item.index++; i > 0 {
			to = append(to, ',')
		}
		to = item.result(to, p.r.Atomic)
	}
	return append(to, ']', '}'), nil
}

// result appends the outcome of an item.
func (p *proof) result(to []byte, bare bool) []byte {
	if bare {
		return p.receipt(to)
	}
	to = strconv.AppendInt(append(to, `{"status":`...), int64(p.r.Problem.Status()), 10)
	if p.r.Problem == event.None {
		to = append(to, `,"receipt":`...)
	} else {
		to = append(to, `,"problem":`...)
	}
	to, _ = p.answer(to)
	return append(to, '}')
}
