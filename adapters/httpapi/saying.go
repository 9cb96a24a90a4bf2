package httpapi

import (
	"errors"
	"strings"

	"macronode/adapters/httpapi/wire"
	"macronode/core/event"
	"macronode/core/types"
)

// A saying is one operation as a body says it. What it does not say is empty.
type saying struct {
	op                      event.Op
	from, to, asset, amount string
	nonce                   int64
	until                   types.Time
	hold                    types.TxID
	ref, memo               string
}

// errReason says that a freeze wants a reason.
var errReason = because(event.BadRequest, "reason: must be 1..256 bytes of UTF-8 without control characters")

// read reads a body of s.op.
func (s *saying) read(body []byte) error {
	switch s.op {
	case event.Issue:
		var b wire.IssueRequest
		if err := decode(body, &b, brisk); err != nil {
			return err
		}
		s.to, s.asset, s.amount, s.memo = b.To, b.Asset, b.AmountMinor, b.Memo
		return may(&s.ref, b.Ref, "ref")
	case event.Transfer:
		var b wire.TransferRequest
		if err := decode(body, &b, brisk); err != nil {
			return err
		}
		s.from, s.to, s.asset, s.amount, s.nonce, s.memo = b.From, b.To, b.Asset, b.AmountMinor, b.Nonce, b.Memo
		return may(&s.ref, b.Ref, "ref")
	case event.Burn:
		var b wire.BurnRequest
		if err := decode(body, &b, brisk); err != nil {
			return err
		}
		s.from, s.asset, s.amount, s.nonce, s.memo = b.From, b.Asset, b.AmountMinor, b.Nonce, b.Memo
		return may(&s.ref, b.Ref, "ref")
	case event.Hold:
		var b wire.HoldRequest
		if err := decode(body, &b, strict); err != nil {
			return err
		}
		s.from, s.asset, s.amount, s.nonce, s.memo = b.From, b.Asset, b.AmountMinor, b.Nonce, b.Memo
		s.until = types.Time(b.ExpiresAt.UnixMilli())
		return may(&s.to, b.Beneficiary, "beneficiary")
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
	default: // a release says nothing
		var b struct{}
		return decode(body, &b, strict)
	}
}

// may takes a member that need not be there, and is not empty where it is.
func may(to *string, said *string, member string) error {
	if said == nil {
		return nil
	}
	if *to = *said; *said == "" {
		return because(event.BadRequest, member+": is empty")
	}
	return nil
}

// fill makes an operation of s, its texts at the end of text.
func (s *saying) fill(item *event.Item, text []byte) (grown []byte, err error) {
	*item = event.Item{Op: s.op, Nonce: types.Nonce(s.nonce), ExpiresAt: s.until, Hold: s.hold}
	if s.op <= event.Capture {
		if item.Amount, err = types.ParseAmount(s.amount); err != nil {
			return text, because(event.BadRequest, named(item, err))
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

func (s *saying) size() int { return len(s.from) + len(s.to) + len(s.asset) + len(s.memo) + len(s.ref) }

// named says what a check found wrong with an operation, by the names that the wire
// has for its parts.
func named(item *event.Item, err error) string {
	from, to, memo := "from", "to", "memo"
	switch item.Op {
	case event.Hold:
		to = "beneficiary"
	case event.Freeze, event.Unfreeze:
		from, memo = "account", "reason"
	default: // they are called so
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
	default: // asset and ref are called so
		return err.Error()
	}
}
