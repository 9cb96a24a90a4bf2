package httpapi

import (
	"context"
	"errors"
	"time"

	"macronode/core/command"
	"macronode/core/event"
	"macronode/core/types"
)

// money serves one operation.
func money(op event.Op) func(*call) error {
	return func(k *call) error {
		if err := k.enter(op.Scope()); err != nil {
			return err
		}
		key, err := k.idempotencyKey()
		if err != nil {
			return err
		}
		in, err := k.parse(op, key)
		if err != nil {
			return err
		}
		return k.submit(in)
	}
}

// idempotencyKey is what every operation wants, and no query.
func (k *call) idempotencyKey() (string, error) {
	keys := k.r.Header["Idempotency-Key"]
	switch {
	case len(keys) != 1:
		return "", because(event.BadRequest, "This operation needs exactly one Idempotency-Key.")
	case types.CheckKey(keys[0]) != nil:
		return "", wrong(types.ErrKey)
	case k.r.URL.RawQuery != "":
		return "", because(event.BadRequest, "This operation accepts no query.")
	}
	return keys[0], nil
}

// parse reads the body into a request that is an operation. The request owns its
// bytes: the node may read them after its caller has left.
func (k *call) parse(op event.Op, key string) (*event.Request, error) {
	body := takeBuffer()
	defer giveBuffer(body)
	switch bare, err := k.take(body); {
	case err != nil:
		return nil, err
	case bare && op != event.Release:
		return nil, problem(event.UnsupportedMedia)
	case op == event.Release && (bare || len(*body) == 0):
		*body = append((*body)[:0], '{', '}')
	}
	said := saying{op: op}
	if err := said.read(*body); err != nil {
		return nil, err
	}
	if err := k.place(&said); err != nil {
		return nil, err
	}
	p := &parcel{Request: event.Request{Header: command.Header{Caller: k.key.ID, Tenant: k.key.Tenant}}}
	text := append(p.room[:0], key...)
	p.Key.Text = text[:len(key):len(key)]
	if _, err := said.fill(&p.Item, text); err != nil {
		return nil, err
	}
	*body = p.Seal(*body)
	if err := p.Validate(); err != nil {
		return nil, because(event.BadRequest, named(&p.Item, err))
	}
	return &p.Request, nil
}

// take reads the body of a request, which is JSON. Bare is one that says of itself
// that there is nothing, and not what kind of.
func (k *call) take(body *[]byte) (bare bool, err error) {
	if k.r.ContentLength == 0 && len(k.r.Header["Content-Type"]) == 0 && len(k.r.Header["Content-Encoding"]) == 0 {
		return true, nil
	}
	if err := isJSON(k.r); err != nil {
		return false, err
	}
	if !small(k.r) {
		select {
		case k.large <- struct{}{}:
			k.lent = true
		default:
			return false, k.crowded("large_bodies", "As many large bodies are read as may be.")
		}
	}
	return false, read(k.r, metered{k}, body)
}

// place adds what the path says of an operation: its account, or its hold.
func (k *call) place(said *saying) (err error) {
	switch said.op {
	case event.Freeze, event.Unfreeze:
		said.from, err = k.account()
	case event.Capture, event.Release:
		if said.hold, err = k.holdID(); err == nil {
			said.from, said.asset, err = k.opened(said.hold)
		}
	default: // the body says all
	}
	return err
}

// A parcel is a request with room for the usual texts, in one allocation.
type parcel struct {
	event.Request
	room [256]byte
}

// submit lets the node decide, and answers with what it decided.
func (k *call) submit(in *event.Request) error {
	return k.decide(k.r.Context(), func(ctx context.Context) (event.Reply, bool) { return k.Node.Submit(ctx, in) })
}

// decide waits for a decision of the node until the deadline or the end of of, and answers with it.
func (k *call) decide(of context.Context, ask func(context.Context) (event.Reply, bool)) error {
	ctx, cancel := context.WithTimeout(of, k.Deadline)
	defer cancel()
	began := time.Now()
	reply, taken := ask(ctx)
	if !taken {
		return problem(event.Busy)
	}
	k.Meter.Decided(time.Since(began))
	switch {
	case reply.Position.LSN > 0:
	case reply.Problem == event.None:
		return errNoRecord
	default:
		return &refusal{problem: reply.Problem, nonce: reply.Nonce, item: int(reply.Item)}
	}
	if reply.Replayed {
		k.identify()
		k.Meter.Replayed()
		k.Header()["Idempotency-Replayed"] = isTrue
	} else {
		k.record(reply.Position)
		k.changed = true
	}
	if err := k.show(reply.Position); err != nil {
		return errors.Join(errNoRecord, err)
	}
	return nil
}
