package index

import (
	"bytes"
	"cmp"
	"context"
	"slices"

	"macronode/core/digest"
	"macronode/core/event"
	"macronode/core/types"
)

// A Holding is an account and one of its assets, reserved accounts included.
type Holding struct{ Account, Asset []byte }

// Cursor returns the cursor after h.
func (h *Holding) Cursor() []byte { return append(append(bytes.Clone(h.Account), 0), h.Asset...) }

// Accounts lists the accounts with a prefix, with their assets, sorted, after a cursor: at most
// limit. A nil cursor starts at the beginning.
func (x *Indexer) Accounts(t types.Tenant, prefix, after []byte, limit int) ([]Holding, event.Watermark, error) {
	names, m, err := x.names(accountKey(nil, t, nil, nil)[:1+tenantSize], prefix, after, limit)
	list := make([]Holding, 0, len(names))
	for _, n := range names {
		account, asset, _ := bytes.Cut(n, []byte{0})
		list = append(list, Holding{account, asset})
	}
	return list, m, err
}

// Assets lists the assets that were ever issued, like Accounts. An asset is its own cursor.
func (x *Indexer) Assets(t types.Tenant, prefix, after []byte, limit int) ([][]byte, event.Watermark, error) {
	return x.names(assetKey(nil, t, nil), prefix, after, limit)
}

// names lists what follows a stem in keys without values.
func (x *Indexer) names(stem, prefix, after []byte, limit int) ([][]byte, event.Watermark, error) {
	v, err := x.view()
	if err != nil {
		return nil, event.Watermark{}, err
	}
	limit = min(limit, x.limits.Page)
	var list [][]byte
	narrow := func(most int) {
		if len(list) > most {
			slices.SortFunc(list, bytes.Compare)
			list = slices.CompactFunc(list, bytes.Equal)
			list = list[:min(limit, len(list))]
		}
	}
	for i, head := range v.heads(stem) {
		for n := head; n > 0; n = v.tails[i].row(n).prev {
			key, _ := v.tails[i].at(n)
			if name := key[len(stem):]; bytes.HasPrefix(name, prefix) && (after == nil || bytes.Compare(name, after) > 0) {
				list = append(list, name)
				narrow(4*limit + 16)
			}
		}
	}
	narrow(0)
	whole := append(bytes.Clone(stem), prefix...)
	from := whole
	if behind := append(append(bytes.Clone(stem), after...), 0); after != nil && bytes.Compare(behind, from) > 0 {
		from = behind
	}
	got := 0
	v.under(whole, from, func(key, _ []byte) bool {
		list = append(list, bytes.Clone(key[len(stem):]))
		got++
		return got < limit
	})
	narrow(0)
	for i := range list {
		list[i] = bytes.Clone(list[i]) // the memory of a tail is reused
	}
	m := v.event()
	return list, m, v.close()
}

// States is a set of states of a hold. Zero means all.
type States uint8

// In returns the set of one state.
func In(s event.HoldOutcome) States { return 1 << s }

// Holds lists the holds of an account, or of the tenant if account is nil, sorted by ID after
// one, in their state at a time: at most limit holds in the wanted states. next is where the list
// continues; zero means the end. A page can be short before the end, because an answer visits at
// most Page holds.
func (x *Indexer) Holds(t types.Tenant, account []byte, want States, after types.TxID, limit int, now types.Time) (list []event.HoldView, next types.TxID, m event.Watermark, err error) {
	v, err := x.view()
	if err != nil {
		return nil, types.TxID{}, event.Watermark{}, err
	}
	var of types.NameHash // zero: of the tenant
	if len(account) > 0 {
		of = digest.Name(account)
	}
	ids := v.ids(holderKey(nil, t, of, types.TxID{}), after)
	for _, id := range ids {
		h, ok := v.hold(t, id, now)
		if next = id; ok && (want == 0 || want&In(h.State) != 0) {
			if list = append(list, h); len(list) >= limit {
				break
			}
		}
	}
	if len(ids) < x.limits.Page && (len(ids) == 0 || next == ids[len(ids)-1]) {
		next = types.TxID{}
	}
	m = v.event()
	return list, next, m, v.close()
}

// ids returns the first holds after one, as many as an answer visits.
func (v *view) ids(key []byte, after types.TxID) (ids []types.TxID) {
	most := v.index.limits.Page
	stem := key[:1+nameSize]
	order := func(a, b types.TxID) int { return bytes.Compare(a[:], b[:]) }
	narrow := func() {
		slices.SortFunc(ids, order)
		ids = slices.Compact(ids)
		ids = ids[:min(most, len(ids))]
	}
	for i, head := range v.heads(key) {
		for n := head; n > 0; n = v.tails[i].row(n).prev {
			key, _ := v.tails[i].at(n)
			if id := types.TxID(key[len(stem):]); order(id, after) > 0 {
				if ids = append(ids, id); len(ids) > 4*most {
					narrow()
				}
			}
		}
	}
	narrow()
	got := 0
	v.under(stem, append(append(bytes.Clone(stem), after[:]...), 0), func(key, _ []byte) bool {
		ids = append(ids, types.TxID(key[len(stem):]))
		got++
		return got < most
	})
	narrow()
	return ids
}

// Hold returns a hold in its state at a time.
func (x *Indexer) Hold(t types.Tenant, id types.TxID, now types.Time) (h event.HoldView, found bool, err error) {
	v, err := x.view()
	if err != nil {
		return event.HoldView{}, false, err
	}
	h, found = v.hold(t, id, now)
	return h, found && v.err == nil, v.close()
}

