package httpapi_test

import (
	"bytes"
	"context"
	"maps"
	"slices"
	"strings"

	"macronode/adapters/httpapi"
	"macronode/core/command"
	"macronode/core/event"
	"macronode/core/record"
	"macronode/core/types"
	"macronode/core/wallet/receipt"
)

// What the house is beside its ledger: the node, the books and the views.
var (
	_ httpapi.Node  = node{}
	_ httpapi.Books = (*house)(nil)
	_ httpapi.Views = views{}
	_ httpapi.Audit = (*house)(nil)
)

// A node is the house as one decides: it finds outcomes, where the books find keys.
type node struct{ *house }

func (n node) Find(_ context.Context, in *event.FindOutcome) (event.Reply, bool) {
	h := n.house
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.reply != nil {
		return *h.reply, true
	}
	if was, ok := h.seen[key(in.Tenant, in.Key.Text)]; ok {
		return event.Reply{Position: was.place}, !h.full
	}
	return event.Reply{Problem: event.NotFound}, !h.full
}

func (h *house) Enrol(_ context.Context, in *event.CreateKey) (event.Reply, bool) {
	if h.full || h.reply != nil {
		return reply(h.reply), !h.full
	}
	if in.Tenant != in.Key.Tenant && in.Tenant != types.DefaultTenant {
		return event.Reply{Problem: event.Forbidden}, true
	}
	h.add(in.Key)
	return event.Reply{}, true
}

func (h *house) Revoke(_ context.Context, in *event.RevokeKey) (event.Reply, bool) {
	if h.full || h.reply != nil {
		return reply(h.reply), !h.full
	}
	h.mu.Lock()
	k, known := h.keys[in.Key]
	h.mu.Unlock()
	if !known || k.Tenant != in.Tenant && in.Tenant != types.DefaultTenant {
		return event.Reply{Problem: event.NotFound}, true
	}
	k.Revoked = true
	h.add(k)
	return event.Reply{}, true
}

func reply(r *event.Reply) event.Reply {
	if r == nil {
		return event.Reply{}
	}
	return *r
}

func (h *house) Note(u httpapi.Use) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.uses = append(h.uses, u)
}

// noted takes what was noted so far.
func (h *house) noted() (all []httpapi.Use) {
	h.mu.Lock()
	defer h.mu.Unlock()
	all, h.uses = h.uses, nil
	return all
}

func (h *house) Find(id types.KeyID) (event.Key, bool) {
	if h.find != nil {
		h.find()
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	k, ok := h.keys[id]
	return k, ok
}

func (h *house) Keys(t types.Tenant, skip, limit int) (list []event.Key) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, id := range h.order {
		if k := h.keys[id]; k.Tenant == t {
			if skip--; skip < 0 && len(list) < limit {
				list = append(list, k)
			}
		}
	}
	return list
}

// frame is the one that p is in.
func (h *house) frame(p types.Position) (*record.Sealed, error) {
	if h.unread != nil {
		return nil, h.unread
	}
	if p.LSN == 0 || int(p.LSN) > len(h.frames) {
		return nil, receipt.ErrNoAnswer
	}
	return &h.frames[p.LSN-1], nil
}

func (h *house) Render(to []byte, p types.Position) ([]byte, int, types.Tenant, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	s, err := h.frame(p)
	if err != nil {
		return to, 0, 0, err
	}
	if kind, _ := record.KindAt(s.Body, p.Index); kind.Plane() == types.PlaneStorage {
		return h.store.plane.Render(to, s, p.Index)
	}
	return receipt.Render(to, s, p.Index)
}

func (h *house) Change(to []byte, p types.Position) ([]byte, types.Tenant, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	s, err := h.frame(p)
	if err != nil {
		return to, 0, err
	}
	return receipt.Change(to, s, p.Index)
}

func (h *house) Asked(p types.Position, in *event.Request) (types.JournalID, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	s, err := h.frame(p)
	if err != nil {
		return 0, err
	}
	var r record.Record
	if _, err := record.Read(s.Body, p.Index, &r); err != nil || !r.IsOutcome() {
		return 0, receipt.ErrNoAnswer
	}
	item := func(r *record.Record, index uint16) event.Item {
		i := event.Item{Op: r.Op, From: r.From, To: r.To, Asset: r.Asset, Amount: r.Amount, Hold: r.Hold}
		if r.Kind == record.HoldOpened {
			i.Hold = types.NewTxID(s.Journal, types.Position{LSN: p.LSN, Index: index})
		}
		return i
	}
	*in = event.Request{Header: command.Header{Tenant: r.Tenant, Caller: r.Caller}, Item: item(&r, p.Index)}
	if r.Kind == record.Batched && r.Problem == event.None {
		for n := range r.Items {
			var each record.Record
			if _, err := record.Read(s.Body, p.Index+1+n, &each); err != nil {
				return 0, err
			}
			in.Items = append(in.Items, item(&each, p.Index+1+n))
		}
	}
	return s.Journal, nil
}

