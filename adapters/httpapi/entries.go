package httpapi

import (
	"errors"
	"strconv"

	"macronode/core/event"
	"macronode/core/types"
	"macronode/core/wallet/receipt"
)

// A statement is what is asked of an account's movements.
type statement struct {
	account string
	after   types.Seq
	limit   int // of a stream: 0, where nothing is said
	atLeast types.Seq
	kind    []string
}

// entries shows the statement of an account: a page, or a stream.
func entries(k *call) error {
	if err := k.enter(event.ScopeRead); err != nil {
		return err
	}
	q, err := k.statement()
	if err != nil {
		return err
	}
	if err := k.covers(q.account, ""); err != nil {
		return err
	}
	seen, err := k.present(q.atLeast)
	if err != nil {
		return err
	}
	if q.kind[0] != jsonType[0] {
		return k.export(q, seen)
	}
	o := object{'{'}
	o.text("account", q.account)
	o.list("entries")
	last, left := q.after, q.limit
	var mark event.Watermark
	for left > 0 {
		var n int
		n, last, mark, err = k.walk(q, last, left, func(e *event.Entry) {
			o.open()
			o.entry(q.account, e)
			o.close('}')
		})
		if err != nil {
			return err
		}
		if left -= n; n == 0 {
			break
		}
	}
	o.close(']')
	if left == 0 {
		o.number("next_after_seq", uint64(last))
	}
	o.asOf(seen, mark)
	return k.send(o)
}

func (k *call) statement() (q statement, err error) {
	if q.account, err = k.account(); err != nil {
		return q, err
	}
	q.kind = prefer(k.r.Header["Accept"], jsonType, linesType, csvType)
	said := false
	limit := limitParam(&q.limit)
	err = k.query(seqParam(&q.after, "after_seq"), seqParam(&q.atLeast, "min_seq"),
		param{"limit", false, func(s string) error { said = true; return limit.read(s) }},
		param{"format", false, func(s string) error {
			switch s {
			case "json":
				q.kind = jsonType
			case "ndjson":
				q.kind = linesType
			case "csv":
				q.kind = csvType
			default:
				return errors.New("format: must be json, ndjson or csv")
			}
			return nil
		}})
	if !said && q.kind[0] != jsonType[0] {
		q.limit = 0
	}
	return q, err
}

// walk shows at most limit entries behind after, and says how many there were and
// which was the last, be they covered by the key or not.
func (k *call) walk(q statement, after types.Seq, limit int, show func(*event.Entry)) (n int, last types.Seq, m event.Watermark, err error) {
	last = after
	m, err = k.Views.Entries(k.key.Tenant, []byte(q.account), after, limit, func(e *event.Entry) bool {
		n++
		last = e.Seq
		if len(e.Asset) == 0 || types.Covers(&k.key.Assets, e.Asset) {
			show(e)
		}
		return n < limit
	})
	return n, last, m, err
}

// export streams the statement as it was when it was asked for.
func (k *call) export(q statement, seen types.Seq) error {
	k.Header()["X-As-Of-Seq"] = []string{strconv.FormatUint(uint64(seen), 10)}
	s := k.stream(q.kind)
	var part object
	if q.kind[0] == csvType[0] {
		part = append(part, csvHead...)
	}
	for after, left := q.after, q.limit; ; {
		limit := PartRows
		if q.limit > 0 {
			limit = min(limit, left)
		}
		n, last, _, err := k.walk(q, after, limit, func(e *event.Entry) {
			switch {
			case e.Seq > seen:
			case q.kind[0] == csvType[0]:
				part = appendRow(part, q.account, e)
			default:
				part = append(part, '{')
				part.entry(q.account, e)
				part = append(part, '}', '\n')
			}
		})
		if err != nil {
			return err
		}
		if err := s.send(part); err != nil {
			return err
		}
		after, left, part = last, left-n, part[:0]
		if n == 0 || q.limit > 0 && left == 0 || last >= seen {
			return nil
		}
		if s.over() != "" {
			return errCut
		}
	}
}

// entry adds the members of an entry.
func (o *object) entry(account string, e *event.Entry) {
	o.number("seq", uint64(e.Seq))
	o.txid("txid", e.ID)
	o.stamp("ts", e.At)
	o.text("op", entryOp(e))
	o.text("direction", direction(e))
	o.said("asset", e.Asset)
	o.amount("amount_minor", e.Amount, false)
	o.amount("balance_minor", e.Balance, below(account))
	o.amount("held_minor", e.Held, false)
	o.said("counterparty", e.Counterparty)
	o.hold("hold_id", e.Hold)
	if e.Nonce > 0 {
		o.number("nonce", uint64(e.Nonce))
	}
	o.said("ref", e.Ref)
	o.said("memo", e.Memo)
}

func entryOp(e *event.Entry) string {
	if e.Op == 0 {
		return "expire"
	}
	return e.Op.String()
}

// direction is how the balance moved.
func direction(e *event.Entry) string {
	switch e.Op {
	case event.Issue, event.Transfer, event.Burn, event.Capture:
		if e.Credit {
			return "credit"
		}
		return "debit"
	default:
		return "none"
	}
}

// below reports that an account is below nothing, unless it has nothing.
func below(account string) bool {
	_, own := types.ReservedAsset(account)
	return own && account[0] == types.Issuance[0]
}

const csvHead = "seq,txid,ts,op,direction,asset,amount_minor,balance_minor,held_minor,other,hold_id,nonce,ref,memo\r\n"

// appendRow writes a row of CSV (RFC 4180).
func appendRow(to []byte, account string, e *event.Entry) []byte {
	id := receipt.TxID(e.ID)
	to = append(strconv.AppendUint(to, uint64(e.Seq), 10), ',')
	to = append(append(to, id[:]...), ',')
	to = append(receipt.Stamp(to, e.At), ',')
	to = append(append(append(to, entryOp(e)...), ','), direction(e)...)
	to = appendCell(append(to, ','), e.Asset)
	to = e.Amount.Append(append(to, ','))
	to = appendSigned(append(to, ','), e.Balance, below(account))
	to = e.Held.Append(append(to, ','))
	to = append(appendCell(append(to, ','), e.Counterparty), ',')
	if e.Hold != (types.TxID{}) {
		hold := receipt.HoldID(e.Hold)
		to = append(to, hold[:]...)
	}
	if to = append(to, ','); e.Nonce > 0 {
		to = strconv.AppendUint(to, uint64(e.Nonce), 10)
	}
	to = appendCell(append(to, ','), e.Ref)
	return append(appendCell(append(to, ','), e.Memo), '\r', '\n')
}

// appendCell writes a text of the caller's own, in quotes. What a spreadsheet would take
// for a formula gets an apostrophe before it, which makes it a text there; so does what
// begins with one, and with that every apostrophe in front is ours.
func appendCell(to []byte, s []byte) []byte {
	to = append(to, '"')
	if formula(s) {
		to = append(to, '\'')
	}
	for _, c := range s {
		if c == '"' {
			to = append(to, '"')
		}
		to = append(to, c)
	}
	return append(to, '"')
}

// prefer is the kind of answer that a client would rather have, the first where it
// does not say, or nothing of these.
func prefer(accept []string, kinds ...[]string) []string {
	best, most := kinds[0], 0.0
	for _, said := range accept {
		for one := range mediaRanges(said) {
			for _, kind := range kinds {
				if one.of(kind[0]) && one.q > most {
					best, most = kind, one.q
					break
				}
			}
		}
	}
	return best
}
