package httpapi

import (
	"net/http"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"macronode/core/event"
	"macronode/core/types"
	"macronode/core/wallet/receipt"
)

// A jsonObject is a JSON object that is being written, member by member.
type jsonObject []byte

// member begins a member.
func (o *jsonObject) member(name string) {
	if last := (*o)[len(*o)-1]; last != '{' && last != '[' {
		*o = append(*o, ',')
	}
	*o = append(append(append(*o, '"'), name...), '"', ':')
}

// list begins a list; open begins an object in it.
func (o *jsonObject) list(name string) { o.member(name); *o = append(*o, '[') }
func (o *jsonObject) open() {
	if (*o)[len(*o)-1] == '}' {
		*o = append(*o, ',')
	}
	*o = append(*o, '{')
}
func (o *jsonObject) close(with ...byte) { *o = append(*o, with...) }

// text adds a string that needs no escape.
func (o *jsonObject) text(name, s string) {
	o.member(name)
	*o = append(append(append(*o, '"'), s...), '"')
}

// texts adds a list of strings that need no escape.
func (o *jsonObject) texts(name string, all []string) {
	o.list(name)
	for i, s := range all {
		if i > 0 {
			*o = append(*o, ',')
		}
		*o = append(append(append(*o, '"'), s...), '"')
	}
	o.close(']')
}

// optionalText adds a string unless it is empty.
func (o *jsonObject) optionalText(name string, s []byte) {
	if len(s) > 0 {
		o.member(name)
		*o, _ = jsontext.AppendQuote([]byte(*o), s) // invalid UTF-8 was rejected before
	}
}

func (o *jsonObject) amount(name string, a types.Amount, isNegative bool) {
	o.member(name)
	*o = append(appendSigned(append(*o, '"'), a, isNegative), '"')
}

func appendSigned(to []byte, a types.Amount, isNegative bool) []byte {
	if isNegative && !a.IsZero() {
		to = append(to, '-')
	}
	return a.Append(to)
}

func (o *jsonObject) number(name string, n uint64) {
	o.member(name)
	*o = strconv.AppendUint(*o, n, 10)
}

func (o *jsonObject) boolean(name string, is bool) {
	o.member(name)
	*o = strconv.AppendBool(*o, is)
}

func (o *jsonObject) stamp(name string, t types.Time) {
	o.member(name)
	*o = append(receipt.Stamp(append(*o, '"'), t), '"')
}

// txid and hold add the ID of a record unless it is zero.
func (o *jsonObject) txid(name string, id types.TxID) {
	if id != (types.TxID{}) {
		t := receipt.TxID(id)
		o.text(name, string(t[:]))
	}
}

func (o *jsonObject) hold(name string, id types.TxID) {
	if id != (types.TxID{}) {
		t := receipt.HoldID(id)
		o.text(name, string(t[:]))
	}
}

// awaitSeq waits until the index has a movement, at most until the deadline, and returns the last movement of the
// index. If the read model has the movement and the index is behind, as while it is rebuilt, the error is 503. If
// the movement has not happened, it is 504.
func (k *call) awaitSeq(atLeast types.Seq) (types.Seq, error) {
	if k.Index == nil {
		return 0, problem(event.Unavailable)
	}
	seq := k.Index.Seq(k.key.Tenant)
	if seq >= atLeast {
		return seq, nil
	}
	ctx, cancel := k.waiting(k.Deadline)
	defer cancel()
	if !k.Index.Await(ctx, k.key.Tenant, atLeast) {
		if err := k.lossError(); err != nil {
			return 0, err
		}
		if atLeast <= k.ReadModel.Seq(k.key.Tenant) {
			return 0, problem(event.Unavailable)
		}
		return 0, problem(event.Timeout)
	}
	return max(atLeast, k.Index.Seq(k.key.Tenant)), nil
}

// awaitCurrent is awaitSeq for all movements of the read model, so that a response includes everything its caller
// may know.
func (k *call) awaitCurrent(atLeast types.Seq) (types.Seq, error) {
	return k.awaitSeq(max(atLeast, k.ReadModel.Seq(k.key.Tenant)))
}

// asOf adds the position of a response.
func (o *jsonObject) asOf(seq types.Seq, m event.Watermark) {
	o.number("as_of_seq", uint64(seq))
	o.stamp("as_of", m.At)
}

// send answers with an object, whose last } is still missing.
func (k *call) send(o jsonObject) error {
	k.identify()
	k.answer(http.StatusOK, jsonType, append(o, '}'))
	return nil
}