func (h *house) Balance(t types.Tenant, account, asset []byte) event.Balance {
	h.mu.Lock()
	defer h.mu.Unlock()
	m := &h.money
	b := event.Balance{At: now, AsOf: m.seqs[t], NextNonce: 1 + m.nonces[key(t, account)]}
	n := m.has[key(t, account, asset)]
	if of, own := types.ReservedAsset(account); own && string(of) == string(asset) {
		n = m.burned[key(t, asset)]
		if account[0] == 'i' {
			n = m.issued[key(t, asset)]
			b.Negative = n > 0
		}
	}
	held := m.held[key(t, account, asset)]
	b.Amount, b.Held, b.Available = units(n), units(held), units(n-held)
	return b
}

func units(n int64) types.Amount { return types.MinorUnits(uint64(n)) }

func (h *house) Frozen(t types.Tenant, account []byte) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.money.frozen[key(t, account)]
}

func (h *house) Supply(t types.Tenant, asset []byte) (issued, burned, held types.Amount) {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := int64(0)
	for _, v := range h.money.holds {
		if v.State == event.HoldActive && string(v.Asset) == string(asset) {
			all += int64(v.Amount.Lo)
		}
	}
	return units(h.money.issued[key(t, asset)]), units(h.money.burned[key(t, asset)]), units(all)
}

func (h *house) Seq(t types.Tenant) types.Seq {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.money.seqs[t] - min(h.coming, h.money.seqs[t])
}

func (h *house) AwaitSeq(ctx context.Context, t types.Tenant, seq types.Seq) bool {
	for {
		h.mu.Lock()
		there, more := h.money.seqs[t] >= seq, h.more
		h.mu.Unlock()
		if there {
			return true
		}
		h.waits.Add(1)
		select {
		case <-more:
		case <-ctx.Done():
			return false
		}
	}
}

// A views is the house as it is seen from behind: it lags where a test says so.
type views struct{ *house }

func (v views) Seq(t types.Tenant) types.Seq {
	seq := v.house.Seq(t)
	v.mu.Lock()
	defer v.mu.Unlock()
	return seq - min(v.lag, seq)
}

func (v views) Await(ctx context.Context, t types.Tenant, seq types.Seq) bool {
	return v.AwaitSeq(ctx, t, seq+v.lag)
}

func (h *house) Mark() event.Watermark {
	h.mu.Lock()
	defer h.mu.Unlock()
	return event.Watermark{LSN: types.LSN(len(h.frames)), At: now}
}

func (h *house) Ref(t types.Tenant, id types.NameHash) (types.TxID, bool, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, p := range h.money.log {
		if p.r.Tenant == t && len(p.r.Ref.Text) > 0 && p.r.Ref.ID == id {
			return p.id, true, h.lost
		}
	}
	return types.TxID{}, false, h.lost
}

// log is what one tenant did, as it was when it was asked for.
func (h *house) log(t types.Tenant) []posted {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(h.money.log), func(p posted) bool { return p.r.Tenant != t })
}

func (h *house) view(id types.TxID) event.HoldView {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.money.holds[id]
}

func (h *house) Entries(t types.Tenant, account []byte, after types.Seq, limit int, yield func(*event.Entry) bool) (event.Watermark, error) {
	for _, p := range h.log(t) {
		from, to, asset := p.r.From.Text, p.r.To.Text, p.r.Asset.Text
		if p.r.Kind == record.HoldExpired {
			v := h.view(p.r.Hold)
			from, asset, p.r.Amount = v.From, v.Asset, v.Amount
		}
		pays, gets := bytes.Equal(from, account), bytes.Equal(to, account) && p.r.Kind != record.HoldOpened
		if !pays && !gets || p.r.Seq <= after {
			continue
		}
		e := event.Entry{Seq: p.r.Seq, ID: p.id, At: now, Op: p.r.Op, Asset: asset, Amount: p.r.Amount, Nonce: p.r.Nonce,
			Ref: p.r.Ref.Text, Memo: p.r.Memo, Hold: p.r.Hold, Balance: units(p.from), Held: units(p.held), Counterparty: to}
		if p.r.Kind == record.HoldOpened {
			e.Hold = p.id
		}
		if gets {
			e.Credit, e.Counterparty, e.Balance, e.Held, e.Nonce = true, from, units(p.to), types.Amount{}, 0
		}
		if limit--; limit < 0 || !yield(&e) {
			break
		}
	}
	return h.Mark(), h.lost
}

