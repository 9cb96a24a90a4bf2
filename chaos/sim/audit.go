package sim

import (
	"math/big"

	"macronode/core/event"
	"macronode/core/idem"
	"macronode/core/record"
	"macronode/core/words"
	meaning "macronode/models/ledger"
)

// audit holds every durable frame, in order, against what money means.
type audit struct {
	last   words.LSN
	at     words.Time
	root   words.Root
	forgot words.LSN
	keys   map[idem.Key]outcome
	twin   *meaning.State
}

type outcome struct {
	lsn words.LSN
	at  words.Time
}

func newAudit() audit {
	l := limits().Ledger
	return audit{keys: map[idem.Key]outcome{}, twin: meaning.New(meaning.Limits{
		Tenants: l.Tenants, Accounts: l.Accounts, Holdings: l.Holdings, Assets: l.Assets,
		TenantAccounts: l.TenantAccounts, TenantHoldings: l.TenantHoldings, TenantAssets: l.TenantAssets,
		Amount: number(l.Amount), Day: number(l.Day), IssueDay: number(l.IssueDay), Supply: number(words.MaxSupply())})}
}

func number(a words.Amount) *big.Int {
	n, _ := new(big.Int).SetString(a.String(), 10)
	return n
}

func (a *audit) frame(w *World, s record.Sealed) {
	h, rest, err := record.Open(s.Body)
	if err != nil || h.LSN != a.last+1 || h.At < a.at || s.Prev != a.root {
		w.fail("frame %v after %v: %v", h.LSN, a.last, err)
		return
	}
	a.last, a.at, a.root = h.LSN, h.At, s.Root
	var r record.Record
	for range h.Count {
		if rest, err = record.Next(rest, &r); err != nil {
			w.fail("frame %v: %v", h.LSN, err)
			return
		}
		r.Identify()
		a.record(w, h, &r)
	}
}

func (a *audit) record(w *World, h record.Head, r *record.Record) {
	switch r.Kind {
	case record.Forgot:
		w.Saw["forgot"]++
		a.forget(w, h, r.Upto)
	case record.Moved, record.Refused:
		key := idem.Key{Tenant: r.Tenant, Name: r.Key.ID}
		if was, ok := a.keys[key]; ok && was.lsn > a.forgot {
			w.fail("%s has two outcomes, at %v and %v", r.Key.Text, was.lsn, h.LSN)
		}
		a.keys[key] = outcome{h.LSN, h.At}
	case record.Booted, record.KeyMade, record.Restored:
	}
	if r.Kind == record.Moved {
		a.moved(w, h, r)
	}
}

// forget: no key leaves before its time.
func (a *audit) forget(w *World, h record.Head, upto words.LSN) {
	for _, o := range a.keys {
		if a.forgot < o.lsn && o.lsn <= upto && o.at.Plus(limits().Idem.TTL) > h.At {
			w.fail("%v forgets %v after %d ms", h.LSN, o.lsn, h.At-o.at)
		}
	}
	a.forgot = upto
}

// moved asks the twin to do the same, and to come to the same balances.
func (a *audit) moved(w *World, h record.Head, r *record.Record) {
	from, to, asset := string(r.From.Text), string(r.To.Text), string(r.Asset.Text)
	if why := a.twin.Do(meaning.Op{At: h.At, Tenant: r.Tenant, Kind: r.Op.String(), From: from, To: to, Asset: asset,
		Amount: number(r.Amount), Nonce: r.Nonce}); why != "" {
		w.fail("the twin refuses %v, %s: %s", h.LSN, r.Key.Text, why)
	}
	fromNow, _ := a.twin.Balance(r.Tenant, from, asset)
	toNow, _ := a.twin.Balance(r.Tenant, to, asset)
	issued, burned := a.twin.Supply(r.Tenant, asset)
	switch r.Op {
	case event.Issue:
		fromNow = issued
	case event.Burn:
		toNow = burned
	case event.Transfer:
	}
	if number(r.FromNow).Cmp(fromNow) != 0 || number(r.ToNow).Cmp(toNow) != 0 || a.twin.Seq(r.Tenant) != r.Seq {
		w.fail("%v, %s: the record says %v, %v and seq %d, the twin %v, %v and %d", h.LSN, r.Key.Text, r.FromNow, r.ToNow, r.Seq, fromNow, toNow, a.twin.Seq(r.Tenant))
	}
}
