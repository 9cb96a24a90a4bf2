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

// The other interfaces of a backend: the node, the read model and the index.
var (
	_ httpapi.Node      = node{}
	_ httpapi.ReadModel = (*backend)(nil)
	_ httpapi.Index     = fakeIndex{}
	_ httpapi.Audit     = (*backend)(nil)
)

// A node is the backend as a Node: Find returns outcomes, where that of the read model returns keys.
type node struct{ *backend }

func (n node) Find(_ context.Context, in *event.FindOutcome) (event.Reply, bool) {
	h := n.backend
	h.hasPermit(in.Permit)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.reply != nil {
		return *h.reply, true
	}
	if was, ok := h.outcomes[key(in.Tenant, in.Key.Text)]; ok {
		return event.Reply{Position: was.position}, !h.full
	}
	return event.Reply{Problem: event.NotFound}, !h.full
}

func (h *backend) CreateKey(_ context.Context, in *event.CreateKey) (event.Reply, bool) {
	h.hasPermit(in.Permit)
	if h.full || h.reply != nil {
		return reply(h.reply), !h.full
	}
	if in.Tenant != in.Key.Tenant && in.Tenant != types.DefaultTenant {
		return event.Reply{Problem: event.Forbidden}, true
	}
	h.putKey(in.Key)
	return event.Reply{}, true
}

func (h *backend) RevokeKey(_ context.Context, in *event.RevokeKey) (event.Reply, bool) {
	h.hasPermit(in.Permit)
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
	h.putKey(k)
	return event.Reply{}, true
}

func reply(r *event.Reply) event.Reply {
	if r == nil {
		return event.Reply{}
	}
	return *r
}

func (h *backend) Note(u httpapi.AuditRecord) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.audited = append(h.audited, u)
}

// takeAudit returns the uses that were recorded since the last call.
func (h *backend) takeAudit() (all []httpapi.AuditRecord) {
	h.mu.Lock()
	defer h.mu.Unlock()
	all, h.audited = h.audited, nil
	return all
}

