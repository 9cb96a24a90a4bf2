package httpapi

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"

	"macronode/core/event"
	"macronode/core/types"
	"macronode/core/wallet/receipt"
)

// A question is what a balance is asked of.
type question struct {
	account, asset string
	atLeast        types.Seq
}

func balance(k *call) error {
	if err := k.enter(event.ScopeRead); err != nil {
		return err
	}
	var q question
	if err := k.query(accountParam(&q.account, "account"), assetParam(&q.asset), seqParam(&q.atLeast, "min_seq")); err != nil {
		return err
	}
	if err := k.covers(q.account, q.asset); err != nil {
		return err
	}
	if q.atLeast > 0 {
		ctx, cancel := context.WithTimeout(k.r.Context(), k.Deadline)
		defer cancel()
		if !k.Books.AwaitSeq(ctx, k.key.Tenant, q.atLeast) {
			return problem(event.Timeout)
		}
	}
	k.identify()
	b := k.Books.Balance(k.key.Tenant, []byte(q.account), []byte(q.asset))
	out := takeBuffer()
	defer giveBuffer(out)
	*out = tally((*out)[:0], q, &b, stale(k.Node.Status(), &b))
	k.answer(http.StatusOK, jsonType, *out)
	return nil
}

// stale is how old b may be at most, in milliseconds: nothing, while all that was
// decided is counted.
func stale(s event.Status, b *event.Balance) int64 {
	if s.Applied >= s.LSN && s.Fault != event.Damaged {
		return 0
	}
	return int64(max(0, s.At-b.At))
}

// tally writes a balance. No text in it needs an escape.
func tally(to []byte, q question, b *event.Balance, stale int64) []byte {
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
	errPoint = because(event.BadRequest, "Set exactly one of seq and time.")
	errTime  = errors.New("time: must be RFC 3339, from 1970 on")
	errOver  = because(event.BadRequest, "time: must be in the past")
)

// A past is when a balance is asked for: a time, where there is one, or a seq.
type past struct {
	seq types.Seq
	at  types.Time
}

// balanceAt shows what an account had.
func balanceAt(k *call) error {
	if err := k.enter(event.ScopeRead); err != nil {
		return err
	}
	account, err := k.account()
	if err != nil {
		return err
	}
	var asset string
	when, points := past{}, 0
	err = k.query(assetParam(&asset),
		param{"seq", false, func(s string) (err error) { points++; when.seq, err = parseSeq(s, "seq"); return err }},
		param{"time", false, func(s string) (err error) { points++; when.at, err = parseTime(s); return err }})
	if err != nil {
		return err
	}
	if points != 1 {
		return errPoint
	}
	if err := k.covers(account, asset); err != nil {
		return err
	}
	b, err := k.balanceThen([]byte(account), []byte(asset), when)
	if err != nil {
		return err
	}
	o := object{'{'}
	o.text("account", account)
	o.text("asset", asset)
	o.amount("amount_minor", b.Amount, b.Negative)
	o.amount("held_minor", b.Held, false)
	o.amount("available_minor", b.Available, b.Negative)
	o.number("as_of_seq", uint64(b.AsOf))
	o.stamp("as_of", max(b.At, when.at))
	return k.send(o)
}

// balanceThen waits until nothing can change any more what there was.
func (k *call) balanceThen(account, asset []byte, when past) (b event.Balance, err error) {
	known := false
	if when.at == 0 {
		if _, err = k.sight(when.seq); err == nil {
			b, known, err = k.Views.BalanceAt(k.key.Tenant, account, asset, when.seq)
		}
	} else if at, err := k.settled(when.at); err != nil {
		return b, err
	} else {
		b, known, err = k.Views.BalanceAtTime(k.key.Tenant, account, asset, at)
		if err != nil {
			return b, err
		}
	}
	if err == nil && !known {
		err = problem(event.Timeout)
	}
	return b, err
}

// settled is the last time up to at that has frames, once all of those are in the views.
func (k *call) settled(at types.Time) (types.Time, error) {
	s := k.Node.Status()
	if at >= s.At {
		return 0, errOver
	}
	if _, err := k.present(0); err != nil {
		return 0, err
	}
	mark := k.Views.Mark()
	if at >= mark.At && mark.LSN < s.LSN {
		return 0, problem(event.Timeout) // frames that are on their way may be of that time
	}
	return min(at, mark.At), nil
}

// parseTime reads a time. What is less than a millisecond is lost.
func parseTime(s string) (types.Time, error) {
	var t time.Time
	if t.UnmarshalText([]byte(s)) != nil || t.UnixMilli() <= 0 {
		return 0, errTime
	}
	return types.Time(t.UnixMilli()), nil
}
