// Package receipt is the one renderer of answers: a record and its frame's roots
// in, bytes out. The first answer, every replay and every look-up call it, so they
// are the same bytes. Version 1 is frozen: golden vectors hold it for ever.
package receipt

import (
	"encoding/hex"
	"errors"
	"strconv"
	"time"

	"macronode/core/digest"
	"macronode/core/event"
	"macronode/core/record"
	"macronode/core/words"
)

// ErrNone says that there is no answer at a place: nothing stands there, or a record
// that answers nobody.
var ErrNone = errors.New("receipt: no answer there")

// Render appends the answer that the record at an index of s is: a receipt, or the
// problem that its key keeps. It returns the HTTP status that goes with it, and
// whose answer it is.
func Render(to []byte, s *record.Sealed, index uint16) (answer []byte, status int, owner words.Tenant, err error) {
	h, _, err := record.Open(s.Body)
	if err == nil && index >= h.Count {
		err = ErrNone
	}
	if err != nil {
		return to, 0, 0, err
	}
	var r record.Record
	if _, err = record.Read(s.Body, index, &r); err != nil {
		return to, 0, 0, err
	}
	switch r.Kind {
	case record.Moved:
		return moved(to, s, h, index, &r), event.None.Status(), r.Tenant, nil
	case record.Refused:
		id := RecordID(s.Journal, words.Place{LSN: s.LSN, Index: index})
		return Problem(to, r.Problem, Facts{Decision: id[:], Nonce: r.Nonce}), r.Problem.Status(), r.Tenant, nil
	default:
		return to, 0, 0, ErrNone
	}
}

// moved writes a receipt. Its hash is over the same fields in the order of their
// names (RFC 8785), so that anybody can compute it from the parsed receipt.
func moved(to []byte, s *record.Sealed, h record.Head, index uint16, r *record.Record) []byte {
	var b [1536]byte
	canon := b[:0]
	for i, f := range [...]field{amountMinor, asset, from, idem, indexOf, nonce, op, prevRoot, root, seq, dest, stamp, txid} {
		canon = f.write(canon, i == 0, s, h, index, r)
	}
	sum := digest.Sum(append(canon, '}'))
	for i, f := range [...]field{txid, op, from, dest, asset, amountMinor, nonce, idem, stamp, seq, indexOf, prevRoot, root} {
		to = f.write(to, i == 0, s, h, index, r)
	}
	to = hex.AppendEncode(append(to, `,"receipt_hash":"b3:`...), sum[:])
	return append(to, '"', '}')
}

// A field of a receipt. Absent ones are left out.
type field uint8

const (
	txid field = iota
	op
	from
	dest
	asset
	amountMinor
	nonce
	idem
	stamp
	seq
	indexOf
	prevRoot
	root
)

func (f field) write(to []byte, first bool, s *record.Sealed, h record.Head, index uint16, r *record.Record) []byte {
	if f == from && len(r.From.Text) == 0 || f == dest && len(r.To.Text) == 0 || f == nonce && r.Nonce == 0 {
		return to
	}
	if first {
		to = append(to, '{')
	} else {
		to = append(to, ',')
	}
	switch f {
	case txid:
		id := TxID(s.Journal, words.Place{LSN: s.LSN, Index: index})
		return text(to, `"txid":`, id[:])
	case op:
		return text(to, `"op":`, r.Op.String())
	case from:
		return text(to, `"from":`, r.From.Text)
	case dest:
		return text(to, `"to":`, r.To.Text)
	case asset:
		return text(to, `"asset":`, r.Asset.Text)
	case amountMinor:
		return append(r.Amount.Append(append(to, `"amount_minor":"`...)), '"')
	case nonce:
		return strconv.AppendUint(append(to, `"nonce":`...), uint64(r.Nonce), 10)
	case idem:
		return text(to, `"idem":`, r.Key.Text)
	case stamp:
		return append(Stamp(append(to, `"ts":"`...), h.At), '"')
	case seq:
		return strconv.AppendUint(append(to, `"seq":`...), uint64(r.Seq), 10)
	case indexOf:
		return strconv.AppendUint(append(to, `"index":`...), uint64(index), 10)
	case prevRoot:
		return append(hex.AppendEncode(append(to, `"prev_root":"`...), s.Prev[:]), '"')
	case root:
		return append(hex.AppendEncode(append(to, `"root":"`...), s.Root[:]), '"')
	}
	return to
}

// text writes a name and a text of an alphabet that needs no escapes.
func text[T ~string | ~[]byte](to []byte, name string, s T) []byte {
	return append(append(append(append(to, name...), '"'), s...), '"')
}

// Stamp writes t as RFC 3339 with milliseconds.
func Stamp(to []byte, t words.Time) []byte {
	return time.UnixMilli(int64(t)).UTC().AppendFormat(to, "2006-01-02T15:04:05.000Z")
}