func (h *backend) Find(id types.KeyID) (event.Key, bool) {
	if h.onFindKey != nil {
		h.onFindKey()
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	k, ok := h.keys[id]
	return k, ok
}

func (h *backend) Keys(t types.Tenant, skip, limit int) (list []event.Key) {
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

// frame returns the frame of a position.
func (h *backend) frame(p types.Position) (*record.Sealed, error) {
	if h.readError != nil {
		return nil, h.readError
	}
	if p.LSN == 0 || int(p.LSN) > len(h.frames) {
		return nil, receipt.ErrNoAnswer
	}
	return &h.frames[p.LSN-1], nil
}

func (h *backend) Render(to []byte, p types.Position) ([]byte, int, types.Tenant, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	s, err := h.frame(p)
	if err != nil {
		return to, 0, 0, err
	}
	if kind, _ := record.KindAt(s.Body, p.Index); kind.Plane() == types.PlaneStorage {
		return h.store.plane.Render(to, s, p.Index)
	}
	if kind, _ := record.KindAt(s.Body, p.Index); kind.Plane() == types.PlaneAccounting {
		return h.book.plane.Render(to, s, p.Index)
	}
	return receipt.Render(to, s, p.Index)
}

func (h *backend) Change(to []byte, p types.Position) ([]byte, types.Tenant, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	s, err := h.frame(p)
	if err != nil {
		return to, 0, err
	}
	return receipt.Change(to, s, p.Index)
}

func (h *backend) RequestAt(p types.Position, in *event.Request) (types.JournalID, error) {
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

func (h *backend) Balance(t types.Tenant, account, asset []byte) event.Balance {
	h.mu.Lock()
	defer h.mu.Unlock()
	m := &h.ledger
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

func (h *backend) Frozen(t types.Tenant, account []byte) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.ledger.frozen[key(t, account)]
}

func (h *backend) Supply(t types.Tenant, asset []byte) (issued, burned, held types.Amount) {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := int64(0)
	for _, v := range h.ledger.holds {
		if v.State == event.HoldActive && string(v.Asset) == string(asset) {
			all += int64(v.Amount.Lo)
		}
	}
	return units(h.ledger.issued[key(t, asset)]), units(h.ledger.burned[key(t, asset)]), units(all)
}

func (h *backend) Seq(t types.Tenant) types.Seq {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.ledger.seqs[t] - min(h.coming, h.ledger.seqs[t])
}

func (h *backend) AwaitSeq(ctx context.Context, t types.Tenant, seq types.Seq) bool {
	for {
		h.mu.Lock()
		there, more := h.ledger.seqs[t] >= seq, h.more
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

// A fakeIndex is the backend as an Index, which is behind by lag movements.
type fakeIndex struct{ *backend }

func (v fakeIndex) Seq(t types.Tenant) types.Seq {
	seq := v.backend.Seq(t)
	v.mu.Lock()
	defer v.mu.Unlock()
	return seq - min(v.lag, seq)
}

func (v fakeIndex) Await(ctx context.Context, t types.Tenant, seq types.Seq) bool {
	return v.AwaitSeq(ctx, t, seq+v.lag)
}

func (h *backend) Mark() event.Watermark {
	h.mu.Lock()
	defer h.mu.Unlock()
	return event.Watermark{LSN: types.LSN(len(h.frames)), At: now}
}

func (h *backend) Ref(t types.Tenant, id types.NameHash) (types.TxID, bool, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, p := range h.ledger.log {
		if p.r.Tenant == t && len(p.r.Ref.Text) > 0 && p.r.Ref.ID == id {
			return p.id, true, h.indexError
		}
	}
	return types.TxID{}, false, h.indexError
}

// log returns the movements of a tenant.
func (h *backend) log(t types.Tenant) []movement {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(h.ledger.log), func(p movement) bool { return p.r.Tenant != t })
}

func (h *backend) view(id types.TxID) event.HoldView {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.ledger.holds[id]
}

func (h *backend) Entries(t types.Tenant, account []byte, after types.Seq, limit int, yield func(*event.Entry) bool) (event.Watermark, error) {
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
	return h.Mark(), h.indexError
}

func (v fakeIndex) BalanceAt(t types.Tenant, account, asset []byte, seq types.Seq) (b event.Balance, known bool, err error) {
	h := v.backend
	if seq > v.Seq(t) {
		return b, false, h.indexError
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
	return b, true, h.indexError
}

func (v fakeIndex) BalanceAtTime(t types.Tenant, account, asset []byte, at types.Time) (b event.Balance, known bool, err error) {
	if at >= now {
		b, _, _ = v.BalanceAt(t, account, asset, v.Seq(t))
	}
	b.At = at
	return b, at <= v.Mark().At, v.indexError
}

// names returns the accounts or assets of a tenant in the order of names.
func (h *backend) names(t types.Tenant, of func(movement) [2][]byte) []string {
	found := make(map[string]bool)
	for _, p := range h.log(t) {
		for _, name := range of(p) {
			found[string(name)] = len(name) > 0
		}
	}
	return slices.DeleteFunc(slices.Sorted(maps.Keys(found)), func(s string) bool { return s == "" })
}

func (h *backend) Accounts(t types.Tenant, prefix, after []byte, limit int, yield func(account, asset []byte) bool) (event.Watermark, error) {
	pairs := h.names(t, func(p movement) (two [2][]byte) {
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
	return h.Mark(), h.indexError
}

func (h *backend) Assets(t types.Tenant, prefix, after []byte, limit int) (list [][]byte, _ event.Watermark, _ error) {
	for _, name := range h.names(t, func(p movement) [2][]byte { return [2][]byte{p.r.Asset.Text} }) {
		if strings.HasPrefix(name, string(prefix)) && name > string(after) && len(list) < limit {
			list = append(list, []byte(name))
		}
	}
	return list, h.Mark(), h.indexError
}

func (h *backend) Holds(t types.Tenant, account []byte, state event.HoldOutcome, any bool, after types.TxID, limit int, _ types.Time) (list []event.HoldView, next types.TxID, _ event.Watermark, _ error) {
	for _, p := range h.log(t) {
		v := h.view(p.id)
		if p.r.Kind != record.HoldOpened || !bytes.Equal(v.From, account) || !any && v.State != state || bytes.Compare(p.id[:], after[:]) <= 0 {
			continue
		}
		if len(list) == limit {
			return list, list[limit-1].ID, h.Mark(), h.indexError
		}
		list = append(list, v)
	}
	return list, types.TxID{}, h.Mark(), h.indexError
}

func (h *backend) Hold(t types.Tenant, id types.TxID, _ types.Time) (event.HoldView, bool, error) {
	for _, p := range h.log(t) {
		if p.id == id && p.r.Kind == record.HoldOpened {
			return h.view(id), true, h.indexError
		}
	}
	return event.HoldView{}, false, h.indexError
}

func (h *backend) Changes(t types.Tenant, after types.Seq, limit int) (list []event.Change, _ event.Watermark, _ error) {
	for _, p := range h.log(t) {
		if p.r.Seq > after && len(list) < limit {
			list = append(list, event.Change{Seq: p.r.Seq, ID: p.id, At: now})
		}
	}
	return list, h.Mark(), h.indexError
}