// hold counts a hold as expired at its expiry, whether or not that is recorded yet.
func (v *view) hold(t types.Tenant, id types.TxID, now types.Time) (event.HoldView, bool) {
	key := holdKey(nil, t, id)
	value, ok := v.get(key)
	if !ok {
		return event.HoldView{}, false
	}
	var h hold
	if !h.read(bytes.Clone(value)) {
		v.bad(key)
		return event.HoldView{}, false
	}
	show := event.HoldView{ID: id, From: h.from, To: h.to, Asset: h.asset, Amount: h.amount, Opened: h.opened, ExpiresAt: h.until}
	key = endKey(nil, t, id)
	var e end
	switch value, ok := v.get(key); {
	case !ok && h.until <= now:
		show.State = event.HoldExpired
	case !ok:
	case !e.read(value):
		v.bad(key)
	default:
		show.State, show.EndedBy, show.Captured = e.state, v.mark.lives.id(e.place), e.captured
	}
	return show, true
}

// Changes lists the tenant's movements after a seq, at most limit, without gaps.
func (x *Indexer) Changes(t types.Tenant, after types.Seq, limit int) ([]event.Change, event.Watermark, error) {
	v, err := x.view()
	if err != nil {
		return nil, event.Watermark{}, err
	}
	limit = min(limit, x.limits.Page)
	var list []event.Change
	add := func(key, value []byte) {
		var c change
		if !c.read(value) {
			v.bad(key)
			return
		}
		list = append(list, event.Change{Seq: seqOf(key), ID: v.mark.lives.id(c.place), At: c.at})
	}
	first := changeKey(nil, t, after+1)
	v.under(first[:1+tenantSize], first, func(key, value []byte) bool {
		add(key, value)
		return len(list) < limit
	})
	if len(list) < limit {
		for i, head := range v.heads(first) {
			if head > 0 {
				v.tails[i].after(head, uint64(after), limit, add)
			}
		}
		slices.SortFunc(list, func(a, b event.Change) int { return cmp.Compare(a.Seq, b.Seq) })
		list = slices.CompactFunc(list, func(a, b event.Change) bool { return a.Seq == b.Seq })
		list = list[:min(limit, len(list))]
	}
	m := v.event()
	return list, m, v.close()
}

// change returns an existing movement of a tenant.
func (v *view) change(t types.Tenant, seq types.Seq) (c event.Change) {
	key := changeKey(nil, t, seq)
	var value []byte
	ok := false
	heads := v.heads(key)
	for i := len(heads) - 1; i >= 0 && !ok; i-- {
		g := &v.tails[i]
		if heads[i] == 0 {
			continue
		}
		if n := g.before(heads[i], uint64(seq)); n > 0 && g.row(n).pos == uint64(seq) {
			_, value = g.at(n)
			ok = true
		}
	}
	if !ok && v.seek(key) && bytes.Equal(v.tables.Key(), key) {
		value, ok = v.value()
	}
	var read change
	if !ok || !read.read(value) {
		v.bad(key)
		return event.Change{}
	}
	return event.Change{Seq: seq, ID: v.mark.lives.id(read.place), At: read.at}
}

// Seq returns the last movement of a tenant in the index; 0 if the index does not run.
func (x *Indexer) Seq(t types.Tenant) types.Seq {
	last, _ := x.lastOf(&waiting{tenant: t})
	return last
}

// Await waits until a tenant's movement is in the index; false if ctx ends first, too many
// readers wait, or the index stops.
func (x *Indexer) Await(ctx context.Context, t types.Tenant, seq types.Seq) bool {
	old := waiting{tenant: t}
	for {
		moved := x.join()
		if moved == nil {
			return false
		}
		last, err := x.lastOf(&old)
		if err != nil || last >= seq {
			x.leave()
			return err == nil
		}
		select {
		case <-moved:
			x.leave()
		case <-ctx.Done():
			x.leave()
			return false
		}
	}
}

// join returns a channel that is closed at the next fold; nil if too many readers wait.
func (x *Indexer) join() chan struct{} {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.tail == nil || x.waits >= x.limits.Waiters {
		return nil
	}
	x.waits++
	if x.moved == nil {
		x.moved = make(chan struct{})
	}
	return x.moved
}

func (x *Indexer) leave() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.waits--
}

// A waiting caches the result of the tables: they change only when a tail is written.
type waiting struct {
	tenant types.Tenant
	last   types.Seq
	kept   types.LSN // mark of the tables that gave the result
	asked  bool
}

// lastOf returns the tenant's last movement.
func (x *Indexer) lastOf(w *waiting) (types.Seq, error) {
	key := changeKey(make([]byte, 0, 16), w.tenant, 0)
	x.mu.RLock()
	for _, t := range [...]*tail{x.tail, x.frozen} {
		if t == nil {
			continue
		}
		g := t.glimpse()
		if n := g.head(key); n > 0 {
			x.mu.RUnlock()
			return types.Seq(g.row(n).pos), nil
		}
	}
	kept := x.kept.lsn
	x.mu.RUnlock()
	if w.asked && w.kept == kept {
		return w.last, nil
	}
	v, err := x.view()
	if err != nil {
		return 0, err
	}
	w.last, w.kept, w.asked = v.last(w.tenant), kept, true
	return w.last, v.close()
}
