package httpapi_test

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"macronode/core/digest"
	"macronode/core/event"
	"macronode/core/record"
	"macronode/core/types"
)

// ledger is the ledger of a backend. Its keys are tenant|account and tenant|account|asset.
type ledger struct {
	has, held map[string]int64
	nonces    map[string]types.Nonce
	frozen    map[string]bool
	holds     map[types.TxID]event.HoldView
	refs      map[string]types.TxID
	seqs      map[types.Tenant]types.Seq
	issued    map[string]int64
	burned    map[string]int64
	log       []movement
}

// movement is a movement with the balances after it.
type movement struct {
	id             types.TxID
	r              record.Record
	from, to, held int64
}

func newMoney() ledger {
	return ledger{has: make(map[string]int64), held: make(map[string]int64), nonces: make(map[string]types.Nonce),
		frozen: make(map[string]bool), holds: make(map[types.TxID]event.HoldView), refs: make(map[string]types.TxID),
		seqs: make(map[types.Tenant]types.Seq), issued: make(map[string]int64), burned: make(map[string]int64)}
}

func (m *ledger) clone() ledger {
	return ledger{maps.Clone(m.has), maps.Clone(m.held), maps.Clone(m.nonces), maps.Clone(m.frozen), maps.Clone(m.holds),
		maps.Clone(m.refs), maps.Clone(m.seqs), maps.Clone(m.issued), maps.Clone(m.burned), slices.Clone(m.log)}
}

func key(t types.Tenant, parts ...[]byte) string {
	s := fmt.Sprint(uint32(t))
	for _, p := range parts {
		s += "|" + string(p)
	}
	return s
}

// decide replaces the node: it writes one frame, or none and returns a problem.
func (h *backend) decide(in *event.Request) event.Reply {
	name := key(in.Tenant, in.Key.Text)
	if was, ok := h.outcomes[name]; ok {
		if was.hash != in.Hash {
			return event.Reply{Problem: event.IdempotencyConflict}
		}
		return event.Reply{Position: was.position, Replayed: true}
	}
	if why := h.checkScopes(in); why != event.None {
		return event.Reply{Problem: why}
	}
	place := types.Position{LSN: types.LSN(len(h.frames) + 1)}
	var records []*record.Record
	if in.Op != event.Batch {
		r, why := h.decideItem(in, &in.Item, place)
		if !why.Stored() {
			return event.Reply{Problem: why, Nonce: r.Nonce}
		}
		records = append(records, r)
	} else {
		head := record.Record{Kind: record.Batched, Op: event.Batch, Tenant: in.Tenant, Caller: in.Caller, Key: in.Key, Hash: in.Hash,
			Items: uint16(len(in.Items)), Atomic: in.Atomic}
		records = append(records, &head)
		before := h.ledger.clone()
		for i := range in.Items {
			r, why := h.decideItem(in, &in.Items[i], types.Position{LSN: place.LSN, Index: uint16(i + 1)})
			records = append(records, r)
			if why == event.None || !in.Atomic {
				continue
			}
			h.ledger = before
			if !why.Stored() {
				return event.Reply{Problem: why, Nonce: r.Nonce, Item: uint16(i + 1)}
			}
			head.Problem, head.Nonce, head.PriorRef, head.Items = why, r.Nonce, r.PriorRef, uint16(i)
			records = records[:1]
			break
		}
	}
	h.seal(records...)
	h.outcomes[name] = outcome{in.Hash, place}
	return event.Reply{Position: place}
}

// checkScopes replaces the keyring of the node.
func (h *backend) checkScopes(in *event.Request) event.Problem {
	k := h.keys[in.Caller]
	for _, i := range in.Each {
		scope := i.Op.Scope()
		if k.Scopes&scope != scope || !types.Covers(&k.Accounts, i.AuthorizedAccount().Text) || len(i.Asset.Text) > 0 && !types.Covers(&k.Assets, i.Asset.Text) {
			return event.Forbidden
		}
	}
	return event.None
}

// decideItem makes the record of one operation, and applies it unless it is rejected.
func (h *backend) decideItem(in *event.Request, i *event.Item, p types.Position) (*record.Record, event.Problem) {
	m, id := &h.ledger, types.NewTxID(journal, p)
	r := &record.Record{Op: i.Op, Tenant: in.Tenant, Caller: in.Caller, Key: in.Key, Hash: in.Hash, From: i.From, To: i.To,
		Asset: i.Asset, Amount: i.Amount, Nonce: i.Nonce, ExpiresAt: i.ExpiresAt, Hold: i.Hold, Ref: i.Ref, Memo: i.Memo}
	if why := h.rejectReason(in.Tenant, i, r); why != event.None {
		nonce, used := r.Nonce, r.PriorRef
		*r = record.Record{Kind: record.Rejected, Op: i.Op, Tenant: in.Tenant, Caller: in.Caller, Key: in.Key, Hash: in.Hash,
			Problem: why, PriorRef: used}
		if why == event.NonceUsed || why == event.NonceAhead {
			r.Nonce = nonce
		}
		return r, why
	}
	if len(i.Ref.Text) > 0 {
		m.refs[key(in.Tenant, i.Ref.Text)] = id
	}
	h.apply(id, r)
	return r, event.None
}

