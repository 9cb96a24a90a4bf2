package httpapi

import (
	"macronode/adapters/httpapi/wire"
	"macronode/core/command"
	"macronode/core/event"
	"macronode/core/types"
)

// itemScopes are the scopes that items of a batch can need.
const itemScopes = event.ScopeIssue | event.ScopeTransfer | event.ScopeBurn | event.ScopeHold | event.ScopeCapture

// batch serves a batch of operations.
func batch(k *call) error {
	if err := k.requireScope(0); err != nil {
		return err
	}
	if k.key.Scopes&itemScopes == 0 {
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
	if isEmpty, err := k.readJSON(body); err != nil || isEmpty {
		if isEmpty {
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
		return nil, problemDetail(event.BadRequest, "atomic: must be true or false")
	}
	if len(b.Items) == 0 {
		return nil, problemDetail(event.BadRequest, "items: must be 1..1000 operations")
	}
	in, err := k.buildBatch(key, b.Items)
	if err != nil {
		return nil, err
	}
	in.Atomic = *b.Atomic
	*body = in.Seal(*body)
	if in.Validate() != nil {
		return nil, invalidItem(in)
	}
	return in, nil
}

// buildBatch returns a request of items. It owns its bytes.
func (k *call) buildBatch(key string, items []wire.BatchItem) (*event.Request, error) {
	fields, size := make([]operationBody, len(items)), len(key)
	for i := range items {
		err := fields[i].readItem(&items[i])
		if err == nil && fields[i].hold != (types.TxID{}) {
			fields[i].from, fields[i].asset, err = k.openedHold(fields[i].hold)
		}
		if err != nil {
			return nil, atItem(i, err)
		}
		size += fields[i].size()
	}
	in := &event.Request{Header: k.commandHeader(), Item: event.Item{Op: event.Batch}, Items: make([]event.Item, len(items))}
	text := append(make([]byte, 0, size), key...)
	in.Key.Text = text[:len(key):len(key)]
	for i := range fields {
		var err error
		if text, err = fields[i].toItem(&in.Items[i], text); err != nil {
			return nil, atItem(i, err)
		}
	}
	return in, nil
}

// atItem adds the index of an item to an error.
func atItem(i int, err error) error {
	r := *refusalOf(err)
	if r.problem == event.Internal {
		return err
	}
	r.item = i + 1
	return &r
}

// invalidItem returns the error of the first invalid item of a sealed batch.
func invalidItem(in *event.Request) error {
	for i := range in.Items {
		one := event.Request{Header: command.Header{Key: in.Key}, Item: in.Items[i]}
		if err := one.Validate(); err != nil {
			return atItem(i, problemDetail(event.BadRequest, describeInvalid(&one.Item, err)))
		}
	}
	return invalid(event.ErrItems)
}

// membersOf returns the members that an item of an operation can have beside op.
func membersOf(op event.Op) string {
	return [...]string{
		event.Issue:    " to asset amount_minor memo ref ",
		event.Transfer: " from to asset amount_minor nonce memo ref ",
		event.Burn:     " from asset amount_minor nonce memo ref ",
		event.Hold:     " from beneficiary asset amount_minor nonce expires_at memo ",
		event.Capture:  " hold_id to amount_minor ",
		event.Release:  " hold_id ",
	}[op]
}
