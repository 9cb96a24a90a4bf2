package httpapi

import (
	"context"
	"errors"

	"macronode/core/digest"
	"macronode/core/event"
	"macronode/core/types"
	"macronode/core/wallet/receipt"
)

// openapi shows the contract.
func openapi(k *call) error {
	if k.r.URL.RawQuery != "" {
		return errNoQuery
	}
	k.identify()
	k.answer(200, jsonType, document)
	return nil
}

// tx shows what the record with a txid is.
func tx(k *call) error {
	if err := k.enter(event.ScopeRead); err != nil {
		return err
	}
	if k.r.URL.RawQuery != "" {
		return errNoQuery
	}
	id, err := receipt.ParseTxID(k.params[0])
	if err != nil {
		return wrong(err)
	}
	return k.look(id.Position(), id.Journal())
}

// lookupTx shows what became of a ref, or of an idempotency key.
func lookupTx(k *call) error {
	if err := k.enter(event.ScopeRead); err != nil {
		return err
	}
	var ref, key string
	err := k.query(param{"ref", false, func(s string) error { ref = s; return types.CheckRef(s) }},
		param{"idempotency_key", false, func(s string) error { key = s; return types.CheckKey(s) }})
	if err != nil {
		return err
	}
	if (ref == "") == (key == "") {
		return because(event.BadRequest, "Set exactly one of ref and idempotency_key.")
	}
	if key != "" {
		p, err := k.outcome(key)
		if err != nil {
			return err
		}
		return k.look(p, 0)
	}
	if _, err := k.present(0); err != nil {
		return err
	}
	id, found, err := k.Views.Ref(k.key.Tenant, digest.Name([]byte(ref)))
	if err == nil && !found {
		err = problem(event.NotFound)
	}
	if err != nil {
		return err
	}
	return k.look(id.Position(), id.Journal())
}

// outcome is where the node has what became of an idempotency key.
func (k *call) outcome(key string) (types.Position, error) {
	ctx, cancel := context.WithTimeout(k.r.Context(), k.Deadline)
	defer cancel()
	name := types.Name{ID: digest.Name([]byte(key)), Text: []byte(key)}
	reply, taken := k.Node.Find(ctx, &event.FindOutcome{Caller: k.key.ID, Tenant: k.key.Tenant, Key: name})
	switch {
	case !taken:
		return types.Position{}, problem(event.Busy)
	case reply.Position.LSN > 0:
		return reply.Position, nil
	case reply.Problem == event.None:
		return types.Position{}, errNoRecord
	default:
		return types.Position{}, problem(reply.Problem)
	}
}

// look answers with the record at p of a journal, if the key covers it; of any journal
// where it is 0.
func (k *call) look(p types.Position, journal types.JournalID) error {
	var in event.Request
	of, err := k.Books.Asked(p, &in)
	switch {
	case errors.Is(err, receipt.ErrNoAnswer):
	case err != nil:
		return err
	case journal != 0 && of != journal, in.Tenant != k.key.Tenant:
		return problem(event.NotFound)
	case !k.sees(&in):
		return problem(event.Forbidden)
	default:
		k.identify()
		err = k.show(p)
	}
	if !errors.Is(err, receipt.ErrNoAnswer) {
		return err
	}
	if journal != 0 && journal != k.Node.Journal() {
		return problem(event.NotFound)
	}
	return problem(missing(k.Node.Status(), p))
}

// missing is why there is nothing at p: it may be what the journal has lost, or what
// is on its way to the disk.
func missing(s event.Status, p types.Position) event.Problem {
	switch {
	case s.Fault == event.Damaged && p.LSN > s.Applied:
		return event.Unavailable
	case s.Applied < p.LSN && p.LSN <= s.LSN:
		return event.OutcomeUnknown
	default:
		return event.NotFound
	}
}
