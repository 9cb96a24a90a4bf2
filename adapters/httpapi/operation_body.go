package httpapi

import (
	"errors"
	"strings"

	"macronode/adapters/httpapi/wire"
	"macronode/core/event"
	"macronode/core/types"
)

// An operationBody is an operation parsed from a body. Missing members are zero.
type operationBody struct {
	op                      event.Op
	from, to, asset, amount string
	nonce                   int64
	until                   types.Time
	hold                    types.TxID
	ref, memo               string
}

// errReason means that a freeze needs a reason.
var errReason = problemDetail(event.BadRequest, "reason: must be 1..256 bytes of UTF-8 without control characters")

// read parses the body of s.op.
func (s *operationBody) read(body []byte) error {
	switch s.op {
	case event.Issue:
		var b wire.IssueRequest
		if err := decode(body, &b, strictFlat); err != nil {
			return err
		}
		s.to, s.asset, s.amount, s.memo = b.To, b.Asset, b.AmountMinor, b.Memo
		return setOptional(&s.ref, b.Ref, "ref")
	case event.Transfer:
		var b wire.TransferRequest
		if err := decode(body, &b, strictFlat); err != nil {
			return err
		}
		s.from, s.to, s.asset, s.amount, s.nonce, s.memo = b.From, b.To, b.Asset, b.AmountMinor, b.Nonce, b.Memo
		return setOptional(&s.ref, b.Ref, "ref")
	case event.Burn:
		var b wire.BurnRequest
		if err := decode(body, &b, strictFlat); err != nil {
			return err
		}
		s.from, s.asset, s.amount, s.nonce, s.memo = b.From, b.Asset, b.AmountMinor, b.Nonce, b.Memo
		return setOptional(&s.ref, b.Ref, "ref")
	case event.Hold:
		var b wire.HoldRequest
		if err := decode(body, &b, strict); err != nil {
			return err
		}
		s.from, s.asset, s.amount, s.nonce, s.memo = b.From, b.Asset, b.AmountMinor, b.Nonce, b.Memo
		s.until = types.Time(b.ExpiresAt.UnixMilli())
		return setOptional(&s.to, b.Beneficiary, "beneficiary")
	case event.Capture:
		var b wire.CaptureRequest
		if err := decode(body, &b, strict); err != nil {
			return err
		}
		s.to, s.amount = b.To, b.AmountMinor
		return nil
	case event.Freeze, event.Unfreeze:
		var b wire.FreezeRequest
		if err := decode(body, &b, strict); err != nil {
			return err
		}
		if s.memo = b.Reason; s.memo == "" {
			return errReason
		}
		return nil
	default: // a release has no members
		var b struct{}
		return decode(body, &b, strict)
	}
}

// setOptional sets an optional member, which must not be empty.
func setOptional(to *string, value *string, member string) error {
	if value == nil {
		return nil
	}
	if *to = *value; *value == "" {
		return problemDetail(event.BadRequest, member+": is empty")
	}
	return nil
}

// toItem sets item from s. The texts are appended to text.
func (s *operationBody) toItem(item *event.Item, text []byte) (grown []byte, err error) {
	*item = event.Item{Op: s.op, Nonce: types.Nonce(s.nonce), ExpiresAt: s.until, Hold: s.hold}
	if s.op <= event.Capture {
		if item.Amount, err = types.ParseAmount(s.amount); err != nil {
			return text, problemDetail(event.BadRequest, describeInvalid(item, err))
		}
	}
	for _, n := range [...]struct {
		to   *[]byte
		text string
	}{{&item.From.Text, s.from}, {&item.To.Text, s.to}, {&item.Asset.Text, s.asset}, {&item.Memo, s.memo}, {&item.Ref.Text, s.ref}} {
		from := len(text)
		text = append(text, n.text...)
		*n.to = text[from:len(text):len(text)]
	}
	return text, nil
}

func (s *operationBody) size() int {
	return len(s.from) + len(s.to) + len(s.asset) + len(s.memo) + len(s.ref)
}

// describeInvalid describes a validation error by the names of the members in the body.
func describeInvalid(item *event.Item, err error) string {
	from, to, memo := "from", "to", "memo"
	switch item.Op {
	case event.Hold:
		to = "beneficiary"
	case event.Freeze, event.Unfreeze:
		from, memo = "account", "reason"
	default: // their names are the same
	}
	_, why, _ := strings.Cut(err.Error(), ": ")
	switch {
	case errors.Is(err, types.ErrAccount), errors.Is(err, types.ErrReserved):
		if item.Op == event.Issue || types.CheckUserAccount(item.From.Text) == nil {
			return to + ": " + why
		}
		return from + ": " + why
	case errors.Is(err, types.ErrAmount), errors.Is(err, event.ErrAmount):
		return "amount_minor: must be a whole number of at most 128 bits, more than 0, without sign and leading zeros"
	case errors.Is(err, types.ErrMemo):
		return memo + ": " + why
	case errors.Is(err, event.ErrNonce):
		return "nonce: must be 1..2^53-1"
	case errors.Is(err, event.ErrSelf):
		return to + ": is the account that it comes from"
	case errors.Is(err, event.ErrExpiry):
		return "expires_at: must be a time"
	default: // the names of asset and ref are the same
		return err.Error()
	}
}
