package httpapi_test

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"macronode/core/digest"
	"macronode/core/event"
	"macronode/core/record"
	"macronode/core/words"
)

// money is the house's ledger. Names are written tenant/account, tenant/account/asset.
type money struct {
	has, held map[string]int64
	nonces    map[string]words.Nonce
	frozen    map[string]bool
	holds     map[words.TxID]event.HoldView
	refs      map[string]words.TxID
	seqs      map[words.Tenant]words.Seq
	issued    map[string]int64
	burned    map[string]int64
	log       []posted
}

// posted is a movement, with what was there after it.
type posted struct {
	id             words.TxID
	r              record.Record
	from, to, held int64
}

func newMoney() money {
	return money{has: make(map[string]int64), held: make(map[string]int64), nonces: make(map[string]words.Nonce),
		frozen: make(map[string]bool), holds: make(map[words.TxID]event.HoldView), refs: make(map[string]words.TxID),
		seqs: make(map[words.Tenant]words.Seq), issued: make(map[string]int64), burned: make(map[string]int64)}
}

func (m *money) clone() money {
	return money{maps.Clone(m.has), maps.Clone(m.held), maps.Clone(m.nonces), maps.Clone(m.frozen), maps.Clone(m.holds),
		maps.Clone(m.refs), maps.Clone(m.seqs), maps.Clone(m.issued), maps.Clone(m.burned), slices.Clone(m.log)}
}

func key(t words.Tenant, parts ...[]byte) string {
	s := fmt.Sprint(uint32(t))
	for _, p := range parts {
		s += "|" + string(p)
	}
	return s
}

// decide does what the node would: one frame, or none and a problem.
func (h *house) decide(in *event.Request) event.Reply {
	name := key(in.Tenant, in.Key.Text)
	if was, ok := h.seen[name]; ok {
		if was.asked != in.Asked {
			return event.Reply{Problem: event.IdempotencyConflict}
		}
		return event.Reply{Place: was.place, Replayed: true}
	}
	if why := h.permits(in); why != event.None {
		return event.Reply{Problem: why}
	}
	place := words.Place{LSN: words.LSN(len(h.frames) + 1)}
	var records []*record.Record
	if in.Op != event.Batch {
		r, why := h.judge(in, &in.Item, place)
		if !why.Stored() {
			return event.Reply{Problem: why, Nonce: r.Nonce}
		}
		records = append(records, r)
	} else {
		head := record.Record{Kind: record.Batched, Op: event.Batch, Tenant: in.Tenant, Caller: in.Caller, Key: in.Key, Asked: in.Asked,
			Items: uint16(len(in.Items)), Atomic: in.Atomic}
		records = append(records, &head)
		before := h.money.clone()
		for i := range in.Items {
			r, why := h.judge(in, &in.Items[i], words.Place{LSN: place.LSN, Index: uint16(i + 1)})
			records = append(records, r)
			if why == event.None || !in.Atomic {
				continue
			}
			h.money = before
			if !why.Stored() {
				return event.Reply{Problem: why, Nonce: r.Nonce, Item: uint16(i + 1)}
			}
			head.Problem, head.Nonce, head.Used, head.Items = why, r.Nonce, r.Used, uint16(i)
			records = records[:1]
			break
		}
	}
	h.seal(records...)
	h.seen[name] = remembered{in.Asked, place}
	return event.Reply{Place: place}
}

// permits is what the node's keyring says.
func (h *house) permits(in *event.Request) event.Problem {
	k := h.keys[in.Caller]
	for _, i := range in.Each {
		scope := i.Op.Scope()
		if k.Scopes&scope != scope || !words.Covers(&k.Accounts, i.Mine().Text) || len(i.Asset.Text) > 0 && !words.Covers(&k.Assets, i.Asset.Text) {
			return event.Forbidden
		}
	}
	return event.None
}

