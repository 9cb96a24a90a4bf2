package httpapi

import (
	"testing"

	"macronode/core/event"
	"macronode/core/types"
)

// TestSettle: a reservation is released unless the node used it, or may have used it.
func TestSettle(t *testing.T) {
	for _, c := range []struct {
		reply event.Reply
		used  bool
	}{
		{event.Reply{Position: types.Position{LSN: 1}}, true},
		{event.Reply{Position: types.Position{LSN: 1}, Replayed: true}, false},
		{event.Reply{Problem: event.QuotaExceeded}, false},
		{event.Reply{Problem: event.Busy}, false},
		{event.Reply{Problem: event.PaymentRequired}, false},
		{event.Reply{Problem: event.PaymentExpired}, true},
		{event.Reply{Problem: event.OutcomeUnknown}, true},
	} {
		k := call{payment: payment{hold: types.TxID{1}, used: true}}
		if k.settle(&c.reply); k.payment.used != c.used {
			t.Errorf("%+v: used %v", c.reply, k.payment.used)
		}
	}
}
