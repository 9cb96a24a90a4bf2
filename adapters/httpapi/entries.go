package httpapi

import (
	"errors"
	"strconv"

	"macronode/core/event"
	"macronode/core/types"
	"macronode/core/wallet/receipt"
)

// A statementQuery selects entries of an account.
type statementQuery struct {
	account string
	after   types.Seq
	limit   int // of a stream: 0, unless it is given
	atLeast types.Seq
	kind    []string
}

// entries returns the statement of an account, as a page or a stream.
func entries(k *call) error {
	if err := k.requireScope(event.ScopeRead); err != nil {
		return err
	}
	q, err := k.parseStatementQuery()
	if err != nil {
		return err
	}
	if err := k.requireCovered(q.account, ""); err != nil {
		return err
	}
	seen, err := k.awaitCurrent(q.atLeast)
	if err != nil {
		return err
	}
	if q.kind[0] != jsonType[0] {
		return k.export(q, seen)
	}
	o := jsonObject{'{'}
	o.text("account", q.account)
	o.list("entries")
	last, left := q.after, q.limit
	var mark event.Watermark
	for left > 0 {
		var n int
		err := k.readPage(q.limit, func() (err error) {
			n, last, mark, err = k.walkEntries(q, last, min(left, PartRows), func(e *event.Entry) {
				o.open()
				o.entryMembers(q.account, e)
				o.close('}')
			})
			return err
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

func (k *call) parseStatementQuery() (q statementQuery, err error) {
	if q.account, err = k.account(); err != nil {
		return q, err
	}
	q.kind = prefer(k.r.Header["Accept"], jsonType, linesType, csvType)
	hasLimit := false
	limit := limitParam(&q.limit)
	err = k.query(seqParam(&q.after, "after_seq"), seqParam(&q.atLeast, "min_seq"),
		param{"limit", false, func(s string) error { hasLimit = true; return limit.read(s) }},
		formatParam(&q.kind))
	if !hasLimit && q.kind[0] != jsonType[0] {
		q.limit = 0
	}
	return q, err
}

// formatParam is the format of a response, which takes precedence over Accept.
func formatParam(to *[]string) param {
	return param{"format", false, func(s string) error {
		switch s {
		case "json":
			*to = jsonType
		case "ndjson":
			*to = linesType
		case "csv":
			*to = csvType
		default:
			return errors.New("format: must be json, ndjson or csv")
		}
		return nil
	}}
}

// walkEntries calls show for at most limit entries after a seq. It returns how many there were and the last seq,
// including entries that the key does not cover.
func (k *call) walkEntries(q statementQuery, after types.Seq, limit int, show func(*event.Entry)) (n int, last types.Seq, m event.Watermark, err error) {
	last = after
	m, err = k.Index.Entries(k.key.Tenant, []byte(q.account), after, limit, func(e *event.Entry) bool {
		n++
		last = e.Seq
		if len(e.Asset) == 0 || types.Covers(&k.key.Assets, e.Asset) {
			show(e)
		}
		return n < limit
	})
	return n, last, m, err
}

// export streams the statement up to the seq at the time of the request.
func (k *call) export(q statementQuery, seen types.Seq) error {
	k.Header()["X-As-Of-Seq"] = []string{strconv.FormatUint(uint64(seen), 10)}
	s := k.stream(q.kind)
	var part jsonObject
	if q.kind[0] == csvType[0] {
		part = append(part, csvHead...)
	}
	for after, left := q.after, q.limit; ; {
		limit := PartRows
		if q.limit > 0 {
			limit = min(limit, left)
		}
		var n int
		var last types.Seq
		var err error
		isRead := s.read(func() {
			n, last, _, err = k.walkEntries(q, after, limit, func(e *event.Entry) {
				switch {
				case e.Seq > seen:
				case q.kind[0] == csvType[0]:
					part = appendRow(part, q.account, e)
				default:
					part = append(part, '{')
					part.entryMembers(q.account, e)
					part = append(part, '}', '\n')
				}
			})
		})
		switch {
		case !isRead:
			return errCut
		case err != nil:
			return err
		}
		if err := s.send(part); err != nil {
			return err
		}
		after, left, part = last, left-n, part[:0]
		if n == 0 || q.limit > 0 && left == 0 || last >= seen {
			return nil
		}
		if s.endReason() != "" {
			return errCut
		}
	}
}

// entryMembers adds the members of an entry.
func (o *jsonObject) entryMembers(account string, e *event.Entry) {
	o.number("seq", uint64(e.Seq))
	o.txid("txid", e.ID)
	o.stamp("ts", e.At)
	o.text("op", entryOp(e))
	o.text("direction", direction(e))
	o.optionalText("asset", e.Asset)
	o.amount("amount_minor", e.Amount, false)
	o.amount("balance_minor", e.Balance, isIssuance(account))
	o.amount("held_minor", e.Held, false)
	o.optionalText("counterparty", e.Counterparty)
	o.hold("hold_id", e.Hold)
	if e.Nonce > 0 {
		o.number("nonce", uint64(e.Nonce))
	}
	o.optionalText("ref", e.Ref)
	o.optionalText("memo", e.Memo)
}

func entryOp(e *event.Entry) string {
	if e.Op == 0 {
		return "expire"
	}
	return e.Op.String()
}

// direction returns how the balance moved.
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

// isIssuance reports whether an account is an issuance account, whose balance is zero or negative.
func isIssuance(account string) bool {
	_, own := types.ReservedAsset(account)
	return own && account[0] == types.Issuance[0]
}

const csvHead = "seq,txid,ts,op,direction,asset,amount_minor,balance_minor,held_minor,other,hold_id,nonce,ref,memo\r\n"

// appendRow appends a row of CSV (RFC 4180).
func appendRow(to []byte, account string, e *event.Entry) []byte {
	id := receipt.TxID(e.ID)
	to = append(strconv.AppendUint(to, uint64(e.Seq), 10), ',')
	to = append(append(to, id[:]...), ',')
	to = append(receipt.Stamp(to, e.At), ',')
	to = append(append(append(to, entryOp(e)...), ','), direction(e)...)
	to = appendCell(append(to, ','), e.Asset)
	to = e.Amount.Append(append(to, ','))
	to = appendSigned(append(to, ','), e.Balance, isIssuance(account))
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

// appendCell appends a quoted text. If a spreadsheet could read it as a formula, an apostrophe is put before it.
// The same is done if it begins with an apostrophe, so that a leading apostrophe is always ours.
func appendCell(to []byte, s []byte) []byte {
	to = append(to, '"')
	if isFormula(s) {
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

// prefer returns the acceptable media type with the highest weight, or the first of kinds if none is accepted.
func prefer(accept []string, kinds ...[]string) []string {
	best, most := kinds[0], 0.0
	for _, header := range accept {
		for media := range mediaRanges(header) {
			for _, kind := range kinds {
				if media.includes(kind[0]) && media.q > most {
					best, most = kind, media.q
					break
				}
			}
		}
	}
	return best
}
