package httpapi

import (
	"cmp"
	"errors"
	"net/http"
	"strconv"
	"time"

	"macronode/core/event"
	"macronode/core/types"
	"macronode/core/wallet/receipt"
)

// A balanceQuery names a balance.
type balanceQuery struct {
	account, asset string
	atLeast        types.Seq
}

func balance(k *call) error {
	if err := k.requireScope(event.ScopeRead); err != nil {
		return err
	}
	var q balanceQuery
	if err := k.query(accountParam(&q.account, "account"), assetParam(&q.asset), seqParam(&q.atLeast, "min_seq")); err != nil {
		return err
	}
	if err := k.requireCovered(q.account, q.asset); err != nil {
		return err
	}
	if q.atLeast > 0 {
		ctx, cancel := k.waiting(k.Deadline)
		defer cancel()
		if !k.ReadModel.AwaitSeq(ctx, k.key.Tenant, q.atLeast) {
			return cmp.Or(k.lossError(), problem(event.Timeout))
		}
	}
	k.identify()
	b := k.ReadModel.Balance(k.key.Tenant, []byte(q.account), []byte(q.asset))
	out := takeBuffer()
	defer giveBuffer(out)
	*out = appendBalance((*out)[:0], q, &b, staleMillis(k.Node.Status(), &b))
	k.answer(http.StatusOK, jsonType, *out)
	return nil
}

// staleMillis returns an upper bound of the age of b in milliseconds. It is 0 if all decided frames are applied.
func staleMillis(s event.Status, b *event.Balance) int64 {
	if s.Applied >= s.LSN && s.Fault != event.Damaged {
		return 0
	}
	return int64(max(0, s.At-b.At))
}

// appendBalance appends a balance as JSON. Its texts need no escape.
func appendBalance(to []byte, q balanceQuery, b *event.Balance, stale int64) []byte {
	to = append(append(append(to, `{"account":"`...), q.account...), `","asset":"`...)
	to = append(append(to, q.asset...), `","amount_minor":"`...)
	if b.Negative {
		to = append(to, '-')
	}
	to = append(b.Amount.Append(to), `","held_minor":"`...)
	to = append(b.Held.Append(to), `","available_minor":"`...)
	if b.Negative {
		to = append(to, '-')
	}
	to = append(b.Available.Append(to), `","as_of_seq":`...)
	to = append(strconv.AppendUint(to, uint64(b.AsOf), 10), `,"as_of":"`...)
	to = append(receipt.Stamp(to, b.At), `","stale_ms":`...)
	to = append(strconv.AppendInt(to, stale, 10), `,"next_nonce":`...)
	return append(strconv.AppendUint(to, uint64(b.NextNonce), 10), '}')
}

var (
	errPoint      = problemDetail(event.BadRequest, "Set exactly one of seq and time.")
	errTime       = errors.New("must be a time as in RFC 3339, from 1970 on")
	errFutureTime = problemDetail(event.BadRequest, "time: must be in the past")
)

// A pointInTime selects a past balance: a time, or a seq if the time is 0.
type pointInTime struct {
	seq types.Seq
	at  types.Time
}

// balanceAt returns the balance of an account at a point in time.
func balanceAt(k *call) error {
	if err := k.requireScope(event.ScopeRead); err != nil {
		return err
	}
	account, err := k.account()
	if err != nil {
		return err
	}
	var asset string
	when, points := pointInTime{}, 0
	err = k.query(assetParam(&asset),
		param{"seq", false, func(s string) (err error) { points++; when.seq, err = parseSeq(s, "seq"); return err }},
		param{"time", false, func(s string) error { points++; return readLaterTime("time", s, &when.at) }})
	if err != nil {
		return err
	}
	if points != 1 {
		return errPoint
	}
	if err := k.requireCovered(account, asset); err != nil {
		return err
	}
	b, err := k.balanceAtPoint([]byte(account), []byte(asset), when)
	if err != nil {
		return err
	}
	o := jsonObject{'{'}
	o.text("account", account)
	o.text("asset", asset)
	o.amount("amount_minor", b.Amount, b.Negative)
	o.amount("held_minor", b.Held, false)
	o.amount("available_minor", b.Available, b.Negative)
	o.number("as_of_seq", uint64(b.AsOf))
	o.stamp("as_of", max(b.At, when.at))
	return k.send(o)
}

// balanceAtPoint waits until the balance at that point can no longer change.
func (k *call) balanceAtPoint(account, asset []byte, when pointInTime) (b event.Balance, err error) {
	known := false
	if when.at == 0 {
		if _, err = k.awaitSeq(when.seq); err == nil {
			b, known, err = k.Index.BalanceAt(k.key.Tenant, account, asset, when.seq)
		}
	} else if at, err := k.awaitTime(when.at); err != nil {
		return b, err
	} else {
		b, known, err = k.Index.BalanceAtTime(k.key.Tenant, account, asset, at)
		if err != nil {
			return b, err
		}
	}
	if err == nil && !known {
		err = problem(event.Timeout)
	}
	return b, err
}

// awaitTime waits until the index has all frames up to at, and returns the time of the last.
func (k *call) awaitTime(at types.Time) (types.Time, error) {
	s := k.Node.Status()
	if at >= s.At {
		return 0, errFutureTime
	}
	if _, err := k.awaitCurrent(0); err != nil {
		return 0, err
	}
	mark := k.Index.Mark()
	if at >= mark.At && mark.LSN < s.LSN {
		return 0, problem(event.Timeout) // frames that are not yet durable may have that time
	}
	return min(at, mark.At), nil
}

// parseTime parses a time and truncates it to milliseconds. The begin of 1970 is 0.
func parseTime(s string) (types.Time, error) {
	var t time.Time
	if t.UnmarshalText([]byte(s)) != nil || t.UnixMilli() < 0 {
		return 0, errTime
	}
	return types.Time(t.UnixMilli()), nil
}
