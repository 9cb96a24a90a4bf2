package httpapi

import (
	"context"
	"errors"
	"time"

	"macronode/core/event"
	"macronode/core/types"
)

// serveOperation returns the handler of an operation.
func serveOperation(op event.Op) func(*call) error {
	return func(k *call) error {
		if err := k.requireScope(op.Scope()); err != nil {
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

// idempotencyKey returns the idempotency key, which operations require. They accept no query.
func (k *call) idempotencyKey() (string, error) {
	keys := k.r.Header["Idempotency-Key"]
	switch {
	case len(keys) != 1:
		return "", problemDetail(event.BadRequest, "This operation needs exactly one Idempotency-Key.")
	case types.CheckKey(keys[0]) != nil:
		return "", invalid(types.ErrKey)
	case k.r.URL.RawQuery != "":
		return "", problemDetail(event.BadRequest, "This operation accepts no query.")
	}
	return keys[0], nil
}

// parse parses the body into a request. The request owns its bytes, because the node may read them after the
// caller has left.
func (k *call) parse(op event.Op, key string) (*event.Request, error) {
	body := takeBuffer()
	defer giveBuffer(body)
	switch isEmpty, err := k.readJSON(body); {
	case err != nil:
		return nil, err
	case isEmpty && op != event.Release:
		return nil, problem(event.UnsupportedMedia)
	case op == event.Release && (isEmpty || len(*body) == 0):
		*body = append((*body)[:0], '{', '}')
	}
	fields := operationBody{op: op}
	if err := fields.read(*body); err != nil {
		return nil, err
	}
	if err := k.addPathFields(&fields); err != nil {
		return nil, err
	}
	p := &requestBuf{Request: event.Request{Header: k.commandHeader()}}
	text := append(p.texts[:0], key...)
	p.Key.Text = text[:len(key):len(key)]
	if _, err := fields.toItem(&p.Item, text); err != nil {
		return nil, err
	}
	*body = p.Seal(*body)
	if err := p.Validate(); err != nil {
		return nil, problemDetail(event.BadRequest, describeInvalid(&p.Item, err))
	}
	return &p.Request, nil
}

// readJSON reads the body. isEmpty means that there is no body and no media type.
func (k *call) readJSON(body *[]byte) (isEmpty bool, err error) {
	if k.r.ContentLength == 0 && len(k.r.Header["Content-Type"]) == 0 && len(k.r.Header["Content-Encoding"]) == 0 {
		return true, nil
	}
	if err := checkJSON(k.r); err != nil {
		return false, err
	}
	return false, k.readBody(body)
}

// readBody reads the body. A large one needs a slot.
func (k *call) readBody(body *[]byte) error {
	if !hasSmallBody(k.r) {
		if err := k.takeLargeSlot("As many large bodies are read as may be."); err != nil {
			return err
		}
	}
	return readBody(k.r, metered{k}, body)
}

// addPathFields adds the account or the hold that the path names.
func (k *call) addPathFields(fields *operationBody) (err error) {
	switch fields.op {
	case event.Freeze, event.Unfreeze:
		fields.from, err = k.account()
	case event.Capture, event.Release:
		if fields.hold, err = k.holdID(); err == nil {
			fields.from, fields.asset, err = k.openedHold(fields.hold)
		}
	default: // all fields are in the body
	}
	return err
}

// A requestBuf is a request and a buffer for its texts, in one allocation.
type requestBuf struct {
	event.Request
	texts [256]byte
}

// submit submits a request and answers with the outcome.
func (k *call) submit(in *event.Request) error {
	return k.decide(k.r.Context(), func(ctx context.Context) (event.Reply, bool) { return k.submitRequest(ctx, in) })
}

// decide runs ask until the deadline, or until parent is cancelled, and answers with the outcome.
func (k *call) decide(parent context.Context, ask func(context.Context) (event.Reply, bool)) error {
	reply, err := k.outcome(parent, ask)
	if err != nil {
		return err
	}
	if reply.Replayed {
		k.identify()
		k.Header()["Idempotency-Replayed"] = isTrue
	} else {
		k.record(reply.Position)
	}
	if err := k.sendRecord(reply.Position); err != nil {
		return errors.Join(errNoRecord, err)
	}
	return nil
}

// outcome runs ask until the deadline, or until parent is cancelled. A problem is an error.
func (k *call) outcome(parent context.Context, ask func(context.Context) (event.Reply, bool)) (event.Reply, error) {
	ctx, cancel := context.WithTimeout(parent, k.Deadline)
	defer cancel()
	began := time.Now()
	reply, taken := ask(ctx)
	if !taken {
		return reply, problem(event.Busy)
	}
	k.Meter.Decided(time.Since(began))
	switch {
	case reply.Position.LSN > 0:
	case reply.Problem == event.None:
		return reply, errNoRecord
	case reply.Problem == event.BadRequest && reply.Item > 0: // all else that is wrong with an item was found before
		return reply, &refusal{problem: reply.Problem, item: int(reply.Item), detail: "ref: is the ref of an earlier item of this batch"}
	default:
		return reply, &refusal{problem: reply.Problem, nonce: reply.Nonce, item: int(reply.Item), detail: reply.Shortage.Detail()}
	}
	if reply.Replayed {
		k.Meter.Replayed()
	} else {
		k.isFirst = true
	}
	return reply, nil
}