func (v views) BalanceAt(t types.Tenant, account, asset []byte, seq types.Seq) (b event.Balance, known bool, err error) {
	h := v.house
	if seq > v.Seq(t) {
		return b, false, h.lost
	}
	for _, p := range h.log(t) {
		if p.r.Seq > seq {
			break
		}
		b.AsOf, b.At = p.r.Seq, now
		if bytes.Equal(p.r.Asset.Text, asset) && bytes.Equal(p.r.From.Text, account) {
			b.Amount, b.Held, b.Available = units(p.from), units(p.held), units(p.from-p.held)
		}
		if bytes.Equal(p.r.Asset.Text, asset) && bytes.Equal(p.r.To.Text, account) {
			b.Amount = units(p.to)
			b.Available, _ = b.Amount.Sub(b.Held)
		}
	}
	return b, true, h.lost
}

func (v views) BalanceAtTime(t types.Tenant, account, asset []byte, at types.Time) (b event.Balance, known bool, err error) {
	if at >= now {
		b, _, _ = v.BalanceAt(t, account, asset, v.Seq(t))
	}
	b.At = at
	return b, at <= v.Mark().At, v.lost
}

// names are all accounts and assets of a tenant that ever moved.
func (h *house) names(t types.Tenant, of func(posted) [2][]byte) []string {
	found := make(map[string]bool)
	for _, p := range h.log(t) {
		for _, name := range of(p) {
			found[string(name)] = len(name) > 0
		}
	}
	return slices.DeleteFunc(slices.Sorted(maps.Keys(found)), func(s string) bool { return s == "" })
}

func (h *house) Accounts(t types.Tenant, prefix, after []byte, limit int, yield func(account, asset []byte) bool) (event.Watermark, error) {
	pairs := h.names(t, func(p posted) (two [2][]byte) {
		for i, name := range [2][]byte{p.r.From.Text, p.r.To.Text} {
			if len(name) > 0 && len(p.r.Asset.Text) > 0 {
				two[i] = append(append(bytes.Clone(name), 0), p.r.Asset.Text...)
			}
		}
		return two
	})
	for _, pair := range pairs {
		if !strings.HasPrefix(pair, string(prefix)) || pair <= string(after) {
			continue
		}
		account, asset, _ := strings.Cut(pair, "\x00")
		if limit--; limit < 0 || !yield([]byte(account), []byte(asset)) {
			break
		}
	}
	return h.Mark(), h.lost
}

func (h *house) Assets(t types.Tenant, prefix, after []byte, limit int) (list [][]byte, _ event.Watermark, _ error) {
	for _, name := range h.names(t, func(p posted) [2][]byte { return [2][]byte{p.r.Asset.Text} }) {
		if strings.HasPrefix(name, string(prefix)) && name > string(after) && len(list) < limit {
			list = append(list, []byte(name))
		}
	}
	return list, h.Mark(), h.lost
}

func (h *house) Holds(t types.Tenant, account []byte, state event.HoldOutcome, any bool, after types.TxID, limit int, _ types.Time) (list []event.HoldView, next types.TxID, _ event.Watermark, _ error) {
	for _, p := range h.log(t) {
		v := h.view(p.id)
		if p.r.Kind != record.HoldOpened || !bytes.Equal(v.From, account) || !any && v.State != state || bytes.Compare(p.id[:], after[:]) <= 0 {
			continue
		}
		if len(list) == limit {
			return list, list[limit-1].ID, h.Mark(), h.lost
		}
		list = append(list, v)
	}
	return list, types.TxID{}, h.Mark(), h.lost
}

func (h *house) Hold(t types.Tenant, id types.TxID, _ types.Time) (event.HoldView, bool, error) {
	for _, p := range h.log(t) {
		if p.id == id && p.r.Kind == record.HoldOpened {
			return h.view(id), true, h.lost
		}
	}
	return event.HoldView{}, false, h.lost
}

func (h *house) Changes(t types.Tenant, after types.Seq, limit int) (list []event.Change, _ event.Watermark, _ error) {
	for _, p := range h.log(t) {
		if p.r.Seq > after && len(list) < limit {
			list = append(list, event.Change{Seq: p.r.Seq, ID: p.id, At: now})
		}
	}
	return list, h.Mark(), h.lost
}
