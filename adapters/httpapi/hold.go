package httpapi

import (
	"errors"

	"macronode/core/event"
	"macronode/core/types"
	"macronode/core/wallet/receipt"
)

var errHoldID = problemDetail(event.BadRequest, "hold_id: must be hold_ and 32 hexadecimal digits")

// holdID returns the hold ID of the path.
func (k *call) holdID() (types.TxID, error) {
	name, err := k.pathName()
	if err != nil {
		return types.TxID{}, err
	}
	id, err := receipt.ParseHoldID(name)
	if err != nil {
		return id, errHoldID
	}
	return id, nil
}

// openedHold returns the account and the asset of a hold. Captures and releases do not name them, and the state of
// the core has only their digests.
func (k *call) openedHold(id types.TxID) (from, asset string, err error) {
	var in event.Request
	_, err = k.ReadModel.RequestAt(id.Position(), &in)
	switch {
	case errors.Is(err, receipt.ErrNoAnswer) && id.Journal() == k.Node.Journal():
		return "", "", problem(missing(k.Node.Status(), id.Position()))
	case err != nil && !errors.Is(err, receipt.ErrNoAnswer):
		return "", "", err
	case err != nil, in.Op != event.Hold, in.Hold != id, in.Tenant != k.key.Tenant:
		return "", "", problem(event.NotFound)
	}
	return string(in.From.Text), string(in.Asset.Text), nil
}

// holds lists the holds of an account.
func holds(k *call) error {
	if err := k.requireScope(event.ScopeRead); err != nil {
		return err
	}
	var account string
	var after []byte
	var limit int
	var atLeast types.Seq
	state, any := event.HoldActive, true
	err := k.query(accountParam(&account, "account"), limitParam(&limit), seqParam(&atLeast, "min_seq"),
		param{"state", false, func(s string) (err error) { any = false; state, err = parseState(s); return err }},
		k.cursorParam(&after, ofHolds, func(b []byte) bool { return len(b) == len(types.TxID{}) }))
	if err == nil {
		err = k.requireCovered(account, "")
	}
	if err != nil {
		return err
	}
	seen, err := k.awaitCurrent(atLeast)
	if err != nil {
		return err
	}
	var from types.TxID
	copy(from[:], after)
	o := jsonObject{'{'}
	o.list("holds")
	var next types.TxID
	var mark event.Watermark
	err = k.readPage(limit, func() (err error) {
		var list []event.HoldView
		list, next, mark, err = k.Index.Holds(k.key.Tenant, []byte(account), state, any, from, limit, k.Index.Mark().At)
		for i := range list {
			if types.Covers(&k.key.Assets, list[i].Asset) {
				o.open()
				o.holdMembers(&list[i])
				o.close('}')
			}
		}
		return err
	})
	if err != nil {
		return err
	}
	o.close(']')
	if next != (types.TxID{}) {
		o.text("next_cursor", k.cursor(ofHolds, next[:]))
	}
	o.asOf(seen, mark)
	return k.send(o)
}

func parseState(s string) (event.HoldOutcome, error) {
	for state := event.HoldActive; state <= event.HoldExpired; state++ {
		if state.String() == s {
			return state, nil
		}
	}
	return 0, errors.New("state: must be active, captured, released or expired")
}

// getHold returns one hold.
func getHold(k *call) error {
	if err := k.requireScope(event.ScopeRead); err != nil {
		return err
	}
	id, err := k.holdID()
	if err != nil {
		return err
	}
	var atLeast types.Seq
	if err := k.query(seqParam(&atLeast, "min_seq")); err != nil {
		return err
	}
	if _, err := k.awaitCurrent(atLeast); err != nil {
		return err
	}
	h, found, err := k.Index.Hold(k.key.Tenant, id, k.Index.Mark().At) // the mark is durable, so the expiry is too
	switch {
	case err != nil:
		return err
	case !found && id.Journal() == k.Node.Journal():
		return problem(missing(k.Node.Status(), id.Position()))
	case !found:
		return problem(event.NotFound)
	}
	if err := k.requireCovered(string(h.From), string(h.Asset)); err != nil {
		return err
	}
	o := jsonObject{'{'}
	o.holdMembers(&h)
	return k.send(o)
}

// holdMembers adds the members of a hold.
func (o *jsonObject) holdMembers(h *event.HoldView) {
	o.hold("hold_id", h.ID)
	o.text("state", h.State.String())
	o.text("from", string(h.From))
	if len(h.To) > 0 {
		o.text("beneficiary", string(h.To))
	}
	o.text("asset", string(h.Asset))
	o.amount("amount_minor", h.Amount, false)
	o.amount("captured_minor", h.Captured, false)
	o.stamp("opened_at", h.Opened)
	o.stamp("expires_at", h.ExpiresAt)
	o.txid("opened_txid", h.ID)
	o.txid("ended_txid", h.EndedBy)
}
