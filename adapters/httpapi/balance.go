package httpapi

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strconv"

	"macronode/core/event"
	"macronode/core/receipt"
	"macronode/core/words"
)

// A question is what a balance is asked of.
type question struct {
	account, asset string
	atLeast        words.Seq
}

func balance(k *call) error {
	if err := k.enter(event.MayRead); err != nil {
		return err
	}
	q, err := ask(k.r.URL.RawQuery)
	if err != nil {
		return err
	}
	if q.atLeast > 0 {
		ctx, cancel := context.WithTimeout(k.r.Context(), k.Deadline)
		defer cancel()
		if !k.Books.AwaitSeq(ctx, k.key.Tenant, q.atLeast) {
			return problem(event.Deadline)
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

var (
	errQuery = because(event.BadRequest, "The query is not account, asset and perhaps at_least, each once.")
	errSeq   = errors.New("at_least: wants 0..2^53-1")
)

// ask reads a query: every parameter known, none twice.
func ask(raw string) (q question, err error) {
	values, err := url.ParseQuery(raw)
	if err != nil {
		return q, errQuery
	}
	known := 0
	for _, p := range [...]struct {
		name string
		read func(string) error
	}{
		{"account", func(s string) error { q.account = s; return words.CheckAccount(s) }},
		{"asset", func(s string) error { q.asset = s; return words.CheckAsset(s) }},
		{"at_least", func(s string) (err error) { q.atLeast, err = parseSeq(s); return err }},
	} {
		switch said := values[p.name]; {
		case len(said) == 0 && p.name == "at_least":
		case len(said) != 1:
			return q, errQuery
		default:
			known++
			if err := p.read(said[0]); err != nil {
				return q, wrong(err)
			}
		}
	}
	if known != len(values) {
		return q, errQuery
	}
	return q, nil
}

// parseSeq reads a number in its one canonical form.
func parseSeq(s string) (words.Seq, error) {
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil || n > words.MaxNonce || strconv.FormatUint(n, 10) != s {
		return 0, errSeq
	}
	return words.Seq(n), nil
}

// stale is how old b may be at most, in milliseconds: nothing, while all that was
// decided is counted.
func stale(s event.Status, b *event.Balance) int64 {
	if s.Folded >= s.LSN && s.Fault != event.Damaged {
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
	return append(strconv.AppendUint(to, uint64(b.Next), 10), '}')
}
