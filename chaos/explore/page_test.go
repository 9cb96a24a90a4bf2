package explore

import (
	"testing"

	"macronode/core/event"
	"macronode/core/record"
	"macronode/core/types"
)

// TestInvalidFramesAreDetected: a frame that does not match the requests or the books is
// detected, each by its rule.
func TestInvalidFramesAreDetected(t *testing.T) {
	plan := Plan{first: []wish{issue(0, "ann", 5), hold(4, "ann", 1, 1, second)}, scripts: [][]wish{{transfer(1, "ann", "bob", 3, 2), burn(2, "ann", 9, 2)}, {transfer(1, "ann", "bob", 4, 2)}}}
	w := Open(plan)
	h, last := w.h, w.last
	pay, over := h.scripts[0][0], h.scripts[0][1]
	report := func(of *wish, kind record.Kind, p event.Problem, fromNow, toNow uint64) record.Record {
		i := &of.r.Item
		r := record.Record{Kind: kind, Op: i.Op, Tenant: 1, Caller: boss.ID, Key: of.r.Key, Hash: of.r.Hash, Problem: p}
		if kind == record.Posted {
			r.From, r.To, r.Asset, r.Amount, r.Nonce = i.From, i.To, i.Asset, i.Amount, i.Nonce
			r.Seq, r.FromBalance, r.ToBalance, r.DebitedToday = 3, types.MinorUnits(fromNow), types.MinorUnits(toNow), i.Amount
		}
		return r
	}
	good := report(pay, record.Posted, event.None, 2, 3)
	other := report(pay, record.Posted, event.None, 2, 3)
	other.Hash = types.RequestHash{1}
	otherTenant := report(pay, record.Posted, event.None, 2, 3)
	otherTenant.Tenant = 2
	id := types.NewTxID(last.journal, types.Position{LSN: last.lsn})
	for what, c := range map[string]struct {
		lsn     types.LSN
		at      types.Time
		records []record.Record
		rule    string
	}{
		"a payment":                          {last.lsn + 1, begin, []record.Record{good}, ""},
		"a refusal":                          {last.lsn + 1, begin, []record.Record{report(over, record.Rejected, event.InsufficientFunds, 0, 0)}, ""},
		"a frame of nothing":                 {last.lsn + 1, begin, nil, ""},
		"a gap":                              {last.lsn + 2, begin, nil, "frame order"},
		"an earlier time":                    {last.lsn + 1, begin - 1, nil, "time goes back"},
		"money from nowhere":                 {last.lsn + 1, begin, []record.Record{report(pay, record.Posted, event.None, 2, 4)}, "the model"},
		"money that stays":                   {last.lsn + 1, begin, []record.Record{report(pay, record.Posted, event.None, 5, 3)}, "the model"},
		"more than there is":                 {last.lsn + 1, begin, []record.Record{report(over, record.Posted, event.None, 0, 9)}, "the model"},
		"a rejection without reason":         {last.lsn + 1, begin, []record.Record{report(pay, record.Rejected, event.InsufficientFunds, 0, 0)}, "the model"},
		"a rejection, wrong reason":          {last.lsn + 1, begin, []record.Record{report(over, record.Rejected, event.NonceUsed, 0, 0)}, "the model"},
		"a record without a request":         {last.lsn + 1, begin, []record.Record{other}, "no request"},
		"a record of another tenant":         {last.lsn + 1, begin, []record.Record{otherTenant}, "no request"},
		"two outcomes":                       {last.lsn + 1, begin, []record.Record{good, good}, "one step"},
		"a hold that ends before its time":   {last.lsn + 1, begin, []record.Record{{Kind: record.HoldExpired, Tenant: 1, Seq: 3, Hold: id}}, "an expiry of a hold that has not expired or does not exist"},
		"a hold that is over":                {last.lsn + 1, begin + 1000, []record.Record{{Kind: record.HoldExpired, Tenant: 1, Seq: 3, Hold: id}}, ""},
		"the expiry of an unknown hold":      {last.lsn + 1, begin + 1000, []record.Record{{Kind: record.HoldExpired, Tenant: 1, Seq: 3, Hold: types.NewTxID(9, types.Position{LSN: 1})}}, "an expiry of a hold that has not expired or does not exist"},
		"a first outcome, for the next case": {last.lsn + 1, begin + 1, []record.Record{good}, ""},
	} {
		body := record.Begin(nil, c.lsn, c.at)
		for i := range c.records {
			body, _ = record.Add(body, 0, &c.records[i])
		}
		p := h.next(last, body, c.lsn, 7)
		if got := p.bad; (got == nil) != (c.rule == "") || got != nil && rule(got) != c.rule {
			t.Errorf("%s: %v, want %q", what, got, c.rule)
		}
		if h.next(last, body, c.lsn, 7) != p || h.err != nil {
			t.Errorf("%s: written again, it is another page, or %v", what, h.err)
		}
		if h.next(last, body, c.lsn, 8); h.err == nil {
			t.Errorf("%s: the same journal, and two states", what)
		}
		h.err = nil
		if c.rule == "" && len(c.records) > 0 && c.records[0].IsOutcome() { // and a second time
			again := record.Begin(nil, c.lsn+1, c.at+1)
			again, _ = record.Add(again, 0, &c.records[0])
			if q := h.next(p, again, c.lsn+1, 9); q.bad == nil || rule(q.bad) != "one outcome" {
				t.Errorf("%s, twice: %v", what, q.bad)
			}
		}
	}
}
