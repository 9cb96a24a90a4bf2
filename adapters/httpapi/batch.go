package httpapi

import (
	"macronode/adapters/httpapi/wire"
	"macronode/core/command"
	"macronode/core/event"
	"macronode/core/types"
)

// ofItems are the scopes that an item may want.
const ofItems = event.ScopeIssue | event.ScopeTransfer | event.ScopeBurn | event.ScopeHold | event.ScopeCapture

// batch serves several operations as one.
func batch(k *call) error {
	if err := k.enter(0); err != nil {
		return err
	}
	if k.key.Scopes&ofItems == 0 {
		return problem(event.Forbidden) // before the body is read
	}
	key, err := k.idempotencyKey()
	if err != nil {
		return err
	}
	in, err := k.parseBatch(key)
	if err != nil {
		return err
	}
	return k.submit(in)
}

func (k *call) parseBatch(key string) (*event.Request, error) {
	body := takeBuffer()
	defer giveBuffer(body)
	if bare, err := k.take(body); err != nil || bare {
		if bare {
			err = problem(event.UnsupportedMedia)
		}
		return nil, err
	}
	var b struct {
		Atomic *bool            `json:"atomic"`
		Items  []wire.BatchItem `json:"items"`
	}
	if err := decode(*body, &b, strict); err != nil {
		return nil, err
	}
	if b.Atomic == nil {
		return nil, because(event.BadRequest, "atomic: must be true or false")
	}
	if len(b.Items) == 0 {
		return nil, because(event.BadRequest, "items: must be 1..1000 operations")
	}
	in, err := k.bundle(key, b.Items)
	if err != nil {
		return nil, err
	}
	in.Atomic = *b.Atomic
	*body = in.Seal(*body)
	if in.Validate() != nil {
		return nil, faulty(in)
	}
	return in, nil
}

// bundle makes a request of items, which owns its bytes.
func (k *call) bundle(key string, items []wire.BatchItem) (*event.Request, error) {
	said, size := make([]saying, len(items)), len(key)
	for i := range items {
		err := said[i].item(&items[i])
		if err == nil && said[i].hold != (types.TxID{}) {
			said[i].from, said[i].asset, err = k.opened(said[i].hold)
		}
		if err != nil {
			return nil, at(i, err)
		}
		size += said[i].size()
	}
	in := &event.Request{Header: command.Header{Caller: k.key.ID, Tenant: k.key.Tenant}, Item: event.Item{Op: event.Batch}, Items: make([]event.Item, len(items))}
	text := append(make([]byte, 0, size), key...)
	in.Key.Text = text[:len(key):len(key)]
	for i := range said {
		var err error
		if text, err = said[i].fill(&in.Items[i], text); err != nil {
			return nil, at(i, err)
		}
	}
	return in, nil
}

// at says of which item an error is.
func at(i int, err error) error {
	r := *reason(err)
	if r.problem == event.Internal {
		return err
	}
	r.item = i + 1
	return &r
}

// faulty finds the item for which a sealed batch is none.
func faulty(in *event.Request) error {
	for i := range in.Items {
		one := event.Request{Header: command.Header{Key: in.Key}, Item: in.Items[i]}
		if err := one.Validate(); err != nil {
			return at(i, because(event.BadRequest, named(&one.Item, err)))
		}
	}
	return wrong(event.ErrItems)
}

// has are the members that an item of each operation may have beside op.
func has(op event.Op) string {
	return [...]string{
		event.Issue:    " to asset amount_minor memo ref ",
		event.Transfer: " from to asset amount_minor nonce memo ref ",
		event.Burn:     " from asset amount_minor nonce memo ref ",
		event.Hold:     " from beneficiary asset amount_minor nonce expires_at memo ",
		event.Capture:  " hold_id to amount_minor ",
		event.Release:  " hold_id ",
	}[op]
}