// judge makes the record of one operation, and does it unless it is refused.
func (h *house) judge(in *event.Request, i *event.Item, p words.Place) (*record.Record, event.Problem) {
	m, id := &h.money, words.NewTxID(journal, p)
	r := &record.Record{Op: i.Op, Tenant: in.Tenant, Caller: in.Caller, Key: in.Key, Asked: in.Asked, From: i.From, To: i.To,
		Asset: i.Asset, Amount: i.Amount, Nonce: i.Nonce, Until: i.Until, Hold: i.Hold, Ref: i.Ref, Memo: i.Memo}
	if why := h.against(in.Tenant, i, r); why != event.None {
		nonce, used := r.Nonce, r.Used
		*r = record.Record{Kind: record.Refused, Op: i.Op, Tenant: in.Tenant, Caller: in.Caller, Key: in.Key, Asked: in.Asked,
			Problem: why, Used: used}
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

// against is why an operation cannot be done.
func (h *house) against(t words.Tenant, i *event.Item, r *record.Record) event.Problem {
	m, from, amount := &h.money, key(t, i.From.Text, i.Asset.Text), int64(i.Amount.Lo)
	if used, ok := m.refs[key(t, i.Ref.Text)]; ok && len(i.Ref.Text) > 0 {
		r.Used = used
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
		if i.Until <= now || i.Until > now.Plus(words.HoldFor) {
			return event.BadExpiry
		}
	case event.Capture, event.Release:
		v := m.holds[i.Hold]
		switch {
		case v.State != event.Active:
			return event.HoldState
		case v.Amount.Less(i.Amount), len(v.To) > 0 && string(v.To) != string(i.To.Text) && i.Op == event.Capture:
			return event.OverHold
		}
	}
	return event.None
}

// apply does what a record says.
func (h *house) apply(id words.TxID, r *record.Record) {
	m, t := &h.money, r.Tenant
	from, to, amount := key(t, r.From.Text, r.Asset.Text), key(t, r.To.Text, r.Asset.Text), int64(r.Amount.Lo)
	m.seqs[t]++
	r.Seq = m.seqs[t]
	if r.Nonce > 0 {
		m.nonces[key(t, r.From.Text)] = r.Nonce
	}
	hold := m.holds[r.Hold]
	switch r.Op {
	case event.Issue:
		r.Kind = record.Moved
		m.has[to] += amount
		m.issued[key(t, r.Asset.Text)] += amount
	case event.Transfer:
		r.Kind = record.Moved
		m.has[from] -= amount
		m.has[to] += amount
	case event.Burn:
		r.Kind = record.Moved
		m.has[from] -= amount
		m.burned[key(t, r.Asset.Text)] += amount
	case event.Hold:
		r.Kind = record.Held
		m.held[from] += amount
		m.holds[id] = event.HoldView{ID: id, From: r.From.Text, To: r.To.Text, Asset: r.Asset.Text, Amount: r.Amount, Opened: now, Until: r.Until}
	case event.Capture:
		r.Kind = record.Captured
		m.held[from] -= int64(hold.Amount.Lo)
		m.has[from] -= amount
		m.has[to] += amount
		hold.State, hold.Ended, hold.Captured = event.Paid, id, r.Amount
		m.holds[r.Hold] = hold
	case event.Release:
		r.Kind, r.Amount = record.Released, hold.Amount
		m.held[from] -= int64(hold.Amount.Lo)
		hold.State, hold.Ended = event.LetGo, id
		m.holds[r.Hold] = hold
	case event.Freeze, event.Unfreeze:
		r.Kind = record.Frozen
		m.frozen[key(t, r.From.Text)] = r.Op == event.Freeze
	default: // the end of a hold in time
		from = key(t, hold.From, hold.Asset)
		m.held[from] -= int64(hold.Amount.Lo)
		hold.State, hold.Ended = event.Over, id
		m.holds[r.Hold] = hold
	}
	r.HeldNow = words.Units(uint64(m.held[from]))
	m.log = append(m.log, posted{id, *r, m.has[from], m.has[to], m.held[from]})
}

// lapse ends a hold whose time is over.
func (h *house) lapse(id words.TxID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	r := &record.Record{Kind: record.Lapsed, Tenant: words.DefaultTenant, Hold: id}
	h.apply(words.NewTxID(journal, words.Place{LSN: words.LSN(len(h.frames) + 1)}), r)
	h.seal(r)
}

// seal writes a frame.
func (h *house) seal(records ...*record.Record) words.Place {
	lsn := words.LSN(len(h.frames) + 1)
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
	h.status.LSN, h.status.Folded = lsn, lsn
	close(h.more)
	h.more = make(chan struct{})
	return words.Place{LSN: lsn}
}

// month is a time within a hold's reach.
func later(d time.Duration) string {
	return time.UnixMilli(int64(now.Plus(d))).UTC().Format(time.RFC3339Nano)
}
