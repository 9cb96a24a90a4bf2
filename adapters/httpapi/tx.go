package httpapi

import (
	"errors"
	"net/http"

	"macronode/core/event"
	"macronode/core/receipt"
	"macronode/core/words"
)

var errNoQuery = because(event.BadRequest, "This resource takes no query.")

// openapi shows the contract.
func openapi(k *call) error {
	if k.r.URL.RawQuery != "" {
		return errNoQuery
	}
	k.identify()
	k.answer(http.StatusOK, jsonType, document)
	return nil
}

// tx shows what the record with a txid is.
func tx(k *call) error {
	if err := k.enter(event.MayRead); err != nil {
		return err
	}
	if k.r.URL.RawQuery != "" {
		return errNoQuery
	}
	journal, place, err := receipt.ParseTxID(k.params[0])
	if err != nil {
		return wrong(err)
	}
	if journal != k.Node.Journal() {
		return problem(event.NotFound)
	}
	k.identify()
	if err := k.show(place); !errors.Is(err, receipt.ErrNone) {
		return err
	}
	return problem(missing(k.Node.Status(), place))
}

// missing is why there is nothing at p: it may be what the journal has lost, or what
// is on its way to the disk.
func missing(s event.Status, p words.Place) event.Problem {
	switch {
	case s.Fault == event.Damaged && p.LSN > s.Folded:
		return event.Unavailable
	case s.Folded < p.LSN && p.LSN <= s.LSN:
		return event.Unknown
	default:
		return event.NotFound
	}
}

// show answers with the record at p: receipt.ErrNone where the caller has none there.
func (k *call) show(p words.Place) error {
	out := takeBuffer()
	defer giveBuffer(out)
	answer, status, owner, err := k.Books.Render((*out)[:0], p)
	*out = answer
	if err == nil && owner != k.key.Tenant {
		err = receipt.ErrNone
	}
	if err != nil {
		return err
	}
	kind := jsonType
	if status != http.StatusOK {
		kind = problemType
	}
	k.answer(status, kind, answer)
	return nil
}
