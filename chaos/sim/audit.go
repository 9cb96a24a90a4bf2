package sim

import (
	"math/big"

	"macronode/chaos/trace"
	"macronode/core/event"
	"macronode/core/idempotency"
	"macronode/core/record"
	"macronode/core/types"
	"macronode/core/wallet/ledger"
	meaning "macronode/models/ledger"
)

// audit compares every durable frame, in order, with the model of the ledger.
type audit struct {
	last   types.LSN
	at     types.Time
	root   types.Root
	ats    map[types.LSN]types.Time
	forgot types.LSN
	keys   map[idempotency.Key]first // and refs
	batch  bool                      // the frame has a batch; the following records are its items
	lapses int                       // holds that the frame has expired
	day    uint32                    // of the last movement
	model  *meaning.State
	why    map[types.Position]event.Problem // stored rejections
}

// first is the position of a key's outcome.
type first struct {
	lsn types.LSN
	at  types.Time
}

func newAudit(l ledger.Limits) audit {
	return audit{keys: map[idempotency.Key]first{}, why: map[types.Position]event.Problem{}, ats: map[types.LSN]types.Time{}, model: meaning.New(meant(l))}
}

// meant returns the limits in the form of the model.
func meant(l ledger.Limits) meaning.Limits {
	return meaning.Limits{
		Tenants: l.Tenants, Accounts: l.Accounts, Holdings: l.Holdings, Assets: l.Assets,
		TenantAccounts: l.TenantAccounts, TenantHoldings: l.TenantHoldings, TenantAssets: l.TenantAssets,
		Holds: l.Holds, TenantHolds: l.TenantHolds, AccountHolds: types.MaxHolds, HoldFor: types.MaxHoldDuration.Milliseconds(),
		Amount: number(l.MaxAmount), Day: number(l.MaxDailyDebit), IssueDay: number(l.MaxDailyIssue), Supply: number(types.MaxSupply())}
}

func number(a types.Amount) *big.Int {
	n, _ := new(big.Int).SetString(a.String(), 10)
	return n
}

func (a *audit) frame(w *World, s record.Sealed) {
	h, rest, err := record.Open(s.Body)
	if err != nil || h.LSN != a.last+1 || h.At < a.at || s.Prev != a.root {
		w.fail("frame-order", "frame %v after %v: %v", h.LSN, a.last, err)
		return
	}
	w.testified.frames = append(w.testified.frames, s)
	a.last, a.at, a.root, a.batch, a.lapses = h.LSN, h.At, s.Root, false, 0
	a.ats[h.LSN] = h.At
	var r record.Record
	for i := range h.Count {
		if rest, err = record.Next(rest, &r); err != nil {
			w.fail("frame-unreadable", "frame %v: %v", h.LSN, err)
			return
		}
		r.Identify()
		a.record(w, h, types.NewTxID(s.Journal, types.Position{LSN: h.LSN, Index: i}), &r)
	}
}

func (a *audit) record(w *World, h record.Header, id types.TxID, r *record.Record) {
	w.Saw["recorded "+r.Kind.String()]++
	a.shows(w, h, id, r)
	if r.Problem != event.None {
		a.why[id.Position()] = r.Problem
	}
	if r.Kind == record.KeysForgotten {
		a.forget(w, h, r.Upto)
	}
	if r.IsOutcome() && !a.batch {
		a.once(w, h, idempotency.Key{Tenant: r.Tenant, Name: r.Key.ID}, r.Key.Text)
		a.batch = r.Kind == record.Batched
	}
	if len(r.Ref.Text) > 0 {
		a.once(w, h, idempotency.Key{Tenant: r.Tenant, Name: r.Ref.ID, Ref: true}, r.Ref.Text)
	}
	for _, e := range trace.UsageEvents(r) {
		a.once(w, h, refOf(r.Tenant, e), e.Name[:])
	}
	switch {
	case r.Kind == record.HoldExpired:
		a.lapsed(w, h, r)
	case r.IsMovement():
		a.moved(w, h, id, r)
	}
}

