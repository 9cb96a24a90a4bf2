package httpapi

import (
	"context"
	"net/http"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"macronode/core/event"
	"macronode/core/types"
	"macronode/core/wallet/receipt"
)

// An object is a JSON object on its way out, in the order that its members are added.
type object []byte

// member begins the next one.
func (o *object) member(name string) {
	if last := (*o)[len(*o)-1]; last != '{' && last != '[' {
		*o = append(*o, ',')
	}
	*o = append(append(append(*o, '"'), name...), '"', ':')
}

// list begins a list, open the next object in it.
func (o *object) list(name string) { o.member(name); *o = append(*o, '[') }
func (o *object) open() {
	if (*o)[len(*o)-1] == '}' {
		*o = append(*o, ',')
	}
	*o = append(*o, '{')
}
func (o *object) close(with ...byte) { *o = append(*o, with...) }

// text adds one of an alphabet that needs no escape.
func (o *object) text(name, s string) {
	o.member(name)
	*o = append(append(append(*o, '"'), s...), '"')
}

// texts adds a list of them.
func (o *object) texts(name string, all []string) {
	o.list(name)
	for i, s := range all {
		if i > 0 {
			*o = append(*o, ',')
		}
		*o = append(append(append(*o, '"'), s...), '"')
	}
	o.close(']')
}

// said adds a text if there is one.
func (o *object) said(name string, s []byte) {
	if len(s) > 0 {
		o.member(name)
		*o, _ = jsontext.AppendQuote([]byte(*o), s) // what is no UTF-8 was refused at the door
	}
}

func (o *object) amount(name string, a types.Amount, below bool) {
	o.member(name)
	*o = append(appendSigned(append(*o, '"'), a, below), '"')
}

func appendSigned(to []byte, a types.Amount, below bool) []byte {
	if below && !a.IsZero() {
		to = append(to, '-')
	}
	return a.Append(to)
}

func (o *object) number(name string, n uint64) {
	o.member(name)
	*o = strconv.AppendUint(*o, n, 10)
}

func (o *object) truth(name string, is bool) {
	o.member(name)
	*o = strconv.AppendBool(*o, is)
}

func (o *object) stamp(name string, t types.Time) {
	o.member(name)
	*o = append(receipt.Stamp(append(*o, '"'), t), '"')
}

// txid and hold name a record if there is one.
func (o *object) txid(name string, id types.TxID) {
	if id != (types.TxID{}) {
		t := receipt.TxID(id)
		o.text(name, string(t[:]))
	}
}

func (o *object) hold(name string, id types.TxID) {
	if id != (types.TxID{}) {
		t := receipt.HoldID(id)
		o.text(name, string(t[:]))
	}
}

// sight waits until the views count a movement, within the deadline, and returns the last one
// that they count: all up to there is counted, and more may be. If the movement is known and
// the views are only behind, as while the index is rebuilt, the caller may come back: 503. If it
// has not happened, the wait was in vain: 504.
func (k *call) sight(atLeast types.Seq) (types.Seq, error) {
	if k.Views == nil {
		return 0, problem(event.Unavailable)
	}
	seq := k.Views.Seq(k.key.Tenant)
	if seq >= atLeast {
		return seq, nil
	}
	ctx, cancel := context.WithTimeout(k.r.Context(), k.Deadline)
	defer cancel()
	if !k.Views.Await(ctx, k.key.Tenant, atLeast) {
		if atLeast <= k.Books.Seq(k.key.Tenant) {
			return 0, problem(event.Unavailable)
		}
		return 0, problem(event.Timeout)
	}
	return max(atLeast, k.Views.Seq(k.key.Tenant)), nil
}

// present is sight of all that the books count now, so that an answer shows whatever its caller
// may know.
func (k *call) present(atLeast types.Seq) (types.Seq, error) {
	return k.sight(max(atLeast, k.Books.Seq(k.key.Tenant)))
}

// asOf says how far an answer counts.
func (o *object) asOf(seq types.Seq, m event.Watermark) {
	o.number("as_of_seq", uint64(seq))
	o.stamp("as_of", m.At)
}

// send answers with an object, whose last } is still missing.
func (k *call) send(o object) error {
	k.identify()
	k.answer(http.StatusOK, jsonType, append(o, '}'))
	return nil
}
