package httpapi

import (
	"context"
	"errors"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"macronode/adapters/httpapi/wire"
	"macronode/core/event"
	"macronode/core/words"
)

// money serves one operation.
func money(op event.Op) func(*call) error {
	return func(k *call) error {
		if err := k.enter(op.Scope()); err != nil {
			return err
		}
		keys := k.r.Header["Idempotency-Key"]
		switch {
		case len(keys) != 1:
			return because(event.BadRequest, "This operation wants one Idempotency-Key.")
		case words.CheckKey(keys[0]) != nil:
			return wrong(words.ErrKey)
		case k.r.URL.RawQuery != "":
			return because(event.BadRequest, "This operation takes no query.")
		}
		if err := isJSON(k.r); err != nil {
			return err
		}
		in, err := k.parse(op, keys[0])
		if err != nil {
			return err
		}
		return k.submit(in)
	}
}

// parse reads the body into a request that is an operation. The request owns its
// bytes: the node may read them after its caller has left.
func (k *call) parse(op event.Op, key string) (*event.Request, error) {
	if !small(k.r) {
		select {
		case k.large <- struct{}{}:
			defer func() { <-k.large }()
		default:
			return nil, problem(event.Busy)
		}
	}
	body := takeBuffer()
	defer giveBuffer(body)
	if err := read(k.r, body); err != nil {
		return nil, err
	}
	var said wire.TransferRequest // has all that any operation says
	if err := decode(op, *body, &said); err != nil {
		return nil, err
	}
	amount, err := words.ParseAmount(said.AmountMinor)
	if err != nil {
		return nil, wrong(err)
	}
	p := &parcel{Request: event.Request{Caller: k.key.ID, Tenant: k.key.Tenant, Op: op, Amount: amount, Nonce: words.Nonce(said.Nonce)}}
	text := p.room[:0]
	for _, n := range [...]struct {
		to   *[]byte
		text string
	}{{&p.Key.Text, key}, {&p.From.Text, said.From}, {&p.To.Text, said.To}, {&p.Asset.Text, said.Asset}, {&p.Memo, said.Memo}} {
		from := len(text)
		text = append(text, n.text...)
		*n.to = text[from:len(text):len(text)]
	}
	*body = p.Seal(*body)
	if err := p.Check(); err != nil {
		return nil, wrong(err)
	}
	return &p.Request, nil
}

// A parcel is a request with room for the usual texts, in one allocation.
type parcel struct {
	event.Request
	room [256]byte
}

// submit lets the node decide, and answers with what it decided.
func (k *call) submit(in *event.Request) error {
	ctx, cancel := context.WithTimeout(k.r.Context(), k.Deadline)
	defer cancel()
	began := time.Now()
	reply, taken := k.Node.Submit(ctx, in)
	if !taken {
		return problem(event.Busy)
	}
	k.Meter.Decided(time.Since(began))
	switch {
	case reply.Place.LSN > 0:
	case reply.Problem == event.None:
		return errNoRecord
	default:
		return &refusal{problem: reply.Problem, nonce: reply.Nonce}
	}
	if reply.Replayed {
		k.identify()
		k.Meter.Replayed()
		k.Header()["Idempotency-Replayed"] = isTrue
	} else {
		k.record(reply.Place)
	}
	if err := k.show(reply.Place); err != nil {
		return errors.Join(errNoRecord, err)
	}
	return nil
}

// strict is how bodies are read: no member that is unknown, twice there, or of
// another case; no null; only UTF-8, and nothing behind it.
var strict = json.JoinOptions(
	json.RejectUnknownMembers(true),
	json.WithUnmarshalers(json.UnmarshalFromFunc(func(from *jsontext.Decoder, _ *string) error {
		if from.PeekKind() == 'n' {
			return errNull
		}
		return errors.ErrUnsupported
	})),
)

var errNull = errors.New("httpapi: null")

// decode reads a body of op. What op does not say stays empty.
func decode(op event.Op, body []byte, into *wire.TransferRequest) (err error) {
	switch op {
	case event.Issue:
		var said wire.IssueRequest
		err = json.Unmarshal(body, &said, strict)
		into.To, into.Asset, into.AmountMinor, into.Memo = said.To, said.Asset, said.AmountMinor, said.Memo
	case event.Burn:
		var said wire.BurnRequest
		err = json.Unmarshal(body, &said, strict)
		into.From, into.Asset, into.AmountMinor, into.Memo = said.From, said.Asset, said.AmountMinor, said.Memo
		into.Nonce = said.Nonce
	default:
		err = json.Unmarshal(body, into, strict)
	}
	if err == nil {
		return nil
	}
	detail := "The body is not the JSON that this operation takes."
	switch {
	case errors.Is(err, json.ErrUnknownName):
		detail = "The body has a member that this operation does not know."
	case errors.Is(err, jsontext.ErrDuplicateName):
		detail = "The body has a member twice."
	}
	return because(event.BadRequest, detail)
}