// once checks that a key has one outcome within its TTL, and a ref one for ever.
func (a *audit) once(w *World, h record.Header, k idempotency.Key, text []byte) {
	if was, ok := a.keys[k]; ok && (k.Ref || was.at.Add(limits().Idempotency.TTL) > h.At) {
		w.fail("two-outcomes", "%s has two outcomes, at %v and %v", text, was.lsn, h.LSN)
	}
	a.keys[k] = first{h.LSN, h.At}
}

// forget checks that keys are evicted after they are indexed, and after every request that read
// the index before.
func (a *audit) forget(w *World, h record.Header, upto types.LSN) {
	if upto > w.promise.indexed {
		w.fail("forgets-before-indexed", "%v forgets to %v, indexed to %v", h.LSN, upto, w.promise.indexed)
	}
	for _, o := range a.keys {
		if a.forgot < o.lsn && o.lsn <= upto && o.at.Add(limits().Idempotency.MinRetention) > h.At {
			w.fail("forgets-too-early", "%v forgets %v after %d ms", h.LSN, o.lsn, h.At-o.at)
		}
	}
	a.forgot = upto
}

// lapsed checks that the model has the hold, and that it has expired.
func (a *audit) lapsed(w *World, h record.Header, r *record.Record) {
	o, ok := a.model.Hold(r.Hold)
	if !ok || o.Until > h.At || o.Tenant != r.Tenant {
		w.fail("lapse-unknown", "%v ends a hold until %d at %d, held %v", h.LSN, o.Until, h.At, ok)
		return
	}
	a.model.Lapse(r.Hold)
	held := a.model.Kept(0, o.Tenant, o.From, o.Asset)
	if number(r.HeldBalance).Cmp(held) != 0 || a.model.Seq(r.Tenant) != r.Seq {
		w.fail("lapse-differs", "%v: the record has %v held and seq %d, the model %v and %d", h.LSN, r.HeldBalance, r.Seq, held, a.model.Seq(r.Tenant))
	}
}

// moved makes the operation on the model and compares the balances. Expired holds of the account
// must have been ended before.
func (a *audit) moved(w *World, h record.Header, id types.TxID, r *record.Record) {
	o := meaning.Op{At: h.At, Tenant: r.Tenant, Kind: r.Op.String(), From: string(r.From.Text), To: string(r.To.Text),
		Asset: string(r.Asset.Text), Amount: number(r.Amount), Nonce: r.Nonce, Until: r.ExpiresAt, Hold: r.Hold}
	if r.Op == event.Hold {
		o.Hold = id
	}
	if over, _, any := a.model.Over(h.At, r.Tenant, o.From); any && o.From != "" {
		w.fail("overdue-hold-counts", "%v decides about %s, whose hold %x is over", h.LSN, o.From, over)
	}
	if why := a.model.Do(o); why != "" {
		w.fail("model-refuses", "the model refuses %v, %s: %s", h.LSN, r.Key.Text, why)
	}
	fromNow, _ := a.model.Balance(r.Tenant, o.From, o.Asset)
	toNow, _ := a.model.Balance(r.Tenant, o.To, o.Asset)
	held := a.model.Kept(0, r.Tenant, o.From, o.Asset)
	issued, burned := a.model.Supply(r.Tenant, o.Asset)
	ok := a.model.Seq(r.Tenant) == r.Seq
	switch r.Op {
	case event.Issue:
		ok = ok && number(r.FromBalance).Cmp(issued) == 0 && number(r.ToBalance).Cmp(toNow) == 0
	case event.Burn:
		ok = ok && number(r.FromBalance).Cmp(fromNow) == 0 && number(r.ToBalance).Cmp(burned) == 0
	case event.Transfer:
		ok = ok && number(r.FromBalance).Cmp(fromNow) == 0 && number(r.ToBalance).Cmp(toNow) == 0
	case event.Capture:
		ok = ok && number(r.FromBalance).Cmp(fromNow) == 0 && number(r.ToBalance).Cmp(toNow) == 0 && number(r.HeldBalance).Cmp(held) == 0
	case event.Freeze, event.Unfreeze, event.Batch: // move no money
	case event.Hold, event.Release:
		ok = ok && number(r.HeldBalance).Cmp(held) == 0
	}
	if !ok {
		w.fail("model-differs", "%v, %s: the record has %+v, the model %v and %v, %v held, seq %d", h.LSN, r.Key.Text, r, fromNow, toNow, held, a.model.Seq(r.Tenant))
	}
}