// rejectReason returns why an operation is rejected.
func (h *backend) rejectReason(t types.Tenant, i *event.Item, r *record.Record) event.Problem {
	m, from, amount := &h.ledger, key(t, i.From.Text, i.Asset.Text), int64(i.Amount.Lo)
	if used, ok := m.refs[key(t, i.Ref.Text)]; ok && len(i.Ref.Text) > 0 {
		r.PriorRef = used
		return event.RefUsed
	}
	if i.Nonce > 0 {
		next := m.nonces[key(t, i.From.Text)] + 1
		if r.Nonce = next; i.Nonce != next {
			if i.Nonce > next {
				return event.NonceAhead
			}
			return event.NonceUsed
		}
		if m.frozen[key(t, i.From.Text)] {
			return event.AccountFrozen
		}
		if m.has[from]-m.held[from] < amount {
			return event.InsufficientFunds
		}
	}
	switch i.Op {
	case event.Hold:
		if i.ExpiresAt <= now || i.ExpiresAt > now.Add(types.MaxHoldDuration) {
			return event.BadExpiry
		}
	case event.Capture, event.Release:
		v := m.holds[i.Hold]
		switch {
		case v.State != event.HoldActive:
			return event.HoldNotActive
		case v.Amount.Less(i.Amount), len(v.To) > 0 && string(v.To) != string(i.To.Text) && i.Op == event.Capture:
			return event.HoldAmountExceeded
		}
	}
	return event.None
}

// apply applies a record.
func (h *backend) apply(id types.TxID, r *record.Record) {
	m, t := &h.ledger, r.Tenant
	from, to, amount := key(t, r.From.Text, r.Asset.Text), key(t, r.To.Text, r.Asset.Text), int64(r.Amount.Lo)
	m.seqs[t]++
	r.Seq = m.seqs[t]
	if r.Nonce > 0 {
		m.nonces[key(t, r.From.Text)] = r.Nonce
	}
	hold := m.holds[r.Hold]
	switch r.Op {
	case event.Issue:
		r.Kind = record.Posted
		m.has[to] += amount
		m.issued[key(t, r.Asset.Text)] += amount
	case event.Transfer:
		r.Kind = record.Posted
		m.has[from] -= amount
		m.has[to] += amount
	case event.Burn:
		r.Kind = record.Posted
		m.has[from] -= amount
		m.burned[key(t, r.Asset.Text)] += amount
	case event.Hold:
		r.Kind = record.HoldOpened
		m.held[from] += amount
		m.holds[id] = event.HoldView{ID: id, From: r.From.Text, To: r.To.Text, Asset: r.Asset.Text, Amount: r.Amount, Opened: now, ExpiresAt: r.ExpiresAt}
	case event.Capture:
		r.Kind = record.HoldCaptured
		m.held[from] -= int64(hold.Amount.Lo)
		m.has[from] -= amount
		m.has[to] += amount
		hold.State, hold.EndedBy, hold.Captured = event.HoldCaptured, id, r.Amount
		m.holds[r.Hold] = hold
	case event.Release:
		r.Kind, r.Amount = record.HoldReleased, hold.Amount
		m.held[from] -= int64(hold.Amount.Lo)
		hold.State, hold.EndedBy = event.HoldReleased, id
		m.holds[r.Hold] = hold
	case event.Freeze, event.Unfreeze:
		r.Kind = record.FreezeChanged
		m.frozen[key(t, r.From.Text)] = r.Op == event.Freeze
	default: // the expiry of a hold
		from = key(t, hold.From, hold.Asset)
		m.held[from] -= int64(hold.Amount.Lo)
		hold.State, hold.EndedBy = event.HoldExpired, id
		m.holds[r.Hold] = hold
	}
	r.HeldBalance = types.MinorUnits(uint64(m.held[from]))
	m.log = append(m.log, movement{id, *r, m.has[from], m.has[to], m.held[from]})
}

// expireHold expires a hold.
func (h *backend) expireHold(id types.TxID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	r := &record.Record{Kind: record.HoldExpired, Tenant: types.DefaultTenant, Hold: id}
	h.apply(types.NewTxID(journal, types.Position{LSN: types.LSN(len(h.frames) + 1)}), r)
	h.seal(r)
}

// seal writes a frame.
func (h *backend) seal(records ...*record.Record) types.Position {
	lsn := types.LSN(len(h.frames) + 1)
	body := record.Begin(nil, lsn, now)
	for _, r := range records {
		body, _ = record.Add(body, 0, r)
	}
	s := record.Sealed{Journal: journal, LSN: lsn, Body: body}
	if lsn > 1 {
		s.Prev = h.frames[lsn-2].Root
	}
	s.Root, _ = digest.Chain(nil, s.Prev, body)
	h.frames = append(h.frames, s)
	h.status.LSN, h.status.Applied = lsn, lsn
	close(h.more)
	h.more = make(chan struct{})
	return types.Position{LSN: lsn}
}

// later returns a time after now, in RFC 3339.
func later(d time.Duration) string {
	return time.UnixMilli(int64(now.Add(d))).UTC().Format(time.RFC3339Nano)
}
