package httpapi

import (
	"context"
	"errors"

	"macronode/core/digest"
	"macronode/core/event"
	"macronode/core/types"
	"macronode/core/wallet/receipt"
)

// openapi returns the document.
func openapi(k *call) error {
	if k.r.URL.RawQuery != "" {
		return errNoQuery
	}
	k.identify()
	k.answer(200, jsonType, k.document)
	return nil
}

// tx returns the record with a txid.
func tx(k *call) error {
	if err := k.requireScope(event.ScopeRead); err != nil {
		return err
	}
	if k.r.URL.RawQuery != "" {
		return errNoQuery
	}
	id, err := receipt.ParseTxID(k.params[0])
	if err != nil {
		return invalid(err)
	}
	return k.sendRecordAt(id.Position(), id.Journal())
}

// lookupTx returns the outcome of a ref or of an idempotency key.
func lookupTx(k *call) error {
	if err := k.requireScope(event.ScopeRead); err != nil {
		return err
	}
	var ref, key string
	err := k.query(param{"ref", false, func(s string) error { ref = s; return types.CheckRef(s) }},
		param{"idempotency_key", false, func(s string) error { key = s; return types.CheckKey(s) }})
	if err != nil {
		return err
	}
	if (ref == "") == (key == "") {
		return problemDetail(event.BadRequest, "Set exactly one of ref and idempotency_key.")
	}
	if key != "" {
		p, err := k.findOutcome(key)
		if err != nil {
			return err
		}
		return k.sendRecordAt(p, 0)
	}
	if _, err := k.awaitCurrent(0); err != nil {
		return err
	}
	id, found, err := k.Index.Ref(k.key.Tenant, digest.Name([]byte(ref)))
	if err == nil && !found {
		err = k.noOutcome()
	}
	if err != nil {
		return err
	}
	return k.sendRecordAt(id.Position(), id.Journal())
}

// findOutcome returns the position of the outcome of an idempotency key.
func (k *call) findOutcome(key string) (types.Position, error) {
	ctx, cancel := context.WithTimeout(k.r.Context(), k.Deadline)
	defer cancel()
	name := types.Name{ID: digest.Name([]byte(key)), Text: []byte(key)}
	reply, taken := k.Node.Find(ctx, &event.FindOutcome{Permit: k.permit, Caller: k.key.ID, Tenant: k.key.Tenant, Key: name})
	switch {
	case !taken:
		return types.Position{}, problem(event.Busy)
	case reply.Position.LSN > 0:
		return reply.Position, nil
	case reply.Problem == event.None:
		return types.Position{}, errNoRecord
	case reply.Problem == event.NotFound:
		return types.Position{}, k.noOutcome()
	default:
		return types.Position{}, problem(reply.Problem)
	}
}

// noOutcome returns the problem for a ref or a key that is not found. A damaged journal may have lost the write.
func (k *call) noOutcome() error {
	if k.Node.Status().Fault == event.Damaged {
		return problemDetail(event.Unavailable, "Not found, but the journal has lost frames: the write may have been acknowledged.")
	}
	return problem(event.NotFound)
}

// sendRecordAt answers with the record at p of a journal, if the key may see it. If journal is 0, any journal
// matches.
func (k *call) sendRecordAt(p types.Position, journal types.JournalID) error {
	var in event.Request
	of, err := k.ReadModel.RequestAt(p, &in)
	switch {
	case errors.Is(err, receipt.ErrNoAnswer):
	case err != nil:
		return err
	case journal != 0 && of != journal, in.Tenant != k.key.Tenant:
		return problem(event.NotFound)
	case !k.maySee(&in):
		return problem(event.Forbidden)
	default:
		k.identify()
		err = k.sendRecord(p)
	}
	if !errors.Is(err, receipt.ErrNoAnswer) {
		return err
	}
	if journal != 0 && journal != k.Node.Journal() {
		return problem(event.NotFound)
	}
	return problem(missing(k.Node.Status(), p))
}

// missing returns the problem for a position without a record: the journal may have lost it, or it may not be
// durable yet.
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
